"""What the cleaner would do with a log, and why: decisions with their numbers, and no action.

A log under compaction reads, from its oldest segment on:

    clean             below first_dirty_offset: every key's last value there is known
    cleanable         dirty, in closed segments, and old enough: what a round may map and rewrite
    not yet cleanable the active segment; whatever is above the last stable offset; segments with
                      a record younger than min.compaction.lag.ms

A round works on whole segments, so ``first_uncleanable_offset`` is always a segment's base. Where
the map of keys was full, ``first_dirty_offset`` lies inside a segment; its bytes then count as
clean and as cleanable, as in Apache Kafka.

The last segment given is the active one. Timestamps are asked of segments only where a lag
setting makes them count, since a segment may have to read its file to answer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from stratalog.config import TopicConfig
from stratalog.storage.index import RELATIVE_OFFSET_MAX
from stratalog.storage.moments import moment_text, span_text
from stratalog.storage.retention import SegmentLike

_BYTES_MAX = 1 << 62


class CheckpointReset(Enum):
    """Why a log's entry in ``cleaner-offset-checkpoint`` is not believed."""

    BELOW_LOG_START = "below the log start"
    ABOVE_LOG_END = "above the log end"


class BoundKind(Enum):
    """What may keep a dirty segment out of a round."""

    ACTIVE_SEGMENT = "active segment"
    LAST_STABLE_OFFSET = "last stable offset"
    MIN_COMPACTION_LAG = "min.compaction.lag.ms"


@dataclass(frozen=True, slots=True)
class Bound:
    """Nothing is cleaned from ``offset`` on; if only time is missing, until ``until_ms``."""

    kind: BoundKind
    offset: int
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """What a round would clean now. ``reasons`` tells how it was found out."""

    config: TopicConfig
    now_ms: int
    checkpoint: int | None
    reset: CheckpointReset | None
    log_start_offset: int
    log_end_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    bounds: tuple[Bound, ...]  # the one that comes first in the log is the first
    clean_bytes: int
    cleanable_bytes: int
    uncleanable_bytes: int  # from first_uncleanable_offset on, the active segment included
    active_bytes: int
    earliest_dirty_timestamp_ms: int | None  # None: none is known, or nobody needed to ask
    compaction_delay_ms: int

    @property
    def is_checkpoint_reset(self) -> bool:
        """Whether the checkpoint has to be written again, with ``first_dirty_offset``."""
        return self.reset is not None

    @property
    def bound(self) -> Bound:
        """What ends the cleanable part."""
        return self.bounds[0]

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def needs_compaction_now(self) -> bool:
        """Whether a record has been dirty for longer than ``max.compaction.lag.ms``."""
        return self.compaction_delay_ms > 0

    @property
    def is_eligible(self) -> bool:
        """Whether a cleaner may pick this log: Kafka's comparison with the ratio is strict."""
        if not self.config.compact or not self.total_bytes:
            return False
        if self.needs_compaction_now and self.cleanable_bytes:
            return True
        return self.cleanable_ratio > self.config.min_cleanable_dirty_ratio

    @property
    def missing_bytes(self) -> int | None:
        """How many more bytes must become cleanable before the log is eligible; ``None`` if no
        amount is enough, since a ratio of 1 cannot be exceeded."""
        if self.is_eligible:
            return 0
        if self.needs_compaction_now:
            return 1
        if not self._exceeds_ratio(_BYTES_MAX):
            return None
        return bisect_left(range(_BYTES_MAX), True, key=self._exceeds_ratio)

    def _exceeds_ratio(self, more_bytes: int) -> bool:
        total = self.total_bytes + more_bytes
        ratio = (self.cleanable_bytes + more_bytes) / total if total else 0.0
        return ratio > self.config.min_cleanable_dirty_ratio

    @property
    def reasons(self) -> tuple[str, ...]:
        """The decision in words, with its arithmetic."""
        if not self.config.compact:
            policy = ",".join(self.config.cleanup_policy) or "empty"
            return (f"not compacted: cleanup.policy is {policy}",)
        return (
            _say_first_dirty(self),
            *(_say_bound(bound) for bound in self.bounds),
            *_say_sizes(self),
            *_say_delay(self),
            *_say_verdict(self),
        )


def plan_cleaning(
    segments: Sequence[SegmentLike],
    *,
    config: TopicConfig,
    checkpoint: int | None,
    log_start_offset: int,
    last_stable_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> CleaningPlan:
    """What of a log may be cleaned now; ``checkpoint`` is what an earlier round left, if any.

    A damaged segment that cannot tell its timestamps raises: such a log cannot be cleaned.
    """
    assert segments, "a log has at least its active segment"
    bases = [segment.base_offset for segment in segments]
    reset = _find_reset(checkpoint, log_start_offset, log_end_offset)
    first_dirty = log_start_offset if checkpoint is None or reset is not None else checkpoint
    closed = segments[_floor(bases, first_dirty) : len(segments) - 1]
    bounds = _find_bounds(closed, bases[-1], last_stable_offset, config, now_ms)
    # What is clean already is never given back; then whole segments, the active one at most.
    bounded = max(first_dirty, min(bound.offset for bound in bounds))
    uncleanable = _floor(bases, bounded)
    dirty = min(_floor(bases, first_dirty), uncleanable)
    sizes = [segment.size_bytes for segment in segments]
    earliest_ms, delay_ms = _find_delay(closed, config, now_ms)
    return CleaningPlan(
        config=config,
        now_ms=now_ms,
        checkpoint=checkpoint,
        reset=reset,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=bases[uncleanable],
        bounds=bounds,
        clean_bytes=sum(sizes[: bisect_left(bases, first_dirty)]),
        cleanable_bytes=sum(sizes[dirty:uncleanable]),
        uncleanable_bytes=sum(sizes[uncleanable:]),
        active_bytes=sizes[-1],
        earliest_dirty_timestamp_ms=earliest_ms,
        compaction_delay_ms=delay_ms,
    )


def _floor(bases: list[int], offset: int) -> int:
    """The place of the segment that owns ``offset``; the first if it lies before all of them."""
    return max(bisect_right(bases, offset) - 1, 0)


def _find_reset(
    checkpoint: int | None, log_start_offset: int, log_end_offset: int
) -> CheckpointReset | None:
    if checkpoint is None:
        return None
    if checkpoint < log_start_offset:
        return CheckpointReset.BELOW_LOG_START
    if checkpoint > log_end_offset:
        # The log has lost its end since: what is clean in it nobody knows.
        return CheckpointReset.ABOVE_LOG_END
    return None


def _find_bounds(
    closed: Sequence[SegmentLike],
    active_base_offset: int,
    last_stable_offset: int,
    config: TopicConfig,
    now_ms: int,
) -> tuple[Bound, ...]:
    """All that ends the cleanable part, the earliest first; ``closed`` are the dirty segments."""
    bounds = [Bound(BoundKind.ACTIVE_SEGMENT, active_base_offset)]
    if last_stable_offset < active_base_offset:
        bounds.append(Bound(BoundKind.LAST_STABLE_OFFSET, last_stable_offset))
    lag_ms = config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in closed:
            largest_ms = segment.largest_timestamp_ms()
            if largest_ms > now_ms - lag_ms:
                until_ms = largest_ms + lag_ms
                bounds.append(Bound(BoundKind.MIN_COMPACTION_LAG, segment.base_offset, until_ms))
                break
    return tuple(sorted(bounds, key=lambda bound: bound.offset))


def _find_delay(
    closed: Sequence[SegmentLike], config: TopicConfig, now_ms: int
) -> tuple[int | None, int]:
    """The oldest timestamp of the dirty segments, and by how much it is overdue."""
    clean_until_ms = now_ms - config.max_compaction_lag_ms
    if clean_until_ms <= 1:  # no timestamp that counts lies before it
        return None, 0
    # A batch without a timestamp, or with one of 0, does not count.
    known = [found for segment in closed if (found := segment.first_timestamp_ms()) > 0]
    if not known:
        return None, 0
    earliest_ms = min(known)
    return earliest_ms, max(0, clean_until_ms - earliest_ms)


# --- when it will be eligible ----------------------------------------------------------------


def find_eligible_ms(segments: Sequence[SegmentLike], plan: CleaningPlan) -> int | None:
    """When the log becomes eligible by the passing of time alone, nothing appended or rolled;
    ``now_ms`` if it is already, ``None`` if time alone does not make it so."""
    if plan.is_eligible:
        return plan.now_ms
    if not plan.config.compact:
        return None
    bases = [segment.base_offset for segment in segments]
    closed = segments[_floor(bases, plan.first_dirty_offset) : len(segments) - 1]
    stable = min((b.offset for b in plan.bounds if b.until_ms is None), default=bases[-1])

    def is_eligible_at(moment_ms: int) -> bool:
        return plan_cleaning(
            segments,
            config=plan.config,
            checkpoint=plan.first_dirty_offset,
            log_start_offset=plan.log_start_offset,
            last_stable_offset=stable,
            log_end_offset=plan.log_end_offset,
            now_ms=moment_ms,
        ).is_eligible

    # Each segment's lag ends at a moment of its own, and so does the patience with the oldest
    # record. A log that is eligible at one of these moments is so at all later ones.
    config = plan.config
    lag_ms = config.min_compaction_lag_ms
    moments = {segment.largest_timestamp_ms() + lag_ms for segment in closed if lag_ms > 0}
    oldest = [found for segment in closed if (found := segment.first_timestamp_ms()) > 0]
    if oldest:
        moments.add(min(oldest) + config.max_compaction_lag_ms + 1)
    ordered = sorted(moment for moment in moments if moment > plan.now_ms)
    place = bisect_left(ordered, True, key=is_eligible_at)
    return ordered[place] if place < len(ordered) else None


# --- which log, which segments together -------------------------------------------------------

Key = TypeVar("Key")


def choose_filthiest(plans: Mapping[Key, CleaningPlan]) -> Key | None:
    """The eligible log with the largest part to clean; being overdue gives no precedence."""
    eligible = [key for key, plan in plans.items() if plan.is_eligible]
    return max(eligible, key=lambda key: plans[key].cleanable_ratio, default=None)


class GroupedSegment(Protocol):
    """What grouping asks of a segment; the indexes' sizes are their entries, not their files."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def offset_index_bytes(self) -> int: ...
    @property
    def time_index_bytes(self) -> int: ...


Grouped = TypeVar("Grouped", bound=GroupedSegment)


def group_segments(
    segments: Sequence[Grouped],
    *,
    segment_bytes: int,
    segment_index_bytes: int,
    first_uncleanable_offset: int,
) -> list[list[Grouped]]:
    """Consecutive segments that become one: as many as surely fit, even if nothing is removed."""
    groups: list[list[Grouped]] = []
    sizes = (0, 0, 0)
    for place, segment in enumerate(segments):
        own = (segment.size_bytes, segment.offset_index_bytes, segment.time_index_bytes)
        together = (sizes[0] + own[0], sizes[1] + own[1], sizes[2] + own[2])
        is_last = place == len(segments) - 1
        end_offset = first_uncleanable_offset if is_last else segments[place + 1].base_offset
        if (
            groups
            and together[0] <= segment_bytes
            and together[1] <= segment_index_bytes
            and together[2] <= segment_index_bytes
            # An empty segment holds no offset that could be too far away. Without this one would
            # be left behind every 2^31 offsets, for ever.
            and (own[0] == 0 or end_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        ):
            groups[-1].append(segment)
            sizes = together
        else:
            groups.append([segment])
            sizes = own
    return groups


# --- in words --------------------------------------------------------------------------------


def _say_first_dirty(plan: CleaningPlan) -> str:
    first = plan.first_dirty_offset
    if plan.reset is CheckpointReset.BELOW_LOG_START:
        because = f"the checkpoint, {plan.checkpoint}, is below the log start {first}"
    elif plan.reset is CheckpointReset.ABOVE_LOG_END:
        because = (
            f"the checkpoint, {plan.checkpoint}, is above the log end {plan.log_end_offset}: "
            "everything is cleaned again"
        )
    elif plan.checkpoint is None:
        because = "the log start, since no checkpoint is there: it was never cleaned"
    else:
        because = "the checkpoint of the last round"
    return f"dirty from offset {first}: {because}"


def _say_bound(bound: Bound) -> str:
    if bound.kind is BoundKind.ACTIVE_SEGMENT:
        return f"not cleanable from offset {bound.offset}: the active segment is never cleaned"
    if bound.kind is BoundKind.LAST_STABLE_OFFSET:
        return (
            f"not cleanable from offset {bound.offset}: the last stable offset; above it a "
            "transaction is open or replicas lag"
        )
    return (
        f"not cleanable from offset {bound.offset}: its segment has a record younger than "
        f"min.compaction.lag.ms until {moment_text(bound.until_ms or 0)}"
    )


def _say_sizes(plan: CleaningPlan) -> tuple[str, ...]:
    left_out = plan.uncleanable_bytes - plan.active_bytes
    told = (
        f"ratio: {plan.cleanable_bytes} cleanable bytes / ({plan.clean_bytes} clean + "
        f"{plan.cleanable_bytes} cleanable) = {plan.cleanable_ratio:.4f}; not counted: "
        f"{plan.active_bytes} bytes of the active segment and {left_out} of closed segments from "
        f"offset {plan.first_uncleanable_offset} on"
    )
    return (told,)


def _say_delay(plan: CleaningPlan) -> tuple[str, ...]:
    if plan.earliest_dirty_timestamp_ms is None:
        return ()
    lag = f"max.compaction.lag.ms={plan.config.max_compaction_lag_ms}"
    oldest = f"the oldest dirty timestamp is {moment_text(plan.earliest_dirty_timestamp_ms)}"
    if plan.needs_compaction_now:
        return (f"{oldest}: {span_text(plan.compaction_delay_ms)} past {lag}",)
    return (f"{oldest}: within {lag}",)


def _say_verdict(plan: CleaningPlan) -> tuple[str, ...]:
    least = f"min.cleanable.dirty.ratio={plan.config.min_cleanable_dirty_ratio}"
    if not plan.total_bytes:
        return ("not eligible: no closed segment has anything to clean",)
    if plan.cleanable_ratio > plan.config.min_cleanable_dirty_ratio:
        return (f"eligible: the ratio exceeds {least}",)
    if plan.is_eligible:
        return ("eligible: max.compaction.lag.ms has passed",)
    missing = plan.missing_bytes
    needed = (
        "a ratio of 1 cannot be exceeded, only max.compaction.lag.ms can make it eligible"
        if missing is None
        else f"{missing} more cleanable bytes are needed"
    )
    return (f"not eligible: the ratio does not exceed {least}; {needed}",)
