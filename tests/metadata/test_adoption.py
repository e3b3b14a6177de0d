"""Directories of somebody else's, taken over: what is continued, what is held, what is refused."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stores import memory_directory

from stratalog.config import BrokerConfig
from stratalog.errors import AdoptionError
from stratalog.metadata import NO_LEADER, TopicMetadata, TopicState
from stratalog.metadata.adoption import Adoption, FoundDirectory, FoundReplica, plan_adoption
from stratalog.metadata.cluster_log import ClusterMetadata, RecordedPartition, RecordedTopic
from stratalog.metadata.sqlite_store import SqliteMetadataStore

ONE, TWO = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)
DIRECTORY_ID, OTHER_DIRECTORY_ID = uuid.UUID(int=7 << 100), uuid.UUID(int=8 << 100)
CLUSTER = "c3RyYXRhbG9nLXRlc3RzMA"


def directory(
    *replicas: FoundReplica,
    path: str = "/logs",
    producer_id_max: int = -1,
    cluster_id: str = CLUSTER,
    node_id: int | None = 1,
) -> FoundDirectory:
    return FoundDirectory(
        path=path,
        replicas=replicas,
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=DIRECTORY_ID,
        producer_id_max=producer_id_max,
    )


def replica(
    topic: str, partition: int = 0, topic_id: uuid.UUID | None = ONE, epoch: int = -1
) -> FoundReplica:
    return FoundReplica(topic=topic, partition=partition, topic_id=topic_id, leader_epoch=epoch)


def recorded(
    *topics: RecordedTopic,
    configs: dict[str, dict[str, str]] | None = None,
    brokers: dict[int | None, dict[str, str]] | None = None,
    next_producer_id: int = 0,
    removed: Sequence[uuid.UUID] = (),
) -> ClusterMetadata:
    return ClusterMetadata(
        topics={topic.topic_id: topic for topic in topics},
        topic_configs=configs or {},
        broker_configs=brokers or {},
        next_producer_id=next_producer_id,
        removed=set(removed),
    )


def one_topic(name: str = "orders", topic_id: uuid.UUID = ONE, epoch: int = 0) -> RecordedTopic:
    part = RecordedPartition(replicas=(1,), leader=1, leader_epoch=epoch, isr=(1,))
    return RecordedTopic(name, topic_id, {0: part})


def adopted(
    *found: FoundDirectory,
    cluster: ClusterMetadata | None = None,
    broker: BrokerConfig | None = None,
    is_broker_config_known: bool = True,
    node_id: int | None = None,
) -> Adoption:
    return plan_adoption(
        found,
        cluster=cluster,
        broker=broker or BrokerConfig(),
        is_broker_config_known=is_broker_config_known,
        node_id=node_id,
    )


def topic_of(adoption: Adoption, name: str = "orders") -> TopicMetadata:
    return {topic.name: topic for topic in adoption.update.topics}[name]


# --- without a controller's log ---------------------------------------------------------------


def test_a_topic_of_unknown_configs_is_served_and_held() -> None:
    adoption = adopted(directory(replica("orders", epoch=4), replica("orders", 1, epoch=9)))
    orders = topic_of(adoption)
    assert orders.is_held
    assert "not known" in adoption.held["orders"]
    assert (orders.topic_id, orders.configs, orders.state) == (ONE, {}, TopicState.LIVE)
    assert [each.leader for each in orders.partitions] == [1, 1]
    assert [each.leader_epoch for each in orders.partitions] == [4, 9]


def test_a_partition_that_is_not_here_is_known_and_has_no_leader() -> None:
    adoption = adopted(directory(replica("orders", 2)))
    leaders = [each.leader for each in topic_of(adoption).partitions]
    assert leaders == [NO_LEADER, NO_LEADER, 1]
    assert [note for note in adoption.notes if "no leader" in note]


def test_without_a_controllers_log_it_is_told_that_there_may_be_more_partitions() -> None:
    found = directory(replica("orders", 0))
    told = "may have had more, on other brokers"
    assert [note for note in adopted(found).notes if told in note]
    assert not [note for note in adopted(directory()).notes if told in note]
    assert not [note for note in adopted(found, cluster=recorded()).notes if told in note]


def test_a_topic_without_an_id_is_given_one() -> None:
    adoption = adopted(directory(replica("orders", topic_id=None), replica("orders", 1, None)))
    assert topic_of(adoption).topic_id.int > 1


def test_partitions_with_different_ids_are_not_made_one_topic() -> None:
    with pytest.raises(AdoptionError, match="deleted"):
        adopted(directory(replica("orders", 0, ONE), replica("orders", 1, TWO)))


def test_a_partition_in_two_directories_is_refused() -> None:
    with pytest.raises(AdoptionError, match="more than one"):
        adopted(directory(replica("orders")), directory(replica("orders"), path="/more"))


def test_an_empty_directory_begins_a_cluster() -> None:
    first, second = (adopted(FoundDirectory(path="/logs")) for _ in range(2))
    assert first.node_id == 1
    assert len(first.cluster_id) == 22
    assert first.cluster_id != second.cluster_id
    assert first.update.next_producer_id != second.update.next_producer_id


@pytest.mark.parametrize(
    "found",
    [
        (directory(), directory(cluster_id="another", path="/more")),
        (directory(), directory(node_id=2, path="/more")),
    ],
)
def test_directories_of_different_clusters_or_nodes_are_refused(
    found: tuple[FoundDirectory, ...],
) -> None:
    with pytest.raises(AdoptionError, match="not of one"):
        adopted(*found)


def test_the_identity_of_the_directories_is_kept() -> None:
    adoption = adopted(directory(node_id=7), directory(node_id=None, cluster_id="", path="/new"))
    assert (adoption.node_id, adoption.cluster_id) == (7, CLUSTER)
    with pytest.raises(AdoptionError):
        adopted(directory(node_id=7), node_id=8)


def test_a_directory_name_does_not_make_millions_of_partitions() -> None:
    with pytest.raises(AdoptionError, match="2147483647"):
        adopted(directory(replica("orders", 2**31 - 1)))


# --- with one ---------------------------------------------------------------------------------


def test_configs_and_ids_come_from_the_controllers_log() -> None:
    configs = {"orders": {"cleanup.policy": "compact"}, "gone": {"retention.ms": "1"}}
    cluster = recorded(one_topic(epoch=6), configs=configs, next_producer_id=5000)
    adoption = adopted(directory(replica("orders", epoch=3), producer_id_max=17), cluster=cluster)
    orders = topic_of(adoption)
    assert not orders.is_held
    assert orders.configs == {"cleanup.policy": "compact"}
    assert orders.partition(0).leader_epoch == 6
    assert (adoption.strays, adoption.held) == ((), {})


def test_a_note_says_where_kafka_will_not_know_what_groups_commit_here() -> None:
    made = recorded(one_topic(), one_topic("__consumer_offsets", TWO))
    for cluster, is_told in ((recorded(one_topic()), True), (made, False), (None, False)):
        notes = adopted(directory(replica("orders")), cluster=cluster).notes
        assert any("has not made __consumer_offsets yet" in note for note in notes) == is_told


def test_a_config_that_is_not_possible_here_holds_the_topic() -> None:
    configs = {"orders": {"remote.storage.enable": "true", "retention.ms": "1"}}
    adoption = adopted(directory(replica("orders")), cluster=recorded(one_topic(), configs=configs))
    orders = topic_of(adoption)
    assert orders.is_held
    assert orders.configs == {"retention.ms": "1"}
    assert "remote.storage.enable" in adoption.held["orders"]


@pytest.mark.parametrize(
    ("configs", "brokers", "is_held"),
    [
        ({}, {}, True),
        ({"retention.ms": "-1", "retention.bytes": "-1"}, {}, True),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}, {}, False),
        ({"cleanup.policy": "delete", "retention.bytes": "-1"}, {}, True),
        (
            {"cleanup.policy": "delete", "retention.bytes": "-1"},
            {None: {"log.retention.ms": "5"}},
            False,
        ),
        ({"cleanup.policy": "compact"}, {}, True),
        (
            {
                "cleanup.policy": "compact",
                "min.compaction.lag.ms": "0",
                "delete.retention.ms": "1",
            },
            {},
            False,
        ),
    ],
)
def test_what_a_topic_leaves_to_an_unknown_broker_holds_it(
    configs: dict[str, str], brokers: dict[int | None, dict[str, str]], is_held: bool
) -> None:
    cluster = recorded(one_topic(), configs={"orders": configs}, brokers=brokers)
    found = directory(replica("orders"))
    unknown = adopted(found, cluster=cluster, is_broker_config_known=False)
    assert topic_of(unknown).is_held == is_held
    assert not topic_of(adopted(found, cluster=cluster)).is_held


def test_dynamic_configs_of_this_broker_are_taken_over_where_they_mean_something() -> None:
    brokers: dict[int | None, dict[str, str]] = {
        None: {"log.retention.ms": "5", "listeners": "PLAINTEXT://:1"},
        1: {"log.cleaner.threads": "2"},
        2: {"log.cleaner.threads": "3"},
    }
    adoption = adopted(directory(), cluster=recorded(brokers=brokers))
    assert adoption.update.broker_configs == {
        None: {"log.retention.ms": "5"},
        1: {"log.cleaner.threads": "2"},
    }
    assert [note for note in adoption.notes if "listeners" in note]


def test_a_replica_of_a_deleted_topic_is_a_stray() -> None:
    cluster = recorded(one_topic(), removed=[TWO])
    found = directory(replica("orders", 0), replica("orders", 1, TWO), replica("old", 0, TWO))
    adoption = adopted(found, cluster=cluster)
    assert [str(each) for each in adoption.strays] == ["orders-1", "old-0"]
    assert [topic.name for topic in adoption.update.topics] == ["orders"]


def test_a_replica_of_an_older_topic_of_the_same_name_is_a_stray() -> None:
    found = directory(replica("orders", 0), replica("orders", 1, TWO))
    assert [str(each) for each in adopted(found, cluster=recorded(one_topic())).strays] == [
        "orders-1"
    ]


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        ((one_topic(), one_topic(topic_id=TWO)), "two topics of one name"),
        ((one_topic("no/such/topic"),), "letters"),
    ],
)
def test_a_controllers_log_that_cannot_be_is_not_believed(
    topics: tuple[RecordedTopic, ...], why: str
) -> None:
    with pytest.raises(AdoptionError, match=why):
        adopted(directory(), cluster=recorded(*topics))


def test_dynamic_configs_that_contradict_each_other_are_not_both_taken_over() -> None:
    """Each cleaner thread needs its part of the memory."""
    brokers: dict[int | None, dict[str, str]] = {
        None: {"log.cleaner.dedupe.buffer.size": "2000000"},
        1: {"log.cleaner.threads": "2"},
    }
    adoption = adopted(directory(), cluster=recorded(brokers=brokers))
    assert adoption.update.broker_configs == {None: brokers[None]}


def test_a_topic_that_the_log_does_not_mention_is_held_and_no_stray() -> None:
    adoption = adopted(
        directory(replica("orders"), replica("new", 0, TWO)), cluster=recorded(one_topic())
    )
    assert topic_of(adoption, "new").is_held
    assert not topic_of(adoption).is_held
    assert adoption.strays == ()


@pytest.mark.parametrize(
    ("directories", "replicas", "leader"),
    [
        ((), (1,), 1),
        ((uuid.UUID(int=0),), (1,), 1),
        ((uuid.UUID(int=1),), (1,), NO_LEADER),  # lost
        ((DIRECTORY_ID,), (1,), 1),
        ((OTHER_DIRECTORY_ID,), (1,), NO_LEADER),
        ((OTHER_DIRECTORY_ID, DIRECTORY_ID), (2, 1), 1),
        ((DIRECTORY_ID,), (2,), NO_LEADER),
    ],
)
def test_a_replica_that_was_not_found_begins_anew_only_where_it_belongs(
    directories: tuple[uuid.UUID, ...], replicas: tuple[int, ...], leader: int
) -> None:
    part = RecordedPartition(replicas=replicas, leader_epoch=3, directories=directories)
    cluster = recorded(RecordedTopic("orders", ONE, {0: part}))
    orders = topic_of(adopted(directory(), cluster=cluster))
    assert orders.partition(0).leader == leader
    is_live = leader == NO_LEADER
    assert orders.state is (TopicState.LIVE if is_live else TopicState.CREATING)


def test_replicas_on_nodes_that_are_not_here_are_left_behind() -> None:
    part = RecordedPartition(replicas=(2, 1, 3), leader=2, leader_epoch=3, isr=(1, 2))
    cluster = recorded(RecordedTopic("orders", ONE, {0: part}))
    zero = topic_of(adopted(directory(replica("orders")), cluster=cluster)).partition(0)
    assert (zero.leader, zero.leader_epoch, zero.replicas, zero.isr) == (1, 3, (1,), (1,))


# --- properties -------------------------------------------------------------------------------


@given(
    found_epoch=st.integers(-1, 2**31 - 1),
    recorded_epoch=st.none() | st.integers(0, 2**31 - 1),
)
@example(found_epoch=2**31 - 1, recorded_epoch=None)
def test_the_newest_leader_epoch_that_the_log_or_the_controller_knows_goes_on(
    found_epoch: int, recorded_epoch: int | None
) -> None:
    cluster = None if recorded_epoch is None else recorded(one_topic(epoch=recorded_epoch))
    adoption = adopted(directory(replica("orders", epoch=found_epoch)), cluster=cluster)
    epoch = topic_of(adoption).partition(0).leader_epoch
    assert epoch == max(found_epoch, -1 if recorded_epoch is None else recorded_epoch, 0)


names = st.sampled_from(("a", "b.c", "b_c", "__consumer_offsets"))
replicas = st.builds(
    FoundReplica,
    topic=names,
    partition=st.integers(0, 3),
    topic_id=st.sampled_from((None, ONE)),
    leader_epoch=st.integers(-1, 5),
)


@given(st.lists(replicas, unique_by=str, max_size=8), st.integers(-1, 9999))
def test_what_was_planned_is_what_a_store_begins_with(
    found: list[FoundReplica], producer_id_max: int
) -> None:
    if len({each.topic for each in found if each.topic_id}) > 1:
        with pytest.raises(AdoptionError, match="one id"):
            adopted(directory(*found))
        return
    adoption = adopted(directory(*found, producer_id_max=producer_id_max))
    with memory_directory() as memory:
        path = str(Path(memory) / "db")
        with SqliteMetadataStore.open(path) as store:
            store.initialize(adoption.cluster_id, adoption.node_id, adoption.update)
        with SqliteMetadataStore.open(path) as store:
            assert store.image.topics.keys() == {each.topic for each in found}
            assert all(topic.is_held for topic in store.image.topics.values())
            assert store.image.next_producer_id > producer_id_max
            known = {(each.topic, each.partition) for each in found}
            for topic in store.image.topics.values():
                for part in topic.partitions:
                    assert (part.leader == 1) == ((topic.name, part.partition) in known)
