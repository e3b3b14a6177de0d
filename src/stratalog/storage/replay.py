"""Bringing producer state up to the log end: the newest snapshot, then the batches behind it."""

from collections.abc import Callable, Iterable, Iterator

from stratalog.errors import CorruptSegmentError, RecordError
from stratalog.records import AppendOrigin, BatchHeader
from stratalog.storage.appending import plan_producer_changes
from stratalog.storage.producers import CompletedTransaction, ProducerStates
from stratalog.storage.segment import Segment
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import Snapshots


def rebuild_producers(
    producers: ProducerStates,
    snapshots: Snapshots,
    segments: Segments,
    *,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> None:
    """Make ``producers`` what it would be had every batch up to the log end been appended."""
    snapshots.remove_outside(log_start_offset, log_end_offset)
    restore_newest(
        producers, snapshots, at_most=log_end_offset, default=log_start_offset, now_ms=now_ms
    )
    replay(producers, segments, end_offset=log_end_offset)


def restore_newest(
    producers: ProducerStates, snapshots: Snapshots, *, at_most: int, default: int, now_ms: int
) -> None:
    newest = snapshots.read_newest(at_most=at_most)
    if newest is None:
        producers.clear(default)
    else:
        offset, states = newest
        producers.restore(states, offset, now_ms)


def replay(
    producers: ProducerStates,
    segments: Segments,
    *,
    end_offset: int,
    on_completed: Callable[[Segment, CompletedTransaction], None] | None = None,
) -> None:
    """Apply the batches from where ``producers`` stands up to ``end_offset``.

    ``on_completed`` is told of each transaction that ends on the way, before it counts as ended.
    """
    start_offset = producers.map_end_offset
    for segment in segments.from_floor(start_offset):
        if start_offset >= end_offset or segment.base_offset >= end_offset:
            break
        for batch in _batches_between(segment, start_offset, end_offset):
            _replay_batch(producers, segment, batch, on_completed)
    producers.map_end_offset = max(start_offset, end_offset)


def _batches_between(segment: Segment, start_offset: int, end_offset: int) -> Iterator[BatchHeader]:
    position = segment.position_of(start_offset) if start_offset > segment.base_offset else 0
    for batch in segment.headers(position):
        if batch.last_offset >= end_offset:
            return
        # A log may start inside a batch; the whole of it counts.
        if batch.producer_id >= 0 and batch.last_offset >= start_offset:
            yield batch


def _replay_batch(
    producers: ProducerStates,
    segment: Segment,
    batch: BatchHeader,
    on_completed: Callable[[Segment, CompletedTransaction], None] | None,
) -> None:
    try:
        plan = plan_producer_changes(
            producers, (batch,), AppendOrigin.REPLICATION, segment.read_batch
        )
    except RecordError as error:
        raise CorruptSegmentError(
            segment.path, batch.position, batch.base_offset, str(error)
        ) from error
    for change in plan.changes.values():
        producers.apply(change)
    _complete(producers, segment, plan.completed, on_completed)


def _complete(
    producers: ProducerStates,
    segment: Segment,
    completed: Iterable[CompletedTransaction],
    on_completed: Callable[[Segment, CompletedTransaction], None] | None,
) -> None:
    for done in completed:
        if on_completed is not None:
            on_completed(segment, done)
        producers.complete(done)
