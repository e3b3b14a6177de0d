"""Directories against the store: every one of them is somebody's, or a stray."""

import uuid
from dataclasses import replace

import pytest

from stratalog.metadata import MetadataImage, PartitionMetadata, TopicMetadata, TopicState
from stratalog.metadata.adoption import FoundDirectory, FoundReplica
from stratalog.metadata.image import with_topics
from stratalog.metadata.reconciliation import Reconciliation, reconcile

ONE, TWO = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)
ORDERS = TopicMetadata(
    name="orders",
    topic_id=ONE,
    partitions=(
        PartitionMetadata(partition=0, leader=1, replicas=(1, 2), isr=(1,)),
        PartitionMetadata(partition=1, leader=2, replicas=(2,), isr=(2,)),
        PartitionMetadata(partition=2, leader=2, replicas=(2, 1), isr=(2,)),
    ),
)


def reconciled(topic: TopicMetadata, *replicas: FoundReplica) -> Reconciliation:
    image = with_topics(MetadataImage(cluster_id="c", node_id=1, nodes=(1, 2)), [topic])
    return reconcile(image, [FoundDirectory(path="/logs", replicas=replicas)])


def found(partition: int, topic_id: uuid.UUID | None = ONE, topic: str = "orders") -> FoundReplica:
    return FoundReplica(topic=topic, partition=partition, topic_id=topic_id)


@pytest.mark.parametrize(
    ("replica", "fate"),
    [
        (found(0), "kept"),
        (found(2), "kept"),
        (found(0, None), "kept"),
        (found(1), "strays"),  # another node's
        (found(3), "strays"),
        (found(0, TWO), "strays"),
        (found(0, TWO, "payments"), "strays"),
        (found(0, None, "payments"), "strays"),
    ],
)
def test_what_the_store_does_not_know_is_a_stray(replica: FoundReplica, fate: str) -> None:
    result = reconciled(ORDERS, replica)
    fates = [name for name in ("kept", "strays", "to_delete") if getattr(result, name)]
    assert fates == [fate]
    assert getattr(result, fate)[0].path == "/logs"


@pytest.mark.parametrize(
    ("state", "where"), [(TopicState.CREATING, "to_create"), (TopicState.LIVE, "missing")]
)
def test_what_should_be_here_is_created_or_missed(state: TopicState, where: str) -> None:
    result = reconciled(replace(ORDERS, state=state), found(0))
    absent = {name: getattr(result, name) for name in ("to_create", "missing")}
    assert absent.pop(where) == (found(2),)
    assert list(absent.values()) == [()]


def test_a_topic_that_is_being_deleted_is_deleted_and_not_missed() -> None:
    result = reconciled(replace(ORDERS, state=TopicState.DELETING), found(0))
    assert [placed.replica for placed in result.to_delete] == [found(0)]
    assert (result.kept, result.strays, result.to_create, result.missing) == ((), (), (), ())
