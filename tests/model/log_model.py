"""A log as a list of batches: what it would say, by the plainest reading of the rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from stratalog.records import Record

NEVER = 2**62


@dataclass(frozen=True)
class ModelBatch:
    """A batch in the list: ``stored`` is what the log should hold, byte for byte."""

    stored: bytes
    produced: bytes
    base_offset: int
    records: tuple[Record, ...]
    producer_id: int = -1
    last_sequence: int = -1
    is_transactional: bool = False
    commits: bool | None = None

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)

    @property
    def is_control(self) -> bool:
        return self.commits is not None


def open_transactions(batches: Sequence[ModelBatch]) -> dict[int, int]:
    """First offsets of the transactions that nobody has ended, by producer."""
    found: dict[int, int] = {}
    for batch in batches:
        if batch.is_control:
            found.pop(batch.producer_id, None)
        elif batch.is_transactional:
            found.setdefault(batch.producer_id, batch.base_offset)
    return found


def transactions(batches: Sequence[ModelBatch]) -> list[tuple[int, int]]:
    """Where each begins, and one past its marker; the latest first."""
    found = [(first, NEVER) for first in open_transactions(batches).values()]
    opened: dict[int, int] = {}
    for batch in batches:
        if batch.is_control:
            first_offset = opened.pop(batch.producer_id, batch.base_offset)
            found.append((first_offset, batch.next_offset))
        elif batch.is_transactional:
            opened.setdefault(batch.producer_id, batch.base_offset)
    return sorted(found, reverse=True)


def aborted_batches(batches: Sequence[ModelBatch]) -> set[int]:
    """Base offsets of what a reader of committed data never sees."""
    found: set[int] = set()
    pending: dict[int, list[int]] = {}
    for batch in batches:
        if batch.is_control:
            offsets = pending.pop(batch.producer_id, [])
            found |= set() if batch.commits else set(offsets)
        elif batch.is_transactional:
            pending.setdefault(batch.producer_id, []).append(batch.base_offset)
    return found


def last_stable_offset(
    batches: Sequence[ModelBatch], *, high_watermark: int, log_start_offset: int
) -> int:
    """Below every transaction that is open, or whose end lies above the high watermark."""
    unstable = [high_watermark]
    unstable += [
        first_offset
        for first_offset, end_offset in transactions(batches)
        if end_offset > high_watermark
    ]
    return max(min(unstable), log_start_offset)


def first_not_older(batches: Sequence[ModelBatch], at: int, *, start_offset: int) -> int:
    """The offset of the first record that is not older than ``at``; ``NEVER`` if none is."""
    for batch in batches:
        for index, record in enumerate(batch.records):
            offset = batch.base_offset + index
            if record.timestamp_ms >= at and offset >= start_offset:
                return offset
    return NEVER
