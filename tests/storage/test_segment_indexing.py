"""When a segment gets index entries, and which: the model is written here
from the rules and compared byte for byte with what appending, rolling and closing leave."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    batch,
    content,
    disk_of,
    new_log,
    reopened,
    sized_batch,
    trace_since,
)

from stratalog.config import TopicConfig
from stratalog.errors import SegmentOffsetOverflowError
from stratalog.records import build_batch, read_headers
from stratalog.storage.handles import HandleCache
from stratalog.storage.index import TimestampOffset
from stratalog.storage.log import Log
from stratalog.storage.segment import Segment
from stratalog.testing import SimulatedFileSystem

MakeLog = Callable[..., Log]


class Written(NamedTuple):
    size_bytes: int
    timestamp_ms: int


WRITTEN = st.lists(
    st.builds(
        Written,
        size_bytes=st.sampled_from((70, 71, 81, 100, 124)),
        timestamp_ms=st.sampled_from((-1, 0, 5, 6, 7, 8, 9, 50)),
    ),
    max_size=40,
)


def indexes_of(batches: Sequence[Written], interval: int) -> tuple[bytes, bytes]:
    """Both indexes of a closed segment whose batches hold one record each."""
    by_offset, by_time = [], []
    position = unindexed = 0
    newest = (-1, 0)
    for offset, (size_bytes, timestamp_ms) in enumerate(batches):
        if timestamp_ms > newest[0]:
            newest = (timestamp_ms, offset)
        if unindexed > interval:
            by_offset.append((offset, position))
            if newest[0] > (by_time[-1][0] if by_time else -1):
                by_time.append(newest)
            unindexed = 0
        unindexed += size_bytes
        position += size_bytes
    if newest[0] > (by_time[-1][0] if by_time else -1):
        by_time.append(newest)
    return (
        b"".join(struct.pack(">ii", *each) for each in by_offset),
        b"".join(struct.pack(">qi", *each) for each in by_time),
    )


def append_each(log: Log, batches: Sequence[Written]) -> None:
    for size_bytes, timestamp_ms in batches:
        log.append_as_leader(sized_batch(size_bytes, timestamp_ms=timestamp_ms))


@given(WRITTEN, st.sampled_from((0, 69, 70, 140, 141, 150, 151, 400)))
def test_appends_leave_the_index_entries_that_the_rules_say(
    batches: list[Written], interval: int
) -> None:
    log = new_log(index_interval_bytes=interval)
    append_each(log, batches)
    log.close()
    found = content(log, 0, ".index"), content(log, 0, ".timeindex")
    assert found == indexes_of(batches, interval)


@given(WRITTEN.filter(bool), st.integers(1, 5))
def test_a_follower_that_gets_many_batches_at_once_indexes_each_as_the_leader_did(
    batches: list[Written], at_once: int
) -> None:
    stored = [
        sized_batch(size, timestamp_ms=timestamp_ms, base_offset=offset, leader_epoch=0)
        for offset, (size, timestamp_ms) in enumerate(batches)
    ]
    log = new_log(index_interval_bytes=150)
    for start in range(0, len(stored), at_once):
        log.append_as_follower(b"".join(stored[start : start + at_once]))
    log.close()
    found = content(log, 0, ".index"), content(log, 0, ".timeindex")
    assert found == indexes_of(batches, 150)


@given(WRITTEN, st.sampled_from((0, 150, 400)))
def test_recovery_rebuilds_the_index_that_appending_left(
    batches: list[Written], interval: int
) -> None:
    log = new_log(index_interval_bytes=interval)
    append_each(log, batches)
    log.close()
    files = disk_of(log)
    for suffix in (".index", ".timeindex"):
        files.put(f"{log.directory}/{0:020d}{suffix}", b"garbled")
    again = reopened(log, clean=False, recovery_point=0)
    again.close()
    found = content(again, 0, ".index"), content(again, 0, ".timeindex")
    assert found == indexes_of(batches, interval)


def test_the_first_batch_is_never_indexed_even_with_an_interval_of_zero(make_log: MakeLog) -> None:
    log = make_log(index_interval_bytes=0)
    log.append_as_leader(sized_batch(100))
    assert log.segments.active.offset_index.entries == 0
    log.append_as_leader(sized_batch(100))
    assert log.segments.active.offset_index.entries == 1


def test_an_entry_is_due_only_when_more_than_the_interval_has_been_written(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=200)
    index = log.segments.active.offset_index
    for _ in range(3):
        log.append_as_leader(sized_batch(100))
    assert index.entries == 0, "200 bytes are not more than 200"
    log.append_as_leader(sized_batch(100))
    assert index.entries == 1


def test_an_entry_has_the_last_offset_of_its_batch_and_the_position_where_it_starts(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=0)
    first = batch(3)
    log.append_as_leader(first)
    log.append_as_leader(batch(4))
    assert log.segments.active.offset_index.last == (6, len(first))
    assert log.segments.active.offset_index.lookup(5) == (0, 0), "inside the batch: one before"


def test_the_time_entry_names_the_last_offset_of_the_first_batch_with_the_largest_timestamp(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=0)
    for timestamp_ms in (5, 9, 9, 7):
        log.append_as_leader(batch(2, timestamp_ms=timestamp_ms))
    assert log.segments.active.time_index.last == TimestampOffset(9, 3)


@pytest.mark.parametrize("clean", [True, False])
def test_the_count_of_unindexed_bytes_starts_again_after_a_restart(
    make_log: MakeLog, clean: bool
) -> None:
    log = make_log(index_interval_bytes=150)
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    log = reopened(log, clean=clean)
    log.append_as_leader(sized_batch(100))
    assert log.segments.active.offset_index.entries == 0
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    assert log.segments.active.offset_index.entries == 1


def test_the_count_of_unindexed_bytes_starts_again_after_a_truncation(make_log: MakeLog) -> None:
    log = make_log(index_interval_bytes=150)
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    log.truncate_to(1)
    log.append_as_leader(sized_batch(100))
    assert log.segments.active.offset_index.entries == 0


def test_bytes_are_written_before_the_entries_that_point_to_them(make_log: MakeLog) -> None:
    log = make_log(index_interval_bytes=0)
    number = disk_of(log).operations
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    log.segments.active.sync_targets()
    written = [
        name.rpartition(".")[2] for kind, name in trace_since(log, number) if kind == "write"
    ]
    assert written[written.index("log") :] == ["log", "log", "index", "timeindex"]


@pytest.mark.parametrize(("delta", "allowed"), [(2**31 - 1, True), (2**31, False)])
def test_an_offset_too_far_from_the_base_is_refused_before_anything_is_written(
    delta: int, allowed: bool
) -> None:
    files = SimulatedFileSystem()
    config = TopicConfig(segment_index_bytes=1200)
    segment = Segment.create(files, "/", 1000, config, HandleCache(), now_ms=START_MS)
    data = batch(1, base_offset=1000 + delta)
    if allowed:
        segment.append(read_headers(data), [data])
    else:
        with pytest.raises(SegmentOffsetOverflowError):
            segment.append(read_headers(data), [data])
    assert files.contents(segment.path) == (data if allowed else b"")


# --- the forced entry, trims ---------------------------------------------------------------------


def test_a_roll_adds_the_time_entry_that_was_not_due_and_trims_both_indexes(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=1000)
    append_each(log, [Written(100, 5), Written(100, 9), Written(100, 7)])
    log.roll()
    assert content(log, 0, ".index") == b""
    assert content(log, 0, ".timeindex") == struct.pack(">qi", 9, 1)


@pytest.mark.parametrize("leave", [Log.roll, Log.close])
def test_no_time_entry_is_forced_where_no_batch_had_a_timestamp(
    make_log: MakeLog, leave: Callable[[Log], object]
) -> None:
    log = make_log()
    append_each(log, [Written(100, -1), Written(100, -1)])
    leave(log)
    assert content(log, 0, ".timeindex") == b""


@pytest.mark.parametrize("leave", [Log.roll, Log.close])
def test_no_time_entry_is_forced_where_the_last_one_has_that_timestamp(
    make_log: MakeLog, leave: Callable[[Log], object]
) -> None:
    log = make_log(index_interval_bytes=0)
    append_each(log, [Written(100, 5), Written(100, 9), Written(100, 9)])
    leave(log)
    assert content(log, 0, ".timeindex") == struct.pack(">qi", 9, 1)


def test_the_forced_entry_fits_an_index_that_counts_as_full(make_log: MakeLog) -> None:
    log = make_log(index_interval_bytes=150, segment_index_bytes=24)
    stored = [sized_batch(100, timestamp_ms=5 + n, base_offset=n, leader_epoch=0) for n in range(4)]
    log.append_as_follower(b"".join(stored))
    assert log.segments.active.time_index.is_full
    log.append_as_follower(sized_batch(100, base_offset=4, leader_epoch=0))
    assert content(log, 0, ".timeindex") == struct.pack(">qiqi", 7, 2, 8, 3)


def test_a_roll_makes_the_time_entry_then_trims_the_indexes_then_cuts_the_log(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=150, preallocate=True, internal_segment_bytes=5000)
    append_each(log, [Written(100, 5), Written(100, 5), Written(100, 5), Written(100, 9)])
    log.flush()
    number = disk_of(log).operations
    log.roll()
    old = [(kind, name) for kind, name in trace_since(log, number) if name.startswith("0" * 20)]
    steps = [each for each in old if each[0] != "sync"]
    assert sorted(steps[:3]) == sorted(
        [
            ("write", f"{0:020d}.timeindex"),
            ("truncate", f"{0:020d}.index"),
            ("truncate", f"{0:020d}.timeindex"),
        ]
    )
    assert steps.index(("write", f"{0:020d}.timeindex")) < steps.index(
        ("truncate", f"{0:020d}.timeindex")
    )
    assert steps[3] == ("truncate", f"{0:020d}.log")


def test_closing_trims_the_active_segments_indexes_and_cuts_its_preallocation(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=0, preallocate=True, internal_segment_bytes=5000)
    append_each(log, [Written(100, 5), Written(100, 6)])
    assert len(content(log, 0, ".log")) == 5000
    log.close()
    sizes = [len(content(log, 0, suffix)) for suffix in (".log", ".index", ".timeindex")]
    assert sizes == [200, 8, 12]


def test_closing_a_log_that_nobody_appended_to_leaves_its_indexes_as_they_were(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=0)
    append_each(log, [Written(100, 5), Written(100, 9), Written(100, 7)])
    log.close()
    before = disk_of(log).tree(log.directory)
    reopened(log).close()
    assert disk_of(log).tree(log.directory) == before


@given(st.lists(st.sampled_from((-1, 4, 5, 9)), max_size=12), st.booleans())
def test_the_largest_timestamp_is_found_again_with_the_first_batch_that_had_it(
    timestamps: list[int], clean: bool
) -> None:
    log = new_log(index_interval_bytes=100)
    append_each(log, [Written(100, each) for each in timestamps])
    expected = TimestampOffset(-1, 0)
    if any(each >= 0 for each in timestamps):
        expected = TimestampOffset(max(timestamps), timestamps.index(max(timestamps)))
    assert log.segments.active.max_timestamp() == expected
    assert reopened(log, clean=clean).segments.active.max_timestamp() == expected


def test_an_empty_batch_counts_by_its_header_alone(make_log: MakeLog) -> None:
    """Compaction leaves a bare header where a producer's last batch was; followers copy it."""
    log = make_log(index_interval_bytes=0)
    bare = build_batch([], base_offset=0, last_offset_delta=4, leader_epoch=0)
    log.append_as_follower(bare + batch(1, base_offset=5, leader_epoch=0))
    assert log.log_end_offset == 6
    assert log.segments.active.offset_index.last == (5, 61)
