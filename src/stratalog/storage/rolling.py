"""When a log turns to a new segment, and why: a decision with its numbers, and no action."""

from dataclasses import dataclass
from enum import Enum

from stratalog.config import TopicConfig
from stratalog.storage.index import RELATIVE_OFFSET_MAX
from stratalog.storage.segment import NO_ROOM, Room, Segment


class RollCause(Enum):
    SIZE = "size"
    TIME = "time"
    OFFSET_INDEX_FULL = "offset index full"
    TIME_INDEX_FULL = "time index full"
    OFFSET_OVERFLOW = "offset overflow"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True)
class RollReason:
    cause: RollCause
    explanation: str

    def __str__(self) -> str:
        return f"{self.cause.value}: {self.explanation}"


def plan_roll(
    segment: Segment,
    config: TopicConfig,
    *,
    incoming_bytes: int,
    incoming_last_offset: int,
    incoming_max_timestamp_ms: int,
    now_ms: int,
) -> RollReason | None:
    """Whether ``segment`` must be left before the incoming batches are appended."""
    size_bytes = segment.size_bytes
    segment_bytes = config.segment_size_bytes
    if size_bytes > segment_bytes - incoming_bytes:
        return RollReason(
            RollCause.SIZE,
            f"{size_bytes} bytes and {incoming_bytes} incoming exceed "
            f"segment.bytes={segment_bytes}",
        )
    if size_bytes > 0:
        first_ms = segment.first_timestamp_ms()
        # Time is the records' own: the clock counts only where they have none.
        waited_ms = (
            incoming_max_timestamp_ms - first_ms if first_ms >= 0 else now_ms - segment.created_ms
        )
        if waited_ms > config.max_segment_ms - segment.jitter_ms:
            return RollReason(
                RollCause.TIME,
                f"{waited_ms} ms since the first batch exceed segment.ms="
                f"{config.max_segment_ms} less a jitter of {segment.jitter_ms}",
            )
    if segment.offset_index.is_full:
        return RollReason(
            RollCause.OFFSET_INDEX_FULL,
            f"{segment.offset_index.entries} entries fill segment.index.bytes="
            f"{config.segment_index_bytes}",
        )
    if segment.time_index.is_full:
        return RollReason(
            RollCause.TIME_INDEX_FULL,
            f"{segment.time_index.entries} entries fill segment.index.bytes="
            f"{config.segment_index_bytes}",
        )
    relative = incoming_last_offset - segment.base_offset
    if not 0 <= relative <= RELATIVE_OFFSET_MAX:
        return RollReason(
            RollCause.OFFSET_OVERFLOW,
            f"offset {incoming_last_offset} is too far from the base {segment.base_offset}",
        )
    return None


def room_in(segment: Segment, config: TopicConfig) -> Room:
    """Where ``plan_roll`` says no whatever comes, as long as it ends within this: until the segment
    has another index entry, is cut, or is kept by another config. None, if only the clock tells."""
    first_ms = segment.first_timestamp_ms()
    if first_ms < 0 or segment.offset_index.is_full or segment.time_index.is_full:
        return NO_ROOM
    return Room(
        config.segment_size_bytes,
        segment.base_offset + RELATIVE_OFFSET_MAX,
        first_ms + config.max_segment_ms - segment.jitter_ms,
    )
