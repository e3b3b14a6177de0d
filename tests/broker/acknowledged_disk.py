"""A simulated disk under a whole broker: locked, since several threads use it, and with
descriptors, since answers are sent from files with ``sendfile``.

The metadata store is SQLite, on a real file beside: what it has committed counts as durable, as
SQLite itself promises. ``Moment`` holds both as they were together.
"""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import Buffer

from stratalog.metadata.sqlite_store import METADATA_FILE
from stratalog.storage.files import DirectoryLock, Entry, File
from stratalog.testing import CrashMode, SimulatedFileSystem
from stratalog.testing.faults import Operation

_BLOCKED_SECONDS = 0.1
_METADATA_FILES = (METADATA_FILE, f"{METADATA_FILE}-wal")


class LockedFile:
    def __init__(self, file: File, lock: threading.RLock, wait: Callable[[], None]) -> None:
        self._file = file
        self._lock = lock
        self._wait = wait
        self._descriptor = -1
        self.path = file.path

    def fileno(self) -> int:
        """Of a copy in memory: files that are sent only grow."""
        with self._lock:
            if self._descriptor < 0:
                self._descriptor = os.memfd_create(Path(self.path).name)
            size = self._file.size_bytes()
            if os.fstat(self._descriptor).st_size != size:
                os.pwrite(self._descriptor, self._file.read_at(0, size), 0)
            return self._descriptor

    def size_bytes(self) -> int:
        with self._lock:
            return self._file.size_bytes()

    def read_at(self, position: int, size: int) -> bytes:
        with self._lock:
            return self._file.read_at(position, size)

    def read_into(self, position: int, buffer: Buffer) -> int:
        with self._lock:
            return self._file.read_into(position, buffer)

    def write_at(self, position: int, buffers: Sequence[Buffer]) -> None:
        with self._lock:
            self._file.write_at(position, buffers)

    def truncate(self, size: int) -> None:
        with self._lock:
            self._file.truncate(size)

    def sync(self) -> None:
        self._wait()
        with self._lock:
            self._file.sync()
        self._wait()

    def map(self, size: int) -> Buffer:
        with self._lock:
            return self._file.map(size)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        with self._lock:
            self._file.close()

    def __del__(self) -> None:
        self.close()


class LockedFiles:
    """One call at a time reaches the disk. A sync takes a disk its time: on any other thread than
    the one that made this, it waits until the loop of that one has turned ``sync_turns`` times,
    before and after it is done, so that what is said too early is heard before the power goes."""

    def __init__(self, disk: SimulatedFileSystem, *, sync_turns: int = 0) -> None:
        self._disk = disk
        self._lock = threading.RLock()
        self._sync_turns = sync_turns
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    def _wait(self) -> None:
        if threading.get_ident() == self._loop_thread:
            return
        for _ in range(self._sync_turns):
            turned = threading.Event()
            try:
                self._loop.call_soon_threadsafe(turned.set)
            except RuntimeError:
                return  # it runs no more
            if not turned.wait(_BLOCKED_SECONDS):
                return  # it waits for this thread, as it does to stop

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> LockedFile:
        with self._lock:
            file = self._disk.open(path, create=create, writable=writable)
            return LockedFile(file, self._lock, self._wait)

    def exists(self, path: str) -> bool:
        if path.endswith(METADATA_FILE):
            return Path(path).exists()
        with self._lock:
            return self._disk.exists(path)

    def stat(self, path: str) -> Entry | None:
        with self._lock:
            return self._disk.stat(path)

    def list(self, path: str) -> list[Entry]:
        with self._lock:
            return self._disk.list(path)

    def make_directory(self, path: str) -> None:
        with self._lock:
            self._disk.make_directory(path)

    def remove_directory(self, path: str) -> None:
        with self._lock:
            self._disk.remove_directory(path)

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            self._disk.rename(source, target)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        with self._lock:
            self._disk.unlink(path, missing_ok=missing_ok)

    def set_modified(self, path: str, modified_ms: int, *, nanoseconds: int = 0) -> None:
        with self._lock:
            self._disk.set_modified(path, modified_ms, nanoseconds=nanoseconds)

    def sync_directory(self, path: str) -> None:
        self._wait()
        with self._lock:
            self._disk.sync_directory(path)
        self._wait()

    def sync_file_system(self, path: str) -> None:
        self._wait()
        with self._lock:
            self._disk.sync_file_system(path)
        self._wait()

    def free_bytes(self, path: str) -> int:
        with self._lock:
            return self._disk.free_bytes(path)

    def lock(self, path: str) -> DirectoryLock:
        with self._lock:
            return self._disk.lock(path)


def new_disk(*directories: Path) -> SimulatedFileSystem:
    """An empty disk on which these directories can be made, and are on the real one."""
    disk = SimulatedFileSystem()
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
        for path in [*reversed(directory.parents), directory][1:]:
            if not disk.exists(str(path)):
                disk.make_directory(str(path))
                disk.sync_directory(str(path.parent))
    return disk


@dataclass
class Moment:
    """The machine between two operations of its disk; ``promised`` tells what was told by then."""

    number: int
    what: str
    disk: SimulatedFileSystem
    metadata: dict[str, bytes]
    promised: int

    def restore(self, directory: Path, mode: CrashMode, seed: int) -> SimulatedFileSystem:
        """The power has come back: the metadata is in ``directory`` again."""
        for name in _METADATA_FILES:
            with suppress(FileNotFoundError):
                (directory / name).unlink()
        for name, content in self.metadata.items():
            (directory / name).write_bytes(content)
        return self.disk.after_crash(mode, seed)


@dataclass
class Moments:
    """Keeps the moments before some operations of a disk, ``every`` so many at a mean."""

    disk: SimulatedFileSystem
    directory: Path
    promised: Callable[[], int]
    chance: random.Random
    every: int
    kept: list[Moment] = field(default_factory=list)
    _next: int = 0

    def watch(self) -> None:
        self._next = self.disk.operations + self.chance.randint(1, 2 * self.every)
        self.disk.observer = self._before

    def _metadata(self) -> dict[str, bytes]:
        found = {}
        for name in _METADATA_FILES:
            with suppress(FileNotFoundError):
                found[name] = (self.directory / name).read_bytes()
        return found

    def _before(self, operation: Operation) -> None:
        if operation.number < self._next:
            return
        self._next = operation.number + self.chance.randint(1, 2 * self.every)
        # In this order: what was promised when the disk was as it is now, or sooner.
        promised = self.promised()
        metadata = self._metadata()
        while (again := self._metadata()) != metadata:
            metadata = again  # SQLite was at work
        name = "/".join(operation.path.split("/")[-2:])
        self.kept.append(
            Moment(
                operation.number,
                f"before {operation.kind} of {name}",
                self.disk.clone(),
                metadata,
                promised,
            )
        )
