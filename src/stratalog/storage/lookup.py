"""Offsets by time: what ListOffsets asks of a log.

The answer for a timestamp is exact: the first record, in offset order, that is not older. Apache
Kafka looks only into the first segment whose largest timestamp is late enough, and answers
"unknown" when deleted records hide what it finds there; this goes on to the next segment.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from stratalog.errors import StorageError
from stratalog.records import find_record_by_timestamp
from stratalog.storage.epochs import UNDEFINED_EPOCH
from stratalog.storage.reading import Isolation, upper_bound
from stratalog.storage.segment import Segment

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
    start_offset = log.log_start_offset
    largest = -1
    for segment in log.segments.from_floor(start_offset):
        if segment.base_offset >= start_offset:
            largest = max(largest, segment.max_timestamp().timestamp_ms)
        else:
            largest = max(largest, _largest_behind(segment, start_offset))
    if largest < 0:
        return ListedOffset()
    found = offset_for_timestamp(log, largest, Isolation.LOG_END)
    return found if found.offset < upper_bound(log, isolation) else ListedOffset()


def _largest_behind(segment: Segment, start_offset: int) -> int:
    """The largest timestamp of the records at or above ``start_offset``."""
    largest = -1
    first = segment.find(start_offset)
    for header in segment.headers(segment.size_bytes if first is None else first.position):
        if header.max_timestamp_ms <= largest:
            continue
        if header.base_offset >= start_offset:
            largest = header.max_timestamp_ms
            continue
        # The batch that the log starts in: only its records can tell.
        batch = segment.read_batch(header)
        while found := find_record_by_timestamp(batch, largest + 1, start_offset):
            largest = found[1]
    return largest
