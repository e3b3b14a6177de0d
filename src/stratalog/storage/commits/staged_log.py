"""What is staged for one partition: files of whole batches, and how they are told of in a manifest.

Written by tasks on any host that has the file system; so nothing in this module changes a log.
"""

import errno
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from typing_extensions import Buffer

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import BatchHeader, read_headers
from stratalog.records._kernels import crc32c
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.files import File, FileSystem, begin_sync
from stratalog.storage.layout import LOG_SUFFIX

# What waits to be written at once: enough that small batches cost no call each.
_WAITING_BYTES = 1 << 20
_WAITING_BUFFERS = 512
_RECORDS_MAX = 2**31 - 1
# Of a segment's bytes, as many of its indexes and time ranges.
_INDEXES_PART = 100

# How a batch begins: base offset, size of what follows that, partition leader epoch. Its CRC does
# not cover them.
PREFIX = struct.Struct(">qii")
LOG_OVERHEAD_BYTES = 12
NO_LEADER_EPOCH = -1


def bytes_in_log(size_bytes: int) -> int:
    """How much segments of ``size_bytes`` take with what their owner makes beside them: indexes and
    time ranges."""
    return size_bytes + size_bytes // _INDEXES_PART


def make_staging_directory(files: FileSystem, directory: str) -> None:
    """Make a ``staging_directory``, and those above it that only staging needs."""
    staging = os.path.dirname(directory)
    for each in (os.path.dirname(staging), staging, directory):
        try:
            files.make_directory(each)
        except DiskError as error:
            if error.errno != errno.EEXIST:  # several tasks make it at the same time
                raise


def digest_of(crcs: Sequence[int], digest: int = 0) -> int:
    """The CRC-32C of batches' CRCs, going on from those before."""
    return crc32c(struct.pack(f">{len(crcs)}I", *crcs), digest)


@dataclass(slots=True)
class _OpenFile:
    """A file that is being written, and what waits to be; without a descriptor while it rests."""

    files: FileSystem
    path: str
    file: File | None
    size_bytes: int = 0
    record_count: int = 0
    digest: int = 0
    waiting: list[Buffer] = field(default_factory=list)
    waiting_bytes: int = 0

    def add(self, batch: memoryview, header: BatchHeader) -> None:
        # The two fields that no CRC covers: offsets count from the file's first record.
        self.waiting.append(
            PREFIX.pack(self.record_count, header.size_bytes - LOG_OVERHEAD_BYTES, NO_LEADER_EPOCH)
        )
        self.waiting.append(batch[PREFIX.size :])
        self.waiting_bytes += header.size_bytes
        self.record_count += header.record_count
        self.digest = digest_of((header.crc,), self.digest)

    def write(self) -> File:
        if self.file is None:
            self.file = self.files.open(self.path)
        if self.waiting:
            self.file.write_at(self.size_bytes, self.waiting)
            # Who finishes a file waits for its disk: that is to be busy while others compute.
            begin_sync(self.file, self.size_bytes, self.waiting_bytes)
            self.size_bytes += self.waiting_bytes
            self.waiting, self.waiting_bytes = [], 0
        return self.file

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()

    def staged(self) -> StagedFile:
        return StagedFile(
            name=os.path.basename(self.path),
            size_bytes=self.size_bytes,
            record_count=self.record_count,
            digest=f"{self.digest:08x}",
        )


class StagedLogWriter:
    """Writes what one attempt of a task stages for one partition, as ``<prefix>-<number>.log``.

    ``directory`` is the partition's ``staging_directory``; it is made when the first batch comes.
    A file holds at most ``segment_bytes``. Nothing counts before ``finish``. Not for several
    threads. ``check_held`` is called when a file has been made, and raises if the staging was given
    up: whoever gives it up removes the lease and then the files, so one of the two sees the other.
    """

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        prefix: str,
        *,
        segment_bytes: int,
        check_held: Callable[[], None] = lambda: None,
    ) -> None:
        self.directory = directory
        self._files = files
        self._prefix = prefix
        self._segment_bytes = segment_bytes
        self._check_held = check_held
        self._open: _OpenFile | None = None
        self._done: list[StagedFile] = []

    @property
    def size_bytes(self) -> int:
        """Of all that was appended."""
        opened = self._open
        size_bytes = 0 if opened is None else opened.size_bytes + opened.waiting_bytes
        return size_bytes + sum(each.size_bytes for each in self._done)

    def append(self, batches: Buffer) -> None:
        """Whole v2 batches, which must not change any more; their offsets and leader epochs are
        given anew."""
        view = memoryview(batches).cast("B")
        for header in self._headers(view):
            if not self._fits(header):
                self._finish_file()
            opened = self._open or self._open_file()
            opened.add(view[header.position : header.position + header.size_bytes], header)
            if opened.waiting_bytes >= _WAITING_BYTES or len(opened.waiting) >= _WAITING_BUFFERS:
                opened.write()

    def _headers(self, view: memoryview) -> list[BatchHeader]:
        path = f"{self.directory}/{self._prefix}"
        try:
            headers = read_headers(view, 0, check_crc=False)
        except CorruptBatchError as error:
            raise StagedFileError(path, error.position, error.reason) from error
        end = headers[-1].position + headers[-1].size_bytes if headers else 0
        if end != len(view):
            raise StagedFileError(path, end, "it was handed part of a batch")
        return headers

    def _fits(self, header: BatchHeader) -> bool:
        opened = self._open
        return opened is None or (
            opened.size_bytes + opened.waiting_bytes + header.size_bytes <= self._segment_bytes
            and opened.record_count + header.record_count <= _RECORDS_MAX
        )

    def _open_file(self) -> _OpenFile:
        if not self._done:
            make_staging_directory(self._files, self.directory)
        path = f"{self.directory}/{self._prefix}-{len(self._done):05d}{LOG_SUFFIX}"
        self._files.unlink(path, missing_ok=True)  # of an attempt with the same number
        try:
            self._open = _OpenFile(self._files, path, self._files.open(path, create=True))
        finally:
            self._check_held()  # who gives it up may take the directory away before that
        return self._open

    def rest(self) -> None:
        """Write what waits, and hold neither memory nor a descriptor until the next batch comes:
        for whoever writes to very many partitions."""
        if self._open is not None:
            self._open.write()
            self._open.close()

    def _finish_file(self) -> None:
        opened = self._open
        if opened is not None:
            opened.write().sync()
            opened.close()
            self._open = None
            self._done.append(opened.staged())

    def finish(self) -> tuple[StagedFile, ...]:
        """Make all of it durable, and say what a manifest needs to know, in order."""
        self._finish_file()
        if self._done:
            self._files.sync_directory(self.directory)
        return tuple(self._done)

    def discard(self) -> None:
        """Take back what was written. Best effort: the sweep of its staging gets the rest."""
        opened, self._open = self._open, None
        paths = [f"{self.directory}/{each.name}" for each in self._done]
        self._done = []
        with suppress(DiskError):
            if opened is not None:
                paths.append(opened.path)
                opened.close()
            for path in paths:
                self._files.unlink(path, missing_ok=True)
