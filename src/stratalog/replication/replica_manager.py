"""All partitions of this node: appends, reads and deletes that may have to wait.

Answers come through callbacks, at once or when what a request waits for has come true. All of it
is confined to the owner's thread; ``flushed`` and the followers' fetches are what move high
watermarks, and so complete who waits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from stratalog.clock import Clock
from stratalog.errors import (
    DiskError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    OffsetOutOfRangeError,
    OutOfResourcesError,
    StratalogError,
    UnknownLogError,
)
from stratalog.metadata.topics import PartitionChange
from stratalog.records import AppendOrigin
from stratalog.replication.delayed import (
    DISK_WAIT_MS,
    DelayedAppend,
    DelayedDeleteRecords,
    DelayedFetch,
    DelayedProduce,
)
from stratalog.replication.isr import plan_isr, propose
from stratalog.replication.partition import ACKS_ALL, Partition
from stratalog.replication.parts import (
    AppendResponse,
    AppendResult,
    DeleteResponse,
    Done,
    Entries,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    PartitionAppend,
)
from stratalog.replication.purgatory import DelayedOperation, Purgatory
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation
from stratalog.topic_names import INTERNAL_TOPICS


class ReplicaManager:
    """``appended`` is told of each log that was appended to: there is something to flush; and
    ``deleted_from`` of each whose start was raised: that is to become durable.
    ``wake`` is told when ``expire`` will next be needed. ``propose_isr`` asks whoever keeps the
    metadata for other in-sync replicas, and calls ``isr_decided`` with the answer."""

    def __init__(
        self,
        logs: LogManager,
        clock: Clock,
        *,
        node_id: int,
        appended: Callable[[Log], None] = lambda _log: None,
        deleted_from: Callable[[Log], None] = Log.keep_log_start,
        wake: Callable[[int], None] = lambda _deadline_ms: None,
        propose_isr: Callable[[list[PartitionChange]], None] = lambda _changes: None,
    ) -> None:
        self.node_id = node_id
        self.append_purgatory = Purgatory(wake)
        self.produce_purgatory = Purgatory(wake)
        self.fetch_purgatory = Purgatory(wake)
        self.delete_purgatory = Purgatory(wake)
        self._purgatories = (
            *(self.append_purgatory, self.produce_purgatory),
            *(self.fetch_purgatory, self.delete_purgatory),
        )
        self._tell_appended = appended
        self._tell_deleted_from = deleted_from
        self._propose_isr = propose_isr
        self._logs = logs
        self._clock = clock
        self._partitions: dict[TopicPartition, Partition] = {}

    # --- partitions ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, topic_partition: TopicPartition) -> Partition:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            raise UnknownLogError(f"there is no {topic_partition} on node {self.node_id}")
        return partition

    def find(self, topic_partition: TopicPartition) -> Partition | None:
        return self._partitions.get(topic_partition)

    def find_at(self, topic: str, partition: int) -> Partition | None:
        """The same; a bare tuple is made in a tenth of the time, and is equal."""
        return self._partitions.get((topic, partition))  # type: ignore[call-overload,no-any-return]

    def lead(
        self,
        topic_partition: TopicPartition,
        *,
        leader_epoch: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        partition_epoch: int | None = None,
    ) -> Partition:
        """This node leads the partition; its log is there already."""
        partition = self._hold(topic_partition)
        partition.lead(
            leader_epoch=leader_epoch,
            replicas=replicas,
            isr=isr,
            now_ms=self._clock.now_ms(),
            partition_epoch=partition_epoch,
        )
        self._advanced(partition)
        return partition

    def follow(
        self,
        topic_partition: TopicPartition,
        *,
        leader_id: int,
        leader_epoch: int,
        replicas: Iterable[int],
        partition_epoch: int | None = None,
    ) -> None:
        """Another node leads a partition that is here as well; who waits for it is told."""
        partition = self._hold(topic_partition)
        partition.follow(
            leader_id=leader_id,
            leader_epoch=leader_epoch,
            replicas=replicas,
            partition_epoch=partition_epoch,
        )
        self._advanced(partition)

    def _hold(self, topic_partition: TopicPartition) -> Partition:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            lag_max_ms = self._logs.config.replica_lag_time_max_ms
            log = self._logs.get(topic_partition)
            partition = Partition(log, self.node_id, self._clock, lag_max_ms)
            self._partitions[topic_partition] = partition
        return partition

    def drop(self, topic_partition: TopicPartition) -> None:
        """The partition is not on this node any more; who waits for it is told."""
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.follow(leader_id=-1, leader_epoch=partition.leader_epoch, replicas=())
            self._advanced(partition)
            self.append_purgatory.check(topic_partition)

    # --- appending ----------------------------------------------------------------------------

    def append_records(
        self,
        entries: Entries,
        respond: AppendResponse,
        *,
        required_acks: int,
        timeout_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_internal_topics: bool = False,
    ) -> None:
        """Append to each partition by itself; answer as ``required_acks`` asks for. ``entries``
        must last until then."""
        appends = [PartitionAppend(key, records) for key, records in entries.items()]
        self.append(
            appends,
            lambda: respond({each.key: AppendResult(each.info, each.error) for each in appends}),
            required_acks=required_acks,
            timeout_ms=timeout_ms,
            origin=origin,
            allow_internal_topics=allow_internal_topics,
        )

    def append(
        self,
        appends: Sequence[PartitionAppend],
        done: Done,
        *,
        required_acks: int,
        timeout_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_internal_topics: bool = False,
        keep: Callable[[Done], Done] | None = None,
    ) -> None:
        """The same, told in ``appends``, each of another partition. Where a commit has one of them
        stand still, all wait for it: records that do not last until then are replaced by ``keep``,
        which says who is to be told instead of ``done``."""
        if required_acks not in (ACKS_ALL, 0, 1):
            error = InvalidRequiredAcksError(f"acks={required_acks}; it is 0, 1 or -1")
            self._refuse(appends, error)
            done()
            return
        if self.are_paused(appends):
            if keep is not None:
                done = keep(done)
            deadline_ms = self._clock.now_ms() + max(timeout_ms, 0)
            append = partial(
                self._append_all,
                *(appends, done, required_acks, timeout_ms, origin, allow_internal_topics),
                deadline_ms,
            )
            waiting = DelayedAppend(self, appends, append, done, deadline_ms)
            self.append_purgatory.complete_or_watch(waiting, [each.key for each in appends])
        else:
            self._append_all(
                appends, done, required_acks, timeout_ms, origin, allow_internal_topics
            )

    def are_paused(self, appends: Iterable[PartitionAppend]) -> bool:
        """Whether one of these logs takes no appends for a moment."""
        find = self._partitions.get
        for each in appends:
            partition = find(each.key)
            if partition is not None and partition.log.is_paused:
                return True
        return False

    def _refuse(self, appends: Iterable[PartitionAppend], error: StratalogError) -> None:
        for each in appends:
            each.records, each.error = None, error

    def _append_all(
        self,
        appends: Iterable[PartitionAppend],
        done: Done,
        required_acks: int,
        timeout_ms: int,
        origin: AppendOrigin,
        allow_internal_topics: bool,
        deadline_ms: int | None = None,
    ) -> None:
        """``deadline_ms``: of a request that has waited already; else its time begins now."""
        appended: list[tuple[Partition, bool]] = []
        is_acknowledged = True
        for each in appends:
            key, records = each.key, each.records
            assert records is not None, f"the records for {key} are appended once"
            # From here on nobody needs them: the answer may have to wait.
            each.records = None
            try:
                if key.topic in INTERNAL_TOPICS and not allow_internal_topics:
                    raise InvalidTopicError(key.topic, "is written by the broker alone")
                partition = self._partitions.get(key) or self.get(key)
                info = partition.append_records_to_leader(records, required_acks, origin)
            except StratalogError as error:
                if isinstance(error, DiskError) and not isinstance(error, OutOfResourcesError):
                    self.failed()
                # Without what it was raised through, which has the records in its frames.
                each.error = error.with_traceback(None)
                continue
            each.info = info
            self._tell_appended(partition.log)
            appended.append((partition, partition.raise_high_watermark()))
            if required_acks != 0 and is_acknowledged:
                # So it is on one node that does not wait for its disk.
                end_offset = info.last_offset + 1
                is_acknowledged = partition.is_acknowledged(end_offset, required_acks) is True
        try:
            if is_acknowledged:
                done()
            else:
                if deadline_ms is None:
                    waits_for_others = any(each.followers for each, _ in appended)
                    if origin is AppendOrigin.CLIENT and not (
                        waits_for_others and required_acks == ACKS_ALL
                    ):
                        timeout_ms = max(timeout_ms, DISK_WAIT_MS)
                    deadline_ms = self._clock.now_ms() + max(timeout_ms, 0)
                operation = DelayedProduce(self, appends, required_acks, done, deadline_ms)
                keys = [partition.log.topic_partition for partition, _ in appended]
                self.produce_purgatory.complete_or_watch(operation, keys)
        finally:
            # After the answer is on its way: others have waited for longer than this takes.
            for partition, has_moved in appended:
                self._appended(partition, has_moved=has_moved)

    def _appended(self, partition: Partition, *, has_moved: bool) -> None:
        """``has_moved``: the high watermark has, with what was appended."""
        if has_moved:
            self._advanced(partition)
        elif partition.followers:
            # They may read what consumers may not.
            self.fetch_purgatory.check(partition.log.topic_partition)

    def flushed(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """What these logs had appended, and where they start, is durable now: high watermarks may
        move."""
        for key in topic_partitions:
            partition = self._partitions.get(key)
            if partition is not None and partition.raise_high_watermark():
                self._advanced(partition)
            else:
                # acks=1 waits for this disk alone, and the high watermark for followers too.
                self.produce_purgatory.check(key)
                self.delete_purgatory.check(key)

    def committed(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """A commit has put records at the end of these logs, or let go of them: appends that wait
        go on, and readers are told what there is."""
        keys = list(topic_partitions)
        for key in keys:
            partition = self._partitions.get(key)
            if partition is not None:
                partition.raise_high_watermark()
                self._advanced(partition)
        for key in keys:
            self.append_purgatory.check(key)

    def failed(self, topic_partitions: Iterable[TopicPartition] = ()) -> None:
        """The disk of these logs has failed: who waits for them, or for others on that disk, has
        nothing to wait for."""
        for purgatory in (self.produce_purgatory, self.delete_purgatory):
            for key in {*topic_partitions, *purgatory.keys()}:
                purgatory.check(key)

    def _advanced(self, partition: Partition) -> None:
        key = partition.log.topic_partition
        self.produce_purgatory.check(key)
        self.fetch_purgatory.check(key)
        self.delete_purgatory.check(key)

    # --- reading ------------------------------------------------------------------------------

    def fetch(self, request: FetchRequest, respond: FetchResponse) -> DelayedOperation | None:
        """Answer with what there is, when it is enough or the time is over; the operation that
        waits, if one does."""
        results = self.read(request)
        available = 0
        is_final = request.max_wait_ms <= 0 or not request.partitions
        for read, _ in results.values():
            if read is None or read.diverging is not None:
                is_final = True
            else:
                available += read.data.size_bytes
        if is_final or available >= request.min_bytes:
            respond(results)
            return None
        deadline_ms = self._clock.now_ms() + request.max_wait_ms
        operation = DelayedFetch(self, request, respond, deadline_ms)
        if self.fetch_purgatory.complete_or_watch(operation, request.partitions):
            return None
        return operation

    def read(
        self, request: FetchRequest, *, is_waited_for: bool = False
    ) -> dict[TopicPartition, FetchResult]:
        """``is_waited_for``: the same fetch was read before, and told how far a follower is."""
        results: dict[TopicPartition, FetchResult] = {}
        left, files_left = request.max_bytes, request.files_max
        is_first = True
        for key, asked in request.partitions.items():
            results[key] = read, _ = self._read(key, asked, request, left, is_first=is_first)
            if read is None:
                continue
            if request.replica_id >= 0 and not is_waited_for and read.diverging is None:
                self._follower_fetched(key, request.replica_id, asked)
            size = read.data.size_bytes
            if size:
                files_left -= 1
                left = max(left - size, 0) if files_left > 0 else 0
            # At least one batch of one partition is given, however large it is.
            is_first = is_first and size == 0
        return results

    def _read(
        self,
        key: TopicPartition,
        asked: FetchPartition,
        request: FetchRequest,
        left: int,
        *,
        is_first: bool,
    ) -> FetchResult:
        isolation = Isolation.LOG_END if request.replica_id >= 0 else request.isolation
        try:
            partition = self.get(key)
            offset, max_bytes, leader_epoch, last_fetched_epoch, _ = asked
            if request.replica_id >= 0:
                partition.check_leader(leader_epoch)
                partition.check_follower(request.replica_id, leader_epoch)
            read = partition.read(
                offset,
                max_bytes=min(max_bytes, left),
                isolation=isolation,
                min_one_message=is_first,
                current_leader_epoch=leader_epoch,
                last_fetched_epoch=last_fetched_epoch,
            )
        except StratalogError as error:
            # Without what it was raised through: a request may name very many partitions.
            return FetchResult(error=error.with_traceback(None))
        return FetchResult(read)

    def _follower_fetched(self, key: TopicPartition, node_id: int, asked: FetchPartition) -> None:
        partition = self._partitions[key]
        now_ms = self._clock.now_ms()
        if partition.follower_fetched(node_id, asked.offset, now_ms, asked.log_start_offset):
            self._advanced(partition)
        else:
            self.delete_purgatory.check(key)
        if node_id not in partition.isr:
            self._propose_isr(self._isr_changes([partition], now_ms))

    def available_bytes(self, key: TopicPartition, asked: FetchPartition, upper: Isolation) -> int:
        """About how much a fetch would find, without reading; -1 if it should be answered now."""
        partition = self._partitions.get(key)
        if partition is None or not partition.would_serve(asked.current_leader_epoch):
            return -1
        return partition.available_bytes(asked.offset, asked.max_bytes, upper)

    # --- deleting records ---------------------------------------------------------------------

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        respond: DeleteResponse,
        *,
        timeout_ms: int,
    ) -> None:
        results: dict[TopicPartition, int | StratalogError] = {}
        wanted: dict[TopicPartition, int] = {}
        for key, offset in offsets.items():
            try:
                if key.topic in INTERNAL_TOPICS:
                    raise InvalidTopicError(key.topic, "is written by the broker alone")
                if offset < -1:
                    raise OffsetOutOfRangeError(offset, 0, 0)
                partition = self.get(key)
                target_offset = partition.delete_records(offset)
                if partition.log.durable_start_offset < partition.log.log_start_offset:
                    self._tell_deleted_from(partition.log)
                wanted[key] = target_offset
            except StratalogError as error:
                results[key] = error.with_traceback(None)
        if not any(self._partitions[key].followers for key in wanted):
            timeout_ms = max(timeout_ms, DISK_WAIT_MS)
        deadline_ms = self._clock.now_ms() + max(timeout_ms, 0)
        operation = DelayedDeleteRecords(self, wanted, results, respond, deadline_ms)
        self.delete_purgatory.complete_or_watch(operation, wanted)

    # --- in-sync replicas ---------------------------------------------------------------------

    def check_isr(self, now_ms: int) -> None:
        """Propose to leave out who lags, and to take in who has caught up. Partitions without
        followers, and so all of a single node, have nothing to check."""
        changes = self._isr_changes(
            (each for each in self._partitions.values() if each.followers), now_ms
        )
        if changes:
            self._propose_isr(changes)

    def _isr_changes(self, partitions: Iterable[Partition], now_ms: int) -> list[PartitionChange]:
        changes = []
        for partition in partitions:
            plan = plan_isr(partition, now_ms, partition.lag_max_ms)
            if plan is not None:
                changes.append(propose(partition, plan))
        return changes

    def isr_decided(self, change: PartitionChange, partition_epoch: int | None) -> None:
        """A proposal was taken, and the partition has another epoch since; or, with None, it was
        refused and nothing has changed. If it is not known what became of it, or the partition has
        changed in another way, the proposal stays until ``lead`` or ``follow`` tell what is."""
        partition = self._partitions.get(TopicPartition(change.name, change.partition))
        if partition is None or change.partition_epoch is None:
            return
        if partition.settle_isr(change.partition_epoch, partition_epoch):
            self._advanced(partition)

    # --- time ---------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> None:
        for purgatory in self._purgatories:
            purgatory.expire(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = [each.next_deadline_ms() for each in self._purgatories]
        return min((each for each in deadlines if each is not None), default=None)
