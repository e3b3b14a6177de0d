"""Jobs on Spark, on two cores: checking a directory, and landing a topic as Parquet.

The files are in the page cache: what is measured is the work, not the disk. ``export`` runs as it
does by default, a streaming query with a checkpoint that partitions by date, against what nobody
could do without: the bare scan, written by Spark as Parquet. The two take turns.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import Bar, Outcome, Peer, higher
from benchmarks.spark_session import in_turns, spark_session
from benchmarks.workload import fill, new_log

TOPIC = "orders"
PARTITIONS = 8
TOTAL_BYTES = scaled(2_000_000_000, least=80_000_000)
# Of three turns, one that something else has slowed down decides whether a bar is met.
WARM_UPS, RUNS = 1, repeats(5)
BARE = Peer("the bare scan and Spark's Parquet write", is_rival=False)


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    log_dir = root / "log"
    log_dir.mkdir()
    records = write_topic(log_dir, TOTAL_BYTES)
    with spark_session(root) as spark:
        yield verified(spark, log_dir)
        yield exported(spark, log_dir, root, records)
        yield counted(spark, log_dir, records)


def write_topic(log_dir: Path, total_bytes: int) -> int:
    records = 0
    for partition in range(PARTITIONS):
        log = new_log(log_dir, f"{TOPIC}-{partition}", synced=False)
        records += fill(log, total_bytes // PARTITIONS)
        log.close()
    return records


def verified(spark: Any, log_dir: Path) -> Outcome:
    from stratalog.spark.jobs import verify

    size_bytes = log_bytes(log_dir)

    def check() -> None:
        result = verify(spark, log_dir)
        assert result.is_clean
        assert result.size_bytes == size_bytes

    rates = rates_of(check, size_bytes)
    what = f"Spark verify, {size_bytes / 1e9:.1f} GB in {PARTITIONS} partitions"
    return higher("spark-jobs.verify", what, "GB/s", rates, bar=Bar(value=1), is_headline=True)


def exported(spark: Any, log_dir: Path, root: Path, records: int) -> Outcome:
    from stratalog.spark.jobs import export

    target = root / "landed"

    def bare() -> None:
        frame = spark.read.format("stratalog").option("subscribe", TOPIC).load(str(log_dir))
        frame.write.parquet(str(target))

    def job() -> None:
        assert export(spark, log_dir, TOPIC, target).rows_written == records

    seconds = in_turns(
        {"bare": bare, "export": job},
        warm_ups=WARM_UPS,
        runs=RUNS,
        after=lambda: shutil.rmtree(target),
    )
    size_gb = log_bytes(log_dir) / 1e9
    return higher(
        "spark-jobs.export",
        f"Spark export of {size_gb:.1f} GB to Parquet by date, exactly once",
        "GB/s",
        [size_gb / each for each in seconds["export"]],
        [size_gb / each for each in seconds["bare"]],
        peer=BARE,
        bar=Bar(ratio=0.8),
    )


def counted(spark: Any, log_dir: Path, records: int) -> Outcome:
    from stratalog.spark.jobs import stats

    def count() -> None:
        (topic,) = stats(spark, log_dir, TOPIC).topics
        assert topic.records == records

    return higher("spark-jobs.stats", "Spark stats", "GB/s", rates_of(count, log_bytes(log_dir)))


def rates_of(work: Callable[[], None], size_bytes: int) -> list[float]:
    seconds = in_turns({"": work}, warm_ups=WARM_UPS, runs=RUNS)[""]
    return [size_bytes / each / 1e9 for each in seconds]


def log_bytes(log_dir: Path) -> int:
    return sum(path.stat().st_size for path in log_dir.rglob("*.log"))
