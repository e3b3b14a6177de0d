"""The segment that a cleaning writes: a set of ``.cleaned`` files that nobody else looks at.

Batches go to ``.log.cleaned`` as they come, through the scan that recovery uses: their order is
checked once more, and the index entries are those that recovery would rebuild. The time ranges are
gathered on the way, and lie beside the old segment's until it is replaced.
"""

from collections.abc import Iterable
from contextlib import suppress

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import (
    CorruptBatchError,
    CorruptSegmentError,
    DiskError,
    SegmentOffsetOverflowError,
)
from stratalog.records import SegmentScan, TimeRangeScan
from stratalog.storage.files import File, FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.index import OffsetIndex, TimeIndex, TimestampOffset
from stratalog.storage.layout import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
    time_ranges_file,
)
from stratalog.storage.segment import Segment, SegmentSizes
from stratalog.storage.time_range_writing import put_time_ranges, ranges_of, seal_log
from stratalog.storage.time_ranges import range_bytes
from stratalog.storage.transactions import AbortedTransaction


class CleanedSegment:
    checks_crc = False  # its batches come straight from the filter that made their CRCs

    def __init__(
        self, files: FileSystem, directory: str, base_offset: int, config: TopicConfig
    ) -> None:
        self.base_offset = base_offset
        self._files = files
        self._directory = directory
        self._config = config
        self._aborted: list[AbortedTransaction] = []
        self._sizes = SegmentSizes()
        self._scan = SegmentScan(
            base_offset,
            config.index_interval_bytes,
            check_records=False,
            no_headers=True,
            check_crc=self.checks_crc,
        )
        self._times = TimeRangeScan(range_bytes(config.index_interval_bytes), check_crc=False)
        self._log = self._open_log()

    def _open_log(self) -> File:
        self._unlink()  # what an earlier attempt left
        return self._files.open(self.path(LOG_SUFFIX), create=True)

    def path(self, suffix: str, state: str = CLEANED_SUFFIX) -> str:
        return segment_file(self._directory, self.base_offset, suffix) + state

    @property
    def size_bytes(self) -> int:
        return self._scan.position

    @property
    def has_aborts(self) -> bool:
        return bool(self._aborted)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The kinds of file that it consists of, in the order in which they are renamed."""
        if self.has_aborts:
            return SEGMENT_SUFFIXES
        return tuple(each for each in SEGMENT_SUFFIXES if each != TRANSACTION_INDEX_SUFFIX)

    def append(self, batches: Buffer) -> None:
        scan = self._scan
        position = scan.position
        scan.feed(batches)
        path = self.path(LOG_SUFFIX)
        if scan.overflow:
            raise SegmentOffsetOverflowError(path, self.base_offset, scan.next_offset)
        if scan.fault is not None or scan.position != position + memoryview(batches).nbytes:
            raise CorruptSegmentError(
                path, scan.position, scan.next_offset, scan.fault or "a batch was written in part"
            )
        self._write_log(position, batches)
        if self._times.covered_bytes == position:
            # Records that nobody can read are kept as they are, and have no timestamps.
            with suppress(CorruptBatchError):
                self._times.feed(batches, position)

    def _write_log(self, position: int, batches: Buffer) -> None:
        self._log.write_at(position, [batches])

    def add_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted.extend(aborted)

    def finish(self, modified_ms: int) -> None:
        """Write the indexes, make everything durable, and give it the age of what it replaces."""
        self._scan.finish()
        limit = self._config.segment_index_bytes
        offsets = self._scan.offset_entries[: limit - limit % OffsetIndex.entry_size]
        times = self._scan.time_entries[: limit - limit % TimeIndex.entry_size]
        contents: dict[str, Buffer] = {OFFSET_INDEX_SUFFIX: offsets, TIME_INDEX_SUFFIX: times}
        if self.has_aborts:
            contents[TRANSACTION_INDEX_SUFFIX] = b"".join(each.encode() for each in self._aborted)
        self._log.sync()
        for suffix, content in contents.items():
            self._write(suffix, content)
        self._log.close()
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._files.set_modified(self.path(suffix), modified_ms)
        self._write_time_ranges()
        self._sizes = SegmentSizes(
            self.size_bytes, len(offsets), len(times), self.has_aborts, modified_ms
        )

    def _write_time_ranges(self) -> None:
        with suppress(DiskError):
            if self.size_bytes < self._times.range_bytes:
                return
            seal = seal_log(self._files, self.path(LOG_SUFFIX))
            if seal is not None:
                ranges = ranges_of(self._times)
                put_time_ranges(
                    self._files, self._time_ranges_path(), self.base_offset, ranges, seal
                )

    def _time_ranges_path(self, state: str = CLEANED_SUFFIX) -> str:
        return time_ranges_file(self._directory, self.base_offset, state)

    def place_time_ranges(self) -> None:
        """The segment is in its place, and the ranges of what was there before are gone."""
        path = self._time_ranges_path()
        if not self._files.exists(path):
            return
        try:
            self._files.rename(path, self._time_ranges_path(""))
        except DiskError:
            self._files.unlink(path, missing_ok=True)

    def _write(self, suffix: str, content: Buffer) -> None:
        file: File = self._files.open(self.path(suffix), create=True)
        try:
            if memoryview(content).nbytes:
                file.write_at(0, [content])
            file.sync()
        finally:
            file.close()

    def open(self, handles: HandleCache, config: TopicConfig, *, created_ms: int) -> Segment:
        """The finished segment, once its files have their plain names; ``config`` is the log's,
        which may have changed since the cleaning began."""
        segment = Segment(
            self._files,
            self._directory,
            self.base_offset,
            config,
            handles,
            created_ms=created_ms,
            sizes=self._sizes,
        )
        segment.is_settled = True
        scan = self._scan
        found = TimestampOffset(
            scan.max_timestamp_ms,
            scan.offset_of_max_timestamp if scan.max_timestamp_ms >= 0 else self.base_offset,
        )
        segment.adopt(size_bytes=self.size_bytes, max_timestamp=found)
        return segment

    def discard(self) -> None:
        """Take back what was written. Best effort: the next start sweeps it away."""
        try:
            self._log.close()
            self._unlink()
        except DiskError:
            return

    def _unlink(self) -> None:
        for suffix in (*INDEX_SUFFIXES, LOG_SUFFIX):
            self._files.unlink(self.path(suffix), missing_ok=True)
        with suppress(DiskError):
            self._files.unlink(self._time_ranges_path(), missing_ok=True)
