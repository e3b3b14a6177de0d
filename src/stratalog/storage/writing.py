"""Putting checked batches at the end of a log: epochs, roll, bytes, producers, in that order.

All that can refuse the batches comes first, so that a refused append has changed nothing. A full
disk refuses too, at any step, and leaves the log as it was; any other failure of the disk ends it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratalog.errors import DiskError, OutOfResourcesError, RecordBatchTooLargeError
from stratalog.records import AppendOrigin, BatchHeader
from stratalog.storage.appending import (
    NO_CHANGES,
    Append,
    LogAppendInfo,
    ProducerChanges,
    check_verified,
    plan_producer_changes,
)
from stratalog.storage.index import RELATIVE_OFFSET_MAX
from stratalog.storage.producers import ProducerBatch
from stratalog.storage.rolling import plan_roll
from stratalog.storage.verification import VerificationGuard

if TYPE_CHECKING:
    from stratalog.storage.log import Log


def write(log: "Log", append: Append, guard: VerificationGuard | None = None) -> LogAppendInfo:
    segment_bytes = log.config.segment_size_bytes
    if append.size_bytes > segment_bytes:
        raise RecordBatchTooLargeError(append.size_bytes, segment_bytes)
    plan = plan_producer_changes(log.producers, append.batches, append.origin, append.batch_bytes)
    if plan.duplicate is not None:
        return _as_before(log, append, plan.duplicate)
    if log.context.verify_transactions and append.origin is not AppendOrigin.REPLICATION:
        check_verified(log.producers, append.batches, guard)
    try:
        _assign_epochs(log, append.batches)
        _maybe_roll(log, append)
        _write_bytes(log, append, plan)
    except OutOfResourcesError as error:
        log.context.directory_state.refused = str(error)
        log.context.directory_state.check_space()
        raise
    except DiskError as error:
        log.fail(error)
        raise
    log.context.directory_state.appended(append.size_bytes)
    # Of an old compressed message only the last offset is known.
    first_offset = max(append.batches[0].base_offset, log.log_end_offset)
    log.log_end_offset = append.last_offset + 1
    _apply(log, plan)
    if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
        log.flush()
    return LogAppendInfo(
        first_offset,
        append.last_offset,
        append.max_timestamp_ms,
        append.log_append_time_ms,
        log.log_start_offset,
        append.size_bytes,
    )


def _as_before(log: "Log", append: Append, first: ProducerBatch) -> LogAppendInfo:
    """The answer to a batch that was sent again: what its first copy was answered."""
    return LogAppendInfo(
        first.first_offset,
        first.last_offset,
        first.timestamp_ms,
        first.timestamp_ms,
        log.log_start_offset,
        append.size_bytes,
        is_duplicate=True,
    )


def _assign_epochs(log: "Log", batches: Sequence[BatchHeader]) -> None:
    for batch in batches:
        epoch = batch.partition_leader_epoch
        if batch.magic < 2:
            log.epochs.clear()
        elif epoch >= 0 and epoch != log.epochs.latest_epoch:
            log.epochs.assign(epoch, batch.base_offset)


def _maybe_roll(log: "Log", append: Append) -> None:
    reason = plan_roll(
        log.segments.active,
        log.config,
        incoming_bytes=append.size_bytes,
        incoming_last_offset=append.last_offset,
        incoming_max_timestamp_ms=append.max_timestamp_ms,
        now_ms=append.now_ms,
    )
    if reason is None:
        return
    first = append.batches[0]
    # The first offset of an old compressed message is unknown without decompressing it: its last
    # one bounds it from above, and the range of a segment from below.
    expected = first.base_offset if first.magic >= 2 else append.last_offset - RELATIVE_OFFSET_MAX
    log.roll(reason, expected_base_offset=expected)


def _write_bytes(log: "Log", append: Append, plan: ProducerChanges) -> None:
    active = log.segments.active
    before_bytes = active.size_bytes
    active.append(append.batches, append.buffers, append.min_timestamp_ms)
    if not plan.completed:
        return
    try:
        for aborted in log.producers.plan_aborted(plan.changes.values(), plan.completed):
            if not active.transaction_index.exists:
                log.own.note_aborts(active.base_offset)
            active.transaction_index.append(aborted)
    except DiskError as error:
        # A marker without its entry would let readers see what was aborted: all or nothing.
        if isinstance(error, OutOfResourcesError):
            active.truncate_to(log.log_end_offset, now_ms=append.now_ms)
        active.size_bytes = before_bytes
        raise


def _apply(log: "Log", plan: ProducerChanges) -> None:
    if plan is not NO_CHANGES:
        for change in plan.changes.values():
            log.producers.apply(change)
        for done in plan.completed:
            log.producers.complete(done)
    log.producers.map_end_offset = log.log_end_offset
