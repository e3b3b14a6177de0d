"""What one append brings: its batches, the changes it makes to producers, and what it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import InvalidTransactionStateError, OffsetsOutOfOrderError
from stratalog.records import (
    AppendOrigin,
    BatchHeader,
    Codec,
    ProducedBatches,
    ProduceRules,
    min_timestamp,
    read_control_batch,
    read_headers,
)
from stratalog.storage.producers import (
    CompletedTransaction,
    ProducerAppend,
    ProducerBatch,
    ProducerStates,
)
from stratalog.storage.verification import VerificationGuard

# What a batch may decompress to: more than this could not be cleaned either.
DECOMPRESSED_MAX_BYTES = 256 << 20


class LogAppendInfo(NamedTuple):
    """Where an append landed. Of a duplicate, where its first copy did."""

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool = False


class ValidatedRecords(NamedTuple):
    """Produced records that were checked before, perhaps on another thread, by ``rules`` and as if
    the log ended at offset 0."""

    records: Buffer
    rules: ProduceRules
    produced: ProducedBatches


class Batches(Protocol):
    """Batches ready to be written: offsets assigned, contents checked."""

    @property
    def headers(self) -> Sequence[BatchHeader]: ...
    @property
    def buffers(self) -> Sequence[Buffer]: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def min_timestamp_ms(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...
    @property
    def log_append_time_ms(self) -> int: ...


class FollowedBatches(NamedTuple):
    """What a leader has sent, to be written as it is."""

    headers: Sequence[BatchHeader]
    buffers: Sequence[Buffer]
    size_bytes: int
    last_offset: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    log_append_time_ms: int = -1


def batch_bytes(batches: Batches, header: BatchHeader) -> bytes:
    """The bytes of one batch: for control batches, which have to be looked into."""
    whole = b"".join(bytes(buffer) for buffer in batches.buffers)
    start = header.position - batches.headers[0].position
    return whole[start : start + header.size_bytes]


def followed_batches(records: Buffer, *, leader_epoch: int) -> FollowedBatches | None:
    """Check what a leader sent. None if it holds no whole batch that this epoch may accept."""
    expected = -1
    accepted = []
    for batch in read_headers(records):
        # A batch of a later epoch than the one this replica follows was fetched by mistake; it
        # and what comes after it wait until the replica knows that epoch.
        if batch.partition_leader_epoch > leader_epoch >= 0:
            break
        if batch.last_offset < expected:
            raise OffsetsOutOfOrderError(batch.last_offset, expected)
        expected = batch.last_offset + 1
        accepted.append(batch)
    if not accepted:
        return None
    size_bytes = sum(batch.size_bytes for batch in accepted)
    whole = memoryview(records).cast("B")[:size_bytes]
    return FollowedBatches(
        accepted,
        [whole],
        size_bytes,
        accepted[-1].last_offset,
        min_timestamp(whole),
        max(batch.max_timestamp_ms for batch in accepted),
    )


@dataclass(slots=True)
class ProducerChanges:
    """What an append does to the producers that wrote it."""

    changes: dict[int, ProducerAppend] = field(default_factory=dict)
    completed: list[CompletedTransaction] = field(default_factory=list)
    duplicate: ProducerBatch | None = None


NO_CHANGES = ProducerChanges()


def plan_producer_changes(
    producers: ProducerStates,
    batches: Sequence[BatchHeader],
    origin: AppendOrigin,
    read_batch: Callable[[BatchHeader], Buffer],
) -> ProducerChanges:
    """Check every batch that has a producer id against what is known; raises if one may not be."""
    plan = ProducerChanges()
    for batch in batches:
        if batch.producer_id < 0:
            continue
        if origin is AppendOrigin.CLIENT:
            plan.duplicate = producers.duplicate_of(batch)
            if plan.duplicate is not None:
                return plan
        change = plan.changes.get(batch.producer_id)
        if change is None:
            change = plan.changes[batch.producer_id] = producers.prepare(batch.producer_id, origin)
        if batch.is_control:
            marker = read_control_batch(read_batch(batch))
            # Compaction may have emptied a control batch; it tells nothing then.
            if marker is not None and marker.type.ends_transaction:
                change.add_marker(batch, marker)
        else:
            change.add_data(batch)
    for change in plan.changes.values():
        plan.completed.extend(change.completed)
    plan.completed.sort(key=lambda done: done.last_offset)
    return plan


def check_verified(
    producers: ProducerStates, batches: Sequence[BatchHeader], guard: VerificationGuard | None
) -> None:
    """A transaction's first batch here must come with the guard of the question about it."""
    for batch in batches:
        if not batch.is_transactional or batch.is_control:
            continue
        if producers.has_ongoing_transaction(batch.producer_id, batch.producer_epoch):
            continue
        asked = producers.verifications.get(batch.producer_id)
        if asked is None or asked.guard is not guard:
            raise InvalidTransactionStateError(
                f"producer {batch.producer_id} has no transaction open here, and none was "
                "verified with its coordinator"
            )


def produce_rules(config: TopicConfig) -> ProduceRules:
    """What a topic's settings say about produced batches."""
    name = config.compression_type
    codec = None if name == "producer" else Codec.from_name(name)
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return ProduceRules(
        compacted=config.compact,
        log_append_time=config.message_timestamp_type == "LogAppendTime",
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
        max_message_bytes=config.max_message_bytes,
        codec=codec,
        level=None if codec is None else levels.get(codec),
        max_decompressed_bytes=DECOMPRESSED_MAX_BYTES,
    )
