"""``export``: a topic lands in a lake, as Parquet or as a table of Delta's or Iceberg's.

By default it is a streaming query that ends when it has caught up: run it again, and it goes on
where its checkpoint says. Spark's file sink writes which files belong to a batch into the target's
``_spark_metadata``, and readers that honour it, as Spark does, see every record exactly once,
whatever was killed on the way; Delta and Iceberg have logs of their own for that. ``continuous``
is the same query without an end, ``batch`` a copy of one moment without a checkpoint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratalog.spark.api import snapshot
from stratalog.spark.jobs.arguments import check_names, check_options, check_path, understood
from stratalog.spark.jobs.errors import FormatMissingError, JobOptionError
from stratalog.spark.jobs.export_rows import ExportRows, parse_partition_by
from stratalog.spark.jobs.file_sink import check_target
from stratalog.spark.jobs.places import absolute, local_path
from stratalog.spark.jobs.progress import Progress, not_when_interrupted, told, watching
from stratalog.spark.jobs.stream_progress import follow, initial_positions, observed
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema, source_schema
from stratalog.spark.versions import HAS_READ_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Transform = Callable[["DataFrame"], "DataFrame"]

# A batch is what is done again after a failure; its bytes are those of the log's files.
BYTES_A_BATCH = "16g"
EVERY = "1 minute"
# Without it Spark sorts all rows by the partition's columns, so that one file is open at a time.
# Beyond so many it goes on to sort, and says nothing.
_OPEN_FILES_SETTING = "spark.sql.maxConcurrentOutputFileWriters"
_OPEN_FILES = "32"


# Options that are arguments here, in lower case.
_SOURCE_SAID_OTHERWISE = {
    "path": "the log directory",
    "subscribe": "the topic",
    "subscribepattern": "the topic",
    "assign": "the topic",
}
_TARGET_SAID_OTHERWISE = {"checkpointlocation": "checkpoint", "path": "the target"}


class ExportMode(StrEnum):
    ONCE = "once"
    CONTINUOUS = "continuous"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True)
class Export:
    """What is exported where. ``target`` is a path, or for Iceberg a table of a catalog.

    ``where`` is a condition in Spark's SQL on the source's columns, ``columns`` are expressions
    over them, else all stay as they are. ``transform`` is for what takes more than that: it gets
    the rows of ``where``, and ``columns`` then speak of what it returns. ``partition_by`` is
    "date", or columns, or expressions with a name. ``options`` are the source's,
    ``write_options`` the target format's.
    """

    log_dir: str | os.PathLike[str]
    topic: str | Sequence[str]
    target: str | os.PathLike[str]
    format: str = "parquet"
    partition_by: str | Sequence[str] | None = "date"
    columns: Sequence[str] | None = None
    where: str | None = None
    transform: Transform | None = None
    mode: ExportMode | str = ExportMode.ONCE
    checkpoint: str | os.PathLike[str] | None = None
    every: str | None = None
    compression: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    write_options: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse, in one sentence, what nobody could act on."""
        check_path("log_dir", self.log_dir)
        check_path("target", self.target)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        check_names("topic", self.topic)
        if self.columns is not None:
            check_names("columns", self.columns)
        if self.partition_by is not None and self.partition_by != ():
            check_names("partition_by", self.partition_by)
        for name in ("where", "format", "compression"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise JobOptionError(name, value, "expected a text, and not an empty one")
        if self.transform is not None and not callable(self.transform):
            raise JobOptionError("transform", self.transform, "expected a function of a DataFrame")
        check_options("options", self.options, _SOURCE_SAID_OTHERWISE)
        check_options("write_options", self.write_options, _TARGET_SAID_OTHERWISE)
        self.check_places()

    @property
    def place(self) -> str:
        """Where it goes."""
        target = os.fspath(self.target)
        return target if self.is_table else absolute(target)

    @property
    def is_table(self) -> bool:
        return self.format == "iceberg" and "/" not in os.fspath(self.target)

    @property
    def checkpoint_place(self) -> str:
        if self.checkpoint is not None:
            return absolute(os.fspath(self.checkpoint))
        if self.is_table:
            raise JobOptionError("checkpoint", None, "a table has no place for it: name one")
        # Readers of files take no notice of names that begin with an underscore.
        return f"{self.place}/_checkpoints/stratalog"

    @property
    def topics(self) -> str:
        return ",".join(check_names("topic", self.topic))

    def source_options(self) -> dict[str, str]:
        given = {"path": str(Path(self.log_dir).absolute()), "subscribe": self.topics}
        if ExportMode(self.mode) is not ExportMode.BATCH:
            given["startingOffsets"] = "earliest"
            if HAS_READ_LIMITS:
                given["maxBytesPerTrigger"] = BYTES_A_BATCH
        return given | check_options("options", self.options, _SOURCE_SAID_OTHERWISE)

    def check_places(self) -> None:
        """Brokers do not start on a log directory that holds a directory of others."""
        log_dir = os.path.realpath(self.log_dir)
        places = [("target", self.target)] if not self.is_table else []
        for name, given in (*places, ("checkpoint", self.checkpoint)):
            place = local_path("" if given is None else os.fspath(given))
            if not place:
                continue
            if os.path.commonpath([log_dir, os.path.realpath(place)]) == log_dir:
                raise JobOptionError(name, given, f"it is inside the log directory {log_dir}")

    def target_options(self) -> dict[str, str]:
        compressed = {} if self.compression is None else {"compression": self.compression}
        return compressed | check_options(
            "write_options", self.write_options, _TARGET_SAID_OTHERWISE
        )


@dataclass(frozen=True, slots=True)
class ExportResult:
    """``offsets``: by topic and partition, what this run read, the end exclusive;
    ``rows_written``: what ``where`` and the transform have left of it."""

    target: str
    format: str
    mode: str
    rows_written: int
    batches: int
    offsets: dict[str, dict[int, tuple[int, int]]]
    seconds: float

    columns = ("topic", "partition", "from", "to")

    def rows(self) -> list[tuple[object, ...]]:
        """One for each partition that had something to read, under ``columns``."""
        return [
            (topic, partition, *self.offsets[topic][partition])
            for topic in sorted(self.offsets)
            for partition in sorted(self.offsets[topic])
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "format": self.format,
            "mode": self.mode,
            "rows": self.rows_written,
            "batches": self.batches,
            "seconds": round(self.seconds, 3),
            "offsets": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
        }


def export(
    spark: SparkSession,
    log_dir: str | os.PathLike[str],
    topic: str | Sequence[str],
    target: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **how: Any,
) -> ExportResult:
    """Write the records of ``topic`` to ``target``, and wait for the end; see ``Export`` for how.

    With ``mode="continuous"`` that is when somebody stops the query: ``start_export`` returns it.
    """
    asked = Export(log_dir=log_dir, topic=topic, target=target, **how)
    started = time.monotonic()
    if _checked_mode(asked) is ExportMode.BATCH:
        return _export_batch(spark, asked, progress, started)
    initial = initial_positions(SourceOptions.parse(asked.source_options(), is_streaming=True))
    query = _start(spark, asked)
    with watching(spark, str(query.runId), progress):
        totals = follow(query, initial)
    return ExportResult(
        asked.place,
        asked.format,
        str(asked.mode),
        totals.rows,
        totals.batches,
        totals.offsets,
        time.monotonic() - started,
    )


def start_export(
    spark: SparkSession,
    log_dir: str | os.PathLike[str],
    topic: str | Sequence[str],
    target: str | os.PathLike[str],
    **how: Any,
) -> StreamingQuery:
    """The streaming query of ``export``, which goes on beside the caller."""
    asked = Export(log_dir=log_dir, topic=topic, target=target, **how)
    if _checked_mode(asked) is ExportMode.BATCH:
        raise JobOptionError("mode", asked.mode, "a batch is no query that could be started")
    return _start(spark, asked)


def check_export(
    log_dir: str | os.PathLike[str],
    topic: str | Sequence[str],
    target: str | os.PathLike[str],
    **how: Any,
) -> None:
    """Refuse what needs no Spark to be seen."""
    asked = Export(log_dir=log_dir, topic=topic, target=target, **how)
    is_streaming = _checked_mode(asked) is not ExportMode.BATCH
    SourceOptions.parse(asked.source_options(), is_streaming=is_streaming)


# --- how -----------------------------------------------------------------------------------------


def _checked_mode(asked: Export) -> ExportMode:
    asked.check()
    try:
        mode = ExportMode(asked.mode)
    except ValueError:
        raise JobOptionError("mode", asked.mode, f"there are {', '.join(ExportMode)}") from None
    if mode is ExportMode.BATCH:
        if asked.checkpoint is not None:
            raise JobOptionError("checkpoint", os.fspath(asked.checkpoint), "a batch has none")
        if asked.every is not None:
            raise JobOptionError("every", asked.every, "a batch is written once")
    if mode is ExportMode.ONCE and asked.every is not None:
        raise JobOptionError("every", asked.every, "it says how often continuous writes")
    return mode


def _start(spark: SparkSession, asked: Export) -> StreamingQuery:
    given = asked.source_options()
    options = SourceOptions.parse(given, is_streaming=True)
    plan, schema = _plan(asked, options)
    reader = spark.readStream.format("stratalog").options(**given).schema(schema)
    source = reader.load()
    if asked.where is not None:
        with understood("where", asked.where):
            source = source.where(asked.where)
    frame = observed(_rows(asked, plan, source, options))
    partition_by = [each.name for each in plan.partition_by]
    if not asked.is_table:
        check_target(spark, asked.place, asked.checkpoint_place, partition_by)
    writer = (
        frame.writeStream.format(asked.format)
        .outputMode("append")
        .option("checkpointLocation", asked.checkpoint_place)
        .options(**asked.target_options())
        .queryName(f"export {asked.topics} to {asked.place}")
    )
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    if _checked_mode(asked) is ExportMode.ONCE:
        writer = writer.trigger(availableNow=True)
    else:
        writer = _every(writer, EVERY if asked.every is None else asked.every)
    with _format_there(asked), _files_open(spark):
        return writer.toTable(asked.place) if asked.is_table else writer.start(asked.place)


def _every(writer: DataStreamWriter, interval: str) -> DataStreamWriter:
    from pyspark.errors import IllegalArgumentException, PySparkValueError

    try:
        return writer.trigger(processingTime=interval)
    except (IllegalArgumentException, PySparkValueError) as error:
        reason = "expected an interval, as 30 seconds or 5 minutes"
        raise JobOptionError("every", interval, reason) from error


def _export_batch(
    spark: SparkSession, asked: Export, progress: Progress | None, started: float
) -> ExportResult:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    given: dict[str, Any] = asked.source_options()
    options = SourceOptions.parse(given, is_streaming=False)
    plan, schema = _plan(asked, options)
    with snapshot(spark, given.pop("path"), **given) as moment:
        counted = Observation()
        with understood("where", asked.where):
            source = moment.scan(where=asked.where, columns=schema.names)
        frame = _rows(asked, plan, source, options)
        frame = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
        writer = frame.write.format(asked.format).options(**asked.target_options())
        if plan.partition_by:
            writer = writer.partitionBy(*(each.name for each in plan.partition_by))
        with _format_there(asked), _files_open(spark), told(spark, progress):
            writer.saveAsTable(asked.place) if asked.is_table else writer.save(asked.place)
        offsets = {
            topic: {each: ends for each, ends in found.items() if ends[0] < ends[1]}
            for topic, found in moment.offsets.items()
        }
    rows = int(counted.get["rows"])
    seconds = time.monotonic() - started
    return ExportResult(asked.place, asked.format, "batch", rows, 1, offsets, seconds)


def _plan(asked: Export, options: SourceOptions) -> tuple[ExportRows, Any]:
    """What becomes of the rows, and the columns of the source that it takes."""
    columns = None if asked.columns is None else check_names("columns", asked.columns)
    plan = ExportRows(columns, parse_partition_by(asked.partition_by), asked.where)
    whole = ExportRows(None, (), asked.where)
    return plan, columns_schema((plan if asked.transform is None else whole).needed(options))


def _rows(asked: Export, plan: ExportRows, source: DataFrame, options: SourceOptions) -> DataFrame:
    if asked.transform is None:
        rows, default = source, source_schema(options).names
    else:
        rows = asked.transform(source)
        default = rows.columns
    expressions = [*(plan.columns or ()), *(each.expression for each in plan.partition_by)]
    with understood("columns", [each for each in expressions if each]):
        return plan.select(rows, default)


@contextmanager
def _format_there(asked: Export) -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            raise FormatMissingError(asked.format) from error
        raise


@contextmanager
def _files_open(spark: SparkSession) -> Iterator[None]:
    """A query takes the settings of its session when it is started."""
    if spark.conf.get(_OPEN_FILES_SETTING, "0") != "0":
        yield
        return
    spark.conf.set(_OPEN_FILES_SETTING, _OPEN_FILES)
    with not_when_interrupted(lambda: spark.conf.unset(_OPEN_FILES_SETTING)):
        yield
