"""Which segments are too old, too many or below the log's start: decided here, with the numbers.

Kafka makes three passes, each from the oldest segment to the first that may stay:

    start offset   the next segment begins at or below the log start offset
    size           without it the log still has retention.bytes or more
    time           its largest timestamp is more than retention.ms ago

Only ``delete`` in ``cleanup.policy`` allows the last two. Whatever the pass, a segment stays while
the high watermark is below its end, and so does the active one while it is empty. What goes is
always a run from the log's start, so the passes amount to one walk: each goes on where the one
before it stopped.

``plan_retention`` decides and touches no more files than it must; ``delete_old_segments`` acts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError, DiskFullError
from stratalog.storage.moments import moment_text, span_text
from stratalog.storage.rolling import RollCause, RollReason

if TYPE_CHECKING:
    from stratalog.storage.log import Log
    from stratalog.storage.segment import Segment


class SegmentLike(Protocol):
    """What a plan asks of a segment. Only the timestamps may cost a look at a file."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    def largest_timestamp_ms(self) -> int:
        """The largest timestamp, or the file's modification time where no record has one."""
        ...

    def first_timestamp_ms(self) -> int:
        """The first batch's largest timestamp, -1 if there is none."""
        ...


S = TypeVar("S", bound=SegmentLike)


class Breach(Enum):
    """The rule by which a segment goes."""

    START_OFFSET = "start offset"
    SIZE = "size"
    TIME = "time"


class Hold(Enum):
    """What keeps a segment, or may keep it longer than its own age would."""

    UNKNOWN_CONFIGS = "unknown configs"
    NEVER_CHECKED = "never checked"
    HIGH_WATERMARK = "high watermark"
    EMPTY_ACTIVE_SEGMENT = "empty active segment"
    CLEANUP_POLICY = "cleanup policy"
    NO_LIMIT = "no limit"
    DAMAGE = "damage"
    FUTURE_TIMESTAMP = "future timestamp"
    AGE = "age"
    SIZE = "size"
    OLDER_SEGMENT = "older segment"
    ACTIVE_SEGMENT = "active segment"


@dataclass(frozen=True, slots=True)
class Doomed(Generic[S]):
    """A segment that goes, by which rule, and the numbers that say so."""

    segment: S
    breach: Breach
    explanation: str


@dataclass(frozen=True, slots=True)
class Held(Generic[S]):
    """The first segment that stays, and what held it."""

    segment: S
    hold: Hold
    explanation: str


@dataclass(frozen=True, slots=True)
class RetentionPlan(Generic[S]):
    """``doomed`` is a run from the log's start; ``held`` is None if nothing stays.

    ``log_start_offset`` is where the log starts once the plan has been carried out.
    """

    doomed: tuple[Doomed[S], ...]
    held: Held[S] | None
    log_start_offset: int

    @property
    def segments(self) -> list[S]:
        return [each.segment for each in self.doomed]

    @property
    def rolls_first(self) -> bool:
        """Whether the active segment goes too: a log turns to a new one before it loses all."""
        return bool(self.doomed) and self.held is None

    @property
    def freed_bytes(self) -> int:
        return sum(each.segment.size_bytes for each in self.doomed)


def plan_retention(
    segments: Iterable[S],
    *,
    config: TopicConfig,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
) -> RetentionPlan[S]:
    """What a check of ``segments``, oldest first and the active one last, finds at ``now_ms``."""
    walk = _Walk(list(segments), high_watermark, log_end_offset)
    walk.doom(Breach.START_OFFSET, _start_offset_rule(walk, log_start_offset))
    stays = (Hold.CLEANUP_POLICY, policy_sentence(config))
    if config.delete:
        if config.retention_bytes >= 0:
            walk.doom(Breach.SIZE, _size_rule(walk, config.retention_bytes))
        age = _AgeRule(config.retention_ms, now_ms)
        walk.doom(Breach.TIME, age)
        stays = age.why_not or _without_age(config.retention_bytes)
    start_offset = log_start_offset
    if walk.doomed:
        start_offset = max(start_offset, walk.end_offset(len(walk.doomed) - 1))
    return RetentionPlan(tuple(walk.doomed), walk.held(stays), start_offset)


class _Walk(Generic[S]):
    """From the oldest segment to the first that stays, over all passes."""

    def __init__(self, segments: Sequence[S], high_watermark: int, log_end_offset: int) -> None:
        self.segments = segments
        self.doomed: list[Doomed[S]] = []
        self._high_watermark = high_watermark
        self._log_end_offset = log_end_offset

    def end_offset(self, slot: int) -> int:
        """Where the segment ends, by the base of the next; the last ends where the log does."""
        is_last = slot == len(self.segments) - 1
        return self._log_end_offset if is_last else self.segments[slot + 1].base_offset

    def gate(self, slot: int) -> tuple[Hold, str] | None:
        """What keeps a segment whatever the rule."""
        end_offset = self.end_offset(slot)
        if self._high_watermark < end_offset:
            return Hold.HIGH_WATERMARK, high_watermark_sentence(self._high_watermark, end_offset)
        if slot == len(self.segments) - 1 and self.segments[slot].size_bytes == 0:
            return Hold.EMPTY_ACTIVE_SEGMENT, "the active segment is empty: nothing could go"
        return None

    def doom(self, breach: Breach, rule: Callable[[S], str | None]) -> None:
        while len(self.doomed) < len(self.segments):
            slot = len(self.doomed)
            # The gate first: a segment that stays anyway need not be looked at.
            if self.gate(slot) is not None:
                return
            reason = rule(self.segments[slot])
            if reason is None:
                return
            self.doomed.append(Doomed(self.segments[slot], breach, reason))

    def held(self, otherwise: tuple[Hold, str]) -> Held[S] | None:
        slot = len(self.doomed)
        if slot == len(self.segments):
            return None
        hold, explanation = self.gate(slot) or otherwise
        return Held(self.segments[slot], hold, explanation)


def _start_offset_rule(walk: _Walk[S], log_start_offset: int) -> Callable[[S], str | None]:
    def rule(_segment: S) -> str | None:
        slot = len(walk.doomed)
        next_offset = walk.end_offset(slot)
        # The last segment has no next one, so the log start is never behind it.
        if slot == len(walk.segments) - 1 or next_offset > log_start_offset:
            return None
        return f"it ends at {next_offset}, and the log starts at {log_start_offset}"

    return rule


def _size_rule(walk: _Walk[S], retention_bytes: int) -> Callable[[S], str | None]:
    # By what is left after the pass before this one.
    log_bytes = sum(segment.size_bytes for segment in walk.segments[len(walk.doomed) :])

    def rule(segment: S) -> str | None:
        nonlocal log_bytes
        if log_bytes - segment.size_bytes < retention_bytes:
            return None
        reason = (
            f"of {log_bytes} bytes, {log_bytes - segment.size_bytes} are left without it: "
            f"not less than retention.bytes={retention_bytes}"
        )
        log_bytes -= segment.size_bytes
        return reason

    return rule


class _AgeRule:
    """Also says what held the segment at which it stopped."""

    def __init__(self, retention_ms: int, now_ms: int) -> None:
        self.why_not: tuple[Hold, str] | None = None
        self._retention_ms = retention_ms
        self._now_ms = now_ms

    def __call__(self, segment: SegmentLike) -> str | None:
        if self._retention_ms < 0:
            return None
        try:
            largest_ms = segment.largest_timestamp_ms()
        except CorruptSegmentError as error:
            # How old it is cannot be told, and what cannot be told deletes nothing.
            self.why_not = (Hold.DAMAGE, str(error))
            return None
        age_ms = self._now_ms - largest_ms
        newest = f"its largest timestamp is {moment_text(largest_ms)}"
        limit = f"retention.ms={self._retention_ms} ({span_text(self._retention_ms)})"
        if age_ms > self._retention_ms:
            return f"{newest}, {span_text(age_ms)} ago: more than {limit}"
        if age_ms < 0:
            self.why_not = (Hold.FUTURE_TIMESTAMP, f"{newest}, {span_text(-age_ms)} in the future")
        else:
            self.why_not = (Hold.AGE, f"{newest}, {span_text(age_ms)} ago: within {limit}")
        return None


def policy_sentence(config: TopicConfig) -> str:
    """Why neither age nor size counts."""
    if config.compact:
        return "cleanup.policy=compact: segments go only when they lie below the log start offset"
    return "cleanup.policy is empty: segments go only when they lie below the log start offset"


def _without_age(retention_bytes: int) -> tuple[Hold, str]:
    if retention_bytes < 0:
        return Hold.NO_LIMIT, "neither retention.ms nor retention.bytes sets a limit"
    return Hold.SIZE, f"less than retention.bytes={retention_bytes} would be left without it"


def high_watermark_sentence(high_watermark: int, end_offset: int) -> str:
    return f"the high watermark, {high_watermark}, is below its end, {end_offset}"


# --- acting ----------------------------------------------------------------------------------


def plan_for(log: "Log", now_ms: int) -> "RetentionPlan[Segment]":
    """What a check of ``log`` would find now. A log whose configs are unknown loses nothing."""
    if log.is_held:
        held = Held(
            log.segments.first,
            Hold.UNKNOWN_CONFIGS,
            f"the configs of {log.topic_partition.topic} are unknown",
        )
        return RetentionPlan((), held, log.log_start_offset)
    return plan_retention(
        log.segments,
        config=log.config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
    )


def delete_old_segments(log: "Log", now_ms: int) -> "RetentionPlan[Segment]":
    """Take what is due out of the log; returns what was done. On the owner's thread.

    The log start is raised first; files are renamed at once and unlinked after
    ``file.delete.delay.ms``, when ``Log.run_deletes`` is called.
    """
    plan = plan_for(log, now_ms)
    if plan.rolls_first:
        try:
            log.roll(RollReason(RollCause.REQUESTED, "every segment is being deleted"))
        except DiskFullError as error:
            # What frees space must not need space: all but the active one can go without a roll.
            *others, active = plan.doomed
            plan = RetentionPlan(
                tuple(others),
                Held(active.segment, Hold.ACTIVE_SEGMENT, f"no new one can be begun: {error}"),
                max(log.log_start_offset, active.segment.base_offset if others else 0),
            )
    log.delete_segments(plan.segments)
    return plan
