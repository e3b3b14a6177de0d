"""The batch reader: plans on the driver, reads in tasks.

A plan is made of the snapshot that the data source took when the DataFrame was made; a task gets a
``ScanTask`` and yields record batches. The reader itself travels to every task, so it carries
neither the snapshot nor the plan.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from stratalog.scans.columns import GAP_COLUMNS
from stratalog.scans.errors import DataLostError
from stratalog.scans.leasing import LeaseRenewal
from stratalog.scans.planning import MAX_BYTES_PER_TASK, ScanPlan, plan_scan
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.slices import ReadOptions, ScanTask
from stratalog.scans.snapshot import DirectorySnapshot
from stratalog.scans.where import Where
from stratalog.spark.counting import tell_read
from stratalog.spark.holding import hold_plan
from stratalog.spark.offsets import (
    PartitionRanges,
    clamp_ranges,
    lost_ranges,
    resolve_ranges,
)
from stratalog.spark.options import SourceOptions
from stratalog.spark.plain import plainly
from stratalog.spark.predicates import both, where_of_filters
from stratalog.spark.schema import BatchFitting, check_schema
from stratalog.spark.workers import settle_in

if TYPE_CHECKING:
    import pyarrow

TASK_BYTES_MIN = 4 << 20

_log = logging.getLogger(__name__)


class TaskPartition(InputPartition):
    """One task's part of a plan."""

    def __init__(self, task: ScanTask) -> None:
        super().__init__(task)
        self.task = task

    def __repr__(self) -> str:
        return f"TaskPartition({len(self.task.slices)} slices, {self.task.size_bytes} bytes)"


class StratalogReader(DataSourceReader):
    """Reads the ranges that ``options`` come to in ``snapshot``."""

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        snapshot: DirectorySnapshot,
        lease_ids: tuple[str, ...] = (),
    ) -> None:
        check_schema(schema, gaps=options.gaps)
        self._options = options
        self._schema = schema
        self._snapshot: DirectorySnapshot | None = snapshot
        self._lease_ids = lease_ids
        self._pushed: Where | None = None
        if options.pushdown:
            # Spark asks whether the method is its own, to refuse readers that push filters while
            # its setting is off. This one must work in both settings.
            self.pushFilters = _PushFilters(self)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("pushFilters", None)
        state["_snapshot"] = None
        return state

    def push(self, filters: list[Filter]) -> list[Filter]:
        """Prunes by what is understood of ``filters``, and leaves all of them to Spark."""
        self._pushed = where_of_filters(filters)
        return filters

    @plainly
    def partitions(self) -> Sequence[InputPartition]:
        assert self._snapshot is not None, "plans are made on the driver"
        ranges = batch_ranges(self._options, self._snapshot)
        # Held first: what is planned after that is there.
        lease_ids = hold_plan(self._snapshot, self._options, ranges, self._lease_ids)
        plan = plan_tasks(self._options, self._snapshot, ranges, pushed=self._pushed)
        seconds = self._options.lease_seconds
        return [
            TaskPartition(replace(task, lease_ids=lease_ids, lease_seconds=seconds))
            for task in plan.tasks
        ]

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_partition(partition, self._options, self._schema, pushed=self._pushed)


class _PushFilters:
    """``reader.pushFilters``, which Spark takes for the inherited method by its ``__func__``."""

    def __init__(self, reader: StratalogReader) -> None:
        self.__func__ = DataSourceReader.pushFilters
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        return self._reader.push(filters)


def batch_ranges(options: SourceOptions, snapshot: DirectorySnapshot) -> PartitionRanges:
    """What a batch query reads of each partition; what it cannot is an error, or a warning."""
    ranges = resolve_ranges(options.starting, options.ending, snapshot, options.isolation)
    # Whoever asks for the holes gets what lies below the log's start as one, told as expired.
    for lost in lost_ranges(ranges, snapshot, options.isolation, only_behind=options.gaps):
        report_loss(lost, options)
    return clamp_ranges(ranges, snapshot, options.isolation, only_behind=options.gaps)


def report_loss(lost: DataLostError, options: SourceOptions) -> None:
    if options.fail_on_data_loss:
        raise type(lost)(
            lost.topic_partition,
            lost.start_offset,
            lost.end_offset,
            f"{lost.reason}. Set failOnDataLoss to false to read what is there",
        )
    _log.warning("%s", lost)


def plan_tasks(
    options: SourceOptions,
    snapshot: DirectorySnapshot,
    ranges: PartitionRanges,
    *,
    pushed: Where | None = None,
) -> ScanPlan:
    """Tasks for these ranges; batches and streams share it.

    Where nobody says how large tasks are to be, little data is cut smaller than much: into two a
    core, so that none is idle, but not so small that starting a task is most of its work.
    """
    plan = partial(
        plan_scan,
        snapshot,
        ranges=ranges,
        isolation=options.isolation,
        where=combined_where(options, pushed),
        min_tasks=options.min_partitions,
        max_records_per_task=options.max_records_per_partition,
        max_lateness_ms=options.max_lateness_ms,
        gaps=options.gaps,
    )
    if options.max_bytes_per_partition is not None:
        return plan(max_bytes_per_task=options.max_bytes_per_partition)
    planned = plan(max_bytes_per_task=MAX_BYTES_PER_TASK)
    wanted = 2 * (os.cpu_count() or 1)
    smaller = max(planned.bytes_kept // wanted, TASK_BYTES_MIN)
    if len(planned.tasks) >= wanted or planned.bytes_kept <= smaller:
        return planned
    return plan(max_bytes_per_task=smaller)


def combined_where(options: SourceOptions, pushed: Where | None = None) -> Where | None:
    """Everything that is known about the rows that are wanted; ``None`` is all of them."""
    where = options.where
    if options.keys is not None:
        # Whoever gives a key by option says that its producers used Kafka's partitioner.
        where = both(where, Where(keys=options.keys, is_partitioned_by_key=True))
    return both(where, pushed)


def read_partition(
    partition: InputPartition,
    options: SourceOptions,
    schema: StructType,
    *,
    pushed: Where | None = None,
) -> Iterator["pyarrow.RecordBatch"]:
    """The rows of one task, in batches that have exactly ``schema``."""
    if not isinstance(partition, TaskPartition):
        return  # Spark makes one empty partition of a plan without tasks.
    settle_in()
    fit = BatchFitting(schema)
    for batch in _read(partition.task, read_options(options, schema, pushed), options):
        yield fit(batch.select(schema.names) if options.gaps else batch)


def read_options(options: SourceOptions, schema: StructType, pushed: Where | None) -> ReadOptions:
    where = combined_where(options, pushed)
    return ReadOptions(
        columns=GAP_COLUMNS if options.gaps else tuple(schema.names),
        isolation=options.isolation,
        row_filter=None if where is None or options.gaps else where.row_filter(),
        gaps=options.gaps,
        mode=options.mode,
    )


def _read(
    task: ScanTask, how: ReadOptions, options: SourceOptions
) -> Iterator["pyarrow.RecordBatch"]:
    report = ScanReport()
    try:
        if options.fail_on_data_loss:
            yield from read_task(task, how, report=report)
        else:
            yield from _read_what_is_there(task, how, options, report)
    finally:
        tell_read(report)
    if report.offsets_missing:
        _log.warning(
            "%d offsets are missing and were passed over in %s",
            report.offsets_missing,
            _files_of(task),
        )
    if report.bytes_damaged:
        _log.warning(
            "%d bytes were damaged and passed over in %s", report.bytes_damaged, _files_of(task)
        )


def _read_what_is_there(
    task: ScanTask, how: ReadOptions, options: SourceOptions, report: ScanReport
) -> Iterator["pyarrow.RecordBatch"]:
    """Slice by slice, so that what one has lost costs the others nothing."""
    leases = LeaseRenewal(task.log_directory, task.lease_ids, task.lease_seconds)
    for each in task.slices:
        leases.maybe_renew()
        try:
            yield from read_task(replace(task, slices=(each,), lease_ids=()), how, report=report)
        except DataLostError as lost:
            report_loss(lost, options)


def _files_of(task: ScanTask) -> str:
    names = sorted({f"{each.topic_partition}/{each.base_offset:020d}.log" for each in task.slices})
    return ", ".join(names[:3]) + (f" or {len(names) - 3} more" if len(names) > 3 else "")
