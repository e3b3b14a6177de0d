"""One cleaning of one log: the map of its dirty part, then every segment from the first rewritten.

``plan_round`` runs on the log's own thread and notes everything that the work needs. The work runs
on any thread: it reads the source files and writes ``.cleaned`` files, and touches nothing that the
log's thread uses. Each finished segment is swapped in on the log's thread again. So a log that is
truncated or deleted meanwhile need not wait: what comes too late is refused by the swap.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from stratalog.config import TopicConfig
from stratalog.errors import (
    CorruptBatchError,
    CorruptSegmentError,
    DiskFullError,
    LogDamagedError,
)
from stratalog.records import CleanedTransactions, MapBuilder, OffsetMap, RecordFilter
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.planning import CleaningPlan, group_segments, plan_cleaning
from stratalog.storage.cleaning.swap import swap_in
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.reading import collect_aborted
from stratalog.storage.segment import Segment
from stratalog.storage.transactions import AbortedTransaction

# A buffer that has to grow is not made larger than this for the sake of speed alone.
_GROWN_BYTES = 4 << 20
_NO_SPEND: Callable[[int], None] = lambda _size_bytes: None  # noqa: E731


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to be rewritten, as it was when the round was planned."""

    base_offset: int
    path: str
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    modified_ms: int
    end_offset: int  # the next segment's base offset
    first_dirty_position: int
    aborted: tuple[AbortedTransaction, ...]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """All that a cleaning has to know. ``sources`` are the segments below the upper bound."""

    topic_partition: TopicPartition
    directory: str
    files: FileSystem
    config: TopicConfig
    first_dirty_offset: int
    upper_bound_offset: int
    now_ms: int
    truncation_count: int
    sources: tuple[Source, ...]
    producers: tuple[tuple[int, int, int], ...]

    @property
    def dirty(self) -> tuple[Source, ...]:
        """The sources that hold offsets from the first dirty one on."""
        return tuple(each for each in self.sources if each.end_offset > self.first_dirty_offset)

    @property
    def legacy_horizon_ms(self) -> int:
        """Below it, by a segment's age, tombstones of magic 0 and 1 go."""
        clean = [each for each in self.sources if each.base_offset < self.first_dirty_offset]
        return clean[-1].modified_ms - self.config.delete_retention_ms if clean else 0


@dataclass(slots=True)
class CleanerStats:
    """What a round did. Sizes are in bytes, times in seconds."""

    first_dirty_offset: int = 0
    end_offset: int = 0
    map_bytes_read: int = 0
    map_messages_read: int = 0
    map_entries: int = 0
    map_capacity: int = 0
    bytes_read: int = 0
    bytes_kept: int = 0
    messages_read: int = 0
    messages_kept: int = 0
    batches_read: int = 0
    batches_kept: int = 0
    superseded: int = 0
    null_keys: int = 0
    tombstones_expired: int = 0
    tombstones_kept: int = 0
    discarded_batches: int = 0
    horizons_set: int = 0
    largest_batch_bytes: int = 0
    segments_before: int = 0
    segments_after: int = 0
    map_seconds: float = 0.0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)

    @property
    def is_map_full(self) -> bool:
        return self.map_entries >= self.map_capacity > 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Work:
    """What the work of a round is given by whoever runs it."""

    map: OffsetMap
    buffer_bytes: int = 256 * 1024
    # Called with the bytes read or written, and before each of them: throttles, and raises to stop.
    spend: Callable[[int], None] = _NO_SPEND
    # Called with the bytes of the log that have been gone over, of twice the range that is cleaned.
    progress: Callable[[int], None] = _NO_SPEND


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


class CleaningRound:
    """The work of one round; not for several threads at a time."""

    def __init__(self, plan: RoundPlan, work: Work) -> None:
        self.plan = plan
        self.stats = CleanerStats(first_dirty_offset=plan.first_dirty_offset)
        self._map = work.map
        self._work = work
        self._buffer = bytearray(work.buffer_bytes)
        self._transactions = CleanedTransactions(plan.producers)
        self._filter = RecordFilter(
            self._map,
            self._transactions,
            now_ms=plan.now_ms,
            delete_retention_ms=plan.config.delete_retention_ms,
            upper_bound_offset=plan.upper_bound_offset,
        )

    def build_map(self) -> int:
        """Take in the keys of the dirty part, as many as fit; returns where the round ends."""
        started = time.perf_counter()
        plan, offsets = self.plan, self._map
        offsets.clear(plan.upper_bound_offset - plan.first_dirty_offset)
        offsets.track(plan.first_dirty_offset, plan.upper_bound_offset)
        transactions = CleanedTransactions()
        aborted = {each: None for source in plan.dirty for each in source.aborted}
        transactions.add_aborted(_fields(each) for each in aborted)
        builder = MapBuilder(offsets, transactions, plan.first_dirty_offset)
        for source in plan.dirty:
            for read in self._walk(source, builder, source.first_dirty_position):
                self.stats.map_bytes_read += read
            if builder.is_full:
                break
            if offsets.latest_offset >= source.end_offset:
                # A base offset lies outside the CRC; where it is wrong in the last batch, no batch
                # behind it tells, but the next segment does.
                raise CorruptSegmentError(
                    source.path,
                    builder.position,
                    offsets.latest_offset,
                    f"its batches pass the next segment's base offset {source.end_offset}",
                )
            # Offsets that compaction took away at the segment's end have been seen too.
            offsets.raise_latest_offset(source.end_offset - 1)
        self.stats.map_messages_read = builder.messages_read
        self.stats.map_entries = offsets.size
        self.stats.map_capacity = offsets.capacity
        self.stats.map_seconds = time.perf_counter() - started
        self.stats.end_offset = offsets.latest_offset + 1
        return self.stats.end_offset

    def groups(self) -> list[list[Source]]:
        """The segments up to the round's end, those together that become one."""
        return group_segments(
            [each for each in self.plan.sources if each.base_offset < self.stats.end_offset],
            segment_bytes=self.plan.config.segment_size_bytes,
            segment_index_bytes=self.plan.config.segment_index_bytes,
            first_uncleanable_offset=self.plan.upper_bound_offset,
        )

    def rewrite(self, group: Sequence[Source]) -> CleanedSegment:
        """Write what is kept of a group to ``.cleaned`` files, finished and durable."""
        started = time.perf_counter()
        plan = self.plan
        self._check_room(sum(source.size_bytes for source in group))
        cleaned = CleanedSegment(plan.files, plan.directory, group[0].base_offset, plan.config)
        try:
            for source in group:
                self._filter_into(source, cleaned)
            cleaned.finish(group[-1].modified_ms)
        except BaseException:
            cleaned.discard()
            raise
        self.stats.segments_before += len(group)
        self.stats.segments_after += 1
        self.stats.seconds += time.perf_counter() - started
        return cleaned

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

    def _check_room(self, size_bytes: int) -> None:
        free = self.plan.files.free_bytes(self.plan.directory)
        if free < size_bytes:
            reason = f"{free} bytes are free where cleaning may need {size_bytes}"
            raise DiskFullError("clean", self.plan.directory, 0, reason)

    def _filter_into(self, source: Source, cleaned: CleanedSegment) -> None:
        records = self._filter
        self._transactions.add_aborted(_fields(each) for each in source.aborted)
        records.retain_legacy_deletes = source.modified_ms > self.plan.legacy_horizon_ms
        for read in self._walk(source, records, 0):
            self.stats.bytes_read += read
            with memoryview(records) as kept:
                if kept.nbytes:
                    cleaned.append(kept)
                    self.stats.bytes_kept += kept.nbytes
                    self._work.spend(kept.nbytes)
        cleaned.add_aborted(AbortedTransaction(*each) for each in self._transactions.take_kept())

    def _walk(
        self, source: Source, walk: MapBuilder | RecordFilter, position: int
    ) -> Iterator[int]:
        """Feed the batches of ``source`` from ``position`` on; yields what each piece was."""
        file = self.plan.files.open(source.path, writable=False)
        try:
            while position < source.size_bytes:
                with memoryview(self._buffer) as buffer:
                    size = file.read_into(position, buffer[: source.size_bytes - position])
                    self._work.spend(size)
                    read = self._feed(source, walk, buffer[:size], position)
                if read == 0:
                    if isinstance(walk, MapBuilder) and walk.is_full:
                        return
                    self._grow(source, walk, position)
                    continue
                yield read
                self._work.progress(read)
                position += read
                if isinstance(walk, MapBuilder) and walk.is_full:
                    return
        finally:
            file.close()

    def _feed(
        self, source: Source, walk: MapBuilder | RecordFilter, data: memoryview, position: int
    ) -> int:
        try:
            return walk.feed(data, position)
        except CorruptBatchError as error:
            raise CorruptSegmentError(
                source.path, error.position, error.base_offset, error.reason
            ) from error

    def _grow(self, source: Source, walk: MapBuilder | RecordFilter, position: int) -> None:
        """A batch larger than the buffer, if it is all there; else the segment is cut short."""
        wanted = walk.wanted_bytes
        if not len(self._buffer) < wanted <= source.size_bytes - position:
            raise CorruptSegmentError(source.path, position, -1, CUT_SHORT)
        # Room for several: of what does not fit as a whole, the beginning is read twice.
        self._buffer = bytearray(max(wanted, min(4 * wanted, _GROWN_BYTES)))

    def finish(self) -> CleanerStats:
        """Sum up, once the last group is rewritten."""
        stats, records = self.stats, self._filter
        stats.seconds += stats.map_seconds
        for name in (
            "messages_read",
            "messages_kept",
            "batches_read",
            "batches_kept",
            "superseded",
            "null_keys",
            "tombstones_expired",
            "tombstones_kept",
            "discarded_batches",
            "horizons_set",
            "largest_batch_bytes",
        ):
            setattr(stats, name, getattr(records, name))
        limit = self.plan.config.max_message_bytes
        if stats.largest_batch_bytes > limit:
            stats.warnings.append(
                f"a rewritten batch has {stats.largest_batch_bytes} bytes, more than "
                f"max.message.bytes={limit}; it was kept"
            )
        if stats.null_keys:
            stats.warnings.append(
                f"{stats.null_keys} records without a key were dropped: a compacted topic has no "
                "place for them"
            )
        return stats


def _fields(aborted: AbortedTransaction) -> tuple[int, int, int, int]:
    return (
        aborted.producer_id,
        aborted.first_offset,
        aborted.last_offset,
        aborted.last_stable_offset,
    )


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
    work = Work(offset_map or OffsetMap(map_bytes), buffer_bytes)
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
