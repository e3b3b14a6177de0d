"""A round that is worked at elsewhere and handed over leaves the bytes of the local cleaner."""

import re

import pytest
from cleaning_steps import Roll, Step
from cleaning_world import World
from hypothesis import given
from hypothesis import strategies as st
from outside_rounds import (
    STRATEGIES,
    Strategy,
    by_slices,
    clean_locally,
    commit,
    hold_staging,
    manifest_of,
    plan_outside,
    two_sides,
)
from random_histories import histories, plain

from stratalog.errors import CorruptSegmentError
from stratalog.storage.cleaning.key_scan import hash_ranges
from stratalog.storage.cleaning.outside import LeftOut


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


@given(st.integers(1, 9), st.integers(0, 2**64 - 1))
def test_each_hash_is_in_one_range(count: int, upper_half: int) -> None:
    ranges = hash_ranges(count)
    assert len(ranges) == count
    assert sum(each.first <= upper_half <= each.last for each in ranges) == 1
    assert all(
        sum(h.last - h.first + 1 for h in r.halves()) == r.last - r.first + 1 for r in ranges
    )
