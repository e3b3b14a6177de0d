"""Spark reading a topic: our source over the files, Spark's Kafka connector through the broker,
and Spark's own Parquet with the same rows.

Both read the very same records: Apache Kafka holds them, and ours reads its directory while it
runs. Values are incompressible. Each way is warmed up three times and measured five times, in
turns; what is told is the median. Rows go to Spark's ``noop`` sink.
"""

import itertools
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, Self

from benchmarks.broker_processes import INTEROP, BrokerProcess, apache_kafka
from benchmarks.broker_raw import Batch, Connection, Producer
from benchmarks.processes import anonymous_mb, tree, tree_cpu_s
from benchmarks.result import Result
from stratalog.records import Record, build_batch

TOPIC = "orders"
PARTITIONS = 8
TOTAL_BYTES = 2_200_000_000
LARGE_BYTES = 4_000_000_000
VALUE_BYTES = 220
RECORDS_A_BATCH = 68  # some 16 KiB, which is what producers send unless told otherwise
DISTINCT_BATCHES = 512
WARM_UPS, RUNS = 3, 5
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def run(root: Path) -> list[Result]:
    kafka = apache_kafka(root / "kafka")
    if kafka is None:
        return []
    kafka.start()
    try:
        size_bytes = fill(kafka, TOPIC, [TOTAL_BYTES // PARTITIONS] * PARTITIONS)
        large_bytes = fill(kafka, "skewed", [LARGE_BYTES] + [20_000] * 9)
        settle(kafka)
        with spark_session(root) as spark:
            return [
                *full_scans(spark, kafka, root, size_bytes),
                *skewed_scan(spark, kafka, large_bytes),
            ]
    finally:
        kafka.stop()


# --- the data ------------------------------------------------------------------------------------


def make_batches(seed: int) -> list[Batch]:
    dice, now_ms = random.Random(seed), time.time_ns() // 1_000_000
    return [
        Batch(
            build_batch(
                Record(dice.randbytes(12), dice.randbytes(VALUE_BYTES), (), now_ms + number)
                for _ in range(RECORDS_A_BATCH)
            ),
            RECORDS_A_BATCH,
        )
        for number in range(DISTINCT_BATCHES)
    ]


def fill(broker: BrokerProcess, topic: str, sizes: list[int]) -> int:
    """Produce that many bytes to each partition; how many it was in all."""
    batches = make_batches(len(sizes))
    total = 0
    with broker.connect() as connection:
        connection.create_topic(topic, partitions=len(sizes))
        for partition, size_bytes in enumerate(sizes):
            total += produce_to(connection, topic, partition, batches, size_bytes)
    return total


def produce_to(
    connection: Connection, topic: str, partition: int, batches: list[Batch], size_bytes: int
) -> int:
    producers = [Producer(connection, topic, partition, batch, acks=1) for batch in batches]
    waiting: list[Producer] = []
    sent = 0
    for producer in itertools.cycle(producers):
        if sent >= size_bytes:
            break
        producer.send()
        sent += producer.size_bytes
        waiting.append(producer)
        if len(waiting) == 8:
            waiting.pop(0).receive()
    for producer in waiting:
        producer.receive()
    return sent


def settle(kafka: BrokerProcess) -> None:
    """Who reads the files of a running Apache Kafka sees as much as its checkpoint says: written
    every five seconds."""
    written = kafka.log_dir / "replication-offset-checkpoint"
    before = time.time()
    until = time.monotonic() + 30
    while time.monotonic() < until and written.stat().st_mtime < before + 1:
        time.sleep(0.2)


# --- Spark ---------------------------------------------------------------------------------------


@contextmanager
def spark_session(root: Path) -> Iterator[Any]:
    sys.path.insert(0, str(INTEROP))
    from tools_fetched import spark_connector

    from stratalog.spark.session import session

    jars = ",".join(str(jar) for jar in spark_connector())
    os.environ["SPARK_LOCAL_DIRS"] = str(root / "local")
    spark = session(
        master="local[2]",
        app_name="benchmark",
        configs={
            "spark.ui.enabled": "false",
            "spark.jars": jars,
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


def drain(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def ours(spark: Any, kafka: BrokerProcess, topic: str = TOPIC, schema: str | None = None) -> Any:
    reader = spark.read.format("stratalog").option("subscribe", topic)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(str(kafka.log_dir))


def connector(spark: Any, kafka: BrokerProcess) -> Any:
    options = {"kafka.bootstrap.servers": kafka.bootstrap_server, "subscribe": TOPIC}
    return spark.read.format("kafka").options(**options).load()


def full_scans(spark: Any, kafka: BrokerProcess, root: Path, size_bytes: int) -> list[Result]:
    parquet = root / "parquet"
    ours(spark, kafka).select(*COLUMNS).write.parquet(str(parquet))
    rows = connector(spark, kafka).count()
    for frame in (ours(spark, kafka), spark.read.parquet(str(parquet))):
        assert frame.count() == rows, "not the same rows"
    ways: dict[str, Callable[[], Any]] = {
        "stratalog": lambda: ours(spark, kafka),
        "keys": lambda: ours(spark, kafka, schema="key binary"),
        "connector": lambda: connector(spark, kafka),
        "Parquet": lambda: spark.read.parquet(str(parquet)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UPS + RUNS):
        for name, frame in ways.items():
            started = time.perf_counter()
            drain(frame())
            if number >= WARM_UPS:
                seconds[name].append(time.perf_counter() - started)
    shutil.rmtree(parquet)
    typical = {name: median(found) for name, found in seconds.items()}
    detail = ", ".join(
        f"{name} {size_bytes / typical[name] / 1e6:,.0f} MB/s"
        f" ({min(found):.2f} to {max(found):.2f} s)"
        for name, found in seconds.items()
    )
    what = f"Spark, full scan of {size_bytes / 1e9:.1f} GB, {rows:,} rows"
    mine = typical["stratalog"]
    return [
        Result(
            f"{what}: times Spark's Kafka connector",
            typical["connector"] / mine,
            "x",
            3,
            detail=detail,
        ),
        Result(f"{what}: times Parquet", typical["Parquet"] / mine, "x", 0.5),
        Result("Spark, keys only: times the full scan", mine / typical["keys"], "x", 2),
    ]


def skewed_scan(spark: Any, kafka: BrokerProcess, size_bytes: int) -> list[Result]:
    """One large partition beside tiny ones: how many cores work on it, in how much memory."""
    drain(ours(spark, kafka, "skewed"))
    started, spent = time.perf_counter(), tree_cpu_s(os.getpid())
    with Largest(lambda: workers_mb(os.getpid())) as memory_mb:
        drain(ours(spark, kafka, "skewed"))
    seconds = time.perf_counter() - started
    cores = (tree_cpu_s(os.getpid()) - spent) / seconds
    what = f"Spark, one partition of {LARGE_BYTES / 1e9:.0f} GB beside nine tiny ones"
    rate = f"{size_bytes / seconds / 1e6:,.0f} MB/s"
    return [
        Result(f"{what}: cores busy", cores, "cores", 1.8, detail=rate),
        Result(
            f"{what}: anonymous memory of a Python worker",
            memory_mb.largest,
            "MB",
            300,
            higher_is_better=False,
        ),
    ]


def workers_mb(pid: int) -> float:
    """Of the Python processes that Spark has started the one with the most."""
    return max((anonymous_mb(each) for each in tree(pid) if is_worker(each)), default=0.0)


def is_worker(pid: int) -> bool:
    with suppress(OSError):
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


class Largest:
    """The largest of what ``ask`` says, asked ten times a second while the block runs."""

    def __init__(self, ask: Callable[[], float]) -> None:
        self.largest = 0.0
        self._ask = ask
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.1):
            self.largest = max(self.largest, self._ask())
