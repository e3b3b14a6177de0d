"""What a disk still holds after the power went: the durability model of the simulated files.

A file is durable bytes, and the operations made on it since its last sync. A directory is durable
names, and the operations made on those since its last sync. The two are independent: a synced
file is lost with a name that was not, and an old name that was unlinked comes back.

What survives a crash is chosen here, from a random generator that a seed replays:

* a **sector** (512 bytes, aligned in its file) is written whole or not at all, and stands as it
  was at some moment since the last sync; so does the size of the file; so nothing says in which
  order writes reach the disk, and a file may have grown over data that never arrived (zeros);
* names of one directory persist in the order they changed, up to some moment;
* every file and every directory stands at moments of its own.
"""

import enum
import random
from collections.abc import Iterator

SECTOR_BYTES = 512
BLOCK_BYTES = 4096


class CrashMode(enum.Enum):
    """How much of what was not synced a crash takes away."""

    LOSE_UNSYNCED = "lose_unsynced"
    """All of it: bytes and names."""
    KEEP_ALL = "keep_all"
    """None: the process was killed, the machine lives on."""
    TORN = "torn"
    """The last write of each file ends early, at any byte, or as zeros; names survive."""
    REORDER = "reorder"
    """Any sectors of each file, and its size, are older than others; names survive."""
    LOST_ENTRY = "lost_entry"
    """Bytes survive; the names of each directory end at an earlier moment."""
    MIXED = "mixed"
    """Each file and each directory by a policy of its own: what a disk may really do."""


class FileNode:
    """A file without a name. ``pending`` holds ``(position, bytes)`` for a write and
    ``(size, None)`` for a truncation, in order."""

    __slots__ = (
        "blocks",
        "data",
        "durable",
        "links",
        "modified_ms",
        "nanoseconds",
        "open_count",
        "pending",
    )

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []
        self.blocks: set[int] = set()
        self.modified_ms = modified_ms
        self.nanoseconds = 0  # of the same moment, below the millisecond
        self.links = 1
        self.open_count = 0

    def write(self, position: int, payload: bytes) -> None:
        if payload:
            self.pending.append((position, payload))
            self.data = _write(self.data, position, payload)
            self.blocks.update(blocks_of(position, len(payload)))

    def truncate(self, size: int) -> None:
        self.pending.append((size, None))
        self.data = _resize(self.data, size)
        kept = -(-size // BLOCK_BYTES)
        if self.blocks and max(self.blocks) >= kept:
            self.blocks = {block for block in self.blocks if block < kept}

    def sync(self) -> None:
        # Replayed instead of copied from ``data``: after a failed sync the two differ for good.
        for position, payload in self.pending:
            self.durable = _apply(self.durable, position, payload)
        self.pending.clear()

    def forget(self) -> None:
        """A failed sync: the pages count as clean from now on, and never reach the disk."""
        self.pending.clear()

    def clone(self) -> "FileNode":
        copy = FileNode(self.modified_ms)
        copy.nanoseconds = self.nanoseconds
        copy.data = bytearray(self.data)
        copy.durable = bytearray(self.durable)
        copy.pending = list(self.pending)
        copy.blocks = set(self.blocks)
        return copy

    def survivor(self, mode: CrashMode, chance: random.Random) -> "FileNode":
        copy = FileNode(self.modified_ms)
        copy.nanoseconds = self.nanoseconds
        copy.data = surviving_bytes(self, mode, chance)
        copy.durable = bytearray(copy.data)
        copy.blocks = set(self.blocks)
        return copy


class DirectoryNode:
    """Names. ``pending`` holds the changes since the last sync, in order: ``(name, node)`` adds
    or replaces, ``(name, None)`` removes, and one tuple of several of these is atomic."""

    __slots__ = ("durable", "entries", "modified_ms", "nanoseconds", "pending")

    def __init__(self, modified_ms: int) -> None:
        self.entries: dict[str, FileNode | DirectoryNode] = {}
        self.durable: dict[str, FileNode | DirectoryNode] = {}
        self.pending: list[tuple[tuple[str, FileNode | DirectoryNode | None], ...]] = []
        self.modified_ms = modified_ms
        self.nanoseconds = 0  # of the same moment, below the millisecond

    def change(self, *changes: tuple[str, "FileNode | DirectoryNode | None"]) -> None:
        self.pending.append(changes)
        _rename(self.entries, changes)

    def sync(self) -> None:
        for changes in self.pending:
            _rename(self.durable, changes)
        self.pending.clear()

    def forget(self) -> None:
        self.pending.clear()

    def clone(self, known: dict[int, "FileNode | DirectoryNode"]) -> "DirectoryNode":
        """A copy of all below; ``known`` keeps a node that has several names one node."""
        copy = DirectoryNode(self.modified_ms)
        copy.entries = {name: _clone(node, known) for name, node in self.entries.items()}
        copy.durable = {name: _clone(node, known) for name, node in self.durable.items()}
        copy.pending = [
            tuple((name, node and _clone(node, known)) for name, node in changes)
            for changes in self.pending
        ]
        return copy

    def survivor(self, mode: CrashMode, chance: random.Random) -> "DirectoryNode":
        copy = DirectoryNode(self.modified_ms)
        names = dict(self.durable)
        for changes in self.pending[: _surviving_changes(len(self.pending), mode, chance)]:
            _rename(names, changes)
        copy.entries = {name: node.survivor(mode, chance) for name, node in names.items()}
        copy.durable = dict(copy.entries)
        return copy

    def nodes(self) -> "Iterator[FileNode | DirectoryNode]":
        """This directory and all below it."""
        yield self
        for node in self.entries.values():
            if isinstance(node, FileNode):
                yield node
            else:
                yield from node.nodes()


def blocks_of(position: int, size: int) -> range:
    return range(position // BLOCK_BYTES, -(-(position + size) // BLOCK_BYTES))


def surviving_bytes(node: FileNode, mode: CrashMode, chance: random.Random) -> bytearray:
    if mode is CrashMode.LOSE_UNSYNCED:
        return bytearray(node.durable)
    if mode is CrashMode.KEEP_ALL:
        # What a failed sync let go of is still in the page cache, so a killed process has it.
        return bytearray(node.data)
    if mode is CrashMode.LOST_ENTRY or not node.pending:
        return _at_moment(node, len(node.pending))
    if mode is CrashMode.TORN:
        return _torn(node, chance)
    if mode is CrashMode.REORDER:
        return _scattered(node, chance)
    policy = chance.choice(("none", "all", "torn", "scattered", "scattered", "prefix"))
    if policy == "torn":
        return _torn(node, chance)
    if policy == "scattered":
        return _scattered(node, chance)
    ends = {"none": 0, "all": len(node.pending), "prefix": chance.randint(0, len(node.pending))}
    return _at_moment(node, ends[policy])


def _at_moment(node: FileNode, count: int) -> bytearray:
    data = bytearray(node.durable)
    for position, payload in node.pending[:count]:
        data = _apply(data, position, payload)
    return data


def _torn(node: FileNode, chance: random.Random) -> bytearray:
    data = _at_moment(node, len(node.pending) - 1)
    position, payload = node.pending[-1]
    if payload is None:
        return _resize(data, position) if chance.random() < 0.5 else data
    cut = chance.randint(0, len(payload))
    if chance.random() < 0.5:  # the end of a sector, as disks tear; anywhere else, as kill does
        end = -(-(position + cut) // SECTOR_BYTES) * SECTOR_BYTES
        cut = min(len(payload), end - position)
    size = max(len(data), position + len(payload))
    data = _write(data, position, payload[:cut])
    if chance.random() < 0.4:  # the size arrived, the bytes did not
        data = _resize(data, size)
    return data


def _scattered(node: FileNode, chance: random.Random) -> bytearray:
    """Every touched sector, and the size, as of a moment of its own."""
    touched, sizes = _history(node)
    last = len(node.pending)
    sectors_at: dict[int, list[int]] = {}
    for sector in sorted(touched):
        moment = last if chance.random() < 0.5 else chance.randint(0, last)
        sectors_at.setdefault(moment, []).append(sector)
    size = sizes[last if chance.random() < 0.5 else chance.randint(0, last)]
    state = bytearray(node.durable)
    result = bytearray(state)
    for moment in range(last + 1):
        for sector in sectors_at.get(moment, ()):
            start = sector * SECTOR_BYTES
            held = bytes(state[start : start + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")
            result = _write(result, start, held)
        if moment < last:
            state = _apply(state, *node.pending[moment])
    return _resize(result, size)


def _history(node: FileNode) -> tuple[set[int], list[int]]:
    """The sectors that pending operations touched, and the size after each of them."""
    touched: set[int] = set()
    size = len(node.durable)
    sizes = [size]
    for position, payload in node.pending:
        if payload is None:
            touched.update(range(position // SECTOR_BYTES, -(-size // SECTOR_BYTES)))
            size = position
        else:
            end = position + len(payload)
            touched.update(range(position // SECTOR_BYTES, -(-end // SECTOR_BYTES)))
            size = max(size, end)
        sizes.append(size)
    return touched, sizes


def _surviving_changes(count: int, mode: CrashMode, chance: random.Random) -> int:
    if mode is CrashMode.LOSE_UNSYNCED:
        return 0
    if mode in (CrashMode.LOST_ENTRY, CrashMode.MIXED):
        return chance.randint(0, count)
    return count


def _apply(data: bytearray, position: int, payload: bytes | None) -> bytearray:
    return _resize(data, position) if payload is None else _write(data, position, payload)


def _write(data: bytearray, position: int, payload: bytes) -> bytearray:
    end = position + len(payload)
    if payload and end > len(data):
        data = _resize(data, end)
    data[position:end] = payload
    return data


def _resize(data: bytearray, size: int) -> bytearray:
    """In place, or in a new buffer when a map still looks at this one."""
    if size == len(data):
        return data
    try:
        if size < len(data):
            del data[size:]
        else:
            data.extend(bytes(size - len(data)))
    except BufferError:
        fresh = bytearray(size)
        kept = min(size, len(data))
        fresh[:kept] = data[:kept]
        return fresh
    return data


def _rename(
    entries: dict[str, FileNode | DirectoryNode],
    changes: tuple[tuple[str, FileNode | DirectoryNode | None], ...],
) -> None:
    for name, node in changes:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _clone(
    node: FileNode | DirectoryNode, known: dict[int, FileNode | DirectoryNode]
) -> FileNode | DirectoryNode:
    copy = known.get(id(node))
    if copy is None:
        copy = node.clone() if isinstance(node, FileNode) else node.clone(known)
        known[id(node)] = copy
    return copy
