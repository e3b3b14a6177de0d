"""Apache Kafka's own directory, adopted: topics, ids, configs and epochs are what Kafka said."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from adopting import (
    BROKER_CONFIGS,
    METADATA_LOG,
    find_directory,
    id_of,
    leader_epochs,
    live_through,
    read_controller,
    unpack_golden,
)
from apache_kafka import CLUSTER_ID, KafkaBroker, KafkaDistribution

from stratalog.config import BrokerConfig
from stratalog.config.settings import settings_of
from stratalog.metadata import NewTopic, ProducerIds
from stratalog.metadata.adoption import Adoption, plan_adoption
from stratalog.metadata.cluster_log import read_cluster_metadata
from stratalog.metadata.dynamic_configs import DYNAMIC_BROKER_CONFIGS
from stratalog.metadata.producer_ids import PRODUCER_ID_MIN
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore

# A listener stays where it is while the broker runs.
LISTENING = {"advertised.listeners", "listener.security.protocol.map", "listeners"}
THROTTLES = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}


class Lived(NamedTuple):
    log_dir: Path
    answers: dict[str, Any]


@pytest.fixture(scope="module", params=["golden", pytest.param("fresh", marks=pytest.mark.interop)])
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    directory = tmp_path_factory.mktemp("adopted")
    if request.param == "golden":
        return Lived(directory, unpack_golden(directory))
    kafka: KafkaDistribution = request.getfixturevalue("kafka")
    broker = KafkaBroker(kafka, directory / "kafka", BROKER_CONFIGS)
    return Lived(broker.log_dir, live_through(broker))


def adopt(log_dir: Path, *, is_broker_config_known: bool = True) -> Adoption:
    return plan_adoption(
        [find_directory(log_dir)],
        cluster=read_controller(log_dir),
        broker=BrokerConfig(),
        is_broker_config_known=is_broker_config_known,
    )


def test_topics_ids_and_configs_are_those_that_kafka_names(lived: Lived) -> None:
    adoption = adopt(lived.log_dir)

    assert (adoption.cluster_id, adoption.node_id) == (CLUSTER_ID, 1)
    topics = {topic.name: topic for topic in adoption.update.topics}
    ids = {name: topic.topic_id for name, topic in topics.items()}
    assert ids == {name: id_of(text) for name, text in lived.answers["topic_ids"].items()}
    configs = {name: dict(topic.configs) for name, topic in topics.items()}
    assert configs == lived.answers["configs"]
    assert (adoption.held, adoption.strays) == ({}, ())


def test_leader_epochs_are_those_that_kafkas_controller_wrote_last(lived: Lived) -> None:
    for topic in adopt(lived.log_dir).update.topics:
        named = lived.answers["leader_epochs"][topic.name]
        epochs = [each.leader_epoch for each in topic.partitions]
        assert len(epochs) == len(named)
        # A clean stop takes the leader away in an epoch of its own, which nobody was told.
        assert epochs == [each + 1 for each in named]
        assert {each.leader for each in topic.partitions} == {1}


def test_dynamic_configs_of_the_broker_are_those_that_kafka_names(lived: Lived) -> None:
    configs = adopt(lived.log_dir).update.broker_configs
    assert {**configs.get(None, {}), **configs.get(1, {})} == lived.answers["broker"]


def test_what_can_be_changed_in_a_running_broker_is_what_kafka_lets_be_changed(
    lived: Lived,
) -> None:
    # Of the throttles of replicas Kafka tells only when they are set.
    changeable = {*lived.answers["changeable"], *THROTTLES}
    assert changeable >= DYNAMIC_BROKER_CONFIGS
    assert changeable & settings_of(BrokerConfig).keys() <= DYNAMIC_BROKER_CONFIGS | LISTENING


def test_producer_ids_are_none_that_kafka_gives(lived: Lived, tmp_path: Path) -> None:
    adoption = adopt(lived.log_dir)
    with SqliteMetadataStore.open(str(tmp_path / METADATA_FILE)) as store:
        store.initialize(adoption.cluster_id, adoption.node_id, adoption.update)
        assert ProducerIds(store).next_id() >= PRODUCER_ID_MIN > lived.answers["producer_id"]


def test_without_the_settings_of_its_broker_only_what_states_everything_is_not_held(
    lived: Lived,
) -> None:
    adoption = adopt(lived.log_dir, is_broker_config_known=False)
    assert set(adoption.held) == set(lived.answers["topic_ids"])


def test_a_directory_without_its_controllers_log_is_held(lived: Lived) -> None:
    adoption = plan_adoption(
        [find_directory(lived.log_dir)],
        cluster=None,
        broker=BrokerConfig(),
        is_broker_config_known=True,
    )
    topics = {topic.name: topic.topic_id for topic in adoption.update.topics}
    assert topics == {name: id_of(text) for name, text in lived.answers["topic_ids"].items()}
    assert set(adoption.held) == set(topics)


def test_every_snapshot_and_the_log_after_it_come_to_the_same(lived: Lived) -> None:
    directory = lived.log_dir / METADATA_LOG
    names = [file.name for file in directory.iterdir()]
    snapshots = [name for name in names if name.endswith(".checkpoint")]
    assert snapshots, "this history is meant to leave some"

    def reading(chosen: list[str]) -> object:
        found = read_cluster_metadata(chosen, lambda name: (directory / name).read_bytes())
        assert found is not None
        found.removed.clear()
        # A snapshot may still have the configs of a topic that is gone; nobody asks for them.
        topics = {topic.name for topic in found.topics.values()}
        found.topic_configs = {
            name: each for name, each in found.topic_configs.items() if each and name in topics
        }
        return found

    logs = [name for name in names if name.endswith(".log")]
    whole = reading(logs)
    assert [reading([*logs, snapshot]) for snapshot in snapshots] == [whole] * len(snapshots)


@pytest.mark.interop
def test_kafka_opens_the_directory_again_beside_our_file(
    kafka: KafkaDistribution, tmp_path: Path
) -> None:
    broker = KafkaBroker(kafka, tmp_path / "kafka", BROKER_CONFIGS)
    answers = live_through(broker)
    adoption = adopt(broker.log_dir)
    path = broker.log_dir / METADATA_FILE
    with SqliteMetadataStore.open(str(path)) as store:
        store.initialize(adoption.cluster_id, adoption.node_id, adoption.update)
        store.create_topic(NewTopic(name="ours"))
    with broker, broker.connect() as connection:
        assert sorted(leader_epochs(connection)) == sorted(answers["topic_ids"])
    assert path.is_file()
