"""What ``stats`` does in a task: counts records in Arrow, and passes on what is left to add up.

Values are looked at here, and never leave the worker. Rows that do are of four kinds:

    bucket   records and bytes of one stretch of time
    key      one key of the sample: how often, how large, and its newest record
    hot      a key that came often in what one task read, where the sample is not all
    codec    sampled records, as large as batches of that codec made them

The sample is by key, not by record: a key that is in it is there with all its records, in whatever
task they are read. So what is true of it is true of the whole, but for chance; and with
``sample_one_in`` 1 it is the whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stratalog.records.compression import Codec
from stratalog.records.encoding import BatchEncoder
from stratalog.records.partitioner import partition_rows
from stratalog.scans.reading import read_task
from stratalog.scans.slices import ReadOptions, ScanTask
from stratalog.spark.workers import settle_in
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    import pyarrow

COLUMNS = ("key", "value", "timestamp", "offset")
_ROW_COLUMNS = {
    "kind": "string",
    "topic": "string",
    "partition": "int",
    "bucket": "long",
    "key": "binary",
    "label": "string",
    "records": "long",
    "key_bytes": "long",
    "value_bytes": "long",
    "tombstones": "long",
    "no_key": "long",
    "last_offset": "long",
    "last_bytes": "long",
}
ROW_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _ROW_COLUMNS.items())
_SUMS = ("records", "key_bytes", "value_bytes", "tombstones", "no_key")

# Kept of the keys that one task has counted in one partition, and passed on.
HOT_KEPT = 20_000
HOT_TOLD = 100
# Rows that wait to be put together: what that costs is paid once for many of them.
_ROWS_WAITING = 500_000

_SAMPLE_BATCH_BYTES = 64 << 10  # what a producer that means to compress well sends


@dataclass(frozen=True, slots=True)
class StatsTask:
    """``sample_bytes`` are tried with each codec, of each topic that the task reads."""

    scan: ScanTask
    bucket_ms: int
    sample_one_in: int
    sample_bytes: int


def count_rows(
    tasks: Sequence[StatsTask], batches: Iterator["pyarrow.RecordBatch"]
) -> Iterator["pyarrow.RecordBatch"]:
    """Rows of ``ROW_SCHEMA``; ``batches`` hold the numbers of tasks."""
    settle_in()
    for batch in batches:
        numbers: list[Any] = batch.column(0).to_pylist()
        for number in numbers:
            yield from _count(tasks[number])


def _count(task: StatsTask) -> Iterator["pyarrow.RecordBatch"]:
    tried: set[str] = set()
    for key, slices in groupby(task.scan.slices, key=lambda each: each.topic_partition):
        counts = PartitionCounts(key, task.bucket_ms, task.sample_one_in)
        scan = replace(task.scan, slices=tuple(slices))
        for rows in read_task(scan, ReadOptions(COLUMNS)):
            if key.topic not in tried and rows.num_rows and task.sample_bytes:
                tried.add(key.topic)
                yield from _fit(try_codecs(rows, task.sample_bytes), kind="codec", of=key)
            counts.add(rows)
        yield from counts.take()


@dataclass(slots=True)
class PartitionCounts:
    """What has been read of one partition."""

    topic_partition: TopicPartition
    bucket_ms: int
    sample_one_in: int
    _buckets: list[Any] = field(default_factory=list)
    _sampled: list[Any] = field(default_factory=list)
    _sampled_rows: int = 0
    _keys: list[Any] = field(default_factory=list)
    _hot: list[Any] = field(default_factory=list)
    _hot_rows: int = 0

    def add(self, rows: "pyarrow.RecordBatch") -> None:
        pa, pc = _arrow()
        columns: dict[str, Any] = {name: rows.column(name) for name in COLUMNS}
        key, value = columns["key"], columns["value"]
        has_key, has_value = pc.is_valid(key), pc.is_valid(value)
        key_bytes = pc.fill_null(pc.binary_length(key), 0).cast("int64")
        value_bytes = pc.fill_null(pc.binary_length(value), 0).cast("int64")
        tombstone = pc.and_not(has_key, has_value)
        table = pa.table(
            {
                "bucket": _floored(columns["timestamp"].cast("int64"), self.bucket_ms * 1000),
                "key": key,
                "offset": columns["offset"],
                "records": pa.nulls(rows.num_rows, pa.int64()).fill_null(1),
                "key_bytes": key_bytes,
                "value_bytes": value_bytes,
                "tombstones": tombstone.cast("int64"),
                "no_key": pc.invert(has_key).cast("int64"),
            }
        )
        grouped = table.group_by("bucket").aggregate([(name, "sum") for name in _SUMS])
        self._buckets.append(_renamed(grouped))
        keyed = table.filter(has_key) if pc.sum(table["no_key"]).as_py() else table
        if keyed.num_rows:
            self._add_keys(keyed)

    def _add_keys(self, keyed: Any) -> None:
        _, pc = _arrow()
        if self.sample_one_in > 1:
            self._count_hot(keyed)
            chosen = pc.equal(partition_rows(_flat(keyed["key"]), self.sample_one_in, 0), 0)
            keyed = keyed.filter(chosen)
        self._sampled.append(keyed)
        self._sampled_rows += keyed.num_rows
        if self._sampled_rows > _ROWS_WAITING:
            self._gather()

    def _count_hot(self, keyed: Any) -> None:
        self._hot.append(
            _renamed(
                keyed.select(["key", "records"]).group_by("key").aggregate([("records", "sum")])
            )
        )
        self._hot_rows += self._hot[-1].num_rows
        if self._hot_rows > _ROWS_WAITING:
            self._hot = [_largest(_summed(self._hot, "key", ("records",)), HOT_KEPT)]
            self._hot_rows = self._hot[0].num_rows

    def _gather(self) -> None:
        """Sampled rows by key: rows come in the order of offsets, so the last is the newest."""
        pa, pc = _arrow()
        if self._sampled:
            table = pa.concat_tables(self._sampled)
            size = pc.add(table["key_bytes"], table["value_bytes"])
            table = table.append_column("last_bytes", size).rename_columns(
                ["last_offset" if name == "offset" else name for name in table.schema.names]
                + ["last_bytes"]
            )
            sums = [(name, "sum") for name in ("records", "key_bytes", "value_bytes", "tombstones")]
            newest = [("last_offset", "last"), ("last_bytes", "last")]
            grouped = table.group_by("key", use_threads=False).aggregate([*sums, *newest])
            self._keys.append(_renamed(grouped))
        self._sampled, self._sampled_rows = [], 0

    def take(self) -> Iterator["pyarrow.RecordBatch"]:
        of = self.topic_partition
        self._gather()
        for each in self._keys:
            yield from _fit(each, kind="key", of=of)
        if self._hot:
            hottest = _largest(_summed(self._hot, "key", ("records",)), HOT_TOLD)
            yield from _fit(hottest, kind="hot", of=of)
        if self._buckets:
            yield from _fit(_summed(self._buckets, "bucket", _SUMS), kind="bucket", of=of)


def try_codecs(rows: "pyarrow.RecordBatch", size_bytes: int) -> Any:
    """By codec, how large batches of the first ``size_bytes`` of these records are."""
    pa, _ = _arrow()
    count = max(1, int(rows.num_rows * min(1.0, size_bytes / max(rows.nbytes, 1))))
    # Records from before the epoch, or without a time, are no row that the encoder takes.
    sample = rows.slice(0, count).select(["key", "value"])
    nowhere = pa.nulls(count, pa.int32()).fill_null(0)
    sizes = {}
    for codec in Codec:
        encoder = BatchEncoder(1, codec=codec, batch_bytes=_SAMPLE_BATCH_BYTES)
        made = [*encoder.add(sample, nowhere, now_ms=0), *encoder.flush()]
        sizes[codec.config_name] = sum(memoryview(each.batch).nbytes for each in made)
    return pa.table(
        {
            "label": list(sizes),
            "records": pa.array([count] * len(sizes), "int64"),
            "value_bytes": pa.array(list(sizes.values()), "int64"),
        }
    )


# --- tables ----------------------------------------------------------------------------------


def _arrow() -> tuple[Any, Any]:
    """Arrow and what it computes with; of no type, since its stubs know too few."""
    import pyarrow
    import pyarrow.compute

    return pyarrow, pyarrow.compute


def _floored(column: Any, width: int) -> Any:
    """How many times ``width`` lies below each number; Arrow divides towards zero."""
    _, pc = _arrow()
    quotient = pc.divide(column, width)
    is_above = pc.greater(pc.multiply(quotient, width), column)
    return pc.subtract(quotient, is_above.cast("int64"))


def _flat(column: Any) -> Any:
    """One array of a column in chunks."""
    pa, _ = _arrow()
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else found.chunk(0)


def _renamed(table: Any) -> Any:
    """Without what Arrow adds to the names of what it aggregates."""
    names = [name.removesuffix("_sum").removesuffix("_last") for name in table.schema.names]
    return table.rename_columns(names)


def _summed(tables: list[Any], by: str, names: Sequence[str]) -> Any:
    pa, _ = _arrow()
    together = pa.concat_tables(tables)
    return _renamed(together.group_by(by).aggregate([(name, "sum") for name in names]))


def _largest(table: Any, count: int) -> Any:
    _, pc = _arrow()
    if table.num_rows <= count:
        return table
    return table.take(pc.select_k_unstable(table, count, [("records", "descending")]))


def _fit(table: Any, *, kind: str, of: TopicPartition) -> Iterator["pyarrow.RecordBatch"]:
    """With all the columns that rows of any kind have, in Spark's types."""
    pa, _ = _arrow()
    kinds: dict[str, Any] = {
        "string": pa.string(),
        "int": pa.int32(),
        "long": pa.int64(),
        "binary": pa.binary(),
    }
    count = table.num_rows
    first = pa.nulls(count, pa.int32()).fill_null(0)
    constants = {
        "kind": pa.array([kind]).take(first),
        "topic": pa.array([of.topic]).take(first),
        "partition": pa.nulls(count, pa.int32()).fill_null(of.partition),
    }
    columns: dict[str, Any] = {}
    for name, type_name in _ROW_COLUMNS.items():
        if name in constants:
            columns[name] = constants[name]
        elif name in table.schema.names:
            columns[name] = table[name].cast(kinds[type_name])
        else:
            columns[name] = pa.nulls(count, kinds[type_name])
    yield from pa.table(columns).to_batches()
