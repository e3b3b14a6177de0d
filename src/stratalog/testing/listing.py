"""A log directory that is only listed: very many partitions and segments, and no disk.

Every partition has the same segments, all alike; the last one's bytes are there, since a plan
looks where it ends. Entries are made once: what is measured with it is not the simulation.
"""

import errno

from stratalog.records import Record, build_batch
from stratalog.storage.files import Entry, File, OsFileSystem
from stratalog.storage.layout import (
    LOG_SUFFIX,
    META_PROPERTIES,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    segment_file,
)
from stratalog.storage.readonly import ReadOnlyFile, ReadOnlyFileSystem
from stratalog.testing.faults import failure

RECORDS_A_SEGMENT = 1_000
SEGMENT_BYTES = 1 << 20


class BytesFile(ReadOnlyFile):
    """An open file that is some bytes."""

    __slots__ = ("_content", "_path")

    def __init__(self, path: str, content: bytes) -> None:
        self._path = path
        self._content = content

    @property
    def path(self) -> str:
        return self._path

    def size_bytes(self) -> int:
        return len(self._content)

    def read_at(self, position: int, size: int) -> bytes:
        return self._content[position : position + size]

    def close(self) -> None:
        pass


class ListedLogs(ReadOnlyFileSystem):
    """``/logs``, with so many partitions of the topic ``t`` of so many segments each."""

    path = "/simulated-logs"

    def __init__(self, partitions: int, segments: int) -> None:
        super().__init__(OsFileSystem())
        last_offset = (segments - 1) * RECORDS_A_SEGMENT
        self._tail = build_batch([Record(None, b"v", timestamp_ms=1)], base_offset=last_offset)
        self._tail_name = segment_file("", last_offset, LOG_SUFFIX)
        self._top = [Entry(f"t-{each}", True, 4096, 0) for each in range(partitions)]
        self._top.append(Entry(META_PROPERTIES, False, 0, 0))
        self._inside = [
            Entry(
                segment_file("", place * RECORDS_A_SEGMENT, suffix)[1:],
                False,
                len(self._tail) if place == segments - 1 else SEGMENT_BYTES,
                place,
                inode=place + 1,
            )
            for place in range(segments)
            for suffix in (*SEGMENT_SUFFIXES[:3], SNAPSHOT_SUFFIX)
        ]
        self._tail_entry = next(e for e in self._inside if e.name == self._tail_name[1:])

    def list(self, path: str) -> list[Entry]:
        return self._top if path == self.path else self._inside

    def exists(self, path: str) -> bool:
        return path.endswith(self._tail_name)

    def stat(self, path: str) -> Entry | None:
        if path.endswith(self._tail_name):
            return self._tail_entry
        return None if "." in path else Entry(path, True, 4096, 0)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if path.endswith(self._tail_name):
            return BytesFile(path, self._tail)
        raise failure("open", path, errno.ENOENT)
