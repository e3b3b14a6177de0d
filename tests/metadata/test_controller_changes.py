"""Apache Kafka's turn, taken over: what either side changed counts, and nothing else changes."""

import uuid
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import BrokerConfig
from stratalog.metadata.adoption import FoundDirectory, FoundReplica, plan_adoption
from stratalog.metadata.cluster_log import ClusterMetadata, RecordedPartition, RecordedTopic
from stratalog.metadata.controller_changes import Following, followed_controller, plan_following
from stratalog.metadata.image import (
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
    apply_update,
)

ONE, TWO, THREE = (uuid.UUID(int=n << 100) for n in (1, 2, 3))
BROKER = BrokerConfig()
Configs = Mapping[str, str]


def recorded(
    cluster: ClusterMetadata,
    name: str,
    topic_id: uuid.UUID,
    epochs: tuple[int, ...] = (0,),
    **configs: str,
) -> ClusterMetadata:
    """``cluster`` with a topic more, or another in the place of one of that id."""
    topic = RecordedTopic(
        name,
        topic_id,
        {
            number: RecordedPartition(replicas=(1,), leader=1, leader_epoch=epoch, isr=(1,))
            for number, epoch in enumerate(epochs)
        },
    )
    named = {key.replace("_", "."): text for key, text in configs.items()}
    return replace(
        cluster,
        topics={**cluster.topics, topic_id: topic},
        topic_configs={**cluster.topic_configs, name: named},
    )


def found(*replicas: tuple[str, int, uuid.UUID]) -> FoundDirectory:
    return FoundDirectory(
        path="/logs",
        cluster_id="c",
        node_id=1,
        replicas=tuple(
            FoundReplica(topic=name, partition=number, topic_id=topic_id)
            for name, number, topic_id in replicas
        ),
    )


def adopted(cluster: ClusterMetadata, directory: FoundDirectory) -> MetadataImage:
    adoption = plan_adoption(
        [directory], cluster=cluster, broker=BROKER, is_broker_config_known=True
    )
    return apply_update(MetadataImage(cluster_id="c", node_id=1, nodes=(1,)), adoption.update)


def made_here(image: MetadataImage, name: str, topic_id: uuid.UUID) -> MetadataImage:
    part = PartitionMetadata(partition=0, leader=1, replicas=(1,), isr=(1,))
    return changed(image, TopicMetadata(name=name, topic_id=topic_id, partitions=(part,)))


def changed(image: MetadataImage, *topics: TopicMetadata) -> MetadataImage:
    return apply_update(image, Update(topics=topics))


def follow(
    image: MetadataImage,
    before: ClusterMetadata | None,
    now: ClusterMetadata,
    directory: FoundDirectory,
) -> tuple[MetadataImage, Following]:
    plan = plan_following(
        image,
        now,
        None if before is None else followed_controller(before, "before"),
        [directory],
        broker=BROKER,
        is_broker_config_known=True,
    )
    return apply_update(image, plan.update), plan


EMPTY = ClusterMetadata()
ORDERS = recorded(EMPTY, "orders", ONE, (4,), retention_ms="5")
HERE = found(("orders", 0, ONE))


def test_a_turn_that_changed_nothing_changes_nothing() -> None:
    image = adopted(ORDERS, HERE)
    after, plan = follow(image, ORDERS, ORDERS, HERE)
    assert after.topics == image.topics
    assert (plan.notes, plan.held) == ((), {})


# --- topics ---------------------------------------------------------------------------------------


def test_leader_epochs_of_kafkas_turn_go_on_and_ours_are_not_lowered() -> None:
    image = adopted(ORDERS, HERE)
    for epoch, newest in ((9, 9), (3, 4)):
        now = recorded(ORDERS, "orders", ONE, (epoch,), retention_ms="5")
        after, _ = follow(image, ORDERS, now, HERE)
        assert after.topic("orders").partition(0).leader_epoch == newest


def test_a_topic_that_kafka_made_is_a_topic() -> None:
    now = recorded(ORDERS, "payments", TWO, (0, 0), cleanup_policy="compact")
    after, _ = follow(adopted(ORDERS, HERE), ORDERS, now, HERE)
    payments = after.topic("payments")
    assert (payments.topic_id, len(payments.partitions)) == (TWO, 2)
    assert payments.configs == {"cleanup.policy": "compact"}


def test_a_topic_that_kafka_deleted_is_none() -> None:
    image = adopted(ORDERS, HERE)
    for now in (EMPTY, replace(EMPTY, removed={ONE})):
        after, plan = follow(image, ORDERS, now, found())
        assert (set(after.topics), set(after.deleting)) == (set(), {ONE})
        assert plan.notes == ("topic orders was deleted by Apache Kafka",)


def test_a_topic_that_was_made_here_stays_one() -> None:
    image = made_here(adopted(ORDERS, HERE), "ours", TWO)
    after, _ = follow(image, ORDERS, ORDERS, HERE)
    assert after.topics == image.topics


def test_a_topic_that_was_deleted_here_is_one_again_where_kafka_has_made_its_directory() -> None:
    image = apply_update(adopted(ORDERS, HERE), Update(removed=frozenset({ONE})))
    for before in (ORDERS, None):
        assert set(follow(image, before, ORDERS, found())[0].topics) == set()
        assert set(follow(image, before, ORDERS, HERE)[0].topics) == {"orders"}


def test_of_two_topics_of_one_name_kafkas_is_served_and_no_directory_is_deleted() -> None:
    image = made_here(adopted(ORDERS, HERE), "same", TWO)
    now = recorded(ORDERS, "same", THREE)
    after, _ = follow(image, ORDERS, now, found(("orders", 0, ONE), ("same", 0, THREE)))
    assert after.topic("same").topic_id == THREE
    assert TWO not in after.deleting


def test_a_topic_that_kafka_deleted_and_made_anew_is_the_new_one() -> None:
    now = replace(recorded(EMPTY, "orders", TWO), removed={ONE})
    after, _ = follow(adopted(ORDERS, HERE), ORDERS, now, found(("orders", 0, TWO)))
    assert (after.topic("orders").topic_id, set(after.deleting)) == (TWO, {ONE})


def test_partitions_of_either_side_are_kept() -> None:
    now = recorded(ORDERS, "orders", ONE, (4, 0, 0), retention_ms="5")
    three = found(*(("orders", number, ONE) for number in range(3)))
    for directory, state in ((three, TopicState.LIVE), (HERE, TopicState.CREATING)):
        after, _ = follow(adopted(ORDERS, HERE), ORDERS, now, directory)
        assert len(after.topic("orders").partitions) == 3
        assert after.topic("orders").state is state
    fewer, _ = follow(adopted(now, three), now, ORDERS, HERE)
    assert len(fewer.topic("orders").partitions) == 3


# --- configs --------------------------------------------------------------------------------------

texts = st.dictionaries(
    st.sampled_from(("retention.ms", "segment.bytes", "segment.ms", "retention.bytes")),
    st.sampled_from(("1100001", "2000002", "3000003")),
)


def topic_configs(configs: Configs) -> ClusterMetadata:
    return replace(recorded(EMPTY, "orders", ONE), topic_configs={"orders": dict(configs)})


def broker_configs(configs: Configs) -> ClusterMetadata:
    named = {f"log.{name}": text for name, text in configs.items() if name != "segment.ms"}
    return replace(EMPTY, broker_configs={None: named})


@given(before=texts, now=texts, ours=texts)
def test_a_config_is_kafkas_if_its_turn_changed_it_and_else_what_it_is_here(
    before: Configs, now: Configs, ours: Configs
) -> None:
    image = adopted(topic_configs(before), HERE)
    image = changed(image, replace(image.topic("orders"), configs=ours))
    after, _ = follow(image, topic_configs(before), topic_configs(now), HERE)
    expected = {
        name: source[name]
        for name in {*before, *now, *ours}
        if name in (source := ours if before.get(name) == now.get(name) else now)
    }
    assert after.topic("orders").configs == expected


@given(before=texts, now=texts)
def test_dynamic_configs_of_brokers_follow_kafkas_turn(before: Configs, now: Configs) -> None:
    image = adopted(broker_configs(before), found())
    after, _ = follow(image, broker_configs(before), broker_configs(now), found())
    assert after.broker_configs.get(None, {}) == broker_configs(now).broker_configs[None]


def test_a_config_that_is_not_possible_here_holds_the_topic() -> None:
    now = recorded(ORDERS, "orders", ONE, (4,), retention_ms="6", remote_storage_enable="true")
    after, plan = follow(adopted(ORDERS, HERE), ORDERS, now, HERE)
    assert after.topic("orders").is_held
    assert after.topic("orders").configs == {"retention.ms": "6"}
    assert set(plan.held) == {"orders"}


def test_nobody_remembers_what_the_controller_said_and_what_is_known_here_stays() -> None:
    image = adopted(ORDERS, HERE)
    image = changed(image, replace(image.topic("orders"), configs={"retention.ms": "7"}))
    after, _ = follow(image, None, ORDERS, HERE)
    assert after.topics == image.topics
