"""What a check of retention decides: against a model that really makes Kafka's three passes."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from plain_segments import (
    NOW_MS,
    POLICIES,
    PlainLog,
    PlainSegment,
    configs,
    log_of,
    plain_logs,
    plan,
)

from stratalog.config import TopicConfig
from stratalog.storage.retention import Breach, Hold, RetentionPlan


def went(planned: RetentionPlan[PlainSegment]) -> list[tuple[int, str]]:
    return [(each.segment.base_offset, each.breach.value) for each in planned.doomed]


# --- the model -------------------------------------------------------------------------------


class ThreePasses:
    """Kafka's way: each pass lists what may go from the oldest on, then really takes it away."""

    def __init__(self, log: PlainLog, config: TopicConfig) -> None:
        self.left = [
            (each.base_offset, each.size_bytes, each.largest_ms, each.modified_ms)
            for each in log.segments
        ]
        self.log = log
        self.start = log.log_start_offset
        self.gone: list[tuple[int, str]] = []
        self.remove("start offset", lambda slot: self.follows(slot) <= self.start)
        if "delete" in config.cleanup_policy:
            self.by_size(config.retention_bytes)
            if config.retention_ms >= 0:
                self.remove("time", lambda slot: NOW_MS - self.stamp(slot) > config.retention_ms)

    def follows(self, slot: int) -> float:
        return self.left[slot + 1][0] if slot + 1 < len(self.left) else float("inf")

    def stamp(self, slot: int) -> float:
        _, _, largest_ms, modified_ms = self.left[slot]
        if largest_ms is None:
            return float("inf")
        return modified_ms if largest_ms < 0 else largest_ms

    def by_size(self, limit: int) -> None:
        spare = sum(size for _, size, _, _ in self.left) - limit
        if limit < 0 or spare < 0:
            return

        def is_spare(slot: int) -> bool:
            nonlocal spare
            if spare < self.left[slot][1]:
                return False
            spare -= self.left[slot][1]
            return True

        self.remove("size", is_spare)

    def remove(self, name: str, may_go: Callable[[int], bool]) -> None:
        count = 0
        for slot, (_, size_bytes, _, _) in enumerate(self.left):
            upper = min(self.follows(slot), self.log.log_end_offset)
            if self.log.high_watermark < upper or not may_go(slot):
                break
            if slot == len(self.left) - 1 and size_bytes == 0:
                break
            count += 1
        if count and count == len(self.left):
            self.left.append((self.log.log_end_offset, 0, -1, NOW_MS))
        self.gone += [(base_offset, name) for base_offset, _, _, _ in self.left[:count]]
        self.left = self.left[count:]
        if count:
            self.start = max(self.start, self.left[0][0])


@given(plain_logs(), configs)
def test_what_goes_is_what_three_passes_one_after_the_other_take(
    log: PlainLog, config: TopicConfig
) -> None:
    model = ThreePasses(log, config)

    planned = plan(log, config)

    assert went(planned) == model.gone
    assert planned.log_start_offset == model.start
    assert planned.rolls_first == (len(model.gone) == len(log.segments))
    assert planned.freed_bytes == sum(each.size_bytes for each in log.segments[: len(model.gone)])


@given(plain_logs(), configs)
def test_the_first_segment_that_stays_is_named_with_a_reason(
    log: PlainLog, config: TopicConfig
) -> None:
    planned = plan(log, config)

    left = log.segments[len(planned.doomed) :]
    assert (planned.held is None) == (not left)
    if planned.held is not None:
        assert planned.held.segment is left[0]
        assert planned.held.explanation
    assert all(each.explanation for each in planned.doomed)


@given(plain_logs(), configs)
def test_a_check_asks_the_age_of_no_segment_behind_the_first_that_stays(
    log: PlainLog, config: TopicConfig
) -> None:
    planned = plan(log, config)

    asked = [each for each in log.segments if each.looks]
    by_time = [each.segment for each in planned.doomed if each.breach is Breach.TIME]
    assert asked[: len(by_time)] == by_time
    assert len(asked) <= len(by_time) + 1


def test_a_check_of_a_long_log_looks_at_one_segment() -> None:
    segments = [PlainSegment(number, 10) for number in range(10_000)]

    plan(log_of(*segments, end=10_000, hw=10_000), TopicConfig(retention_bytes=50_000))

    assert sum(bool(each.looks) for each in segments) == 1


def test_a_segment_above_the_high_watermark_is_not_even_looked_at() -> None:
    segments = pair(largest_ms=0)

    plan(log_of(*segments, hw=49), TopicConfig(retention_ms=10))

    assert [each.looks for each in segments] == [[], []]


# --- each rule -------------------------------------------------------------------------------


def pair(**first: Any) -> tuple[PlainSegment, PlainSegment]:
    return PlainSegment(0, **{"size_bytes": 5, **first}), PlainSegment(50, 5)


@pytest.mark.parametrize(("age_ms", "expected"), [(9, []), (10, []), (11, [(0, "time")])])
def test_a_segment_stays_until_it_is_older_than_retention_ms(
    age_ms: int, expected: list[tuple[int, str]]
) -> None:
    log = log_of(*pair(largest_ms=NOW_MS - age_ms))

    assert went(plan(log, TopicConfig(retention_ms=10))) == expected


@pytest.mark.parametrize(("limit", "expected"), [(6, []), (5, [(0, "size")])])
def test_size_never_takes_a_log_below_retention_bytes(
    limit: int, expected: list[tuple[int, str]]
) -> None:
    assert went(plan(log_of(*pair()), TopicConfig(retention_bytes=limit))) == expected


@pytest.mark.parametrize(("start", "expected"), [(49, []), (50, [(0, "start offset")])])
@pytest.mark.parametrize("policy", POLICIES)
def test_whatever_the_policy_what_lies_below_the_log_start_goes(
    policy: tuple[str, ...], start: int, expected: list[tuple[int, str]]
) -> None:
    config = TopicConfig(cleanup_policy=policy)

    assert went(plan(log_of(*pair(), start=start), config)) == expected


def test_the_last_segment_stays_even_if_the_log_starts_at_its_end() -> None:
    planned = plan(log_of(*pair(), start=100), TopicConfig())

    assert went(planned) == [(0, "start offset")]


@pytest.mark.parametrize(
    ("policy", "gone"),
    [(("delete",), 2), (("compact", "delete"), 2), (("compact",), 0), ((), 0)],
)
def test_age_and_size_count_only_where_delete_is_in_the_policy(
    policy: tuple[str, ...], gone: int
) -> None:
    log = log_of(*pair(largest_ms=0), PlainSegment(60, 5))

    by_age = TopicConfig(cleanup_policy=policy, retention_ms=10)
    by_size = TopicConfig(cleanup_policy=policy, retention_bytes=5)

    assert len(went(plan(log, by_age))) == min(gone, 1)
    assert len(went(plan(log, by_size))) == gone


@pytest.mark.parametrize(("high_watermark", "gone"), [(49, 0), (50, 1), (99, 1), (100, 2)])
def test_nothing_at_or_above_the_high_watermark_goes(high_watermark: int, gone: int) -> None:
    old = log_of(PlainSegment(0, 5, 0), PlainSegment(50, 5, 0), hw=high_watermark)

    for config in (TopicConfig(retention_ms=10), TopicConfig(retention_bytes=0)):
        planned = plan(old, config)
        assert len(planned.doomed) == gone
        assert planned.held is None or planned.held.hold is Hold.HIGH_WATERMARK


def test_an_active_segment_goes_when_it_is_old_unless_it_is_empty() -> None:
    config = TopicConfig(retention_ms=10)

    whole = plan(log_of(PlainSegment(0, 5, 0), PlainSegment(50, 5, 0)), config)
    assert whole.rolls_first
    assert whole.log_start_offset == 100

    kept = plan(log_of(PlainSegment(0, 5, 0), PlainSegment(100, 0, 0)), config)
    assert went(kept) == [(0, "time")]
    assert kept.held is not None
    assert kept.held.hold is Hold.EMPTY_ACTIVE_SEGMENT


def test_a_young_segment_keeps_the_old_ones_behind_it() -> None:
    log = log_of(PlainSegment(0, 5, NOW_MS), PlainSegment(50, 5, 0), PlainSegment(60, 5))

    assert went(plan(log, TopicConfig(retention_ms=10))) == []


def test_a_negative_limit_is_no_limit() -> None:
    log = log_of(*pair(largest_ms=0))

    planned = plan(log, TopicConfig(retention_ms=-1, retention_bytes=-1))

    assert went(planned) == []
    assert planned.held is not None
    assert planned.held.hold is Hold.NO_LIMIT


def test_size_counts_what_the_log_start_left() -> None:
    log = log_of(PlainSegment(0, 90), PlainSegment(50, 5), PlainSegment(60, 5), start=50)

    planned = plan(log, TopicConfig(retention_bytes=10, retention_ms=-1))

    assert went(planned) == [(0, "start offset")]


@pytest.mark.parametrize(
    ("largest_ms", "hold"),
    [
        (NOW_MS + 1, Hold.FUTURE_TIMESTAMP),
        (NOW_MS, Hold.AGE),
        (None, Hold.DAMAGE),
        (-1, Hold.AGE),
    ],
)
def test_what_held_the_first_survivor_is_told(largest_ms: int | None, hold: Hold) -> None:
    planned = plan(log_of(*pair(largest_ms=largest_ms)), TopicConfig())

    assert planned.held is not None
    assert planned.held.hold is hold


def test_where_no_record_has_a_timestamp_the_files_age_counts() -> None:
    log = log_of(*pair(largest_ms=-1, modified_ms=NOW_MS - 11))

    assert went(plan(log, TopicConfig(retention_ms=10))) == [(0, "time")]


def test_a_segment_whose_age_cannot_be_told_still_goes_by_size() -> None:
    log = log_of(*pair(largest_ms=None))

    assert went(plan(log, TopicConfig(retention_bytes=5))) == [(0, "size")]
