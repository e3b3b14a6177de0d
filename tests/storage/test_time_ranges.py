"""What becomes of a segment and of its time ranges, and whether a reader is ever misled."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import segment_file, time_ranges_file
from stratalog.storage.time_range_writing import write_time_ranges
from stratalog.storage.time_ranges import read_time_ranges
from stratalog.testing import SimulatedFileSystem
from stratalog.testing.time_ranges import believed_ranges, false_ranges

DIRECTORY = "/logs/t-0"
START_MS = 1_700_000_000_000
RANGE_BYTES = 200


def one_record(offset: int, timestamp_ms: int) -> bytes:
    """A batch whose size does not depend on its timestamp."""
    return build_batch([Record(b"k", b"v", (), timestamp_ms)], base_offset=offset, leader_epoch=0)


def batches_at(timestamps: list[int], first_offset: int = 0) -> list[bytes]:
    return [one_record(first_offset + n, START_MS + t) for n, t in enumerate(timestamps)]


SIZE = len(one_record(0, START_MS))
times = st.lists(st.integers(0, 50), min_size=8, max_size=24)


def disk(batches: list[bytes]) -> SimulatedFileSystem:
    """A segment and its ranges, on a disk whose clock stands still: no modification time tells one
    write from another."""
    files = SimulatedFileSystem()
    files.make_directory("/logs")
    files.make_directory(DIRECTORY)
    files.put(log_path(), b"".join(batches))
    assert write_time_ranges(files, DIRECTORY, 0, range_bytes=RANGE_BYTES)
    return files


def log_path(directory: str = DIRECTORY) -> str:
    return segment_file(directory, 0, ".log")


def believes(files: FileSystem, directory: str = DIRECTORY, **options: bool) -> bool:
    return bool(believed_ranges(files, directory, **options))


def cut_and_append(files: FileSystem, path: str, size_bytes: int, more: list[bytes]) -> None:
    file = files.open(path)
    file.truncate(size_bytes)
    if more:
        file.write_at(size_bytes, [b"".join(more)])
    file.close()


def replace_log(files: FileSystem, path: str, content: bytes) -> None:
    """As a cleaner does: another file, which gets the modification time of the old one, in whole
    milliseconds."""
    entry = files.stat(path)
    assert entry is not None
    file = files.open(path + ".swap", create=True)
    file.write_at(0, [content])
    file.close()
    files.set_modified(path + ".swap", entry.modified_ms)
    files.rename(path + ".swap", path)


# --- while nothing happens to the segment -------------------------------------------------------


@given(times, st.integers(-5, 55), st.integers(-5, 55), st.data())
def test_no_record_of_the_span_is_passed_over_and_ranges_outside_of_it_are(
    timestamps: list[int], low: int, high: int, data: st.DataObject
) -> None:
    files = disk(batches_at(timestamps))
    start = data.draw(st.integers(0, len(timestamps)), "start") * SIZE
    end = data.draw(st.integers(start // SIZE, len(timestamps)), "end") * SIZE
    (ranges,) = believed_ranges(files, DIRECTORY).values()
    assert ranges.covered_bytes == len(timestamps) * SIZE
    kept = ranges.slices_overlapping(START_MS + low, START_MS + high, start, end)
    for number, timestamp_ms in enumerate(timestamps):
        position = number * SIZE
        if low <= timestamp_ms <= high and start <= position < end:
            assert any(a <= position < b for a, b in kept)
    for a, b in kept:
        assert start <= a < b <= end
        assert a % SIZE == 0 == b % SIZE
    everything = [(start, end)] if start < end else []
    assert ranges.slices_overlapping(None, None, start, end) == everything
    assert not ranges.slices_overlapping(START_MS + 51, None, start, end)
    assert not ranges.slices_overlapping(None, START_MS - 1, start, end)


def test_a_segment_shorter_than_a_range_has_none() -> None:
    files = SimulatedFileSystem()
    files.make_directory("/logs")
    files.make_directory(DIRECTORY)
    files.put(log_path(), one_record(0, START_MS))
    assert not write_time_ranges(files, DIRECTORY, 0, range_bytes=RANGE_BYTES)
    assert not believes(files)


def test_where_batches_are_damaged_the_rest_may_hold_anything() -> None:
    batches = batches_at(list(range(12)))
    broken = bytearray(b"".join(batches))
    broken[6 * SIZE + 64] ^= 1
    files = disk([bytes(broken)])
    (ranges,) = believed_ranges(files, DIRECTORY).values()
    assert ranges.covered_bytes == 6 * SIZE
    kept = ranges.slices_overlapping(None, START_MS - 1, 0, 12 * SIZE)
    assert kept == [(6 * SIZE, 12 * SIZE)]


# --- whatever happens to the segment ------------------------------------------------------------


@st.composite
def mishaps(draw: st.DrawFn) -> Callable[[SimulatedFileSystem, int], None]:
    """Something that somebody else does to a segment of so many batches."""
    kinds = ("cut", "cut and append", "overwrite", "replace", "compact", "grow")
    kind = draw(st.sampled_from(kinds))
    at = draw(st.integers(0, 23))
    others = draw(times)

    def happen(files: SimulatedFileSystem, count: int) -> None:
        first = at % count
        if kind == "cut":
            cut_and_append(files, log_path(), first * SIZE, [])
        elif kind == "cut and append":
            more = (others * 3)[: count - first]
            cut_and_append(files, log_path(), first * SIZE, batches_at(more, first))
        elif kind == "overwrite":
            file = files.open(log_path())
            file.write_at(first * SIZE, [one_record(first, START_MS + others[0])])
            file.close()
        elif kind == "replace":
            # The last batch stays, so that a look at the end would tell nothing.
            before = files.contents(log_path())
            content = b"".join(batches_at((others * 3)[: count - 1])) + before[-SIZE:]
            replace_log(files, log_path(), content)
        elif kind == "compact":
            before = files.contents(log_path())
            replace_log(files, log_path(), before[: first * SIZE] + before[(first + 1) * SIZE :])
        else:
            cut_and_append(files, log_path(), count * SIZE, batches_at(others, count))

    return happen


@given(times, st.lists(mishaps(), max_size=3))
def test_ranges_that_are_believed_are_true_whatever_happened_to_the_segment(
    timestamps: list[int], mishaps: list[Callable[[SimulatedFileSystem, int], None]]
) -> None:
    files = disk(batches_at(timestamps))
    for happen in mishaps:
        count = len(files.contents(log_path())) // SIZE
        if count:
            happen(files, count)
    assert not false_ranges(files, DIRECTORY)
    if mishaps:
        assert not believes(files)


@given(times, st.data())
def test_a_garbled_side_car_tells_the_truth_or_nothing(
    timestamps: list[int], data: st.DataObject
) -> None:
    files = disk(batches_at(timestamps))
    path = time_ranges_file(DIRECTORY, 0)
    content = bytearray(files.contents(path))
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans(), "flip"):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        else:
            start = data.draw(st.integers(0, len(content)))
            content[start:] = data.draw(st.binary(max_size=40))
        content = content or bytearray(1)
    files.put(path, bytes(content))
    assert not false_ranges(files, DIRECTORY)
    assert not false_ranges(files, DIRECTORY, is_active=True)


def test_a_side_car_with_a_wrong_byte_anywhere_is_not_believed() -> None:
    files = disk(batches_at(list(range(20))))
    path = time_ranges_file(DIRECTORY, 0)
    content = files.contents(path)
    for position in range(len(content)):
        files.put(path, content)
        files.flip(path, position, 0x10)
        assert not believes(files), position


def test_a_log_that_lost_its_end_and_kept_its_time_is_not_believed() -> None:
    """A power loss may take bytes that were written before the mark was set."""
    files = disk(batches_at(list(range(20))))
    entry = files.stat(log_path())
    assert entry is not None
    cut_and_append(files, log_path(), 20 * SIZE - 1, [])
    files.set_modified(log_path(), entry.modified_ms, nanoseconds=entry.modified_ns % 1_000_000)
    assert not believes(files)


def test_a_side_car_that_was_cut_short_is_not_believed() -> None:
    files = disk(batches_at(list(range(20))))
    path = time_ranges_file(DIRECTORY, 0)
    content = files.contents(path)
    for kept in range(len(content)):
        files.put(path, content[:kept])
        assert not believes(files)
    files.put(path, content + b"what follows a seal that holds does not count")
    assert believes(files)


def test_a_side_car_of_another_segment_is_not_believed() -> None:
    files = disk(batches_at(list(range(20))))
    other = segment_file(DIRECTORY, 20, ".log")
    files.put(other, b"".join(batches_at(list(range(20)), 20)))
    entry = files.stat(log_path())
    assert entry is not None
    files.set_modified(other, entry.modified_ms, nanoseconds=entry.modified_ns % 1_000_000)
    files.put(time_ranges_file(DIRECTORY, 20), files.contents(time_ranges_file(DIRECTORY, 0)))
    assert list(believed_ranges(files, DIRECTORY)) == [0]


def test_nothing_is_believed_of_a_file_that_came_in_the_place_of_the_one_that_was_opened() -> None:
    """A cleaner may swap between a reader's look at the directory and its look at the ranges."""
    files = disk(batches_at(list(range(20))))
    file = files.open(log_path(), writable=False)
    found = read_time_ranges(files, DIRECTORY, 0, log_file=file, log_size=20 * SIZE, inode=77)
    assert found is None
    assert read_time_ranges(files, DIRECTORY, 0, log_file=file, log_size=20 * SIZE) is not None


def test_without_a_side_car_or_a_log_there_is_nothing_to_believe() -> None:
    files = disk(batches_at(list(range(20))))
    file = files.open(log_path(), writable=False)
    files.unlink(log_path())
    assert read_time_ranges(files, DIRECTORY, 0, log_file=file, log_size=20 * SIZE) is None
    files.unlink(time_ranges_file(DIRECTORY, 0))
    assert read_time_ranges(files, DIRECTORY, 0, log_file=file, log_size=20 * SIZE) is None


# --- on a real disk -----------------------------------------------------------------------------


@pytest.fixture
def partition(tmp_path: Path) -> str:
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches_at(list(range(20)))))
    assert write_time_ranges(OsFileSystem(), str(directory), 0, range_bytes=RANGE_BYTES)
    return str(directory)


def test_the_kernel_takes_the_mark_away_with_every_write_even_at_the_same_moment(
    partition: str,
) -> None:
    files = OsFileSystem()
    for number in range(50):
        assert believes(files, partition)
        descriptor = os.open(log_path(partition), os.O_RDWR)
        os.pwrite(descriptor, one_record(3, START_MS + number % 7), 3 * SIZE)
        os.close(descriptor)
        assert not believes(files, partition)
        assert write_time_ranges(files, partition, 0, range_bytes=RANGE_BYTES)


def test_cutting_and_appending_take_the_mark_away(partition: str) -> None:
    files = OsFileSystem()
    cut_and_append(files, log_path(partition), 12 * SIZE, batches_at([7] * 8, 12))
    assert not believes(files, partition)


def test_a_cleaners_file_of_the_same_size_and_time_has_no_mark(partition: str) -> None:
    files = OsFileSystem()
    replace_log(files, log_path(partition), Path(log_path(partition)).read_bytes())
    assert not believes(files, partition)


def test_a_copy_that_keeps_times_keeps_its_ranges_and_another_copy_loses_them(
    partition: str, tmp_path: Path
) -> None:
    files = OsFileSystem()
    shutil.copytree(partition, tmp_path / "kept" / "t-0")
    shutil.copytree(partition, tmp_path / "fresh" / "t-0", copy_function=shutil.copyfile)
    assert believes(files, str(tmp_path / "kept" / "t-0"))
    assert not false_ranges(files, str(tmp_path / "kept" / "t-0"))
    assert not believes(files, str(tmp_path / "fresh" / "t-0"))


def test_renaming_and_permissions_leave_the_mark_where_it_is(
    partition: str, tmp_path: Path
) -> None:
    path = Path(log_path(partition))
    path.chmod(0o600)
    path.rename(path.with_suffix(".swap"))
    path.with_suffix(".swap").rename(path)
    Path(partition).rename(tmp_path / "u-0")
    assert believes(OsFileSystem(), str(tmp_path / "u-0"))


def test_the_millisecond_of_the_modification_time_stays(partition: str) -> None:
    files = OsFileSystem()
    os.utime(log_path(partition), ns=(0, 1_700_000_000_123_456_789))
    assert write_time_ranges(files, partition, 0, range_bytes=RANGE_BYTES)
    modified_ns = Path(log_path(partition)).stat().st_mtime_ns
    assert modified_ns // 1_000_000 == 1_700_000_000_123
    assert modified_ns != 1_700_000_000_123_456_789
    assert len(read_headers(Path(log_path(partition)).read_bytes())) == 20
