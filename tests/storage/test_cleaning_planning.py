"""What the cleaner would clean, against a model that knows nothing but the words of the rules."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stratalog.config import TopicConfig
from stratalog.storage.cleaning.planning import (
    BoundKind,
    CheckpointReset,
    CleaningPlan,
    choose_filthiest,
    find_eligible_ms,
    group_segments,
    plan_cleaning,
)

NOW_MS = 10_000
COMPACT = TopicConfig(cleanup_policy=("compact",))


@dataclass
class Seg:
    base_offset: int
    size_bytes: int = 100
    largest_ms: int = 0
    first_ms: int = -1
    asked: list[str] = field(default_factory=list)

    def largest_timestamp_ms(self) -> int:
        self.asked.append("largest")
        return self.largest_ms

    def first_timestamp_ms(self) -> int:
        self.asked.append("first")
        return self.first_ms


def plan(segments: Sequence[Seg], config: TopicConfig = COMPACT, **changes: Any) -> CleaningPlan:
    end_offset = segments[-1].base_offset + 10
    given_: dict[str, Any] = {
        "config": config,
        "checkpoint": None,
        "log_start_offset": segments[0].base_offset,
        "last_stable_offset": end_offset,
        "log_end_offset": end_offset,
        "now_ms": NOW_MS,
    }
    return plan_cleaning(segments, **(given_ | changes))


# --- the model: offsets are asked one by one, as the rules are written ----------------------------


def owner(segments: Sequence[Seg], offset: int) -> Seg:
    """The segment that holds an offset; the first one holds what lies before it."""
    found = [segment for segment in segments if segment.base_offset <= offset]
    return found[-1] if found else segments[0]


def modelled(segments: Sequence[Seg], asked: dict[str, Any]) -> dict[str, Any]:
    config, now_ms = asked["config"], asked["now_ms"]
    start, end, checkpoint = asked["log_start_offset"], asked["log_end_offset"], asked["checkpoint"]
    dirty = start if checkpoint is None or not start <= checkpoint <= end else checkpoint
    active = segments[-1]
    closed_dirty = [
        segment for segment, follower in pairwise(segments) if follower.base_offset > dirty
    ]
    limits = [asked["last_stable_offset"], active.base_offset]
    lag_ms = config.min_compaction_lag_ms
    too_young = [s.base_offset for s in closed_dirty if s.largest_ms > now_ms - lag_ms]
    if lag_ms > 0 and too_young:
        limits.append(too_young[0])
    uncleanable = owner(segments, max(dirty, min(limits))).base_offset
    cleanable = [s for s in closed_dirty if s.base_offset < uncleanable and dirty < uncleanable]
    clean = [segment for segment in segments if segment.base_offset < dirty]
    stamps = [segment.first_ms for segment in closed_dirty if segment.first_ms > 0]
    overdue_ms = now_ms - config.max_compaction_lag_ms - min(stamps, default=math.inf)
    return {
        "first_dirty_offset": dirty,
        "is_checkpoint_reset": checkpoint is not None and dirty != checkpoint,
        "first_uncleanable_offset": uncleanable,
        "clean_bytes": sum(segment.size_bytes for segment in clean),
        "cleanable_bytes": sum(segment.size_bytes for segment in cleanable),
        "compaction_delay_ms": max(0, overdue_ms),
    }


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Seg], dict[str, Any]]:
    gaps = draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
    times = st.integers(-1, NOW_MS + 50)
    segments, base_offset = [], draw(st.integers(0, 3))
    for gap in gaps:
        size_bytes = draw(st.sampled_from((0, 1, 50, 100)))
        segments.append(Seg(base_offset, size_bytes, max(draw(times), 0), draw(times)))
        base_offset += gap
    end = base_offset
    start = draw(st.integers(segments[0].base_offset, end))
    lag_ms = draw(st.sampled_from((0, 1, 500, 5_000)))
    config = TopicConfig(
        cleanup_policy=("compact",),
        min_cleanable_dirty_ratio=draw(st.sampled_from((0.0, 0.25, 0.5, 0.9, 1.0))),
        min_compaction_lag_ms=lag_ms,
        max_compaction_lag_ms=draw(st.sampled_from((5_000, 9_999, 2**63 - 1))),
    )
    return segments, {
        "config": config,
        "checkpoint": draw(st.none() | st.integers(max(start - 1, 0), end + 1)),
        "log_start_offset": start,
        "last_stable_offset": draw(st.integers(start, end)),
        "log_end_offset": end,
        "now_ms": NOW_MS,
    }


@settings(max_examples=300)
@given(logs())
def test_a_plan_is_what_the_rules_say(log: tuple[list[Seg], dict[str, Any]]) -> None:
    segments, asked = log

    found = plan_cleaning(segments, **asked)

    expected = modelled(segments, asked)
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.total_bytes == expected["clean_bytes"] + expected["cleanable_bytes"]


@given(logs())
def test_a_log_is_eligible_by_its_ratio_or_because_a_record_waited_too_long(
    log: tuple[list[Seg], dict[str, Any]],
) -> None:
    segments, asked = log
    found = plan_cleaning(segments, **asked)
    total = found.clean_bytes + found.cleanable_bytes
    least = asked["config"].min_cleanable_dirty_ratio

    dirty_enough = total > 0 and found.cleanable_bytes / total > least
    overdue = found.compaction_delay_ms > 0 and found.cleanable_bytes > 0
    assert found.is_eligible == (dirty_enough or overdue)


@given(logs())
def test_every_plan_can_be_told_in_words(log: tuple[list[Seg], dict[str, Any]]) -> None:
    segments, asked = log
    found = plan_cleaning(segments, **asked)
    told = " ".join(found.reasons)

    assert f"dirty from offset {found.first_dirty_offset}" in told
    assert f"not cleanable from offset {found.bound.offset}" in told
    assert found.reasons[-1].startswith("eligible" if found.is_eligible else "not eligible")


# --- when it will be eligible ---------------------------------------------------------------------


@given(logs())
def test_the_missing_bytes_are_the_fewest_that_make_a_log_eligible(
    log: tuple[list[Seg], dict[str, Any]],
) -> None:
    found = plan_cleaning(log[0], **log[1])
    missing = found.missing_bytes

    def with_more(more_bytes: int) -> CleaningPlan:
        return dataclasses.replace(found, cleanable_bytes=found.cleanable_bytes + more_bytes)

    if missing is None:
        assert not with_more(1 << 40).is_eligible
    else:
        assert with_more(missing).is_eligible
        assert missing == 0 or not with_more(missing - 1).is_eligible


@given(logs())
def test_the_next_eligible_moment_is_the_first_at_which_the_plan_is_eligible(
    log: tuple[list[Seg], dict[str, Any]],
) -> None:
    segments, asked = log
    moment_ms = find_eligible_ms(segments, plan_cleaning(segments, **asked))

    def is_eligible_at(now_ms: int) -> bool:
        return plan_cleaning(segments, **(asked | {"now_ms": now_ms})).is_eligible

    if moment_ms is None:
        assert not is_eligible_at(NOW_MS + 10**9)
    else:
        assert is_eligible_at(moment_ms)
        assert moment_ms == NOW_MS or not is_eligible_at(moment_ms - 1)


def test_a_log_that_only_waits_for_its_lag_is_eligible_the_moment_that_ends() -> None:
    segments = [Seg(0, largest_ms=NOW_MS - 999), Seg(10)]
    found = plan(segments, COMPACT.altered(min_compaction_lag_ms=1000))
    assert find_eligible_ms(segments, found) == NOW_MS + 1


def test_time_alone_does_not_make_a_log_eligible_that_is_not_compacted() -> None:
    segments = [Seg(0), Seg(10)]
    found = plan(segments, TopicConfig())

    assert not found.is_eligible
    assert find_eligible_ms(segments, found) is None
    assert found.reasons == ("not compacted: cleanup.policy is delete",)


# --- single rules ---------------------------------------------------------------------------------


def test_a_log_never_cleaned_is_dirty_from_its_start() -> None:
    found = plan([Seg(5), Seg(10)])
    assert (found.first_dirty_offset, found.is_checkpoint_reset) == (5, False)


@pytest.mark.parametrize(
    ("checkpoint", "first_dirty_offset", "reset"),
    [
        (2, 3, CheckpointReset.BELOW_LOG_START),
        (3, 3, None),
        (20, 20, None),
        (21, 3, CheckpointReset.ABOVE_LOG_END),
    ],
)
def test_a_checkpoint_outside_the_log_is_reset_to_the_log_start(
    checkpoint: int, first_dirty_offset: int, reset: CheckpointReset | None
) -> None:
    found = plan([Seg(0), Seg(10)], checkpoint=checkpoint, log_start_offset=3)
    assert (found.first_dirty_offset, found.reset) == (first_dirty_offset, reset)
    assert found.is_checkpoint_reset == (reset is not None)


def test_the_active_segment_is_never_cleaned() -> None:
    found = plan([Seg(0, 30), Seg(10, 40), Seg(20, 50)])
    assert (found.first_uncleanable_offset, found.cleanable_bytes) == (20, 70)
    assert (found.uncleanable_bytes, found.active_bytes) == (50, 50)
    assert found.bound.kind is BoundKind.ACTIVE_SEGMENT


def test_a_log_of_one_segment_has_nothing_to_clean() -> None:
    found = plan([Seg(0, 30)])
    assert (found.first_uncleanable_offset, found.total_bytes) == (0, 0)
    assert not found.is_eligible
    assert found.cleanable_ratio == 0.0


def test_the_segment_of_the_last_stable_offset_is_not_cleaned() -> None:
    found = plan([Seg(0, 30), Seg(10, 40), Seg(20, 50)], last_stable_offset=15)
    assert (found.first_uncleanable_offset, found.cleanable_bytes) == (10, 30)
    assert found.bound.kind is BoundKind.LAST_STABLE_OFFSET


@pytest.mark.parametrize(("age_ms", "is_cleanable"), [(999, False), (1000, True)])
def test_a_segment_waits_until_its_youngest_record_has_the_least_age(
    age_ms: int, is_cleanable: bool
) -> None:
    config = COMPACT.altered(min_compaction_lag_ms=1000)
    found = plan([Seg(0), Seg(10, largest_ms=NOW_MS - age_ms), Seg(20)], config)
    assert found.first_uncleanable_offset == (20 if is_cleanable else 10)
    if not is_cleanable:
        assert found.bound.kind is BoundKind.MIN_COMPACTION_LAG
        assert found.bound.until_ms == NOW_MS + 1


def test_a_segment_behind_one_that_waits_waits_too() -> None:
    config = COMPACT.altered(min_compaction_lag_ms=1000)
    found = plan([Seg(0, largest_ms=NOW_MS), Seg(10, largest_ms=NOW_MS), Seg(20)], config)
    assert (found.first_uncleanable_offset, found.cleanable_bytes) == (0, 0)
    kinds = [bound.kind for bound in found.bounds]
    assert kinds == [BoundKind.MIN_COMPACTION_LAG, BoundKind.ACTIVE_SEGMENT]


def test_what_is_clean_is_never_given_back() -> None:
    found = plan([Seg(0), Seg(10), Seg(20)], checkpoint=15, last_stable_offset=5)
    assert (found.first_uncleanable_offset, found.cleanable_bytes) == (10, 0)


def test_a_segment_that_is_dirty_from_its_middle_counts_as_clean_and_as_cleanable() -> None:
    found = plan([Seg(0, 30), Seg(10, 40), Seg(20, 50)], checkpoint=15)
    assert (found.clean_bytes, found.cleanable_bytes) == (70, 40)
    assert found.cleanable_ratio == 40 / 110


def test_the_ratio_must_be_exceeded_not_reached() -> None:
    segments = [Seg(0, 50), Seg(10, 50), Seg(20)]
    assert not plan(segments, checkpoint=10).is_eligible
    assert plan([Seg(0, 49), *segments[1:]], checkpoint=10).is_eligible


@pytest.mark.parametrize(("first_ms", "delay_ms"), [(4999, 1), (5000, 0), (0, 0), (-1, 0)])
def test_a_record_is_overdue_when_it_has_been_dirty_for_too_long(
    first_ms: int, delay_ms: int
) -> None:
    config = COMPACT.altered(max_compaction_lag_ms=5000, min_cleanable_dirty_ratio=1.0)
    found = plan([Seg(0, first_ms=first_ms), Seg(10, first_ms=1)], config)
    assert found.compaction_delay_ms == delay_ms
    assert found.needs_compaction_now == found.is_eligible == (delay_ms > 0)


def test_an_overdue_log_with_nothing_cleanable_is_not_eligible() -> None:
    config = COMPACT.altered(max_compaction_lag_ms=5000)
    found = plan([Seg(0, first_ms=1), Seg(10)], config, last_stable_offset=0)
    assert found.needs_compaction_now
    assert not found.is_eligible


def test_timestamps_are_asked_only_when_a_lag_makes_them_count() -> None:
    segments = [Seg(0), Seg(10), Seg(20)]
    plan(segments)
    assert [segment.asked for segment in segments] == [[], [], []]

    plan(segments, COMPACT.altered(min_compaction_lag_ms=1), checkpoint=10)
    plan(segments, COMPACT.altered(max_compaction_lag_ms=1), checkpoint=10)
    assert [segment.asked for segment in segments] == [[], ["largest", "first"], []]


# --- which log ------------------------------------------------------------------------------------


@given(st.dictionaries(st.integers(0, 9), logs(), max_size=6))
def test_the_filthiest_of_the_eligible_logs_is_chosen(
    chosen_from: dict[int, tuple[list[Seg], dict[str, Any]]],
) -> None:
    plans = {key: plan_cleaning(log[0], **log[1]) for key, log in chosen_from.items()}
    best = choose_filthiest(plans)
    eligible = [found.cleanable_ratio for found in plans.values() if found.is_eligible]

    if best is None:
        assert eligible == []
    else:
        assert plans[best].is_eligible
        assert plans[best].cleanable_ratio == max(eligible)


def test_an_overdue_log_has_no_precedence() -> None:
    overdue = plan(
        [Seg(0, 90), Seg(10, 10, first_ms=1), Seg(20)],
        COMPACT.altered(max_compaction_lag_ms=1),
        checkpoint=10,
    )
    filthy = plan([Seg(0), Seg(10)])
    assert overdue.is_eligible
    assert choose_filthiest({"overdue": overdue, "filthy": filthy}) == "filthy"


# --- which segments together ----------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    base_offset: int
    size_bytes: int = 0
    offset_index_bytes: int = 0
    time_index_bytes: int = 0


def grouped(pieces: Sequence[Piece], end_offset: int, **limits: int) -> list[list[int]]:
    groups = group_segments(
        pieces,
        segment_bytes=limits.get("segment_bytes", 100),
        segment_index_bytes=limits.get("segment_index_bytes", 100),
        first_uncleanable_offset=end_offset,
    )
    return [[piece.base_offset for piece in group] for group in groups]


FAR = 2**31 - 1


@st.composite
def piece_lists(draw: st.DrawFn) -> tuple[list[Piece], int]:
    base_offset, pieces = draw(st.integers(0, 5)), []
    for _ in range(draw(st.integers(0, 10))):
        sizes = [draw(st.sampled_from((0, 0, 10, 40, 60, 101))) for _ in range(3)]
        pieces.append(Piece(base_offset, *sizes))
        base_offset += draw(st.sampled_from((1, 10, FAR // 2, FAR - 1, FAR, FAR + 1)))
    return pieces, base_offset


@given(piece_lists())
def test_groups_fit_and_could_not_be_larger(case: tuple[list[Piece], int]) -> None:
    pieces, end_offset = case
    groups = group_segments(
        pieces, segment_bytes=100, segment_index_bytes=100, first_uncleanable_offset=end_offset
    )
    assert [piece for group in groups for piece in group] == pieces
    ends = dict(
        zip(pieces, [piece.base_offset for piece in pieces[1:]] + [end_offset], strict=False)
    )

    def fits(group: list[Piece]) -> bool:
        last = group[-1]
        near = ends[last] - 1 - group[0].base_offset <= FAR
        kinds = ("size_bytes", "offset_index_bytes", "time_index_bytes")
        small = all(sum(getattr(piece, kind) for piece in group) <= 100 for kind in kinds)
        return small and (near or last.size_bytes == 0)

    for group, follower in zip(groups, [*groups[1:], None], strict=False):
        assert all(fits(group[:count]) for count in range(2, len(group) + 1))
        assert follower is None or not fits([*group, follower[0]])


@pytest.mark.parametrize("kind", ["size_bytes", "offset_index_bytes", "time_index_bytes"])
def test_a_group_may_reach_each_limit_but_not_exceed_it(kind: str) -> None:
    exact = [Piece(0, **{kind: 60}), Piece(10, **{kind: 40})]
    over = [Piece(0, **{kind: 60}), Piece(10, **{kind: 41})]
    assert grouped(exact, 20) == [[0, 10]]
    assert grouped(over, 20) == [[0], [10]]


def test_a_segment_over_the_limit_is_a_group_of_its_own() -> None:
    assert grouped([Piece(0, 500), Piece(10, 1)], 20) == [[0], [10]]


def test_the_offsets_of_a_group_fit_an_index_by_the_worst_case_of_its_last_segment() -> None:
    assert grouped([Piece(0, 1), Piece(10, 1)], FAR + 1) == [[0, 10]]
    assert grouped([Piece(0, 1), Piece(10, 1)], FAR + 2) == [[0], [10]]
    pieces = [Piece(0, 1), Piece(10, 1), Piece(FAR + 2, 1)]
    assert grouped(pieces, FAR + 9) == [[0], [10, FAR + 2]]
    assert grouped([Piece(0, 1), Piece(10, 1), Piece(20, 1)], FAR + 8) == [[0, 10], [20]]


def test_an_empty_segment_joins_however_far_it_is() -> None:
    assert grouped([Piece(0, 1), Piece(FAR + 5, 0)], FAR + 9) == [[0, FAR + 5]]


def test_a_ratio_of_one_cannot_be_exceeded() -> None:
    found = plan([Seg(0), Seg(10)], COMPACT.altered(min_cleanable_dirty_ratio=1.0))
    assert found.cleanable_ratio == 1.0
    assert not found.is_eligible
    assert found.missing_bytes is None
    assert "cannot be exceeded" in found.reasons[-1]
