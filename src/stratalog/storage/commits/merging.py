"""What becomes of staged files: which are taken as they are, and which are written into one.

Little that is staged is appended to the log's last segment, so that many small commits leave no
more segments than as many produce requests. Much becomes segments of its own: a file of a quarter
of ``segment.bytes``, or of 32 MiB, and more is taken as it is; smaller neighbours are copied into
one. The order of the files is the order of their records, whatever becomes of them.
"""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import BatchHeader, SegmentScan, TimeRangeGather, read_header
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.identity import FileIdentity, identify
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.staged_log import LOG_OVERHEAD_BYTES, PREFIX
from stratalog.storage.files import File, FileSystem, begin_sync
from stratalog.storage.index import RELATIVE_OFFSET_MAX, OffsetIndex, TimeIndex
from stratalog.storage.layout import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TIME_RANGES_SUFFIX,
    segment_file,
    time_ranges_file,
)
from stratalog.storage.time_range_writing import gathered_ranges, put_time_ranges, seal_log
from stratalog.storage.time_ranges import (
    Seal,
    TimeRanges,
    decode_frames,
    range_bytes,
    read_side_car,
)

# A file that is at least this part of segment.bytes is a segment of its own; and so is one of this
# size: copying it would cost more than a segment of that size ever does.
_WHOLE_PART = 4
_WHOLE_BYTES = 32 << 20

_NO_SEAL = Seal(0, 0)
_HEADER_BYTES = 61


@dataclass(frozen=True, slots=True)
class FilePlan:
    """Each of ``groups`` becomes a segment, or, if nothing is adopted, the only one is appended. By
    what was staged: where batches have to change, what comes of it is known once it is written."""

    is_adopted: bool
    groups: tuple[tuple[StagedFile, ...], ...]

    def copied_bytes(self, *, is_changed: bool) -> int:
        """Of what is written anew whatever is in it: files that become one; or all of them, if
        ``is_changed`` says that no batch can stay as it is."""
        copied = [group for group in self.groups if is_changed or len(group) > 1]
        return sum(each.size_bytes for group in copied for each in group)


def plan_files(
    staged: Sequence[StagedFile], *, segment_bytes: int, append_max_bytes: int
) -> FilePlan:
    size_bytes = sum(each.size_bytes for each in staged)
    record_count = sum(each.record_count for each in staged)
    if size_bytes < append_max_bytes and fits(size_bytes, record_count, segment_bytes):
        return FilePlan(False, (tuple(staged),))
    whole_bytes = min(segment_bytes / _WHOLE_PART, _WHOLE_BYTES)
    groups: list[list[StagedFile]] = []
    size_bytes = record_count = 0
    is_open = False
    for each in staged:
        is_small = each.size_bytes < whole_bytes
        size_bytes += each.size_bytes
        record_count += each.record_count
        if is_open and is_small and fits(size_bytes, record_count, segment_bytes):
            groups[-1].append(each)
        else:
            groups.append([each])
            size_bytes, record_count = each.size_bytes, each.record_count
        is_open = is_small
    return FilePlan(True, tuple(tuple(group) for group in groups))


def fits(size_bytes: int, record_count: int, segment_bytes: int) -> bool:
    """Whether so much can be one segment."""
    return size_bytes <= segment_bytes and record_count <= RELATIVE_OFFSET_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file in staging that may become part of a log.

    ``positions`` and ``offsets`` are where its batches begin, and with which offset. Like
    ``offset_of_max_timestamp`` these count from ``base_offset``, which is 0 if its records get
    their offsets in the log. If it is to be a segment, its indexes lie beside it, durable.
    ``identity`` is that of the file from before it was read, or once it was made.
    """

    directory: str
    name: str
    size_bytes: int
    record_count: int
    positions: "array[int]"
    offsets: "array[int]"
    first_timestamp_ms: int
    max_timestamp_ms: int
    offset_of_max_timestamp: int
    identity: FileIdentity
    base_offset: int = 0
    offset_index_bytes: int = 0
    time_index_bytes: int = 0
    has_time_ranges: bool = False
    # Written here, of what was staged.
    is_copy: bool = False
    # Of its batches, if it keeps the epochs that they have.
    latest_epoch: int = -1

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.name}"

    @property
    def batch_count(self) -> int:
        return len(self.positions)

    def beside(self, suffix: str) -> str:
        """The path of its index, or of another file of the same stem."""
        return self.path.removesuffix(LOG_SUFFIX) + suffix


class SegmentMaker:
    """Takes the batches of one file to be, in order, and makes what lies beside it.

    The batches are written to a file ``name``; unless that is there, as ``staged`` says, and they
    are the same. Not for several threads.
    """

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        name: str,
        config: TopicConfig,
        *,
        base_offset: int = 0,
        staged: FileIdentity | None,
    ) -> None:
        self._files = files
        self._directory = directory
        self._name = name
        self._config = config
        self._base_offset = base_offset
        self._positions = array("I")
        self._offsets = array("i")
        self._scan = SegmentScan(
            base_offset,
            config.index_interval_bytes,
            check_records=False,
            no_headers=True,
            check_crc=False,
        )
        self._times = TimeRangeGather()
        self._times.restart(0, range_bytes(config.index_interval_bytes))
        self._written: list[str] = []
        self._staged = staged
        self._log: File | None = self._create(LOG_SUFFIX) if staged is None else None

    @property
    def size_bytes(self) -> int:
        return self._scan.position

    @property
    def next_offset(self) -> int:
        return self._scan.next_offset

    @property
    def path(self) -> str:
        return f"{self._directory}/{self._name}"

    def _beside(self, suffix: str) -> str:
        return self.path.removesuffix(LOG_SUFFIX) + suffix

    def _create(self, suffix: str) -> File:
        # A name that is taken is of an earlier attempt, or somebody's link to somewhere else.
        path = self._beside(suffix)
        self._files.unlink(path, missing_ok=True)
        self._written.append(path)
        return self._files.open(path, create=True)

    def take(self, batches: Buffer) -> None:
        """Whole batches, with the offsets that follow."""
        position = self._scan.position
        self._scan.feed(batches)
        if self._scan.fault is not None:
            raise StagedFileError(self.path, self._scan.position, self._scan.fault)
        assert self._scan.position == position + memoryview(batches).nbytes, "batches are whole"
        if self._log is not None:
            self._log.write_at(position, (batches,))

    def note(self, position: int, header: BatchHeader, min_timestamp_ms: int) -> None:
        """A batch that is going to be taken, at ``position`` of this file."""
        self._positions.append(position)
        self._offsets.append(header.base_offset - self._base_offset)
        self._times.add(position + header.size_bytes, (header,), min_timestamp_ms)

    def finish(self, *, is_indexed: bool = True) -> CheckedFile:
        """Write the indexes, if it is to be a segment, and make everything durable that was written
        here."""
        scan = self._scan
        scan.finish()
        if self._log is not None:
            self._log.sync()
            self._log.close()
        offsets, times, has_ranges = 0, 0, False
        if is_indexed:
            offsets = self._put(OFFSET_INDEX_SUFFIX, scan.offset_entries, OffsetIndex.entry_size)
            times = self._put(TIME_INDEX_SUFFIX, scan.time_entries, TimeIndex.entry_size)
            has_ranges = self._put_time_ranges()
        return CheckedFile(
            directory=self._directory,
            name=self._name,
            size_bytes=scan.position,
            record_count=scan.record_count,
            positions=self._positions,
            offsets=self._offsets,
            first_timestamp_ms=scan.first_timestamp_ms,
            max_timestamp_ms=scan.max_timestamp_ms,
            offset_of_max_timestamp=max(scan.offset_of_max_timestamp - self._base_offset, 0),
            identity=self._staged or identify(self._files, self.path),
            base_offset=self._base_offset,
            offset_index_bytes=offsets,
            time_index_bytes=times,
            has_time_ranges=has_ranges,
            is_copy=self._log is not None,
        )

    def _put(self, suffix: str, entries: bytearray, entry_size: int) -> int:
        limit = self._config.segment_index_bytes
        kept = entries[: limit - limit % entry_size]
        file = self._create(suffix)
        try:
            if kept:
                file.write_at(0, [kept])
            file.sync()
        finally:
            file.close()
        return len(kept)

    def _put_time_ranges(self) -> bool:
        """Without a seal: that is for whoever places it."""
        if self._times.end < self._times.range_bytes:
            return False
        path = self._beside(TIME_RANGES_SUFFIX)
        with suppress(DiskError):
            ranges = gathered_ranges(self._times)
            put_time_ranges(self._files, path, self._base_offset, ranges, _NO_SEAL)
            self._written.append(path)
            return True
        return False

    def discard(self) -> None:
        """Take back what was written. Best effort: the sweep of its staging gets the rest."""
        with suppress(DiskError):
            if self._log is not None:
                self._log.close()
            for path in self._written:
                self._files.unlink(path, missing_ok=True)


# --- putting it into the log ------------------------------------------------------------------


def rebase(
    files: FileSystem,
    checked: CheckedFile,
    *,
    base_offset: int,
    leader_epoch: int,
    path: str | None = None,
    is_synced: bool = True,
    is_begun: bool = False,
) -> None:
    """Give the records of a checked file, which may lie at another ``path`` by now, their offsets.
    Nothing else changes: these two fields lie outside of each batch's CRC, and what an index says
    is relative. Durable, unless ``is_synced`` says that somebody else sees to it, for whom the disk
    may have begun with it then (``is_begun``)."""
    file = files.open(path or checked.path)
    try:
        ends = (*checked.positions[1:], checked.size_bytes)
        for position, offset, end in zip(checked.positions, checked.offsets, ends, strict=True):
            _stamp(file, position, end - position, base_offset + offset, leader_epoch)
        if is_synced:
            file.sync()
        elif is_begun:
            begin_sync(file, 0, checked.size_bytes)
    finally:
        file.close()


def rebase_file(files: FileSystem, path: str, *, base_offset: int, leader_epoch: int) -> None:
    """The same, durably, for whoever has nothing but the file: it was checked once, and holds
    batches whose records count from 0."""
    file = files.open(path)
    try:
        position, offset, end = 0, base_offset, file.size_bytes()
        while position < end:
            header = _header_at(file, position)
            _stamp(file, position, header.size_bytes, offset, leader_epoch)
            offset += header.record_count
            position += header.size_bytes
        file.sync()
    finally:
        file.close()


def _header_at(file: File, position: int) -> BatchHeader:
    try:
        header = read_header(file.read_at(position, _HEADER_BYTES), 0, position)
    except CorruptBatchError as error:
        raise StagedFileError(file.path, position, error.reason) from error
    if header is None:
        raise StagedFileError(file.path, position, "it ends in the middle of a batch")
    return header


def _stamp(file: File, position: int, size_bytes: int, offset: int, leader_epoch: int) -> None:
    prefix = PREFIX.pack(offset, size_bytes - LOG_OVERHEAD_BYTES, leader_epoch)
    file.write_at(position, (prefix,))


def place_time_ranges(
    files: FileSystem, checked: CheckedFile, directory: str, *, base_offset: int
) -> None:
    """The file is now the segment ``base_offset`` of ``directory``, closed: tell of its times. Best
    effort, as with every side-car."""
    if not checked.has_time_ranges:
        return
    with suppress(DiskError):
        data = read_side_car(files, checked.beside(TIME_RANGES_SUFFIX)) or b""
        ranges = TimeRanges()
        for frame in decode_frames(data, checked.base_offset):
            if isinstance(frame.content, TimeRanges):
                ranges.extend(frame.content)
        anchor = ranges.anchor
        if anchor is None or ranges.covered_bytes != checked.size_bytes:
            return
        moved = anchor.last_offset + base_offset - checked.base_offset
        ranges.anchor = anchor._replace(last_offset=moved)
        seal = seal_log(files, segment_file(directory, base_offset, LOG_SUFFIX))
        if seal is not None and seal.log_bytes == checked.size_bytes:
            path = time_ranges_file(directory, base_offset)
            put_time_ranges(files, path, base_offset, ranges, seal)
