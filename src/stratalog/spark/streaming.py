"""The streaming source: what Spark asks of a stream, answered from a log directory.

Spark makes one reader in a process of its own, and calls it from one thread:

    initialOffset                   where a query without a checkpoint begins
    latestOffset(start, limit)      where the next micro-batch ends; asked all the time
    partitions(start, end)          what its tasks read; asked more than once a batch
    commit(end)                     a batch later, and never for the last one

``read`` runs in other processes, on a copy of a reader that was never asked anything: a reader
that is new can be pickled. All that a query must remember is the position in its checkpoint.

That ``latestOffset`` is asked from a position means that all before it has been processed: Spark
asks only between batches. It is then that leases are released and group offsets committed.
"""

import logging
import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from stratalog.clock import Clock, SteadyClock
from stratalog.errors import DiskError
from stratalog.scans.errors import ScanError
from stratalog.scans.leasing import hold_ranges, release
from stratalog.scans.slices import ScanTask
from stratalog.scans.snapshot import DirectorySnapshot
from stratalog.spark.admission import (
    OFFSET_MAX,
    Admission,
    Offsets,
    count_new,
    limit_offsets,
    offsets_from_json,
    offsets_to_json,
    topic_ids_from_json,
)
from stratalog.spark.batch import TaskPartition, plan_tasks, read_partition
from stratalog.spark.groups import Commits, GroupOffsets, make_commits
from stratalog.spark.losses import (
    Span,
    Spans,
    TopicRemadeError,
    find_losses,
    find_losses_of_batch,
)
from stratalog.spark.offsets import PartitionRanges, resolve_starts
from stratalog.spark.options import SourceOptions
from stratalog.spark.plain import plainly
from stratalog.spark.polling import Sleep
from stratalog.spark.schema import check_schema
from stratalog.spark.topic_ids import TopicIds, made_anew
from stratalog.spark.versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from stratalog.spark.watching import DirectoryWatch
from stratalog.spark.weighing import limit_bytes
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    import pyarrow

_log = logging.getLogger(__name__)

_WARNED_MAX = 10_000
_PLANS_MAX = 3

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The last batch that was planned, kept because Spark asks for it more than once."""

    start: Json
    end: Json
    partitions: Sequence[InputPartition]
    lease_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FirstBatch:
    """The batch of a query that begins at the latest offset: it takes nothing of ``at_the_end``.

    Were it to, and were the query killed in it, nobody would know any more where it began: Spark
    asks for the initial offset again, and what is latest is then something else. When the first
    batch is written down its end is the start of the second, for good.
    """

    start: Offsets
    at_the_end: frozenset[TopicPartition]

    def settle(self, end: Offsets) -> Offsets:
        return {
            each: self.start[each] if each in self.at_the_end else offset
            for each, offset in end.items()
            if each in self.start
        }


class StratalogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a log directory as a stream."""

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        *,
        clock: Clock | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        check_schema(schema)
        self._options = options
        self._schema = schema
        self._clock = clock or SteadyClock()
        self._admission = Admission(
            max_offsets=options.max_offsets_per_trigger,
            min_offsets=options.min_offsets_per_trigger,
            max_trigger_delay_ms=options.max_trigger_delay_ms,
            max_bytes=options.max_bytes_per_trigger,
        )
        self._watch = DirectoryWatch(options, self._clock, sleep)
        self._frozen: Spans | None = None  # where a query with Trigger.AvailableNow ends
        self._first: FirstBatch | None = None
        self._last_batch_ms: int | None = None
        self._planned: PlannedBatch | None = None
        self._group: GroupOffsets | None = None
        self._warned: set[str] = set()

    # --- where it begins and ends ------------------------------------------------------------

    @plainly
    def initialOffset(self) -> Json:
        options = self._options
        snapshot = self._watch.snapshot()
        initial = resolve_starts(options.starting, snapshot, options.isolation)
        if options.is_start_moving:
            self._first = FirstBatch(
                initial,
                frozenset(
                    each
                    for each, found in snapshot.partitions.items()
                    if initial[each] == found.end_offset(options.isolation)
                ),
            )
        return offsets_to_json(initial, self._watch.ids_of(snapshot))

    def getDefaultReadLimit(self) -> ReadLimit:
        """One of the limits, for Spark has no way to say several; the others hold nevertheless.

        Never ``ReadAllAvailable``: that comes from Trigger.Once alone, which means it.
        """
        if self._admission.max_offsets is None and self._admission.max_bytes is not None:
            return ReadMaxBytes(self._admission.max_bytes)
        return ReadMaxRows(self._admission.max_offsets or OFFSET_MAX)

    @plainly
    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._watch.latest()

    @plainly
    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        position = offsets_from_json(start)
        first, self._first = self._first, None
        if position != self._watch.reached:
            self._watch.reached = position
            self._finished(start)
        looks = self._watch.looks
        end = self._next_position(start, limit, first)
        if end == start and first is None and self._frozen is None and self.looks == looks:
            # Nothing new is only ever said of a look that came after the question, so that
            # processAllAvailable() keeps its promise.
            self._watch.wait()
            end = self._next_position(start, limit, first)
        return end

    def _next_position(self, start: Json, limit: ReadLimit, first: FirstBatch | None) -> Json:
        """Where a batch from ``start`` ends; the very same if there is to be none yet."""
        position, known = offsets_from_json(start), topic_ids_from_json(start)
        self._watch.latest()
        remade = list(made_anew(known, self._watch.topic_ids))
        found = self._watch.topic_ids
        self._report(TopicRemadeError(each, known[each], found[each]) for each in remade)
        if remade:
            self._watch.note_remade(remade)
            position = _without(position, remade)
        end = self._next_end(position, limit, first)
        if end is None or (end == position and not remade):
            return start
        return offsets_to_json(end, {**known, **self._watch.topic_ids})

    def _next_end(
        self, position: Offsets, limit: ReadLimit, first: FirstBatch | None
    ) -> Offsets | None:
        """Where a batch from ``position`` ends; None if it is to wait for more."""
        spans = self._spans(position)
        self._report(find_losses(position, spans, self._watch.last_ends))
        begin = {
            each: max(position.get(each, 0), span.start_offset) for each, span in spans.items()
        }
        end: Offsets = {
            each: self._reachable(each, begin[each], span) for each, span in spans.items()
        }
        if isinstance(limit, ReadAllAvailable):
            return end
        if first is not None and first.start == position:
            end = first.settle(end)
        if self._should_wait(count_new(begin, end)):
            return None
        return self._limit(begin, end, limit)

    @property
    def looks(self) -> int:
        """How often the directory was looked at, or its owner asked, for where the logs end."""
        return self._watch.looks

    def reportLatestOffset(self) -> Json | None:
        seen = self._watch.seen
        return offsets_to_json({each: span.end_offset for each, span in seen.items()}) or None

    def _spans(self, position: Offsets) -> Spans:
        """The partitions of the stream: all, or those there were when the end was settled."""
        spans, frozen = self._watch.latest(), self._frozen
        if frozen is None:
            return spans
        return {each: span for each, span in spans.items() if each in frozen or each in position}

    def _reachable(self, each: TopicPartition, begin: int, span: Span) -> int:
        end = span.end_offset if span.is_exact else max(begin, span.end_offset)
        if self._frozen is not None:
            settled = self._frozen[each].end_offset if each in self._frozen else begin
            end = min(end, max(begin, settled))
        return end

    def _should_wait(self, new: int) -> bool:
        """For ``minOffsetsPerTrigger``; nothing more comes to a query whose end is settled."""
        now_ms = self._clock.now_ms()
        if new and self._frozen is None and self._last_batch_ms is not None:
            waited_ms = now_ms - self._last_batch_ms
            if self._admission.should_wait(new, waited_ms):
                return True
        if new:
            self._last_batch_ms = now_ms
        return False

    def _limit(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> Offsets:
        """As much as all limits allow: those of the options, and the one that Spark asks for."""
        max_offsets = self._admission.max_offsets or OFFSET_MAX
        max_bytes = self._admission.max_bytes or OFFSET_MAX
        if isinstance(limit, ReadMaxRows):
            max_offsets = min(limit.max_rows, max_offsets)
        if isinstance(limit, ReadMaxBytes):
            max_bytes = min(limit.max_bytes, max_bytes)
        if count_new(begin, end) > max_offsets:
            end = limit_offsets(max_offsets, begin, end)
        if max_bytes < OFFSET_MAX and count_new(begin, end):
            grown = [each for each, offset in end.items() if offset > begin[each]]
            end = {**end, **limit_bytes(max_bytes, begin, end, self._watch.snapshot(grown))}
        return end

    # --- losses ------------------------------------------------------------------------------

    def _report(self, losses: Iterable[ScanError]) -> None:
        """With ``failOnDataLoss`` a loss ends the query, before its batch is written down."""
        for loss in losses:
            if self._options.fail_on_data_loss:
                raise loss
            if str(loss) not in self._warned and len(self._warned) < _WARNED_MAX:
                self._warned.add(str(loss))
                _log.warning("the query goes on, but %s", loss)

    # --- what the tasks read -----------------------------------------------------------------

    @plainly
    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        if start == end:
            return []  # Spark asks so when a query resumes
        planned = self._planned
        if planned is None or (planned.start, planned.end) != (start, end):
            self._release()
            planned = self._planned = self._plan(start, end)
        return planned.partitions

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_partition(partition, self._options, self._schema)

    def _plan(self, start: Json, end: Json) -> PlannedBatch:
        first, last = offsets_from_json(start), offsets_from_json(end)
        ids = topic_ids_from_json(end)
        first = _without(first, list(made_anew(topic_ids_from_json(start), ids)))
        asked = {
            each: (first.get(each, 0), offset)
            for each, offset in last.items()
            if offset > first.get(each, 0)
        }
        # Held before it is looked at: what the snapshot shows cannot go any more.
        lease_ids = self._hold(asked)
        try:
            tasks = self._plan_tasks(first, last, asked, ids)
        except BaseException:
            release(self._watch.log_directory(), lease_ids)
            raise
        seconds = self._options.lease_seconds
        partitions = [
            TaskPartition(replace(task, lease_ids=lease_ids, lease_seconds=seconds))
            for task in tasks
        ]
        return PlannedBatch(start, end, partitions, lease_ids)

    def _plan_tasks(
        self, start: Offsets, end: Offsets, asked: PartitionRanges, ids: TopicIds
    ) -> Sequence[ScanTask]:
        for attempt in range(_PLANS_MAX):
            snapshot = self._watch.snapshot(asked)
            remade = list(made_anew(ids, self._watch.ids_of(snapshot)))
            ranges = self._ranges(start, end, self._watch.spans(snapshot, end), remade)
            try:
                return plan_tasks(self._options, _reaching(snapshot, ranges), ranges).tasks
            except DiskError:
                # Without a lease, retention may take a segment meanwhile: look again.
                if attempt + 1 == _PLANS_MAX:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _ranges(
        self, start: Offsets, end: Offsets, spans: Spans, remade: Collection[str]
    ) -> PartitionRanges:
        """What there is of a batch that is written down; ``remade`` topics are others by now."""
        self._report(find_losses_of_batch(start, end, spans, remade=remade))
        ranges = {}
        for each, span in spans.items():
            if each.topic in remade:
                continue
            first = max(start.get(each, 0), span.start_offset)
            last = min(end[each], span.end_offset) if span.is_exact else end[each]
            if first < last:
                ranges[each] = (first, last)
        return ranges

    # --- what is held, and let go ------------------------------------------------------------

    def _hold(self, ranges: PartitionRanges) -> tuple[str, ...]:
        seconds = self._options.lease_seconds
        if not seconds:
            return ()
        holder = f"spark stream, process {os.getpid()} on {socket.gethostname()}"
        log_directory = self._watch.log_directory()
        return hold_ranges(log_directory, ranges, seconds=seconds, holder=holder).lease_ids

    def _release(self) -> None:
        planned = self._planned
        if planned is not None and planned.lease_ids:
            release(self._watch.log_directory(), planned.lease_ids)
            self._planned = replace(planned, lease_ids=())

    def commit(self, end: Json) -> None:
        self._finished(end)

    def stop(self) -> None:
        self._release()
        if self._group is not None:
            self._group.close()

    def _finished(self, position: Json) -> None:
        """All before ``position`` has been processed, and will not be asked for again."""
        if self._planned is not None and self._planned.end == position:
            self._release()
        if self._options.group_id is not None:
            if self._group is None:
                self._group = GroupOffsets(self._options.group_id, self._connect)
            self._group.submit(offsets_from_json(position))
            self._group.wait()

    def _connect(self) -> Commits:
        options = self._options
        assert options.group_id is not None
        return make_commits(
            options.path, options.group_id, options.bootstrap_servers, options.kafka
        )


def _without(position: Offsets, topics: Collection[str]) -> dict[TopicPartition, int]:
    return {each: offset for each, offset in position.items() if each.topic not in topics}


def _reaching(snapshot: DirectorySnapshot, ranges: PartitionRanges) -> DirectorySnapshot:
    """The snapshot, ending no earlier than a batch that is written down.

    What is written down was once there to be read, whatever a silent owner's checkpoint says.
    """
    partitions = dict(snapshot.partitions)
    for each, (_, end) in ranges.items():
        found = partitions[each]
        if end > min(found.high_watermark, found.last_stable_offset):
            partitions[each] = replace(
                found,
                high_watermark=max(end, found.high_watermark),
                last_stable_offset=max(end, found.last_stable_offset),
                end_position=-1,
            )
    return replace(snapshot, partitions=partitions)
