"""Reading topics with Spark from Python: ``scan``, ``snapshot`` and ``explain``.

Spark's own pushdown of a WHERE is not to be trusted with more than one filter a load (see
``batch``). Here every call is a load of its own, so that its predicate can prune; and the predicate
also stays on the DataFrame, so that Spark filters every row. Pruning can then only save reading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from stratalog.errors import StratalogError
from stratalog.scans.explain import ScanExplanation, explain_plan
from stratalog.scans.leasing import Holding, release
from stratalog.scans.replica_copies import replicas_read
from stratalog.scans.snapshot import DirectorySnapshot, choose_replicas, take_snapshot
from stratalog.scans.where import parse_where
from stratalog.spark.holding import hold_all
from stratalog.spark.options import LEASES_OPTION, WHERE_OPTION, SourceOptions
from stratalog.spark.predicates import write_where
from stratalog.spark.schema import columns_schema, known_columns, source_schema
from stratalog.spark.snapshot_text import SNAPSHOT_OPTION, write_snapshot
from stratalog.storage.files import OsFileSystem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SNAPSHOT_SECONDS = 3600


def scan(
    spark: SparkSession,
    path: str,
    *,
    topic: str | Sequence[str] | None = None,
    where: str | None = None,
    columns: Sequence[str] | None = None,
    **options: object,
) -> DataFrame:
    """The rows of ``topic`` for which ``where`` holds, reading no more than it takes.

    ``where`` is a condition in Spark's SQL. Conditions on partition, offset, timestamp, topic and
    key prune what is read; any other is a filter like all of Spark's. ``columns`` are the only ones
    decoded. ``options`` are those of the source; underscores stand for the dots of ``kafka.``
    names: ``kafka_isolation_level="read_committed"``.
    """
    return _scan(spark, _source_options(path, topic, options), where, columns)


class Snapshot:
    """A moment of the log that many DataFrames can read, held until the end of the ``with``.

    Made by ``stratalog.spark.snapshot``. DataFrames made of it return that moment's rows also after
    the end, but then nobody keeps the files for them any more.
    """

    def __init__(
        self,
        spark: SparkSession,
        given: dict[str, str],
        taken: DirectorySnapshot,
        holding: Holding,
    ) -> None:
        self._spark = spark
        self._taken = taken
        self.holding = holding
        self._given = {
            **given,
            SNAPSHOT_OPTION: write_snapshot(taken),
            LEASES_OPTION: json.dumps(holding.lease_ids),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.release()

    def release(self) -> None:
        """Let the files go; for whoever does not use ``with``."""
        release(self._taken.path, self.holding.lease_ids)
        self.holding = Holding(why_not="the snapshot has ended")

    @property
    def offsets(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Where each partition begins and ends, the end exclusive."""
        isolation = SourceOptions.parse_any(self._given).isolation
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for (topic, partition), each in self._taken.partitions.items():
            ends = (each.start_offset, each.end_offset(isolation))
            found.setdefault(topic, {})[partition] = ends
        return found

    def dataframe(self, columns: Sequence[str] | None = None, **options: object) -> DataFrame:
        """All rows, or some of their columns; ``options`` as those of ``scan``."""
        given = {**self._given, **_option_texts(options)}
        return _scan(self._spark, given, None, columns)

    def scan(
        self,
        *,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        **options: object,
    ) -> DataFrame:
        """As ``stratalog.spark.scan``, of this moment."""
        return _scan(self._spark, {**self._given, **_option_texts(options)}, where, columns)


def snapshot(
    spark: SparkSession,
    path: str,
    *,
    topic: str | Sequence[str] | None = None,
    seconds: int = SNAPSHOT_SECONDS,
    **options: object,
) -> Snapshot:
    """This moment of ``topic``, to be read as often as needed: ``with snapshot(...) as moment:``.

    Its files are kept by a lease that ends with the ``with``, or ``seconds`` after the last task
    that read it. Where nothing can be held, ``holding.why_not`` says why. The directory must be
    visible where this is called.
    """
    given = _source_options(path, topic, {**options, "leaseSeconds": seconds})
    parsed = SourceOptions.parse(given, is_streaming=False)
    holding = hold_all(parsed, seconds=seconds, holder="stratalog.spark.snapshot")
    taken = take_snapshot(parsed.path, parsed.selection, isolation=parsed.isolation)
    return Snapshot(spark, given, taken, holding)


def explain(
    spark: SparkSession,
    path: str,
    *,
    topic: str | Sequence[str] | None = None,
    where: str | None = None,
    **options: object,
) -> ScanExplanation:
    """What ``scan`` would read, and why: ``lines()`` are for people, ``to_json()`` for programs."""
    from stratalog.spark.batch import batch_ranges, plan_tasks

    given = _source_options(path, topic, options)
    if where is not None:
        # Spark's own analysis refuses what is no condition, and names it.
        _ = _scan(spark, given, where, None).schema
        given[WHERE_OPTION] = write_where(parse_where(where, _time_zone(spark)).where)
    parsed = SourceOptions.parse(given, is_streaming=False)
    taken = take_snapshot(parsed.path, parsed.selection, isolation=parsed.isolation)
    return explain_plan(plan_tasks(parsed, taken, batch_ranges(parsed, taken)))


# --- what the calls have in common -----------------------------------------------------------


def _source_options(
    path: str, topic: str | Sequence[str] | None, options: Mapping[str, object]
) -> dict[str, str]:
    given = {"path": str(path)}
    if topic is not None:
        given["subscribe"] = topic if isinstance(topic, str) else ",".join(topic)
    return given | _option_texts(options)


def _option_texts(options: Mapping[str, object]) -> dict[str, str]:
    return {
        _option_name(name): option_text(value)
        for name, value in options.items()
        if value is not None
    }


def _option_name(name: str) -> str:
    return name.replace("_", ".") if name.lower().startswith("kafka_") else name


def option_text(value: object) -> str:
    """A value of an option as Spark passes it on."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value)


def _scan(
    spark: SparkSession,
    given: Mapping[str, str],
    where: str | None,
    columns: Sequence[str] | None,
) -> DataFrame:
    # What is wrong with an option is told here, in Python, and not by way of Spark.
    options = SourceOptions.parse(given, is_streaming=False)
    if where is None:
        return _load(spark, given, options, columns)
    parsed = parse_where(where, _time_zone(spark))
    needed = None if columns is None else _with_columns_of(where, columns, options)
    pruned = {**given, WHERE_OPTION: write_where(parsed.where)}
    found = _load(spark, pruned, options, needed).where(where)
    return found if columns is None else found.select(*columns)


def _load(
    spark: SparkSession,
    given: Mapping[str, str],
    options: SourceOptions,
    columns: Sequence[str] | None,
) -> DataFrame:
    _warn_of_copies(options)
    reader = spark.read.format("stratalog").options(**given)
    if columns is not None:
        reader = reader.schema(columns_schema(columns, gaps=options.gaps))
    return reader.load()


def _warn_of_copies(options: SourceOptions) -> None:
    """Where the directory can be seen from here; what is wrong with it the load tells."""
    files = OsFileSystem()
    with suppress(StratalogError):
        replicas_read.note(files, *choose_replicas(files, options.path, options.selection))


def _time_zone(spark: SparkSession) -> str:
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def _with_columns_of(where: str, columns: Sequence[str], options: SourceOptions) -> tuple[str, ...]:
    """The columns that are asked for, and those that ``where`` speaks of."""
    known = known_columns(gaps=options.gaps)
    spoken = columns_of(where)
    if spoken is None:
        return tuple(dict.fromkeys((*columns, *source_schema(options).names)))
    by_lower = {name.lower(): name for name in known}
    found = (by_lower[name.lower()] for name in spoken if name.lower() in by_lower)
    return tuple(dict.fromkeys((*columns, *found)))


def columns_of(where: str) -> list[str] | None:
    """Names of columns in a condition, or ``None`` if it cannot be read."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(where, dialect="spark")
    except (SqlglotError, RecursionError):
        return None
    return [column.parts[0].name for column in tree.find_all(exp.Column)]
