"""Jobs on Spark, on two cores: checking a directory, and landing a topic as Parquet.

The files are in the page cache: what is measured is the work, not the disk. ``export`` runs as it
does by default, a streaming query with a checkpoint that partitions by date, against what nobody
could do without: the bare scan, written by Spark as Parquet. The two take turns.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.result import Result
from benchmarks.workload import fill, new_log

TOPIC = "orders"
PARTITIONS = 8
TOTAL_BYTES = 2_000_000_000
WARM_UPS, RUNS = 2, 5


def run(root: Path, *, total_bytes: int = TOTAL_BYTES) -> list[Result]:
    log_dir = root / "log"
    log_dir.mkdir()
    records = write_topic(log_dir, total_bytes)
    with spark_session(root) as spark:
        return [
            verified(spark, log_dir),
            exported(spark, log_dir, root, records),
            counted(spark, log_dir, records),
        ]


def write_topic(log_dir: Path, total_bytes: int) -> int:
    records = 0
    for partition in range(PARTITIONS):
        log = new_log(log_dir, f"{TOPIC}-{partition}", synced=False)
        records += fill(log, total_bytes // PARTITIONS)
        log.close()
    return records


@contextmanager
def spark_session(root: Path) -> Iterator[Any]:
    from stratalog.spark.session import session

    os.environ["SPARK_LOCAL_DIRS"] = str(root / "local")
    spark = session(
        master="local[2]",
        app_name="benchmark",
        configs={
            "spark.ui.enabled": "false",
            "spark.driver.memory": "4g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.log.level": "ERROR",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    try:
        yield spark
    finally:
        spark.stop()


def seconds_of(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def verified(spark: Any, log_dir: Path) -> Result:
    from stratalog.spark.jobs import verify

    size_bytes = sum(path.stat().st_size for path in log_dir.rglob("*.log"))

    def check() -> None:
        result = verify(spark, log_dir)
        assert result.is_clean
        assert result.size_bytes == size_bytes

    found = [seconds_of(check) for _ in range(WARM_UPS + RUNS)][WARM_UPS:]
    return Result(
        f"Spark verify, {size_bytes / 1e9:.1f} GB in {PARTITIONS} partitions",
        size_bytes / median(found) / 1e9,
        "GB/s",
        1,
        detail=f"{min(found):.2f} to {max(found):.2f} s",
    )


def exported(spark: Any, log_dir: Path, root: Path, records: int) -> Result:
    from stratalog.spark.jobs import export

    target = root / "landed"

    def bare() -> None:
        frame = spark.read.format("stratalog").option("subscribe", TOPIC).load(str(log_dir))
        frame.write.parquet(str(target))

    def job() -> None:
        assert export(spark, log_dir, TOPIC, target).rows_written == records

    ways: dict[str, Callable[[], None]] = {"bare scan and write": bare, "export": job}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UPS + RUNS):
        for name, work in ways.items():
            spent = seconds_of(work)
            shutil.rmtree(target)
            if number >= WARM_UPS:
                seconds[name].append(spent)
    typical = {name: median(found) for name, found in seconds.items()}
    detail = ", ".join(
        f"{name} {typical[name]:.2f} s ({min(found):.2f} to {max(found):.2f})"
        for name, found in seconds.items()
    )
    return Result(
        "Spark export, by date and exactly once: times the bare scan and Parquet write",
        typical["bare scan and write"] / typical["export"],
        "x",
        0.8,
        detail=detail,
    )


def counted(spark: Any, log_dir: Path, records: int) -> Result:
    from stratalog.spark.jobs import stats

    size_bytes = sum(path.stat().st_size for path in log_dir.rglob("*.log"))

    def count() -> None:
        (topic,) = stats(spark, log_dir, TOPIC).topics
        assert topic.records == records

    found = [seconds_of(count) for _ in range(WARM_UPS + 3)][WARM_UPS:]
    return Result("Spark stats", size_bytes / median(found) / 1e9, "GB/s", None)
