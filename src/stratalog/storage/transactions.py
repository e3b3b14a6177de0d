"""Aborted transactions of a segment: the ``.txnindex`` beside it.

    2 bytes version (0)   8 producer id   8 first offset   8 last offset   8 last stable offset

One entry per abort marker in the segment, in the order of the markers. The file appears with the
first abort and is never preallocated. A reader of committed data uses it to know which producers'
batches to drop; ``last_stable_offset`` tells how far a search has to go.
"""

import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from stratalog.errors import CorruptIndexError, DiskError
from stratalog.storage.files import File, FileSystem, replace_file

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """``last_offset`` is the abort marker's; ``last_stable_offset`` is the log's right after it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def encode(self) -> bytes:
        return _ENTRY.pack(
            _VERSION,
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        )


@dataclass(frozen=True, slots=True)
class AbortedSearch:
    """What one segment knows; ``is_complete`` when later segments need not be asked."""

    transactions: tuple[AbortedTransaction, ...]
    is_complete: bool


class TransactionIndex:
    entry_size = _ENTRY.size

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, *, exists: bool = False
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self.exists = exists
        self._files = files
        self._file: File | None = None
        self._size_bytes = -1
        self._last_offset = -1
        self._is_appended_to = False

    def _open(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            self.exists = True
            size = self._file.size_bytes()
            self._size_bytes = size - size % self.entry_size
        return self._file

    def append(self, aborted: AbortedTransaction) -> None:
        if aborted.last_offset <= self._last_offset:
            raise CorruptIndexError(
                self.path,
                f"an abort at {aborted.last_offset} does not follow the one at {self._last_offset}",
            )
        self._is_appended_to = True
        self._open().write_at(self._size_bytes, [aborted.encode()])
        self._size_bytes += self.entry_size
        self._last_offset = aborted.last_offset

    def take_back(self, count: int) -> None:
        """The last ``count`` entries do not count: their markers could not be written. Who opens
        the file next finds by the log which entries do, so cutting them off is best effort."""
        if count:
            self._size_bytes -= count * self.entry_size
            self._last_offset = -1
            with suppress(DiskError):
                self._open().truncate(self._size_bytes)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        if not self.exists:
            return
        data = self._open().read_at(0, self._size_bytes)
        for version, *fields in _ENTRY.iter_unpack(data):
            if version != _VERSION:
                raise CorruptIndexError(
                    self.path, f"an entry has version {version}; only {_VERSION} is known"
                )
            yield AbortedTransaction(*fields)

    def collect(self, start_offset: int, end_offset: int) -> AbortedSearch:
        """Aborted transactions that reach into the range a reader was given."""
        found = []
        for aborted in self:
            if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                return AbortedSearch(tuple(found), is_complete=True)
        return AbortedSearch(tuple(found), is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of markers at or above ``offset``."""
        kept = 0
        last_offset = -1
        for aborted in self:
            if aborted.last_offset >= offset:
                break
            kept += 1
            last_offset = aborted.last_offset
        if self.exists:
            self._size_bytes = kept * self.entry_size
            self._open().truncate(self._size_bytes)
        self._last_offset = last_offset

    def rebuild(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Replace all entries at once: after a crash they are the old ones or the new."""
        entries = list(aborted)
        if not entries and not self.exists:
            return
        self._file = None
        replace_file(self._files, self.path, b"".join(each.encode() for each in entries))
        self.exists = True
        self._last_offset = entries[-1].last_offset if entries else -1

    def sanity_check(self) -> None:
        size = self._open().size_bytes() if self.exists else 0
        if size % self.entry_size:
            raise CorruptIndexError(
                self.path, f"{size} bytes are no multiple of the entry size {self.entry_size}"
            )
        for aborted in self:
            if aborted.last_offset < self.base_offset:
                raise CorruptIndexError(
                    self.path,
                    f"an abort at {aborted.last_offset} lies below the segment's base "
                    f"{self.base_offset}",
                )

    def file_to_sync(self) -> File | None:
        """The file, if it is open. This is no hint: one that was appended to is opened again if it
        was let go of before a flush."""
        return self._open() if self._is_appended_to else self._file

    def release(self) -> None:
        """Let go of the file; the next use opens it again."""
        self._file = None
