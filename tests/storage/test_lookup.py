"""Offsets by time, and the special timestamps of ListOffsets. The model of a log is
the list of its records' timestamps; an answer is exact."""

import struct
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    append_transactional,
    batch,
    clock_of,
    disk_of,
    new_log,
    reopened,
    timed_batch,
)

from stratalog.errors import StorageError
from stratalog.records import Codec
from stratalog.storage.log import Log
from stratalog.storage.lookup import ListedOffset, SpecialTimestamp, list_offset
from stratalog.storage.reading import Isolation
from stratalog.testing.legacy import legacy_message_set

MakeLog = Callable[..., Log]

TIMES = st.integers(0, 12)
BATCHES = st.lists(st.lists(TIMES, min_size=1, max_size=4), min_size=1, max_size=15)
CODECS = st.sampled_from((Codec.NONE, Codec.ZSTD))


def filled(batches: Sequence[Sequence[int]], codec: Codec = Codec.NONE) -> Log:
    """Several segments, several index entries each; every batch in an epoch of its own."""
    log = new_log(internal_segment_bytes=500, index_interval_bytes=100)
    for epoch, timestamps in enumerate(batches):
        log.append_as_leader(timed_batch(timestamps, codec=codec), leader_epoch=epoch)
    log.update_high_watermark(log.log_end_offset)
    return log


def records_of(batches: Sequence[Sequence[int]]) -> list[tuple[int, int, int]]:
    """(offset, timestamp, epoch) of every record."""
    flat = [(ms, epoch) for epoch, batch in enumerate(batches) for ms in batch]
    return [(offset, ms, epoch) for offset, (ms, epoch) in enumerate(flat)]


def first_not_older(
    records: list[tuple[int, int, int]], target_ms: int, start: int, end: int
) -> ListedOffset:
    """The first record from ``start`` on, unless it is at or above ``end``."""
    for offset, timestamp_ms, epoch in records[start:]:
        if timestamp_ms >= target_ms:
            return ListedOffset(offset, timestamp_ms, epoch) if offset < end else ListedOffset()
    return ListedOffset()


def wrong_entries(batches: Sequence[Sequence[int]], base_offset: int) -> st.SearchStrategy[bytes]:
    """Time entries none of which agrees with the batch that it names."""
    largest = [max(batch) for batch in batches for _ in batch]

    def is_wrong(entry: tuple[int, int]) -> bool:
        offset = base_offset + entry[1]
        return offset >= len(largest) or largest[offset] != entry[0]

    entry = st.tuples(st.integers(0, 14), st.integers(0, 30)).filter(is_wrong)
    packed = entry.map(lambda each: struct.pack(">qi", *each))
    return st.lists(packed, min_size=1, max_size=4).map(b"".join)


# --- by time -------------------------------------------------------------------------------------


@given(BATCHES, CODECS, st.integers(0, 14))
def test_the_answer_is_the_first_record_that_is_not_older(
    batches: list[list[int]], codec: Codec, target_ms: int
) -> None:
    log = filled(batches, codec)
    records = records_of(batches)
    expected = first_not_older(records, target_ms, 0, len(records))
    assert list_offset(log, target_ms) == expected
    assert list_offset(reopened(log), target_ms) == expected


@given(BATCHES, st.integers(0, 14), st.data())
def test_records_below_the_log_start_are_passed_over(
    batches: list[list[int]], target_ms: int, data: st.DataObject
) -> None:
    log = filled(batches)
    records = records_of(batches)
    start = data.draw(st.integers(0, len(records)))
    log.delete_records(start)
    expected = first_not_older(records, target_ms, start, len(records))
    assert list_offset(log, target_ms) == expected


@given(BATCHES, st.integers(0, 14), st.data())
def test_an_answer_that_the_reader_may_not_see_yet_is_unknown(
    batches: list[list[int]], target_ms: int, data: st.DataObject
) -> None:
    log = filled(batches)
    records = records_of(batches)
    end = data.draw(st.integers(0, len(records)))
    log.update_high_watermark(end)
    assert list_offset(log, target_ms) == first_not_older(records, target_ms, 0, end)
    unbounded = first_not_older(records, target_ms, 0, len(records))
    assert list_offset(log, target_ms, Isolation.LOG_END) == unbounded


@given(BATCHES, st.data())
def test_damage_to_a_time_index_changes_no_answer(
    batches: list[list[int]], data: st.DataObject
) -> None:
    log = filled(batches)
    records = records_of(batches)
    log.close()
    files = disk_of(log)
    names = sorted(n for n in files.tree(log.directory) if n.endswith(".timeindex"))
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)):
        garbled = data.draw(st.binary(max_size=60) | wrong_entries(batches, int(name[:20])))
        files.put(f"{log.directory}/{name}", garbled)
    log = reopened(log)
    for target_ms in range(14):
        expected = first_not_older(records, target_ms, 0, len(records))
        assert list_offset(log, target_ms) == expected


@pytest.mark.parametrize(("high_watermark", "offset"), [(1, -1), (2, -1), (3, 2)])
def test_a_record_is_found_once_the_high_watermark_has_passed_it(
    make_log: MakeLog, high_watermark: int, offset: int
) -> None:
    log = make_log()
    log.append_as_leader(timed_batch([5, 5, 9, 3]))
    log.update_high_watermark(high_watermark)
    assert list_offset(log, 9).offset == offset


def test_nothing_as_late_as_the_target_is_unknown_and_not_the_log_end(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(timed_batch([3, 5]))
    log.update_high_watermark(2)
    assert list_offset(log, 6) == ListedOffset(-1, -1, -1)


def test_every_record_of_a_batch_with_append_time_has_the_batchs_timestamp(
    make_log: MakeLog,
) -> None:
    log = make_log(message_timestamp_type="LogAppendTime")
    log.append_as_leader(timed_batch([3, 9, 5]))
    clock_of(log).advance(10)
    log.append_as_leader(timed_batch([3, 9, 5]))
    log.update_high_watermark(6)
    assert list_offset(log, 4) == ListedOffset(0, START_MS, 0)
    assert list_offset(log, START_MS + 1) == ListedOffset(3, START_MS + 10, 0)
    assert list_offset(log, SpecialTimestamp.MAX_TIMESTAMP) == ListedOffset(3, START_MS + 10, 0)


def test_old_messages_are_found_by_their_own_timestamps(make_log: MakeLog) -> None:
    log = make_log()
    rows = [(b"k", b"v", timestamp_ms) for timestamp_ms in (5, 9, 7)]
    log.append_as_follower(legacy_message_set(rows, magic=1, base_offset=0, codec=Codec.GZIP))
    log.append_as_follower(legacy_message_set(rows, magic=1, base_offset=3))
    log.update_high_watermark(6)
    assert list_offset(log, 6) == ListedOffset(1, 9, -1)
    assert list_offset(log, SpecialTimestamp.MAX_TIMESTAMP) == ListedOffset(1, 9, -1)


# --- the special timestamps ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isolation", "offset"),
    [(Isolation.LOG_END, 8), (Isolation.HIGH_WATERMARK, 6), (Isolation.TXN_COMMITTED, 2)],
)
def test_latest_is_the_bound_of_the_reader_with_the_leader_epoch(
    make_log: MakeLog, isolation: Isolation, offset: int
) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    append_transactional(log, 1, 0, count=4)
    log.append_as_leader(batch(2), leader_epoch=4)
    log.update_high_watermark(6)
    assert list_offset(log, SpecialTimestamp.LATEST, isolation) == ListedOffset(offset, -1, 4)


@pytest.mark.parametrize("special", [SpecialTimestamp.EARLIEST, SpecialTimestamp.EARLIEST_LOCAL])
def test_earliest_is_the_log_start_with_the_epoch_that_spans_it_whatever_the_high_watermark(
    make_log: MakeLog, special: SpecialTimestamp
) -> None:
    log = make_log()
    log.append_as_leader(batch(2), leader_epoch=3)
    log.append_as_leader(batch(2), leader_epoch=5)
    log.update_high_watermark(3)
    log.delete_records(3)
    assert list_offset(log, special) == ListedOffset(3, -1, 5)


def test_earliest_has_no_epoch_where_none_is_known_at_the_log_start(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(legacy_message_set([(b"k", b"v", 5)], magic=1, base_offset=0))
    assert list_offset(log, SpecialTimestamp.EARLIEST) == ListedOffset(0, -1, -1)
    log.append_as_follower(batch(base_offset=1, leader_epoch=2))
    assert list_offset(log, SpecialTimestamp.EARLIEST) == ListedOffset(0, -1, -1)


@pytest.mark.parametrize(
    "special", [SpecialTimestamp.LATEST_TIERED, SpecialTimestamp.EARLIEST_PENDING_UPLOAD]
)
def test_nothing_is_tiered(make_log: MakeLog, special: SpecialTimestamp) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    assert list_offset(log, special) == ListedOffset(-1, -1, -1)


def test_other_negative_timestamps_are_refused(make_log: MakeLog) -> None:
    with pytest.raises(StorageError, match="-7"):
        list_offset(make_log(), -7)


@given(BATCHES, CODECS, st.data())
def test_the_largest_timestamp_is_that_of_the_first_record_left_that_has_it(
    batches: list[list[int]], codec: Codec, data: st.DataObject
) -> None:
    log = filled(batches, codec)
    records = records_of(batches)
    start = data.draw(st.integers(0, len(records)))
    log.delete_records(start)
    left = records[start:]
    expected = ListedOffset()
    if left:
        largest_ms = max(timestamp_ms for _, timestamp_ms, _ in left)
        expected = first_not_older(records, largest_ms, start, len(records))
    assert list_offset(log, SpecialTimestamp.MAX_TIMESTAMP) == expected


def test_the_largest_timestamp_is_unknown_while_its_record_may_not_be_seen(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(timed_batch([5, 6]))
    log.append_as_leader(timed_batch([9]))
    log.update_high_watermark(2)
    assert list_offset(log, SpecialTimestamp.MAX_TIMESTAMP) == ListedOffset()
    found = list_offset(log, SpecialTimestamp.MAX_TIMESTAMP, Isolation.LOG_END)
    assert found == ListedOffset(2, 9, 0)


def test_a_log_without_timestamps_has_no_largest_one(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(timed_batch([-1, -1]))
    log.update_high_watermark(2)
    assert list_offset(log, SpecialTimestamp.MAX_TIMESTAMP) == ListedOffset()
