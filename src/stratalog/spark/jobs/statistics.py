"""``stats``: what is in a topic, how it came in, and what could be saved.

One scan. Records are counted where they are read, so that only counts, and keys of a sample, leave
the workers. Small topics are counted exactly; of others, what is said about keys is estimated from
one key in so many, unless ``exact`` is asked for. What retention would remove is planned from the
files alone.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratalog.scans.leasing import release
from stratalog.scans.slices import ScanTask
from stratalog.scans.snapshot import DirectorySnapshot, take_snapshot
from stratalog.spark.batch import batch_ranges, plan_tasks
from stratalog.spark.holding import hold_all
from stratalog.spark.jobs.arguments import check_names, check_path
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.progress import Progress, told
from stratalog.spark.jobs.stats_result import (
    Bucket,
    HotKey,
    KeyStats,
    StatsResult,
    TopicStats,
)
from stratalog.spark.jobs.stats_savings import Savings, check_proposed
from stratalog.spark.jobs.stats_tasks import ROW_SCHEMA, StatsTask, count_rows
from stratalog.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
HOTTEST = 10
# Sampled records that are put in order by key, about; below it all of them are.
_SAMPLED_RECORDS = 5_000_000
_RECORD_BYTES = 100  # a guess that errs towards more records
# Not to be divisors of a topic's number of partitions: keys are divided among those by the same
# hash.
_PRIMES = (1, 3, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381, 32749)
_CODEC_BYTES = 1 << 20
_TASKS_THAT_COMPRESS = 16


def stats(
    spark: SparkSession,
    log_dir: str | os.PathLike[str],
    topics: str | Sequence[str] | None = None,
    *,
    bucket: str = "day",
    exact: bool = False,
    proposed: Mapping[str, str] | None = None,
    hottest: int = HOTTEST,
    progress: Progress | None = None,
    now_ms: int | None = None,
) -> StatsResult:
    """Look at all records of ``topics``, or of all topics but Kafka's own.

    ``bucket`` is the width of the stretches of time that rates are told for: minute, hour or day.
    ``proposed`` are retention configs to try: ``{"retention.ms": "86400000"}``.
    """
    started = time.monotonic()
    if hottest < 1:
        raise JobOptionError("hottest", hottest, "expected at least 1")
    check_stats(bucket, proposed or {})
    path = check_path("log_dir", log_dir)
    options = _options(
        str(Path(path).absolute()), None if topics is None else check_names("topics", topics)
    )
    held = hold_all(options, seconds=options.lease_seconds, holder="stratalog spark stats")
    try:
        snapshot = take_snapshot(options.path, options.selection, isolation=options.isolation)
        clock_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        savings = Savings(snapshot, proposed or {}, now_ms=clock_ms)
        scans = _plan(options, snapshot, held.lease_ids)
        one_in = 1 if exact else _one_in(snapshot)
        with told(spark, progress):
            rows = _run(spark, _tasks(scans, BUCKETS_MS[bucket], one_in), hottest)
    finally:
        release(options.path, held.lease_ids)
    made = _Topics(rows, snapshot, savings, BUCKETS_MS[bucket], one_in, hottest)
    return StatsResult(spark, options.path, made.topics(), time.monotonic() - started)


def check_stats(bucket: str, proposed: Mapping[str, str]) -> None:
    """Refuse what needs no Spark to be seen."""
    if bucket not in BUCKETS_MS:
        raise JobOptionError("bucket", bucket, f"expected {', '.join(BUCKETS_MS)}")
    check_proposed(proposed)


def _options(path: str, topics: Sequence[str] | None) -> SourceOptions:
    given = {"path": path}
    if topics is None:
        given["subscribePattern"] = "(?!__).*"  # all but Kafka's own
    else:
        given["subscribe"] = ",".join(topics)
    return SourceOptions.parse(given, is_streaming=False)


def _plan(
    options: SourceOptions, snapshot: DirectorySnapshot, lease_ids: tuple[str, ...]
) -> list[ScanTask]:
    planned = plan_tasks(options, snapshot, batch_ranges(options, snapshot))
    return [
        replace(task, lease_ids=lease_ids, lease_seconds=options.lease_seconds)
        for task in planned.tasks
    ]


def _one_in(snapshot: DirectorySnapshot) -> int:
    """Of how many keys one is looked at."""
    counts: dict[str, int] = defaultdict(int)
    size_bytes = 0
    for key, each in snapshot.partitions.items():
        counts[key.topic] += 1
        size_bytes += each.segments.size_bytes
    wanted = size_bytes / _RECORD_BYTES / _SAMPLED_RECORDS
    for prime in _PRIMES:
        if prime >= wanted and (prime == 1 or all(count % prime for count in counts.values())):
            return prime
    return _PRIMES[-1]


def _tasks(scans: Sequence[ScanTask], bucket_ms: int, one_in: int) -> list[StatsTask]:
    """A few tasks, spread over all of them, also try the codecs."""
    step = max(1, len(scans) // _TASKS_THAT_COMPRESS)
    return [
        StatsTask(scan, bucket_ms, one_in, _CODEC_BYTES if number % step == 0 else 0)
        for number, scan in enumerate(scans)
    ]


# --- on Spark ------------------------------------------------------------------------------------


def _run(spark: SparkSession, tasks: list[StatsTask], hottest: int) -> list[dict[str, Any]]:
    if not tasks:
        return []
    counted = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        partial(count_rows, tasks), ROW_SCHEMA
    )
    found: list[dict[str, Any]] = _added_up(counted, hottest).toArrow().to_pylist()
    return found


def _added_up(counted: DataFrame, hottest: int) -> DataFrame:
    """One row for each bucket and codec, and one for the keys of each partition.

    All in one go over all kinds of rows: a query of several parts would scan for each of them.
    """
    from pyspark.sql import functions as F

    sums = ("records", "key_bytes", "value_bytes", "tombstones", "no_key")
    whose = ("kind", "topic", "partition", "bucket", "label")
    each = counted.groupBy(*whose, "key").agg(
        *(F.sum(name).alias(name) for name in sums),
        F.max_by("last_bytes", "last_offset").alias("last_bytes"),
    )
    superseded = F.col("key_bytes") + F.col("value_bytes") - F.col("last_bytes")
    return each.groupBy(*whose).agg(
        *(F.sum(name).alias(name) for name in sums),
        F.count("key").alias("distinct"),
        F.max("records").alias("records_max"),
        F.sum(F.col("records") - 1).alias("superseded"),
        F.sum(superseded).alias("superseded_bytes"),
        F.expr(f"max_by(struct(key, records), records, {int(hottest)})").alias("hottest"),
    )


# --- on the driver -------------------------------------------------------------------------------


class _Topics:
    """Rows that Spark has added up, by topic."""

    def __init__(
        self,
        rows: Iterable[dict[str, Any]],
        snapshot: DirectorySnapshot,
        savings: Savings,
        bucket_ms: int,
        one_in: int,
        hottest: int,
    ) -> None:
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            self._rows[row["topic"], row["kind"]].append(row)
        self._snapshot = snapshot
        self._savings = savings
        self._bucket_ms = bucket_ms
        self._one_in = one_in
        self._hottest = hottest

    def topics(self) -> tuple[TopicStats, ...]:
        names = sorted({key.topic for key in self._snapshot.partitions})
        return tuple(self._topic(name) for name in names)

    def _topic(self, topic: str) -> TopicStats:
        own = {
            key.partition: each
            for key, each in sorted(self._snapshot.partitions.items())
            if key.topic == topic
        }
        buckets = self._rows[topic, "bucket"]
        return TopicStats(
            topic=topic,
            partition_bytes={number: each.segments.size_bytes for number, each in own.items()},
            segments=sum(len(each.segments) for each in own.values()),
            bucket_ms=self._bucket_ms,
            buckets=self._buckets(buckets),
            no_key=sum(row["no_key"] for row in buckets),
            keys=self._keys(topic, sum(row["records"] for row in buckets)),
            codec_ratios=self._codecs(topic),
            retention=self._savings.now(topic),
            proposed=self._savings.proposed(topic),
        )

    def _buckets(self, rows: Iterable[dict[str, Any]]) -> tuple[Bucket, ...]:
        made = (
            Bucket(
                row["partition"],
                row["bucket"] * self._bucket_ms,
                row["records"],
                row["key_bytes"],
                row["value_bytes"],
                row["tombstones"],
            )
            for row in rows
        )
        return tuple(sorted(made, key=lambda each: (each.start_ms, each.partition)))

    def _keys(self, topic: str, records: int) -> KeyStats:
        rows, times = self._rows[topic, "key"], self._one_in
        hot = self._hot(topic, records)
        most = max((row["records_max"] for row in rows), default=0)
        return KeyStats(
            distinct=times * sum(row["distinct"] for row in rows),
            superseded_records=min(times * sum(row["superseded"] for row in rows), records),
            superseded_bytes=times * sum(row["superseded_bytes"] for row in rows),
            records_a_key_max=max([most, *(each.records for each in hot)]),
            is_exact=times == 1,
            hottest=hot,
        )

    def _hot(self, topic: str, records: int) -> tuple[HotKey, ...]:
        """Of all keys where all were counted, else of those that tasks have found to be hot."""
        kind = "key" if self._one_in == 1 else "hot"
        found = [
            HotKey(
                bytes(each["key"]),
                row["partition"],
                each["records"],
                each["records"] / max(records, 1),
            )
            for row in self._rows[topic, kind]
            for each in row["hottest"]
        ]
        found.sort(key=lambda each: (-each.records, each.partition, each.key))
        return tuple(found[: self._hottest])

    def _codecs(self, topic: str) -> dict[str, float]:
        sizes: dict[str, int] = defaultdict(int)
        for row in self._rows[topic, "codec"]:
            sizes[row["label"]] += row["value_bytes"]
        plain = sizes.get("none", 0)
        return {name: size / plain for name, size in sorted(sizes.items())} if plain else {}
