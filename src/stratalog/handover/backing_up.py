"""Backing up a log directory, in use or not: a snapshot of it, held by a lease, copied to a store.

What is copied are closed segments below the high watermark; of a directory that nobody owns, and
on request of one in use, also the last one up to there. Beside an owner that gives leases nothing
that is being copied goes away. Beside one that does not (Apache Kafka) something may: then the
partition is listed again, and copied anew as far as it has changed.
"""

import errno
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from stratalog.clock import Clock, SystemClock
from stratalog.directories.known_directory import KnownDirectory, learn_directory, topic_id_in
from stratalog.errors import CorruptFileError, DiskError, StorageError
from stratalog.handover.backup_commits import last_versions, refuse_open_commits, stored_versions
from stratalog.handover.backup_controller import copy_controller
from stratalog.handover.backup_side_files import producer_ids, read_indexes, read_snapshots
from stratalog.handover.backup_topics import describe_topics, seen_topics
from stratalog.scans.absences import absence_notes
from stratalog.scans.errors import DataLostError, MissingTopicError
from stratalog.scans.leasing import Holding, LeaseRenewal, hold, release
from stratalog.scans.places import SegmentPlaces
from stratalog.scans.selection import Assign, Subscribe
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot, take_snapshot
from stratalog.scans.tail import find_log_end
from stratalog.storage.backup.checking import Each
from stratalog.storage.backup.copying import (
    Copier,
    Progress,
    SegmentToCopy,
    known_segments,
    read_checked,
)
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import (
    PARTITIONS_MAX,
    BackupManifest,
    BackupSource,
    PartitionBackup,
    SourceFile,
    StoredAppVersion,
    StoredSegment,
    TopicBackup,
    as_unicode,
    is_epoch,
    is_id,
)
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.checkpoint import read_epochs
from stratalog.storage.commits.journal import Committed
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import File, FileSystem, OsFileSystem
from stratalog.storage.inspection import ListedSegment
from stratalog.storage.layout import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    TopicPartition,
    replica_directory,
    segment_file,
)
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.topic_names import KAFKAS_OWN_TOPICS

_ALL = ScanIsolation.READ_UNCOMMITTED
_TRIES = 5
_SETTLE_BYTES = 4 << 30
_PARTITIONS_MANY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions:
    """``topics``: all but Kafka's own if empty. ``include_active`` None: if nobody owns it."""

    topics: tuple[str, ...] = ()
    include_internal: bool = False
    include_active: bool | None = None
    verify: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """``copied_bytes`` are those that the store did not have."""

    manifest: BackupManifest
    copied_files: int
    copied_bytes: int
    read_bytes: int
    notes: tuple[str, ...] = ()

    @property
    def damaged(self) -> list[str]:
        return [
            f"{key}: segment {segment.base_offset} {segment.damage}"
            for key, partition in self.manifest.partitions
            for segment in partition.segments
            if segment.damage
        ]


def back_up(
    log_dir: str,
    store: BackupStore,
    options: BackupOptions | None = None,
    *,
    files: FileSystem | None = None,
    clock: Clock | None = None,
    each: Each = map,
    progress: Progress = lambda _bytes: None,
) -> BackupResult:
    """Copy what ``options`` name of ``log_dir`` to ``store``, and note it as a backup there."""
    chosen = options or BackupOptions()
    writable = files or OsFileSystem()
    files = ReadOnlyFileSystem(writable)
    clock = clock or SystemClock()
    # First of all: whatever was written before it is in what is looked at from here on.
    created_ms = clock.now_ms()
    known = learn_directory(files, log_dir)
    seen = seen_topics(files, log_dir)
    if known.owner.kind == "none":
        refuse_open_commits(files, log_dir, chosen.topics)
    committed = last_versions(files, log_dir)
    snapshot = _snapshot(files, log_dir, chosen)
    ids = {key: topic_id_in(files, each.directory) for key, each in snapshot.partitions.items()}
    holding = hold(snapshot, holder=f"backup to {store.name}", files=writable, clock=clock)
    with ExitStack() as ending:
        ending.callback(release, snapshot.path, holding.lease_ids, files=writable)
        run = store.begin()
        ending.callback(run.close)
        renewal = LeaseRenewal(snapshot.path, holding.lease_ids)
        return _Backup(
            files=files,
            snapshot=snapshot,
            seen=seen,
            topic_ids=ids,
            known=known,
            committed=committed,
            options=chosen,
            created_ms=created_ms,
            each=each,
            within=each,
            parent=_newest(store),
            store=store,
            renewal=renewal,
            copier=Copier(store, run, known=_known(store, snapshot.path), progress=progress),
        ).run(run.settle, run.write_manifest, holding)


def _snapshot(files: FileSystem, log_dir: str, options: BackupOptions) -> DirectorySnapshot:
    for attempt in range(1, _TRIES + 1):
        names = _topics(files, log_dir, options)
        try:
            found = take_snapshot(log_dir, Subscribe(names), isolation=_ALL, files=files)
        except MissingTopicError:
            # One that nobody has named was deleted since the names were listed.
            if options.topics or attempt == _TRIES:
                raise
            continue
        gone = set(options.topics) - {each.topic for each in found.partitions}
        if gone:
            raise MissingTopicError(min(gone), -1, log_dir)
        return found
    raise AssertionError("the last attempt raises or returns")


def _topics(files: FileSystem, log_dir: str, options: BackupOptions) -> tuple[str, ...]:
    if options.topics:
        return tuple(dict.fromkeys(options.topics))
    names = seen_topics(files, log_dir)
    if not options.include_internal:
        names -= KAFKAS_OWN_TOPICS
    if not names:
        raise BackupError(f"{log_dir} holds no topic that could be backed up")
    return tuple(sorted(names))


def source_path(log_dir: str) -> str:
    """As the manifests of its backups name a log directory."""
    return as_unicode(str(Path(log_dir).absolute()))


def _newest(store: BackupStore) -> str:
    ids = store.backup_ids()
    return ids[-1] if ids else ""


def _known(store: BackupStore, path: str) -> dict[tuple[str, SourceFile], StoredSegment]:
    """The segments of the newest backup of this directory that can be read."""
    for backup_id in reversed(store.backup_ids()):
        with suppress(StorageError):
            manifest = store.read_manifest(backup_id)
            if manifest.source.path == source_path(path):
                partitions = {
                    replica_directory(key): each.segments for key, each in manifest.partitions
                }
                return known_segments(partitions)
    return {}


@dataclass(slots=True, kw_only=True)
class _Backup:
    """One run."""

    files: FileSystem
    snapshot: DirectorySnapshot
    seen: set[str]
    topic_ids: Mapping[TopicPartition, str]
    known: KnownDirectory
    committed: Mapping[str, Committed]
    options: BackupOptions
    created_ms: int
    each: Each
    parent: str
    store: BackupStore
    renewal: LeaseRenewal
    copier: Copier
    within: Each = map
    notes: list[str] = field(default_factory=list)
    made_anew: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def run(
        self,
        settle: Callable[[], None],
        write_manifest: Callable[[BackupManifest], None],
        holding: Holding,
    ) -> BackupResult:
        backup_id = _backup_id(self.created_ms, self.parent)
        if not holding.is_held:
            self.notes.append(f"no lease: {holding.why_not}")
        self.notes += absence_notes(self.snapshot)
        topics: dict[str, list[PartitionBackup]] = {}
        settled_bytes = 0
        for key, partition in self._partitions():
            if partition is None:
                self.deleted.add(key.topic)
            else:
                topics.setdefault(key.topic, []).append(partition)
            if self.copier.read_bytes - settled_bytes >= _SETTLE_BYTES:
                # So that a crash after hours does not lose all of them.
                settled_bytes = self.copier.read_bytes
                settle()
        kept, notes = describe_topics(
            topics,
            self.topic_ids,
            self.known,
            deleted=self.deleted,
            made_anew=self.made_anew,
        )
        self.notes += notes
        left_out = tuple(sorted(self.seen - {each.name for each in kept}))
        manifest = BackupManifest(
            backup_id=backup_id,
            created_ms=self.created_ms,
            parent=self.parent,
            source=self._source(),
            topics=kept,
            left_out=left_out,
            controller={}
            if self.options.topics
            else copy_controller(self.files, self.snapshot.path, self.copier),
            broker_configs=self.known.broker_configs,
            app_versions=self._app_versions(kept, left_out),
            notes=tuple(as_unicode(each) for each in self.notes),
        )
        settle()
        if self.options.verify:
            self._verify(manifest)
        write_manifest(manifest)
        return BackupResult(
            manifest=manifest,
            copied_files=len(self.copier.copied),
            copied_bytes=sum(each.size_bytes for each in self.copier.copied.values()),
            read_bytes=self.copier.read_bytes,
            notes=manifest.notes,
        )

    def _verify(self, manifest: BackupManifest) -> None:
        files = {each.digest: each for each in manifest.files}.values()
        for _ in self.each(lambda each: read_checked(self.store, each), files):
            self.renewal.maybe_renew()

    def _source(self) -> BackupSource:
        try:
            identity = LogDirectory(self.files, self.snapshot.path).identity()
        except CorruptFileError as error:
            self.notes.append(str(error))
            identity = None
        directory_id = self.snapshot.directory_id
        if directory_id and not is_id(directory_id):
            self.notes.append(
                f"directory.id={directory_id[:100]!r} is no id, and is left out: a restored "
                "directory gets one of its own"
            )
            directory_id = ""
        next_producer_id = self.known.next_producer_id
        if identity and next_producer_id < 0 and self.snapshot.owner.kind != "none":
            self.notes.append(
                "which producer ids were given out is not known: a restored directory begins far "
                "above those in its logs"
            )
        return BackupSource(
            path=source_path(self.snapshot.path),
            cluster_id=identity.cluster_id if identity else "",
            node_id=identity.node_id if identity else -1,
            directory_id=directory_id,
            owner=self.snapshot.owner.kind,
            next_producer_id=next_producer_id,
        )

    def _app_versions(
        self, kept: Sequence[TopicBackup], left_out: Sequence[str]
    ) -> tuple[StoredAppVersion, ...]:
        """The journal has a commit before the logs have it: what it tells now is not older."""
        after = last_versions(self.files, self.snapshot.path)
        is_all = set(left_out) <= KAFKAS_OWN_TOPICS
        return stored_versions(self.committed, after, kept if is_all else ())

    # --- partitions ---------------------------------------------------------------------------

    def _partitions(self) -> Iterator[tuple[TopicPartition, PartitionBackup | None]]:
        """Many partitions are copied side by side; of few, their segments are."""
        keys = sorted(filter(self._is_possible, self.snapshot.partitions))
        across: Each = map
        if len(keys) >= _PARTITIONS_MANY:
            across, self.within = self.each, map
        yield from zip(keys, across(self._partition, keys), strict=True)

    def _is_possible(self, key: TopicPartition) -> bool:
        if key.partition < PARTITIONS_MAX:
            return True
        self.notes.append(
            f"{key} is left out: no topic has so many partitions. If the directory is none of a "
            "log, move it elsewhere"
        )
        return False

    def _partition(self, key: TopicPartition) -> PartitionBackup | None:
        """None if it was deleted meanwhile."""
        found: PartitionSnapshot | None = self.snapshot.partitions[key]
        for attempt in range(_TRIES):
            try:
                if attempt:
                    found = self._look_again(key)
                if found is None:
                    return None
                copied = self._copy(found)
                self._look_whose(found)
                return copied
            except (DataLostError, DiskError, BackupError) as error:
                if isinstance(error, DiskError) and error.errno != errno.ENOENT:
                    raise
                last = error
        raise BackupError(
            f"{key} changed {_TRIES} times while it was copied ({last}); its owner gives no lease. "
            "Back up while it deletes and compacts less"
        ) from last

    def _look_whose(self, found: PartitionSnapshot) -> None:
        """Segments are found by whatever name they have now, what lies beside them is not: so it
        counts whose the directory is when all was read."""
        before = self.topic_ids[found.topic_partition]
        now = topic_id_in(self.files, found.directory)
        if before and not now:
            raise BackupError(f"{found.directory} has gone")
        if before and now != before:
            self.made_anew.add(found.topic_partition.topic)

    def _look_again(self, key: TopicPartition) -> PartitionSnapshot | None:
        selection = Assign({key.topic: (key.partition,)})
        try:
            found = take_snapshot(self.snapshot.path, selection, isolation=_ALL, files=self.files)
        except MissingTopicError:
            return None
        return found.partitions.get(key)

    def _copy(self, found: PartitionSnapshot) -> PartitionBackup:
        wanted = list(self._segments(found))
        name = replica_directory(found.topic_partition)

        def copy(segment: SegmentToCopy) -> StoredSegment:
            self.renewal.maybe_renew()
            return self.copier.copy_segment(name, segment)

        segments = tuple(self.within(copy, wanted))
        end_offset = max([found.start_offset, *(each.end_offset for each in wanted)])
        snapshots = read_snapshots(
            self.files,
            found.directory,
            {each.base_offset for each in segments} | {end_offset},
            above=found.start_offset,
        )
        return PartitionBackup(
            partition=found.topic_partition.partition,
            log_start_offset=found.start_offset,
            end_offset=end_offset,
            epochs=tuple(each for each in self._epochs(found) if each[1] < end_offset),
            segments=segments,
            snapshots={offset: self.copier.copy_bytes(data) for offset, data in snapshots.items()},
            log_end_offset=self._log_end(found),
            producer_id_max=max(
                [-1, *(each.producer_id_max for each in segments), *producer_ids(snapshots)]
            ),
        )

    def _log_end(self, found: PartitionSnapshot) -> int:
        """Where the log ended when it was looked at, backed up or not."""
        end_offset = found.high_watermark
        if not found.is_end_exact:
            # Behind a checkpoint there is more, which may yet be truncated.
            files = self.files
            end_offset = max(end_offset, find_log_end(files, found.directory, found.segments)[0])
        return end_offset

    def _segments(self, found: PartitionSnapshot) -> Iterable[SegmentToCopy]:
        """Those that end at or below the high watermark, and the part of the next that does."""
        segments, end = found.segments, found.high_watermark
        is_active_wanted = self.options.include_active
        if is_active_wanted is None:
            is_active_wanted = self.snapshot.owner.kind == "none"
        for place in range(len(segments)):
            listed = segments[place]
            is_last = place == len(segments) - 1
            next_base = end if is_last else segments.base_offsets[place + 1]
            if listed.base_offset >= end:
                return
            is_closed = not is_last and next_base <= end
            if not is_closed and not is_active_wanted:
                return
            yield self._to_copy(found, listed, min(next_base, end), is_closed=is_closed)

    def _to_copy(
        self, found: PartitionSnapshot, listed: ListedSegment, end_offset: int, *, is_closed: bool
    ) -> SegmentToCopy:
        # Indexes that are appended to are preallocated, and may tell of more than was listed.
        is_at_rest = is_closed or self.snapshot.owner.kind == "none"
        places = SegmentPlaces(self.files, found.directory, listed)
        size_bytes = listed.size_bytes
        if not is_closed:
            with places:
                size_bytes = places.end_of(end_offset)
            places = SegmentPlaces(self.files, found.directory, listed)
        path = segment_file(found.directory, listed.base_offset, LOG_SUFFIX)
        return SegmentToCopy(
            base_offset=listed.base_offset,
            end_offset=end_offset,
            size_bytes=size_bytes,
            source=self._source_file(path, listed),
            open_log=lambda: _open(places),
            read_indexes=lambda: (
                read_indexes(self.files, found.directory, listed) if is_at_rest else {}
            ),
        )

    def _source_file(self, path: str, listed: ListedSegment) -> SourceFile:
        entry = self.files.stat(path)
        if entry is None or entry.inode != listed.inode or entry.size_bytes < listed.size_bytes:
            # It has gone since, or passed its name on: nothing by which to know it again.
            return SourceFile(inode=0, size_bytes=listed.size_bytes, modified_ns=0)
        return SourceFile(
            inode=listed.inode, size_bytes=listed.size_bytes, modified_ns=entry.modified_ns
        )

    def _epochs(self, found: PartitionSnapshot) -> list[tuple[int, int]]:
        try:
            entries = read_epochs(self.files, f"{found.directory}/{LEADER_EPOCH_CHECKPOINT}")
        except CorruptFileError as error:
            self.notes.append(str(error))
            return []
        epochs = [(each.epoch, each.start_offset) for each in entries]
        self.notes += [
            f"{found.topic_partition}: its leader-epoch-checkpoint has epoch {epoch} from offset "
            f"{start_offset} on, which none can be, and is left out"
            for epoch, start_offset in epochs
            if not is_epoch(epoch, start_offset)
        ]
        return [each for each in epochs if is_epoch(*each)]


def _open(places: SegmentPlaces) -> File:
    """The file of a segment, which whoever reads it closes."""
    return places.file


def _backup_id(created_ms: int, parent: str) -> str:
    """In the order in which backups are made when sorted as text: behind ``parent``, the newest,
    also if the clock was set back since."""
    with suppress(ValueError):  # there is none, or its name is of no day
        before = datetime.strptime(f"{parent[:18]}+0000", "%Y%m%dT%H%M%S%f%z")
        created_ms = max(created_ms, round(before.timestamp() * 1000) + 1)
    with suppress(ValueError, OverflowError):  # years end with four digits
        moment = datetime.fromtimestamp(created_ms // 1000, UTC)
        name = f"{moment:%Y%m%dT%H%M%S}{created_ms % 1000:03d}Z-{uuid.uuid4().hex[:8]}"
        if name > parent:
            return name
    raise BackupError(
        f"no backup can be named behind {parent}, the newest of this target: remove "
        f"backups/{parent}.json if it is none, or back up to another directory"
    )
