"""Staging: files written beside a log by whoever does not own it, and the lease that keeps them.

    <log dir>/.stratalog-staging-<id>             its modification time: until when it holds
    {"version": 1, "holder": "spark ...", "created_ms": ...}
    <log dir>/orders-0/.stratalog/staging/<id>/   what is staged for one partition
      00007-0-00000.log                           whole batches, offsets from 0 on

Tasks on any host that has the file system write here, so nothing in this module changes a log. The
owner of the log directory removes what is staged when its lease is over, or has no file, and no
commit needs it (``sweep_staging``). Else only a commit does, or whoever has staged it.

The lease's file is not synced: a loss of power may take it, and with it what was not committed.
"""

import errno
import json
import os
import struct
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from typing_extensions import Buffer

from stratalog.clock import Clock
from stratalog.errors import CorruptBatchError, DiskError, TopicNameError
from stratalog.records import BatchHeader, read_headers
from stratalog.records._kernels import crc32c
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.manifest import StagedFile, is_staging_id
from stratalog.storage.files import Entry, File, FileSystem, begin_sync, remove_tree
from stratalog.storage.layout import (
    LOG_SUFFIX,
    STAGING_DIRECTORY,
    STAGING_FILE_PREFIX,
    TopicPartition,
    parse_replica_directory,
    parse_staging_file,
    replica_directory,
    staging_directory,
    staging_file,
)
from stratalog.storage.leases import cut_holder

__all__ = [
    "StagedLogWriter",
    "bytes_in_log",
    "digest_of",
    "hold_staging",
    "make_staging_directory",
    "open_staging",
    "release_staging",
    "renew_staging",
    "staged_partitions",
    "staging_directory",
    "staging_until_ms",
    "sweep_staging",
]

# Nobody's files stay longer than this after they were last renewed, whatever the clock said then.
STAGING_MS_MAX = 24 * 3_600_000
_UNFINISHED_MS = 3_600_000

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


# --- the lease --------------------------------------------------------------------------------


def open_staging(
    files: FileSystem,
    log_dir: str,
    *,
    holder: str,
    seconds: float,
    clock: Clock,
    staging_id: str | None = None,
) -> str:
    """Begin to stage, before the first file is written; or go on, if ``staging_id`` is held."""
    now_ms = clock.now_ms()
    until_ms = now_ms + _lasting_ms(seconds)
    if staging_id is None:
        staging_id = uuid.uuid4().hex
    elif _prolong(files, staging_file(log_dir, staging_id), until_ms):
        return staging_id
    content = {"version": 1, "holder": cut_holder(holder), "created_ms": now_ms}
    path = staging_file(log_dir, staging_id)
    # Of its own: several tasks may open the same one at the same time.
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        file = files.open(temporary, create=True)
        try:
            file.write_at(0, [json.dumps(content, separators=(",", ":")).encode()])
        finally:
            file.close()
        files.set_modified(temporary, until_ms)
        files.rename(temporary, path)
    except DiskError:
        with suppress(DiskError):
            files.unlink(temporary, missing_ok=True)
        raise
    return staging_id


def renew_staging(
    files: FileSystem, log_dir: str, staging_id: str, seconds: float, clock: Clock
) -> bool:
    """Hold it for ``seconds`` from now on, never shorter than before; False if it is lost."""
    until_ms = clock.now_ms() + _lasting_ms(seconds)
    return _prolong(files, staging_file(log_dir, staging_id), until_ms)


def hold_staging(
    files: FileSystem, log_dir: str, staging_id: str, seconds: float, clock: Clock
) -> bool:
    """Hold what somebody else has opened for ``seconds`` from now on, be that shorter than before;
    False if it was given up: then nothing may be staged any more."""
    path = staging_file(log_dir, staging_id)
    entry = files.stat(path)
    if entry is None or entry.is_directory:
        return False
    return _set_until(files, path, clock.now_ms() + _lasting_ms(seconds))


def _lasting_ms(seconds: float) -> int:
    return min(max(int(seconds * 1000), 0), STAGING_MS_MAX)


def _prolong(files: FileSystem, path: str, until_ms: int) -> bool:
    entry = files.stat(path)
    if entry is None or entry.is_directory:
        return False
    return entry.modified_ms >= until_ms or _set_until(files, path, until_ms)


def _set_until(files: FileSystem, path: str, until_ms: int) -> bool:
    try:
        files.set_modified(path, until_ms)
    except DiskError as error:
        if error.errno != errno.ENOENT:
            raise
        return False
    return True


def staging_until_ms(files: FileSystem, log_dir: str, staging_id: str) -> int | None:
    """Until when it is held; None if it is not, or no more."""
    entry = files.stat(staging_file(log_dir, staging_id))
    return None if entry is None or entry.is_directory else entry.modified_ms


def release_staging(
    files: FileSystem,
    log_dir: str,
    staging_id: str,
    *,
    partitions: Iterable[TopicPartition] | None = None,
) -> None:
    """Remove its lease and all that was staged under it. Its maker, or a commit that is done.

    With ``partitions`` only those are looked at, which is quicker where there are very many; what
    was staged for others is left to the sweep.
    """
    assert is_staging_id(staging_id), "a path is made of it"
    # The lease goes first: whoever would renew it learns that it is lost.
    files.unlink(staging_file(log_dir, staging_id), missing_ok=True)
    if partitions is None:
        directories = _replicas(files, log_dir)
    else:
        directories = [f"{log_dir}/{replica_directory(each)}" for each in partitions]
    for directory in directories:
        _remove_staged(files, directory, staging_id)


def _remove_staged(files: FileSystem, directory: str, staging_id: str) -> None:
    path = staging_directory(directory, staging_id)
    if not files.exists(path):  # as in nearly all of very many partitions: an error would cost more
        return
    try:
        remove_tree(files, path)
    except DiskError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise


# --- what the owner sweeps away ---------------------------------------------------------------


def sweep_staging(
    files: FileSystem, log_dir: str, *, now_ms: int, in_use: Container[str]
) -> list[str]:
    """Remove what was staged under leases that are over, except those ``in_use``; their ids.

    ``in_use`` is asked of nothing but what is to be removed, just before. What cannot be removed
    now is left to the next time.
    """
    held = _held(files, log_dir, now_ms)
    gone: set[str] = set()
    for staging_id, until_ms in sorted(held.items()):
        if until_ms <= now_ms and staging_id not in in_use:
            with suppress(DiskError):
                files.unlink(staging_file(log_dir, staging_id), missing_ok=True)
                gone.add(staging_id)
    left: set[str] = set()
    for directory, staging_id in staged_partitions(files, log_dir):
        if staging_id not in gone and (
            staging_id in held
            # Since it was looked for: a lease is there before what is staged under it.
            or files.exists(staging_file(log_dir, staging_id))
            or staging_id in in_use
        ):
            continue
        gone.add(staging_id)
        try:
            _remove_staged(files, directory, staging_id)
        except DiskError:
            left.add(staging_id)
    return sorted(gone - left)


def _held(files: FileSystem, log_dir: str, now_ms: int) -> dict[str, int]:
    """The leases here, with the time until which each holds."""
    found: dict[str, int] = {}
    for entry in files.list(log_dir):
        if entry.is_directory or not entry.name.startswith(STAGING_FILE_PREFIX):
            continue
        path = f"{log_dir}/{entry.name}"
        staging_id = parse_staging_file(entry.name)
        if staging_id is None:
            if entry.name.endswith(".tmp") and entry.modified_ms + _UNFINISHED_MS < now_ms:
                files.unlink(path, missing_ok=True)
            continue
        found[staging_id] = entry.modified_ms
        if entry.modified_ms > now_ms + STAGING_MS_MAX:
            # Whoever made it had another clock, or this one was set back: it is to end some time.
            found[staging_id] = now_ms + STAGING_MS_MAX
            with suppress(DiskError):
                files.set_modified(path, found[staging_id])
    return found


def staged_partitions(files: FileSystem, log_dir: str) -> Iterator[tuple[str, str]]:
    """Each partition's directory with the id of something that is staged in it."""
    for directory in _replicas(files, log_dir):
        for entry in _list(files, f"{directory}/{STAGING_DIRECTORY}"):
            if entry.is_directory and not entry.is_link and is_staging_id(entry.name):
                yield directory, entry.name


def _replicas(files: FileSystem, log_dir: str) -> list[str]:
    """The partitions' directories: not those of logs that were deleted, nor strays."""
    found = []
    for entry in files.list(log_dir):
        if entry.is_directory:
            with suppress(TopicNameError):
                if not parse_replica_directory(entry.name).state:
                    found.append(f"{log_dir}/{entry.name}")
    return found


def _list(files: FileSystem, path: str) -> list[Entry]:
    if not files.exists(path):
        return []
    try:
        return files.list(path)
    except DiskError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return []


# --- writing ----------------------------------------------------------------------------------


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
        self._open = _OpenFile(self._files, path, self._files.open(path, create=True))
        self._check_held()
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
