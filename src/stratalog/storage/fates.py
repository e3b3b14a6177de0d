"""What retention will do to every segment of a log: when, by which rule, and what holds it.

``plan_retention`` says what a check does now, and stops at the first segment that stays. This says
what later checks will do if nothing is appended and no setting changes. A segment cannot go before
an older one, so each inherits what holds its elders. Times are the earliest: a check comes at most
log.retention.check.interval.ms later, and the files are unlinked file.delete.delay.ms after it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError, StratalogError
from stratalog.storage.index import TimestampOffset
from stratalog.storage.moments import moment_text, span_text
from stratalog.storage.retention import (
    Breach,
    Hold,
    RetentionPlan,
    SegmentLike,
    high_watermark_sentence,
    plan_retention,
    policy_sentence,
)
from stratalog.storage.segment import FoundRecord


class ExplainedSegment(SegmentLike, Protocol):
    """What telling a segment's fate asks of it."""

    def max_timestamp(self) -> TimestampOffset: ...

    def find_by_timestamp(self, timestamp_ms: int, *, start_offset: int) -> FoundRecord | None: ...


@dataclass(frozen=True, slots=True)
class SegmentFate:
    """``goes_at_ms`` is None where no time can be told; ``holds`` says why, most binding first.

    ``due_ms`` is when the segment's own age comes to retention.ms, whatever else holds it;
    ``bytes_until_size`` is what the log must grow by before it goes by size.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    is_active: bool
    largest_timestamp_ms: int | None
    is_file_time: bool  # no record has a timestamp: the file's modification time counts
    newest_offset: int | None  # of the record that lies in the future
    rolls_after_ms: int | None  # of the active one: a batch from after it makes it roll
    due_ms: int | None
    bytes_until_size: int | None
    goes_at_ms: int | None
    breach: Breach | None
    holds: tuple[Hold, ...]
    explanation: str


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """Every segment's fate, oldest first, and what whoever set this up may not have meant."""

    fates: tuple[SegmentFate, ...]
    warnings: tuple[str, ...]
    checked_by: str


@dataclass(slots=True)
class _Draft:
    """A fate as it comes together."""

    due_ms: int | None = None
    largest_timestamp_ms: int | None = None
    is_file_time: bool = False
    newest_offset: int | None = None
    rolls_after_ms: int | None = None
    bytes_until_size: int | None = None


def explain_retention(
    segments: Iterable[ExplainedSegment],
    *,
    config: TopicConfig,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
    is_cleaner_enabled: bool = True,
) -> RetentionReport:
    """The fate of each of ``segments``, oldest first and the active one last, as of ``now_ms``.

    Looks at every segment's files, unlike a plan.
    """
    ordered = list(segments)
    plan = plan_retention(
        ordered,
        config=config,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        log_end_offset=log_end_offset,
        now_ms=now_ms,
    )
    is_checked = is_cleaner_enabled or not config.compact
    teller = _Teller(ordered, plan, config, high_watermark, log_end_offset, now_ms, is_checked)
    fates = tuple(teller.fates())
    return RetentionReport(
        fates,
        tuple(_warnings(config, fates, is_checked)),
        "the log cleaner" if config.compact else "kafka-log-retention",
    )


class _Teller:
    def __init__(
        self,
        segments: Sequence[ExplainedSegment],
        plan: RetentionPlan[ExplainedSegment],
        config: TopicConfig,
        high_watermark: int,
        log_end_offset: int,
        now_ms: int,
        is_checked: bool,
    ) -> None:
        self._segments = segments
        self._plan = plan
        self._config = config
        self._high_watermark = high_watermark
        self._end_offsets = [each.base_offset for each in segments[1:]] + [log_end_offset]
        self._now_ms = now_ms
        self._is_checked = is_checked
        # By size, a segment goes when what lies behind it comes to retention.bytes.
        self._bytes_behind = sum(each.size_bytes for each in segments)

    def fates(self) -> list[SegmentFate]:
        told: list[SegmentFate] = []
        for slot in range(len(self._segments)):
            self._bytes_behind -= self._segments[slot].size_bytes
            told.append(self._fate(slot, told[-1] if told else None))
        return told

    def _fate(self, slot: int, older: SegmentFate | None) -> SegmentFate:
        draft = _Draft()
        reasons = self._look(slot, draft)
        if slot < len(self._plan.doomed) and self._is_checked:
            doomed = self._plan.doomed[slot]
            last = " A new segment is begun first." if self._is_active(slot) else ""
            sentence = f"goes at the next check: {doomed.explanation}.{last}"
            return self._made(slot, draft, self._now_ms, doomed.breach, (), sentence)
        stuck = self._stuck(slot)
        goes_at_ms = None if stuck else draft.due_ms
        if older is not None and goes_at_ms is not None:
            if older.goes_at_ms is None:
                goes_at_ms = None
                reasons.append((Hold.OLDER_SEGMENT, f"segment {older.base_offset} must go first"))
            elif older.goes_at_ms > goes_at_ms:
                goes_at_ms = older.goes_at_ms
                reasons.append(
                    (
                        Hold.OLDER_SEGMENT,
                        f"segment {older.base_offset} must go first, at {moment_text(goes_at_ms)}",
                    )
                )
        reasons = stuck + reasons
        breach = None
        if goes_at_ms is not None:
            breach = Breach.TIME
        elif draft.bytes_until_size is not None and not stuck:
            breach = Breach.SIZE
        holds = tuple(dict.fromkeys(hold for hold, _ in reasons))
        sentence = "; ".join(text for _, text in reasons)
        return self._made(slot, draft, goes_at_ms, breach, holds, sentence)

    def _is_active(self, slot: int) -> bool:
        return slot == len(self._segments) - 1

    def _stuck(self, slot: int) -> list[tuple[Hold, str]]:
        """What no passing of time changes."""
        found = []
        end_offset = self._end_offsets[slot]
        if not self._is_checked:
            sentence = "log.cleaner.enable=false: nobody checks a log with compact"
            found.append((Hold.NEVER_CHECKED, sentence))
        if self._high_watermark < end_offset:
            sentence = high_watermark_sentence(self._high_watermark, end_offset)
            found.append((Hold.HIGH_WATERMARK, sentence))
        if self._is_active(slot) and self._segments[slot].size_bytes == 0:
            found.append((Hold.EMPTY_ACTIVE_SEGMENT, "the active segment is empty"))
        if not self._config.delete:
            found.append((Hold.CLEANUP_POLICY, policy_sentence(self._config)))
        return found

    def _look(self, slot: int, draft: _Draft) -> list[tuple[Hold, str]]:
        """Fill in what the segment's files say; what its age and size hold it by."""
        segment = self._segments[slot]
        if self._is_active(slot) and segment.size_bytes == 0:
            return []
        reasons = self._age(segment, draft)
        if not self._config.delete:
            return []
        if self._is_active(slot):
            reasons.append((Hold.ACTIVE_SEGMENT, self._rolling(segment, draft)))
        elif self._config.retention_bytes >= 0:
            reasons.append((Hold.SIZE, self._size(draft)))
        if self._config.retention_ms < 0 and self._config.retention_bytes < 0:
            reasons.append((Hold.NO_LIMIT, "neither retention.ms nor retention.bytes limits it"))
        return reasons

    def _age(self, segment: ExplainedSegment, draft: _Draft) -> list[tuple[Hold, str]]:
        try:
            draft.is_file_time = segment.max_timestamp().timestamp_ms < 0
            largest_ms = draft.largest_timestamp_ms = segment.largest_timestamp_ms()
        except CorruptSegmentError as error:
            return [(Hold.DAMAGE, f"how old it is cannot be told: {error}")]
        retention_ms = self._config.retention_ms
        if retention_ms < 0:
            return []
        draft.due_ms = largest_ms + retention_ms + 1
        source = "the file was last written" if draft.is_file_time else "its newest record is from"
        newest = f"{source} {moment_text(largest_ms)}"
        if largest_ms > self._now_ms:
            draft.newest_offset = _offset_of(segment, largest_ms)
            at = "" if draft.newest_offset is None else f" (offset {draft.newest_offset})"
            ahead = span_text(largest_ms - self._now_ms)
            return [(Hold.FUTURE_TIMESTAMP, f"{newest}{at}, {ahead} in the future")]
        age = span_text(self._now_ms - largest_ms)
        limit = f"retention.ms={retention_ms} ({span_text(retention_ms)})"
        return [(Hold.AGE, f"{newest}, {age} ago, of {limit}")]

    def _size(self, draft: _Draft) -> str:
        limit = self._config.retention_bytes
        draft.bytes_until_size = max(limit - self._bytes_behind, 0)
        return (
            f"{self._bytes_behind} bytes lie behind it, of retention.bytes={limit}: by size it "
            f"goes when {draft.bytes_until_size} more are appended"
        )

    def _rolling(self, segment: ExplainedSegment, draft: _Draft) -> str:
        config = self._config
        sentence = (
            "it is the active segment: each append makes it younger, until it rolls at "
            f"segment.bytes={config.segment_size_bytes}"
        )
        try:
            first_ms = segment.first_timestamp_ms()
        except CorruptSegmentError:
            return sentence
        if first_ms < 0:
            return f"{sentence} or {span_text(config.max_segment_ms)} after it was begun"
        draft.rolls_after_ms = first_ms + config.max_segment_ms - config.segment_jitter_ms
        return f"{sentence} or with a batch from after {moment_text(draft.rolls_after_ms)}"

    def _made(
        self,
        slot: int,
        draft: _Draft,
        goes_at_ms: int | None,
        breach: Breach | None,
        holds: tuple[Hold, ...],
        explanation: str,
    ) -> SegmentFate:
        segment = self._segments[slot]
        return SegmentFate(
            segment.base_offset,
            self._end_offsets[slot],
            segment.size_bytes,
            self._is_active(slot),
            draft.largest_timestamp_ms,
            draft.is_file_time,
            draft.newest_offset,
            draft.rolls_after_ms,
            draft.due_ms,
            draft.bytes_until_size,
            goes_at_ms,
            breach,
            holds,
            explanation,
        )


def _offset_of(segment: ExplainedSegment, timestamp_ms: int) -> int | None:
    """The record that has the timestamp, as far as its batch can be read."""
    with suppress(StratalogError):
        found = segment.find_by_timestamp(timestamp_ms, start_offset=segment.base_offset)
        return None if found is None else found.offset
    return None


def _warnings(config: TopicConfig, fates: Sequence[SegmentFate], is_checked: bool) -> list[str]:
    found = []
    if not is_checked:
        found.append(
            "cleanup.policy has compact and log.cleaner.enable=false: nothing is ever removed"
        )
    found += _limits_without_effect(config) if not config.delete else _limits_that_mislead(config)
    ahead = [fate for fate in fates if Hold.FUTURE_TIMESTAMP in fate.holds]
    if ahead:
        latest_ms = max(fate.largest_timestamp_ms or 0 for fate in ahead)
        found.append(
            f"{len(ahead)} of {len(fates)} segments hold timestamps in the future, up to "
            f"{moment_text(latest_ms)}: they and all behind them stay until then and retention.ms "
            f"longer; message.timestamp.after.max.ms={config.message_timestamp_after_max_ms} is "
            "what keeps such records out"
        )
    return found


def _limits_without_effect(config: TopicConfig) -> list[str]:
    found = []
    for name, value in (
        ("retention.bytes", config.retention_bytes),
        ("retention.ms", config.retention_ms),
    ):
        if value >= 0 and name in config.overrides:
            found.append(f"{name}={value} has no effect without delete in cleanup.policy")
    return found


def _limits_that_mislead(config: TopicConfig) -> list[str]:
    found = []
    retention_ms, segment_ms = config.retention_ms, config.max_segment_ms
    if 0 <= retention_ms < segment_ms:
        longest = span_text(retention_ms + segment_ms)
        found.append(
            f"retention.ms={retention_ms} is less than segment.ms={segment_ms}: a segment that is "
            f"appended to all the time goes as a whole, so a record may stay for {longest}"
        )
    if 0 <= config.retention_bytes < config.segment_size_bytes:
        found.append(
            f"retention.bytes={config.retention_bytes} is less than segment.bytes="
            f"{config.segment_size_bytes}: only whole segments go, so a partition may have "
            f"{config.retention_bytes + config.segment_size_bytes} bytes"
        )
    return found
