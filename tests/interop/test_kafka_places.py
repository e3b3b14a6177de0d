"""Each side opens what the other left, cleanly stopped or crashed, and every record is there."""

from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from consuming import Consumed
from kafka_runs import CONSUMED_TOPICS, KafkaRun, consume_all, copy_tree, recovery_points
from replaying import OurPartition, replay_clean, replay_crashed
from scenarios import SCENARIOS

from stratalog.records.columns import decode_columns
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation

pytestmark = pytest.mark.interop

TOPICS = [scenario.name for scenario in SCENARIOS]
UNDAMAGED = [scenario.name for scenario in SCENARIOS if scenario.damage is None]
COLUMNS = ("offset", "timestamp_type", "timestamp_ms", "key", "value", "headers")


def read_all(log: Log) -> list[Consumed]:
    """Every record that a client would see, through the reads a fetch makes."""
    records: list[Consumed] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes=10_000, isolation=Isolation.LOG_END)
        assert fetched.records is not None
        rows = decode_columns(
            fetched.records.read(), columns=(*COLUMNS, "is_control"), include_control=True
        ).to_pylist()
        records += (consumed(row) for row in rows if row["offset"] >= offset and not row["is_control"])
        offset = rows[-1]["offset"] + 1
    return records


def consumed(row: dict) -> Consumed:  # type: ignore[type-arg]
    return Consumed(
        row["offset"],
        row["timestamp_type"] + 1,
        row["timestamp_ms"],
        row["key"],
        row["value"],
        tuple((header["key"], header["value"]) for header in row["headers"]),
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_we_read_every_record_of_a_partition_that_kafka_closed(
    topic: str, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    directory = tmp_path / f"{topic}-0"
    copy_tree(kafka_run.clean / f"{topic}-0", directory)
    ours = OurPartition(directory, topic)

    with ours.led(2, kafka_run.started_ms[2]) as log:
        assert read_all(log) == kafka_run.consumed_clean[topic]


@pytest.mark.parametrize("topic", TOPICS)
def test_we_read_every_record_of_a_partition_that_kafka_left_in_a_crash(
    topic: str, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    directory = tmp_path / f"{topic}-0"
    copy_tree(kafka_run.damaged / f"{topic}-0", directory)
    recovery_point = recovery_points(kafka_run.crashed)[topic]
    ours = OurPartition(directory, topic, recovery_point=recovery_point)

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
    assert {topic: served[topic] for topic in topics} == {topic: expected[topic] for topic in topics}
