"""One replica of a partition, as its leader or a follower: in-sync replicas, the high watermark.

The high watermark is the smallest log end among the in-sync replicas: what lies below it is on all
of them. With ``log.flush.on.ack`` the log itself keeps it from passing what has been flushed.
"""

import errno
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from typing_extensions import Buffer

from stratalog.clock import Clock
from stratalog.errors import (
    FencedLeaderEpochError,
    LogClosedError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    OutOfMemoryError,
    PolicyViolationError,
    StratalogError,
    UnknownLeaderEpochError,
)
from stratalog.records import AppendOrigin
from stratalog.storage.appending import LogAppendInfo, ValidatedRecords
from stratalog.storage.context import DiskState
from stratalog.storage.epochs import UNDEFINED_OFFSET, EpochEnd
from stratalog.storage.log import Log
from stratalog.storage.lookup import ListedOffset, SpecialTimestamp, list_offset
from stratalog.storage.reading import FetchedData, Isolation

ACKS_ALL = -1
# Before anything by a clock that may begin anywhere.
NEVER_MS = -(1 << 62)


@dataclass(slots=True)
class FollowerState:
    """What a leader knows of a follower: how far it has fetched, and when it was last caught up."""

    log_end_offset: int = -1
    log_start_offset: int = -1
    last_caught_up_ms: int = NEVER_MS
    last_fetch_ms: int = NEVER_MS
    leader_end_at_last_fetch: int = 0

    def fetched(
        self, offset: int, leader_end_offset: int, now_ms: int, log_start_offset: int = -1
    ) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = max(self.log_start_offset, log_start_offset)
        self.last_fetch_ms = now_ms
        self.leader_end_at_last_fetch = max(self.leader_end_at_last_fetch, leader_end_offset)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        at_end = self.log_end_offset == leader_end_offset
        return at_end or now_ms - self.last_caught_up_ms <= lag_max_ms


class PartitionRead(NamedTuple):
    """What a fetch of one partition returns. ``diverging`` is where the reader's history and this
    one part: it is given no records then."""

    data: FetchedData
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging: EpochEnd | None = None


@dataclass(slots=True)
class Partition:
    """See the top of this file. ``isr`` holds node ids; ``maximal_isr`` adds one being let in."""

    log: Log
    node_id: int
    # By which it is told who lags; the log's own is set by people and tells when records were made.
    clock: Clock
    lag_max_ms: int = 30_000
    leader_id: int = -1
    leader_epoch: int = -1
    # Counts the changes of this partition's metadata: a change is decided on one of them.
    partition_epoch: int = 0
    # The ISR that was proposed, until it is decided: there is one proposal at a time.
    proposed_isr: frozenset[int] | None = None
    # Where this leader's epoch begins: what is below was told by its predecessors.
    epoch_start_offset: int = 0
    replicas: tuple[int, ...] = ()
    isr: frozenset[int] = frozenset()
    # Whether there are replicas that are not in it.
    is_out_of_sync: bool = False
    maximal_isr: frozenset[int] = frozenset()
    followers: dict[int, FollowerState] = field(default_factory=dict)

    # --- roles --------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.node_id

    def lead(
        self,
        *,
        leader_epoch: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        now_ms: int,
        partition_epoch: int | None = None,
    ) -> bool:
        """This node leads from now on, or goes on with other replicas; whether the high watermark
        moved. What is older than what is known already changes nothing."""
        is_known = leader_epoch == self.leader_epoch and partition_epoch == self.partition_epoch
        if is_known and self.proposed_isr is not None:
            # To hear again what the proposal was made on says nothing of what becomes of it.
            return False
        if not self._begin_change(leader_epoch, partition_epoch):
            return False
        known = self.followers
        if leader_epoch > self.leader_epoch:
            self.log.assign_leader_epoch(leader_epoch)
            self.epoch_start_offset = self.log.log_end_offset
            known = {}
        self.leader_id = self.node_id
        self.leader_epoch = leader_epoch
        self.replicas = tuple(replicas)
        self._commit_isr(isr)
        self.followers = {
            node: known.get(node)
            or FollowerState(last_caught_up_ms=now_ms if node in self.isr else NEVER_MS)
            for node in self.replicas
            if node != self.node_id
        }
        return self.raise_high_watermark()

    def _begin_change(self, leader_epoch: int, partition_epoch: int | None) -> bool:
        """Whether that is no older than what is known; None is of the same age."""
        if partition_epoch is None:
            partition_epoch = self.partition_epoch
        if leader_epoch < self.leader_epoch or partition_epoch < self.partition_epoch:
            return False
        self.partition_epoch = partition_epoch
        return True

    def _commit_isr(self, isr: Iterable[int]) -> None:
        self.isr = self.maximal_isr = frozenset(isr)
        self.is_out_of_sync = len(self.isr) < len(self.replicas)
        self.proposed_isr = None

    def follow(
        self,
        *,
        leader_id: int,
        leader_epoch: int,
        replicas: Iterable[int],
        partition_epoch: int | None = None,
    ) -> None:
        """Another node leads, or nobody does (-1)."""
        if not self._begin_change(leader_epoch, partition_epoch):
            return
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replicas = tuple(replicas)
        self._commit_isr(())
        self.followers = {}

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Refuse who asks the wrong node, or thinks of another leader epoch than this one."""
        if 0 <= current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpochError(
                f"{self.log.topic_partition} has leader epoch {self.leader_epoch}, "
                f"not {current_leader_epoch}"
            )
        if current_leader_epoch > self.leader_epoch:
            raise UnknownLeaderEpochError(
                f"{self.log.topic_partition} has leader epoch {self.leader_epoch}; "
                f"{current_leader_epoch} is not known here yet"
            )
        if not self.is_leader:
            raise NotLeaderError(
                f"node {self.node_id} does not lead {self.log.topic_partition}; "
                f"node {self.leader_id} does"
            )

    def would_serve(self, current_leader_epoch: int) -> bool:
        """Whether who asks with that leader epoch would be refused neither for it nor for a log
        that is closed."""
        is_current = current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch
        return self.is_leader and is_current and not self.log.is_closed

    # --- appending ----------------------------------------------------------------------------

    @property
    def effective_min_isr(self) -> int:
        return min(self.log.config.min_insync_replicas, max(len(self.replicas), 1))

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_out_of_sync and len(self.isr) < self.log.config.min_insync_replicas

    def append_records_to_leader(
        self,
        records: Buffer | ValidatedRecords,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LogAppendInfo:
        if self.leader_id != self.node_id:
            self.check_leader()
        if required_acks == ACKS_ALL and self.is_out_of_sync and self.is_under_min_isr:
            raise NotEnoughReplicasError(
                f"{self.log.topic_partition} has {len(self.isr)} in-sync replicas where "
                f"min.insync.replicas={self.effective_min_isr}"
            )
        try:
            return self.log.append_as_leader(records, self.leader_epoch, origin)
        except MemoryError as error:
            # Much memory is only taken to look at records, before anything of them is in the log.
            reason = "no memory is left for its records"
            raise OutOfMemoryError("append", self.log.directory, errno.ENOMEM, reason) from error

    def raise_high_watermark(self) -> bool:
        """Move the high watermark as far as the in-sync replicas allow; whether it moved."""
        if self.leader_id != self.node_id or (self.is_out_of_sync and self.is_under_min_isr):
            return False
        lowest = self.log.log_end_offset
        if self.followers:
            lowest = self._replicated_up_to(lowest)
        return self.log.raise_high_watermark(lowest)

    def _replicated_up_to(self, log_end_offset: int) -> int:
        """Up to where all have the log that are in sync, or about to be: who has nearly caught up
        would never do so if the high watermark did not wait."""
        lowest = log_end_offset
        now_ms = self.clock.now_ms()
        for node, follower in self.followers.items():
            if follower.log_end_offset < lowest and (
                node in self.maximal_isr
                or follower.is_caught_up(log_end_offset, now_ms, self.lag_max_ms)
            ):
                lowest = follower.log_end_offset
        return lowest

    def is_acknowledged(self, required_offset: int, required_acks: int) -> bool | StratalogError:
        """Whether a producer may be told that everything below ``required_offset`` is kept; an
        error if there is no hope of it."""
        if required_acks == ACKS_ALL:
            return self.is_replicated(required_offset)
        return self._is_on_disk(required_offset)

    def _is_on_disk(self, required_offset: int) -> bool | StratalogError:
        """For acks=1: whether this node alone keeps it. Without followers it can be seen then: the
        high watermark waits for nothing but the disk."""
        if not self.log.context.flush_on_ack:
            return True
        if self.leader_id != self.node_id:
            return NotLeaderError(f"{self.log.topic_partition} has another leader now")
        is_seen = self.log.high_watermark >= required_offset
        if is_seen or (self.followers and self.log.recovery_point >= required_offset):
            return True
        # A flush that fails fails all who wait, also for logs that it had synced before.
        return self.failure() or False

    def is_replicated(self, required_offset: int) -> bool | StratalogError:
        """For acks=all: whether everything below ``required_offset`` is on enough replicas; an
        error if there is no hope of it."""
        if self.leader_id != self.node_id:
            return NotLeaderError(f"{self.log.topic_partition} has another leader now")
        if self.log.high_watermark < required_offset:
            return self.failure() or False
        if self.is_out_of_sync and len(self.maximal_isr) < self.effective_min_isr:
            return NotEnoughReplicasAfterAppendError(
                f"{self.log.topic_partition} was appended to, and lost in-sync replicas since"
            )
        return True

    def failure(self) -> StratalogError | None:
        """Why nothing of this log will become durable any more: its own disk trouble, or that of
        another log of the same directory."""
        directory = self.log.context.directory_state
        if self.log.failure is None and directory.state is DiskState.OFFLINE:
            return LogClosedError(f"{self.log.topic_partition} is offline: {directory.reason}")
        return self.log.failure

    # --- reading ------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        isolation: Isolation,
        min_one_message: bool,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> PartitionRead:
        self.check_leader(current_leader_epoch)
        log = self.log
        # Taken first: what is read can only be more than they say.
        high_watermark, last_stable, start = (
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
        )
        if last_fetched_epoch >= 0:
            diverging = self._diverging(offset, last_fetched_epoch)
            if diverging is not None:
                nothing = FetchedData(offset, None)
                return PartitionRead(nothing, high_watermark, last_stable, start, diverging)
        data = log.read(
            offset, max_bytes=max_bytes, isolation=isolation, min_one_message=min_one_message
        )
        if data.is_first_batch_incomplete:
            # A reader would take it for one that is too large; the next fetch has room for it.
            data = FetchedData(offset, None)
        return PartitionRead(data, high_watermark, last_stable, start)

    def available_bytes(self, offset: int, max_bytes: int, isolation: Isolation) -> int:
        """About how much a read would find, without reading; -1 if it should be answered now."""
        log = self.log
        end = log.high_watermark
        if isolation is Isolation.LOG_END:
            end = log.log_end_offset
        elif isolation is Isolation.TXN_COMMITTED:
            end = log.last_stable_offset
        if offset > log.log_end_offset or offset < log.log_start_offset:
            return -1
        if offset >= end:
            return 0
        active = log.segments.active
        if offset < active.base_offset:
            return -1  # an older segment: there is enough, or it is soon time to roll on
        try:
            first = active.position_of(offset)
            last = active.size_bytes if end >= log.log_end_offset else active.position_of(end)
        except StratalogError:
            return -1
        return min(max(last - first, 0), max_bytes)

    def _diverging(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """Where a reader that has read up to ``offset``, lastly of that epoch, knows another
        history than this one."""
        log = self.log
        end = log.epochs.end_offset_for(last_fetched_epoch, log.log_end_offset)
        if end.end_offset == UNDEFINED_OFFSET or offset < log.log_start_offset:
            raise OffsetOutOfRangeError(offset, log.log_start_offset, log.log_end_offset)
        if end.epoch < last_fetched_epoch or end.end_offset < offset:
            return end
        return None

    def end_of_epoch(self, epoch: int, current_leader_epoch: int = -1) -> EpochEnd:
        """Where ``epoch`` ended, as far as this leader knows."""
        self.check_leader(current_leader_epoch)
        return self.log.epochs.end_offset_for(epoch, self.log.log_end_offset)

    def list_offset(
        self,
        timestamp_ms: int,
        *,
        isolation: Isolation,
        current_leader_epoch: int = -1,
    ) -> ListedOffset:
        """What ListOffsets asks."""
        self.check_leader(current_leader_epoch)
        listed = list_offset(self.log, timestamp_ms, isolation)
        is_latest = timestamp_ms == SpecialTimestamp.LATEST
        if isolation is not Isolation.LOG_END and (is_latest or listed.offset < 0):
            self._check_end_is_known()
        return replace(listed, leader_epoch=self.leader_epoch) if is_latest else listed

    def _check_end_is_known(self) -> None:
        """A new leader cannot say yet what is stable of what the last one has told."""
        if self.log.high_watermark < self.epoch_start_offset:
            raise OffsetNotAvailableError(
                f"the high watermark of {self.log.topic_partition} has not reached the start of "
                f"leader epoch {self.leader_epoch} yet"
            )

    # --- followers ----------------------------------------------------------------------------

    def check_follower(self, node_id: int, current_leader_epoch: int = -1) -> FollowerState:
        """Refuse who is no replica. Who names the leader epoch knows of an assignment that has not
        come here yet, or has gone; it tries again either way."""
        follower = self.followers.get(node_id)
        if follower is None:
            kind = NotLeaderError if current_leader_epoch < 0 else UnknownLeaderEpochError
            raise kind(
                f"node {node_id} is no replica of {self.log.topic_partition}: {self.replicas}"
            )
        return follower

    def follower_fetched(
        self, node_id: int, offset: int, now_ms: int, log_start_offset: int = -1
    ) -> bool:
        """A follower has everything below ``offset``; whether the high watermark moved."""
        follower = self.check_follower(node_id)
        follower.fetched(offset, self.log.log_end_offset, now_ms, log_start_offset)
        return self.raise_high_watermark()

    @property
    def low_watermark(self) -> int:
        """What every replica has forgotten lies below, on this node for good."""
        starts = [follower.log_start_offset for follower in self.followers.values()]
        durable = self.log.durable_start_offset
        return min(durable, *starts) if starts else durable

    def propose_isr(self, isr: Iterable[int]) -> None:
        """Another ISR is asked for: until it is decided, all of both are waited for."""
        self.proposed_isr = frozenset(isr)
        self.maximal_isr = self.isr | self.proposed_isr

    def settle_isr(self, proposed_on: int, partition_epoch: int | None) -> bool:
        """What was proposed on one partition epoch was taken, and began another, or with None
        refused; whether the high watermark moved. A late answer, when the partition has changed
        since, settles nothing."""
        if self.proposed_isr is None or proposed_on != self.partition_epoch:
            return False
        if partition_epoch is None:
            self._commit_isr(self.isr)
        else:
            self.partition_epoch = partition_epoch
            self._commit_isr(self.proposed_isr)
        return self.raise_high_watermark()

    # --- deleting records ---------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Raise the log start on this leader; returns the offset that was meant."""
        self.check_leader()
        if not self.log.config.delete:
            raise PolicyViolationError(
                f"records of {self.log.topic_partition} cannot be deleted: its cleanup.policy is "
                f"{','.join(self.log.config.cleanup_policy) or 'empty'}"
            )
        target = self.log.high_watermark if offset == -1 else offset
        self.log.delete_records(target)
        return target
