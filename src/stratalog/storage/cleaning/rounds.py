"""One cleaning of one log: planned and swapped in on the log's thread, worked at on any other.

``plan_round`` runs on the log's own thread and notes everything that the work needs. The work
(``rewriting``) touches nothing that the log's thread uses. Each finished segment is swapped in on
the log's thread again. So a log that is truncated or deleted meanwhile need not wait: what comes
too late is refused by the swap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stratalog.errors import LogDamagedError
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.planning import CleaningPlan, plan_cleaning
from stratalog.storage.cleaning.rewriting import CleanerStats as CleanerStats
from stratalog.storage.cleaning.rewriting import RoundPlan as RoundPlan
from stratalog.storage.cleaning.rewriting import RoundWork as RoundWork
from stratalog.storage.cleaning.rewriting import Source as Source
from stratalog.storage.cleaning.rewriting import Work as Work
from stratalog.storage.cleaning.swap import swap_in
from stratalog.storage.log import Log
from stratalog.storage.reading import collect_aborted
from stratalog.storage.segment import Segment


def plan_log(log: Log, checkpoint: int | None, now_ms: int) -> CleaningPlan:
    """What cleaning ``log`` would come to now, and why."""
    return plan_cleaning(
        list(log.segments),
        config=log.config,
        checkpoint=checkpoint,
        log_start_offset=log.log_start_offset,
        last_stable_offset=log.last_stable_offset,
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
    )


def plan_round(log: Log, plan: CleaningPlan, *, now_ms: int) -> RoundPlan:
    if log.is_damaged:
        raise LogDamagedError(
            f"{log.topic_partition} has damage that a person has to decide about; see "
            f"'stratalog log verify' and 'stratalog log repair' for {log.directory}"
        )
    upper = plan.first_uncleanable_offset
    sources = tuple(
        _source(log, segment, plan.first_dirty_offset)
        for segment in log.segments
        if segment.base_offset < upper
    )
    producers = tuple(
        (each.producer_id, each.epoch, each.last_data_offset) for each in log.producers
    )
    return RoundPlan(
        log.topic_partition,
        log.directory,
        log.context.files,
        log.config,
        plan.first_dirty_offset,
        upper,
        now_ms,
        log.truncation_count,
        sources,
        producers,
    )


def _source(log: Log, segment: Segment, first_dirty_offset: int) -> Source:
    following = log.segments.higher(segment)
    assert following is not None, f"{segment} is the active one"
    end_offset = following.base_offset
    holds_first = segment.base_offset < first_dirty_offset < end_offset
    return Source(
        segment.base_offset,
        segment.path,
        segment.size_bytes,
        segment.offset_index.entries * segment.offset_index.entry_size,
        segment.time_index.entries * segment.time_index.entry_size,
        segment.modified_ms(),
        end_offset,
        segment.position_of(first_dirty_offset) if holds_first else 0,
        # As Kafka: an abort below the log's start does not count, even in a segment that holds it.
        collect_aborted(log, segment, log.log_start_offset, end_offset),
    )


class CleaningRound(RoundWork):
    """The work of one round, and its hand-over to the log; not for several threads at a time."""

    def swap(self, log: Log, cleaned: CleanedSegment, group: Sequence[Source]) -> None:
        """On the log's thread: put what ``rewrite`` made in the place of its group."""
        bases = [source.base_offset for source in group]
        swap_in(log, cleaned, bases, truncation_count=self.plan.truncation_count)

    def settle(self) -> None:
        """Make the names that a swap has changed durable; the next group, and the checkpoint,
        build on them."""
        self.plan.files.sync_directory(self.plan.directory)

    def discard(self, log: Log, cleaned: CleanedSegment) -> None:
        """Its swap was refused, or failed."""
        # Of a swap that broke off halfway, what is left of ``.cleaned`` tells the next start that
        # the new segment is not complete.
        if log.failure is None:
            cleaned.discard()


@dataclass(frozen=True, slots=True)
class RoundResult:
    end_offset: int
    stats: CleanerStats


def clean_now(
    log: Log,
    *,
    first_dirty_offset: int | None = None,
    now_ms: int,
    map_bytes: int = 128 << 20,
    offset_map: OffsetMap | None = None,
    buffer_bytes: int = 256 * 1024,
) -> RoundResult:
    """Clean a log on this thread, whether or not it is dirty enough; for tools and tests."""
    plan = plan_log(log, first_dirty_offset, now_ms)
    # An empty map is false.
    offset_map = OffsetMap(map_bytes) if offset_map is None else offset_map
    work = Work(offset_map, buffer_bytes)
    round_ = CleaningRound(plan_round(log, plan, now_ms=now_ms), work)
    end_offset = round_.build_map()
    for group in round_.groups():
        cleaned = round_.rewrite(group)
        try:
            round_.swap(log, cleaned, group)
        except Exception:
            round_.discard(log, cleaned)
            raise
        round_.settle()
    return RoundResult(end_offset, round_.finish())
