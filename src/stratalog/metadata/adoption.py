"""Taking over directories that somebody else has filled: what is there, and what is not known.

Pure: facts about log directories in, the first contents of a metadata store out, with reasons.
The rule is that nothing is guessed. Ids and epochs are continued, a partition that is not here has
no leader, and a topic of which it is not certain what may be removed is *held*: it is served, and
nothing of it is ever removed until somebody has said by which configs.
"""

import base64
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import AdoptionError, InvalidTopicError
from stratalog.metadata.cluster_log import ClusterMetadata, RecordedPartition, RecordedTopic
from stratalog.metadata.dynamic_configs import (
    check_broker_configs,
    check_topic_configs,
    effective_broker,
    possible_configs,
)
from stratalog.metadata.image import (
    CLUSTER_DEFAULT,
    NO_LEADER,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
)
from stratalog.metadata.names import (
    random_topic_id,
    validate_topic_name,
)
from stratalog.metadata.producer_ids import first_producer_id
from stratalog.metadata.removal_limits import unstated_limits
from stratalog.topic_names import CLUSTER_METADATA_TOPIC, OFFSETS_TOPIC

Value = TypeVar("Value", int, str)

DEFAULT_NODE_ID = 1
PARTITIONS_PER_TOPIC_MAX = 100_000
_NO_DIRECTORY = 100  # ids below are not those of directories: unassigned, lost, migrating
_LOST_DIRECTORY = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReplica:
    """A partition's directory. ``leader_epoch`` is the newest one its files know; -1: none."""

    topic: str
    partition: int
    topic_id: uuid.UUID | None = None
    leader_epoch: int = -1

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class StrayReplica:
    """A replica that was set aside in the log directory ``path``, under ``name``."""

    path: str
    name: str
    topic_id: uuid.UUID | None
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDirectory:
    """A log directory: its ``meta.properties``, its replicas (neither deleted, future nor stray),
    the strays, and the largest producer id that any snapshot or batch in it names."""

    path: str
    replicas: tuple[FoundReplica, ...] = ()
    strays: tuple[StrayReplica, ...] = ()
    cluster_id: str = ""
    node_id: int | None = None
    directory_id: uuid.UUID | None = None
    producer_id_max: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What a store begins with. ``strays`` are to be renamed; ``notes`` are for people."""

    cluster_id: str
    node_id: int
    update: Update
    held: Mapping[str, str]
    strays: tuple[FoundReplica, ...]
    notes: tuple[str, ...]


def plan_adoption(
    found: Sequence[FoundDirectory],
    *,
    cluster: ClusterMetadata | None,
    broker: BrokerConfig,
    is_broker_config_known: bool,
    node_id: int | None = None,
    new_topic_id: Callable[[], uuid.UUID] = random_topic_id,
) -> Adoption:
    """What the first owner of ``found`` knows, from them and from the controller's log.

    ``is_broker_config_known``: ``broker`` has the settings of the broker that wrote them, not
    just some. Otherwise only topics that state themselves all that removing depends on are not
    held. ``node_id`` is what somebody expects; directories that say otherwise are refused.
    """
    named = _agreed("cluster id", [each.cluster_id for each in found]) or _random_cluster_id()
    node = _agreed("node id", [*(each.node_id for each in found), node_id])
    plan = _Plan(
        node_id=DEFAULT_NODE_ID if node is None else node,
        cluster=cluster,
        is_broker_config_known=is_broker_config_known,
        directory_ids=frozenset(each.directory_id for each in found if each.directory_id),
        new_topic_id=new_topic_id,
    )
    configs = plan.broker_configs(broker)
    overrides = {**configs.get(CLUSTER_DEFAULT, {}), **configs.get(plan.node_id, {})}
    topics = plan.topics(found, effective_broker(broker, overrides), set(overrides))
    return Adoption(
        cluster_id=named,
        node_id=plan.node_id,
        update=Update(
            topics=tuple(topics),
            broker_configs=configs,
            next_producer_id=first_producer_id(
                *(each.producer_id_max for each in found),
                -1 if cluster is None else cluster.next_producer_id - 1,
            ),
        ),
        held=plan.held,
        strays=tuple(plan.strays),
        notes=tuple(plan.notes),
    )


def _agreed(what: str, values: Iterable[Value | None]) -> Value | None:
    stated = dict.fromkeys(value for value in values if value not in (None, ""))
    if len(stated) > 1:
        raise AdoptionError(f"the directories are not of one {what}: {', '.join(map(str, stated))}")
    return next(iter(stated), None)


def _random_cluster_id() -> str:
    return base64.urlsafe_b64encode(random_topic_id().bytes).rstrip(b"=").decode()


@dataclass(slots=True, kw_only=True)
class _Plan:
    """The decisions, one kind after the other, and what there is to say about them."""

    node_id: int
    cluster: ClusterMetadata | None
    is_broker_config_known: bool
    directory_ids: frozenset[uuid.UUID]
    new_topic_id: Callable[[], uuid.UUID]
    held: dict[str, str] = field(default_factory=dict)
    strays: list[FoundReplica] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    # --- configs ------------------------------------------------------------------------------

    def broker_configs(self, broker: BrokerConfig) -> dict[int | None, dict[str, str]]:
        """The dynamic configs of this node and of all, as far as they mean something here."""
        kept: dict[int | None, dict[str, str]] = {}
        for node in (CLUSTER_DEFAULT, self.node_id):
            recorded = {} if self.cluster is None else self.cluster.broker_configs.get(node, {})
            whose = "all brokers" if node is CLUSTER_DEFAULT else f"broker {node}"
            beneath = effective_broker(broker, kept.get(CLUSTER_DEFAULT, {}))
            check = partial(check_broker_configs, broker=beneath)
            if configs := self._acceptable(recorded, check, whose):
                kept[node] = configs
        return kept

    def _acceptable(
        self, configs: Mapping[str, str], check: Callable[[dict[str, str]], object], whose: str
    ) -> dict[str, str]:
        kept, refused = possible_configs(configs, check)
        self.notes += [f"a config of {whose} was not taken over: {error}" for error in refused]
        return kept

    def _topic_configs(
        self, name: str, recorded: RecordedTopic | None, broker: BrokerConfig, stated: set[str]
    ) -> dict[str, str]:
        """What a topic overrides; notes why it is held, if it is."""
        if recorded is None or self.cluster is None:
            where = "there is none" if self.cluster is None else "it is not mentioned there"
            self.held[name] = f"its configs are not known: of {CLUSTER_METADATA_TOPIC}, {where}"
            return {}
        configs = self.cluster.topic_configs.get(name, {})
        check = partial(check_topic_configs, broker=broker)
        kept = self._acceptable(configs, check, f"topic {name}")
        if kept != configs:
            refused = ", ".join(sorted(configs.keys() - kept.keys()))
            self.held[name] = f"some of its configs are not possible here: {refused}"
        elif not self.is_broker_config_known:
            unstated = unstated_limits(TopicConfig.from_properties(kept, broker=broker), stated)
            if unstated:
                self.held[name] = (
                    f"it leaves {', '.join(unstated)} to its broker, whose settings are not known"
                )
        return kept

    # --- topics -------------------------------------------------------------------------------

    def topics(
        self, found: Sequence[FoundDirectory], broker: BrokerConfig, stated: set[str]
    ) -> list[TopicMetadata]:
        recorded = {} if self.cluster is None else self.cluster.topics
        by_name = {topic.name: topic for topic in recorded.values()}
        if len(by_name) != len(recorded):
            raise AdoptionError(f"{CLUSTER_METADATA_TOPIC} has two topics of one name")
        here = self._replicas(found, by_name)
        if here and self.cluster is None:
            self.notes.append(
                "there is no log of a controller here: topics have as many partitions as are "
                "found, and may have had more, on other brokers"
            )
        if self.cluster is not None and OFFSETS_TOPIC not in {*by_name, *here}:
            self.notes.append(
                f"Apache Kafka has not made {OFFSETS_TOPIC} yet: it will not know what groups "
                "commit here"
            )
        topics = []
        for name in sorted({*by_name, *here}):
            _check_name(name)
            topic = by_name.get(name)
            replicas = here.get(name, {})
            partitions = self._partitions(name, topic, replicas)
            if not partitions:
                self.notes.append(f"topic {name} has no partitions and was left out")
                continue
            is_whole = all(
                each.partition in replicas for each in partitions if each.leader == self.node_id
            )
            topics.append(
                TopicMetadata(
                    name=name,
                    topic_id=self._topic_id(topic, replicas.values()),
                    partitions=partitions,
                    configs=self._topic_configs(name, topic, broker, stated),
                    state=TopicState.LIVE if is_whole else TopicState.CREATING,
                    is_held=name in self.held,
                )
            )
        _check_ids(topics)
        return topics

    def _replicas(
        self, found: Sequence[FoundDirectory], by_name: Mapping[str, RecordedTopic]
    ) -> dict[str, dict[int, FoundReplica]]:
        """The replicas that belong to a topic, by topic and partition; the others are strays."""
        here: dict[str, dict[int, FoundReplica]] = defaultdict(dict)
        for replica in (each for directory in found for each in directory.replicas):
            if self._is_stray(replica, by_name.get(replica.topic)):
                self.strays.append(replica)
            elif replica.partition in here[replica.topic]:
                raise AdoptionError(f"{replica} is in more than one of the directories")
            else:
                here[replica.topic][replica.partition] = replica
        return {name: replicas for name, replicas in here.items() if replicas}

    def _is_stray(self, replica: FoundReplica, recorded: RecordedTopic | None) -> bool:
        """A replica of a topic that was deleted, perhaps to make room for one of the same name. One
        that the controller's log merely does not mention is no stray: the log may be older."""
        if self.cluster is None or replica.topic_id is None:
            return False
        if replica.topic_id in self.cluster.removed:
            return True
        return recorded is not None and recorded.topic_id != replica.topic_id

    def _topic_id(
        self, recorded: RecordedTopic | None, replicas: Iterable[FoundReplica]
    ) -> uuid.UUID:
        if recorded is not None:
            return recorded.topic_id
        ids = Counter(each.topic_id for each in replicas if each.topic_id is not None)
        if len(ids) > 1:
            name = next(iter(replicas)).topic
            raise AdoptionError(
                f"the partitions of topic {name} have different topic ids, so some of them are of "
                f"a topic that was deleted: {', '.join(map(str, ids))}"
            )
        return next(iter(ids), None) or self.new_topic_id()

    def _partitions(
        self, name: str, recorded: RecordedTopic | None, replicas: Mapping[int, FoundReplica]
    ) -> tuple[PartitionMetadata, ...]:
        known = {} if recorded is None else recorded.partitions
        count = max((*known, *replicas), default=-1) + 1
        if count > PARTITIONS_PER_TOPIC_MAX or any(number < 0 for number in known):
            raise AdoptionError(f"topic {name} cannot have a partition {count - 1}")
        return tuple(
            self._partition(name, number, known.get(number), replicas.get(number))
            for number in range(count)
        )

    def _partition(
        self,
        name: str,
        number: int,
        recorded: RecordedPartition | None,
        replica: FoundReplica | None,
    ) -> PartitionMetadata:
        """Where a replica is here, this node leads from now on, and goes on with the newest epoch
        that the controller or the log knows. A new one is the controller's to begin: if this were
        ahead of it, clients would take the controller's for old when Kafka is back."""
        epoch = -1 if recorded is None else recorded.leader_epoch
        partition_epoch = 0 if recorded is None else recorded.partition_epoch + 1
        if replica is None and not self._belongs_here(recorded):
            self.notes.append(f"{name}-{number} is not in these directories and has no leader")
            return PartitionMetadata(
                partition=number,
                leader=NO_LEADER,
                leader_epoch=max(epoch, 0),
                partition_epoch=partition_epoch,
            )
        if replica is None:
            self.notes.append(f"{name}-{number} should be in these directories; it begins empty")
        else:
            epoch = max(epoch, replica.leader_epoch)
        return PartitionMetadata(
            partition=number,
            leader=self.node_id,
            leader_epoch=max(epoch, 0),
            partition_epoch=partition_epoch,
            replicas=(self.node_id,),
            isr=(self.node_id,),
        )

    def _belongs_here(self, recorded: RecordedPartition | None) -> bool:
        """Whether a replica that was not found should be in one of the directories."""
        if recorded is None or self.node_id not in recorded.replicas:
            return False
        place = recorded.replicas.index(self.node_id)
        if place >= len(recorded.directories):
            return True
        directory_id = recorded.directories[place]
        if directory_id.int < _NO_DIRECTORY:
            return directory_id.int != _LOST_DIRECTORY
        return directory_id in self.directory_ids


def _check_ids(topics: Sequence[TopicMetadata]) -> None:
    names: dict[uuid.UUID, str] = {}
    for topic in topics:
        other = names.setdefault(topic.topic_id, topic.name)
        if other != topic.name:
            raise AdoptionError(f"topics {other} and {topic.name} have one id, {topic.topic_id}")


def _check_name(name: str) -> None:
    try:
        validate_topic_name(name)
    except InvalidTopicError as error:
        raise AdoptionError(str(error)) from error
