"""Sparse indexes beside a segment's ``.log``.

    .index       4 bytes relative offset, 4 bytes position      last offset of a batch -> its start
    .timeindex   8 bytes timestamp, 4 bytes relative offset     largest timestamp up to that offset

Both count from the segment's base offset and are big-endian. The file of a segment that is appended
to is preallocated to its maximum, sparse, when its first entry is written, and holds zeros behind
its entries; it is trimmed when the segment is closed. So a log too small for an entry costs its
next start nothing.

**An index is a hint.** Its owner checks what a lookup returns against the batch it points to, and
reads from the segment's start when they disagree, so that a lost or garbled entry costs time and
never an answer. Entries are written with ``write_at`` and searched in a read-only map: a store
into a sparse mapped page would kill the process on a full disk.
"""

import errno
import struct
from contextlib import suppress
from itertools import chain, pairwise
from typing import Generic, NamedTuple, TypeVar

from typing_extensions import Buffer

from stratalog.errors import (
    CorruptIndexError,
    DiskError,
    IndexFullError,
    OutOfResourcesError,
    SegmentOffsetOverflowError,
)
from stratalog.records import (
    offset_entry,
    search_offset_index,
    search_time_index,
    search_time_index_by_offset,
    time_entry,
    upper_bound_by_position,
)
from stratalog.storage.files import File, FileSystem

RELATIVE_OFFSET_MAX = 2**31 - 1
NO_TIMESTAMP = -1

# A few hundred entries: enough that writing them costs nothing, little to lose in a crash.
_PENDING_BYTES = 4096

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class TimestampOffset(NamedTuple):
    timestamp_ms: int
    offset: int


EntryT = TypeVar("EntryT")


class SparseIndex(Generic[EntryT]):
    """What the two have in common: a file of fixed-size entries, opened when first needed."""

    entry_size: int
    _layout: struct.Struct
    _lowest: tuple[int, int]  # less than any entry can be

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, *, max_bytes: int, size_bytes: int = 0
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        # Of an existing file only the size is known at first; its entries are counted when they
        # are needed, because a file that was not trimmed ends in zeros that are none.
        self._entries = -1 if size_bytes else 0
        self.entries_max = max_bytes // self.entry_size
        self._is_appended_to = False
        self._capacity_bytes = size_bytes
        self._file: File | None = None
        self._map: Buffer = b""
        self._mapped_bytes = 0
        # Entries not written yet. They are hints, so they may wait for the next flush or search,
        # and a write of its own for each is a good part of what an append would cost.
        self._pending = bytearray()
        self._last: EntryT | None = None

    def entry(self, slot: int) -> EntryT:
        return self._decode(self._buffer(), slot)

    def _decode(self, entries: Buffer, slot: int) -> EntryT:
        raise NotImplementedError

    def _before_all(self) -> EntryT:
        """What a search finds that lies before every entry."""
        raise NotImplementedError

    @property
    def last(self) -> EntryT:
        if self._last is None:
            entries = self.entries
            self._last = self.entry(entries - 1) if entries else self._before_all()
        return self._last

    @property
    def entries(self) -> int:
        if self._entries < 0:
            self._entries = self._count_entries()
        return self._entries

    @property
    def size_bytes(self) -> int:
        return self.entries * self.entry_size

    def _count_entries(self) -> int:
        """The entries before the zeros that preallocation has left behind them.

        They are looked for from the front, in steps that double, by reads of one entry each: in a
        map every look would bring in the pages around it, most of them of nothing but zeros.
        """
        try:
            file = self._file or self._files.open(self.path, writable=False)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
            return 0  # somebody took it away: it was a hint
        low, high = 0, self._capacity_bytes // self.entry_size
        if high and self._is_entry(file, high - 1):
            return high
        while 2 * low + 1 < high and self._is_entry(file, 2 * low):
            low = 2 * low + 1
        high = min(2 * low + 1, high)
        while low < high:
            middle = (low + high) // 2
            if self._is_entry(file, middle):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_entry(self, file: File, slot: int) -> bool:
        return any(file.read_at(slot * self.entry_size, self.entry_size))

    def _open(self, *, create: bool = True) -> File:
        if self._file is None:
            file = self._files.open(self.path, create=create)
            self._capacity_bytes = file.size_bytes()
            self._file = file
        return self._file

    def _buffer(self) -> Buffer:
        """The mapped file; mapped again when it has been resized since."""
        if self._pending:
            self.write_pending()
        if self._mapped_bytes != self._capacity_bytes or not self._mapped_bytes:
            try:
                file = self._open(create=False)
            except DiskError as error:
                if error.errno != errno.ENOENT:
                    raise
                self._entries = 0  # somebody took it away: it was a hint
                return b""
            self._unmap()
            if self._capacity_bytes:
                # In this order: a map that fails is tried again by the next lookup.
                self._map = file.map(self._capacity_bytes)
                self._mapped_bytes = self._capacity_bytes
            if self._capacity_bytes < self.entries_max * self.entry_size:
                self._file = None  # trimmed, so it is only read: the map is enough
        return self._map

    def _unmap(self) -> None:
        self._map = b""
        self._mapped_bytes = 0

    def _add(self, entry: bytes, last: EntryT) -> None:
        self._pending += entry
        self._entries += 1
        self._last = last
        if len(self._pending) >= _PENDING_BYTES:
            self.write_pending()

    def write_pending(self) -> None:
        """Write the entries that have waited. Where the system has run out of something, they are
        given up: they are only hints, and are counted no longer."""
        if not self._pending:
            return
        pending, self._pending = self._pending, bytearray()
        end = self._entries * self.entry_size
        try:
            file = self._open()
            room_bytes = self.entries_max * self.entry_size if self._is_appended_to else 0
            if self._capacity_bytes < room_bytes:
                file.truncate(room_bytes)
                self._capacity_bytes = room_bytes
            file.write_at(end - len(pending), (pending,))
            self._capacity_bytes = max(self._capacity_bytes, end)
        except DiskError as error:
            self._entries -= len(pending) // self.entry_size
            self._last = None
            if not isinstance(error, OutOfResourcesError):
                raise

    def create(self) -> None:
        """Make the file, if there is none: it tells that nothing was lost."""
        self._open()

    def grow(self) -> None:
        """This index is going to be appended to: its first entry preallocates the file."""
        self._is_appended_to = True

    def finish(self) -> None:
        """This index is not going to be appended to, and needs no more room."""
        self._is_appended_to = False

    def trim(self) -> None:
        """Cut the file behind the last entry: this index will not be appended to."""
        self.finish()
        self.write_pending()  # first: the size counts what could be written
        self._resize(self.size_bytes)

    def _resize(self, size_bytes: int) -> None:
        """Only with nothing pending."""
        if self._capacity_bytes != size_bytes:
            file = self._open()
            self._unmap()
            file.truncate(size_bytes)
            self._capacity_bytes = size_bytes

    def is_ordered(self, entries: int) -> bool:
        """Whether the first ``entries`` are in the order that this kind of index keeps."""
        found = self._layout.iter_unpack(self.content()[: entries * self.entry_size])
        return all(self._follows(*pair) for pair in pairwise(chain([self._lowest], found)))

    @staticmethod
    def _follows(earlier: tuple[int, int], later: tuple[int, int]) -> bool:
        raise NotImplementedError

    def content(self) -> bytes:
        """The entries, as they are on disk."""
        self.write_pending()
        size_bytes = self.size_bytes
        return bytes(memoryview(self._buffer())[:size_bytes]) if size_bytes else b""

    def extend(self, entries: Buffer) -> None:
        """Add ready-made entries; they are written when others are."""
        count = len(bytes(entries)) // self.entry_size
        if count:
            self._entries = self.entries + count
            self._pending += bytes(entries)
            self._last = self._decode(entries, count - 1)

    def rebuild(self, entries: Buffer) -> None:
        """Replace all entries by ready-made ones; the file ends up trimmed."""
        data = bytes(entries)
        self._entries = 0
        self._pending = bytearray()
        file = self._open()
        self._resize(0)
        if data:
            file.write_at(0, [data])
        self._capacity_bytes = len(data)
        self._entries = len(data) // self.entry_size
        self._last = None

    def _keep(self, entries: int) -> None:
        """Forget all but the first ``entries``. They are cut off the file, so that growing it
        again leaves zeros behind the last entry."""
        if entries < self.entries:
            self.write_pending()
            self._entries = min(entries, self._entries)
            self._resize(self.size_bytes)
            self._last = None

    def file_to_sync(self) -> File | None:
        """The file with all entries written, if this process has had it open."""
        self.write_pending()
        return self._file

    def close(self) -> None:
        """Let go of the file. Entries that cannot be written any more were only hints."""
        with suppress(DiskError):
            self.write_pending()
        self._pending = bytearray()
        self._unmap()
        self._file = None  # a flush on another thread may still hold it

    def release(self) -> None:
        """Let go of descriptor and map; the next use opens them again."""
        self.write_pending()
        self._unmap()
        self._file = None

    def _check_length(self) -> None:
        size = self._open().size_bytes()
        if size % self.entry_size:
            raise CorruptIndexError(
                self.path, f"{size} bytes are no multiple of the entry size {self.entry_size}"
            )

    def _relative(self, offset: int) -> int:
        relative = offset - self.base_offset
        if not 0 <= relative <= RELATIVE_OFFSET_MAX:
            raise SegmentOffsetOverflowError(self.path, self.base_offset, offset)
        return relative

    def _clamped(self, offset: int) -> int:
        return min(offset - self.base_offset, RELATIVE_OFFSET_MAX)


class OffsetIndex(SparseIndex[OffsetPosition]):
    """Last offset of some batches, with the position each starts at; offsets strictly grow."""

    _layout = _OFFSET_ENTRY
    _lowest = (-1, 0)
    entry_size = _OFFSET_ENTRY.size

    @property
    def is_full(self) -> bool:
        return self.entries >= self.entries_max

    def _decode(self, entries: Buffer, slot: int) -> OffsetPosition:
        relative, position = offset_entry(entries, slot)
        return OffsetPosition(self.base_offset + relative, position)

    def _before_all(self) -> OffsetPosition:
        return OffsetPosition(self.base_offset, 0)

    @staticmethod
    def _follows(earlier: tuple[int, int], later: tuple[int, int]) -> bool:
        return earlier[0] < later[0] and earlier[1] < later[1]

    def append(self, offset: int, position: int) -> None:
        if self.is_full:
            raise IndexFullError(self.path, self.entries_max)
        relative = self._relative(offset)
        if self._entries and offset <= self.last.offset:
            raise CorruptIndexError(
                self.path, f"offset {offset} does not follow the last entry, {self.last.offset}"
            )
        self._add(_OFFSET_ENTRY.pack(relative, position), OffsetPosition(offset, position))

    def slot(self, offset: int) -> int:
        """The slot of the entry with the largest offset not above ``offset``; -1 if none."""
        if not self.entries or offset < self.base_offset:
            return -1
        return search_offset_index(self._buffer(), self.entries, self._clamped(offset))

    def lookup(self, offset: int) -> OffsetPosition:
        """That entry; the segment's start if there is none."""
        slot = self.slot(offset)
        return self._before_all() if slot < 0 else self.entry(slot)

    def at_or_after(self, offset: int) -> OffsetPosition | None:
        """The entry with the smallest offset not below ``offset``."""
        slot = self.slot(offset - 1) + 1
        return self.entry(slot) if slot < self.entries else None

    def upper_bound(self, position: int) -> OffsetPosition | None:
        """The first entry whose position is not below ``position``."""
        if not self.entries:
            return None
        slot = upper_bound_by_position(self._buffer(), self.entries, position)
        return None if slot < 0 else self.entry(slot)

    def lower_bound(self, position: int) -> OffsetPosition | None:
        """The last entry whose position is not above ``position``."""
        if not self.entries:
            return None
        slot = upper_bound_by_position(self._buffer(), self.entries, position + 1)
        slot = (self.entries if slot < 0 else slot) - 1
        return None if slot < 0 else self.entry(slot)

    def truncate_to(self, offset: int) -> None:
        """Drop every entry at or above ``offset``."""
        self._keep(self.slot(offset - 1) + 1)

    def sanity_check(self) -> None:
        self._check_length()
        if self.entries and self.last.offset < self.base_offset:
            raise CorruptIndexError(
                self.path, f"last offset {self.last.offset} is below the base {self.base_offset}"
            )


class TimeIndex(SparseIndex[TimestampOffset]):
    """The largest timestamp seen up to some offsets; timestamps strictly grow, offsets never
    shrink. The last slot is kept free for the entry that closing the segment forces."""

    _layout = _TIME_ENTRY
    _lowest = (NO_TIMESTAMP, 0)
    entry_size = _TIME_ENTRY.size

    @property
    def is_full(self) -> bool:
        return self.entries >= self.entries_max - 1

    def _decode(self, entries: Buffer, slot: int) -> TimestampOffset:
        timestamp_ms, relative = time_entry(entries, slot)
        return TimestampOffset(timestamp_ms, self.base_offset + relative)

    def _before_all(self) -> TimestampOffset:
        return TimestampOffset(NO_TIMESTAMP, self.base_offset)

    @staticmethod
    def _follows(earlier: tuple[int, int], later: tuple[int, int]) -> bool:
        return earlier[0] < later[0] and earlier[1] <= later[1]

    def maybe_append(self, timestamp_ms: int, offset: int, *, forced: bool = False) -> None:
        """Add an entry if the timestamp is larger than the last one's."""
        if not forced and self.is_full:
            raise IndexFullError(self.path, self.entries_max)
        last = self.last
        if self.entries and offset < last.offset:
            raise CorruptIndexError(
                self.path, f"offset {offset} is below the last entry's, {last.offset}"
            )
        if self.entries and timestamp_ms < last.timestamp_ms:
            raise CorruptIndexError(
                self.path,
                f"timestamp {timestamp_ms} is below the last entry's, {last.timestamp_ms}",
            )
        if timestamp_ms > last.timestamp_ms:
            entry = _TIME_ENTRY.pack(timestamp_ms, self._relative(offset))
            self._add(entry, TimestampOffset(timestamp_ms, offset))

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """The entry with the largest timestamp not above the one given."""
        if not self.entries:
            return self._before_all()
        slot = search_time_index(self._buffer(), self.entries, timestamp_ms)
        return self._before_all() if slot < 0 else self.entry(slot)

    def slot_by_offset(self, offset: int) -> int:
        """The slot of the last entry whose offset is not above ``offset``; -1 if none."""
        if not self.entries or offset < self.base_offset:
            return -1
        return search_time_index_by_offset(self._buffer(), self.entries, self._clamped(offset))

    def truncate_to(self, offset: int) -> None:
        """Drop every entry at or above ``offset``."""
        self._keep(self.slot_by_offset(offset - 1) + 1)

    def sanity_check(self) -> None:
        self._check_length()
        if not self.entries:
            return
        first, last = self.entry(0), self.last
        if last.timestamp_ms < first.timestamp_ms:
            raise CorruptIndexError(
                self.path,
                f"last timestamp {last.timestamp_ms} is below the first, {first.timestamp_ms}",
            )
        if last.offset < self.base_offset:
            raise CorruptIndexError(
                self.path, f"last offset {last.offset} is below the base {self.base_offset}"
            )
