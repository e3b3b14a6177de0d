"""Streams while the log changes: a batch that is planned is read whole; what is lost is told."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from racing import PARTITIONS, RECORDS, TOPIC, RacingBroker, racing_broker

from stratalog.scans.errors import DataLostError
from stratalog.spark.admission import offsets_from_json, offsets_to_json
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema
from stratalog.spark.streaming import StratalogStreamReader
from stratalog.storage.files import OsFileSystem
from stratalog.storage.leases import list_lease_files
from stratalog.testing import ManualClock

NO_LIMIT = ReadMaxRows((1 << 63) - 1)
BEGIN = {TOPIC: {"0": 0, "1": 0}}
END = {TOPIC: {"0": RECORDS, "1": RECORDS}}

CHANGES = {
    "rolling": RacingBroker.roll,
    "retention": RacingBroker.retain,
    "deleted records": RacingBroker.delete_records,
    "compaction": RacingBroker.compact,
    "truncation": RacingBroker.truncate,
    "deletion of the topic": RacingBroker.delete_topic,
}


@pytest.fixture
def broker(tmp_path: Path):
    with racing_broker(tmp_path / "log") as racing:
        yield racing


def open_stream(broker, **options):
    told = {
        "path": str(broker.log_dir),
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "maxRecordsPerPartition": "20",
        **options,
    }
    # A clock that stands still: what was looked at is not looked at again until it is moved.
    clock = ManualClock()
    parsed = SourceOptions.parse(told, is_streaming=True)
    schema = columns_schema(["partition", "offset", "value"])
    reader = StratalogStreamReader(
        parsed, schema, clock=clock, sleep=lambda s: clock.advance(int(s * 1000))
    )
    return reader, clock


def read(reader, partitions):
    return [
        (row["partition"], row["offset"], row["value"])
        for partition in partitions
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def offsets_of(position):
    """Without the ids of topics."""
    return offsets_to_json(offsets_from_json(position))


def written(offsets=range(RECORDS)):
    return [
        (partition, number, f"v{number}".encode() * 20)
        for partition in range(PARTITIONS)
        for number in offsets
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_a_batch_that_is_planned_is_read_whole_whatever_happens(broker, change):
    reader, _ = open_stream(broker)
    end = reader.latestOffset(reader.initialOffset(), NO_LIMIT)
    assert offsets_of(end) == END
    tasks = reader.partitions(BEGIN, end)
    first = read(reader, tasks[:1])

    CHANGES[change](broker)

    assert sorted(first + read(reader, tasks[1:])) == written()


def leases_held(broker):
    broker.unlink()  # a file goes some time after its lease
    return len(list_lease_files(OsFileSystem(), str(broker.log_dir)))


def test_leases_are_let_go_when_spark_asks_for_the_next_batch(broker):
    reader, _ = open_stream(broker)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(40))
    reader.partitions(BEGIN, end)
    reader.partitions(BEGIN, end)
    assert leases_held(broker) == 1

    reader.partitions(BEGIN, END)  # planned anew, and what was held before is not any more
    assert leases_held(broker) == 1
    following = reader.latestOffset(END, ReadMaxRows(40))
    assert leases_held(broker) == 0

    reader.partitions(BEGIN, end)
    following = reader.latestOffset(end, ReadMaxRows(40))
    assert leases_held(broker) == 0

    reader.partitions(end, following)
    reader.commit(following)
    assert leases_held(broker) == 0

    reader.partitions(following, END)
    reader.stop()
    assert leases_held(broker) == 0


@pytest.mark.parametrize("change", ["rolling", "compaction"])
def test_a_stream_goes_on_past_what_loses_nothing(broker, change):
    reader, clock = open_stream(broker)
    at = reader.latestOffset(reader.initialOffset(), ReadMaxRows(40))
    found = read(reader, reader.partitions(BEGIN, at))

    CHANGES[change](broker)
    clock.advance(1000)
    end = reader.latestOffset(at, NO_LIMIT)
    found += read(reader, reader.partitions(at, end))

    keys = [(partition, offset) for partition, offset, _ in found]
    assert len(set(keys)) == len(keys)
    assert offsets_of(end) == {TOPIC: {"0": 2 * RECORDS, "1": 2 * RECORDS}}
    if change == "rolling":
        assert len(keys) == 2 * RECORDS * PARTITIONS


def lost(ask, *arguments):
    with pytest.raises(DataLostError) as caught:
        ask(*arguments)
    assert str(caught.value.topic_partition) == f"{TOPIC}-0"
    return caught.value.start_offset, caught.value.end_offset


@pytest.mark.parametrize(
    ("change", "position", "of_the_position", "of_the_batch"),
    [
        ("deleted records", 10, (10, 30), (10, 30)),
        ("truncation", 40, (30, 40), (40, 60)),
        ("deletion of the topic", 40, (40, 60), (40, 60)),
    ],
)
def test_a_stream_that_lost_something_fails_with_the_exact_range(
    broker, change, position, of_the_position, of_the_batch
):
    reader, clock = open_stream(broker)
    start = {TOPIC: {"0": position, "1": position}}
    assert offsets_of(reader.latestOffset(start, NO_LIMIT)) == END

    CHANGES[change](broker)

    assert lost(reader.partitions, start, END) == of_the_batch
    clock.advance(1000)
    assert lost(reader.latestOffset, start, NO_LIMIT) == of_the_position


def test_a_stream_that_retention_overtook_can_go_on_with_what_is_left(broker):
    reader, _ = open_stream(broker, failOnDataLoss="false")
    end = reader.latestOffset(reader.initialOffset(), NO_LIMIT)

    broker.delete_records()

    assert sorted(read(reader, reader.partitions(BEGIN, end))) == written(range(30, RECORDS))


def test_an_owner_that_restarts_is_no_loss(tmp_path):
    log_dir = tmp_path / "log"
    with racing_broker(log_dir) as broker:
        reader, clock = open_stream(broker)
        at = reader.latestOffset(reader.initialOffset(), NO_LIMIT)
    # The checkpoint of high watermarks that a broker left which was killed much later.
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 5\n")
    clock.advance(1000)

    assert reader.latestOffset(at, NO_LIMIT) == at
    assert sorted(read(reader, reader.partitions(BEGIN, at))) == written()
