"""The stream reader as a Spark before 4.2 calls it, without Spark: nobody says where a batch is
to begin, and the first answer is the end of a query with Trigger.AvailableNow.
"""

import pytest
from topics import write_topic

import stratalog
from stratalog.scans.errors import DataLostError, ScanOptionError
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema
from stratalog.spark.streaming_unlimited import UnlimitedStreamReader
from stratalog.testing import ManualClock


def open_stream(path, clock, **options):
    told = {"path": str(path), "subscribe": "orders", "startingOffsets": "earliest", **options}
    return UnlimitedStreamReader(
        SourceOptions.parse(told, is_streaming=True),
        columns_schema(("partition", "offset")),
        clock=clock,
        sleep=lambda seconds: clock.advance(int(seconds * 1000)),
    )


def rows(reader, start, end):
    return [
        tuple(row.values())
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def position(*offsets):
    return {"orders": {str(each): offset for each, offset in enumerate(offsets)}}


def test_each_batch_begins_where_the_one_before_it_ended_and_takes_all_that_is_there(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 2, 3)
    reader = open_stream(tmp_path, clock)

    start = reader.initialOffset()
    first = reader.latestOffset()
    assert rows(reader, start, first) == [(each, n) for each in range(2) for n in range(3)]
    assert reader.latestOffset() == first
    write_topic(tmp_path, "orders", 2, 1)
    clock.advance(1000)

    assert rows(reader, first, reader.latestOffset()) == [(0, 3), (1, 3)]


def test_the_end_of_a_query_that_is_to_catch_up_is_told_before_its_beginning(tmp_path):
    write_topic(tmp_path, "orders", 2, 3)
    with stratalog.open_directory(tmp_path) as logs:
        logs.log("orders", 0).delete_records(2)
    reader = open_stream(tmp_path, ManualClock())

    # What retention took before the query began is no loss to it.
    assert reader.latestOffset() == position(3, 3)
    assert reader.initialOffset() == position(2, 0)


def test_a_resumed_query_goes_on_from_the_batch_that_its_checkpoint_names(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 5)
    reader = open_stream(tmp_path, clock)

    assert rows(reader, position(2), position(4)) == [(0, 2), (0, 3)]
    assert rows(reader, position(4), reader.latestOffset()) == [(0, 4)]


def test_the_first_batch_of_a_query_that_begins_at_the_latest_offset_is_empty(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 5)
    reader = open_stream(tmp_path, clock, startingOffsets="latest")

    start = reader.initialOffset()
    write_topic(tmp_path, "orders", 1, 2)
    clock.advance(1000)

    assert reader.latestOffset() == start
    assert rows(reader, start, start) == []
    assert rows(reader, start, reader.latestOffset()) == [(0, 5), (0, 6)]


def test_what_retention_took_unread_ends_the_query(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 5)
    reader = open_stream(tmp_path, clock)
    assert rows(reader, position(0), position(2)) == [(0, 0), (0, 1)]
    with stratalog.open_directory(tmp_path) as logs:
        logs.log("orders").delete_records(4)
    clock.advance(1000)

    with pytest.raises(DataLostError, match="orders-0"):
        reader.latestOffset()


@pytest.mark.parametrize(
    "limit", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"]
)
def test_a_limit_is_refused_that_would_end_a_query_early(tmp_path, limit):
    write_topic(tmp_path, "orders", 1, 5)

    with pytest.raises(ScanOptionError, match=f"{limit}.*4.2 or newer"):
        open_stream(tmp_path, ManualClock(), **{limit: "1"})
