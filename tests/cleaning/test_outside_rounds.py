"""A round that is worked at elsewhere and handed over leaves the bytes of the local cleaner."""

import re
from contextlib import suppress
from dataclasses import replace

import pytest
from cleaning_steps import Append, Roll, RowSpec, Step
from cleaning_world import World
from hypothesis import example, given
from hypothesis import strategies as st
from outside_rounds import (
    KEY,
    MAP_BYTES,
    SMALL_MAP_BYTES,
    STAGING_ID,
    STRATEGIES,
    Strategy,
    by_slices,
    by_sorting,
    clean_locally,
    commit,
    effort,
    hold_staging,
    manifest_of,
    plan_outside,
    two_sides,
)
from random_histories import histories, plain

from stratalog.errors import CorruptSegmentError, StorageError
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.key_scan import hash_ranges
from stratalog.storage.cleaning.marks import span_of
from stratalog.storage.cleaning.outside import LeftOut, wanted_keys
from stratalog.storage.cleaning.outside_work import clean_whole, join_found, scan_slice
from stratalog.storage.cleaning.round_json import OutsideRound
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.commits.staging import release_staging
from stratalog.storage.layout import TopicPartition, staging_directory, staging_file
from stratalog.testing import Operation


def check_same(world: World, strategy: Strategy, dirty_part: int) -> None:
    ours, theirs = two_sides(world)
    log = ours.manager.get(next(iter(ours.manager)).topic_partition)
    end_offset = log.segments.active.base_offset
    first_dirty = log.log_start_offset + (end_offset - log.log_start_offset) * dirty_part // 100
    round_ = plan_outside(theirs, first_dirty)
    if isinstance(round_, LeftOut):
        return
    hold_staging(theirs)
    try:
        clean_locally(ours, first_dirty)
    except CorruptSegmentError as error:
        with pytest.raises(CorruptSegmentError, match=re.escape(str(error))):
            strategy(round_)
        return
    commit(theirs, manifest_of(round_, strategy(round_)))
    assert theirs.tree() == ours.tree()
    assert theirs.manager.directories[0].cleaner_offset(log.topic_partition) == (
        round_.plan.upper_bound_offset
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(steps=histories(), dirty_part=st.sampled_from((0, 0, 30, 60, 100)))
def test_the_files_are_those_of_the_local_cleaner(
    strategy: Strategy, steps: list[Step], dirty_part: int
) -> None:
    check_same(World().run(steps), strategy, dirty_part)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(steps=histories(with_legacy=True), dirty_part=st.sampled_from((0, 0, 30, 60, 100)))
def test_so_they_are_where_old_messages_lie_between(
    strategy: Strategy, steps: list[Step], dirty_part: int
) -> None:
    check_same(World().run(steps), strategy, dirty_part)


@given(
    steps=st.lists(st.one_of(plain, plain, st.just(Roll())), min_size=4, max_size=30),
    dirty_part=st.sampled_from((0, 0, 30)),
)
def test_slices_of_a_log_without_transactions_are_put_together(
    steps: list[Step], dirty_part: int
) -> None:
    check_same(World().run([*steps, Roll()]), by_slices, dirty_part)


@pytest.mark.parametrize("load_factor", [0.9, 0.5, 0.2])
def test_slices_are_put_together_whatever_the_owners_load_factor(load_factor: float) -> None:
    world = World()
    for number in range(60):
        world.run([Append(tuple(RowSpec(4 * number + each) for each in range(6))), Roll()])
    ours, theirs = two_sides(world)
    planned = plan_outside(theirs, 0)
    assert isinstance(planned, OutsideRound)
    round_ = replace(planned, load_factor=load_factor)
    hold_staging(theirs)
    clean_locally(ours, 0)
    commit(theirs, manifest_of(round_, by_slices(round_)))
    assert theirs.tree() == ours.tree()


@pytest.mark.parametrize("strategy", [by_slices, by_sorting])
@given(load_factor=st.floats(0.005, 1.0))
@example(load_factor=0.01)
def test_a_map_without_keys_is_made_whatever_the_owners_load_factor(
    strategy: Strategy, load_factor: float
) -> None:
    world = World()
    for number in range(6):
        world.run([Append(tuple(RowSpec(number + each) for each in range(5))), Roll()])
    ours, theirs = two_sides(world)
    planned = plan_outside(theirs, 0)
    assert isinstance(planned, OutsideRound)
    hold_staging(theirs)
    clean_locally(ours, 0)
    round_ = replace(planned, load_factor=load_factor)
    commit(theirs, manifest_of(round_, strategy(round_)))
    assert theirs.tree() == ours.tree()


def test_slices_whose_keys_fit_no_map_together_are_not_put_together() -> None:
    world = World().run([Append(tuple(RowSpec(key) for key in range(5))), Roll()])
    _, theirs = two_sides(world)
    round_ = plan_outside(theirs, 0)
    assert isinstance(round_, OutsideRound)
    hold_staging(theirs)
    found = scan_slice(round_, round_.plan.sources, effort("slice"))
    assert found is not None
    many = replace(found, keys=50_000_000)
    assert join_found(round_, [found, many], effort("joined")) is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_work_that_goes_on_after_its_staging_was_given_up_leaves_nothing(
    strategy: Strategy,
) -> None:
    """Whatever it had done by then: Spark runs the tasks of a job that failed on for a while."""
    world = World()
    for number in range(4):
        world.run([Append(tuple(RowSpec(number + each) for each in range(6))), Roll()])

    def is_whole(given_up_at: int) -> bool:
        _, theirs = two_sides(world)
        files = theirs.files
        round_ = plan_outside(theirs, 0)
        assert isinstance(round_, OutsideRound)
        hold_staging(theirs)
        end = files.operations + given_up_at

        def observe(operation: Operation) -> None:
            if operation.number == end:
                release_staging(files, "/data", STAGING_ID)

        files.observer = observe
        with suppress(StorageError):
            strategy(round_)
        if files.exists(staging_file("/data", STAGING_ID)):
            return True
        assert not files.exists(staging_directory(round_.plan.directory, STAGING_ID))
        return False

    given_up_at = 1
    while not is_whole(given_up_at):
        given_up_at += 1
    assert given_up_at > 5


def test_a_map_that_was_too_small_is_followed_by_the_largest_that_there_may_be() -> None:
    """And not by the same one: the log would be read again for every few of its keys."""
    world = World()
    for first in range(0, 200, 10):
        world.run([Append(tuple(RowSpec(first + each) for each in range(10)))])
    world.run([Roll()])
    _, theirs = two_sides(world)
    round_ = plan_outside(theirs, 0)
    assert isinstance(round_, OutsideRound)
    hold_staging(theirs)
    size_bytes = sum(each.size_bytes for each in round_.plan.sources)
    read_bytes: list[int] = []
    largest = 2 * span_of(round_.plan).size_bytes + MAP_BYTES
    tried = replace(
        effort("whole", SMALL_MAP_BYTES), map_bytes_max=largest, progress=read_bytes.append
    )
    clean_whole(round_, tried)
    # What it takes to find out, keys and marks, and the rewriting.
    assert sum(read_bytes) <= 5 * size_bytes


def test_a_local_cleaning_uses_the_map_that_it_is_given() -> None:
    world = World().run([Append(tuple(RowSpec(key) for key in range(9))), Roll()])
    small = OffsetMap(24 * 6)
    done = clean_now(world.log, now_ms=world.clock.now_ms(), offset_map=small)
    assert done.stats.map_entries == small.capacity == small.size
    assert done.end_offset == small.capacity


def test_a_partition_that_is_named_twice_is_meant_once() -> None:
    others = [TopicPartition("other", 0), KEY]
    assert wanted_keys(others, ["t", "t"], [0, 0]) == [KEY]
    assert wanted_keys(others, ["t", "t", "gone", "gone"], None) == [KEY, TopicPartition("gone", 0)]


@given(st.integers(1, 9), st.integers(0, 2**64 - 1))
def test_each_hash_is_in_one_range(count: int, upper_half: int) -> None:
    ranges = hash_ranges(count)
    assert len(ranges) == count
    assert sum(each.first <= upper_half <= each.last for each in ranges) == 1
    assert all(
        sum(h.last - h.first + 1 for h in r.halves()) == r.last - r.first + 1 for r in ranges
    )
