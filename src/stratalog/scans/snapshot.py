"""One moment's view of a log directory: which partitions, which segments, where each ends.

The ends are settled here, once. Where a log ends depends on who owns the directory:

    our broker          it is asked for the high watermark and the last stable offset
    Apache Kafka, or    the checkpointed high watermark: what lies behind it may yet be
    an owner not asked  truncated
    nobody              the last complete valid batch; what is left behind it is an interrupted
                        write, unless the checkpointed recovery point says that it was flushed:
                        then it is damage, and for the reader to tell of

The owner is asked before the files are listed, so that all it speaks of is in the listing. A
snapshot is about one log directory; a broker with several has one scan for each.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from stratalog.config.properties import parse_properties
from stratalog.directories.owners import Ownership, ask_offsets, find_owner
from stratalog.directories.topic_facts import RecentTopicFacts
from stratalog.errors import (
    ConfigError,
    DiskError,
    LogDirectoryError,
    TopicNameError,
)
from stratalog.scans.selection import Selection
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.tail import find_last_stable_offset, find_log_end
from stratalog.storage.absences import Absence, absent_start, missing_end
from stratalog.storage.checkpoint import read_offsets_if_sound
from stratalog.storage.files import FileSystem, OsFileSystem, read_file
from stratalog.storage.inspection import (
    Found,
    SegmentListing,
    SegmentTable,
    find_replicas,
    list_segments,
)
from stratalog.storage.layout import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    SWAP_SUFFIX,
    TopicPartition,
    parse_replica_directory,
)
from stratalog.storage.ours import OwnFiles
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.views import LogOffsets

# A swap is a few renames and an fsync; who waits longer waits for somebody who has gone.
_SWAP_SECONDS = 0.01
_LISTINGS_MAX = 200
_facts = RecentTopicFacts()


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """Offsets from ``start_offset`` up to ``end_offset`` are there to be read.

    ``is_end_exact`` is False where the ends are only known to be no lower: by a checkpoint.
    ``end_position`` is where the last segment's valid bytes end, -1 where nobody has looked.
    ``absences`` are offsets before and behind those, which the log has and its files do not.
    """

    topic_partition: TopicPartition
    directory: str
    start_offset: int
    high_watermark: int
    last_stable_offset: int
    segments: SegmentTable
    is_end_exact: bool = True
    end_position: int = -1
    absences: tuple[Absence, ...] = ()

    @property
    def first_offset(self) -> int:
        """Where the log begins; its files may begin later."""
        return min([self.start_offset, *(each.start_offset for each in self.absences)])

    def known_end_offset(self, isolation: ScanIsolation) -> int:
        """Where the log ends; its files may end earlier."""
        return max([self.end_offset(isolation), *(each.end_offset for each in self.absences)])

    def end_offset(self, isolation: ScanIsolation) -> int:
        if isolation is ScanIsolation.READ_COMMITTED:
            return self.last_stable_offset
        return self.high_watermark


@dataclass(frozen=True, slots=True)
class DirectorySnapshot:
    """``path`` is the log directory, also where a single replica was asked for."""

    path: str
    directory_id: str
    owner: Ownership
    partitions: Mapping[TopicPartition, PartitionSnapshot]


def take_snapshot(
    path: str,
    selection: Selection,
    *,
    isolation: ScanIsolation | None = None,
    with_segments: bool = True,
    files: FileSystem | None = None,
) -> DirectorySnapshot:
    """What ``selection`` names of the log directory, or the one replica, at ``path``.

    ``isolation``: only the end for this one is wanted; where nobody can be asked, the last stable
    offset is work. Without ``with_segments`` the logs of an owner that answers are not listed:
    for who wants to know where they begin and end, and often.
    """
    files = ReadOnlyFileSystem(files or OsFileSystem())
    log_directory, chosen = choose_replicas(files, path, selection)
    view = _DirectoryView(files, log_directory, isolation, with_segments)
    view.ask(list(chosen))
    partitions = {}
    for key, directory in chosen.items():
        partition = view.partition(key, directory)
        if partition is not None:
            partitions[key] = partition
    return DirectorySnapshot(
        log_directory, read_directory_id(files, log_directory), view.owner, partitions
    )


def choose_replicas(
    files: FileSystem, path: str, selection: Selection
) -> tuple[str, dict[TopicPartition, str]]:
    """The log directory at ``path``, and where in it the partitions of ``selection`` are."""
    found = _find_replicas(files, path)
    replicas = {}
    for directory in found.replicas:
        name = parse_replica_directory(directory.rpartition("/")[2])
        # A copy in the making, or one that is to be deleted, has to be asked for by its own name.
        if not name.state or not found.is_log_directory:
            replicas[name.topic_partition] = directory
    return found.log_directory, {key: replicas[key] for key in selection.choose(replicas, path)}


def _find_replicas(files: FileSystem, path: str) -> Found:
    found = find_replicas(files, path)
    if not found.is_log_directory:
        try:
            parse_replica_directory(found.replicas[0].rpartition("/")[2])
        except TopicNameError:
            # A link to a replica, or the directory one is in: its own name says what it is.
            return find_replicas(files, os.path.realpath(path))
    return found


class _DirectoryView:
    """What is known of the directory as a whole, and of each log by it."""

    def __init__(
        self,
        files: FileSystem,
        log_directory: str,
        isolation: ScanIsolation | None,
        with_segments: bool,
    ) -> None:
        self._files = files
        self._path = log_directory
        self._needs_stable = isolation is not ScanIsolation.READ_UNCOMMITTED
        self._with_segments = with_segments
        self.owner = Ownership()
        self._told: dict[TopicPartition, LogOffsets] = {}
        self._starts: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._recovery_points: dict[TopicPartition, int] = {}

    def ask(self, chosen: list[TopicPartition]) -> None:
        self.owner, reach = find_owner(self._path)
        if reach is not None and chosen:
            self._told = ask_offsets(reach, (each.topic for each in chosen)) or {}
        self._starts = read_offsets_if_sound(self._files, f"{self._path}/{LOG_START_CHECKPOINT}")
        path = f"{self._path}/{HIGH_WATERMARK_CHECKPOINT}"
        self._high_watermarks = read_offsets_if_sound(self._files, path)
        if self.owner.kind == "none":
            path = f"{self._path}/{RECOVERY_POINT_CHECKPOINT}"
            self._recovery_points = read_offsets_if_sound(self._files, path)

    def partition(self, key: TopicPartition, directory: str) -> PartitionSnapshot | None:
        """None if it was deleted since the directory was listed."""
        told = self._told.get(key)
        if told is not None and not self._with_segments:
            return PartitionSnapshot(
                key,
                directory,
                told.log_start_offset,
                told.high_watermark,
                told.last_stable_offset,
                SegmentTable([]),
            )
        try:
            listing = _settled_listing(self._files, directory, is_live=self.owner.kind != "none")
        except LogDirectoryError:
            if self._files.exists(directory):
                raise
            return None
        segments = listing.segments
        first = segments.base_offsets[0] if len(segments) else 0
        if told is not None:
            start_offset = max(told.log_start_offset, first)
            return PartitionSnapshot(
                key,
                directory,
                start_offset,
                max(told.high_watermark, start_offset),
                max(told.last_stable_offset, start_offset),
                segments,
            )
        own = OwnFiles(self._files, directory, exists=listing.has_own_directory)
        start_offset = max(first, self._starts.get(key, 0), own.log_start())
        return self._look(key, directory, listing, start_offset)

    def _look(
        self, key: TopicPartition, directory: str, listing: SegmentListing, start_offset: int
    ) -> PartitionSnapshot:
        # What an owner in this process has appended is flushed when it returns: files tell all.
        is_exact = self.owner.kind == "none" or self.owner.is_here
        end_offset, end_position = self._high_watermarks.get(key, 0), -1
        if is_exact:
            end_offset, end_position = self._find_end(key, directory, listing.segments)
        end_offset = max(end_offset, start_offset)
        stable = end_offset
        if self._needs_stable:
            stable = find_last_stable_offset(
                self._files,
                directory,
                listing.segments,
                snapshots=listing.snapshots,
                start_offset=start_offset,
                end_offset=end_offset,
            )
        return PartitionSnapshot(
            key,
            directory,
            start_offset,
            end_offset,
            stable,
            listing.segments,
            is_exact,
            end_position,
            self._absences(key, directory, listing, end_offset),
        )

    def _absences(
        self, key: TopicPartition, directory: str, listing: SegmentListing, end_offset: int
    ) -> tuple[Absence, ...]:
        found: list[Absence | None] = []
        if len(listing.segments):
            first = listing.segments.base_offsets[0]
            found.append(
                absent_start(
                    self._files,
                    directory,
                    first,
                    checkpointed=self._starts.get(key),
                    is_tiered=lambda: _facts.of(self._files, self._path).is_tiered(key.topic),
                )
            )
        if self.owner.kind == "none":
            found.append(
                missing_end(
                    end_offset,
                    recovery_point=self._recovery_points.get(key, 0),
                    high_watermark=self._high_watermarks.get(key, 0),
                )
            )
        return tuple(each for each in found if each is not None)

    def _find_end(
        self, key: TopicPartition, directory: str, segments: SegmentTable
    ) -> tuple[int, int]:
        """As recovery finds it: bytes below the recovery point were flushed, and no crash takes
        them, so that what is there of them is damaged."""
        end_offset, end_position = find_log_end(self._files, directory, segments)
        recovery_point = self._recovery_points.get(key, 0)
        size_bytes = segments[len(segments) - 1].size_bytes if len(segments) else 0
        if end_offset < recovery_point and end_position < size_bytes:
            return recovery_point, size_bytes
        return end_offset, end_position


def _settled_listing(files: FileSystem, directory: str, *, is_live: bool) -> SegmentListing:
    """A listing that no cleaning was about to change: between the renames of a swap, segments
    seem not to be there."""
    for attempt in range(_LISTINGS_MAX if is_live else 1):
        if attempt:
            time.sleep(_SWAP_SECONDS)
        listing = list_segments(files, directory)
        if not listing.is_swapping:
            return listing
    raise LogDirectoryError(
        f"{directory} holds a .log{SWAP_SUFFIX} file: a cleaning was interrupted between its "
        "renames, and segments are missing; let the owner open the directory once, which ends it"
    )


def read_directory_id(files: FileSystem, log_directory: str) -> str:
    """Empty where the directory has none: older releases of Kafka did not give any."""
    path = f"{log_directory}/{META_PROPERTIES}"
    try:
        if not files.exists(path):
            return ""
        return parse_properties(read_file(files, path)).get("directory.id", "")
    except (DiskError, ConfigError, ValueError):
        return ""
