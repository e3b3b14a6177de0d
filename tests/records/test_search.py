"""Index search against a plain scan, on both sides of the warm section."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.records._kernels import (
    offset_entry,
    search_offset_index,
    search_time_index,
    search_time_index_by_offset,
    time_entry,
    upper_bound_by_position,
)

# Keys grow by steps: many entries are made from few choices, so that the warm section is passed.
ENTRY_COUNTS = st.sampled_from([0, 1, 2, 3, 10, 682, 683, 684, 1024, 1025, 1026, 3000])
STEPS = st.lists(st.integers(1, 5), min_size=1, max_size=7)


def growing(count: int, steps: list[int]) -> list[int]:
    keys = []
    key = 0
    for i in range(count):
        key += steps[i % len(steps)]
        keys.append(key)
    return keys


def lower_slot(keys: list[int], target: int) -> int:
    return sum(key <= target for key in keys) - 1


@given(ENTRY_COUNTS, STEPS, st.data())
def test_the_offset_index_gives_the_largest_entry_at_or_below(
    count: int, steps: list[int], data: st.DataObject
) -> None:
    keys = growing(count, steps)
    index = b"".join(struct.pack(">ii", key, 3 * key) for key in keys)

    for _ in range(20):
        target = data.draw(st.integers(-2, 2 + max(keys, default=0)))
        assert search_offset_index(index, count, target) == lower_slot(keys, target)


@given(ENTRY_COUNTS, STEPS, st.data())
def test_the_time_index_is_searched_by_either_column(
    count: int, steps: list[int], data: st.DataObject
) -> None:
    keys = growing(count, steps)
    index = b"".join(struct.pack(">qi", key + 2**40, key) for key in keys)

    for _ in range(20):
        target = data.draw(st.integers(-2, 2 + max(keys, default=0)))
        assert search_time_index(index, count, target + 2**40) == lower_slot(keys, target)
        assert search_time_index_by_offset(index, count, target) == lower_slot(keys, target)


@given(ENTRY_COUNTS, STEPS, st.data())
def test_the_upper_bound_is_the_smallest_entry_at_or_above_but_for_the_first(
    count: int, steps: list[int], data: st.DataObject
) -> None:
    keys = growing(count, steps)
    index = b"".join(struct.pack(">ii", key, key) for key in keys)

    for _ in range(20):
        target = data.draw(st.integers(-2, 2 + max(keys, default=0)))
        slot = sum(key < target for key in keys)
        if slot == 0 and keys and keys[0] == target:
            slot = 1
        expected = slot if slot < count else -1
        assert upper_bound_by_position(index, count, target) == expected


@given(st.binary(max_size=40_000), st.integers(-(2**31), 2**31 - 1), st.data())
def test_a_garbled_index_yields_a_slot_it_has_or_none(
    index: bytes, target: int, data: st.DataObject
) -> None:
    offset_entries = data.draw(st.integers(0, len(index) // 8))
    time_entries = data.draw(st.integers(0, len(index) // 12))

    assert -1 <= search_offset_index(index, offset_entries, target) < max(offset_entries, 1)
    assert -1 <= upper_bound_by_position(index, offset_entries, target) < max(offset_entries, 1)
    assert -1 <= search_time_index(index, time_entries, target) < max(time_entries, 1)
    assert -1 <= search_time_index_by_offset(index, time_entries, target) < max(time_entries, 1)


@pytest.mark.parametrize(
    ("search", "entry_bytes"),
    [
        (search_offset_index, 8),
        (upper_bound_by_position, 8),
        (search_time_index, 12),
        (search_time_index_by_offset, 12),
    ],
)
@pytest.mark.parametrize("entries", [4, -1, 2**61])
def test_more_entries_than_the_buffer_has_are_refused(search, entry_bytes, entries) -> None:
    with pytest.raises(ValueError, match="entries"):
        search(bytes(3 * entry_bytes + 1), entries, 0)


def test_an_entry_is_read_by_its_slot_and_only_inside_the_index() -> None:
    assert offset_entry(struct.pack(">iiii", 1, 2, 3, 4), 1) == (3, 4)
    assert time_entry(struct.pack(">qiqi", 1, 2, 2**40, 4), 1) == (2**40, 4)
    for slot in (-1, 2):
        with pytest.raises(IndexError):
            offset_entry(bytes(23), slot)
        with pytest.raises(IndexError):
            time_entry(bytes(35), slot)
