"""One segment: finding batches by offset, timestamps, cutting, deleting, names.

Segments here are filled as a follower fills them, with gaps.
"""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import START_MS, batch, content, disk_of, names, new_log, reopened, sized_batch

from stratalog.config import TopicConfig
from stratalog.records import BatchHeader, Record, build_batch, read_headers
from stratalog.storage.handles import HandleCache
from stratalog.storage.index import TimestampOffset
from stratalog.storage.log import Log
from stratalog.storage.segment import Segment
from stratalog.storage.segments import Segments
from stratalog.testing import SimulatedFileSystem

MakeLog = Callable[..., Log]
CONFIG = TopicConfig(segment_index_bytes=1200, index_interval_bytes=100)


@st.composite
def runs(draw: st.DrawFn) -> list[bytes]:
    """Batches one after the other, with gaps between some of them."""
    run, offset = [], 0
    steps = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(-1, 9))
    for gap, count, timestamp_ms in draw(st.lists(steps, min_size=1, max_size=10)):
        run.append(batch(count, timestamp_ms=timestamp_ms, base_offset=offset + gap))
        offset += gap + count
    return run


RUNS = runs()


def new_segment(base_offset: int = 0, *, files: SimulatedFileSystem | None = None) -> Segment:
    return Segment.create(
        files or SimulatedFileSystem(), "/", base_offset, CONFIG, HandleCache(), now_ms=START_MS
    )


def filled(run: list[bytes]) -> tuple[Segment, list[BatchHeader]]:
    segment = new_segment()
    for data in run:
        segment.append(read_headers(data), [data])
    return segment, read_headers(b"".join(run))


# --- finding -------------------------------------------------------------------------------------


@given(RUNS)
def test_the_batch_found_is_the_first_that_ends_at_the_offset_or_later(run: list[bytes]) -> None:
    segment, headers = filled(run)
    for offset in range(headers[-1].next_offset + 2):
        expected = [h.position for h in headers if h.last_offset >= offset]
        found = segment.find(offset)
        assert (None if found is None else found.position) == (expected[0] if expected else None)


@given(RUNS, st.binary(max_size=64), st.integers(0, 80))
def test_large_batches_are_found_by_entries_of_their_own_and_never_by_garbled_ones(
    run: list[bytes], garble: bytes, place: int
) -> None:
    every_batch = TopicConfig(segment_index_bytes=1200, index_interval_bytes=0)
    files = SimulatedFileSystem()
    segment = Segment.create(files, "/", 0, every_batch, HandleCache(), now_ms=START_MS)
    for data in run:
        segment.append(read_headers(data), [data])
    headers = read_headers(b"".join(run))
    segment.offset_index.trim()
    content = bytearray(segment.offset_index.content())
    content[place : place + len(garble)] = garble
    segment.offset_index.rebuild(bytes(content[: len(content) // 8 * 8]))
    for offset in [*range(headers[-1].next_offset + 2)] * 2:
        expected = [h.position for h in headers if h.last_offset >= offset]
        found = segment.find(offset)
        assert (None if found is None else found.position) == (expected[0] if expected else None)


@given(RUNS)
def test_walking_a_segment_gives_every_batch_in_order(run: list[bytes]) -> None:
    segment, headers = filled(run)
    assert [h.position for h in segment.headers()] == [h.position for h in headers]
    assert [segment.read_batch(h) for h in segment.headers()] == run
    assert segment.next_offset() == headers[-1].next_offset


def test_a_batch_larger_than_any_read_is_found_and_walked_over() -> None:
    large = build_batch([Record(b"k", bytes(700_000), (), 5)], base_offset=1)
    segment, headers = filled([batch(), large, batch(base_offset=2)])
    assert [h.base_offset for h in segment.headers()] == [0, 1, 2]
    found = segment.find(2)
    assert found is not None
    assert found.position == headers[2].position


def test_an_empty_segment_holds_nothing_and_ends_at_its_base() -> None:
    segment = new_segment(77)
    assert segment.find(77) is None
    assert segment.next_offset() == 77
    assert list(segment.headers()) == []
    assert segment.first_timestamp_ms() == -1


def test_an_index_entry_for_a_whole_append_at_its_first_batch_is_as_good() -> None:
    """Older releases of Kafka indexed an append of several batches so."""
    segment, headers = filled([sized_batch(100, base_offset=n) for n in range(6)])
    assert headers[2].position == 200
    segment.offset_index.rebuild(struct.pack(">ii", 5, 200))
    for offset in range(6):
        found = segment.find(offset)
        assert found is not None
        assert found.base_offset == offset


def test_the_base_offset_may_lie_below_the_first_batch(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(batch(2, base_offset=40, leader_epoch=0))
    assert log.segments.base_offsets == [0]
    found = log.segments.active.find(0)
    assert found is not None
    assert found.base_offset == 40


# --- timestamps ----------------------------------------------------------------------------------


@given(RUNS)
def test_the_largest_timestamp_comes_with_the_last_offset_of_its_first_batch(
    run: list[bytes],
) -> None:
    segment, headers = filled(run)
    largest_ms = max(h.max_timestamp_ms for h in headers)
    first = next(h.last_offset for h in headers if h.max_timestamp_ms == largest_ms)
    expected = TimestampOffset(largest_ms, first if largest_ms >= 0 else 0)
    assert segment.max_timestamp() == expected
    assert segment.first_timestamp_ms() == headers[0].max_timestamp_ms
    assert segment.largest_timestamp_ms() == (
        largest_ms if largest_ms >= 0 else segment.modified_ms()
    )


def test_a_segment_without_timestamps_is_as_old_as_its_file(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(timestamp_ms=-1))
    log.roll()
    log.close()
    disk_of(log).set_modified(f"{log.directory}/{0:020d}.log", 4711)
    assert reopened(log).segments.first.largest_timestamp_ms() == 4711


FORGED = pytest.mark.xfail(strict=True, reason="an entry that agrees with its batch is believed")


@pytest.mark.parametrize("timestamp_ms", [pytest.param(5, marks=FORGED), 7])
def test_a_garbled_time_index_does_not_make_a_segment_older(timestamp_ms: int) -> None:
    """Retention goes by it: 5 is what the batch at that offset says, 7 is what none does."""
    log = new_log()
    log.append_as_leader(batch(timestamp_ms=9))
    log.append_as_leader(batch(timestamp_ms=5))
    log.roll()
    log.close()
    entry = struct.pack(">qi", timestamp_ms, 1)
    disk_of(log).put(f"{log.directory}/{0:020d}.timeindex", entry)
    assert reopened(log).segments.first.largest_timestamp_ms() == 9


def time_entries(segment: Segment) -> list[TimestampOffset]:
    return [segment.time_index.entry(slot) for slot in range(segment.time_index.entries)]


# --- cutting -------------------------------------------------------------------------------------


@given(RUNS, st.data())
def test_cutting_keeps_the_batches_that_end_below_the_offset(
    run: list[bytes], data: st.DataObject
) -> None:
    segment, headers = filled(run)
    offset = data.draw(st.integers(0, headers[-1].next_offset))
    segment.truncate_to(offset, now_ms=0)
    kept = [b for b, h in zip(run, headers, strict=True) if h.last_offset < offset]
    fresh, _ = filled(kept) if kept else (new_segment(), [])
    assert segment.file().read_at(0, 10**6) == b"".join(kept)
    assert segment.size_bytes == len(b"".join(kept))
    assert segment.offset_index.content() == fresh.offset_index.content()
    assert all(entry.offset < offset for entry in time_entries(segment))
    assert segment.max_timestamp() == fresh.max_timestamp()
    assert segment.first_timestamp_ms() == fresh.first_timestamp_ms()
    assert segment.next_offset() == fresh.next_offset()


# --- names, deletion -----------------------------------------------------------------------------


def test_files_are_named_after_the_base_offset_with_twenty_digits() -> None:
    files = SimulatedFileSystem()
    new_segment(4711, files=files)
    stem = "00000000000000004711"
    assert set(files.tree("/")) == {stem + ".log", stem + ".index", stem + ".timeindex"}


def test_a_deleted_segments_files_are_renamed_in_order_and_unlinked_when_due(
    make_log: MakeLog,
) -> None:
    log = make_log(file_delete_delay_ms=100)
    log.append_as_leader(batch())
    log.roll()
    number = disk_of(log).operations
    log.delete_segments([log.segments.first])
    renamed = [o.path.rpartition("/")[2] for o in disk_of(log).trace[number:] if o.kind == "rename"]
    assert renamed == [f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")]
    log.run_deletes(START_MS + 99)
    assert f"{0:020d}.log.deleted" in names(log)
    log.run_deletes(START_MS + 100)
    assert not any(".deleted" in name for name in names(log))


# --- the ordered map -----------------------------------------------------------------------------


@given(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=12), st.integers(-2, 65))
def test_segments_are_found_by_the_offsets_they_own(found: list[int], offset: int) -> None:
    files = SimulatedFileSystem()
    segments = Segments()
    for base_offset in found:
        segments.add(new_segment(base_offset, files=files))
    bases = sorted(found)
    below = [base for base in bases if base <= offset]
    above = [base for base in bases if base > offset]
    floor = segments.floor(offset)
    assert segments.base_offsets == bases
    assert (floor.base_offset if floor else None) == (below[-1] if below else None)
    assert [s.base_offset for s in segments.above(offset)] == above
    assert [s.base_offset for s in segments.from_floor(offset)] == below[-1:] + above
    assert (segments.first.base_offset, segments.active.base_offset) == (bases[0], bases[-1])
    higher = segments.higher(segments.first)
    assert (higher.base_offset if higher else None) == (bases[1] if len(bases) > 1 else None)


def test_a_segment_added_at_a_known_base_takes_the_place_of_the_old_one() -> None:
    files = SimulatedFileSystem()
    old, new = new_segment(5, files=files), new_segment(5, files=files)
    segments = Segments([old])
    segments.add(new)
    assert list(segments) == [new]
    segments.remove(new)
    assert len(segments) == 0


def test_closed_segments_hold_no_more_files_than_the_cache_allows() -> None:
    log = new_log(internal_segment_bytes=100)
    log.context.handles.capacity = 3
    for _ in range(10):
        log.append_as_leader(sized_batch(100))
    for offset in range(10):
        assert log.segments.floor(offset).find(offset) is not None  # type: ignore[union-attr]
    assert len(log.context.handles) <= 3
    assert len(content(log, 0, ".log")) == 100
