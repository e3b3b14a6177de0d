"""What is known of a cluster at one moment: topics, partitions, configs. Values, never changed.

A ``MetadataImage`` is replaced as a whole by the next one, so whoever holds one may read it from
any thread and for as long as it likes. Its ``epoch`` grows by one with each change.
"""

import enum
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from stratalog.errors import UnknownTopicError, UnknownTopicIdError
from stratalog.metadata.names import is_internal, metric_name

NO_LEADER = -1
NODE_ID_MAX = 2**31 - 1
# Dynamic configs of all nodes together; those of one node are under its id.
CLUSTER_DEFAULT: None = None


class TopicState(enum.Enum):
    """How far the files of a topic agree with the store."""

    CREATING = "creating"  # stored; its directories may not be there yet
    LIVE = "live"
    DELETING = "deleting"  # no longer a topic for clients; its directories may still be there


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """One partition: who holds it and who leads. ``NO_LEADER`` where nobody here can."""

    partition: int
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic; ``partitions[n]`` is partition ``n``.

    ``is_held``: its configs are not known, so nothing may be removed from its logs.
    """

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionMetadata, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    state: TopicState = TopicState.LIVE
    is_held: bool = False

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)

    @property
    def replication_factor(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=1) or 1

    def partition(self, number: int) -> PartitionMetadata:
        if not 0 <= number < len(self.partitions):
            raise UnknownTopicError(self.name, number)
        return self.partitions[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """``topics`` are those that clients see; ``deleting`` wait for their directories to go."""

    cluster_id: str
    node_id: int
    nodes: tuple[int, ...]
    epoch: int = 0
    next_producer_id: int = 0
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicMetadata] = field(default_factory=dict)
    deleting: Mapping[uuid.UUID, TopicMetadata] = field(default_factory=dict)
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    # What its broker was started with last, as ``server_configs`` chooses; None if nobody noted it.
    server_configs: Mapping[str, str] | None = None
    # A topic whose name could collide, by the name that metrics give it.
    metric_names: Mapping[str, str] = field(default_factory=dict)

    def topic(self, name: str) -> TopicMetadata:
        found = self.topics.get(name)
        if found is None:
            raise UnknownTopicError(name)
        return found

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicMetadata:
        found = self.topics_by_id.get(topic_id)
        if found is None:
            raise UnknownTopicIdError(str(topic_id))
        return found

    def broker_overrides(self, node_id: int) -> dict[str, str]:
        """The dynamic configs that count for a node: its own, over those of the cluster."""
        cluster = self.broker_configs.get(CLUSTER_DEFAULT, {})
        return {**cluster, **self.broker_configs.get(node_id, {})}

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())


def configs_by_broker(
    configs: Mapping[int | None, Mapping[str, str]],
) -> dict[str, dict[str, str]]:
    """Dynamic configs under Kafka's names of the resources: a node's id, nothing for all nodes."""
    return {
        "" if node is CLUSTER_DEFAULT else str(node): dict(values)
        for node, values in configs.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One change, made whole or not at all: topics as they are from now on, and so on."""

    topics: tuple[TopicMetadata, ...] = ()
    removed: frozenset[uuid.UUID] = frozenset()
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    server_configs: Mapping[str, str] | None = None
    next_producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """What listeners are told, after it has become durable."""

    before: MetadataImage
    after: MetadataImage
    update: Update


def apply_update(image: MetadataImage, update: Update) -> MetadataImage:
    """The image after ``update``."""
    configs = image.broker_configs
    if update.broker_configs:
        changed = {**configs, **update.broker_configs}
        configs = {node: values for node, values in changed.items() if values}
    next_id = update.next_producer_id
    after = replace(
        image,
        epoch=image.epoch + 1,
        next_producer_id=image.next_producer_id if next_id is None else next_id,
        broker_configs=configs,
        server_configs=(
            image.server_configs if update.server_configs is None else update.server_configs
        ),
    )
    if not update.topics and not update.removed:
        return after
    known = {**image.topics_by_id, **image.deleting}
    known |= {topic.topic_id: topic for topic in update.topics}
    return with_topics(
        after, [topic for topic in known.values() if topic.topic_id not in update.removed]
    )


def with_topics(image: MetadataImage, topics: Iterable[TopicMetadata]) -> MetadataImage:
    """``image`` with exactly these topics, in all the ways in which it shows them."""
    by_id, deleting, metric_names = {}, {}, dict[str, str]()
    for topic in topics:
        if topic.state is TopicState.DELETING:
            deleting[topic.topic_id] = topic
            continue
        by_id[topic.topic_id] = topic
        if spelt := metric_name(topic.name):
            metric_names[spelt] = topic.name
    return replace(
        image,
        topics={topic.name: topic for topic in by_id.values()},
        topics_by_id=by_id,
        deleting=deleting,
        metric_names=metric_names,
    )
