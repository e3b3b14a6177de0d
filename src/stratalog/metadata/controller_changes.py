"""Apache Kafka had the directory meanwhile: what its controller has written since, taken over.

Pure: what the store knows, the controller's log, and what that log said when it was last read come
to one update. Each side's own changes count. A topic, a config or a partition that only one side
has changed since is as that side left it; where both have, as the controller says, because Kafka
was the last owner. Kafka hears of nothing that was changed here, which shows in three cases:

    made here        its directories are strays after Kafka's turn, and are taken back
    deleted here     Kafka has made it anew, with the same id: it is a topic again
    made on both     one name, two ids: Kafka's is the topic, and ours stays aside as a stray
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from stratalog.config import BrokerConfig
from stratalog.errors import ConfigError
from stratalog.metadata.adoption import FoundDirectory, plan_adoption
from stratalog.metadata.cluster_log import ClusterMetadata
from stratalog.metadata.dynamic_configs import (
    check_broker_configs,
    check_topic_configs,
    effective_broker,
    possible_configs,
)
from stratalog.metadata.image import (
    CLUSTER_DEFAULT,
    NO_LEADER,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
)

Configs = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedTopic:
    """A topic in the controller's log; ``leader_epochs[n]`` is that of partition ``n``."""

    name: str
    leader_epochs: tuple[int, ...] = ()
    configs: Configs = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedController:
    """What the controller's log said when it was read. ``state`` tells whether it has grown."""

    state: str
    topics: Mapping[uuid.UUID, FollowedTopic] = field(default_factory=dict)
    broker_configs: Mapping[int | None, Configs] = field(default_factory=dict)

    def leader_epoch(self, topic_id: uuid.UUID, partition: int) -> int | None:
        """The newest that the controller knows; None if it does not know the partition."""
        topic = self.topics.get(topic_id)
        if topic is None or not 0 <= partition < len(topic.leader_epochs):
            return None
        return topic.leader_epochs[partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What changes in the store. ``held`` are topics that are held from now on, and why."""

    update: Update
    held: Mapping[str, str]
    notes: tuple[str, ...]


def followed_controller(cluster: ClusterMetadata, state: str) -> FollowedController:
    """What is kept of ``cluster`` until the next start."""
    return FollowedController(
        state=state,
        topics={
            topic.topic_id: FollowedTopic(
                name=topic.name,
                leader_epochs=tuple(
                    topic.partitions[number].leader_epoch if number in topic.partitions else 0
                    for number in range(max(topic.partitions, default=-1) + 1)
                ),
                configs=dict(cluster.topic_configs.get(topic.name, {})),
            )
            for topic in cluster.topics.values()
        },
        broker_configs={node: dict(each) for node, each in cluster.broker_configs.items()},
    )


def plan_following(
    image: MetadataImage,
    cluster: ClusterMetadata,
    before: FollowedController | None,
    found: Sequence[FoundDirectory],
    *,
    broker: BrokerConfig,
    is_broker_config_known: bool,
) -> Following:
    """``before`` is None if nobody has kept what the log said at the last start."""
    recorded = [
        replace(
            directory,
            replicas=tuple(each for each in directory.replicas if each.topic_id in cluster.topics),
        )
        for directory in found
    ]
    adoption = plan_adoption(
        recorded,
        cluster=cluster,
        broker=broker,
        is_broker_config_known=is_broker_config_known,
        node_id=image.node_id,
    )
    here: dict[uuid.UUID, set[int]] = defaultdict(set)
    for replica in (each for directory in recorded for each in directory.replicas):
        assert replica.topic_id is not None
        here[replica.topic_id].add(replica.partition)
    plan = _Plan(image, cluster, before, broker, here)
    configs = plan.broker_configs()
    for topic in adoption.update.topics:
        plan.topic(topic, adoption.held.get(topic.name, ""))
    plan.remove_topics()
    return Following(
        update=Update(
            topics=tuple(plan.topics),
            removed=frozenset(plan.set_aside),
            broker_configs=configs,
        ),
        held=plan.held,
        notes=tuple(plan.notes),
    )


@dataclass(slots=True)
class _Plan:
    """The decisions, topic by topic, and what there is to say about them."""

    image: MetadataImage
    cluster: ClusterMetadata
    before: FollowedController | None
    broker: BrokerConfig
    # The partitions that have a directory here, by topic.
    here: Mapping[uuid.UUID, set[int]]
    topics: list[TopicMetadata] = field(default_factory=list)
    set_aside: set[uuid.UUID] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def broker_configs(self) -> dict[int | None, dict[str, str]]:
        """The dynamic configs of this node and of all that are others from now on."""
        changed: dict[int | None, dict[str, str]] = {}
        before = {} if self.before is None else self.before.broker_configs
        for node in (CLUSTER_DEFAULT, self.image.node_id):
            ours = dict(self.image.broker_configs.get(node, {}))
            if self.before is None:
                continue
            whose = "all brokers" if node is CLUSTER_DEFAULT else f"broker {node}"
            now = self.cluster.broker_configs.get(node, {})
            check = partial(check_broker_configs, broker=self.broker)
            merged, refused = _merged(ours, before.get(node, {}), now, check)
            self._note_refused(whose, refused)
            if merged != ours:
                changed[node] = merged
                self.notes.append(f"the dynamic configs of {whose} are those that Kafka has set")
        configs = {**self.image.broker_configs, **changed}
        overrides = [configs.get(node, {}) for node in (CLUSTER_DEFAULT, self.image.node_id)]
        self.broker = effective_broker(self.broker, {**overrides[0], **overrides[1]})
        return changed

    def _note_refused(self, whose: str, refused: Sequence[ConfigError]) -> None:
        self.notes += [f"a config of {whose} was not taken over: {error}" for error in refused]

    def topic(self, recorded: TopicMetadata, why_held: str) -> None:
        """One that the controller knows, with what adoption would make of it."""
        known = self.image.topics_by_id.get(recorded.topic_id)
        if known is not None:
            self._merge(known, recorded)
        elif self._is_a_topic_again(recorded):
            self._take_in(recorded, why_held)

    def _is_a_topic_again(self, recorded: TopicMetadata) -> bool:
        """Whether Kafka has made it since, and not merely never heard that it was deleted."""
        is_new = self.before is not None and recorded.topic_id not in self.before.topics
        return is_new or recorded.topic_id in self.here

    def _take_in(self, recorded: TopicMetadata, why_held: str) -> None:
        name = recorded.name
        other = self.image.topics.get(name)
        if other is not None and self._was_removed(other):
            self._remove(other)
        elif other is not None:
            self.set_aside.add(other.topic_id)
            self.notes.append(
                f"topic {name} is Kafka's now; the one that was made here is set aside"
            )
        self.notes.append(f"topic {name} was made, or made again, by Apache Kafka")
        if why_held:
            self.held[name] = why_held
            self.notes.append(f"topic {name} is held: {why_held}")
        self.topics.append(recorded)

    def _merge(self, known: TopicMetadata, recorded: TopicMetadata) -> None:
        merged = replace(
            known,
            partitions=self._merged_partitions(known.partitions, recorded.partitions),
            configs=self._topic_configs(known),
            is_held=known.is_held or known.name in self.held,
        )
        added = merged.partitions[len(known.partitions) :]
        if added:
            self.notes.append(f"Apache Kafka has added partitions to topic {known.name}")
            here = self.here[known.topic_id]
            if any(each.leader != NO_LEADER and each.partition not in here for each in added):
                merged = replace(merged, state=TopicState.CREATING)
        if merged != known:
            self.topics.append(merged)

    def _merged_partitions(
        self, known: Sequence[PartitionMetadata], recorded: Sequence[PartitionMetadata]
    ) -> tuple[PartitionMetadata, ...]:
        """The partitions of either side, each with the newer of its epochs."""
        both = [
            replace(
                theirs if mine.leader == NO_LEADER else mine,
                leader_epoch=max(mine.leader_epoch, theirs.leader_epoch),
                partition_epoch=max(mine.partition_epoch, theirs.partition_epoch),
            )
            for mine, theirs in zip(known, recorded, strict=False)
        ]
        return (*both, *known[len(both) :], *recorded[len(both) :])

    def _topic_configs(self, known: TopicMetadata) -> Configs:
        before = None if self.before is None else self.before.topics.get(known.topic_id)
        if before is None:
            return known.configs
        now = self.cluster.topic_configs.get(known.name, {})
        check = partial(check_topic_configs, broker=self.broker)
        merged, refused = _merged(known.configs, before.configs, now, check)
        self._note_refused(f"topic {known.name}", refused)
        if refused:
            self.held[known.name] = "some of the configs that Kafka has set are not possible here"
        if merged != known.configs:
            self.notes.append(f"topic {known.name} has the configs that Apache Kafka has set")
        return merged

    def remove_topics(self) -> None:
        for topic in self.image.topics.values():
            if self._was_removed(topic):
                self._remove(topic)

    def _was_removed(self, topic: TopicMetadata) -> bool:
        """Whether the controller has said so, or knew it when it was last read and no more."""
        if topic.topic_id in self.cluster.topics:
            return False
        was_known = self.before is not None and topic.topic_id in self.before.topics
        return was_known or topic.topic_id in self.cluster.removed

    def _remove(self, topic: TopicMetadata) -> None:
        if all(each.topic_id != topic.topic_id for each in self.topics):
            self.topics.append(replace(topic, state=TopicState.DELETING))
            self.notes.append(f"topic {topic.name} was deleted by Apache Kafka")


def _merged(
    ours: Configs, before: Configs, now: Configs, check: Callable[[dict[str, str]], object]
) -> tuple[dict[str, str], list[ConfigError]]:
    """``ours`` with what differs between ``before`` and ``now``, as far as it is possible here."""
    changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    kept = {name: text for name, text in ours.items() if name not in changed}
    return possible_configs({**kept, **{name: now[name] for name in changed & now.keys()}}, check)
