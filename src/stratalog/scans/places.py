"""Where offsets and timestamps lie in one segment's file, as somebody finds out who only reads.

**Indexes are hints.** An entry counts only if a whole batch with a right CRC lies where it points
and says the same; else the batches are walked from the segment's start. So a lost or garbled index
costs time and changes no plan's rows. Nothing is mapped: the owner may cut a file at any time. An
active segment's index is preallocated and mostly zeros, so entries are read one by one.
"""

import errno
import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import (
    BatchHeader,
    check_crc,
    find_record_by_timestamp,
    read_header,
    read_headers,
)
from stratalog.scans.errors import DataLostError
from stratalog.scans.opening import open_slice
from stratalog.scans.slices import FileIdentity, ScanSlice
from stratalog.storage.files import File, FileSystem
from stratalog.storage.index import RELATIVE_OFFSET_MAX
from stratalog.storage.inspection import ListedSegment
from stratalog.storage.layout import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TopicPartition,
    segment_file,
)

_HEADER_BYTES = 61
_WALK_BYTES = 64 << 10
_TRIES = 8
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class _Entries:
    """The entries of an index file; none if there is no such file."""

    def __init__(self, files: FileSystem, path: str, layout: struct.Struct) -> None:
        self._layout = layout
        self._file: File | None = None
        self._count = 0
        try:
            self._file = files.open(path, writable=False)
            self._count = self._file.size_bytes() // layout.size
        except DiskError:
            self._file = None  # a hint that cannot be read is one that is not there
        if self._count and not any(self._bytes(self._count - 1)):
            self._count = bisect_right(
                range(self._count), False, key=lambda slot: not any(self._bytes(slot))
            )

    def _bytes(self, slot: int) -> bytes:
        assert self._file is not None
        size = self._layout.size
        return self._file.read_at(slot * size, size).ljust(size, b"\0")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, slot: int) -> tuple[int, int]:
        first, second = self._layout.unpack(self._bytes(slot))
        return first, second

    def floor(self, value: int, *, field: int = 0) -> int:
        """The last slot whose ``field`` is not above ``value``; -1 for none."""
        return bisect_right(range(self._count), value, key=lambda slot: self[slot][field]) - 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class SegmentPlaces:
    """One segment, up to the size that it was listed with. Close it.

    All raise ``DiskError`` (ENOENT) if the file that was listed is gone, though another may have
    its name: the places in that one are not its places.
    """

    def __init__(self, files: FileSystem, directory: str, listed: ListedSegment) -> None:
        self.base_offset = listed.base_offset
        self.size_bytes = listed.size_bytes
        self.inode = listed.inode
        self._listed = listed
        self._files = files
        self._directory = directory
        self._opened: dict[str, File | _Entries] = {}
        self.walked_to = 0  # where the last walk that came to an end did

    def __enter__(self) -> "SegmentPlaces":
        return self

    def __exit__(self, *_exc: object) -> None:
        for each in self._opened.values():
            each.close()

    def path(self, suffix: str) -> str:
        return segment_file(self._directory, self.base_offset, suffix)

    @property
    def file(self) -> File:
        found = self._opened.get(LOG_SUFFIX)
        if found is None:
            found = self._opened[LOG_SUFFIX] = self._open_listed()
        assert not isinstance(found, _Entries)
        return found

    def _open_listed(self) -> File:
        path = self.path(LOG_SUFFIX)
        try:
            file = self._files.open(path, writable=False)
            # A name may pass to another file, never back: so what it names now, if it is what was
            # listed, is also what was opened.
            entry = self._files.stat(path)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
        else:
            if entry is not None and entry.inode == self.inode:
                return file
            file.close()
        return self._open_elsewhere(path)

    def _open_elsewhere(self, path: str) -> File:
        """Where its owner may have put it since, for the time being."""
        listed = self._listed
        identity = FileIdentity(listed.inode, listed.size_bytes, listed.modified_ms)
        nobody = TopicPartition("", 0)
        planned = ScanSlice(
            nobody, self._directory, "", self.base_offset, identity, 0, 0, 0, listed.size_bytes
        )
        try:
            return open_slice(self._files, planned)
        except DataLostError as error:
            raise DiskError("open", path, errno.ENOENT, error.reason) from error

    @property
    def offset_entries(self) -> _Entries:
        return self._entries(OFFSET_INDEX_SUFFIX, _OFFSET_ENTRY)

    @property
    def time_entries(self) -> _Entries:
        return self._entries(TIME_INDEX_SUFFIX, _TIME_ENTRY)

    def _entries(self, suffix: str, layout: struct.Struct) -> _Entries:
        found = self._opened.get(suffix)
        if found is None:
            found = self._opened[suffix] = _Entries(self._files, self.path(suffix), layout)
        assert isinstance(found, _Entries)
        return found

    # --- batches ------------------------------------------------------------------------------

    def batch_at(self, position: int) -> BatchHeader | None:
        """The batch at ``position``, if a whole one with a right CRC is there."""
        if not 0 <= position < self.size_bytes:
            return None
        try:
            header = read_header(self.file.read_at(position, _HEADER_BYTES), 0, position)
        except CorruptBatchError:
            return None
        if header is None or position + header.size_bytes > self.size_bytes:
            return None
        return header if check_crc(self.file.read_at(position, header.size_bytes)) else None

    def walk(self, position: int) -> Iterator[BatchHeader]:
        """The sound batches from ``position`` on, by their headers; ends early at damage, or at a
        batch that is cut by the file's end.

        Base offsets lie outside the CRC. So a batch counts once the next one follows it: of two
        that contradict each other, neither is believed.
        """
        held: BatchHeader | None = None
        for batch in self._whole_batches(position):
            if not self._follows(held, batch):
                self.walked_to = batch.position if held is None else held.position
                return
            if held is not None:
                yield held
            held = batch
        if held is not None:
            yield held

    def _follows(self, before: BatchHeader | None, batch: BatchHeader) -> bool:
        lowest = self.base_offset if before is None else before.next_offset
        first = batch.base_offset if batch.base_offset >= 0 else batch.last_offset
        return lowest <= first and batch.last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def _whole_batches(self, position: int) -> Iterator[BatchHeader]:
        """The batches from ``position`` on with a right CRC, up to one without."""
        while position < self.size_bytes:
            size = min(_WALK_BYTES, self.size_bytes - position)
            chunk = self.file.read_at(position, size)
            try:
                batches = read_headers(chunk, position)
            except CorruptBatchError as error:
                yield from self._before(chunk, position, error.position)
                position = max(error.position, position)
                break
            if not batches:  # one that is larger than a chunk, or cut
                larger = self.batch_at(position)
                if larger is None:
                    break
                batches = [larger]
            yield from batches
            position = batches[-1].position + batches[-1].size_bytes
        self.walked_to = position

    @staticmethod
    def _before(chunk: bytes, position: int, fault: int) -> list[BatchHeader]:
        if fault <= position:
            return []
        return read_headers(chunk[: fault - position], position, check_crc=False)

    # --- offsets ------------------------------------------------------------------------------

    def hint_for(self, offset: int) -> int:
        """A position that begins a batch, no later than the first that reaches ``offset``."""
        entries = self.offset_entries
        relative = min(offset - self.base_offset, 2**31 - 1)
        slot = entries.floor(relative) if relative >= 0 else -1
        if slot < 0:
            return 0
        batch = self._batch_of_offset_entry(slot)
        if batch is None or batch.last_offset > offset:
            return 0
        return batch.position

    def ends_at(self, offset: int) -> bool:
        """Whether the last batches say so, by their headers alone; a False may be wrong."""
        entries = self.offset_entries
        position = entries[len(entries) - 1][1] if len(entries) else 0
        if not 0 <= self.size_bytes - position <= _WALK_BYTES:
            return False
        try:
            chunk = self.file.read_at(position, self.size_bytes - position)
            batches = read_headers(chunk, position, check_crc=False)
        except CorruptBatchError:
            return False
        if not batches or batches[-1].position + batches[-1].size_bytes != self.size_bytes:
            return False
        return batches[-1].next_offset == offset

    def next_offset(self) -> int | None:
        """The offset behind the last batch, the segment's own where there is none; None if damage
        hides it."""
        found = self.base_offset
        for batch in self.walk(self.last_hint()):
            found = batch.next_offset
        return found if self.walked_to >= self.size_bytes else None

    def last_hint(self) -> int:
        """The position of the last batch that the index knows."""
        batch = self._batch_of_offset_entry(len(self.offset_entries) - 1)
        return 0 if batch is None else batch.position

    def _batch_of_offset_entry(self, slot: int) -> BatchHeader | None:
        """The batch that an entry is about, if it has the offset that the entry says: the last of
        the batch, or with old releases another of it."""
        if slot < 0:
            return None
        relative, position = self.offset_entries[slot]
        batch, offset = self.batch_at(position), self.base_offset + relative
        if batch is None or not _first_offset(batch) <= offset <= batch.last_offset:
            return None
        return batch

    def start_of(self, offset: int) -> int:
        """Where the first batch begins that reaches ``offset``. Damage on the way is for the
        reader to tell of: then as far as the walk came."""
        position = before = self.hint_for(offset)
        for batch in self.walk(position):
            if batch.last_offset >= offset:
                # Offsets that are missing before it are gone by compaction, or a damaged header
                # before it claims fewer than it has.
                is_gap = _first_offset(batch) > offset and before < batch.position
                return before if is_gap and self.batch_at(before) is None else batch.position
            before = batch.position
            position = batch.position + batch.size_bytes
        return position

    def end_of(self, offset: int) -> int:
        """Where the last batch ends that holds offsets below ``offset``; the listed size where
        there is no telling."""
        for batch in self.walk(self.hint_for(offset - 1)):
            if _first_offset(batch) >= offset:
                return batch.position
            if batch.last_offset >= offset - 1:
                return batch.position + batch.size_bytes
        # Whatever hides it: the reader, who checks all of it, is to meet it too.
        return self.size_bytes

    def boundary_before(self, position: int) -> "Boundary | None":
        """The last place at or before ``position`` where a batch begins whose first offset is
        known; None if there is none behind the segment's start, or damage is in the way."""
        entries = self.offset_entries
        slot = entries.floor(position, field=1)
        hint = self._batch_of_offset_entry(slot)
        found, before = None, None
        for batch in self.walk(0 if hint is None else hint.position):
            if batch.position > position:
                return found
            first = _first_offset(batch)
            if first < 0 and before is not None:
                first = before.last_offset + 1
            if first >= 0 and batch.position > 0:
                found = Boundary(first, batch.position)
            before = batch
        return found

    def offset_at(self, position: int) -> int | None:
        """The first offset of the batch at ``position``, if it tells."""
        batch = self.batch_at(position)
        return None if batch is None or batch.base_offset < 0 else batch.base_offset

    # --- time ---------------------------------------------------------------------------------

    def skip_older(self, min_ms: int, position: int, *, budget_bytes: int | None = None) -> int:
        """Where the first batch at or behind ``position`` begins that may hold a record not older
        than ``min_ms``; at least, if looking at ``budget_bytes`` of batches does not tell."""
        trusted = self._trusted_time_entry(self.time_entries.floor(min_ms - 1))
        if trusted is not None:
            position = max(position, trusted.position + trusted.size_bytes)
        limit = None if budget_bytes is None else position + budget_bytes
        for batch in self.walk(position):
            if batch.max_timestamp_ms >= min_ms:
                return batch.position
            position = batch.position + batch.size_bytes
            if limit is not None and position >= limit:
                return position
        return max(position, self.walked_to)

    def first_later(self, timestamp_ms: int) -> BatchHeader | None:
        """A batch, if the time index knows one, with a record later than ``timestamp_ms``: the
        first that it knows."""
        entries = self.time_entries
        slot = entries.floor(timestamp_ms) + 1
        for each in range(slot, min(slot + _TRIES, len(entries))):
            batch = self._batch_of_time_entry(*entries[each])
            if batch is not None and batch.max_timestamp_ms > timestamp_ms:
                return batch
        return None

    def _trusted_time_entry(self, slot: int) -> BatchHeader | None:
        """The batch of an entry that tells the truth, as far as can be seen: so do the entries
        around it, and they are in order. It claims that no batch before it is later."""
        entries = self.time_entries
        if slot < 0:
            return None
        around = range(max(slot - 1, 0), min(slot + 2, len(entries)))
        found = [entries[each] for each in around]
        if any(b[0] <= a[0] or b[1] < a[1] for a, b in pairwise(found)):
            return None
        batches = [self._batch_of_time_entry(*each) for each in found]
        if any(batch is None for batch in batches):
            return None
        return batches[slot - around.start]

    def _batch_of_time_entry(self, timestamp_ms: int, relative: int) -> BatchHeader | None:
        offset = self.base_offset + relative
        for batch in self.walk(self.hint_for(offset)):
            if batch.last_offset >= offset:
                return batch if batch.max_timestamp_ms == timestamp_ms else None
        return None

    def record_at_time(self, batch: BatchHeader, min_ms: int, min_offset: int) -> int | None:
        """The offset of the first record of ``batch`` that is neither older nor before those."""
        content = self.file.read_at(batch.position, batch.size_bytes)
        found = find_record_by_timestamp(content, min_ms, min_offset)
        return None if found is None else found[0]


class Boundary(NamedTuple):
    """Where a batch begins, and the first offset that it can hold."""

    offset: int
    position: int


def _first_offset(batch: BatchHeader) -> int:
    """Of a compressed message of magic 0 or 1 only decompressing it would tell: anything."""
    return batch.base_offset if batch.base_offset >= 0 else -1
