"""Nodes of a cluster without a network: each with its disk, its logs and its replica manager, and
a follower's half of replication, which fetches from a leader by calling it."""

from typing import Any
from weakref import WeakKeyDictionary

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import StratalogError
from stratalog.metadata.topics import PartitionChange
from stratalog.records import Record, build_batch, read_headers
from stratalog.replication.partition import Partition
from stratalog.replication.parts import (
    AppendResult,
    FetchPartition,
    FetchRequest,
    FetchResult,
)
from stratalog.replication.replica_manager import ReplicaManager
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation
from stratalog.testing import ManualClock, SimulatedFileSystem

START_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
EVERYTHING = 1 << 30


def batch(value: bytes = b"value", count: int = 1, **options: Any) -> bytes:
    return build_batch([Record(b"k", value, (), START_MS)] * count, **options)


class Node:
    """``proposed`` are the changes of ISRs that this node has asked for, ``appended`` the logs
    that were appended to, and with ``deletes_later`` ``deleted`` those whose start is to become
    durable."""

    def __init__(
        self,
        node_id: int,
        *,
        clock: ManualClock | None = None,
        flush_on_ack: bool = False,
        deletes_later: bool = False,
        topic: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.id = node_id
        # Deadlines have a clock of their own, which begins anywhere.
        self.clock = clock or ManualClock(5_000)
        self.files = SimulatedFileSystem()
        config = {"segment_index_bytes": 1200, "message_timestamp_after_max_ms": 2**62}
        self.logs = LogManager(
            BrokerConfig(
                log_dirs=("/data",),
                num_recovery_threads_per_data_dir=1,
                log_flush_on_ack=flush_on_ack,
                log_dir_reserve_bytes=0,
                **settings,
            ),
            files=self.files,
            clock=ManualClock(START_MS),
            topic_config=lambda _topic: TopicConfig(**config | (topic or {})),
            is_threaded=False,
        )
        self.logs.start()
        self.proposed: list[PartitionChange] = []
        self.appended: list[Log] = []
        self.deleted: list[Log] = []
        self.woken: list[int] = []
        self.replicas = ReplicaManager(
            self.logs,
            self.clock,
            node_id=node_id,
            appended=self.appended.append,
            deleted_from=self.deleted.append if deletes_later else Log.keep_log_start,
            wake=self.woken.append,
            propose_isr=self.proposed.extend,
        )

    def lead(
        self,
        key: TopicPartition = ORDERS,
        *,
        epoch: int = 0,
        replicas: tuple[int, ...] = (),
        isr: tuple[int, ...] = (),
        partition_epoch: int | None = None,
    ) -> Partition:
        self.hold(key)
        replicas = replicas or (self.id,)
        return self.replicas.lead(
            key,
            leader_epoch=epoch,
            replicas=replicas,
            isr=isr or replicas,
            partition_epoch=partition_epoch,
        )

    def follow(
        self,
        key: TopicPartition = ORDERS,
        *,
        leader_id: int,
        epoch: int = 0,
        replicas: tuple[int, ...] = (),
        partition_epoch: int | None = None,
    ) -> None:
        self.hold(key)
        self.replicas.follow(
            key,
            leader_id=leader_id,
            leader_epoch=epoch,
            replicas=replicas,
            partition_epoch=partition_epoch,
        )

    def hold(self, key: TopicPartition) -> None:
        if key not in self.logs:
            self.logs.create(key)

    def produce(
        self,
        *batches: bytes,
        key: TopicPartition = ORDERS,
        acks: int = -1,
        timeout_ms: int = 1_000,
        **options: Any,
    ) -> list[AppendResult]:
        """What is answered to an append is put into the list, once it is."""
        answers: list[AppendResult] = []
        for each in batches or (batch(),):
            self.replicas.append_records(
                {key: each},
                lambda results: answers.append(results[key]),
                required_acks=acks,
                timeout_ms=timeout_ms,
                **options,
            )
        return answers

    def fetch(
        self,
        offset: int = 0,
        key: TopicPartition = ORDERS,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = EVERYTHING,
        replica_id: int = -1,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        **asked: int,
    ) -> list[FetchResult]:
        answers: list[FetchResult] = []
        self.replicas.fetch(
            FetchRequest(
                {key: FetchPartition(offset, max_bytes, **asked)},
                max_wait_ms,
                min_bytes,
                EVERYTHING,
                isolation,
                replica_id,
            ),
            lambda results: answers.append(results[key]),
        )
        return answers

    def delete(
        self, offset: int, key: TopicPartition = ORDERS, timeout_ms: int = 1_000
    ) -> list[int | StratalogError]:
        answers: list[int | StratalogError] = []
        self.replicas.delete_records(
            {key: offset}, lambda results: answers.append(results[key]), timeout_ms=timeout_ms
        )
        return answers

    def log(self, key: TopicPartition = ORDERS) -> Log:
        return self.logs.get(key)

    def partition(self, key: TopicPartition = ORDERS) -> Partition:
        return self.replicas.get(key)

    def flush(self, key: TopicPartition = ORDERS) -> None:
        """What a flusher does, at once."""
        self.log(key).flush()
        self.replicas.flushed([key])

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.replicas.expire(self.clock.now_ms())


def replicate(follower: Node, leader: Node, key: TopicPartition = ORDERS) -> bool:
    """One fetch of a follower, and what it does with the answer; whether it was given one."""
    log, known = follower.log(key), follower.partition(key)
    (result,) = leader.fetch(
        log.log_end_offset,
        key,
        replica_id=follower.id,
        isolation=Isolation.LOG_END,
        current_leader_epoch=known.leader_epoch,
        last_fetched_epoch=log.epochs.latest_epoch,
        log_start_offset=log.log_start_offset,
    )
    if result.read is None:
        return False
    if result.read.diverging is not None:
        diverging = result.read.diverging
        own = log.epochs.end_offset_for(diverging.epoch, log.log_end_offset)
        ends = (own.end_offset, diverging.end_offset, log.log_end_offset)
        log.truncate_to(min(end for end in ends if end >= 0))
        return True
    if result.read.data.records is not None:
        log.append_as_follower(result.read.data.records.read(), leader_epoch=known.leader_epoch)
    log.update_high_watermark(min(result.read.high_watermark, log.log_end_offset))
    return True


_known: "WeakKeyDictionary[Log, tuple[int, int, list[tuple[int, bytes]]]]" = WeakKeyDictionary()


def values(log: Log, end_offset: int | None = None) -> list[bytes]:
    """The batches of a log up to an offset, without what leaders write into them."""
    end_offset = log.log_end_offset if end_offset is None else end_offset
    return [value for offset, value in _batches(log) if offset < end_offset]


def _batches(log: Log) -> list[tuple[int, bytes]]:
    """Offsets and contents. Reading them again each time they are looked at would take longest."""
    end, truncations, found = _known.get(log, (log.log_start_offset, 0, []))
    if truncations != log.truncation_count:
        end, found = log.log_start_offset, []
    while end < log.log_end_offset:
        fetched = log.read(end, max_bytes=EVERYTHING, isolation=Isolation.LOG_END)
        assert fetched.records is not None, "what lies below the end can be read"
        content = fetched.records.read()
        for header in read_headers(content):
            value = content[header.position + 61 : header.position + header.size_bytes]
            found.append((header.base_offset, value))
            end = header.next_offset
    _known[log] = (end, log.truncation_count, found)
    return found
