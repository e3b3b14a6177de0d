"""The bytes of a file that are in memory while it is read: one buffer, used again and again.

It is small enough to stay in a core's own cache between being read and being decoded. Only a batch
that is larger makes it grow, and only after what the batch claims has been checked: a length in a
damaged header is no reason to take a gigabyte.
"""

import zlib

from stratalog.errors import CorruptBatchError
from stratalog.records import BatchHeader, read_header
from stratalog.records._kernels import crc32c, uninitialized
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import File

BUFFER_BYTES = 1 << 20
# A larger batch has to show a right CRC before there is memory for it.
TRUSTED_BATCH_BYTES = 32 << 20
_HEADER_BYTES = 61


class Window:
    """Bytes ``[position, position + size)`` of a file, of which no more than up to ``end`` are
    read. ``is_cut``: the file turned out to end before that."""

    def __init__(self) -> None:
        self._buffer = memoryview(uninitialized(BUFFER_BYTES))
        self._file: File | None = None
        self._size = 0
        self._end = 0
        self.position = 0
        self.is_cut = False
        self.bytes_read = 0

    def begin(self, file: File, start: int, end: int) -> None:
        self._file = file
        self._size = 0
        self._end = end
        self.position = start
        self.is_cut = False

    @property
    def view(self) -> memoryview:
        return self._buffer[: self._size]

    @property
    def is_done(self) -> bool:
        """Whether all bytes were taken."""
        return self.position >= self._end

    @property
    def remaining_bytes(self) -> int:
        return self._end - self.position

    def fill(self) -> None:
        """Read as much as there is room for."""
        assert self._file is not None, "begin comes first"
        behind = self.position + self._size
        wanted = min(len(self._buffer) - self._size, self._end - behind)
        if wanted <= 0:
            return
        count = self._file.read_into(behind, self._buffer[self._size : self._size + wanted])
        self.bytes_read += count
        self._size += count
        if count < wanted:
            self.is_cut = True
            self._end = behind + count

    def take(self, size: int) -> None:
        """The first ``size`` bytes are not needed any more; it may be more than are there."""
        kept = max(self._size - size, 0)
        if kept and size:
            self._buffer[:kept] = self._buffer[size : self._size]
        self._size = kept
        self.position += size

    def make_room(self) -> None:
        """The batch at the start is not whole: let the next ``fill`` read all of it."""
        header = read_header(self.view, 0, self.position)
        size_bytes = _HEADER_BYTES if header is None else header.size_bytes
        if size_bytes > self.remaining_bytes:
            offset = -1 if header is None else header.base_offset
            raise CorruptBatchError(CUT_SHORT, position=self.position, base_offset=offset)
        if header is None or size_bytes <= len(self._buffer):
            return
        if size_bytes > TRUSTED_BATCH_BYTES:
            self._check_crc(header)
        larger = memoryview(uninitialized(size_bytes))
        larger[: self._size] = self.view
        self._buffer = larger

    def _check_crc(self, header: BatchHeader) -> None:
        """The batch's CRC, a piece at a time."""
        assert self._file is not None, "begin comes first"
        start = 21 if header.magic == 2 else 16
        piece = memoryview(uninitialized(BUFFER_BYTES))
        crc = 0
        while start < header.size_bytes:
            size = min(len(piece), header.size_bytes - start)
            count = self._file.read_into(self.position + start, piece[:size])
            self.bytes_read += count
            if count < size:
                break
            part = piece[:count]
            crc = crc32c(part, crc) if header.magic == 2 else zlib.crc32(part, crc)
            start += count
        if start < header.size_bytes or crc != header.crc:
            raise CorruptBatchError(
                f"its CRC does not match the {header.size_bytes} bytes that it claims to have",
                position=self.position,
                base_offset=header.base_offset,
            )
