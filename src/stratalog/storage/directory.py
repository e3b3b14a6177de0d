"""One log directory: its lock, identity, checkpoints and clean-shutdown marker.

.lock                               held while this process owns the directory
meta.properties                     which cluster and node it belongs to
.kafka_cleanshutdown                there only after a clean stop
recovery-point-offset-checkpoint    below it, everything has been flushed
log-start-offset-checkpoint         only of logs that start inside a segment
replication-offset-checkpoint       high watermarks
cleaner-offset-checkpoint           below it, a compacted log has been cleaned
"""

import json
import os
import threading
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from stratalog.config.properties import format_properties, parse_properties
from stratalog.errors import (
    ConfigError,
    CorruptFileError,
    DiskError,
    LogDirectoryError,
    OutOfResourcesError,
    StorageError,
    UnfinishedRestoreError,
)
from stratalog.storage.checkpoint import format_id, parse_id, read_offsets, write_offsets
from stratalog.storage.context import DirectoryState, DiskState
from stratalog.storage.files import DirectoryLock, FileSystem, read_file, replace_file
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_INDEX_CACHE,
    RESTORING_DIRECTORY,
    ReplicaDirectoryName,
    TopicPartition,
    parse_replica_directory,
)
from stratalog.storage.log import Log
from stratalog.topic_names import CLUSTER_METADATA_TOPIC

# Of meta.properties: of ZooKeeper's times, and of KRaft's.
_META_VERSIONS = (0, 1)


@dataclass(frozen=True, slots=True)
class Identity:
    """What ``meta.properties`` says."""

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID


class WritingOrder:
    """Keeps an older state of a file from being written over a newer one, and knows whose offsets
    the file holds, as far as this process does."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.written = 0
        self.keys: Container[TopicPartition] = ()
        # What this process has written last, if it is certain that the file says so.
        self.content: Mapping[TopicPartition, int] | None = None
        self._numbers = count(1)

    def next_number(self) -> int:
        return next(self._numbers)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Offsets as they were when it was planned, to be written by whatever thread may wait. What the
    file says already is not written again: of an idle broker's logs nothing is."""

    files: FileSystem
    path: str
    offsets: dict[TopicPartition, int]
    order: WritingOrder
    number: int

    def write(self) -> None:
        with self.order.guard:
            if self.number > self.order.written:
                if self.offsets != self.order.content or not self.files.exists(self.path):
                    self.order.content = None
                    write_offsets(self.files, self.path, self.offsets)
                    self.order.content = self.offsets
                self.order.written = self.number
                self.order.keys = self.offsets.keys()


class LogDirectory:
    """A directory this process owns from ``acquire`` to ``release``."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self.path = path
        self.files = files
        self.state = DirectoryState()
        self.logs: dict[TopicPartition, Log] = {}
        self.offline_logs: dict[TopicPartition, str] = {}
        # Renamed to ``-delete``, to be removed: what is left of logs that could not be made.
        self.half_made: list[str] = []
        # What cleaner-offset-checkpoint says; read when first asked for.
        self._cleaner_offsets: dict[TopicPartition, int] | None = None
        self._cleaner_changes = self._cleaner_written = 0
        self._cleaner_guard = threading.Lock()
        self._lock: DirectoryLock | None = None
        self._orders: dict[str, WritingOrder] = {}
        # What is to be done last, just before the lock is let go of.
        self.leave: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path} {self.state.state.value} with {len(self.logs)} logs>"

    @property
    def is_online(self) -> bool:
        return self.state.state is not DiskState.OFFLINE

    def fail(self, reason: str) -> None:
        """Take the directory offline; the others go on."""
        self.state.state = DiskState.OFFLINE
        self.state.reason = reason

    def check_space(self, reserve_bytes: int, *, coming_bytes: int = 0) -> None:
        """Whether appends find enough room: none is taken below the reserve. ``coming_bytes`` are
        about to be freed."""
        try:
            free_bytes = self.files.free_bytes(self.path)
        except DiskError as error:
            if not error.is_passing:
                self.fail(str(error))
            return
        if free_bytes + coming_bytes < reserve_bytes:
            self.state.state = DiskState.FULL
            self.state.refused = ""  # this says it all
            self.state.reason = (
                f"{free_bytes} bytes are free, less than log.dir.reserve.bytes={reserve_bytes}; "
                "appends resume when there is room"
            )
        else:
            self.state.state = DiskState.ONLINE
            self.state.reason = ""

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"

    # --- ownership ----------------------------------------------------------------------------

    def acquire(self) -> None:
        """Take the lock; nothing happens if this object has it already."""
        if self._lock is not None:
            return
        found = self.files.stat(self.path)
        if found is None:
            self.files.make_directory(self.path)
            self.files.sync_directory(os.path.dirname(os.path.abspath(self.path)))
        elif not found.is_directory:
            raise LogDirectoryError(f"{self.path} is not a directory")
        else:
            self.replicas()  # what is no log directory is refused before a lock file is left in it
        self._lock = self.files.lock(self._file(LOCK_FILE))

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            self.leave()
            lock.release()

    # --- identity -----------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        """Who this directory belongs to; None if nobody has said so yet."""
        path = self._file(META_PROPERTIES)
        if not self.files.exists(path):
            return None
        try:
            properties = parse_properties(read_file(self.files, path))
            version = int(properties["version"])
            if version not in _META_VERSIONS:
                raise CorruptFileError(path, f"has version {version}, which is not known")
            node_id = int(properties["node.id" if version == 1 else "broker.id"])
            if not 0 <= node_id < 2**31:
                raise CorruptFileError(path, f"says node {node_id}, which none is")
            directory_id = properties.get("directory.id")
            return Identity(
                properties.get("cluster.id", ""),
                node_id,
                parse_id(directory_id) if directory_id else uuid.UUID(int=0),
            )
        except (KeyError, ValueError, ConfigError) as error:
            raise CorruptFileError(path, f"lacks or garbles {error}") from error

    def assign_identity(self, identity: Identity) -> None:
        content = format_properties(
            {
                "version": "1",
                "cluster.id": identity.cluster_id,
                "node.id": str(identity.node_id),
                "directory.id": format_id(identity.directory_id),
            }
        )
        replace_file(self.files, self._file(META_PROPERTIES), content)

    def belong_to(self, wanted: Identity | None) -> None:
        """From now on to this node, if to nobody yet; raise if to another."""
        if wanted is None:
            return
        found = self.identity()
        if found is None:
            self.assign_identity(Identity(wanted.cluster_id, wanted.node_id, uuid.uuid4()))
        elif (found.cluster_id or wanted.cluster_id, found.node_id) != (
            wanted.cluster_id,
            wanted.node_id,
        ):
            raise LogDirectoryError(
                f"{self.path} belongs to node {found.node_id} of cluster "
                f"{found.cluster_id!r}, not to node {wanted.node_id} of {wanted.cluster_id!r}"
            )

    # --- what is inside -----------------------------------------------------------------------

    def replicas(self) -> list[tuple[str, ReplicaDirectoryName]]:
        """The replicas' directories; anything else that is a directory is refused, as by Kafka,
        because it means that this is not, or not only, a log directory."""
        found = []
        for entry in sorted(self.files.list(self.path), key=lambda entry: entry.name):
            if not entry.is_directory or entry.name == REMOTE_INDEX_CACHE:
                continue
            if entry.name == RESTORING_DIRECTORY:
                raise UnfinishedRestoreError(self.path)
            parsed = parse_replica_directory(entry.name)
            if parsed.topic_partition.topic != CLUSTER_METADATA_TOPIC:
                found.append((self._file(entry.name), parsed))
        return found

    # --- clean shutdown -----------------------------------------------------------------------

    def take_clean_marker(self) -> bool:
        """Whether the last stop was clean. The marker is gone for good before this returns: a
        crash from now on is an unclean stop."""
        path = self._file(CLEAN_SHUTDOWN_FILE)
        if not self.files.exists(path):
            return False
        self.files.unlink(path)
        self.files.sync_directory(self.path)
        return True

    def write_clean_marker(self, broker_epoch: int = -1) -> None:
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        file = self.files.open(self._file(CLEAN_SHUTDOWN_FILE), create=True)
        try:
            file.truncate(0)
            file.write_at(0, [content.encode()])
            file.sync()
        finally:
            file.close()
        self.files.sync_directory(self.path)

    # --- checkpoints --------------------------------------------------------------------------

    def recovery_points(self) -> dict[TopicPartition, int] | None:
        """A log without an entry is newer than the file: nothing in it is known to be flushed.
        None without a readable file: then nothing is known at all, and all is read again."""
        found = self.files.stat(self._file(RECOVERY_POINT_CHECKPOINT))
        if found is None or not found.size_bytes:
            return None
        try:
            return self._read(RECOVERY_POINT_CHECKPOINT)
        except CorruptFileError:
            return None

    def log_start_offsets(self) -> dict[TopicPartition, int]:
        """This one is no hint: without it deleted records would come back. Each partition keeps
        a copy of its own entry, which opening it takes into account."""
        try:
            return self._read(LOG_START_CHECKPOINT)
        except CorruptFileError:
            return {}

    def high_watermarks(self) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self.files, self._file(HIGH_WATERMARK_CHECKPOINT))
        except CorruptFileError:
            return {}

    def checkpoint_recovery_points(self) -> None:
        self._write(self.plan_recovery_points())

    def begin_recovery_points(self) -> None:
        """From now on a log without an entry is a new one, and not one that was moved here: what
        was flushed of that is never cut."""
        known = self.recovery_points()
        if known is None:
            is_due = not self.files.exists(self._file(RECOVERY_POINT_CHECKPOINT))
        else:
            is_due = not self.logs.keys() <= known.keys()
        if is_due:
            self.checkpoint_recovery_points()

    def plan_recovery_points(self) -> "Checkpoint":
        """What ``checkpoint_recovery_points`` writes; ``Checkpoint.write`` may run on any thread,
        and so for the two that follow."""
        return self._plan(RECOVERY_POINT_CHECKPOINT, lambda log: log.promised_recovery_point)

    def take_in(self, log: Log) -> None:
        """Hold a new log. If one of its name was here before, its recovery point must not count
        for this one, which would seem to have lost what it never had; nor where it started, nor
        what was cleaned of it."""
        key = log.topic_partition
        self.logs[key] = log
        try:
            if key in self._order(RECOVERY_POINT_CHECKPOINT).keys:
                self.checkpoint_recovery_points()
            if key in self._order(LOG_START_CHECKPOINT).keys:
                self.checkpoint_log_start_offsets()
            self.note_cleaner_offset(key, None)
        except DiskError:
            del self.logs[key]
            raise

    def remove_due(self, janitor: Janitor, now_ms: int, *, is_last: bool) -> None:
        """Let ``janitor`` remove the files of logs that were deleted long enough ago."""
        with_waste = self.state.with_waste
        for key in sorted(with_waste):
            log = self.logs.get(key)
            if log is not None:
                log.remove_due(janitor, now_ms, is_last=is_last)
            if log is None or not log.has_waste:
                with_waste.discard(key)

    def checkpoint_log_start_offsets(self) -> None:
        self._write(self.plan_log_start_offsets())
        for log in self.logs.values():
            log.note_durable_start(log.log_start_offset, log.truncation_count)

    def plan_log_start_offsets(self, *, with_copies: bool = True) -> "Checkpoint":
        moved = [log for log in self.logs.values() if _starts_inside_a_segment(log)]
        for log in moved if with_copies else ():
            log.mirror_log_start()
        return self._plan(LOG_START_CHECKPOINT, lambda log: log.log_start_offset, moved)

    def checkpoint_high_watermarks(self) -> None:
        self._write(self.plan_high_watermarks())

    def plan_high_watermarks(self) -> "Checkpoint":
        return self._plan(HIGH_WATERMARK_CHECKPOINT, lambda log: log.high_watermark)

    def cleaner_offset(self, topic_partition: TopicPartition) -> int | None:
        """Up to where a log was cleaned, as far as is known: without it, from its start."""
        return self._known_cleaner_offsets().get(topic_partition)

    def note_cleaner_offset(self, topic_partition: TopicPartition, offset: int | None) -> None:
        """A log was cleaned up to ``offset``; None forgets it. Durable when this returns."""
        if offset is not None or topic_partition in self._known_cleaner_offsets():
            with self._failing():
                self.plan_cleaner_offset(topic_partition, offset)()

    def plan_cleaner_offset(
        self, topic_partition: TopicPartition, offset: int | None
    ) -> Callable[[], None]:
        """The same but for the writing, which is what is returned: any thread may do it."""
        hosted = {*self.logs, *self.offline_logs}
        known = self._known_cleaner_offsets()
        offsets = {key: value for key, value in known.items() if key in hosted}
        offsets.pop(topic_partition, None)
        if offset is not None:
            offsets[topic_partition] = offset
        self._cleaner_offsets = offsets
        self._cleaner_changes += 1
        return self._write_cleaner_offsets

    def plan_cleaner_offsets(self) -> Callable[[], None]:
        """As before, to forget the logs that are not held any more."""
        known = self._known_cleaner_offsets()
        offsets = {key: known[key] for key in known if key in self.logs or key in self.offline_logs}
        if len(offsets) < len(known):
            self._cleaner_offsets = offsets
            self._cleaner_changes += 1
        return self._write_cleaner_offsets

    def _write_cleaner_offsets(self) -> None:
        """Write what has changed. If another thread is writing, it will write that too: nobody
        waits for a disk because somebody else does."""
        while self._cleaner_written < self._cleaner_changes:
            if not self._cleaner_guard.acquire(blocking=False):
                return
            try:
                change = self._cleaner_changes
                path = self._file(CLEANER_CHECKPOINT)
                write_offsets(self.files, path, self._known_cleaner_offsets())
                self._cleaner_written = change
            finally:
                self._cleaner_guard.release()

    def _known_cleaner_offsets(self) -> dict[TopicPartition, int]:
        if self._cleaner_offsets is None:
            try:
                path = self._file(CLEANER_CHECKPOINT)
                self._cleaner_offsets = read_offsets(self.files, path)
            except CorruptFileError:
                self._cleaner_offsets = {}
        return self._cleaner_offsets

    def _plan(
        self, name: str, offset: Callable[[Log], int], logs: Iterable[Log] | None = None
    ) -> "Checkpoint":
        chosen = self.logs.values() if logs is None else logs
        offsets = {log.topic_partition: offset(log) for log in chosen}
        offsets |= self._kept(name)
        order = self._order(name)
        return Checkpoint(self.files, self._file(name), offsets, order, order.next_number())

    def _order(self, name: str) -> WritingOrder:
        return self._orders.setdefault(name, WritingOrder())

    def _read(self, name: str) -> dict[TopicPartition, int]:
        offsets = read_offsets(self.files, self._file(name))
        self._order(name).keys = offsets.keys()
        return offsets

    def _write(self, checkpoint: "Checkpoint") -> None:
        with self._failing():
            checkpoint.write()

    def checkpoint_failed(self, error: DiskError) -> None:
        """On the owner's thread: a checkpoint could not be written."""
        if not isinstance(error, OutOfResourcesError):
            self.fail(str(error))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OutOfResourcesError:
            raise  # the old file still stands, and the next round tries again
        except DiskError as error:
            self.fail(str(error))
            raise

    def _kept(self, name: str) -> dict[TopicPartition, int]:
        """The entries of logs that could not be opened: a person may mend them yet."""
        if not self.offline_logs:
            return {}
        try:
            known = read_offsets(self.files, self._file(name))
        except CorruptFileError:
            return {}
        return {key: known[key] for key in self.offline_logs if key in known}


def acquire_all(directories: Sequence[LogDirectory]) -> None:
    """Take every directory before any of them is changed: what is refused leaves all as they
    were."""
    try:
        for_each_online(directories, LogDirectory.acquire)
    except LogDirectoryError:
        for directory in directories:
            directory.release()
        raise


def for_each_online(
    directories: Iterable[LogDirectory], step: Callable[[LogDirectory], None]
) -> None:
    """A directory that is somebody else's stops everything; one that is broken goes offline."""
    for directory in directories:
        if directory.is_online:
            try:
                step(directory)
            except LogDirectoryError:
                raise
            except StorageError as error:
                directory.fail(str(error))


def _starts_inside_a_segment(log: Log) -> bool:
    return log.log_start_offset > log.segments.first.base_offset
