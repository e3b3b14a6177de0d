"""Compaction on Spark, with executors of 1 GB, and by the local cleaner with its default map.

    random       2 GiB of records of 100 bytes, each with one of 1 M keys: they fit one map
    distinct     20 M keys, no two alike: the local cleaner needs four rounds, Spark one pass

Both clean the same log from its first offset on, to what no round would change any more, and make
it durable. Spark's time is all that ``stratalog spark compact`` takes in a session that is warm:
plan, tasks, and the commit, by the driver, of what they staged. Measured in turns; the median.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.broker_processes import running, stratalog
from benchmarks.cleaning import (
    CONFIGS,
    KEYS,
    LOG_BYTES,
    MAP_BYTES,
    MEMORY_KEYS,
    NOW_MS,
    RECORDS_A_BATCH,
    VALUE_BYTES,
    distinct_keys,
    opened,
    random_keys,
    write_log,
)
from benchmarks.effort import Effort, repeats
from benchmarks.measurement import Bar, Outcome, Peer, lower
from benchmarks.spark_session import spark_session
from stratalog.storage.cleaning.rounds import clean_now

MEMORY = "1g"
LOCAL = Peer("our local cleaner", is_rival=False)
TOPIC_CONFIGS = {**CONFIGS, "min.cleanable.dirty.ratio": "0"}


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    with spark_session(root, memory=MEMORY) as spark:
        warm = random_keys(2_000)
        measure(spark, make_log(root, "warm", warm, value_bytes=VALUE_BYTES), "warm", runs=1)
        batches = LOG_BYTES // (RECORDS_A_BATCH * 100)
        yield case(
            spark,
            make_log(root, "random", random_keys(batches), VALUE_BYTES),
            "random",
            f"Spark compaction of {LOG_BYTES / 1e9:.2g} GB with {KEYS:,} keys",
        )
        yield case(
            spark,
            make_log(root, "distinct", distinct_keys(MEMORY_KEYS), 50),
            "distinct",
            f"Spark compaction of {MEMORY_KEYS:,} distinct keys, executors of 1 GB",
        )


def make_log(root: Path, topic: str, batches: Iterator[list[bytes]], value_bytes: int) -> Path:
    """A log directory that a broker of ours has known, with one partition to be compacted."""
    broker = stratalog(root / f"{topic}-broker")
    with running([broker]) as (started,), started.connect() as connection:
        connection.create_topic(topic, configs=TOPIC_CONFIGS)
        log_dir = started.log_dir
    partition = log_dir / f"{topic}-0"
    metadata = (partition / "partition.metadata").read_bytes()
    shutil.rmtree(partition)
    write_log(partition, batches, value_bytes)
    (partition / "partition.metadata").write_bytes(metadata)
    return log_dir


def case(spark: Any, log_dir: Path, topic: str, what: str) -> Outcome:
    local, ours, rounds, how = measure(spark, log_dir, topic, runs=repeats(2))
    shutil.rmtree(log_dir)
    return lower(
        f"spark-compact.{topic}",
        what,
        "s",
        ours,
        local,
        peer=LOCAL,
        bar=Bar(ratio=1),
        note=f"{how}; the local cleaner took {rounds} {'rounds' if rounds > 1 else 'round'}",
    )


def measure(
    spark: Any, log_dir: Path, topic: str, *, runs: int
) -> tuple[list[float], list[float], int, str]:
    local: list[float] = []
    ours: list[float] = []
    rounds, how = 0, ""
    for _ in range(runs):
        with copied(log_dir) as copy:
            spent, rounds = clean_locally(copy / f"{topic}-0")
            local.append(spent)
        with copied(log_dir) as copy:
            spent, how = clean_on_spark(spark, copy, topic)
            ours.append(spent)
    return local, ours, rounds, how


@contextmanager
def copied(log_dir: Path) -> Iterator[Path]:
    target = log_dir.with_name("copy")
    shutil.copytree(log_dir, target)
    os.sync()
    try:
        yield target
    finally:
        shutil.rmtree(target)


def clean_locally(directory: Path) -> tuple[float, int]:
    """Rounds with the default map, until all of it is clean."""
    rounds, first_dirty = 0, 0
    with opened(directory) as log:
        started = time.perf_counter()
        while first_dirty < log.segments.active.base_offset:
            result = clean_now(
                log, first_dirty_offset=first_dirty, now_ms=NOW_MS, map_bytes=MAP_BYTES
            )
            first_dirty = result.end_offset
            rounds += 1
        return time.perf_counter() - started, rounds


def clean_on_spark(spark: Any, log_dir: Path, topic: str) -> tuple[float, str]:
    from stratalog.spark.jobs import compact

    warm_up(spark)
    started = time.perf_counter()
    result = compact(spark, log_dir, topic, memory=MEMORY)
    spent = time.perf_counter() - started
    assert len(result.done) == 1, result.left_out
    return spent, str(result.rows()[0][2])


def warm_up(spark: Any) -> None:
    """Spark ends Python workers that had nothing to do for a minute; new ones take a second."""

    def imported(batches: Any) -> Any:
        import stratalog.spark.compaction_tasks  # noqa: F401

        yield from batches

    for _ in range(2):
        spark.range(0, 4, 1, 4).mapInArrow(imported, "id long").collect()
