"""The work of one cleaning: the map of the dirty part, then every segment from the first rewritten.

``RoundPlan`` notes everything that the work needs. It runs on any thread, or in another process:
it reads the source files and writes new ones, and touches nothing that the log's thread uses.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import CorruptBatchError, CorruptSegmentError, DiskFullError
from stratalog.records import CleanedTransactions, MapBuilder, OffsetMap, RecordFilter
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.planning import group_segments
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.transactions import AbortedTransaction

# A buffer that has to grow is not made larger than this for the sake of speed alone.
_GROWN_BYTES = 4 << 20
_NO_SPEND: Callable[[int], None] = lambda _size_bytes: None  # noqa: E731


class BatchWalk(Protocol):
    """A kernel that is fed whole batches, in the order of the log."""

    @property
    def wanted_bytes(self) -> int: ...
    def feed(self, buffer: Buffer, position: int) -> int: ...


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


class RoundWork:
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
        transactions.add_aborted(aborted_fields(each) for each in aborted)
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
        self._check_room(sum(source.size_bytes for source in group))
        cleaned = self._open_output(group)
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

    def _open_output(self, group: Sequence[Source]) -> CleanedSegment:
        plan = self.plan
        return CleanedSegment(plan.files, plan.directory, group[0].base_offset, plan.config)

    def _check_room(self, size_bytes: int) -> None:
        free = self.plan.files.free_bytes(self.plan.directory)
        if free < size_bytes:
            reason = f"{free} bytes are free where cleaning may need {size_bytes}"
            raise DiskFullError("clean", self.plan.directory, 0, reason)

    def _filter_into(self, source: Source, cleaned: CleanedSegment) -> None:
        records = self._filter
        self._transactions.add_aborted(aborted_fields(each) for each in source.aborted)
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
        self, source: Source, walk: BatchWalk, position: int, end: int | None = None
    ) -> Iterator[int]:
        """Feed the batches of ``source`` from ``position`` on; yields what each piece was."""
        file = self.plan.files.open(source.path, writable=False)
        end = source.size_bytes if end is None else end
        try:
            while position < end:
                with memoryview(self._buffer) as buffer:
                    size = file.read_into(position, buffer[: end - position])
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

    def _feed(self, source: Source, walk: BatchWalk, data: memoryview, position: int) -> int:
        try:
            return walk.feed(data, position)
        except CorruptBatchError as error:
            raise CorruptSegmentError(
                source.path, error.position, error.base_offset, error.reason
            ) from error

    def _grow(self, source: Source, walk: BatchWalk, position: int) -> None:
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


def aborted_fields(aborted: AbortedTransaction) -> tuple[int, int, int, int]:
    return (
        aborted.producer_id,
        aborted.first_offset,
        aborted.last_offset,
        aborted.last_stable_offset,
    )
