"""Offset and time index: layout, allocation, lookup, what may follow what.

The model of an index is a list of its entries.
"""

import errno
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import (
    CorruptIndexError,
    IndexFullError,
    OutOfMemoryError,
    SegmentOffsetOverflowError,
)
from stratalog.storage.files import OsFileSystem
from stratalog.storage.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from stratalog.testing import SimulatedFileSystem

BASE = 1000
OFFSETS = st.lists(st.integers(0, 400), unique=True, max_size=60).map(sorted)


def offset_index(
    files: SimulatedFileSystem | None = None, *, max_bytes: int = 800, **options: Any
) -> OffsetIndex:
    return OffsetIndex(
        files or SimulatedFileSystem(), "/1000.index", BASE, max_bytes=max_bytes, **options
    )


def time_index(
    files: SimulatedFileSystem | None = None, *, max_bytes: int = 1200, **options: Any
) -> TimeIndex:
    return TimeIndex(
        files or SimulatedFileSystem(), "/1000.timeindex", BASE, max_bytes=max_bytes, **options
    )


def filled_offset_index(relative: list[int], **options: Any) -> OffsetIndex:
    index = offset_index(**options)
    index.create()
    index.grow()
    for slot, each in enumerate(relative):
        index.append(BASE + each, 100 * (slot + 1))
    return index


def filled_time_index(relative: list[int], **options: Any) -> TimeIndex:
    """Entry n has timestamp 10 * (n + 1)."""
    index = time_index(**options)
    index.create()
    index.grow()
    for slot, each in enumerate(relative):
        index.maybe_append(10 * (slot + 1), BASE + each)
    return index


# --- what the system runs out of, and has again --------------------------------------------------


def test_a_map_that_fails_is_made_by_the_next_lookup() -> None:
    files = SimulatedFileSystem(count_resources=True)
    index = filled_offset_index([3, 7, 9], files=files)
    index.trim()
    files.fail(lambda operation: operation.kind == "map", errno.ENOMEM)
    with pytest.raises(OutOfMemoryError):
        index.lookup(BASE + 7)
    assert index.lookup(BASE + 7) == OffsetPosition(BASE + 7, 200)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE, errno.ENOMEM])
def test_entries_that_could_not_be_written_are_not_counted(error: int) -> None:
    files = SimulatedFileSystem()
    index = filled_offset_index([3, 7], files=files)
    index.write_pending()
    index.append(BASE + 9, 300)
    files.fail(lambda operation: operation.kind == "write", error)
    index.trim()
    assert (index.entries, index.last) == (2, OffsetPosition(BASE + 7, 200))
    assert files.contents(index.path) == struct.pack(">iiii", 3, 100, 7, 200)
    index.append(BASE + 9, 300)
    assert index.lookup(BASE + 20) == OffsetPosition(BASE + 9, 300)


# --- layout and allocation -----------------------------------------------------------------------


def test_an_offset_entry_is_a_relative_offset_and_a_position_of_four_bytes_each() -> None:
    files = SimulatedFileSystem()
    index = offset_index(files)
    index.append(BASE + 7, 4242)
    index.trim()
    assert files.contents("/1000.index") == struct.pack(">ii", 7, 4242)


def test_a_time_entry_is_a_timestamp_of_eight_bytes_and_a_relative_offset_of_four() -> None:
    files = SimulatedFileSystem()
    index = time_index(files)
    index.maybe_append(1_700_000_000_000, BASE + 7)
    index.trim()
    assert files.contents("/1000.timeindex") == struct.pack(">qi", 1_700_000_000_000, 7)


@pytest.mark.parametrize(
    ("make", "size_bytes", "entries_max"),
    [(OffsetIndex, 10_485_760, 1_310_720), (TimeIndex, 10_485_756, 873_813)],
)
def test_the_first_entry_gives_an_index_its_full_length_rounded_down_to_whole_entries(
    make: Callable[..., OffsetIndex | TimeIndex], size_bytes: int, entries_max: int, tmp_path: Any
) -> None:
    index = make(OsFileSystem(), str(tmp_path / "index"), 0, max_bytes=10 << 20)
    index.create()
    index.grow()
    assert (tmp_path / "index").stat().st_size == 0
    index.extend(bytes(index.entry_size - 1) + b"\1")
    index.write_pending()
    assert (tmp_path / "index").stat().st_size == size_bytes
    assert (index.entries_max, index.entries) == (entries_max, 1)
    index.close()


@pytest.mark.parametrize("fill", [filled_offset_index, filled_time_index])
def test_an_index_in_use_holds_only_zeros_behind_its_entries(
    fill: Callable[..., OffsetIndex | TimeIndex],
) -> None:
    files = SimulatedFileSystem()
    index = fill([3, 5, 9], files=files)
    second = index.content()[index.entry_size : 2 * index.entry_size]
    index.truncate_to(BASE + 5)
    index.extend(second)
    index.write_pending()
    data = files.contents(index.path)
    assert len(data) == index.entries_max * index.entry_size
    assert not any(data[2 * index.entry_size :])


@pytest.mark.parametrize("fill", [filled_offset_index, filled_time_index])
def test_trimming_cuts_the_file_behind_the_last_entry(
    fill: Callable[..., OffsetIndex | TimeIndex],
) -> None:
    files = SimulatedFileSystem()
    index = fill([3, 5, 9], files=files)
    index.trim()
    assert files.contents(index.path) == index.content()
    assert len(index.content()) == 3 * index.entry_size


@pytest.mark.parametrize(
    ("fill", "make"),
    [
        (filled_offset_index, offset_index),
        (filled_time_index, time_index),
    ],
)
@pytest.mark.parametrize("trimmed", [True, False])
@given(relative=OFFSETS)
def test_an_index_opened_again_has_the_entries_it_had(
    fill: Callable[..., Any], make: Callable[..., Any], trimmed: bool, relative: list[int]
) -> None:
    files = SimulatedFileSystem()
    index = fill([each + 1 for each in relative], files=files)
    if trimmed:
        index.trim()
    before = index.content()
    index.close()
    again = make(files, size_bytes=len(files.contents(index.path)))
    assert again.content() == before
    assert again.entries == len(relative)
    assert again.last == index.last


def test_an_index_is_not_opened_before_it_is_used() -> None:
    files = SimulatedFileSystem()
    filled_offset_index([3], files=files).close()
    index = offset_index(files, size_bytes=800)
    assert index.file_to_sync() is None
    index.lookup(BASE + 3)
    assert index.file_to_sync() is not None


def test_an_offset_index_is_full_when_no_entry_fits() -> None:
    index = filled_offset_index([1, 2], max_bytes=31)
    assert not index.is_full
    index.append(BASE + 3, 400)
    assert index.is_full
    with pytest.raises(IndexFullError):
        index.append(BASE + 4, 500)


def test_a_time_index_keeps_its_last_slot_for_the_forced_entry() -> None:
    index = filled_time_index([1], max_bytes=36)
    assert not index.is_full
    index.maybe_append(20, BASE + 2)
    assert index.is_full
    with pytest.raises(IndexFullError):
        index.maybe_append(30, BASE + 3)
    index.maybe_append(30, BASE + 3, forced=True)
    assert index.entries == 3


# --- lookup --------------------------------------------------------------------------------------


@given(OFFSETS, st.integers(-10, 420))
def test_an_offset_lookup_finds_the_largest_entry_not_above_it(
    relative: list[int], target: int
) -> None:
    index = filled_offset_index(relative)
    expected = OffsetPosition(BASE, 0)
    for slot, each in enumerate(relative):
        if each <= target:
            expected = OffsetPosition(BASE + each, 100 * (slot + 1))
    assert index.lookup(BASE + target) == expected


@given(OFFSETS, st.integers(-1, 620))
def test_a_time_lookup_finds_the_largest_timestamp_not_above_it(
    relative: list[int], target_ms: int
) -> None:
    index = filled_time_index(relative)
    expected = TimestampOffset(-1, BASE)
    for slot, each in enumerate(relative):
        if 10 * (slot + 1) <= target_ms:
            expected = TimestampOffset(10 * (slot + 1), BASE + each)
    assert index.lookup(target_ms) == expected


@pytest.mark.parametrize("target", [0, 1, 2, 1500, 1501, 3990, 3998, 3999, 4000, 9999])
def test_a_lookup_in_a_long_index_does_not_depend_on_the_warm_section(target: int) -> None:
    index = filled_offset_index(list(range(1, 4000, 2)), max_bytes=40_000)
    expected = min(target if target % 2 else target - 1, 3999)
    assert index.lookup(BASE + target).offset == (BASE if expected < 0 else BASE + expected)


def test_a_lookup_beyond_what_four_bytes_can_hold_finds_the_last_entry() -> None:
    index = filled_offset_index([1, 2, 2**31 - 1])
    assert index.lookup(BASE + 2**40).offset == BASE + 2**31 - 1


NEAR_ENTRIES = st.builds(
    lambda slot, near: 100 * slot + near, st.integers(0, 65), st.sampled_from((-1, 0, 1))
)


@given(OFFSETS, NEAR_ENTRIES)
def test_the_upper_bound_of_a_position_is_never_too_narrow(
    relative: list[int], position: int
) -> None:
    """Exact, but that a hit on the first slot yields the second, as in Kafka."""
    index = filled_offset_index(relative)
    slots = [slot for slot in range(len(relative)) if 100 * (slot + 1) >= position]
    if position == 100:
        slots = slots[1:]
    found = index.upper_bound(position)
    if not slots:
        assert found is None
    else:
        assert found == OffsetPosition(BASE + relative[slots[0]], 100 * (slots[0] + 1))


# --- what may follow what ------------------------------------------------------------------------


def test_the_first_offset_entry_may_be_the_base_offset_itself() -> None:
    index = filled_offset_index([0])
    assert index.last == OffsetPosition(BASE, 100)


@pytest.mark.parametrize("offset", [BASE + 4, BASE + 5])
def test_an_offset_entry_must_be_above_the_last(offset: int) -> None:
    index = filled_offset_index([5])
    with pytest.raises(CorruptIndexError):
        index.append(offset, 900)
    assert index.entries == 1


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31])
def test_an_offset_that_does_not_fit_four_bytes_is_refused(offset: int) -> None:
    with pytest.raises(SegmentOffsetOverflowError):
        offset_index().append(offset, 0)
    with pytest.raises(SegmentOffsetOverflowError):
        time_index().maybe_append(5, offset)


def test_a_time_entry_below_the_last_offset_is_an_error() -> None:
    index = filled_time_index([5])
    with pytest.raises(CorruptIndexError):
        index.maybe_append(99, BASE + 4)


def test_a_time_entry_below_the_last_timestamp_is_an_error() -> None:
    index = filled_time_index([5])
    with pytest.raises(CorruptIndexError):
        index.maybe_append(9, BASE + 6)


def test_a_time_entry_with_the_last_timestamp_is_silently_left_out() -> None:
    index = filled_time_index([5])
    index.maybe_append(10, BASE + 6)
    index.maybe_append(10, BASE + 6, forced=True)
    assert index.last == TimestampOffset(10, BASE + 5)
    assert index.entries == 1


def test_a_time_entry_without_a_timestamp_is_never_written() -> None:
    index = time_index()
    index.maybe_append(-1, BASE + 6)
    index.maybe_append(-1, BASE + 9, forced=True)
    assert index.entries == 0


# --- truncation and checks -----------------------------------------------------------------------


@pytest.mark.parametrize("fill", [filled_offset_index, filled_time_index])
@given(relative=OFFSETS, target=st.integers(-5, 420), more=st.integers(421, 500))
def test_truncation_drops_every_entry_at_or_above_the_offset(
    fill: Callable[..., Any], relative: list[int], target: int, more: int
) -> None:
    index = fill(relative)
    kept = [each for each in relative if each < target]
    expected = fill(kept).content()
    index.truncate_to(BASE + target)
    assert index.content() == expected
    assert index.last == fill(kept).last
    if isinstance(index, OffsetIndex):
        index.append(BASE + more, 9999)
        assert index.last == OffsetPosition(BASE + more, 9999)
        assert index.lookup(BASE + more) == index.last


@pytest.mark.parametrize("make", [offset_index, time_index])
def test_a_length_that_is_no_multiple_of_the_entry_size_is_corrupt(
    make: Callable[..., OffsetIndex | TimeIndex],
) -> None:
    files = SimulatedFileSystem()
    path = make(files).path
    files.put(path, b"\1" * 25)
    with pytest.raises(CorruptIndexError, match="multiple"):
        make(files, size_bytes=25).sanity_check()


@pytest.mark.parametrize("make", [offset_index, time_index])
def test_an_empty_index_is_sane(make: Callable[..., OffsetIndex | TimeIndex]) -> None:
    make().sanity_check()


def test_an_offset_index_that_ends_below_its_base_is_corrupt() -> None:
    files = SimulatedFileSystem()
    files.put("/1000.index", struct.pack(">ii", -3, 50))
    with pytest.raises(CorruptIndexError, match="base"):
        offset_index(files, size_bytes=8).sanity_check()


@pytest.mark.parametrize(
    "entries", [[(50, 3), (40, 9)], [(50, -3)]], ids=["time goes back", "below the base"]
)
def test_a_time_index_that_goes_back_or_below_its_base_is_corrupt(
    entries: list[tuple[int, int]],
) -> None:
    files = SimulatedFileSystem()
    files.put("/1000.timeindex", b"".join(struct.pack(">qi", *each) for each in entries))
    with pytest.raises(CorruptIndexError, match="below"):
        time_index(files, size_bytes=12 * len(entries)).sanity_check()
