"""Each side opens what the other left, cleanly stopped or crashed, and every record is there."""

from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from kafka_runs import CONSUMED_TOPICS, KafkaRun, consume_all, copy_tree
from reading import read_all
from replaying import replay_clean, replay_crashed
from scenarios import SCENARIOS

from stratalog.storage.reading import Isolation

pytestmark = pytest.mark.interop

TOPICS = [scenario.name for scenario in SCENARIOS]
UNDAMAGED = [scenario.name for scenario in SCENARIOS if scenario.damage is None]


@pytest.mark.parametrize("topic", TOPICS)
def test_we_read_every_record_of_a_partition_that_kafka_closed(
    topic: str, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    directory = tmp_path / f"{topic}-0"
    copy_tree(kafka_run.clean / f"{topic}-0", directory)
    ours = kafka_run.adopt(directory, topic)

    with ours.led(2, kafka_run.started_ms[2]) as log:
        assert read_all(log) == kafka_run.consumed_clean[topic]


@pytest.mark.parametrize("topic", ["transactions", "transactions-rolled", "lost-indexes", "plain"])
def test_we_read_what_was_committed_and_no_more(
    topic: str, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    directory = tmp_path / f"{topic}-0"
    copy_tree(kafka_run.clean / f"{topic}-0", directory)
    ours = kafka_run.adopt(directory, topic)

    with ours.led(2, kafka_run.started_ms[2]) as log:
        log.update_high_watermark(log.log_end_offset)
        assert read_all(log, Isolation.TXN_COMMITTED) == kafka_run.committed_clean[topic]


@pytest.mark.parametrize("topic", TOPICS)
def test_we_read_every_record_of_a_partition_that_kafka_left_in_a_crash(
    topic: str, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    directory = tmp_path / f"{topic}-0"
    copy_tree(kafka_run.damaged / f"{topic}-0", directory)
    ours = kafka_run.adopt(directory, topic)

    with ours.led(3, kafka_run.started_ms[3], clean=False) as log:
        assert read_all(log) == kafka_run.consumed_recovered[topic]


def put_ours_in_place(kafka_run: KafkaRun, log_dir: Path, moment: str) -> None:
    replay = replay_clean if moment == "clean" else replay_crashed
    for topic in CONSUMED_TOPICS:
        kafkas = log_dir / f"{topic}-0"
        kafkas.rename(log_dir.parent / f"kafkas-{topic}")
        replay(kafka_run.partition(topic), kafkas)
        (kafkas / ".stratalog").mkdir(exist_ok=True)


@pytest.mark.parametrize("moment", ["clean", "crashed"])
def test_kafka_serves_every_record_of_partitions_that_we_wrote(
    moment: str, kafka: KafkaDistribution, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    broker = KafkaBroker(kafka, tmp_path / "broker", kafka_run.configs)
    broker.data_dir.mkdir()
    copy_tree(getattr(kafka_run, moment), broker.log_dir)
    put_ours_in_place(kafka_run, broker.log_dir, moment)

    with broker:
        served = consume_all(broker)

    expected = kafka_run.consumed_clean if moment == "clean" else kafka_run.consumed_recovered
    topics = TOPICS if moment == "clean" else UNDAMAGED
    assert {topic: served[topic] for topic in topics} == {
        topic: expected[topic] for topic in topics
    }
