"""The seam between the engine and the operating system: every byte, name and fsync passes here.

The engine is given a ``FileSystem`` and never calls ``os`` itself, so that tests can put a
simulated disk below it, cut the power between any two operations and make any of them fail.
``OSError`` becomes ``DiskError`` here and in what this module is made of (``os_errors``,
``directory_lock``), and nowhere else.

What the engine may rely on:

* ``write_at`` writes every byte, or raises; a failed write that would have grown the file is cut
  back to where it began, so a short write never leaves half a batch behind.
* nothing is durable before ``sync`` (a file's bytes) or ``sync_directory`` (the names in it).
* ``rename`` replaces atomically.
* a map shows later ``write_at`` calls on the same file; resizing the file asks for a new map.
"""

import ctypes
import errno
import mmap
import os
import shutil
import stat
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import Buffer

from stratalog.errors import DiskError, NotARegularFileError, OutOfMemoryError
from stratalog.storage.directory_lock import OsDirectoryLock, open_directory
from stratalog.storage.os_errors import disk_error

# For syncfs and sync_file_range, which the os module lacks.
_libc = ctypes.CDLL(None, use_errno=True)
_RENAMES_MAX = 20
_BLOCK_BYTES = 512  # the unit of st_blocks, whatever blocks the file system has
_SYNC_FILE_RANGE_WRITE = 2
_SYNC_FILE_RANGE_WAITED_FOR = 1 | _SYNC_FILE_RANGE_WRITE | 4  # before it, and behind it
# What it says where it is not to be had, and so says nothing of the disk.
_HINT_NOT_TAKEN = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ESPIPE, errno.EINTR)


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int
    is_link: bool = False
    inode: int = 0  # 0 where the file system has none
    modified_ns: int = 0  # the same moment as ``modified_ms``, to the nanosecond
    link_count: int = 1  # names that the file has, here and elsewhere
    disk_bytes: int = -1  # what it takes of the disk, which of a hole is nothing; -1: not known
    # A pipe, a socket, a device, or a link that leads nowhere: nothing that could hold records.
    is_special: bool = False

    @property
    def is_file(self) -> bool:
        """A regular file, or a link to one."""
        return not (self.is_directory or self.is_special)


class File(Protocol):
    """An open file. Positions are always explicit: no shared cursor to lose."""

    @property
    def path(self) -> str: ...
    def fileno(self) -> int: ...
    def size_bytes(self) -> int: ...
    def read_at(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer only at the end of the file."""
        ...

    def read_into(self, position: int, buffer: Buffer) -> int:
        """Fill ``buffer`` from ``position``; returns the bytes read, fewer only at the end."""
        ...

    def write_at(self, position: int, buffers: Sequence[Buffer]) -> None: ...
    def truncate(self, size: int) -> None:
        """Cut, or grow with zeros (sparse)."""
        ...

    def sync(self) -> None: ...
    def map(self, size: int) -> Buffer:
        """A read-only view of the first ``size`` bytes (``size`` > 0)."""
        ...

    def close(self) -> None: ...


class DirectoryLock(Protocol):
    def release(self) -> None: ...


class FileSystem(Protocol):
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File: ...
    def exists(self, path: str) -> bool: ...
    def stat(self, path: str) -> Entry | None: ...
    def list(self, path: str) -> list[Entry]: ...
    def make_directory(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str, *, missing_ok: bool = False) -> None: ...
    def set_modified(self, path: str, modified_ms: int, *, nanoseconds: int = 0) -> None:
        """``nanoseconds`` are those below the millisecond."""
        ...

    def sync_directory(self, path: str) -> None: ...
    def sync_file_system(self, path: str) -> None:
        """Make durable everything written so far on the file system that holds ``path``."""
        ...

    def free_bytes(self, path: str) -> int: ...
    def lock(self, path: str) -> DirectoryLock: ...


class OsFile:
    """A descriptor. Closed by ``close`` or when the last reference goes, whichever is first: a
    slice handed to a slow reader keeps its file open after the cache has let go of it."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def size_bytes(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise disk_error("stat", self.path, error) from error

    def read_at(self, position: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, position)
            while len(data) < size:
                more = os.pread(self._descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise disk_error("read", self.path, error) from error
        except MemoryError as error:
            reason = f"there is no memory for {size} bytes of it"
            raise OutOfMemoryError("read", self.path, errno.ENOMEM, reason) from error
        return data

    def read_into(self, position: int, buffer: Buffer) -> int:
        view = memoryview(buffer)
        done = 0
        try:
            while done < len(view):
                count = os.preadv(self._descriptor, [view[done:]], position + done)
                if count == 0:
                    break
                done += count
        except OSError as error:
            raise disk_error("read", self.path, error) from error
        return done

    def write_at(self, position: int, buffers: Sequence[Buffer]) -> None:
        total = sum(map(len, buffers))  # type: ignore[arg-type]
        try:
            if len(buffers) == 1:  # nearly always, and quicker
                written = os.pwrite(self._descriptor, buffers[0], position)
            else:
                written = os.pwritev(self._descriptor, buffers, position)
            if written != total:
                self._write_rest(position, buffers, written)
        except OSError as error:
            self._cut_back(position, total)
            raise disk_error("write", self.path, error) from error

    def _write_rest(self, position: int, buffers: Sequence[Buffer], written: int) -> None:
        data = memoryview(b"".join(bytes(buffer) for buffer in buffers))
        while written < len(data):
            written += os.pwrite(self._descriptor, data[written:], position + written)

    def _cut_back(self, position: int, total: int) -> None:
        # Only what a short write has added is undone: inside the file there is nothing to cut.
        with suppress(OSError):
            if position < os.fstat(self._descriptor).st_size < position + total:
                os.ftruncate(self._descriptor, position)

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise disk_error("truncate", self.path, error) from error

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise disk_error("fsync", self.path, error) from error
        except MemoryError as error:
            # It had failed, and there was no memory left to say so: the bytes are in doubt.
            raise DiskError("fsync", self.path, 0, "it failed, with no memory left") from error

    def map(self, size: int) -> Buffer:
        assert self._descriptor >= 0, f"{self.path} is closed"
        try:
            return mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ)
        except OSError as error:
            raise disk_error("map", self.path, error) from error
        except ValueError as error:
            raise DiskError("map", self.path, errno.EINVAL, str(error)) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError as error:
                raise disk_error("close", self.path, error) from error

    def __del__(self) -> None:
        with suppress(DiskError):
            self.close()


def begin_sync(file: File, position: int, size_bytes: int, *, is_waited_for: bool = False) -> None:
    """Let the disk begin with what was written there, and wait for nothing, or until it has it: the
    ``sync`` that makes it durable finds less to do. Only a hint, which no disk but a real one
    takes.

    But who waits is told of what the disk could not write, and nobody is told twice: the ``sync``
    would know nothing of it any more. So that is the same failure here, a ``DiskError``."""
    sync_file_range = getattr(_libc, "sync_file_range", None)  # Linux has it
    if not isinstance(file, OsFile) or sync_file_range is None:
        return
    where = ctypes.c_int64(position), ctypes.c_int64(size_bytes)
    flags = _SYNC_FILE_RANGE_WAITED_FOR if is_waited_for else _SYNC_FILE_RANGE_WRITE
    if sync_file_range(file.fileno(), *where, flags) and is_waited_for:
        number = ctypes.get_errno()
        if number not in _HINT_NOT_TAKEN:
            raise disk_error("fsync", file.path, OSError(number, os.strerror(number)))


class OsFileSystem:
    """The real one."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        # Without O_NONBLOCK a pipe that somebody has put here would be waited for, for ever.
        flags = os.O_CLOEXEC | os.O_NONBLOCK | (os.O_RDWR if writable else os.O_RDONLY)
        try:
            file = OsFile(path, os.open(path, flags | (os.O_CREAT if create else 0), 0o644))
            mode = os.fstat(file.fileno()).st_mode
        except OSError as error:
            raise disk_error("open", path, error) from error
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
            raise NotARegularFileError("open", path, errno.EINVAL, "it is not a regular file")
        return file

    def exists(self, path: str) -> bool:
        # Not os.path.exists: to it a disk that does not answer is one without the file.
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError as error:
            raise disk_error("stat", path, error) from error
        return True

    def stat(self, path: str) -> Entry | None:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_error("stat", path, error) from error
        return _entry(os.path.basename(path), found)

    def list(self, path: str) -> list[Entry]:
        entries = []
        try:
            with os.scandir(path) as names:
                for name in names:
                    with suppress(FileNotFoundError):  # a live directory: gone since it was listed
                        entries.append(_listed(name))
        except OSError as error:
            raise disk_error("list", path, error) from error
        return entries

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path)
        except OSError as error:
            raise disk_error("mkdir", path, error) from error

    def remove_directory(self, path: str) -> None:
        try:
            os.rmdir(path)
        except OSError as error:
            raise disk_error("rmdir", path, error) from error

    def rename(self, source: str, target: str) -> None:
        # Most callers have begun what they cannot take back. A rename that fails has done nothing,
        # and the system's memory comes back: it is tried again before anything is given up.
        for left in reversed(range(_RENAMES_MAX)):
            try:
                os.rename(source, target)
            except OSError as error:
                if left == 0 or error.errno != errno.ENOMEM:
                    raise disk_error("rename", source, error) from error
                os.sched_yield()
            else:
                return

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError as error:
            if not missing_ok:
                raise disk_error("unlink", path, error) from error
        except OSError as error:
            raise disk_error("unlink", path, error) from error

    def set_modified(self, path: str, modified_ms: int, *, nanoseconds: int = 0) -> None:
        modified_ns = modified_ms * 1_000_000 + nanoseconds
        try:
            os.utime(path, ns=(modified_ns, modified_ns))
        except OSError as error:
            raise disk_error("utime", path, error) from error

    def sync_directory(self, path: str) -> None:
        opened = open_directory(path)
        try:
            os.fsync(opened.descriptor)
        except OSError as error:
            raise disk_error("fsync", path, error) from error
        except MemoryError as error:
            raise DiskError("fsync", path, 0, "it failed, with no memory left") from error

    def sync_file_system(self, path: str) -> None:
        opened = open_directory(path)
        if _libc.syncfs(opened.descriptor):
            number = ctypes.get_errno()
            raise disk_error("syncfs", path, OSError(number, os.strerror(number)))

    def free_bytes(self, path: str) -> int:
        try:
            return shutil.disk_usage(path).free
        except OSError as error:
            raise disk_error("statvfs", path, error) from error

    def lock(self, path: str) -> OsDirectoryLock:
        return OsDirectoryLock(path)


def _listed(name: "os.DirEntry[str]") -> Entry:
    is_link = name.is_symlink()
    try:
        return _entry(name.name, name.stat(), is_link)
    except OSError:
        if not is_link:
            raise
        # It leads nowhere, or round in a circle.
        return _entry(name.name, name.stat(follow_symlinks=False), is_link)


def _entry(name: str, found: os.stat_result, is_link: bool = False) -> Entry:
    return Entry(
        name,
        stat.S_ISDIR(found.st_mode),
        found.st_size,
        found.st_mtime_ns // 1_000_000,
        is_link,
        found.st_ino,
        found.st_mtime_ns,
        found.st_nlink,
        found.st_blocks * _BLOCK_BYTES,
        not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)),
    )


def replace_file(files: FileSystem, path: str, content: bytes, *, is_synced: bool = True) -> None:
    """Put ``content`` at ``path``, durably and all at once: ``.tmp``, fsync, rename, fsync of the
    directory. After a crash the file holds the old content or the new. Who replaces many files of
    which a crash may take any can leave out the syncs, and sync the file system at the end."""
    temporary = path + ".tmp"
    files.unlink(temporary, missing_ok=True)
    file = files.open(temporary, create=True)
    try:
        file.write_at(0, [content])
        if is_synced:
            file.sync()
    finally:
        file.close()
    files.rename(temporary, path)
    if is_synced:
        files.sync_directory(os.path.dirname(path))


def make_way(files: FileSystem, path: str) -> None:
    """Free the name ``path``, whatever has it: a file goes, a directory gets another name."""
    try:
        files.unlink(path, missing_ok=True)
    except NotARegularFileError:
        files.rename(path, f"{path}.{uuid.uuid4().hex}")


def read_file(files: FileSystem, path: str) -> bytes:
    """The whole of a small file."""
    file = files.open(path, writable=False)
    try:
        return file.read_at(0, file.size_bytes())
    finally:
        file.close()


def remove_tree(files: FileSystem, path: str) -> None:
    for entry in files.list(path):
        inside = os.path.join(path, entry.name)
        if entry.is_directory and not entry.is_link:
            remove_tree(files, inside)
        else:
            files.unlink(inside, missing_ok=True)
    files.remove_directory(path)
