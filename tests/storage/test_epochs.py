"""Leader epochs."""

import errno
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stratalog.errors import DiskError
from stratalog.storage.checkpoint import EpochEntry, read_epochs
from stratalog.storage.epochs import EpochEnd, LeaderEpochs
from stratalog.testing import SimulatedFileSystem

PATH = "/leader-epoch-checkpoint"
UNDEFINED = EpochEnd(-1, -1)

ENTRIES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 50)), max_size=12)


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs(SimulatedFileSystem(), PATH, [])
    for epoch, start_offset in entries:
        made.assign(epoch, start_offset)
    return made


def pairs(known: LeaderEpochs) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in known.entries]


def on_disk(known: LeaderEpochs) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in read_epochs(known._files, PATH)]


# --- assign ---------------------------------------------------------------------------------------


@given(ENTRIES)
def test_epochs_and_their_start_offsets_always_grow(entries: list[tuple[int, int]]) -> None:
    known = pairs(epochs(*entries))
    for one, next_one in pairwise(known):
        assert one[0] < next_one[0]
        assert one[1] < next_one[1]


@given(ENTRIES, st.integers(0, 20), st.integers(0, 50))
def test_an_assigned_epoch_removes_what_it_contradicts_and_nothing_else(
    entries: list[tuple[int, int]], epoch: int, start_offset: int
) -> None:
    known = epochs(*entries)
    before = pairs(known)
    known.assign(epoch, start_offset)
    if before and before[-1][0] == epoch and before[-1][1] <= start_offset:
        assert pairs(known) == before
    else:
        kept = [each for each in before if each[0] < epoch and each[1] < start_offset]
        assert pairs(known) == [*kept, (epoch, start_offset)]


def test_the_latest_epoch_again_at_a_later_offset_changes_nothing() -> None:
    known = epochs((0, 0), (2, 10))
    known.assign(2, 15)
    known.assign(2, 10)
    assert pairs(known) == [(0, 0), (2, 10)]


def test_the_latest_epoch_again_at_an_earlier_offset_moves_its_start() -> None:
    known = epochs((0, 0), (2, 10))
    known.assign(2, 5)
    assert pairs(known) == [(0, 0), (2, 5)]


def test_a_lower_epoch_is_not_refused_and_removes_the_higher_ones() -> None:
    known = epochs((0, 0), (3, 10), (5, 20))
    known.assign(1, 30)
    assert pairs(known) == [(0, 0), (1, 30)]


def test_a_known_epoch_is_never_listed_twice() -> None:
    known = epochs((0, 0), (3, 10), (5, 20))
    known.assign(3, 15)
    assert pairs(known) == [(0, 0), (3, 15)]


def test_an_epoch_that_wrote_nothing_is_replaced_by_the_next_at_the_same_offset() -> None:
    known = epochs((0, 0), (2, 23))
    known.assign(4, 23)
    assert pairs(known) == [(0, 0), (4, 23)]


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_a_negative_epoch_or_offset_is_a_mistake_of_the_caller(entry: tuple[int, int]) -> None:
    with pytest.raises(AssertionError):
        epochs(entry)


# --- questions ------------------------------------------------------------------------------------


@given(ENTRIES, st.integers(-1, 21))
def test_an_epoch_ends_where_the_first_higher_one_starts(
    entries: list[tuple[int, int]], epoch: int
) -> None:
    known = epochs(*entries)
    held = pairs(known)
    higher = [each for each in held if each[0] > epoch]
    lower = [each for each in held if each[0] <= epoch]
    if epoch == -1 or not held:
        expected = UNDEFINED
    elif epoch == held[-1][0]:
        expected = EpochEnd(epoch, 99)
    elif not higher:
        expected = UNDEFINED
    else:
        expected = EpochEnd(lower[-1][0] if lower else epoch, higher[0][1])
    assert known.end_offset_for(epoch, 99) == expected


def test_the_end_offsets_of_known_unknown_and_undefined_epochs() -> None:
    known = epochs((2, 10), (4, 20), (6, 30))
    assert known.end_offset_for(-1, 40) == UNDEFINED
    assert known.end_offset_for(6, 40) == EpochEnd(6, 40)
    assert known.end_offset_for(7, 40) == UNDEFINED
    assert known.end_offset_for(0, 40) == EpochEnd(0, 10)
    assert known.end_offset_for(5, 40) == EpochEnd(4, 30)
    assert known.end_offset_for(4, 40) == EpochEnd(4, 30)
    assert epochs().end_offset_for(0, 40) == UNDEFINED


@given(ENTRIES, st.integers(0, 60))
def test_an_offset_belongs_to_the_greatest_epoch_that_starts_at_or_before_it(
    entries: list[tuple[int, int]], offset: int
) -> None:
    known = epochs(*entries)
    started = [epoch for epoch, start in pairs(known) if start <= offset]
    assert known.epoch_for_offset(offset) == max(started, default=-1)
    assert known.latest_epoch == max((epoch for epoch, _ in pairs(known)), default=-1)


# --- truncation -----------------------------------------------------------------------------------


@given(ENTRIES, st.integers(0, 60))
@example([(0, 0), (1, 10)], 10)
def test_truncation_from_the_end_drops_epochs_that_start_at_or_behind_it(
    entries: list[tuple[int, int]], offset: int
) -> None:
    known = epochs(*entries)
    expected = [each for each in pairs(known) if each[1] < offset]
    known.truncate_from_end(offset)
    assert pairs(known) == expected


@given(ENTRIES, st.integers(0, 60))
@example([(0, 0), (1, 10)], 10)
def test_truncation_from_the_start_keeps_the_epoch_of_every_offset_that_is_left(
    entries: list[tuple[int, int]], offset: int
) -> None:
    known = epochs(*entries)
    held = pairs(known)
    before = [known.epoch_for_offset(each) for each in range(offset, 61)]
    known.truncate_from_start(offset)
    assert [known.epoch_for_offset(each) for each in range(offset, 61)] == before
    dropped = [each for each in held if each[1] <= offset]
    kept = [each for each in held if each[1] > offset]
    assert pairs(known) == ([(dropped[-1][0], offset)] if dropped else []) + kept


# --- the file -------------------------------------------------------------------------------------


def test_an_assigned_epoch_is_durable_when_assign_returns() -> None:
    known = epochs((0, 0), (3, 10))
    assert known._files.is_synced(PATH)  # type: ignore[attr-defined]
    assert on_disk(known) == [(0, 0), (3, 10)]


def test_an_assign_that_changes_nothing_writes_nothing() -> None:
    files = SimulatedFileSystem()
    known = LeaderEpochs(files, PATH, [])
    known.assign(1, 0)
    before = files.operations
    known.assign(1, 7)
    assert files.operations == before


def test_clearing_is_durable_when_it_returns() -> None:
    known = epochs((0, 0))
    known.clear()
    assert pairs(known) == on_disk(known) == []
    before = known._files.operations  # type: ignore[attr-defined]
    known.clear()
    assert known._files.operations == before  # type: ignore[attr-defined]


def test_a_truncation_is_written_by_the_next_flush_and_only_if_it_removed_something() -> None:
    known = epochs((0, 0), (3, 10))
    known.truncate_from_end(11)
    known.truncate_from_start(0)
    assert not known.is_dirty
    known.truncate_from_end(10)
    assert known.is_dirty
    assert on_disk(known) == [(0, 0), (3, 10)]
    known.flush()
    assert on_disk(known) == [(0, 0)]
    before = known._files.operations  # type: ignore[attr-defined]
    known.flush()
    assert known._files.operations == before  # type: ignore[attr-defined]


def test_a_truncation_waits_no_longer_than_for_the_next_assign() -> None:
    known = epochs((0, 0), (3, 10))
    known.truncate_from_end(10)
    known.assign(5, 12)
    assert on_disk(known) == [(0, 0), (5, 12)]
    assert not known.is_dirty


def test_an_epoch_that_could_not_be_written_is_not_assigned() -> None:
    files = SimulatedFileSystem()
    known = LeaderEpochs(files, PATH, [])
    known.assign(0, 0)
    files.fail(lambda operation: operation.kind == "sync", errno.EIO)
    with pytest.raises(DiskError):
        known.assign(1, 5)
    assert pairs(known) == on_disk(known) == [(0, 0)]


@given(ENTRIES)
def test_the_file_is_loaded_as_it_was_left(entries: list[tuple[int, int]]) -> None:
    known = epochs(*entries)
    known.flush()
    assert LeaderEpochs.load(known._files, PATH).entries == known.entries


def test_entries_of_a_file_that_do_not_grow_are_dropped_on_loading() -> None:
    files = SimulatedFileSystem()
    files.put(PATH, b"0\n3\n5 50\n3 10\n4 20\n")
    loaded = LeaderEpochs.load(files, PATH)
    assert loaded.entries == (EpochEntry(3, 10), EpochEntry(4, 20))


# --- an epoch that has no batch yet ---------------------------------------------------------------


def test_an_epoch_for_later_waits_in_memory_for_the_first_append() -> None:
    known = epochs((0, 0))
    before = known._files.operations  # type: ignore[attr-defined]
    known.assign_later(1, 5)
    known.flush()
    assert known._files.operations == before  # type: ignore[attr-defined]
    assert known.latest_epoch == 1
    known.flush_before_append()
    assert known._files.is_synced(PATH)  # type: ignore[attr-defined]
    assert on_disk(known) == [(0, 0), (1, 5)]


def test_assigning_an_epoch_again_writes_it_if_it_was_left_for_later() -> None:
    known = epochs((0, 0))
    known.assign_later(1, 5)
    known.assign(1, 5)
    assert on_disk(known) == [(0, 0), (1, 5)]


def test_an_epoch_that_the_file_names_already_is_not_written_again() -> None:
    loaded = LeaderEpochs.load(epochs((0, 0), (1, 5))._files, PATH)
    loaded.truncate_from_end(5)
    assert loaded.is_behind_end
    loaded.assign_later(1, 5)
    assert not loaded.is_dirty
    assert not loaded.is_behind_end


def test_an_epoch_for_later_does_not_hide_that_the_file_names_another() -> None:
    loaded = LeaderEpochs.load(epochs((0, 0), (1, 5))._files, PATH)
    loaded.truncate_from_end(5)
    loaded.assign_later(2, 5)
    loaded.flush_before_append()
    assert on_disk(loaded) == [(0, 0), (2, 5)]
