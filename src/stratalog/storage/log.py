"""One replica: an ordered run of segments, appended at the end and read anywhere.

Its offsets, what they mean and what always holds of them are in ``log_state``.

A log is confined to one thread, its owner's. Nothing here locks.
"""

from collections.abc import Sequence

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import (
    DiskError,
    DiskFullError,
    LogClosedError,
    LogDamagedError,
    UnexpectedAppendOffsetError,
)
from stratalog.records import AppendOrigin, ProduceRules, validate_produced
from stratalog.storage import truncation
from stratalog.storage.appending import (
    LogAppendInfo,
    ValidatedRecords,
    followed_batches,
    produce_rules,
)
from stratalog.storage.commits.errors import AppendsPausedError
from stratalog.storage.context import DiskState, LogContext
from stratalog.storage.deletion import FOREVER_MS, PendingDeletes
from stratalog.storage.handles import HandleCache
from stratalog.storage.held_files import UNKNOWN_END
from stratalog.storage.janitor import Janitor
from stratalog.storage.kept_cuts import KeptCuts
from stratalog.storage.layout import (
    DELETED_SUFFIX,
)
from stratalog.storage.log_state import LoadedLog, LogState
from stratalog.storage.reading import FetchedData, Isolation, read_log
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.segment import Segment
from stratalog.storage.verification import VerificationGuard
from stratalog.storage.writing import write


class Log(LogState):
    """See the top of this file. Opened by ``recovery.open_log``."""

    def __init__(
        self, directory: str, config: TopicConfig, context: LogContext, loaded: LoadedLog
    ) -> None:
        super().__init__(directory, config, context, loaded)
        with_waste = context.directory_state.with_waste
        self.pending_deletes = PendingDeletes(context.files, self.topic_partition, with_waste)
        if self.recovery_cuts:
            with_waste.add(self.topic_partition)
        self._closed = False
        self._paused = ""  # why nothing is appended for now
        # What is asked of produced batches: who checks them ahead does so by these.
        self.produce_rules: ProduceRules = produce_rules(config)

    def configure(self, config: TopicConfig) -> None:
        """Take changed settings; they count from the next operation on."""
        self.config = config
        self.is_held = False
        self.produce_rules = produce_rules(config)
        for segment in self.segments:
            segment.configure(config)

    # --- appending ----------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Buffer | ValidatedRecords,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Check what a producer sent, give it offsets and write it; durable after ``flush``.

        ``verification_guard`` is what ``start_verification`` gave for a transaction's first batch.
        """
        assert origin is not AppendOrigin.REPLICATION, "a follower takes batches as they are"
        self.check_appendable()
        now_ms = self.context.clock.now_ms()
        if isinstance(records, ValidatedRecords) and records.rules is self.produce_rules:
            produced = records.produced
            produced.move(self.log_end_offset, leader_epoch)
        else:
            produced = validate_produced(
                # With those that were checked by other rules it begins anew.
                records.records if isinstance(records, ValidatedRecords) else records,
                self.produce_rules,
                self.log_end_offset,
                leader_epoch,
                now_ms,
                origin is AppendOrigin.CLIENT,
            )
        return write(self, produced, now_ms, origin, verification_guard)

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
        batches = followed_batches(records, leader_epoch=leader_epoch)
        if batches is None:
            end = self.log_end_offset
            return LogAppendInfo(end, end - 1, -1, -1, self.log_start_offset, 0)
        first = batches.headers[0]
        lowest = first.base_offset if first.magic >= 2 else first.last_offset
        if lowest < self.log_end_offset:
            raise UnexpectedAppendOffsetError(lowest, self.log_end_offset)
        now_ms = self.context.clock.now_ms()
        return write(self, batches, now_ms, AppendOrigin.REPLICATION)

    def pause_appends(self, reason: str) -> None:
        """Until ``resume_appends`` the log ends where it does, in the segment it does: appends,
        rolls and truncations are refused, and retention passes it by."""
        assert not self._paused, f"{self.topic_partition} is paused already: {self._paused}"
        self._paused = reason

    def resume_appends(self) -> None:
        self._paused = ""

    @property
    def is_paused(self) -> bool:
        return self._paused != ""

    def _check_unpaused(self) -> None:
        if self._paused:
            raise AppendsPausedError(
                f"{self.topic_partition} stays as it is for a moment: {self._paused}; try again"
            )

    def check_appendable(self) -> None:
        """Raise why the log takes no appends, if it takes none."""
        directory = self.context.directory_state
        is_refused = self._paused or self._closed or self._failure is not None or self.is_damaged
        if not is_refused and directory.state is DiskState.ONLINE:
            return
        self._check_unpaused()
        if self._closed or self._failure is not None:
            raise LogClosedError(f"{self.topic_partition} is closed: {self._failure or 'closed'}")
        if self.is_damaged:
            raise LogDamagedError(
                f"{self.topic_partition} has damage that recovery may not cut away; "
                f"see 'stratalog log verify' and 'stratalog log repair' for {self.directory}"
            )
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

    def settle_damage(self) -> None:
        """Damage that was cut away stands in nobody's way any more."""
        if self.is_damaged and not any(segment.damage for segment in self.segments):
            self.is_damaged = False
            self.own.forget_damage()

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

    @property
    def has_waste(self) -> bool:
        return self.pending_deletes.is_waiting or bool(self.recovery_cuts)

    def remove_due(self, janitor: Janitor, now_ms: int, *, is_last: bool = False) -> None:
        """Let ``janitor`` remove the files whose time has come, or with ``is_last`` whatever was
        deleted."""
        due = self.pending_deletes.take_due(FOREVER_MS if is_last else now_ms)
        janitor.unlink(due, self.not_unlinked)
        kept = tuple(each for each in self.recovery_cuts if each.kept_until_ms > now_ms)
        if len(kept) < len(self.recovery_cuts):
            self.recovery_cuts = kept
            cuts = KeptCuts(self.context.files, self.directory)
            # What is left over is found by the next start.
            janitor.write(lambda: cuts.remove_due(now_ms), lambda _error: None)

    def not_unlinked(self, error: DiskError) -> None:
        """A deleted file is still there. What the system has run out of comes back."""
        if error.is_passing:
            self.pending_deletes.add([error.path], self.context.clock.now_ms())
        else:
            self.fail(error)

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
        if self.begin_close():
            self.flush(include_empty_active=True)
            self.finish_close()

    def begin_close(self) -> bool:
        """The last index entries, to be flushed with the rest; False if that is of no use."""
        if self._closed:
            return False
        if self._failure is not None or self.is_damaged:
            self.abandon()
            return False
        self.segments.active.finish_indexes()
        return True

    def finish_close(self, *, is_synced: bool = True) -> None:
        """After the flush; with ``is_synced=False`` the caller syncs the file system next."""
        self.maybe_snapshot(durable=is_synced)
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
