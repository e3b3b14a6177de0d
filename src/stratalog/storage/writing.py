"""Putting checked batches at the end of a log: epochs, roll, bytes, producers, in that order.

All that can refuse the batches comes first, so that a refused append has changed nothing. A full
disk refuses too, at any step, and leaves the log as it was; any other failure of the disk ends it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from stratalog.errors import DiskError, OutOfResourcesError, RecordBatchTooLargeError, StorageError
from stratalog.records import AppendOrigin, BatchHeader
from stratalog.storage.appending import (
    NO_CHANGES,
    Batches,
    LogAppendInfo,
    ProducerChanges,
    batch_bytes,
    check_verified,
    plan_producer_changes,
)
from stratalog.storage.index import RELATIVE_OFFSET_MAX
from stratalog.storage.producers import ProducerBatch
from stratalog.storage.rolling import plan_roll, room_in
from stratalog.storage.verification import VerificationGuard

if TYPE_CHECKING:
    from stratalog.storage.log import Log


def write(
    log: "Log",
    batches: Batches,
    now_ms: int,
    origin: AppendOrigin,
    guard: VerificationGuard | None = None,
) -> LogAppendInfo:
    headers, size_bytes, last_offset = batches.headers, batches.size_bytes, batches.last_offset
    config = log.config
    if size_bytes > config.segment_size_bytes:
        raise RecordBatchTooLargeError(size_bytes, config.segment_size_bytes)
    plan = NO_CHANGES
    if headers[0].producer_id >= 0 or headers[0].is_transactional or len(headers) > 1:
        plan = _plan_producers(log, batches, origin, guard)
        if plan.duplicate is not None:
            return _as_before(log, size_bytes, plan.duplicate)
    directory = log.context.directory_state
    try:
        _put(log, batches, plan, now_ms)
    except OutOfResourcesError as error:
        directory.refused = str(error)
        directory.check_space()
        raise
    except DiskError as error:
        log.fail(error)
        raise
    directory.appended(size_bytes)
    # Of an old compressed message only the last offset is known.
    first_offset = max(headers[0].base_offset, log.log_end_offset)
    log.log_end_offset = end_offset = last_offset + 1
    if plan is not NO_CHANGES:
        _apply(log, plan)
    log.producers.map_end_offset = end_offset
    if end_offset - log.recovery_point >= config.flush_messages:
        log.flush()
    return LogAppendInfo(
        first_offset,
        last_offset,
        batches.max_timestamp_ms,
        batches.log_append_time_ms,
        log.log_start_offset,
        size_bytes,
    )


def _plan_producers(
    log: "Log", batches: Batches, origin: AppendOrigin, guard: VerificationGuard | None
) -> ProducerChanges:
    headers = batches.headers
    plan = plan_producer_changes(log.producers, headers, origin, partial(batch_bytes, batches))
    is_verified = log.context.verify_transactions and origin is not AppendOrigin.REPLICATION
    if is_verified and plan.duplicate is None:
        check_verified(log.producers, headers, guard)
    return plan


def _as_before(log: "Log", size_bytes: int, first: ProducerBatch) -> LogAppendInfo:
    """The answer to a batch that was sent again: what its first copy was answered."""
    return LogAppendInfo(
        first.first_offset,
        first.last_offset,
        first.timestamp_ms,
        first.timestamp_ms,
        log.log_start_offset,
        size_bytes,
        is_duplicate=True,
    )


def _assign_epoch(log: "Log", header: BatchHeader) -> None:
    if header.magic < 2:
        log.epochs.clear()
    elif header.partition_leader_epoch >= 0:
        log.epochs.assign(header.partition_leader_epoch, header.base_offset)


def _put(log: "Log", batches: Batches, plan: ProducerChanges, now_ms: int) -> None:
    headers, max_timestamp_ms = batches.headers, batches.max_timestamp_ms
    latest_epoch = log.epochs.latest_epoch
    for header in headers:
        if header.partition_leader_epoch != latest_epoch:
            _assign_epoch(log, header)
            latest_epoch = log.epochs.latest_epoch
    if log.epochs.is_behind_end:
        log.epochs.flush_before_append()
    active = log.segments.active
    end_bytes = active.size_bytes + batches.size_bytes
    size_max, offset_max, timestamp_max_ms = active.room
    if (
        end_bytes > size_max
        or batches.last_offset > offset_max
        or max_timestamp_ms > timestamp_max_ms
    ):
        _maybe_roll(log, batches, now_ms)
        active = log.segments.active
    if not plan.completed:
        active.append(headers, batches.buffers, batches.min_timestamp_ms)
        return
    with _noting_aborts(log, plan):
        active.append(headers, batches.buffers, batches.min_timestamp_ms)


def _maybe_roll(log: "Log", batches: Batches, now_ms: int) -> None:
    active = log.segments.active
    reason = plan_roll(
        active,
        log.config,
        incoming_bytes=batches.size_bytes,
        incoming_last_offset=batches.last_offset,
        incoming_max_timestamp_ms=batches.max_timestamp_ms,
        now_ms=now_ms,
    )
    if reason is None:
        active.room = room_in(active, log.config)
        return
    first = batches.headers[0]
    # The first offset of an old compressed message is unknown without decompressing it: its last
    # one bounds it from above, and the range of a segment from below.
    unknown = batches.last_offset - RELATIVE_OFFSET_MAX
    expected = first.base_offset if first.magic >= 2 else unknown
    log.roll(reason, expected_base_offset=expected)


@contextmanager
def _noting_aborts(log: "Log", plan: ProducerChanges) -> Iterator[None]:
    """The index of aborted transactions, before their markers: a marker without its entry would
    let readers see what was aborted, and an entry without its marker says nothing to anybody. If
    either cannot be written, neither counts."""
    active = log.segments.active
    index = active.transaction_index
    noted = 0
    try:
        for aborted in log.producers.plan_aborted(plan.changes.values(), plan.completed):
            if not index.exists:
                log.own.note_aborts(active.base_offset)
            index.append(aborted)
            noted += 1
        yield
    except StorageError:
        index.take_back(noted)
        raise


def _apply(log: "Log", plan: ProducerChanges) -> None:
    for change in plan.changes.values():
        log.producers.apply(change)
    for done in plan.completed:
        log.producers.complete(done)
