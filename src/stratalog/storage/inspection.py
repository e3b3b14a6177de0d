"""A replica's directory as anybody may look at it: names and sizes, nothing opened for writing.

The owner may be writing, rolling, deleting meanwhile. What is listed here is one moment's view;
files that have gone since are for the reader to pass over.
"""

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stratalog.errors import DiskError, LogDirectoryError, TopicNameError, UnfinishedRestoreError
from stratalog.storage.files import Entry, FileSystem
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_SUFFIX,
    META_PROPERTIES,
    OWN_DIRECTORY,
    PARTITION_METADATA,
    REMOTE_INDEX_CACHE,
    RESTORING_DIRECTORY,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TopicPartition,
    parse_replica_directory,
    parse_segment_file,
    segment_file,
    validate_topic_name,
)

_OFFSET_DIGITS = 20


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of one segment, by suffix, with their sizes when they were listed."""

    directory: str
    base_offset: int
    sizes: dict[str, int]
    modified_ms: int = 0

    @property
    def log_path(self) -> str:
        return self.path(LOG_SUFFIX)

    @property
    def size_bytes(self) -> int:
        return self.sizes[LOG_SUFFIX]

    def path(self, suffix: str) -> str:
        return segment_file(self.directory, self.base_offset, suffix)

    def __contains__(self, suffix: str) -> bool:
        return suffix in self.sizes


@dataclass(frozen=True, slots=True)
class Replica:
    """One listing of a replica's directory; segments and snapshots in order of their offsets.

    ``leaving`` are base offsets whose ``.log`` is to be deleted: it is renamed before its indexes.
    ``is_swapping``: a cleaned segment is taking the place of others. ``not_files`` have a name that
    a segment's file would have, and are none.
    """

    directory: str
    topic_partition: TopicPartition
    segments: tuple[SegmentFiles, ...] = ()
    snapshots: tuple[int, ...] = ()
    orphans: tuple[str, ...] = ()
    other_files: frozenset[str] = field(default_factory=frozenset)
    leaving: frozenset[int] = field(default_factory=frozenset)
    is_swapping: bool = False
    not_files: tuple[str, ...] = ()

    @property
    def log_directory(self) -> str:
        return os.path.dirname(self.directory) or "."

    def floor(self, offset: int) -> int:
        """The place of the segment that owns ``offset``; -1 if it lies before the first."""
        place = -1
        for slot, segment in enumerate(self.segments):
            if segment.base_offset <= offset:
                place = slot
        return place


def replica_name(directory: str) -> str:
    """Its own name, as a broker takes it: a link may lead to one of another name."""
    name = os.path.basename(_plain(directory))
    try:
        parse_replica_directory(name)
    except TopicNameError:
        return os.path.basename(os.path.realpath(directory))  # of "." and the like
    return name


def topic_partition_of(directory: str) -> TopicPartition:
    return parse_replica_directory(replica_name(directory)).topic_partition


def list_replica(files: FileSystem, directory: str) -> Replica:
    """What is in a replica's directory now."""
    directory = _plain(directory)
    topic_partition = topic_partition_of(directory)
    sizes: dict[int, dict[str, Entry]] = {}
    snapshots, others, leaving = [], set(), set()
    not_files: list[str] = []
    is_swapping = False
    for entry in _entries(files, directory):
        parsed = parse_segment_file(entry.name)
        if not entry.is_file:
            if parsed is not None:
                not_files.append(f"{directory}/{entry.name}")
            continue
        if parsed is None:
            others.add(entry.name)
        elif not parsed.state and parsed.kind == SNAPSHOT_SUFFIX:
            snapshots.append(parsed.offset)
        elif not parsed.state:
            sizes.setdefault(parsed.offset, {})[parsed.kind] = entry
        elif parsed.state == DELETED_SUFFIX and parsed.kind == LOG_SUFFIX:
            leaving.add(parsed.offset)
        elif parsed.state == SWAP_SUFFIX:
            is_swapping = True
    segments = [
        SegmentFiles(
            directory,
            base_offset,
            {kind: entry.size_bytes for kind, entry in found.items()},
            found[LOG_SUFFIX].modified_ms,
        )
        for base_offset, found in sorted(sizes.items())
        if LOG_SUFFIX in found
    ]
    orphans = [
        segment_file(directory, base_offset, kind)
        for base_offset, found in sizes.items()
        if LOG_SUFFIX not in found
        for kind in found
    ]
    return Replica(
        directory,
        topic_partition,
        tuple(segments),
        tuple(sorted(snapshots)),
        tuple(sorted(orphans)),
        frozenset(others),
        frozenset(leaving),
        is_swapping,
        tuple(sorted(not_files)),
    )


class ListedSegment(NamedTuple):
    """One ``.log`` as it was listed."""

    base_offset: int
    size_bytes: int
    inode: int
    modified_ms: int


class SegmentTable:
    """The segments of a replica in order of their offsets, as columns.

    A plan may be about a million of them: 32 bytes each, and a value only for who asks.
    """

    __slots__ = ("base_offsets", "inodes", "modified_ms", "sizes_bytes")

    def __init__(self, segments: list[ListedSegment]) -> None:
        segments.sort()
        bases, sizes, inodes, times = zip(*segments, strict=True) if segments else ((), (), (), ())
        self.base_offsets = array("q", bases)
        self.sizes_bytes = array("q", sizes)
        self.inodes = array("Q", inodes)
        self.modified_ms = array("q", times)

    def __len__(self) -> int:
        return len(self.base_offsets)

    def __getitem__(self, place: int) -> ListedSegment:
        return ListedSegment(
            self.base_offsets[place],
            self.sizes_bytes[place],
            self.inodes[place],
            self.modified_ms[place],
        )

    def __iter__(self) -> Iterator[ListedSegment]:
        columns = (self.base_offsets, self.sizes_bytes, self.inodes, self.modified_ms)
        return map(ListedSegment._make, zip(*columns, strict=True))

    @property
    def size_bytes(self) -> int:
        return sum(self.sizes_bytes)

    def floor(self, offset: int) -> int:
        """The place of the segment that owns ``offset``; -1 if it lies before the first."""
        return bisect_right(self.base_offsets, offset) - 1


@dataclass(frozen=True, slots=True)
class SegmentListing:
    """``is_swapping``: a cleaned segment is about to take the place of others."""

    segments: SegmentTable
    snapshots: tuple[int, ...]
    has_own_directory: bool
    is_swapping: bool


def list_segments(files: FileSystem, directory: str) -> SegmentListing:
    """What a scan needs of a replica's directory, and no more: there may be very many."""
    segments, snapshots = [], []
    has_own_directory = is_swapping = False
    for entry in _entries(files, directory):
        name = entry.name
        kind = name[_OFFSET_DIGITS:]
        if kind == LOG_SUFFIX:
            offset = _offset_in(name)
            if offset >= 0 and entry.is_file:
                segments.append(
                    ListedSegment(offset, entry.size_bytes, entry.inode, entry.modified_ms)
                )
        elif kind == SNAPSHOT_SUFFIX and entry.is_file:
            snapshots.append(_offset_in(name))
        elif name == OWN_DIRECTORY:
            has_own_directory = entry.is_directory
        elif kind == LOG_SUFFIX + SWAP_SUFFIX:
            is_swapping = True
    snapshots.sort()
    return SegmentListing(SegmentTable(segments), tuple(snapshots), has_own_directory, is_swapping)


def _offset_in(name: str) -> int:
    """Of a segment's file; -1 if that is not what it is called like. No offset has more digits,
    and matching a pattern takes thrice as long."""
    digits = name[:_OFFSET_DIGITS]
    offset = int(digits) if digits.isascii() and digits.isdecimal() else -1
    return offset if offset < 2**63 else -1


def _plain(directory: str) -> str:
    return directory.rstrip("/") or "/"


def _entries(files: FileSystem, directory: str) -> list[Entry]:
    found = files.stat(directory)
    if found is None:
        raise LogDirectoryError(f"{directory} does not exist")
    if not found.is_directory:
        raise LogDirectoryError(f"{directory} is not a directory")
    try:
        return files.list(directory)
    except DiskError as error:
        raise LogDirectoryError(f"{directory} cannot be listed: {error.reason}") from error


@dataclass(frozen=True, slots=True)
class Found:
    """What a path names: one replica, or a log directory with its replicas.

    ``foreign`` are directories that no replica is called like; Apache Kafka refuses to start on
    a log directory that holds one.
    """

    log_directory: str
    replicas: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    is_log_directory: bool = False


def find_replicas(files: FileSystem, path: str) -> Found:
    """The replicas that ``path`` names. The names of directories alone cannot tell a log
    directory called ``logs-1`` from a replica, so what is inside decides."""
    if not path:
        raise LogDirectoryError("the path is empty; name a log directory or a topic-partition")
    path = _plain(path)
    entries = _entries(files, path)
    if _looks_like_replica(entries):
        name = os.path.basename(os.path.realpath(path))
        parse_replica_directory(name)
        return Found(os.path.dirname(path) or ".", (path,))
    names = {entry.name for entry in entries}
    if RESTORING_DIRECTORY in names:
        raise UnfinishedRestoreError(path)
    replicas, foreign = [], []
    for entry in sorted(entries, key=lambda entry: entry.name):
        if not entry.is_directory or entry.name == REMOTE_INDEX_CACHE:
            continue
        try:
            parsed = parse_replica_directory(entry.name)
        except TopicNameError:
            foreign.append(f"{path}/{entry.name}")
            continue
        if parsed.state != DELETE_DIRECTORY:
            replicas.append(f"{path}/{entry.name}")
    if not replicas and not names & {META_PROPERTIES, LOCK_FILE}:
        return _empty_replica(path)
    return Found(path, tuple(replicas), tuple(foreign), is_log_directory=True)


def _looks_like_replica(entries: list[Entry]) -> bool:
    for entry in entries:
        parsed = parse_segment_file(entry.name)
        if parsed is not None or entry.name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA):
            return True
    return False


def _empty_replica(path: str) -> Found:
    try:
        name = parse_replica_directory(os.path.basename(os.path.realpath(path)))
        validate_topic_name(name.topic_partition.topic)
    except TopicNameError as error:
        raise LogDirectoryError(
            f"{path} is neither a log directory nor a replica's: no topic-partition in it, "
            "and its own name is none"
        ) from error
    return Found(os.path.dirname(path) or ".", (path,))


def one_replica(files: FileSystem, path: str) -> Replica:
    """The replica at ``path``, for commands that take exactly one."""
    found = find_replicas(files, path)
    if found.is_log_directory:
        raise LogDirectoryError(
            f"{path} is a log directory; name one of its topic-partition directories"
        )
    return list_replica(files, found.replicas[0])
