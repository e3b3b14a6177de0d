"""Offsets by time: what ListOffsets asks of a log.

The answer for a timestamp is exact: the first record, in offset order, that is not older. Apache
Kafka looks only into the first segment whose largest timestamp is late enough, and answers
"unknown" when deleted records hide what it finds there; this goes on to the next segment.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from stratalog.errors import StorageError
from stratalog.storage.epochs import UNDEFINED_EPOCH
from stratalog.storage.reading import Isolation, upper_bound

if TYPE_CHECKING:
    from stratalog.storage.log import Log


class SpecialTimestamp(IntEnum):
    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An answer; offset, timestamp and epoch are -1 where there is none."""

    offset: int = -1
    timestamp_ms: int = -1
    leader_epoch: int = UNDEFINED_EPOCH


def list_offset(
    log: "Log", timestamp_ms: int, isolation: Isolation = Isolation.HIGH_WATERMARK
) -> ListedOffset:
    """The offset that ``timestamp_ms``, or one of the special values, stands for."""
    if timestamp_ms >= 0:
        return offset_for_timestamp(log, timestamp_ms, isolation)
    if timestamp_ms == SpecialTimestamp.LATEST:
        offset = upper_bound(log, isolation)
        return ListedOffset(offset, leader_epoch=log.epochs.latest_epoch)
    if timestamp_ms in (SpecialTimestamp.EARLIEST, SpecialTimestamp.EARLIEST_LOCAL):
        return _earliest(log)
    if timestamp_ms == SpecialTimestamp.MAX_TIMESTAMP:
        return _max_timestamp(log, isolation)
    if timestamp_ms in (SpecialTimestamp.LATEST_TIERED, SpecialTimestamp.EARLIEST_PENDING_UPLOAD):
        return ListedOffset()  # there is no tiered storage
    raise StorageError(f"timestamp {timestamp_ms} is neither a time nor a special value")


def _earliest(log: "Log") -> ListedOffset:
    entries = log.epochs.entries
    known = bool(entries) and entries[0].start_offset <= log.log_start_offset
    return ListedOffset(
        log.log_start_offset, leader_epoch=entries[0].epoch if known else UNDEFINED_EPOCH
    )


def offset_for_timestamp(
    log: "Log", timestamp_ms: int, isolation: Isolation = Isolation.HIGH_WATERMARK
) -> ListedOffset:
    bound = upper_bound(log, isolation)
    for segment in log.segments.from_floor(log.log_start_offset):
        if segment.base_offset >= bound:
            break
        if segment.max_timestamp().timestamp_ms < timestamp_ms:
            continue
        found = segment.find_by_timestamp(timestamp_ms, start_offset=log.log_start_offset)
        if found is not None:
            if found.offset >= bound:
                break
            return ListedOffset(found.offset, found.timestamp_ms, found.leader_epoch)
    return ListedOffset()


def _max_timestamp(log: "Log", isolation: Isolation) -> ListedOffset:
    """The first record that has the largest timestamp of all that are still there."""
    largest = -1
    for segment in log.segments.from_floor(log.log_start_offset):
        largest = max(largest, segment.max_timestamp().timestamp_ms)
    while largest >= 0:
        found = offset_for_timestamp(log, largest, Isolation.LOG_END)
        if found.offset >= 0:
            return found if found.offset < upper_bound(log, isolation) else ListedOffset()
        # Only records below the log start have it: look for the next smaller one that is left.
        largest = _largest_from(log, log.log_start_offset)
        if largest < 0 or offset_for_timestamp(log, largest, Isolation.LOG_END).offset < 0:
            break
    return ListedOffset()


def _largest_from(log: "Log", start_offset: int) -> int:
    """The largest batch timestamp among batches wholly or partly at or above ``start_offset``."""
    return max(
        (
            header.max_timestamp_ms
            for segment in log.segments.from_floor(start_offset)
            for header in segment.headers()
            if header.base_offset >= start_offset or header.magic < 2
        ),
        default=-1,
    )
