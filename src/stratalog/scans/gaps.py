"""The holes of a scan as rows: which offsets are not returned, and why.

    compacted   nothing has this offset: compaction removed it, or its producer never used it
    aborted     its transaction was aborted, and committed records were asked for
    control     a marker, which ends a transaction and is nobody's record
    damaged     the bytes there are no batch; only ``mode=permissive`` gets past them
    expired     below the log's start, by retention or by deleting records
    missing     a segment that was there is not
    tiered      in remote storage, and not in this directory

Rows and holes together are every offset of the range once. Touching holes of one reason are one,
but where one task ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from stratalog.records._kernels import GAP_REASONS, ColumnDecoder
from stratalog.scans.columns import Repeated, gap_schema
from stratalog.storage.absences import MISSING, TIERED
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    import pyarrow

EXPIRED = "expired"
REASONS = (*GAP_REASONS, EXPIRED, MISSING, TIERED)


class _Gap(NamedTuple):
    topic_partition: TopicPartition
    start_offset: int
    end_offset: int
    reason: int


class GapRows:
    """Makes record batches of gaps; the last gap is held back, since the next may continue it."""

    def __init__(self) -> None:
        self._last: _Gap | None = None

    def add(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int, reason: str
    ) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        if start_offset < end_offset:
            starts = pa.array([start_offset], pa.int64())
            ends = pa.array([end_offset], pa.int64())
            reasons = pa.array([REASONS.index(reason)], pa.int8())
            yield from self._add(topic_partition, starts, ends, reasons)

    def take(
        self,
        topic_partition: TopicPartition,
        decoder: ColumnDecoder,
        *,
        end_offset: int | None = None,
    ) -> Iterator[pyarrow.RecordBatch]:
        """The gaps that ``decoder`` has found so far; up to ``end_offset``, where given."""
        import pyarrow as pa

        count, starts, ends, reasons = decoder.take_gaps()
        if not count:
            return
        columns = [
            _numbers(pa.int64(), count, starts, pa),
            _numbers(pa.int64(), count, ends, pa),
            _numbers(pa.int8(), count, reasons, pa),
        ]
        if end_offset is not None and columns[1][-1].as_py() > end_offset:
            last = columns[0][-1].as_py(), end_offset, columns[2][-1].as_py()
            columns = [
                pa.concat_arrays(
                    [each[:-1], pa.array([value], each.type)][: 1 + (last[0] < end_offset)]
                )
                for each, value in zip(columns, last, strict=True)
            ]
        if len(columns[0]):
            yield from self._add(topic_partition, *columns)

    def finish(self) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        last, self._last = self._last, None
        if last is not None:
            yield _batch(
                last.topic_partition,
                pa.array([last.start_offset], pa.int64()),
                pa.array([last.end_offset], pa.int64()),
                pa.array([last.reason], pa.int8()),
            )

    def _add(
        self, topic_partition: TopicPartition, starts: Any, ends: Any, reasons: Any
    ) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        last = self._last
        first = _Gap(topic_partition, starts[0].as_py(), ends[0].as_py(), reasons[0].as_py())
        if last is not None and _continues(last, first):
            starts = pa.concat_arrays([pa.array([last.start_offset], pa.int64()), starts[1:]])
        else:
            yield from self.finish()
        self._last = _Gap(
            topic_partition, starts[-1].as_py(), ends[-1].as_py(), reasons[-1].as_py()
        )
        if len(starts) > 1:
            yield _batch(topic_partition, starts[:-1], ends[:-1], reasons[:-1])


def _continues(last: _Gap, first: _Gap) -> bool:
    return (last.topic_partition, last.end_offset, last.reason) == (
        first.topic_partition,
        first.start_offset,
        first.reason,
    )


def _numbers(kind: Any, count: int, memory: Any, pa: Any) -> Any:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(memory)], 0)


@cache
def _reason_names() -> Any:
    import pyarrow as pa

    return pa.array(REASONS, pa.string())


def _batch(
    topic_partition: TopicPartition, starts: Any, ends: Any, reasons: Any
) -> pyarrow.RecordBatch:
    import pyarrow as pa

    schema = gap_schema()
    count = len(starts)
    names = pa.DictionaryArray.from_arrays(reasons, _reason_names()).dictionary_decode()
    topics = Repeated(topic_partition.topic, schema.field("topic").type)(count)
    partitions = Repeated(topic_partition.partition, schema.field("partition").type)(count)
    return pa.RecordBatch.from_arrays([topics, partitions, starts, ends, names], schema=schema)
