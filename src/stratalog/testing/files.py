"""A file system in memory that forgets like a disk and fails on demand.

``SimulatedFileSystem`` follows ``storage.files``: the same calls, the same errors. Beyond those:

* every mutating call is an **operation** with a number, from 1, kept in ``trace`` (create, write,
  truncate, sync, sync_directory, sync_file_system, rename, unlink, mkdir, rmdir; reads only with
  ``count_reads``; open, map, list and the open before a directory is synced, which take
  descriptors or maps and change nothing, only with ``count_resources``);
* ``crash_at(n)`` raises ``PowerLoss`` there, and from then on every call does;
* ``observer`` sees each operation before it happens: one run can keep a ``clone`` of each moment,
  which is cheaper than a run for each crash;
* ``after_crash(mode, seed)`` is the disk found after the power came back (see ``disk``);
* ``fail`` makes operations fail, ``capacity_bytes`` makes the disk full, ``flip`` turns bits.

Rules of its own: a failed sync loses what it should have saved, though reads go on showing it,
and later syncs of the same file succeed without it. A rename between two directories commits
both, since a journal never splits one. Not thread-safe.
"""

import errno
import io
import os
import random
from collections.abc import Callable, Sequence

from typing_extensions import Buffer

from stratalog.errors import DirectoryLockedError, DiskError
from stratalog.storage.files import Entry
from stratalog.storage.layout import LOCK_FILE
from stratalog.testing.disk import BLOCK_BYTES, CrashMode, DirectoryNode, FileNode, blocks_of
from stratalog.testing.faults import OperationCounter, PowerLoss, failure

UNLIMITED_BYTES = 1 << 50


class SimulatedFile:
    """An open file; it stays readable when its name goes."""

    __slots__ = ("_files", "_node", "_writable", "path")

    def __init__(
        self, files: "SimulatedFileSystem", path: str, node: FileNode, *, writable: bool
    ) -> None:
        self.path = path
        self._files = files
        self._node: FileNode | None = node
        self._writable = writable
        node.open_count += 1

    def _open_node(self, operation: str) -> FileNode:
        if self._node is None:
            raise failure(operation, self.path, errno.EBADF)
        return self._node

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a simulated file has no descriptor")

    def size_bytes(self) -> int:
        return len(self._open_node("stat").data)

    def read_at(self, position: int, size: int) -> bytes:
        node = self._open_node("read")
        self._files.begin_read(self.path, position, size)
        if position < 0 or size < 0:
            raise failure("read", self.path, errno.EINVAL)
        return bytes(node.data[position : position + size])

    def read_into(self, position: int, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read_at(position, len(view))
        view[: len(data)] = data
        return len(data)

    def write_at(self, position: int, buffers: Sequence[Buffer]) -> None:
        node = self._open_node("write")
        payload = b"".join([bytes(buffer) for buffer in buffers])
        if not self._writable:
            raise failure("write", self.path, errno.EBADF)
        if position < 0:
            raise failure("write", self.path, errno.EINVAL)
        self._files.write(node, self.path, position, payload)

    def truncate(self, size: int) -> None:
        node = self._open_node("truncate")
        if not self._writable or size < 0:
            raise failure("truncate", self.path, errno.EINVAL)
        self._files.truncate(node, self.path, size)

    def sync(self) -> None:
        self._files.sync(self._open_node("fsync"), self.path)

    def map(self, size: int) -> Buffer:
        node = self._open_node("map")
        self._files.begin_resource("map", self.path)
        if not 0 < size <= len(node.data):
            raise ValueError("a map covers at least one byte and at most the file")
        return memoryview(node.data)[:size].toreadonly()

    def close(self) -> None:
        if self._node is not None:
            self._node.open_count -= 1
            self._files.release(self._node)
            self._node = None

    def __del__(self) -> None:
        self.close()


class SimulatedLock:
    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        if path in held:
            raise DirectoryLockedError(f"{path} is already locked by this process")
        held.add(path)
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimulatedFileSystem(OperationCounter):
    """See the top of this file. Paths are absolute, or taken from the root."""

    def __init__(
        self,
        *,
        capacity_bytes: int = UNLIMITED_BYTES,
        sync_persists_names: bool = False,
        count_reads: bool = False,
        count_resources: bool = False,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """``sync_persists_names``: as ext4 does, a file's sync commits the names changed before
        it. The default is what POSIX promises, which is less."""
        super().__init__(count_reads=count_reads, count_resources=count_resources)
        self.capacity_bytes = capacity_bytes
        self._sync_persists_names = sync_persists_names
        self._now_ms = now_ms
        self._root = DirectoryNode(now_ms())
        self._used_blocks = 0
        self._locks: set[str] = set()

    # --- what a test asks for --------------------------------------------------------------

    def clone(self) -> "SimulatedFileSystem":
        """The same moment on a disk of its own: nothing open, nothing locked, no faults."""
        return self._like(self._root.clone({}))

    def after_crash(self, mode: CrashMode | str, seed: int = 0) -> "SimulatedFileSystem":
        mode = CrashMode(mode)
        return self._like(self._root.survivor(mode, random.Random(f"{mode.value}{seed}")))

    def _like(self, root: DirectoryNode) -> "SimulatedFileSystem":
        other = SimulatedFileSystem(
            capacity_bytes=self.capacity_bytes,
            sync_persists_names=self._sync_persists_names,
            count_reads=self._count_reads,
            count_resources=self._count_resources,
            now_ms=self._now_ms,
        )
        other._root = root
        other._used_blocks = sum(
            len(node.blocks) for node in root.nodes() if isinstance(node, FileNode)
        )
        return other

    def flip(self, path: str, position: int, mask: int) -> None:
        """Turn the bits of ``mask`` in one byte, on the disk and in the cache."""
        node = self._file(path)
        assert 0 < mask < 256, "a flip changes one byte"
        node.data[position] ^= mask
        if position < len(node.durable):
            node.durable[position] ^= mask

    def contents(self, path: str) -> bytes:
        return bytes(self._file(path).data)

    def put(self, path: str, content: bytes) -> None:
        """Make ``path`` a durable file with this content, outside of the count."""
        directory, name = self._parent(path, "put")
        node = FileNode(self._now_ms())
        node.write(0, content)
        node.sync()
        directory.entries[name] = directory.durable[name] = node
        self._used_blocks += len(node.blocks)

    def tree(self, path: str = "/") -> dict[str, bytes]:
        """Every file below ``path``, by its path from there."""
        found: dict[str, bytes] = {}
        pending = [("", self._directory(path, "list"))]
        while pending:
            prefix, directory = pending.pop()
            for name, node in directory.entries.items():
                if isinstance(node, FileNode):
                    found[prefix + name] = bytes(node.data)
                else:
                    pending.append((prefix + name + "/", node))
        return found

    def is_synced(self, path: str) -> bool:
        """Whether the file's bytes and its name would survive the loss of power now."""
        directory, name = self._parent(path, "stat")
        node = directory.entries[name]
        assert isinstance(node, FileNode), "asked of files only"
        return directory.durable.get(name) is node and node.durable == node.data

    # --- bytes -----------------------------------------------------------------------------

    def write(self, node: FileNode, path: str, position: int, payload: bytes) -> None:
        fault = self.begin("write", path, position, len(payload))
        if self._dead:
            self._grow(node, position, payload[: len(payload) // 2])
            raise PowerLoss("write", path)
        if fault is not None:
            size = len(node.data)
            self._grow(node, position, payload[: fault.written_bytes])
            if fault.cut_back and len(node.data) > size:
                self._resize(node, size)
            raise failure("write", path, fault.error)
        fitting = self._fitting(node, position, len(payload))
        if fitting < len(payload):
            size = len(node.data)
            self._grow(node, position, payload[:fitting])
            if len(node.data) > size:
                self._resize(node, size)
            raise failure("write", path, errno.ENOSPC)
        self._grow(node, position, payload)
        self.touch(node)

    def _fitting(self, node: FileNode, position: int, size: int) -> int:
        """How many bytes of a write the disk still has blocks for, holes included."""
        free = self.capacity_bytes // BLOCK_BYTES - self._used_blocks
        for block in blocks_of(position, size):
            if block not in node.blocks:
                free -= 1
                if free < 0:
                    return max(0, block * BLOCK_BYTES - position)
        return size

    def _grow(self, node: FileNode, position: int, payload: bytes) -> None:
        held = len(node.blocks)
        node.write(position, payload)
        self._used_blocks += len(node.blocks) - held

    def _resize(self, node: FileNode, size: int) -> None:
        held = len(node.blocks)
        node.truncate(size)
        self._used_blocks += len(node.blocks) - held

    def truncate(self, node: FileNode, path: str, size: int) -> None:
        self.begin("truncate", path, size)
        self._resize(node, size)
        self.touch(node)

    def sync(self, node: FileNode, path: str) -> None:
        try:
            self.begin("sync", path)
        except DiskError:
            node.forget()
            raise
        node.sync()
        if self._sync_persists_names:
            for each in self._root.nodes():
                if isinstance(each, DirectoryNode):
                    each.sync()

    def touch(self, node: FileNode) -> None:
        node.modified_ms = self._now_ms()
        node.nanoseconds = 0

    def release(self, node: FileNode) -> None:
        if node.links == 0 and node.open_count == 0:
            self._used_blocks -= len(node.blocks)
            node.blocks = set()

    # --- the seam --------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SimulatedFile:
        directory, name = self._parent(path, "open")
        node = directory.entries.get(name)
        if node is None:
            if not create:
                raise failure("open", path, errno.ENOENT)
            self.begin("create", path)
            node = FileNode(self._now_ms())
            directory.change((name, node))
        else:
            self.begin_resource("open", path)
        if isinstance(node, DirectoryNode):
            raise failure("open", path, errno.EISDIR)
        return SimulatedFile(self, path, node, writable=writable)

    def exists(self, path: str) -> bool:
        try:
            return self._find(path, "stat") is not None
        except DiskError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
            return False

    def stat(self, path: str) -> Entry | None:
        node = self._find(path, "stat")
        return None if node is None else _entry(os.path.basename(path), node)

    def list(self, path: str) -> list[Entry]:
        self.begin_resource("list", path)
        directory = self._directory(path, "list")
        return [_entry(name, node) for name, node in directory.entries.items()]

    def make_directory(self, path: str) -> None:
        directory, name = self._parent(path, "mkdir")
        if name in directory.entries or not name:
            raise failure("mkdir", path, errno.EEXIST)
        self.begin("mkdir", path)
        directory.change((name, DirectoryNode(self._now_ms())))

    def remove_directory(self, path: str) -> None:
        directory, name = self._parent(path, "rmdir")
        if self._directory(path, "rmdir").entries:
            raise failure("rmdir", path, errno.ENOTEMPTY)
        self.begin("rmdir", path)
        directory.change((name, None))

    def rename(self, source: str, target: str) -> None:
        old_directory, old_name = self._parent(source, "rename")
        new_directory, new_name = self._parent(target, "rename")
        node = old_directory.entries.get(old_name)
        if node is None:
            raise failure("rename", source, errno.ENOENT)
        replaced = new_directory.entries.get(new_name)
        self._refuse_rename(source, target, node, replaced)
        self.begin("rename", source, target)
        if replaced is node:
            return
        if old_directory is new_directory:
            old_directory.change((old_name, None), (new_name, node))
        else:
            old_directory.change((old_name, None))
            new_directory.change((new_name, node))
            old_directory.sync()
            new_directory.sync()
        self._unlinked(replaced)

    def _refuse_rename(
        self,
        source: str,
        target: str,
        node: FileNode | DirectoryNode,
        replaced: FileNode | DirectoryNode | None,
    ) -> None:
        if isinstance(node, DirectoryNode):
            if (_normal(target) + "/").startswith(_normal(source) + "/") and replaced is not node:
                raise failure("rename", source, errno.EINVAL)
            if isinstance(replaced, FileNode):
                raise failure("rename", source, errno.ENOTDIR)
            if replaced is not None and replaced is not node and replaced.entries:
                raise failure("rename", source, errno.ENOTEMPTY)
        elif isinstance(replaced, DirectoryNode):
            raise failure("rename", source, errno.EISDIR)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        try:
            directory, name = self._parent(path, "unlink")
            node = directory.entries.get(name)
            if node is None:
                raise failure("unlink", path, errno.ENOENT)
        except DiskError as error:
            if missing_ok and error.errno == errno.ENOENT:
                return
            raise
        if isinstance(node, DirectoryNode):
            raise failure("unlink", path, errno.EISDIR)
        self.begin("unlink", path)
        directory.change((name, None))
        self._unlinked(node)

    def _unlinked(self, node: FileNode | DirectoryNode | None) -> None:
        if isinstance(node, FileNode):
            node.links = 0
            self.release(node)

    def set_modified(self, path: str, modified_ms: int, *, nanoseconds: int = 0) -> None:
        node = self._find(path, "utime")
        if node is None:
            raise failure("utime", path, errno.ENOENT)
        node.modified_ms = modified_ms
        node.nanoseconds = nanoseconds

    def sync_directory(self, path: str) -> None:
        directory = self._directory(path, "fsync")
        self._open_directory(path)
        try:
            self.begin("sync_directory", path)
        except DiskError:
            directory.forget()
            raise
        directory.sync()

    def sync_file_system(self, path: str) -> None:
        self._directory(path, "syncfs")
        self._open_directory(path)
        try:
            self.begin("sync_file_system", path)
        except DiskError:
            for node in self._root.nodes():
                node.forget()
            raise
        for node in self._root.nodes():
            node.sync()

    def _open_directory(self, path: str) -> None:
        """Who has the lock of a directory keeps it open."""
        if f"{_normal(path)}/{LOCK_FILE}" not in self._locks:
            self.begin_resource("open_directory", path)

    def free_bytes(self, path: str) -> int:
        if self._find(path, "statvfs") is None:
            raise failure("statvfs", path, errno.ENOENT)
        return max(0, self.capacity_bytes - self._used_blocks * BLOCK_BYTES)

    def lock(self, path: str) -> SimulatedLock:
        self.open(path, create=True).close()
        return SimulatedLock(self._locks, _normal(path))

    # --- paths -----------------------------------------------------------------------------

    def _find(self, path: str, operation: str) -> FileNode | DirectoryNode | None:
        if self._dead:
            raise PowerLoss(operation, path)
        node: FileNode | DirectoryNode | None = self._root
        for name in _parts(path):
            if isinstance(node, FileNode):
                raise failure(operation, path, errno.ENOTDIR)
            if node is None:
                return None
            node = node.entries.get(name)
        return node

    def _directory(self, path: str, operation: str) -> DirectoryNode:
        node = self._find(path, operation)
        if node is None:
            raise failure(operation, path, errno.ENOENT)
        if isinstance(node, FileNode):
            raise failure(operation, path, errno.ENOTDIR)
        return node

    def _file(self, path: str) -> FileNode:
        node = self._find(path, "open")
        assert isinstance(node, FileNode), f"{path} is not a file"
        return node

    def _parent(self, path: str, operation: str) -> tuple[DirectoryNode, str]:
        *above, name = _parts(path) or [""]
        return self._directory("/" + "/".join(above), operation), name


def _normal(path: str) -> str:
    return os.path.normpath("/" + path).replace("//", "/")


def _parts(path: str) -> list[str]:
    return [part for part in _normal(path).split("/") if part]


def _entry(name: str, node: FileNode | DirectoryNode) -> Entry:
    if isinstance(node, FileNode):
        size_bytes, is_directory = len(node.data), False
    else:
        size_bytes, is_directory = BLOCK_BYTES, True
    modified_ns = node.modified_ms * 1_000_000 + node.nanoseconds
    return Entry(name, is_directory, size_bytes, node.modified_ms, modified_ns=modified_ns)
