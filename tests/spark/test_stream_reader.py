"""The stream reader as Spark calls it, without Spark: positions, limits, losses, plans."""

import json
import logging
import pickle
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from topics import record, write_topic

import stratalog
from stratalog.scans.errors import DataLostError, MissingTopicError, ScanOptionError
from stratalog.spark.losses import PartitionGoneError
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema
from stratalog.spark.streaming import StratalogStreamReader
from stratalog.testing import ManualClock

NO_LIMIT = ReadMaxRows((1 << 63) - 1)


def open_stream(path, clock=None, columns=("partition", "offset"), **options):
    chosen = {} if "subscribePattern" in options else {"subscribe": "orders"}
    told = {"path": str(path), **chosen, **options}
    parsed = SourceOptions.parse(told, is_streaming=True)
    clock = clock or ManualClock()
    return StratalogStreamReader(
        parsed, columns_schema(columns), clock=clock, sleep=lambda s: clock.advance(int(s * 1000))
    )


def rows(reader, start, end):
    """What the tasks of a batch return, each on its own copy of a new reader, as Spark does."""
    found = []
    for partition in reader.partitions(start, end):
        copy = pickle.loads(pickle.dumps(partition))
        for batch in reader.read(copy):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def position(offsets, topic="orders"):
    return {topic: {str(each): offset for each, offset in enumerate(offsets)}}


class Stream:
    """Asks as Spark does: from each batch's end for the next one, until there is none."""

    def __init__(self, reader, start=None, limit=None):
        self.reader = reader
        self.at = reader.initialOffset() if start is None else start
        self.limit = limit or reader.getDefaultReadLimit()

    def next(self):
        end = self.reader.latestOffset(self.at, self.limit)
        if json.dumps(end) == json.dumps(self.at):
            return None
        found = rows(self.reader, self.at, end)
        self.at = end
        return found


def test_a_stream_begins_at_the_latest_offset_and_its_first_batch_is_empty(tmp_path):
    write_topic(tmp_path, "orders", 2, 5)
    reader = open_stream(tmp_path)

    start = reader.initialOffset()
    write_topic(tmp_path, "orders", 2, 1)

    assert start == position([5, 5])
    # What came since waits until the start is in the checkpoint.
    assert reader.latestOffset(start, NO_LIMIT) == start
    assert reader.latestOffset(start, NO_LIMIT) == position([6, 6])
    assert rows(reader, start, position([6, 6])) == [(0, 5), (1, 5)]


def test_a_stream_that_is_killed_in_its_first_batch_still_reads_all_since_its_start(tmp_path):
    write_topic(tmp_path, "orders", 1, 5)
    killed = open_stream(tmp_path)
    written_down = killed.latestOffset(killed.initialOffset(), NO_LIMIT)
    write_topic(tmp_path, "orders", 1, 2)

    resumed = open_stream(tmp_path)
    start = resumed.initialOffset()  # Spark asks again: no batch was finished

    assert rows(resumed, start, written_down) == []
    assert rows(resumed, written_down, resumed.latestOffset(written_down, NO_LIMIT)) == [
        (0, 5),
        (0, 6),
    ]


def test_a_first_batch_takes_only_of_partitions_that_do_not_begin_at_their_latest_offset(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 2, 5)
    stream = Stream(open_stream(tmp_path, clock, startingOffsets='{"orders":{"0":3,"1":-1}}'))
    write_topic(tmp_path, "orders", 3, 1)
    clock.advance(100)

    assert stream.next() == [(0, 3), (0, 4), (0, 5)]
    assert stream.at == position([6, 5])
    assert stream.next() == [(1, 5), (2, 0)]


def test_everything_at_once_is_what_trigger_once_asks_for(tmp_path):
    write_topic(tmp_path, "orders", 2, 5)
    reader = open_stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="1")

    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == position([5, 5])


def test_a_stream_can_begin_anywhere_that_a_batch_can(tmp_path):
    write_topic(tmp_path, "orders", 2, 5)
    at_time = str(record(7).timestamp_ms)

    assert open_stream(
        tmp_path, startingOffsets='{"orders":{"0":3,"1":-2}}'
    ).initialOffset() == position([3, 0])
    by_time = open_stream(
        tmp_path, startingTimestamp=at_time, startingOffsetsByTimestampStrategy="latest"
    )
    assert by_time.initialOffset() == position([5, 2])


def test_a_limit_of_offsets_is_shared_in_proportion(tmp_path):
    write_topic(tmp_path, "orders", {0: [record(n) for n in range(90)], 1: [record(0)] * 10})
    stream = Stream(open_stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="10"))

    first = stream.next()

    assert len(first) == 10
    assert stream.at == position([9, 1])


def test_a_limit_of_bytes_takes_whole_batches_and_at_least_one(tmp_path):
    write_topic(tmp_path, "orders", {0: [record(0)] * 60}, batch_records=10)
    size_bytes = (tmp_path / "orders-0" / f"{0:020d}.log").stat().st_size

    tight = Stream(open_stream(tmp_path, startingOffsets="earliest", maxBytesPerTrigger="1"))
    half = Stream(
        open_stream(tmp_path, startingOffsets="earliest", maxBytesPerTrigger=str(size_bytes // 2))
    )

    assert isinstance(tight.limit, ReadMaxBytes)
    assert [len(tight.next()) for _ in range(6)] == [10] * 6
    assert tight.next() is None
    assert [len(half.next()), len(half.next())] == [30, 30]


@pytest.mark.parametrize(("max_offsets", "expected"), [("15", [10, 10, 10]), ("4", [4, 4, 2])])
def test_both_limits_hold_although_spark_is_told_one(tmp_path, max_offsets, expected):
    write_topic(tmp_path, "orders", {0: [record(n) for n in range(60)]}, batch_records=10)
    options = {"maxBytesPerTrigger": "1", "maxOffsetsPerTrigger": max_offsets}

    stream = Stream(open_stream(tmp_path, startingOffsets="earliest", **options))

    assert stream.limit == ReadMaxRows(int(max_offsets))
    assert [len(stream.next()) for _ in range(3)] == expected


def test_a_limit_that_spark_itself_sets_holds_too(tmp_path):
    write_topic(tmp_path, "orders", {0: [record(n) for n in range(60)]}, batch_records=10)
    reader = open_stream(tmp_path, startingOffsets="earliest")
    start = reader.initialOffset()

    assert reader.latestOffset(start, ReadMaxBytes(1)) == position([10])
    assert reader.latestOffset(start, ReadMaxRows(7)) == position([7])


def test_a_batch_waits_for_its_minimum_and_not_for_ever(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 5)
    options = {"minOffsetsPerTrigger": "3", "maxTriggerDelay": "10s"}
    stream = Stream(open_stream(tmp_path, clock, startingOffsets="earliest", **options))
    assert len(stream.next()) == 5

    write_topic(tmp_path, "orders", 1, 2)
    clock.advance(9_000)
    assert stream.next() is None
    clock.advance(1_000)
    assert len(stream.next()) == 2

    write_topic(tmp_path, "orders", 1, 3)
    clock.advance(200)
    assert len(stream.next()) == 3


def test_a_query_with_a_settled_end_waits_for_nothing_and_reads_nothing_newer(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 2, 5)
    reader = open_stream(
        tmp_path,
        clock,
        startingOffsets="earliest",
        minOffsetsPerTrigger="5",
        maxOffsetsPerTrigger="6",
    )
    reader.prepareForTriggerAvailableNow()
    stream = Stream(reader)
    write_topic(tmp_path, "orders", 3, 5)
    clock.advance(60_000)

    assert [len(stream.next()), len(stream.next())] == [6, 4]
    assert stream.next() is None
    assert stream.at == position([5, 5])


def test_a_settled_end_is_no_loss_to_a_query_that_begins_behind_it(tmp_path):
    write_topic(tmp_path, "orders", 1, 5)
    reader = open_stream(tmp_path)
    reader.prepareForTriggerAvailableNow()
    write_topic(tmp_path, "orders", 2, 5)

    stream = Stream(reader)

    assert stream.at == position([10, 5])
    assert stream.next() is None
    assert stream.next() is None


def test_new_partitions_are_read_from_their_beginning(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 2)
    stream = Stream(open_stream(tmp_path, clock, startingOffsets="earliest"))
    assert stream.next() == [(0, 0), (0, 1)]

    write_topic(tmp_path, "orders", {2: [record(0)], 10: [record(1)]})
    clock.advance(100)

    assert stream.next() == [(2, 0), (10, 0)]
    assert stream.at == {"orders": {"0": 2, "2": 1, "10": 1}}


def test_topics_that_come_to_match_a_pattern_are_read(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "other", 1, 2)
    stream = Stream(
        open_stream(tmp_path, clock, subscribePattern="or.*s", startingOffsets="earliest")
    )
    assert stream.next() is None

    write_topic(tmp_path, "orders", 1, 2)
    clock.advance(100)

    assert len(stream.next()) == 2


def test_an_idle_stream_looks_at_the_directory_ten_times_a_second(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 2)
    reader = open_stream(tmp_path, clock, startingOffsets="earliest")
    at = reader.latestOffset(reader.initialOffset(), NO_LIMIT)
    looks, started_ms = reader.looks, clock.now_ms()

    for _ in range(86):
        assert reader.latestOffset(at, NO_LIMIT) == at
        assert reader.reportLatestOffset() == at
        clock.advance(1000 // 86)

    assert 0 < reader.looks - looks <= 1 + (clock.now_ms() - started_ms) // 100


def test_nothing_new_is_never_said_of_an_old_look(tmp_path):
    write_topic(tmp_path, "orders", 1, 2)
    stream = Stream(open_stream(tmp_path, startingOffsets="earliest"))
    assert len(stream.next()) == 2

    write_topic(tmp_path, "orders", 1, 2)

    assert len(stream.next()) == 2  # although no time has passed


def test_the_same_batch_is_planned_once_and_an_empty_one_never(tmp_path):
    write_topic(tmp_path, "orders", 1, 2)
    reader = open_stream(tmp_path, startingOffsets="earliest")
    start, end = reader.initialOffset(), position([2])

    assert reader.partitions(start, end) is reader.partitions(start, end)
    assert reader.partitions(end, end) == []


# --- losses ----------------------------------------------------------------------------------


def delete_records(path, before_offset):
    with stratalog.open_directory(path) as logs:
        logs.log("orders", 0).delete_records(before_offset)


@pytest.fixture
def overtaken(tmp_path):
    """A stream at offset 2 of a log that now begins at 4."""
    write_topic(tmp_path, "orders", 1, 6, batch_records=1)
    delete_records(tmp_path, 4)
    return tmp_path


def test_a_stream_that_retention_overtook_fails_with_the_exact_range(overtaken):
    reader = open_stream(overtaken)

    with pytest.raises(DataLostError, match=r"orders-0 has lost the offsets 2 to 3 \(2 of them\)"):
        reader.latestOffset(position([2]), NO_LIMIT)
    with pytest.raises(DataLostError, match="2 to 3"):  # a batch that was written down before
        reader.partitions(position([2]), position([5]))


def test_or_it_goes_on_and_warns_once(overtaken, caplog):
    stream = Stream(open_stream(overtaken, failOnDataLoss="false"), position([2]))

    with caplog.at_level(logging.WARNING):
        assert stream.next() == [(0, 4), (0, 5)]
        assert stream.next() is None

    assert [each.message for each in caplog.records if "offsets 2 to 3" in each.message]
    assert len(caplog.records) == 1


def test_a_limit_is_not_spent_on_what_is_lost(overtaken):
    stream = Stream(
        open_stream(overtaken, failOnDataLoss="false", maxOffsetsPerTrigger="1"), position([2])
    )

    assert stream.next() == [(0, 4)]


def test_a_topic_that_is_deleted_ends_the_stream_with_what_was_not_read(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 6)
    write_topic(tmp_path, "other", 1, 1)
    reader = open_stream(tmp_path, clock, startingOffsets="earliest")
    reader.latestOffset(reader.initialOffset(), NO_LIMIT)
    shutil.rmtree(tmp_path / "orders-0")
    clock.advance(100)

    with pytest.raises(DataLostError, match=r"offsets 4 to 5 .*the partition is gone"):
        reader.latestOffset(position([4]), NO_LIMIT)
    with pytest.raises(PartitionGoneError, match="orders-0 is gone"):
        reader.latestOffset(position([6]), NO_LIMIT)


def test_or_the_stream_goes_on_with_the_other_topics(tmp_path):
    clock = ManualClock()
    write_topic(tmp_path, "orders", 1, 2)
    write_topic(tmp_path, "other", 1, 2)
    reader = open_stream(
        tmp_path,
        clock,
        columns=["topic", "offset"],
        subscribe="orders,other",
        startingOffsets="earliest",
        failOnDataLoss="false",
    )
    stream = Stream(reader)
    assert len(stream.next()) == 4
    shutil.rmtree(tmp_path / "orders-0")
    write_topic(tmp_path, "other", 1, 1)
    clock.advance(100)

    assert stream.next() == [("other", 2)]
    assert stream.at == {"other": {"0": 3}}


def test_a_topic_made_anew_is_a_loss(tmp_path):
    write_topic(tmp_path, "orders", 1, 3)
    reader = open_stream(tmp_path)

    with pytest.raises(DataLostError, match=r"offsets 3 to 4 .*made anew"):
        reader.latestOffset(position([5]), NO_LIMIT)


def test_a_topic_that_was_never_there_is_an_error_at_once(tmp_path):
    write_topic(tmp_path, "other", 1, 1)

    with pytest.raises(MissingTopicError, match="holds no topic 'orders'"):
        open_stream(tmp_path).initialOffset()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    write_topic(tmp_path, "orders", 1, 1)

    with pytest.raises(ScanOptionError, match="is no position of this source"):
        open_stream(tmp_path).latestOffset({"logOffset": 3}, NO_LIMIT)


# --- every row once --------------------------------------------------------------------------


@settings(max_examples=8)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), min_size=1, max_size=6),
    st.integers(1, 9),
    st.sampled_from(["maxOffsetsPerTrigger", "maxBytesPerTrigger"]),
    st.data(),
)
def test_batches_cover_every_row_once_whatever_the_limits_and_restarts(
    tmp_path_factory, appends, limit, option, data
):
    path = tmp_path_factory.mktemp("logs")
    clock = ManualClock()
    options = {"startingOffsets": "earliest", option: str(limit * 40)}
    if option == "maxOffsetsPerTrigger":
        options[option] = str(limit)
    write_topic(path, "orders", 1, 1)
    stream = Stream(open_stream(path, clock, **options))
    seen = []
    for partition, count in appends:
        write_topic(path, "orders", {partition: [record(0)] * count}, batch_records=3)
        clock.advance(100)
        for _ in range(data.draw(st.integers(0, 3))):
            seen += stream.next() or []
        if data.draw(st.booleans()):
            stream = Stream(open_stream(path, clock, **options), stream.at)
    clock.advance(100)
    while (found := stream.next()) is not None:
        seen += found

    with stratalog.open_directory(path) as logs:
        ends = {each: logs.log(*each).end_offset for each in logs.partitions()}
    assert sorted(seen) == sorted((key[1], n) for key, end in ends.items() for n in range(end))
