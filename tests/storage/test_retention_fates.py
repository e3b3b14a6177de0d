"""What is told of a segment comes true: at that time, by that rule, after that many bytes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from stratalog.storage.fates import RetentionReport, explain_retention
from stratalog.storage.moments import moment_text, span_text
from stratalog.storage.retention import Breach, Hold

LATER_MS = NOW_MS + 10**9


def explain(log: PlainLog, config: TopicConfig, *, cleaner: bool = True) -> RetentionReport:
    return explain_retention(
        log.segments,
        config=config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        log_end_offset=log.log_end_offset,
        now_ms=NOW_MS,
        is_cleaner_enabled=cleaner,
    )


@given(plain_logs(), configs)
def test_each_segment_goes_at_the_time_told_and_not_before(
    log: PlainLog, config: TopicConfig
) -> None:
    for slot, fate in enumerate(explain(log, config).fates):
        if fate.goes_at_ms is None:
            assert len(plan(log, config, LATER_MS).doomed) <= slot
        else:
            assert len(plan(log, config, fate.goes_at_ms).doomed) > slot
            if fate.goes_at_ms > NOW_MS:
                assert len(plan(log, config, fate.goes_at_ms - 1).doomed) <= slot


@given(plain_logs(), configs)
def test_what_goes_now_is_what_a_check_takes_and_by_its_rule(
    log: PlainLog, config: TopicConfig
) -> None:
    fates = explain(log, config).fates

    going = [(fate.base_offset, fate.breach) for fate in fates if fate.goes_at_ms == NOW_MS]
    assert going == [(e.segment.base_offset, e.breach) for e in plan(log, config).doomed]


@given(plain_logs(), configs)
def test_whatever_does_not_go_now_is_held_by_something_that_is_explained(
    log: PlainLog, config: TopicConfig
) -> None:
    for fate in explain(log, config).fates:
        assert fate.explanation
        assert bool(fate.holds) == (fate.goes_at_ms != NOW_MS)


@given(plain_logs(damage=False), st.integers(0, 25))
def test_by_size_each_segment_goes_after_as_many_bytes_as_told(log: PlainLog, limit: int) -> None:
    config = TopicConfig(retention_ms=-1, retention_bytes=limit)
    for slot, fate in enumerate(explain(log, config).fates):
        if fate.breach is Breach.SIZE and fate.goes_at_ms is None:
            assert fate.bytes_until_size is not None
            assert len(plan(grown(log, fate.bytes_until_size), config).doomed) > slot
            assert len(plan(grown(log, fate.bytes_until_size - 1), config).doomed) <= slot


def grown(log: PlainLog, size_bytes: int) -> PlainLog:
    last = log.segments[-1]
    longer = replace(last, size_bytes=last.size_bytes + size_bytes)
    return replace(log, segments=[*log.segments[:-1], longer])


def test_the_record_that_lies_in_the_future_is_named() -> None:
    log = log_of(PlainSegment(0, 5, NOW_MS + 60_000), PlainSegment(50, 5, 0))

    first, second = explain(log, TopicConfig(retention_ms=10)).fates

    assert first.holds == (Hold.FUTURE_TIMESTAMP,)
    assert first.newest_offset == 0
    assert "offset 0" in first.explanation
    assert "1 min in the future" in first.explanation
    assert Hold.OLDER_SEGMENT in second.holds
    assert first.goes_at_ms == second.goes_at_ms == NOW_MS + 60_011


def test_of_the_active_segment_it_is_told_when_it_rolls() -> None:
    log = log_of(PlainSegment(0, 5, NOW_MS, NOW_MS - 100))

    (fate,) = explain(log, TopicConfig(segment_ms=5000, segment_jitter_ms=7)).fates

    assert fate.is_active
    assert Hold.ACTIVE_SEGMENT in fate.holds
    assert fate.rolls_after_ms == NOW_MS - 100 + 5000 - 7


@pytest.mark.parametrize("policy", POLICIES)
def test_without_a_cleaner_nobody_checks_a_log_with_compact(policy: tuple[str, ...]) -> None:
    log = log_of(PlainSegment(0, 5, 0), PlainSegment(50, 5, 0), start=50)
    config = TopicConfig(cleanup_policy=policy, retention_ms=10)

    report = explain(log, config, cleaner=False)

    is_never = all(Hold.NEVER_CHECKED in fate.holds for fate in report.fates)
    assert is_never == ("compact" in policy)
    assert any("log.cleaner.enable" in warning for warning in report.warnings) == is_never
    assert all(fate.goes_at_ms is None for fate in report.fates) == is_never


@pytest.mark.parametrize(
    ("policy", "actor"),
    [
        (("delete",), "kafka-log-retention"),
        ((), "kafka-log-retention"),
        (("compact",), "the log cleaner"),
        (("compact", "delete"), "the log cleaner"),
    ],
)
def test_who_checks_depends_on_compact(policy: tuple[str, ...], actor: str) -> None:
    config = TopicConfig(cleanup_policy=policy)

    assert explain(log_of(PlainSegment(0, 5)), config).checked_by == actor


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (TopicConfig(retention_ms=99, segment_ms=100), ["retention.ms=99 is less than segment.ms"]),
        (TopicConfig(retention_ms=100, segment_ms=100), []),
        (TopicConfig(retention_ms=-1, segment_ms=100), []),
        (TopicConfig(retention_bytes=1 << 29), ["retention.bytes=536870912 is less"]),
        (TopicConfig(retention_bytes=1 << 30), []),
        (
            TopicConfig(cleanup_policy=("compact",), retention_bytes=7, retention_ms=8),
            ["retention.bytes=7 has no effect", "retention.ms=8 has no effect"],
        ),
        (TopicConfig(cleanup_policy=("compact",)), []),
    ],
)
def test_settings_that_do_not_do_what_they_seem_to_are_warned_of(
    config: TopicConfig, words: list[str]
) -> None:
    warnings = explain(log_of(PlainSegment(0, 5)), config).warnings

    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))


def test_future_timestamps_are_warned_of() -> None:
    log = log_of(PlainSegment(0, 5, 1_924_992_000_000), PlainSegment(50, 5))

    (warning,) = explain(log, TopicConfig()).warnings

    assert "1 of 2 segments" in warning
    assert "2031-01-01" in warning
    assert "message.timestamp.after.max.ms" in warning


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01 00:00:00Z"),
        (1_924_992_000_007, "2031-01-01 00:00:00.007Z"),
        (2**63 - 1, "9223372036854775807 ms"),
    ],
)
def test_moments_are_shown_in_utc(timestamp_ms: int, text: str) -> None:
    assert moment_text(timestamp_ms) == text


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (0, "0 ms"),
        (604_800_000, "7 d"),
        (5_400_000, "1 h 30 min"),
        (86_400_001, "1 d"),
        (61_250, "1 min 1 s"),
        (-2_000, "-2 s"),
    ],
)
def test_spans_are_shown_in_two_units_at_most(span_ms: int, text: str) -> None:
    assert span_text(span_ms) == text
