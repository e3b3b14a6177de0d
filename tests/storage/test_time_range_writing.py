"""Time ranges through the life of a log: appends, rolls, restarts, cuts, cleaning, full disks."""

import errno
from typing import Any

import pytest
from cleaners import COMPACT, ORDERS, cleaning, run_round
from log_harness import (
    DIRECTORY,
    START_MS,
    disk_of,
    new_context,
    new_log,
    read_all,
    reopened,
    timed_batch,
)

from stratalog.records import Codec, Record, build_batch, read_headers
from stratalog.storage.layout import segment_file, time_ranges_file
from stratalog.storage.log import Log
from stratalog.storage.time_range_filling import FilledRanges, fill_time_ranges
from stratalog.storage.time_ranges import EARLIEST_MS, LATEST_MS, TimeRanges, range_bytes
from stratalog.testing import CrashMode, Operation, SimulatedFileSystem
from stratalog.testing.time_ranges import believed_ranges, false_ranges

# Ranges of 512 bytes, in segments of about eight of them.
RANGES: dict[str, Any] = {
    "index_interval_bytes": 128,
    "internal_segment_bytes": 4096,
    "segment_index_bytes": 12_000,
}
LARGE = RANGES | {"internal_segment_bytes": 1 << 20}


def append(log: Log, count: int, *, step_ms: int = 1, **options: Any) -> None:
    for _ in range(count):
        offset = log.log_end_offset
        late = START_MS + offset * step_ms
        log.append_as_leader(timed_batch([late + 5, late], **options))


def ranges_of(log: Log, *, is_active: bool = False) -> dict[int, TimeRanges]:
    files = log.context.files
    assert not false_ranges(files, log.directory, is_active=is_active)
    return believed_ranges(files, log.directory, is_active=is_active)


def known_bytes(ranges: TimeRanges) -> int:
    """How many of the covered bytes a span of time could pass over."""
    kept = ranges.slices_overlapping(None, EARLIEST_MS + 1, 0, ranges.covered_bytes)
    return ranges.covered_bytes - sum(end - start for start, end in kept)


def side_cars(log: Log) -> set[str]:
    own = f"{log.directory}/.stratalog"
    files = log.context.files
    if not files.exists(own):
        return set()
    return {entry.name for entry in files.list(own) if ".timeranges" in entry.name}


# --- appending, rolling, closing ----------------------------------------------------------------


def test_ranges_are_four_index_intervals_long_but_never_tiny() -> None:
    assert range_bytes(4096) == 16 * 1024
    assert range_bytes(0) == 512


def test_a_closed_log_has_ranges_that_cover_all_of_every_segment() -> None:
    log = new_log(**RANGES)
    append(log, 150)
    log.close()
    found = ranges_of(log)
    assert list(found) == log.segments.base_offsets
    assert len(found) > 2
    for segment in log.segments:
        ranges = found[segment.base_offset]
        assert ranges.covered_bytes == segment.size_bytes == known_bytes(ranges)
        assert len(ranges) == pytest.approx(segment.size_bytes / 512, abs=2)


def test_a_segment_that_was_left_has_ranges_while_its_log_goes_on() -> None:
    log = new_log(**RANGES)
    append(log, 150)
    assert list(ranges_of(log)) == log.segments.base_offsets[:-1]


def test_a_segment_of_less_than_one_range_has_none() -> None:
    log = new_log(**RANGES)
    append(log, 3)
    log.close()
    assert not side_cars(log)


def test_only_the_owners_word_lets_ranges_be_believed_that_are_not_sealed() -> None:
    log = new_log(**LARGE)
    append(log, 128 * 512 // len(timed_batch([START_MS, START_MS])) + 200)
    assert not ranges_of(log)
    (ranges,) = ranges_of(log, is_active=True).values()
    assert 60_000 < ranges.covered_bytes < log.segments.active.size_bytes
    assert known_bytes(ranges) == ranges.covered_bytes


def test_appending_goes_on_when_ranges_cannot_be_written() -> None:
    log = new_log(**RANGES)

    def is_ours(operation: Operation) -> bool:
        return ".timeranges" in operation.path or operation.path.endswith(".stratalog")

    fault = disk_of(log).fail(is_ours, errno.ENOSPC, times=2**31)
    append(log, 150)
    assert log.log_end_offset == 300
    disk_of(log).heal()
    append(log, 150)
    log.close()
    assert fault is not None
    assert 0 < len(ranges_of(log)) < len(log.segments)


@pytest.mark.parametrize("codec", Codec)
def test_a_follower_learns_the_ranges_of_what_it_need_not_decompress(codec: Codec) -> None:
    log = new_log(**RANGES)
    for offset in range(0, 200, 2):
        batch = timed_batch([START_MS + offset, START_MS], base_offset=offset, codec=codec)
        log.append_as_follower(batch)
    log.close()
    for ranges in ranges_of(log).values():
        assert known_bytes(ranges) == (ranges.covered_bytes if codec is Codec.NONE else 0)


# --- restarts -----------------------------------------------------------------------------------


def test_a_clean_restart_goes_on_with_the_ranges_that_are_there() -> None:
    log = new_log(**LARGE)
    for _ in range(4):
        append(log, 30)
        log = reopened(log)
        (ranges,) = ranges_of(log).values()
        assert known_bytes(ranges) == ranges.covered_bytes == log.segments.active.size_bytes


def test_after_a_kill_what_was_there_may_hold_anything_and_what_follows_is_known() -> None:
    log = new_log(**LARGE)
    append(log, 600)
    before = log.segments.active.size_bytes
    log = reopened(log, clean=False)
    assert not side_cars(log)
    append(log, 30)
    log.close()
    (ranges,) = ranges_of(log).values()
    assert ranges.covered_bytes == log.segments.active.size_bytes
    assert known_bytes(ranges) == ranges.covered_bytes - before


def test_what_nobody_has_looked_into_can_be_filled_in_later() -> None:
    log = new_log(**LARGE)
    append(log, 600)
    log = reopened(log, clean=False)
    append(log, 30)
    log.close()
    files = disk_of(log)
    assert fill_time_ranges(files, DIRECTORY) == FilledRanges(written=1)
    (ranges,) = ranges_of(log).values()
    assert known_bytes(ranges) == ranges.covered_bytes == log.segments.active.size_bytes
    assert fill_time_ranges(files, DIRECTORY) == FilledRanges(present=1)
    log = reopened(log)
    append(log, 30)
    log.close()
    (ranges,) = ranges_of(log).values()
    assert known_bytes(ranges) == ranges.covered_bytes == log.segments.active.size_bytes


def test_what_cannot_be_filled_in_is_told() -> None:
    log = new_log(**LARGE)
    append(log, 600)
    log = reopened(log, clean=False)
    log.abandon()
    files = disk_of(log)
    files.fail(lambda operation: ".timeranges" in operation.path, errno.ENOSPC, times=9)
    filled = fill_time_ranges(files, DIRECTORY)
    assert (filled.written, len(filled.failures)) == (0, 1)
    assert ".timeranges" in filled.failures[0]


@pytest.mark.parametrize("mode", CrashMode)
def test_ranges_that_a_power_loss_leaves_are_true(mode: CrashMode) -> None:
    log = new_log(**RANGES)
    append(log, 100)
    log.flush()
    append(log, 100)
    files = disk_of(log).after_crash(mode, 3)
    assert not false_ranges(files, DIRECTORY)
    log = reopened(log, clean=False, files=files)
    assert not false_ranges(files, DIRECTORY, is_active=True)
    if not log.is_damaged:
        append(log, 50)
    log.close()
    assert not false_ranges(files, DIRECTORY)


def test_another_owner_may_have_cut_and_appended_in_between() -> None:
    """What Apache Kafka does to a segment, and that our next start does not go on as if nothing
    had happened, nor lets a reader."""
    log = new_log(**LARGE)
    append(log, 60)
    log.close()
    files, path = disk_of(log), segment_file(DIRECTORY, 0, ".log")
    half = read_headers(files.contents(path))[30]
    changed = build_batch([Record(b"k", b"v", (), START_MS - 999)], base_offset=half.base_offset)
    file = files.open(path)
    file.truncate(half.position)
    file.write_at(half.position, [changed])
    file.close()
    assert not ranges_of(log)
    log = reopened(log, clean=False, recovery_point=0)
    assert not ranges_of(log, is_active=True)
    append(log, 30)
    log.close()
    (ranges,) = ranges_of(log).values()
    assert known_bytes(ranges) == ranges.covered_bytes - half.position - len(changed)


def test_side_cars_of_segments_that_are_gone_are_swept_away() -> None:
    log = new_log(**RANGES)
    append(log, 150)
    log.close()
    files, kept = disk_of(log), side_cars(log)
    for name in (time_ranges_file(DIRECTORY, 7), time_ranges_file(DIRECTORY, 0, ".cleaned")):
        files.put(name, b"left behind")
    files.put(f"{DIRECTORY}/.stratalog/notes", b"not ours to judge")
    reopened(log)
    assert side_cars(log) == kept
    assert files.exists(f"{DIRECTORY}/.stratalog/notes")


# --- shrinking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1, 40, 81, 118, 200, 298])
def test_a_cut_keeps_the_ranges_below_it(offset: int) -> None:
    log = new_log(**RANGES)
    append(log, 150)
    log.truncate_to(offset)
    assert not false_ranges(disk_of(log), DIRECTORY, is_active=True)
    append(log, 40, step_ms=-3)
    log.close()
    for base_offset, ranges in ranges_of(log).items():
        size_bytes = log.segments.at(base_offset).size_bytes
        assert known_bytes(ranges) == ranges.covered_bytes == size_bytes
    assert len(ranges_of(log)) >= len(log.segments) - 1


def test_a_cut_between_two_groups_of_ranges_keeps_what_was_written() -> None:
    log = new_log(**LARGE)
    append(log, 1000)
    log.truncate_to(1500)
    append(log, 10, step_ms=-3)
    log.close()
    (ranges,) = ranges_of(log).values()
    assert known_bytes(ranges) == ranges.covered_bytes == log.segments.active.size_bytes


def test_deleted_segments_take_their_side_cars_along() -> None:
    log = new_log(**RANGES)
    append(log, 150)
    log.update_high_watermark(log.log_end_offset)
    log.delete_segments(list(log.segments)[:2])
    assert side_cars(log) == {
        f"{base_offset:020d}.timeranges" for base_offset in log.segments.base_offsets[:-1]
    }
    log.truncate_fully_and_start_at(500)
    assert not side_cars(log)


def test_an_append_that_is_taken_back_leaves_true_ranges() -> None:
    context = new_context(SimulatedFileSystem())
    log = new_log(context=context, **LARGE)
    append(log, 40)
    end = log.log_end_offset
    append(log, 5, step_ms=-1000)
    log.truncate_to(end)
    assert len(read_all(log)) == 40
    log.close()
    (ranges,) = ranges_of(log).values()
    assert ranges.covered_bytes == log.segments.active.size_bytes
    # Of the range that was cut through, the old bounds are what is known.
    assert min(ranges.min_ms[:-1]) > START_MS - 1000


# --- cleaning -----------------------------------------------------------------------------------


def test_a_cleaned_segment_has_ranges_of_its_own() -> None:
    config = COMPACT.altered(internal_segment_bytes=3000, segment_index_bytes=1200)
    with cleaning(topic=config) as logs:
        log = logs.create(ORDERS)
        for number in range(120):
            row = Record(b"key-%d" % (number % 40), b"v%d" % number, (), START_MS - number)
            log.append_as_leader(build_batch([row], codec=list(Codec)[number % 5]))
        log.roll()
        log.update_high_watermark(log.log_end_offset)
        before = ranges_of(log)
        run_round(logs)
        after = ranges_of(log)
        long = [each.base_offset for each in log.segments if each.size_bytes >= 512]
        assert list(after) == long
        assert sum(map(len, after.values())) < sum(map(len, before.values()))
        for base_offset, ranges in after.items():
            assert ranges.covered_bytes == log.segments.at(base_offset).size_bytes
            assert known_bytes(ranges) == ranges.covered_bytes
            assert max(ranges.max_ms) < LATEST_MS
        assert not any(name.endswith(".cleaned") for name in side_cars(log))
