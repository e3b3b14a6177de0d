"""The segments of one log, ordered by base offset."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from stratalog.storage.segment import Segment


class Segments:
    """Never empty once a log is open; the last one is the active segment."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._ordered = sorted(segments, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._ordered]

    def __len__(self) -> int:
        return len(self._ordered)

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._ordered))

    @property
    def active(self) -> Segment:
        return self._ordered[-1]

    @property
    def first(self) -> Segment:
        return self._ordered[0]

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._ordered)

    def add(self, segment: Segment) -> None:
        """Put a segment in its place, in the stead of one with the same base offset."""
        slot = bisect_left(self._bases, segment.base_offset)
        if slot < len(self._bases) and self._bases[slot] == segment.base_offset:
            self._ordered[slot] = segment
        else:
            self._ordered.insert(slot, segment)
            self._bases.insert(slot, segment.base_offset)

    def remove(self, segment: Segment) -> None:
        slot = self._bases.index(segment.base_offset)
        del self._ordered[slot]
        del self._bases[slot]

    def at(self, base_offset: int) -> Segment:
        """The segment with exactly that base offset."""
        return self._ordered[self._bases.index(base_offset)]

    def floor(self, offset: int) -> Segment | None:
        """The segment that owns ``offset``: the last whose base is not above it."""
        slot = bisect_right(self._bases, offset) - 1
        return self._ordered[slot] if slot >= 0 else None

    def higher(self, segment: Segment) -> Segment | None:
        slot = bisect_right(self._bases, segment.base_offset)
        return self._ordered[slot] if slot < len(self._ordered) else None

    def from_floor(self, offset: int) -> list[Segment]:
        """The segment that owns ``offset`` and all behind it; all if it lies before the first."""
        slot = max(bisect_right(self._bases, offset) - 1, 0)
        return self._ordered[slot:]

    def above(self, offset: int) -> list[Segment]:
        """Those whose base offset is above ``offset``."""
        return self._ordered[bisect_right(self._bases, offset) :]
