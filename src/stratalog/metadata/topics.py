"""Changes of topics and partitions, decided: a request and an image in, the new value out.

Pure: nothing is stored here, and what is refused raises before anything has changed. The order of
the checks is Kafka's, because it decides which error a client sees.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stratalog.config import BrokerConfig
from stratalog.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    InvalidUpdateVersionError,
    TooManyPartitionsError,
    TopicExistsError,
)
from stratalog.metadata.dynamic_configs import check_topic_configs
from stratalog.metadata.image import (
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
)
from stratalog.metadata.names import metric_name, validate_new_topic_name
from stratalog.metadata.placement import check_assignment, place_replicas

BROKER_DEFAULT = -1
PARTITIONS_PER_REQUEST_MAX = 10_000
LEADER_EPOCH_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic that somebody asks for: by numbers, or with all its replicas (``assignments``)."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)

    def wanted_partitions(self, broker: BrokerConfig) -> int:
        if self.assignments:
            return len(self.assignments)
        if self.partition_count == BROKER_DEFAULT:
            return broker.num_partitions
        return max(self.partition_count, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """What changes about a partition; None is left as it is.

    Naming a leader, be it the same, begins a new leader epoch, above ``leader_epoch_above`` if the
    leader's log knows of a later one than the store. ``partition_epoch`` is the one on which the
    change was decided; the change is refused if the partition has moved on.
    """

    name: str
    partition: int
    partition_epoch: int | None = None
    leader: int | None = None
    leader_epoch_above: int = -1
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None


def check_request_size(topics: Sequence[NewTopic], broker: BrokerConfig) -> None:
    total = sum(topic.wanted_partitions(broker) for topic in topics)
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise TooManyPartitionsError(
            f"{total} partitions in one request, where {PARTITIONS_PER_REQUEST_MAX} are allowed"
        )


def plan_topic(
    image: MetadataImage,
    wanted: NewTopic,
    *,
    broker: BrokerConfig,
    topic_id: uuid.UUID,
    beside: Collection[str] = (),
) -> TopicMetadata:
    """The topic that ``wanted`` becomes. ``beside`` are names that the same request creates."""
    name = validate_new_topic_name(wanted.name)
    if name in image.topics or name in beside:
        raise TopicExistsError(name)
    _check_collision(image, name, beside)
    configs = check_topic_configs(wanted.configs, broker)
    replicas = _assigned(image, wanted) if wanted.assignments else _placed(image, wanted, broker)
    return TopicMetadata(
        name=name,
        topic_id=topic_id,
        partitions=_new_partitions(replicas, first_partition=0),
        configs=configs,
        state=TopicState.CREATING,
    )


def _check_collision(image: MetadataImage, name: str, beside: Collection[str]) -> None:
    spelt = metric_name(name)
    if spelt is None:
        return
    other = image.metric_names.get(spelt)
    if other is None:
        other = next((each for each in beside if metric_name(each) == spelt), None)
    if other is not None:
        raise InvalidTopicError(name, f"metrics could not tell it from topic {other!r}")


def _assigned(image: MetadataImage, wanted: NewTopic) -> list[tuple[int, ...]]:
    if wanted.replication_factor != BROKER_DEFAULT:
        raise InvalidRequestError("replicas are given, and a replication factor too")
    if wanted.partition_count != BROKER_DEFAULT:
        raise InvalidRequestError("replicas are given, and a number of partitions too")
    found, replication_factor = [], None
    for partition in range(len(wanted.assignments)):
        if partition not in wanted.assignments:
            raise InvalidReplicaAssignmentError(
                f"{len(wanted.assignments)} partitions are assigned, and {partition} is not there"
            )
        replicas = check_assignment(
            wanted.assignments[partition], image.nodes, replication_factor=replication_factor
        )
        replication_factor = len(replicas)
        found.append(replicas)
    return found


def _placed(image: MetadataImage, wanted: NewTopic, broker: BrokerConfig) -> list[tuple[int, ...]]:
    factor, count = wanted.replication_factor, wanted.partition_count
    if factor < 1 and factor != BROKER_DEFAULT:
        raise InvalidReplicationFactorError(f"{factor} replicas: at least one, or -1 for default")
    if count < 1 and count != BROKER_DEFAULT:
        raise InvalidPartitionsError(f"{count} partitions: at least one, or -1 for the default")
    return place_replicas(
        image.nodes,
        partition_count=wanted.wanted_partitions(broker),
        replication_factor=(
            broker.default_replication_factor if factor == BROKER_DEFAULT else factor
        ),
        first_node=image.partition_count,
    )


def _new_partitions(
    replicas: Sequence[tuple[int, ...]], *, first_partition: int
) -> tuple[PartitionMetadata, ...]:
    return tuple(
        PartitionMetadata(partition=number, leader=nodes[0], replicas=nodes, isr=nodes)
        for number, nodes in enumerate(replicas, start=first_partition)
    )


def plan_partitions(
    image: MetadataImage,
    name: str,
    new_count: int,
    *,
    assignments: Sequence[Sequence[int]] | None = None,
) -> TopicMetadata:
    """The topic with ``new_count`` partitions in all; ``assignments`` are those of the new ones."""
    topic = image.topic(name)
    count = len(topic.partitions)
    if new_count <= count:
        raise InvalidPartitionsError(
            f"topic {name!r} has {count} partitions; {new_count} adds none"
        )
    added = new_count - count
    if assignments is not None and len(assignments) != added:
        raise InvalidReplicaAssignmentError(
            f"{added} partitions are added and {len(assignments)} are assigned"
        )
    if added > PARTITIONS_PER_REQUEST_MAX:
        raise TooManyPartitionsError(
            f"{added} partitions in one request, where {PARTITIONS_PER_REQUEST_MAX} are allowed"
        )
    factor = topic.replication_factor
    if assignments is None:
        replicas = place_replicas(
            image.nodes,
            partition_count=added,
            replication_factor=factor,
            first_partition=count,
            # Go on round the ring from where the topic's first leader stands.
            first_node=_ring_place(image.nodes, topic.partitions[0]),
        )
    else:
        replicas = [
            check_assignment(each, image.nodes, replication_factor=factor) for each in assignments
        ]
    # The new partitions have no directories yet.
    return replace(
        topic,
        partitions=topic.partitions + _new_partitions(replicas, first_partition=count),
        state=TopicState.CREATING,
    )


def _ring_place(nodes: Sequence[int], first: PartitionMetadata) -> int:
    ring = sorted(nodes)
    leader = first.replicas[0] if first.replicas else first.leader
    return ring.index(leader) if leader in ring else 0


def change_partitions(
    image: MetadataImage, changes: Sequence[PartitionChange]
) -> tuple[TopicMetadata, ...]:
    """The topics after ``changes``, each of them whole."""
    topics: dict[str, list[PartitionMetadata]] = {}
    for change in changes:
        topic = image.topic(change.name)
        topic.partition(change.partition)
        partitions = topics.setdefault(change.name, list(topic.partitions))
        before = partitions[change.partition]
        if change.partition_epoch not in (None, before.partition_epoch):
            raise InvalidUpdateVersionError(
                change.name, change.partition, change.partition_epoch, before.partition_epoch
            )
        partitions[change.partition] = _changed(before, change)
    return tuple(
        replace(image.topic(name), partitions=tuple(partitions))
        for name, partitions in topics.items()
    )


def _changed(before: PartitionMetadata, change: PartitionChange) -> PartitionMetadata:
    given = {
        name: value
        for name in ("isr", "replicas", "adding_replicas", "removing_replicas")
        if (value := getattr(change, name)) is not None
    }
    after = replace(before, partition_epoch=before.partition_epoch + 1, **given)
    if change.leader is not None:
        above = max(before.leader_epoch, change.leader_epoch_above)
        epoch = min(above + 1, LEADER_EPOCH_MAX)
        after = replace(after, leader=change.leader, leader_epoch=epoch)
    if not set(after.isr) <= set(after.replicas):
        raise InvalidReplicaAssignmentError(
            f"{change.name}-{change.partition}: {list(after.isr)} in sync, "
            f"where the replicas are {list(after.replicas)}"
        )
    return after
