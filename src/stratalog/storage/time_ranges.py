"""The side-car that lets an upper bound of time prune: ``.stratalog/<base offset>.timeranges``.

Kafka's files hold no smallest timestamp. This one holds the smallest and the largest of every run
of batches of some 16 KiB, so that a reader can pass over what its span of time does not meet.

**It is a hint, and believed only where it is proven.** A segment's ``.log`` may be cut and appended
to again, cleaned, or replaced, by Apache Kafka too, which knows nothing of this file; and no look
at a few batches could tell that all others are still the same. So the file is *sealed* once its
segment is finished: the ``.log``'s modification time gets digits below the millisecond that no
clock gave it, and the seal names them. Whoever writes to the ``.log`` afterwards, cuts it or puts
another in its place, takes them away: the kernel sets the time of its own clock, Apache Kafka's
cleaner one of whole milliseconds. A copy that keeps times keeps them, and is the same bytes.
Without a seal that holds, only the owner's word counts: while our own process appends to the
segment, it keeps the file true.

    header   magic 8 bytes, base offset i64, CRC-32C u32
    frames   kind u8, payload size u32, CRC-32C u32 of kind, size and payload, continued from the
             frame before; a frame that is wrong ends the file
      ranges   covered bytes i64, the last batch in them: position i64, last offset i64, CRC u32;
               then three columns of i64: positions, smallest and largest timestamps
      seal     size i64 and modification time in ns i64 of the .log

Everything is big-endian. Ranges follow each other from byte 0 of the ``.log``; one reaches to the
next one's position, the last of a frame to what the frame covers.
"""

import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import overlapping_ranges, read_header
from stratalog.records._kernels import crc32c
from stratalog.storage.files import Entry, File, FileSystem
from stratalog.storage.layout import LOG_SUFFIX, segment_file, time_ranges_file

# A range is what a reader skips or reads, with the default index interval 16 KiB. Smaller ones
# would let it skip a little more, and make the files larger: a segment of 1 GiB has 65 536 ranges,
# in 1.5 MB.
RANGE_BYTES = 16 * 1024
_RANGE_INTERVALS = 4
_RANGE_BYTES_MIN = 512

EARLIEST_MS = -(2**63)
LATEST_MS = 2**63 - 1

_MAGIC = b"STRATTR\x01"
_HEADER = struct.Struct(">8sq")
_FRAME = struct.Struct(">BI")
_CRC = struct.Struct(">I")
_RANGES = struct.Struct(">qqqI")
_SEAL = struct.Struct(">qq")
_RANGES_KIND = 1
_SEAL_KIND = 2
_COLUMNS = 3
_ITEM_BYTES = 8

HEADER_BYTES = _HEADER.size + _CRC.size
_FRAME_BYTES = _FRAME.size + _CRC.size
# More than the side-car of any segment can have.
_FILE_BYTES_MAX = 128 << 20
_BATCH_HEADER_BYTES = 61


def range_bytes(index_interval_bytes: int) -> int:
    """How long ranges are in a log with that ``index.interval.bytes``."""
    return max(_RANGE_INTERVALS * index_interval_bytes, _RANGE_BYTES_MIN)


class Anchor(NamedTuple):
    """The last batch that ranges cover: a first glance at whether the log is still theirs."""

    position: int
    last_offset: int
    crc: int


class Seal(NamedTuple):
    """What the ``.log`` looked like when its ranges were known to be true."""

    log_bytes: int
    modified_ns: int


def _times() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class TimeRanges:
    """Ranges of a segment, in columns: the i-th begins at ``positions[i]`` and ends where the next
    begins, the last at ``covered_bytes``. What lies behind that may have any timestamp."""

    positions: "array[int]" = field(default_factory=_times)
    min_ms: "array[int]" = field(default_factory=_times)
    max_ms: "array[int]" = field(default_factory=_times)
    covered_bytes: int = 0
    anchor: Anchor | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def slices_overlapping(
        self, min_ms: int | None, max_ms: int | None, start_position: int, end_position: int
    ) -> list[tuple[int, int]]:
        """The bytes of ``[start_position, end_position)`` that may hold a record of ``[min_ms,
        max_ms]``, as runs in order. Each begins and ends with a batch, if the arguments do."""
        return overlapping_ranges(
            self.positions,
            self.min_ms,
            self.max_ms,
            self.covered_bytes,
            EARLIEST_MS if min_ms is None else max(min_ms, EARLIEST_MS),
            LATEST_MS if max_ms is None else min(max_ms, LATEST_MS),
            start_position,
            end_position,
        )

    def append(self, position: int, min_ms: int, max_ms: int) -> None:
        self.positions.append(position)
        self.min_ms.append(min_ms)
        self.max_ms.append(max_ms)

    def clear(self) -> None:
        """Forget the ranges, not how far they reach."""
        self.positions, self.min_ms, self.max_ms = _times(), _times(), _times()

    def extend(self, other: "TimeRanges") -> None:
        """Take over the ranges that follow these."""
        self.positions.extend(other.positions)
        self.min_ms.extend(other.min_ms)
        self.max_ms.extend(other.max_ms)
        self.covered_bytes = other.covered_bytes
        self.anchor = other.anchor

    def cut(self, size_bytes: int) -> None:
        """The log ends at ``size_bytes``, at the end of a batch. Of the range it ends in, what is
        known is that its timestamps were among those."""
        while self.positions and self.positions[-1] >= size_bytes:
            del self.positions[-1], self.min_ms[-1], self.max_ms[-1]
        if self.covered_bytes > size_bytes:
            self.covered_bytes = size_bytes
            self.anchor = None


# --- bytes ------------------------------------------------------------------------------------


def encode_header(base_offset: int) -> bytes:
    header = _HEADER.pack(_MAGIC, base_offset)
    return header + _CRC.pack(crc32c(header))


def encode_ranges(ranges: TimeRanges, crc: int) -> bytes:
    """A frame that follows one whose CRC is ``crc``."""
    anchor = ranges.anchor or Anchor(-1, -1, 0)
    columns = (_big_endian(each) for each in (ranges.positions, ranges.min_ms, ranges.max_ms))
    payload = _RANGES.pack(ranges.covered_bytes, *anchor) + b"".join(columns)
    return _frame(_RANGES_KIND, payload, crc)


def encode_seal(seal: Seal, crc: int) -> bytes:
    return _frame(_SEAL_KIND, _SEAL.pack(*seal), crc)


def _frame(kind: int, payload: bytes, crc: int) -> bytes:
    begin = _FRAME.pack(kind, len(payload))
    return begin + _CRC.pack(crc32c(payload, crc32c(begin, crc))) + payload


def frame_crc(frame: bytes) -> int:
    """What the next frame's CRC continues from."""
    (crc,) = _CRC.unpack_from(frame, _FRAME.size)
    return int(crc)


def _big_endian(column: "array[int]") -> bytes:
    if sys.byteorder == "big":
        return column.tobytes()
    swapped = array("q", column)
    swapped.byteswap()
    return swapped.tobytes()


def _column(data: memoryview) -> "array[int]":
    column = _times()
    column.frombytes(data)
    if sys.byteorder == "little":
        column.byteswap()
    return column


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a file: ``content`` is a seal, or ranges. ``end`` and ``crc`` are what
    whoever writes the next one needs."""

    content: TimeRanges | Seal
    end: int
    crc: int


def decode_frames(data: bytes, base_offset: int) -> Iterator[Frame]:
    """The frames of a whole file, as far as they are right."""
    if data[:HEADER_BYTES] != encode_header(base_offset):
        return
    view = memoryview(data)
    position, crc, covered = HEADER_BYTES, 0, 0
    while position + _FRAME_BYTES <= len(data):
        kind, size = _FRAME.unpack_from(data, position)
        (stored,) = _CRC.unpack_from(data, position + _FRAME.size)
        payload = view[position + _FRAME_BYTES : position + _FRAME_BYTES + size]
        crc = crc32c(payload, crc32c(view[position : position + _FRAME.size], crc))
        if len(payload) < size or crc != stored:
            return
        content = _decode_payload(kind, payload, covered)
        if content is None:
            return
        if isinstance(content, TimeRanges):
            covered = content.covered_bytes
        position += _FRAME_BYTES + size
        yield Frame(content, position, crc)


def _decode_payload(kind: int, payload: memoryview, covered: int) -> TimeRanges | Seal | None:
    if kind == _SEAL_KIND and len(payload) == _SEAL.size:
        return Seal(*_SEAL.unpack(payload))
    columns_bytes = len(payload) - _RANGES.size
    if kind != _RANGES_KIND or columns_bytes < 0 or columns_bytes % (_COLUMNS * _ITEM_BYTES):
        return None
    covered_bytes, *anchor = _RANGES.unpack_from(payload)
    column_bytes = columns_bytes // _COLUMNS
    positions, min_ms, max_ms = (
        _column(payload[start : start + column_bytes])
        for start in (_RANGES.size + column_bytes * column for column in range(_COLUMNS))
    )
    ranges = TimeRanges(positions, min_ms, max_ms, covered_bytes, Anchor(*anchor))
    return ranges if not ranges.positions or ranges.positions[0] == covered else None


# --- reading ----------------------------------------------------------------------------------


def read_time_ranges(
    files: FileSystem,
    directory: str,
    base_offset: int,
    *,
    log_file: File,
    log_size: int,
    is_active: bool = False,
    inode: int = 0,
) -> TimeRanges | None:
    """What is known of the timestamps of a segment; None if nothing that can be believed.

    ``directory`` is the partition's, ``log_file`` the segment's ``.log``, open, of which the
    caller cares for ``log_size`` bytes; ``inode`` is the one it was listed with, if that is known.
    ``is_active`` says that a process of ours is running that owns the directory and appends to
    this segment: only then are ranges without a seal believed.
    """
    data = read_side_car(files, time_ranges_file(directory, base_offset))
    if data is None:
        return None
    entry = _stat(files, segment_file(directory, base_offset, LOG_SUFFIX))
    if entry is None or (inode and entry.inode != inode):
        return None
    found = believed(data, base_offset, entry, is_active=is_active)
    if found is None or not _confirms(log_file, log_size, found):
        return None
    return found


def believed(
    data: bytes, base_offset: int, log: Entry, *, is_active: bool = False
) -> TimeRanges | None:
    """The ranges in a side-car's bytes that hold for a ``.log`` that looks like ``log``."""
    ranges = TimeRanges()
    for frame in decode_frames(data, base_offset):
        if isinstance(frame.content, TimeRanges):
            ranges.extend(frame.content)
        elif frame.content == (log.size_bytes, log.modified_ns):
            return ranges
    return ranges if is_active and len(ranges) else None


def _confirms(log_file: File, log_size: int, ranges: TimeRanges) -> bool:
    """Whether the last batch of ``ranges`` is where they say. No proof, the seal is: this is
    for what nobody has thought of."""
    anchor = ranges.anchor
    # After a cut nobody has looked at the last batch; and of a log that is being appended to, the
    # caller may ask for less than there is.
    if anchor is None or anchor.position < 0 or ranges.covered_bytes > log_size:
        return True
    try:
        data = log_file.read_at(anchor.position, _BATCH_HEADER_BYTES)
        header = read_header(data, 0, anchor.position)
    except (DiskError, CorruptBatchError):
        return False
    return (
        header is not None
        and (header.last_offset, header.crc) == (anchor.last_offset, anchor.crc)
        and header.position + header.size_bytes == ranges.covered_bytes
    )


def read_side_car(files: FileSystem, path: str) -> bytes | None:
    try:
        file = files.open(path, writable=False)
        try:
            size = file.size_bytes()
            return file.read_at(0, size) if size <= _FILE_BYTES_MAX else None
        finally:
            file.close()
    except DiskError:
        return None


def _stat(files: FileSystem, path: str) -> Entry | None:
    try:
        return files.stat(path)
    except DiskError:
        return None
