"""Writing ``.timeranges``: while a segment is appended to, or all at once from its batches.

Everything here is best effort: a failure leaves a segment without ranges, or with fewer, and never
stops an append. Nothing is synced either: what a crash leaves is a file that its checksums or its
seal refuse, or one that is true.
"""

import errno
import os
import random
from array import array
from collections.abc import Container, Iterable
from contextlib import suppress

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import TimeRangeGather, TimeRangeScan
from stratalog.storage.files import File, FileSystem
from stratalog.storage.layout import (
    LOG_SUFFIX,
    OWN_DIRECTORY,
    TIME_RANGES_SUFFIX,
    segment_file,
    time_ranges_file,
)
from stratalog.storage.time_ranges import (
    EARLIEST_MS,
    LATEST_MS,
    RANGE_BYTES,
    Anchor,
    Seal,
    TimeRanges,
    decode_frames,
    encode_header,
    encode_ranges,
    encode_seal,
    frame_crc,
    read_side_car,
)

_SCAN_BYTES = 4 << 20
_NANOSECONDS = 1_000_000  # of a millisecond


class TimeRangeWriter(TimeRangeGather):
    """The ranges of the segment that a log appends to. Not for several threads.

    ``add`` gathers them, and says when it is time to ``write``.
    """

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        size_bytes: int,
        *,
        range_bytes: int = RANGE_BYTES,
    ) -> None:
        """For a segment that holds ``size_bytes`` and is going to be appended to, or cut."""
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._begin(size_bytes, range_bytes)
        if size_bytes:
            self._unknown_from(0)
            with suppress(DiskError):
                self._resume(size_bytes)
        if not self._written:
            # From now on readers take the owner's word for what stands there.
            remove_time_ranges(files, directory, base_offset)

    def _begin(self, size_bytes: int, range_bytes: int) -> None:
        self.restart(size_bytes, range_bytes)
        self._opened_bytes = size_bytes
        self._before = TimeRanges()  # to be written before those that were gathered
        self._is_cut = False
        self._written = 0  # bytes of the side-car that are right
        self._crc = 0

    def _unknown_from(self, position: int) -> None:
        """Nobody knows the timestamps from there to where appending goes on."""
        self._before.append(position, EARLIEST_MS, LATEST_MS)

    def _resume(self, size_bytes: int) -> None:
        """Go on behind the seal that holds, if one does."""
        data = read_side_car(self._files, self._path)
        entry = None if data is None else self._files.stat(self._log_path)
        if data is None or entry is None or entry.size_bytes != size_bytes:
            return
        covered = 0
        for frame in decode_frames(data, self._base_offset):
            if isinstance(frame.content, TimeRanges):
                covered = frame.content.covered_bytes
            elif frame.content == (size_bytes, entry.modified_ns) and covered <= size_bytes:
                if frame.end < len(data):
                    self._cut_file(frame.end)
                self._written, self._crc = frame.end, frame.crc
                self._before.clear()
                if covered < size_bytes:
                    self._unknown_from(covered)
                return

    def _cut_file(self, size_bytes: int) -> None:
        file = self._files.open(self._path)
        try:
            file.truncate(size_bytes)
        finally:
            file.close()

    @property
    def _path(self) -> str:
        return time_ranges_file(self._directory, self._base_offset)

    @property
    def _log_path(self) -> str:
        return segment_file(self._directory, self._base_offset, LOG_SUFFIX)

    # --- writing ------------------------------------------------------------------------------

    def write(self) -> None:
        """Write what was gathered. If that fails, it waits for the next time."""
        with suppress(DiskError):
            self._write_frames(None)

    def _write_frames(self, seal: Seal | None) -> None:
        frame = encode_ranges(self._unwritten(), self._crc)
        content, crc = frame, frame_crc(frame)
        if seal is not None:
            frame = encode_seal(seal, crc)
            content, crc = content + frame, frame_crc(frame)
        if not self._written:
            content = encode_header(self._base_offset) + content
        self._put(content)
        self._written += len(content)
        self._crc = crc
        self._before.clear()
        self.forget()

    def _unwritten(self) -> TimeRanges:
        """Nothing else than whole ranges: what was begun reaches to ``end``, and is not told."""
        gathered = _from_columns(self.columns())
        ranges = TimeRanges()
        ranges.extend(self._before)
        ranges.extend(gathered)
        ranges.covered_bytes = self.gathered_end
        if ranges.covered_bytes == self.end:
            ranges.anchor = Anchor(self.last_position, self.last_offset, self.last_crc)
        return ranges

    def _put(self, content: bytes) -> None:
        file = self._open()
        try:
            if file.size_bytes() > self._written:
                file.truncate(self._written)  # frames of an earlier life would follow
            file.write_at(self._written, [content])
        finally:
            file.close()

    def _open(self) -> File:
        try:
            return self._files.open(self._path, create=True)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
        self._files.make_directory(os.path.dirname(self._path))
        return self._files.open(self._path, create=True)

    # --- finishing ----------------------------------------------------------------------------

    def seal(self) -> None:
        """The segment is finished, and its ``.log`` will not be touched any more."""
        is_changed = self._is_cut or self.end > self._opened_bytes
        # Of a segment that is one range there is nothing to skip.
        if not is_changed or (not self._written and self.end < self.range_bytes):
            return
        with suppress(DiskError):
            seal = seal_log(self._files, self._log_path)
            if seal is not None and seal.log_bytes == self.end:
                self.end_range()
                self._write_frames(seal)

    def cut(self, size_bytes: int) -> None:
        """The ``.log`` is about to be cut."""
        if size_bytes >= self.end:
            return
        kept = self._known()
        remove_time_ranges(self._files, self._directory, self._base_offset)
        self._begin(size_bytes, self.range_bytes)
        self._is_cut = True
        if kept is None:
            kept = TimeRanges()
        kept.cut(size_bytes)
        self._before = kept
        if kept.covered_bytes < size_bytes:
            self._unknown_from(kept.covered_bytes)

    def _known(self) -> TimeRanges | None:
        """All ranges so far, written or not."""
        self.end_range()
        ranges = TimeRanges()
        if self._written:
            data = read_side_car(self._files, self._path) or b""
            end = 0
            for frame in decode_frames(data[: self._written], self._base_offset):
                end = frame.end
                if isinstance(frame.content, TimeRanges):
                    ranges.extend(frame.content)
            if end != self._written:
                return None
        ranges.extend(self._unwritten())
        return ranges


def _from_columns(columns: Iterable[bytearray]) -> TimeRanges:
    positions, min_ms, max_ms = (array("q", bytes(column)) for column in columns)
    return TimeRanges(positions, min_ms, max_ms)


def seal_log(files: FileSystem, path: str) -> Seal | None:
    """Mark a ``.log`` so that any change to it shows; None where the file system cannot."""
    entry = files.stat(path)
    if entry is None:
        return None
    modified_ms, was = divmod(entry.modified_ns, _NANOSECONDS)
    digits = random.randrange(1, _NANOSECONDS)
    if digits == was:
        digits = digits % (_NANOSECONDS - 1) + 1
    files.set_modified(path, modified_ms, nanoseconds=digits)
    marked = files.stat(path)
    wanted = (entry.size_bytes, modified_ms * _NANOSECONDS + digits)
    if marked is None or (marked.size_bytes, marked.modified_ns) != wanted:
        return None
    return Seal(*wanted)


def remove_time_ranges(files: FileSystem, directory: str, base_offset: int) -> None:
    with suppress(DiskError):
        files.unlink(time_ranges_file(directory, base_offset), missing_ok=True)


def sweep_time_ranges(files: FileSystem, directory: str, base_offsets: Container[int]) -> None:
    """Remove the side-cars of segments that are gone, and those that were never finished."""
    own = f"{directory}/{OWN_DIRECTORY}"
    with suppress(DiskError):
        for entry in files.list(own):
            base, found, state = entry.name.partition(TIME_RANGES_SUFFIX)
            is_known = not state and base.isdigit() and int(base) in base_offsets
            if found and not is_known:
                files.unlink(f"{own}/{entry.name}", missing_ok=True)


# --- all at once ------------------------------------------------------------------------------


def scan_time_ranges(file: File, size_bytes: int, *, range_bytes: int = RANGE_BYTES) -> TimeRanges:
    """The ranges of the first ``size_bytes`` of a ``.log``, up to the first damage."""
    scan = TimeRangeScan(range_bytes)
    buffer = bytearray(min(_SCAN_BYTES, max(size_bytes, 1)))
    with suppress(CorruptBatchError):
        while scan.covered_bytes < size_bytes:
            at = scan.covered_bytes
            count = file.read_into(at, memoryview(buffer)[: size_bytes - at])
            if scan.feed(memoryview(buffer)[:count], at):
                continue
            if not len(buffer) < scan.wanted_bytes <= size_bytes - at:
                break
            buffer = bytearray(scan.wanted_bytes)
    return ranges_of(scan)


def ranges_of(scan: TimeRangeScan) -> TimeRanges:
    """What ``scan`` has found."""
    ranges = _from_columns(scan.finish())
    ranges.covered_bytes = scan.covered_bytes
    ranges.anchor = Anchor(scan.last_position, scan.last_offset, scan.last_crc)
    return ranges


def gathered_ranges(gathered: TimeRangeGather) -> TimeRanges:
    """All that was gathered from a segment's start, which is going to be closed."""
    gathered.end_range()
    ranges = _from_columns(gathered.columns())
    ranges.covered_bytes = gathered.end
    ranges.anchor = Anchor(gathered.last_position, gathered.last_offset, gathered.last_crc)
    return ranges


def write_time_ranges(
    files: FileSystem, directory: str, base_offset: int, *, range_bytes: int = RANGE_BYTES
) -> bool:
    """Write the side-car of a segment that nobody appends to, from its batches; whether there is
    one now. Raises ``DiskError``; what was there before stays then."""
    path = segment_file(directory, base_offset, LOG_SUFFIX)
    file = files.open(path, writable=False)
    try:
        size_bytes = file.size_bytes()
        # The mark comes first: whoever changes the file while it is read takes it away.
        seal = seal_log(files, path) if size_bytes >= range_bytes else None
        if seal is None or seal.log_bytes != size_bytes:
            return False
        ranges = scan_time_ranges(file, size_bytes, range_bytes=range_bytes)
    finally:
        file.close()
    put_time_ranges(files, time_ranges_file(directory, base_offset), base_offset, ranges, seal)
    return True


def put_time_ranges(
    files: FileSystem, path: str, base_offset: int, ranges: TimeRanges, seal: Seal
) -> None:
    """Write a whole side-car, with no moment at which half of it is there."""
    own = os.path.dirname(path)
    if not files.exists(own):
        files.make_directory(own)
    frame = encode_ranges(ranges, 0)
    content = encode_header(base_offset) + frame + encode_seal(seal, frame_crc(frame))
    temporary = path + ".tmp"
    try:
        files.unlink(temporary, missing_ok=True)
        file = files.open(temporary, create=True)
        try:
            file.write_at(0, [content])
        finally:
            file.close()
        files.rename(temporary, path)
    except DiskError:
        with suppress(DiskError):
            files.unlink(temporary, missing_ok=True)
        raise
