"""Restoring a backup into an empty directory, so that a broker of ours or Apache Kafka opens it.

While it is being filled the directory holds a directory of its own, ``.stratalog-restoring``, which
no broker starts beside. It goes last, when everything else is on the disk. So a restore that was
interrupted is never taken for a log directory, and the next one begins again.
"""

import os
import uuid
from collections.abc import Callable
from contextlib import suppress

from stratalog.errors import DiskError
from stratalog.storage.backup.copying import BatchWalk, Progress, check_batches, read_checked
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import BackupSource, StoredFile
from stratalog.storage.backup.restore_plan import RestoredPartition, RestoredSegment, RestorePlan
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.checkpoint import (
    EpochEntry,
    parse_id,
    write_epochs,
    write_offsets,
    write_topic_id,
)
from stratalog.storage.commits.journal import CommitJournal, Committed
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.directory import Identity, LogDirectory
from stratalog.storage.files import FileSystem, remove_tree
from stratalog.storage.layout import (
    HIGH_WATERMARK_CHECKPOINT,
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    RESTORING_DIRECTORY,
    SNAPSHOT_SUFFIX,
    TopicPartition,
    replica_directory,
    segment_file,
)
from stratalog.topic_names import CLUSTER_METADATA_TOPIC


class DirectoryRestore:
    """One restore into ``log_dir``, which must be missing or empty."""

    def __init__(
        self,
        files: FileSystem,
        log_dir: str,
        store: BackupStore,
        plan: RestorePlan,
        *,
        progress: Progress = lambda _bytes: None,
    ) -> None:
        self._files = files
        self._log_dir = log_dir.rstrip("/") or "/"
        self._store = store
        self._plan = plan
        self._progress = progress

    def _in(self, name: str) -> str:
        return f"{self._log_dir}/{name}"

    def check(self) -> None:
        """Whether there is an empty directory with enough room, or a place for one."""
        found = self._files.stat(self._log_dir)
        if found is not None and not found.is_directory:
            raise BackupError(f"{self._log_dir} is not a directory")
        if found is not None and not self._is_unfinished:
            names = {each.name for each in self._files.list(self._log_dir)} - {LOCK_FILE}
            if names:
                raise BackupError(
                    f"{self._log_dir} is not empty: there is {min(names)}. A backup is restored "
                    "into an empty directory, or into empty topics of one that a broker knows"
                )
        above = self._log_dir if found is not None else os.path.dirname(self._log_dir) or "."
        free_bytes = self._files.free_bytes(above)
        if free_bytes < self._plan.size_bytes:
            raise BackupError(
                f"{self._plan.size_bytes} bytes do not fit {self._log_dir}, where {free_bytes} "
                "are free"
            )

    @property
    def _is_unfinished(self) -> bool:
        return self._files.exists(self._in(RESTORING_DIRECTORY))

    def run(self, finish: Callable[[], None] = lambda: None) -> None:
        """Restore all of it, or leave nothing. ``finish`` adds what others keep in a log directory,
        before that is complete."""
        self.check()
        is_new = not self._files.exists(self._log_dir)
        if is_new:
            self._files.make_directory(self._log_dir)
            self._files.sync_directory(os.path.dirname(os.path.abspath(self._log_dir)))
        # Whoever starts a broker on it meanwhile is told who has it.
        lock = self._files.lock(self._in(LOCK_FILE))
        try:
            self.check()  # somebody may have had it until now
            try:
                self._begin()
                self._fill()
                finish()
                self._files.sync_file_system(self._log_dir)
            except BaseException:
                with suppress(DiskError):
                    self._undo(is_new=is_new)
                raise
            self._files.remove_directory(self._in(RESTORING_DIRECTORY))
            self._files.sync_directory(self._log_dir)
        finally:
            lock.release()

    def _undo(self, *, is_new: bool) -> None:
        """The mark goes last. So does the lock, which is still held: of a directory that is taken
        away nobody else can have it."""
        self._clear()
        self._files.sync_directory(self._log_dir)
        if self._is_unfinished:
            self._files.remove_directory(self._in(RESTORING_DIRECTORY))
        if is_new:
            self._files.unlink(self._in(LOCK_FILE), missing_ok=True)
            self._files.remove_directory(self._log_dir)

    def _begin(self) -> None:
        if self._is_unfinished:
            self._clear()
        else:
            self._files.make_directory(self._in(RESTORING_DIRECTORY))
        self._files.sync_directory(self._log_dir)

    def _clear(self) -> None:
        for each in self._files.list(self._log_dir):
            if each.name in (LOCK_FILE, RESTORING_DIRECTORY):
                continue
            if each.is_directory and not each.is_link:
                remove_tree(self._files, self._in(each.name))
            else:
                self._files.unlink(self._in(each.name), missing_ok=True)

    # --- contents -----------------------------------------------------------------------------

    def _fill(self) -> None:
        ids = {topic.name: topic.topic_id for topic in self._plan.topics}
        for each in self._plan.partitions:
            self._partition(each, ids[each.topic_partition.topic])
        partitions = self._plan.partitions
        ends = {each.topic_partition: each.end_offset for each in partitions}
        starts = {
            each.topic_partition: each.log_start_offset
            for each in partitions
            if each.segments and each.log_start_offset > each.segments[0].stored.base_offset
        }
        # All of it is on the disk before the directory can be opened: nothing is to be recovered.
        write_offsets(self._files, self._in(RECOVERY_POINT_CHECKPOINT), ends)
        write_offsets(self._files, self._in(HIGH_WATERMARK_CHECKPOINT), ends)
        write_offsets(self._files, self._in(LOG_START_CHECKPOINT), starts)
        if self._plan.is_all and self._plan.manifest.controller:
            self._controller()
        self._app_versions()
        self._identity(self._plan.manifest.source)

    def _app_versions(self) -> None:
        """What of them would be committed twice otherwise: only what has all its records here."""
        known = [
            Committed(
                manifest_id=each.commit_id,
                app=AppVersion(name=each.name, version=each.version),
                at_ms=each.at_ms,
                offsets={
                    TopicPartition(topic, partition): (first_offset, end_offset)
                    for topic, partition, first_offset, end_offset in each.offsets
                },
            )
            for each in self._plan.restored_app_versions
        ]
        if known:
            CommitJournal(self._files, self._log_dir).begin(known)

    def _identity(self, source: BackupSource) -> None:
        if source.node_id < 0:
            return  # whoever opens it first says whose it is
        directory_id = uuid.uuid4()  # older releases of Kafka gave none
        if source.directory_id:
            directory_id = parse_id(source.directory_id)
        identity = Identity(source.cluster_id, source.node_id, directory_id)
        LogDirectory(self._files, self._log_dir).assign_identity(identity)

    def _controller(self) -> None:
        directory = self._in(f"{CLUSTER_METADATA_TOPIC}-0")
        self._files.make_directory(directory)
        for name, file in self._plan.manifest.controller.items():
            self._copy(file, f"{directory}/{name}")

    def _partition(self, partition: RestoredPartition, topic_id: str) -> None:
        directory = self._in(replica_directory(partition.topic_partition))
        self._files.make_directory(directory)
        for segment in partition.segments:
            self._segment(directory, segment)
        if partition.needs_end_segment:
            path = segment_file(directory, partition.end_offset, LOG_SUFFIX)
            self._files.open(path, create=True).close()
        for offset, file in partition.snapshots.items():
            self._copy(file, segment_file(directory, offset, SNAPSHOT_SUFFIX))
        epochs = [EpochEntry(*each) for each in partition.epochs]
        write_epochs(self._files, f"{directory}/{LEADER_EPOCH_CHECKPOINT}", epochs, is_synced=False)
        if topic_id:
            path = f"{directory}/{PARTITION_METADATA}"
            write_topic_id(self._files, path, parse_id(topic_id), is_synced=False)

    def _segment(self, directory: str, segment: RestoredSegment) -> None:
        stored = segment.stored
        path = segment_file(directory, stored.base_offset, LOG_SUFFIX)
        walk = BatchWalk(stored.base_offset)
        self._copy(stored.log, path, segment.size_bytes, walk.feed)
        if not stored.damage:
            check_batches(self._store, stored, walk)
        if not segment.is_whole:
            return  # its indexes speak of more; they are built again when the log is opened
        for suffix in INDEX_SUFFIXES:
            if suffix in stored.files:
                index = segment_file(directory, stored.base_offset, suffix)
                self._copy(stored.files[suffix], index)

    def _copy(
        self,
        stored: StoredFile,
        path: str,
        size_bytes: int | None = None,
        look: Callable[[memoryview], object] = lambda _piece: None,
    ) -> None:
        """Copy a file of the store, or its beginning; all of it is read and summed. ``look`` is
        shown what is copied."""
        limit = stored.size_bytes if size_bytes is None else size_bytes
        file = self._files.open(path, create=True)
        position = 0

        def write(piece: memoryview) -> None:
            nonlocal position
            kept = piece[: max(limit - position, 0)]
            if len(kept):
                file.write_at(position, [kept])
                look(kept)
            position += len(kept)
            self._progress(len(kept))

        try:
            read_checked(self._store, stored, write)
        finally:
            file.close()
