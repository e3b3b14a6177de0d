"""The store against a dictionary: any history of changes, with a crash after each of them."""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from stores import BROKER, NODES, copy_files, memory_directory, new_store, open_store

from stratalog.errors import ConfigError, StratalogError
from stratalog.metadata import (
    ConfigChange,
    ConfigOperation,
    MetadataChange,
    NewTopic,
    PartitionChange,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
)
from stratalog.metadata.names import random_topic_id

LEGAL = ("adopted", "orders", "a.b", "a_b", "a-b", "__consumer_offsets")
ILLEGAL = ("", "..", "no space", "x" * 250)
NAMES = LEGAL + ILLEGAL
CONFIGS = (
    {},
    {"retention.ms": "5", "cleanup.policy": "compact"},
    {"segment.bytes": "2097152"},
    {"retention.ms": "soon"},
    {"no.such.config": "1"},
    {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
)
BAD_CONFIGS = CONFIGS[3:]
BROKER_CONFIGS = (
    {},
    {"log.retention.ms": "-1"},
    {"log.retention.ms": "77", "message.max.bytes": "9"},
    {"log.dirs": "/elsewhere"},
    {"log.retention.ms": "now"},
)
BAD_BROKER_CONFIGS = BROKER_CONFIGS[3:]

names = st.sampled_from(NAMES)
configs = st.sampled_from(CONFIGS)


@dataclass
class ModelTopic:
    partition_count: int
    configs: dict[str, str]
    state: TopicState = TopicState.CREATING
    is_held: bool = False
    leader_epochs: dict[int, int] = field(default_factory=dict)


class StoreMachine(RuleBasedStateMachine):
    """What the store says is what the model says, here and in a copy made at any moment."""

    ids = Bundle("ids")

    @initialize()
    def begin(self) -> None:
        self.exits = ExitStack()
        self.root = self.exits.enter_context(memory_directory())
        self.directory = self.root / "store"
        self.directory.mkdir()
        held = TopicMetadata(
            name="adopted",
            topic_id=random_topic_id(),
            partitions=(PartitionMetadata(partition=0, leader=1, replicas=(1,), isr=(1,)),),
            is_held=True,
        )
        self.store = new_store(self.directory, Update(topics=(held,)))
        self.told: list[MetadataChange] = []
        self.store.subscribe(self.told.append)
        self.topics = {"adopted": ModelTopic(1, {}, TopicState.LIVE, is_held=True)}
        self.deleting = 0
        self.broker: dict[int | None, dict[str, str]] = {}
        self.given: set[int] = set()
        self.epoch = self.store.image.epoch

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.exits.close()

    def refused(self, change: object) -> bool:
        """Make a change; one that is refused must have changed nothing."""
        before, told = self.store.image, len(self.told)
        try:
            change()  # type: ignore[operator]
        except StratalogError:
            assert self.store.image is before
            assert len(self.told) == told
            return True
        self.epoch += 1
        assert len(self.told) == told + 1
        assert self.told[-1].before is before
        assert self.told[-1].after is self.store.image
        return False

    # --- topics -------------------------------------------------------------------------------

    @rule(
        target=ids,
        name=st.sampled_from(LEGAL),
        count=st.sampled_from((-1, 1, 3)),
        factor=st.sampled_from((-1, 1, 3)),
        given_configs=st.sampled_from(CONFIGS[:3]),
    )
    def create_most_likely(
        self, name: str, count: int, factor: int, given_configs: dict[str, str]
    ) -> object:
        return self.create(name, count, factor, given_configs, validate_only=False)

    @rule(
        target=ids,
        name=names,
        count=st.sampled_from((-2, -1, 0, 1, 3)),
        factor=st.sampled_from((-2, -1, 0, 1, 3, 4)),
        given_configs=configs,
        validate_only=st.booleans(),
    )
    def create_perhaps(
        self, name: str, count: int, factor: int, given_configs: dict[str, str], validate_only: bool
    ) -> object:
        return self.create(name, count, factor, given_configs, validate_only=validate_only)

    def create(
        self,
        name: str,
        count: int,
        factor: int,
        given_configs: dict[str, str],
        *,
        validate_only: bool,
    ) -> object:
        wanted = NewTopic(
            name=name, partition_count=count, replication_factor=factor, configs=given_configs
        )
        may = (
            name not in ILLEGAL
            and name not in self.topics
            and not (name in ("a.b", "a_b") and {"a.b", "a_b"} & self.topics.keys())
            and given_configs not in BAD_CONFIGS
            and count in (-1, 1, 3)
            and factor in (-1, 1, 3)
        )
        if validate_only:
            before = self.store.image
            (result,) = self.store.create_topics([wanted], validate_only=True)
            assert isinstance(result, TopicMetadata) == may
            assert self.store.image is before
            return multiple()
        assert self.refused(lambda: self.store.create_topic(wanted)) == (not may)
        if not may:
            return multiple()
        self.topics[name] = ModelTopic(
            BROKER.num_partitions if count == -1 else count, dict(given_configs)
        )
        created = self.store.image.topic(name)
        assert created.replication_factor == (2 if factor == -1 else factor)
        return created.topic_id

    @rule(topic_id=ids)
    def mark_live(self, topic_id: object) -> None:
        topic = self.store.image.topics_by_id.get(topic_id)
        assert self.refused(lambda: self.store.mark_live(topic_id)) == (topic is None)
        if topic is not None:
            self.topics[topic.name].state = TopicState.LIVE

    @rule(topic_id=ids)
    def begin_delete(self, topic_id: object) -> None:
        topic = self.store.image.topics_by_id.get(topic_id)
        assert self.refused(lambda: self.store.begin_delete(topic_id)) == (topic is None)
        if topic is not None:
            del self.topics[topic.name]
            self.deleting += 1

    @rule(topic_id=consumes(ids))
    def finish_delete(self, topic_id: object) -> None:
        is_deleting = topic_id in self.store.image.deleting
        assert self.refused(lambda: self.store.finish_delete(topic_id)) == (not is_deleting)
        self.deleting -= is_deleting

    @rule(name=names, count=st.integers(-1, 6))
    def create_partitions(self, name: str, count: int) -> None:
        topic = self.topics.get(name)
        may = topic is not None and count > topic.partition_count
        assert self.refused(lambda: self.store.create_partitions(name, count)) == (not may)
        if may:
            topic.partition_count = count
            topic.state = TopicState.CREATING

    @rule(
        name=st.sampled_from(LEGAL),
        partition=st.integers(-1, 2),
        leader=st.sampled_from(NODES),
    )
    def elect(self, name: str, partition: int, leader: int) -> None:
        change = PartitionChange(name=name, partition=partition, leader=leader)
        topic = self.topics.get(name)
        may = topic is not None and 0 <= partition < topic.partition_count
        assert self.refused(lambda: self.store.change_partitions([change])) == (not may)
        if may:
            epochs = topic.leader_epochs
            epochs[partition] = epochs.get(partition, 0) + 1

    # --- configs ------------------------------------------------------------------------------

    @rule(name=names, given_configs=configs)
    def replace_configs(self, name: str, given_configs: dict[str, str]) -> None:
        may = name in self.topics and given_configs not in BAD_CONFIGS
        change = self.store.replace_topic_configs
        assert self.refused(lambda: change(name, given_configs)) == (not may)
        if may:
            self.topics[name].configs = dict(given_configs)

    @rule(name=names, given_configs=configs)
    def set_known(self, name: str, given_configs: dict[str, str]) -> None:
        topic = self.topics.get(name)
        may = topic is not None and topic.is_held and given_configs not in BAD_CONFIGS
        assert self.refused(lambda: self.store.set_known(name, given_configs)) == (not may)
        if may:
            topic.configs |= given_configs
            topic.is_held = False

    @rule(name=names, given_configs=configs)
    def set_configs(self, name: str, given_configs: dict[str, str]) -> None:
        changes = [ConfigChange(n, ConfigOperation.SET, v) for n, v in given_configs.items()]
        may = name in self.topics and given_configs not in BAD_CONFIGS
        assert self.refused(lambda: self.store.alter_topic_configs(name, changes)) == (not may)
        if may:
            self.topics[name].configs |= given_configs

    @rule(node=st.sampled_from((None, 1, 2, -1)), given_configs=st.sampled_from(BROKER_CONFIGS))
    def replace_broker_configs(self, node: int | None, given_configs: dict[str, str]) -> None:
        may = node != -1 and given_configs not in BAD_BROKER_CONFIGS
        change = self.store.replace_broker_configs
        assert self.refused(lambda: change(node, given_configs)) == (not may)
        if may:
            self.broker[node] = dict(given_configs)

    # --- producer ids, restarts ---------------------------------------------------------------

    @rule()
    def allocate(self) -> None:
        block: list[range] = []
        self.refused(lambda: block.append(self.store.allocate_producer_ids()))
        assert len(block[0]) == 1000
        assert self.given.isdisjoint(block[0])
        self.given.update(block[0])

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        if is_clean:
            self.store.close()
        else:  # the files of this moment are all that the next owner has
            crashed = copy_files(self.directory, self.root / "crashed")
            self.store.close()
            shutil.rmtree(self.directory)
            crashed.rename(self.directory)
        self.store = open_store(self.directory)
        self.told = []
        self.store.subscribe(self.told.append)

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        image = self.store.image
        assert image.epoch == self.epoch
        assert len(image.deleting) == self.deleting
        assert image.broker_configs == {n: values for n, values in self.broker.items() if values}
        assert image.topics.keys() == self.topics.keys()
        for name, model in self.topics.items():
            topic = image.topic(name)
            assert image.topic_by_id(topic.topic_id) is topic
            assert [each.partition for each in topic.partitions] == list(
                range(model.partition_count)
            )
            for each in topic.partitions:
                assert each.leader_epoch == model.leader_epochs.get(each.partition, 0)
            assert (topic.configs, topic.state, topic.is_held) == (
                model.configs,
                model.state,
                model.is_held,
            )

    @invariant()
    def what_was_answered_is_in_the_files(self) -> None:
        copied = copy_files(self.directory, self.root / "copied")
        with open_store(copied) as opened:
            assert opened.image == self.store.image
        shutil.rmtree(copied)


def test_a_store_says_what_a_dictionary_says_after_any_history_and_crash() -> None:
    examples = max(settings().max_examples // 2, 10)
    run_state_machine_as_test(
        StoreMachine, settings=settings(max_examples=examples, stateful_step_count=25)
    )


@pytest.mark.parametrize("given_configs", BAD_CONFIGS)
def test_the_refused_configs_of_the_model_are_refused(
    tmp_path: Path, given_configs: dict[str, str]
) -> None:
    with new_store(tmp_path) as store, pytest.raises(ConfigError):
        store.create_topic(NewTopic(name="orders", configs=given_configs))
