"""A whole log directory changes hands, from Kafka to us and back, and nothing is lost or redone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution, KafkaFailedError
from batches import Record, make_batch
from kafka_runs import KafkaRun, consume_all, copy_tree
from replaying import config_of
from scenarios import SCENARIOS, filler
from wire import KafkaConnection

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import LogDirectoryError
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager

pytestmark = pytest.mark.interop

TOPICS = [scenario.name for scenario in SCENARIOS]
PRODUCER = (123_456, 0)  # no id that a broker of these tests hands out


def topic_config(topic: str) -> TopicConfig:
    return config_of(topic) if topic in TOPICS else TopicConfig()


@contextmanager
def owned_by_us(log_dir: Path) -> Iterator[LogManager]:
    manager = LogManager(BrokerConfig(log_dirs=(str(log_dir),)), topic_config=topic_config)
    manager.start()
    try:
        yield manager
    finally:
        manager.shutdown()


def append(manager: LogManager, topic: str, *batches: bytes) -> None:
    log = manager.get(TopicPartition(topic, 0))
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=log.epochs.latest_epoch)


@pytest.fixture
def broker(kafka: KafkaDistribution, kafka_run: KafkaRun, tmp_path: Path) -> KafkaBroker:
    broker = KafkaBroker(kafka, tmp_path / "broker", kafka_run.configs)
    broker.data_dir.mkdir()
    return broker


def recovered_something(broker: KafkaBroker) -> bool:
    """Whether Kafka read any log again at its start; its own metadata log it always does."""
    lines = broker.console.read_text().splitlines()
    recovering = [line for line in lines if "Recovering unflushed segment" in line]
    return any("partition=__cluster_metadata-0" not in line for line in recovering)


def test_kafka_goes_on_where_we_stopped_without_recovering_anything(
    broker: KafkaBroker, kafka_run: KafkaRun
) -> None:
    copy_tree(kafka_run.clean, broker.log_dir)

    with owned_by_us(broker.log_dir) as manager:
        for topic in TOPICS:
            append(manager, topic, make_batch([Record(b"ours", b"1"), Record(b"ours", b"2")]))
    with broker:
        served = consume_all(broker)

    assert not recovered_something(broker)
    for topic in TOPICS:
        before, added = served[topic][:-2], served[topic][-2:]
        assert before == kafka_run.consumed_clean[topic]
        assert [(each.key, each.value) for each in added] == [(b"ours", b"1"), (b"ours", b"2")]


def test_kafka_need_not_recover_what_we_have_recovered(
    broker: KafkaBroker, kafka_run: KafkaRun
) -> None:
    copy_tree(kafka_run.damaged, broker.log_dir)

    with owned_by_us(broker.log_dir):
        pass
    with broker:
        served = consume_all(broker)

    assert not recovered_something(broker)
    assert served == kafka_run.consumed_recovered


def send(connection: KafkaConnection, batch: bytes) -> int:
    return connection.produce("plain", batch).base_offset


def test_a_producer_goes_on_with_its_sequence_whoever_owns_the_log(
    broker: KafkaBroker, kafka_run: KafkaRun
) -> None:
    copy_tree(kafka_run.clean, broker.log_dir)
    now_ms = kafka_run.started_ms[-1]
    first, second, third = (
        make_batch([filler(at, start_ms=now_ms)], producer=PRODUCER, base_sequence=at)
        for at in range(3)
    )

    with owned_by_us(broker.log_dir) as manager:
        log = manager.get(TopicPartition("plain", 0))
        end = log.log_end_offset
        append(manager, "plain", first)
    with broker, broker.connect() as connection:
        assert send(connection, first) == end  # Kafka knows our batch for a duplicate
        assert send(connection, second) == end + 1
    with owned_by_us(broker.log_dir) as manager:
        log = manager.get(TopicPartition("plain", 0))
        again = log.append_as_leader(second, leader_epoch=log.epochs.latest_epoch)
        assert (again.is_duplicate, again.first_offset) == (True, end + 1)
        append(manager, "plain", third)
        assert log.log_end_offset == end + 3


def test_a_directory_has_one_owner_at_a_time(broker: KafkaBroker, kafka_run: KafkaRun) -> None:
    copy_tree(kafka_run.clean, broker.log_dir)

    with broker, pytest.raises(LogDirectoryError), owned_by_us(broker.log_dir):
        pass
    with owned_by_us(broker.log_dir), pytest.raises(KafkaFailedError):
        broker.start()
    assert "Failed to acquire lock on file .lock" in broker.console.read_text()
    with broker:
        assert consume_all(broker) == kafka_run.consumed_clean
