"""Making a log shorter: cutting its end, starting anew, dropping segments from its start.

The order of steps is what makes a crash harmless. The recovery point on disk is lowered before
anything is cut, because what stands at those offsets afterwards has not been flushed. Segments that
go are renamed, and the names made durable, before the file that stays is cut: one that came back
would stand behind newer batches with the same offsets.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from stratalog.errors import CorruptSegmentError, DiskError, DiskFullError
from stratalog.storage.cutting import leave_to_readers
from stratalog.storage.replay import rebuild_producers
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.segment import Segment

if TYPE_CHECKING:
    from stratalog.storage.log import Log


def truncate_to(log: "Log", offset: int) -> bool:
    if offset >= log.log_end_offset:
        log.epochs.truncate_from_end(offset)
        _write_epochs(log)
        return False
    if offset < log.segments.first.base_offset:
        truncate_fully_and_start_at(log, offset, log_start_offset=offset)
        return True
    log.end_at(offset, batches_end_by=_batches_end_by(log, offset))
    try:
        later = log.segments.above(offset)
        for segment in later:
            log.drop(segment)
        if later:
            log.context.files.sync_directory(log.directory)
        active = log.segments.active
        context = log.context
        if context.leases is not None:
            leave_to_readers(
                context.files, context.leases, log.topic_partition, log.directory, active
            )
        active.truncate_to(offset, now_ms=log.context.clock.now_ms())
        if active.base_offset < offset == log.log_start_offset > active.next_offset():
            # The log starts inside a batch that went as a whole. The next start would find a log
            # that ends before it starts; an empty segment says where it ends.
            active.become_inactive()
            log.segments.add(log.new_segment(offset))
        else:
            active.become_active()
        log.settle_damage()
        log.own.keep_aborts(log.segments)
        log.epochs.truncate_from_end(offset)
        _write_epochs(log)
        _rebuild_producers(log)
    except DiskError as error:
        # Memory and disk may say different things now: only a new start can tell.
        log.fail(error)
        raise
    return True


def truncate_fully_and_start_at(log: "Log", offset: int, *, log_start_offset: int) -> None:
    log.end_at(min(offset, log.log_start_offset))
    try:
        for segment in log.segments:
            log.drop(segment)
        log.context.files.sync_directory(log.directory)
        log.segments.add(log.new_segment(offset))
        log.settle_damage()
        log.own.keep_aborts(log.segments)
        log.epochs.clear()
        for known in log.snapshots.offsets:
            log.snapshots.remove(known)
    except DiskError as error:
        log.fail(error)
        raise
    log.producers.clear(offset)
    log.log_start_offset = log_start_offset
    log.log_end_offset = log.high_watermark = log.recovery_point = offset


def delete_segments(log: "Log", doomed: Sequence[Segment]) -> None:
    if not doomed:
        return
    if len(doomed) == len(log.segments):
        log.roll(RollReason(RollCause.REQUESTED, "every segment is being deleted"))
    going = set(doomed)
    survivors = [segment for segment in log.segments if segment not in going]
    kept = {segment.base_offset for segment in survivors}
    if survivors[0].base_offset > log.log_start_offset:
        log.start_at(survivors[0].base_offset)
    for segment in doomed:
        # An empty active segment was replaced by one of the same name, and its files are gone.
        if segment.base_offset not in kept:
            log.drop(segment)
    # Else the log start could fall back after a crash: its checkpoint holds only what the first
    # segment's name does not say.
    log.context.files.sync_directory(log.directory)
    log.settle_damage()
    log.own.keep_rolls(kept)
    log.own.keep_aborts(log.segments)


def _batches_end_by(log: "Log", offset: int) -> int:
    """An offset that the batches reach when the log is cut at ``offset``: that itself, unless it
    lies inside a batch, which goes as a whole, or behind what compaction has left out."""
    segment = log.segments.floor(offset)
    if segment is None:
        return offset
    with suppress(CorruptSegmentError):
        header = segment.find(offset)
        first = segment.next_offset() if header is None else header.base_offset
        if first == offset:
            return offset
    return segment.base_offset


def _write_epochs(log: "Log") -> None:
    # Epochs beyond the log end are dropped again at the next start, so a full disk may keep them.
    with suppress(DiskFullError):
        log.epochs.flush()


def _rebuild_producers(log: "Log") -> None:
    rebuild_producers(
        log.producers,
        log.snapshots,
        log.segments,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        now_ms=log.context.clock.now_ms(),
    )
    with suppress(DiskFullError):
        log.maybe_snapshot(durable=True)
    log.producers.on_high_watermark(log.high_watermark)
