"""A file system that cannot change anything: what reads a directory that another process owns.

It wraps the real one. Files are opened read-only whatever the caller asks for, every call that
would change a byte or a name is a mistake of ours and raises ``AssertionError``, and a "map" is a
copy made with ``pread``: touching a real map of a file that its owner has cut meanwhile would
kill the process. So ``Segment`` and the indexes work unchanged on a live directory.
"""

import fcntl
import os
import struct
from collections.abc import Sequence
from contextlib import suppress

from typing_extensions import Buffer

from stratalog.storage.directory_lock import OsDirectoryLock
from stratalog.storage.files import DirectoryLock, Entry, File, FileSystem

# struct flock on Linux: l_type, l_whence, l_start, l_len, l_pid
_FLOCK = struct.Struct("hhqqi4x")


class ReadOnlyFile:
    """An open file that can only be read."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int:
        return self._file.fileno()

    def size_bytes(self) -> int:
        return self._file.size_bytes()

    def read_at(self, position: int, size: int) -> bytes:
        return self._file.read_at(position, size)

    def read_into(self, position: int, buffer: Buffer) -> int:
        return self._file.read_into(position, buffer)

    def map(self, size: int) -> Buffer:
        # A file that has shrunk since its size was asked for is shown with zeros behind its end,
        # as a sparse file would be.
        return self._file.read_at(0, size).ljust(size, b"\0")

    def close(self) -> None:
        self._file.close()

    def write_at(self, position: int, buffers: Sequence[Buffer]) -> None:
        raise _refused("write", self.path)

    def truncate(self, size: int) -> None:
        raise _refused("truncate", self.path)

    def sync(self) -> None:
        raise _refused("sync", self.path)


class ReadOnlyFileSystem:
    """See the top of this file."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Open an existing file to be read; neither flag is obeyed."""
        return ReadOnlyFile(self._files.open(path, writable=False))

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def stat(self, path: str) -> Entry | None:
        return self._files.stat(path)

    def list(self, path: str) -> list[Entry]:
        return self._files.list(path)

    def free_bytes(self, path: str) -> int:
        return self._files.free_bytes(path)

    def make_directory(self, path: str) -> None:
        raise _refused("mkdir", path)

    def remove_directory(self, path: str) -> None:
        raise _refused("rmdir", path)

    def rename(self, source: str, target: str) -> None:
        raise _refused("rename", source)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        raise _refused("unlink", path)

    def set_modified(self, path: str, modified_ms: int, *, nanoseconds: int = 0) -> None:
        raise _refused("utime", path)

    def sync_directory(self, path: str) -> None:
        raise _refused("sync", path)

    def sync_file_system(self, path: str) -> None:
        raise _refused("sync", path)

    def lock(self, path: str) -> DirectoryLock:
        raise _refused("lock", path)


def _refused(operation: str, path: str) -> AssertionError:
    return AssertionError(f"{operation} {path}: this directory was opened to be read only")


def lock_owner(path: str) -> int | None:
    """The process that holds the lock file at ``path``; ``None`` if nobody does.

    Nothing is locked or created. If this process is the owner the file is not even opened:
    closing any descriptor of it would drop the lock.
    """
    if os.path.realpath(path) in OsDirectoryLock._held:
        return os.getpid()
    query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
        finally:
            os.close(descriptor)
        return None if answer[0] == fcntl.F_UNLCK else int(answer[4])
    return None
