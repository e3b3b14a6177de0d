"""Owning a log directory, as the operating system sees it: its lock, and a descriptor of it."""

import errno
import fcntl
import os
import struct
import threading
from contextlib import suppress
from typing import ClassVar

from stratalog.errors import DirectoryLockedError, DiskError
from stratalog.storage.os_errors import disk_error


class OpenDirectory:
    """A descriptor to sync a directory by, closed with the last reference: a sync on another thread
    keeps it open, so that its number cannot become another file's meanwhile."""

    __slots__ = ("descriptor", "path")

    def __init__(self, path: str) -> None:
        self.descriptor = -1
        self.path = path
        try:
            self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            # Named for what it is: no sync has begun, and nothing is in doubt.
            raise disk_error("open", path, error) from error

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def open_directory(path: str) -> OpenDirectory:
    """To be synced."""
    return OsDirectoryLock.held_directory(path) or OpenDirectory(path)


class OsDirectoryLock:
    """An exclusive lock that Apache Kafka's own respects, held until ``release``.

    While it is held, the directory can be synced whatever descriptors are left: it keeps one.

    POSIX record locks belong to the process and are dropped when it closes *any* descriptor of
    the file, so the file is opened here and nowhere else, and once a process at most.
    """

    _held: ClassVar[dict[str, "OsDirectoryLock"]] = {}
    _directories: ClassVar[dict[str, "OpenDirectory"]] = {}
    _guard = threading.Lock()

    # struct flock on Linux: l_type, l_whence, l_start, l_len, l_pid
    _FLOCK = struct.Struct("hhqqi4x")

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        with self._guard:
            if self._path in self._held:
                raise DirectoryLockedError(
                    f"{path} is already locked by this process ({os.getpid()})"
                )
            self._descriptor = self._acquire(path)
            try:
                self._directory = OpenDirectory(os.path.dirname(path) or ".")
            except DiskError:
                os.close(self._descriptor)
                raise
            self._held[self._path] = self
            self._directories[self._directory.path] = self._directory

    def _acquire(self, path: str) -> int:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise disk_error("open", path, error) from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = self._owner(descriptor)
            os.close(descriptor)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise disk_error("lock", path, error) from error
            raise DirectoryLockedError(
                f"{path} is locked by process {owner}; a log directory has one owner at a time"
            ) from error
        return descriptor

    def _owner(self, descriptor: int) -> int:
        query = self._FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        with suppress(OSError):
            answer = self._FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
            return int(answer[4])
        return 0

    def release(self) -> None:
        with self._guard:
            if self._held.pop(self._path, None) is self:
                del self._directories[self._directory.path]
                os.close(self._descriptor)

    @classmethod
    def held_directory(cls, path: str) -> "OpenDirectory | None":
        """The directory at ``path``, if its lock is held here."""
        return cls._directories.get(path)
