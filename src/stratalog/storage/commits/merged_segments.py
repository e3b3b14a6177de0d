"""Segments that are written anew while staged files are checked: of small ones, or of batches that
had to change.

What a batch that is compressed otherwise is going to have in bytes is known once it is made. So
these segments are filled as a log fills its own: the next one begins where a batch has no more room
in the last.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from typing_extensions import Buffer

from stratalog.errors import DiskError
from stratalog.records import BatchHeader, ProducedBatches
from stratalog.storage.commits.merging import CheckedFile, SegmentMaker, fits
from stratalog.storage.commits.staged_log import NO_LEADER_EPOCH
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TIME_RANGES_SUFFIX,
)

# A small batch can become a large one: so many bytes of them are held until they are written.
_GATHERED_BYTES = 1 << 20


class MergedSegments:
    """Takes batches in order, and puts them into segments of up to ``segment_bytes``; none of them
    has more by itself. The records of each segment count from 0.

    ``begin`` makes the segment of a number, and ``end`` is given each that is full. ``refuse_full``
    is told how many bytes are about to be written, and raises if there is no room for them. Not for
    several threads.
    """

    def __init__(
        self,
        begin: Callable[[int], SegmentMaker],
        end: Callable[[SegmentMaker], None],
        *,
        segment_bytes: int,
        refuse_full: Callable[[int], None],
    ) -> None:
        self._begin = begin
        self._end = end
        self._segment_bytes = segment_bytes
        self._refuse_full = refuse_full
        self._open: SegmentMaker | None = None
        self._begun = 0
        # Of the open segment, with what is gathered for it.
        self._size_bytes = self._next_offset = 0
        self._gathered: list[Buffer] = []
        self._gathered_bytes = 0

    @property
    def next_offset(self) -> int:
        """Of the next batch, if the open segment has room for it."""
        return self._next_offset

    def has_room(self, headers: Sequence[BatchHeader]) -> bool:
        """Whether the open segment has, for all of these batches as they are."""
        size_bytes = sum(each.size_bytes for each in headers)
        record_count = sum(max(each.record_count, 0) for each in headers)
        return self._fits(size_bytes, record_count)

    def _fits(self, size_bytes: int, record_count: int) -> bool:
        return fits(
            self._size_bytes + size_bytes, self._next_offset + record_count, self._segment_bytes
        )

    def add_kept(self, kept: Sequence[tuple[BatchHeader, int]], batches: memoryview) -> None:
        """What ``keep_batches`` has found in ``batches``, from ``next_offset`` on: there is room
        for it."""
        start = self._size_bytes
        for header, min_timestamp_ms in kept:
            self._note(header, min_timestamp_ms)
        if kept:
            self._gather(batches[: self._size_bytes - start])

    def add(self, produced: ProducedBatches) -> None:
        """One batch, with ``next_offset``; in another segment it gets another."""
        if not self._fits(produced.size_bytes, produced.header.record_count):
            produced.move(-self._next_offset, NO_LEADER_EPOCH)
            self.close()
        self._note(produced.header, produced.min_timestamp_ms)
        for each in produced.buffers:
            self._gather(each)
        if self._gathered_bytes >= _GATHERED_BYTES:
            self.flush()

    def _note(self, header: BatchHeader, min_timestamp_ms: int) -> None:
        if self._open is None:
            self._open = self._begin(self._begun)
            self._begun += 1
        self._open.note(self._size_bytes, header, min_timestamp_ms)
        self._size_bytes += header.size_bytes
        self._next_offset = header.next_offset

    def _gather(self, buffer: Buffer) -> None:
        self._gathered.append(buffer)
        self._gathered_bytes += memoryview(buffer).nbytes

    def flush(self) -> None:
        """Write what was added: nobody looks into its buffers any more."""
        if self._open is None or not self._gathered:
            return
        self._refuse_full(self._gathered_bytes)
        is_one = len(self._gathered) == 1
        self._open.take(self._gathered[0] if is_one else b"".join(self._gathered))
        self._gathered = []
        self._gathered_bytes = 0

    def take_open(self) -> SegmentMaker | None:
        """The open segment, complete, for whoever ends it himself; None if there is none."""
        self.flush()
        found, self._open = self._open, None
        self._size_bytes = self._next_offset = 0
        return found

    def close(self) -> None:
        """What comes next goes to another segment."""
        found = self.take_open()
        if found is not None:
            self._end(found)


def discard_copies(files: FileSystem, checked: Iterable[CheckedFile]) -> None:
    """Remove what was made of staged files and nobody is going to commit; those stay. Best effort:
    the sweep of its staging gets the rest."""
    with suppress(DiskError):
        for each in checked:
            if each.is_copy:
                for suffix in (
                    LOG_SUFFIX,
                    OFFSET_INDEX_SUFFIX,
                    TIME_INDEX_SUFFIX,
                    TIME_RANGES_SUFFIX,
                ):
                    files.unlink(each.beside(suffix), missing_ok=True)
