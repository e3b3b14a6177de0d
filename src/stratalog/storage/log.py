"""One replica: an ordered run of segments, appended at the end and read anywhere.

Rules that always hold:

* log start offset <= last stable offset <= high watermark <= log end offset
* log start offset <= recovery point <= log end offset; everything below the recovery point has
  been flushed
* with ``log.flush.on.ack`` the high watermark never passes the recovery point

A log is confined to one thread, its owner's. Nothing here locks.
"""

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import (
    DiskError,
    DiskFullError,
    LogClosedError,
    LogDamagedError,
    OffsetOutOfRangeError,
    OutOfResourcesError,
    UnexpectedAppendOffsetError,
)
from stratalog.records import AppendOrigin, ProducedBatches, ProduceRules, validate_produced
from stratalog.storage import truncation
from stratalog.storage.appending import (
    Append,
    LogAppendInfo,
    ValidatedRecords,
    follower_append,
    produce_rules,
)
from stratalog.storage.checkpoint import read_topic_id, write_topic_id
from stratalog.storage.commits.errors import AppendsPausedError
from stratalog.storage.context import DiskState, LogContext
from stratalog.storage.deletion import PendingDeletes
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.files import File
from stratalog.storage.flushing import FlushTask
from stratalog.storage.handles import HandleCache
from stratalog.storage.held_files import UNKNOWN_END
from stratalog.storage.layout import (
    DELETED_SUFFIX,
    PARTITION_METADATA,
    TopicPartition,
    parse_replica_directory,
)
from stratalog.storage.ours import OwnFiles
from stratalog.storage.producers import ProducerStates
from stratalog.storage.reading import FetchedData, Isolation, read_log
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.scanning import RecoveryReport
from stratalog.storage.segment import Segment
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import Snapshots
from stratalog.storage.verification import VerificationGuard
from stratalog.storage.writing import write


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


class Log:
    """See the top of this file. Opened by ``recovery.open_log``."""

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
        self.pending_deletes = PendingDeletes(context.files)
        self.own = loaded.own
        self.recovery_report = loaded.report
        self._closed = False
        self._failure: DiskError | None = None
        self._truncations = 0
        self._paused = ""  # why nothing is appended for now
        # Segments made, and made durable in their directory. Whoever opens a log is not told
        # whether the names it found are durable, so the first flush sees to it.
        self._names, self._synced_names = 1, 0
        self._mirrored_start = loaded.mirrored_start
        self._rules = produce_rules(config)
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

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """Where a reader of committed data stops."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def configure(self, config: TopicConfig) -> None:
        """Take changed settings; they count from the next operation on."""
        self.config = config
        self.is_held = False
        self._rules = produce_rules(config)
        for segment in self.segments:
            segment.configure(config)

    def assign_leader_epoch(self, epoch: int, *, is_synced: bool = True) -> None:
        """This replica leads from its log end on; durable before anything is appended, for which
        with ``is_synced=False`` the caller syncs the file system."""
        self.epochs.assign(epoch, self.log_end_offset, is_synced=is_synced)

    # --- appending ----------------------------------------------------------------------------

    @property
    def produce_rules(self) -> ProduceRules:
        """What is asked of produced batches: who checks them ahead does so by these."""
        return self._rules

    def append_as_leader(
        self,
        records: Buffer | ValidatedRecords,
        *,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Check what a producer sent, give it offsets and write it; durable after ``flush``.

        ``verification_guard`` is what ``start_verification`` gave for a transaction's first batch.
        """
        self.check_appendable()
        now_ms = self.context.clock.now_ms()
        produced = self._validate(records, leader_epoch, now_ms, origin)
        return write(
            self,
            Append(
                produced.headers,
                produced.buffers,
                produced.size_bytes,
                produced.max_timestamp_ms,
                now_ms,
                origin,
                produced.log_append_time_ms,
                produced.min_timestamp_ms,
            ),
            verification_guard,
        )

    def _validate(
        self,
        records: Buffer | ValidatedRecords,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin,
    ) -> ProducedBatches:
        if isinstance(records, ValidatedRecords):
            if records.rules is self._rules:
                records.produced.move(self.log_end_offset, leader_epoch)
                return records.produced
            records = records.records  # the rules have changed meanwhile
        return validate_produced(
            records,
            self._rules,
            first_offset=self.log_end_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
        )

    def start_verification(
        self,
        producer_id: int,
        *,
        sequence: int,
        epoch: int,
        supports_epoch_bump: bool = False,
    ) -> VerificationGuard | None:
        """Before the coordinator is asked about a transaction; None if it is open here already,
        so that nobody needs to be asked."""
        if self.producers.has_ongoing_transaction(producer_id, epoch):
            return None
        return self.producers.verifications.start(
            producer_id,
            sequence=sequence,
            epoch=epoch,
            now_ms=self.context.clock.now_ms(),
            supports_epoch_bump=supports_epoch_bump,
        )

    def append_as_follower(self, records: Buffer, *, leader_epoch: int = -1) -> LogAppendInfo:
        """Write batches exactly as the leader sent them."""
        self.check_appendable()
        append = follower_append(
            records, leader_epoch=leader_epoch, now_ms=self.context.clock.now_ms()
        )
        if append is None:
            end = self.log_end_offset
            return LogAppendInfo(end, end - 1, -1, -1, self.log_start_offset, 0)
        first = append.batches[0]
        lowest = first.base_offset if first.magic >= 2 else first.last_offset
        if lowest < self.log_end_offset:
            raise UnexpectedAppendOffsetError(lowest, self.log_end_offset)
        return write(self, append)

    def pause_appends(self, reason: str) -> None:
        """Until ``resume_appends`` the log ends where it does, in the segment it does: appends,
        rolls and truncations are refused, and retention passes it by."""
        assert not self._paused, f"{self.topic_partition} is paused already: {self._paused}"
        self._paused = reason

    def resume_appends(self) -> None:
        self._paused = ""

    @property
    def is_paused(self) -> bool:
        return bool(self._paused)

    def _check_unpaused(self) -> None:
        if self._paused:
            raise AppendsPausedError(
                f"{self.topic_partition} stays as it is for a moment: {self._paused}; try again"
            )

    def check_appendable(self) -> None:
        """Raise why the log takes no appends, if it takes none."""
        self._check_unpaused()
        if self._closed or self._failure is not None:
            raise LogClosedError(f"{self.topic_partition} is closed: {self._failure or 'closed'}")
        if self.is_damaged:
            raise LogDamagedError(
                f"{self.topic_partition} has damage that recovery may not cut away; "
                f"see 'stratalog log verify' and 'stratalog log repair' for {self.directory}"
            )
        directory = self.context.directory_state
        if directory.state is DiskState.FULL:
            raise DiskFullError("append", self.directory, 0, directory.reason)
        if directory.state is DiskState.OFFLINE:
            raise LogClosedError(f"{self.topic_partition} is offline: {directory.reason}")

    # --- rolling ------------------------------------------------------------------------------

    def roll(
        self,
        reason: RollReason | None = None,
        *,
        expected_base_offset: int = 0,
    ) -> Segment:
        """Turn to a new segment. The old one is left trimmed, its flush is due."""
        self._check_unpaused()
        reason = reason or RollReason(RollCause.REQUESTED, "asked for")
        base_offset = max(expected_base_offset, self.log_end_offset)
        old = self.segments.active
        if old.base_offset == base_offset:
            # Only an empty active segment can have that base: its index was too small to begin.
            assert old.size_bytes == 0, f"{old} holds batches and {base_offset} is its base"
            self.pending_deletes.add(old.mark_deleted(), self.delete_due_ms())
        else:
            assert base_offset > old.base_offset, f"roll to {base_offset} behind {old}"
            # What follows in the new segment must not outlive the end of the old one: for who
            # is told that acknowledged is durable, never; for the others, soon.
            if self.context.flush_on_ack or not self.context.flush_later(self):
                self.flush()
            old.become_inactive()
        segment = self.new_segment(base_offset)
        self.segments.add(segment)
        self.own.note_roll(base_offset, reason, self.context.clock.now_ms())
        self.producers.map_end_offset = base_offset
        self.maybe_snapshot(durable=False)
        return segment

    def new_segment(self, base_offset: int) -> Segment:
        self._names += 1
        return Segment.create(
            self.context.files,
            self.directory,
            base_offset,
            self.config,
            self.context.handles,
            now_ms=self.context.clock.now_ms(),
        )

    def maybe_snapshot(self, *, durable: bool) -> None:
        """Write the producers' state, if anything has been appended since it was last written."""
        end = self.producers.map_end_offset
        if end > self.producers.last_snapshot_offset:
            self.snapshots.write(end, self.producers, durable=durable)
            self.producers.last_snapshot_offset = end

    # --- reading ------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        *,
        max_bytes: int,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        min_one_message: bool = True,
    ) -> FetchedData:
        """Batches from the one that holds ``start_offset`` on, as a slice of a file."""
        if self._closed:
            raise LogClosedError(f"{self.topic_partition} is closed")
        return read_log(
            self,
            start_offset,
            max_bytes=max_bytes,
            isolation=isolation,
            min_one_message=min_one_message,
        )

    # --- watermarks ---------------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark as far as the rules allow; returns what it is now."""
        highest = self.log_end_offset
        if self.context.flush_on_ack:
            highest = min(highest, self.recovery_point)
        self.high_watermark = max(self.log_start_offset, min(offset, highest))
        self.producers.on_high_watermark(self.high_watermark)
        return self.high_watermark

    def raise_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up, never down; whether it moved."""
        before = self.high_watermark
        return self.update_high_watermark(max(offset, before)) > before

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

    def start_at(self, offset: int) -> None:
        """What lies below ``offset`` does not count any more."""
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset(offset)

    def mirror_log_start(self) -> None:
        """Keep a copy of the log start beside the log; best effort, the checkpoint counts."""
        if self._mirrored_start != self.log_start_offset:
            with suppress(DiskError):
                self.own.note_log_start(self.log_start_offset)
                self._mirrored_start = self.log_start_offset

    # --- flushing -----------------------------------------------------------------------------

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

    def plan_flush(self, *, include_empty_active: bool = False) -> FlushTask | None:
        """What to sync so that everything appended so far is durable; None if nothing is due."""
        end_offset = self.log_end_offset + (1 if include_empty_active else 0)
        if end_offset <= self.recovery_point and not self.snapshots.is_sync_due:
            return None
        dirty = [
            segment
            for segment in self.segments.from_floor(self.recovery_point)
            if segment.base_offset < end_offset
        ]
        targets: list[File] = []
        for segment in dirty:
            targets.extend(segment.sync_targets())
        return FlushTask(
            self.context.files,
            self.directory,
            self.log_end_offset,
            self._truncations,
            self._names,
            targets,
            self.snapshots.take_unsynced(),
            sync_directory=self._names > self._synced_names,
        )

    def complete_flush(self, task: FlushTask) -> None:
        """Note that ``task`` has run."""
        # If the log was cut while the task ran on another thread, what stands at those offsets
        # now may not be what was synced; the next flush will say.
        if task.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, task.end_offset)
            self._synced_names = max(self._synced_names, task.names)
            self.last_flush_ms = self.context.clock.now_ms()

    def flush(self, *, include_empty_active: bool = False) -> None:
        """Make everything appended so far durable."""
        if self._failure is not None:
            raise LogClosedError(f"{self.topic_partition} has failed: {self._failure}")
        task = self.plan_flush(include_empty_active=include_empty_active)
        if task is None:
            return
        try:
            task.run()
        except DiskError as error:
            if isinstance(error, OutOfResourcesError) and error.operation != "fsync":
                raise
            # A sync that failed may have dropped the pages it could not write: neither trying
            # again nor reading them back would prove anything.
            self.fail(error)
            raise
        self.complete_flush(task)

    def fail(self, error: DiskError) -> None:
        """No append and no flush from now on; what is below the recovery point can be read.

        The disk is not to be trusted any more, so the whole directory goes offline with it.
        """
        self._failure = self._failure or error
        directory = self.context.directory_state
        if directory.state is not DiskState.OFFLINE:
            directory.state = DiskState.OFFLINE
            directory.reason = str(error)

    @property
    def failure(self) -> DiskError | None:
        return self._failure

    # --- shrinking ----------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Cut the log so that it ends at ``offset``; whether anything was cut."""
        assert offset >= 0, f"truncation to {offset}"
        self._check_unpaused()
        return truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(
        self, offset: int, *, log_start_offset: int | None = None
    ) -> None:
        """Drop everything; the log goes on, empty, at ``offset``."""
        self._check_unpaused()
        start_offset = offset if log_start_offset is None else log_start_offset
        truncation.truncate_fully_and_start_at(self, offset, log_start_offset=start_offset)

    def delete_segments(self, doomed: Sequence[Segment]) -> None:
        """Remove whole segments from the log's start: files are renamed now, unlinked later."""
        self._check_unpaused()
        truncation.delete_segments(self, doomed)

    def end_at(self, offset: int) -> None:
        """Of truncation: what lies at or above ``offset`` does not count any more."""
        self._lower_recovery_point(offset)
        self._lower_log_start(offset)
        if self._mirrored_start > offset:
            self.own.forget_log_start()
            self._mirrored_start = 0
        self._truncations += 1
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)

    def settle_damage(self) -> None:
        """Damage that was cut away stands in nobody's way any more."""
        if self.is_damaged and not any(segment.damage for segment in self.segments):
            self.is_damaged = False
            self.own.forget_damage()

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

    def drop(self, segment: Segment) -> None:
        """Take a segment out of the log; its files are renamed now and unlinked later."""
        end_offset = self.end_of(segment)
        self.segments.remove(segment)
        self.retire(segment, end_offset)
        self.drop_snapshot(segment.base_offset)

    def end_of(self, segment: Segment) -> int:
        """Where the offsets that a segment owns end, by the base of the next."""
        higher = self.segments.higher(segment)
        return UNKNOWN_END if higher is None else higher.base_offset

    def retire(self, segment: Segment, end_offset: int) -> None:
        """Rename the files of a segment that leaves the log: to be unlinked later, or to be kept
        for readers that have a lease."""
        base_offset = segment.base_offset
        if self.context.leases is not None:
            self.context.leases.keep(self.topic_partition, self.directory, base_offset, end_offset)
        self.pending_deletes.add(
            segment.mark_deleted(),
            self.delete_due_ms(),
            start_offset=base_offset,
            end_offset=end_offset,
        )

    def drop_snapshot(self, offset: int) -> None:
        """The same for the producers' state at ``offset``, if it was written."""
        if self.snapshots.forget(offset):
            path = self.snapshots.path(offset)
            self.context.files.rename(path, path + DELETED_SUFFIX)
            self.pending_deletes.add([path + DELETED_SUFFIX], self.delete_due_ms())

    def run_deletes(self, now_ms: int) -> None:
        """Unlink the files whose time has come."""
        self.pending_deletes.run(now_ms)

    def delete_due_ms(self) -> int:
        return self.context.clock.now_ms() + self.config.file_delete_delay_ms

    # --- closing ------------------------------------------------------------------------------

    def hand_over(self, handles: HandleCache) -> None:
        """Let go of all files; from now on they are counted by ``handles``."""
        self.context.handles = handles
        for segment in self.segments:
            segment.hand_over(handles)

    def close(self) -> None:
        """Flush and close cleanly: the next start need not recover this log."""
        if self._closed:
            return
        if self._failure is not None or self.is_damaged:
            self.abandon()
            return
        self.flush(include_empty_active=True)
        self.maybe_snapshot(durable=True)
        self.epochs.flush()
        self.segments.active.close()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the files without flushing: the disk has failed, or the log is deleted."""
        self._closed = True
        for segment in self.segments:
            segment.discard()

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def needs_recovery(self) -> bool:
        """Whether the next start has to read this log again."""
        return self.is_damaged or self._failure is not None or not self._closed
