"""What one replica holds and knows of itself: where it begins and ends, and what of it is durable.

Rules that always hold:

* log start offset <= last stable offset <= high watermark <= log end offset
* log start offset <= recovery point <= log end offset; everything below the recovery point has
  been flushed
* with ``log.flush.on.ack`` the high watermark never passes the recovery point

Offsets are moved here and nowhere else; ``Log`` moves batches. Confined to one thread, the owner's.
"""

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass

from stratalog.config import TopicConfig
from stratalog.errors import DiskError, LogClosedError, OffsetOutOfRangeError
from stratalog.storage.checkpoint import read_topic_id, write_topic_id
from stratalog.storage.context import DiskState, LogContext
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.files import File
from stratalog.storage.flushing import FlushTask
from stratalog.storage.kept_cuts import KeptCut
from stratalog.storage.layout import PARTITION_METADATA, TopicPartition, parse_replica_directory
from stratalog.storage.ours import OwnFiles
from stratalog.storage.producers import ProducerStates
from stratalog.storage.scanning import RecoveryReport
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import Snapshots


@dataclass(slots=True)
class LoadedLog:
    """What opening a directory found; ``recovery.load_log`` makes it."""

    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: Snapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    is_damaged: bool
    own: OwnFiles
    mirrored_start: int
    report: RecoveryReport
    recovery_cuts: tuple[KeptCut, ...] = ()


class LogState:
    """See the top of this file; ``Log`` is the only one that there is."""

    def __init__(
        self, directory: str, config: TopicConfig, context: LogContext, loaded: LoadedLog
    ) -> None:
        self.directory = directory
        self.topic_partition: TopicPartition = parse_replica_directory(
            os.path.basename(directory)
        ).topic_partition
        self.config = config
        self.context = context
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = loaded.log_start_offset
        self.is_damaged = loaded.is_damaged
        # The topic's configs are unknown: neither retention nor cleaning touches this log.
        self.is_held = False
        self.last_flush_ms = context.clock.now_ms()
        self.own = loaded.own
        self.recovery_report = loaded.report
        # What recovery has cut off, now or lately, and keeps aside.
        self.recovery_cuts = loaded.recovery_cuts
        self._failure: DiskError | None = None
        self._truncations = 0
        # Segments made, and made durable in their directory. Whoever opens a log is not told
        # whether the names it found are durable, so the first flush sees to it.
        self._names, self._synced_names = 1, 0
        self._mirrored_start = loaded.mirrored_start
        # Of the last truncation: offsets up to the second have no batches, from the first on maybe.
        self._hole = -1, -1
        self._durable_start = loaded.log_start_offset
        self._topic_id = read_topic_id(context.files, self._metadata_path)

    def __repr__(self) -> str:
        return (
            f"<Log {self.topic_partition} [{self.log_start_offset}, {self.log_end_offset}) "
            f"hw={self.high_watermark} segments={len(self.segments)}>"
        )

    @property
    def _metadata_path(self) -> str:
        return f"{self.directory}/{PARTITION_METADATA}"

    @property
    def topic_id(self) -> uuid.UUID | None:
        return self._topic_id

    def assign_topic_id(self, topic_id: uuid.UUID, *, is_synced: bool = True) -> None:
        """Durable when it returns, and so before the first append; but for ``is_synced=False``,
        after which the caller syncs the file system."""
        write_topic_id(self.context.files, self._metadata_path, topic_id, is_synced=is_synced)
        self._topic_id = topic_id

    def assign_leader_epoch(self, epoch: int, *, is_synced: bool = True) -> None:
        """This replica leads from its log end on; durable before anything is appended, for which
        with ``is_synced=False`` the caller syncs the file system."""
        self.epochs.assign(epoch, self.log_end_offset, is_synced=is_synced)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def failure(self) -> DiskError | None:
        return self._failure

    def fail(self, error: DiskError) -> None:
        """No append and no flush from now on; what is below the recovery point can be read.

        The disk is not to be trusted any more, so the whole directory goes offline with it.
        """
        self._failure = self._failure or error
        directory = self.context.directory_state
        if directory.state is not DiskState.OFFLINE:
            directory.state = DiskState.OFFLINE
            directory.reason = str(error)

    # --- watermarks -----------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Where a reader of committed data stops."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark as far as the rules allow; returns what it is now."""
        self.high_watermark = max(self.log_start_offset, self._allowed(offset))
        self.producers.on_high_watermark(self.high_watermark)
        return self.high_watermark

    def raise_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up, never down; whether it moved."""
        offset = self._allowed(offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.on_high_watermark(offset)
        return True

    def _allowed(self, high_watermark: int) -> int:
        highest = self.log_end_offset
        if self.recovery_point < highest and self.context.flush_on_ack:
            highest = self.recovery_point
        return high_watermark if high_watermark < highest else highest

    def raise_log_start_offset(self, offset: int) -> bool:
        """Forget everything below ``offset``, at most up to the high watermark.

        Files go later, when a retention pass finds whole segments below it.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(offset, self.log_start_offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        if offset > self.recovery_point:
            # Its checkpoint must not outlive the records it stands behind.
            self.flush()
        self.start_at(offset)
        return True

    def delete_records(self, offset: int) -> int:
        """DeleteRecords: raise the log start to ``offset``, -1 for the high watermark."""
        target = self.high_watermark if offset == -1 else offset
        if target < 0:
            raise OffsetOutOfRangeError(target, self.log_start_offset, self.high_watermark)
        self.raise_log_start_offset(target)
        return self.log_start_offset

    @property
    def durable_start_offset(self) -> int:
        """The log start that no crash lowers: DeleteRecords is answered when it is reached."""
        durable = max(self._durable_start, self.segments.first.base_offset)
        return min(durable, self.log_start_offset)

    def note_durable_start(self, offset: int, truncations: int) -> None:
        """A log start was checkpointed, planned when the log had been cut ``truncations`` times."""
        if truncations == self._truncations:
            self._durable_start = max(self._durable_start, offset)

    def keep_log_start(self) -> None:
        """Make the log start durable, and wait for it."""
        if self.durable_start_offset < self.log_start_offset:
            self.context.checkpoint_log_start_offsets()

    def start_at(self, offset: int) -> None:
        """What lies below ``offset`` does not count any more."""
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset(offset)

    def end_at(self, offset: int, *, batches_end_by: int | None = None) -> None:
        """Truncation: offsets at or above ``offset`` do not count any more. The batches may end
        before it, but not before ``batches_end_by``."""
        self._hole = offset if batches_end_by is None else batches_end_by, offset
        self._lower_recovery_point(offset)
        self._lower_log_start(offset)
        if self._mirrored_start > offset:
            self.own.forget_log_start()
            self._mirrored_start = 0
        self._durable_start = min(self._durable_start, offset)
        self._truncations += 1
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)

    def _lower_log_start(self, offset: int) -> None:
        before = self.log_start_offset
        if before > offset:
            self.log_start_offset = offset
            try:
                self.context.checkpoint_log_start_offsets()
            except DiskError:
                self.log_start_offset = before
                raise

    def _lower_recovery_point(self, offset: int) -> None:
        before = self.recovery_point
        if before > offset:
            self.recovery_point = offset
            try:
                self.context.checkpoint_recovery_points()
            except DiskError:
                self.recovery_point = before
                raise

    def mirror_log_start(self) -> None:
        """Keep a copy of the log start beside the log; best effort, the checkpoint counts."""
        if self._mirrored_start != self.log_start_offset:
            with suppress(DiskError):
                self.own.note_log_start(self.log_start_offset)
                self._mirrored_start = self.log_start_offset

    @property
    def promised_recovery_point(self) -> int:
        """What the checkpoint says: there are batches up to here. A recovery point where the log
        was cut, inside a batch, would look like a loss after a crash."""
        start, end = self._hole
        promised = self.recovery_point
        return min(promised, start) if promised == end else promised

    # --- flushing -------------------------------------------------------------------------------

    @property
    def truncation_count(self) -> int:
        """How often the log was cut: what was read of it before may not hold any more."""
        return self._truncations

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    @property
    def needs_flush(self) -> bool:
        return self.unflushed_messages > 0 and self._failure is None

    def is_flush_due(self, now_ms: int) -> bool:
        """By ``flush.ms``: whether the last flush is too long ago."""
        return self.unflushed_messages > 0 and now_ms - self.last_flush_ms >= self.config.flush_ms

    def plan_flush(
        self,
        *,
        include_empty_active: bool = False,
        indexes_may_lag: bool = False,
        is_synced_at_once: bool = False,
    ) -> FlushTask | None:
        """What to sync so that everything appended so far is durable; None if nothing is due. No
        file is opened for it where the caller syncs the file system instead."""
        end_offset = self.log_end_offset + (1 if include_empty_active else 0)
        if end_offset <= self.recovery_point and not self.snapshots.is_sync_due:
            return None
        dirty = [
            segment
            for segment in self.segments.from_floor(self.recovery_point)
            if segment.base_offset < end_offset
        ]
        targets: list[File] = []
        for segment in dirty if not is_synced_at_once else ():
            targets.extend(segment.sync_targets(indexes_may_lag=indexes_may_lag))
        return FlushTask(
            self.context.files,
            self.directory,
            self.log_end_offset,
            self._truncations,
            self._names,
            targets,
            self.snapshots.take_unsynced(),
            sync_directory=self._names > self._synced_names,
            syncs=self.context.directory_state.syncs,
        )

    def complete_flush(self, task: FlushTask) -> None:
        """Note that ``task`` has run."""
        # If the log was cut while the task ran on another thread, what stands at those offsets
        # now may not be what was synced; the next flush will say. If it has failed, another sync
        # was told of bytes that this one has not written either.
        if task.truncations == self._truncations and self._failure is None:
            self.recovery_point = max(self.recovery_point, task.end_offset)
            self._synced_names = max(self._synced_names, task.names)
            self.last_flush_ms = self.context.clock.now_ms()

    def plan_again(self, task: FlushTask) -> None:
        """``task`` could not run, and nothing is in doubt: the next flush has all of it to do."""
        self.snapshots.sync_again(task.snapshot_paths)

    def flush(self, *, include_empty_active: bool = False) -> None:
        """Make everything appended so far durable."""
        if self._failure is not None:
            raise LogClosedError(f"{self.topic_partition} has failed: {self._failure}")
        task = self.plan_flush(include_empty_active=include_empty_active)
        if task is None:
            return
        try:
            task.run()
            # Another thread may be flushing too, by the same open files.
            task.syncs.refuse_any(task.directory)
        except DiskError as error:
            if error.is_passing:
                self.plan_again(task)
                raise
            # A sync that failed may have dropped the pages it could not write: neither trying
            # again nor reading them back would prove anything.
            self.fail(error)
            raise
        self.complete_flush(task)
