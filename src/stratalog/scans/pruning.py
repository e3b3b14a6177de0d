"""Which bytes of a segment can hold what a scan asks for.

Lower bounds of time prune by Kafka's ``.timeindex``, which knows the largest timestamp up to an
offset. Upper bounds cannot: Kafka's files hold no smallest one. They prune by our own time ranges,
or by a lateness that the reader vouches for: behind a record at T, nothing is older than T less
that. What a segment's files cannot prove is kept.
"""

from dataclasses import dataclass, field
from enum import Enum

from stratalog.errors import DiskError
from stratalog.scans.places import SegmentPlaces
from stratalog.scans.where import Where
from stratalog.storage.files import FileSystem
from stratalog.storage.time_ranges import read_time_ranges

# How much of a segment's batches may be walked to find where a lower bound begins.
_WALK_BUDGET_BYTES = 4 << 20
# Two ranges this close are read as one: a seek costs more than the bytes between.
_JOIN_BYTES = 16 << 10


class Skip(Enum):
    """Why bytes are not read."""

    PARTITION = "the partition is not asked for"
    KEY = "the partition cannot hold the keys"
    OFFSETS = "outside the offsets asked for"
    OLDER = "older than the lower time bound, by .timeindex"
    TIME_RANGES = "outside the time bounds, by time ranges"
    LATENESS = "newer than the upper time bound, by maxLateness"


@dataclass(slots=True)
class Tally:
    """Bytes and segments skipped, by reason; segments with and without time ranges."""

    skipped_bytes: dict[Skip, int] = field(default_factory=dict)
    skipped_segments: dict[Skip, int] = field(default_factory=dict)
    with_ranges: int = 0
    without_ranges: int = 0

    def skip(self, reason: Skip, size_bytes: int, *, segments: int = 0) -> None:
        if size_bytes > 0 or segments:
            known = self.skipped_bytes.get(reason, 0)
            self.skipped_bytes[reason] = known + size_bytes
        if segments:
            self.skipped_segments[reason] = self.skipped_segments.get(reason, 0) + segments


class TimePruner:
    """Prunes the segments of one partition, in their order."""

    def __init__(self, where: Where, max_lateness_ms: int | None, tally: Tally) -> None:
        self._min_ms = where.min_timestamp_ms
        self._max_ms = where.max_timestamp_ms
        self._late_ms: int | None = None  # what a record must be later than, to end it all
        if max_lateness_ms is not None and self._max_ms is not None:
            self._late_ms = self._max_ms + max_lateness_ms
        self._tally = tally
        self.is_over = False  # no later segment can hold anything

    def keep(
        self,
        files: FileSystem,
        places: SegmentPlaces,
        begin: int,
        finish: int,
        *,
        directory: str,
        is_active: bool,
    ) -> list[tuple[int, int]]:
        """The parts of ``[begin, finish)`` to read."""
        end = finish
        if self._late_ms is not None:
            end = self._end_by_lateness(places, begin, finish, self._late_ms)
            self._tally.skip(Skip.LATENESS, finish - end)
        try:
            ranges = read_time_ranges(
                files,
                directory,
                places.base_offset,
                log_file=places.file,
                log_size=places.size_bytes,
                is_active=is_active,
                inode=places.inode,
            )
        except DiskError:
            ranges = None
        if ranges is not None:
            self._tally.with_ranges += 1
            kept = ranges.slices_overlapping(self._min_ms, self._max_ms, begin, end)
            kept = _joined(kept)
            left = end - begin - sum(b - a for a, b in kept)
            self._tally.skip(Skip.TIME_RANGES, left, segments=int(not kept))
            return kept
        self._tally.without_ranges += 1
        start = begin
        if self._min_ms is not None:
            start = places.skip_older(self._min_ms, begin, budget_bytes=_WALK_BUDGET_BYTES)
            start = min(start, end)
            self._tally.skip(Skip.OLDER, start - begin, segments=int(start >= end))
        return [(start, end)] if start < end else []

    def _end_by_lateness(self, places: SegmentPlaces, begin: int, finish: int, late_ms: int) -> int:
        batch = places.first_later(late_ms)
        if batch is None:
            return finish
        self.is_over = True
        return min(max(batch.position + batch.size_bytes, begin), finish)


def _joined(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in parts:
        if found and start - found[-1][1] <= _JOIN_BYTES:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found
