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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog
from benchmarks.broker_raw import Batch, Connection, Producer
from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import CONNECTOR, PARQUET, Bar, Outcome, Peer, higher, lower
from benchmarks.peers import why_no_connector
from benchmarks.processes import anonymous_mb, tree, tree_cpu_s
from benchmarks.spark_session import in_turns, spark_session
from stratalog.records import Record, build_batch

TOPIC = "orders"
PARTITIONS = 8
TOTAL_BYTES = scaled(2_200_000_000, least=80_000_000)
LARGE_BYTES = scaled(4_000_000_000, least=80_000_000)
VALUE_BYTES = 220
RECORDS_A_BATCH = 68  # some 16 KiB, which is what producers send unless told otherwise
DISTINCT_BATCHES = 512
WARM_UPS, RUNS = repeats(3), repeats(5)
FULL = Peer("the full scan", is_rival=False)
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    broker = None
    if why_no_connector() is None:
        broker = apache_kafka(root / "kafka")
    with running([broker or stratalog(root / "ours")]) as (there,):
        size_bytes = fill(there, TOPIC, [TOTAL_BYTES // PARTITIONS] * PARTITIONS)
        large_bytes = fill(there, "skewed", [LARGE_BYTES] + [20_000] * 9)
        settle(there)
        with spark_session(root, with_connector=True) as spark:
            yield from full_scans(spark, there, root, size_bytes)
            yield from skewed_scan(spark, there, large_bytes)


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


def settle(broker: BrokerProcess) -> None:
    """Who reads the files of a running Apache Kafka sees as much as its checkpoint says: written
    every five seconds."""
    written = broker.log_dir / "replication-offset-checkpoint"
    before = time.time()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if written.exists() and written.stat().st_mtime >= before + 1:
            return
        time.sleep(0.2)


# --- Spark ---------------------------------------------------------------------------------------


def drain(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def ours(spark: Any, broker: BrokerProcess, topic: str = TOPIC, schema: str | None = None) -> Any:
    reader = spark.read.format("stratalog").option("subscribe", topic)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(str(broker.log_dir))


def connector(spark: Any, broker: BrokerProcess) -> Any:
    options = {"kafka.bootstrap.servers": broker.bootstrap_server, "subscribe": TOPIC}
    return spark.read.format("kafka").options(**options).load()


def full_scans(spark: Any, broker: BrokerProcess, root: Path, size_bytes: int) -> Iterator[Outcome]:
    parquet = root / "parquet"
    ours(spark, broker).select(*COLUMNS).write.parquet(str(parquet))
    frames: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(spark, broker),
        "Parquet": lambda: spark.read.parquet(str(parquet)),
    }
    if why_no_connector() is None:
        frames["connector"] = lambda: connector(spark, broker)
    (rows,) = {frame().count() for frame in frames.values()}  # all have the same
    frames["keys"] = lambda: ours(spark, broker, schema="key binary")
    seconds = in_turns(
        {name: lambda frame=frame: drain(frame()) for name, frame in frames.items()},
        warm_ups=WARM_UPS,
        runs=RUNS,
    )
    shutil.rmtree(parquet)
    rates = {name: [size_bytes / each / 1e6 for each in found] for name, found in seconds.items()}
    what = f"Spark scan of {size_bytes / 1e9:.1f} GB, {rows:,} rows, 7 columns"
    why = why_no_connector()
    yield higher(
        "spark-scan.connector",
        what,
        "MB/s",
        rates["ours"],
        rates.get("connector"),
        peer=CONNECTOR,
        bar=Bar(ratio=3),
        note=f"no connector: {why}" if why else "",
        is_headline=True,
    )
    yield higher(
        "spark-scan.parquet",
        what,
        "MB/s",
        rates["ours"],
        rates["Parquet"],
        peer=PARQUET,
        bar=Bar(ratio=0.5),
        note="the same rows, which Parquet has in columns already",
    )
    yield higher(
        "spark-scan.keys",
        "Spark scan, keys only",
        "MB/s",
        rates["keys"],
        rates["ours"],
        peer=FULL,
        bar=Bar(ratio=2),
    )


def skewed_scan(spark: Any, broker: BrokerProcess, size_bytes: int) -> Iterator[Outcome]:
    """One large partition beside tiny ones: how many cores work on it, in how much memory."""
    drain(ours(spark, broker, "skewed"))
    cores, rates = [], []
    with Largest(lambda: workers_mb(os.getpid())) as memory_mb:
        for _ in range(repeats(2)):
            started, spent = time.perf_counter(), tree_cpu_s(os.getpid())
            drain(ours(spark, broker, "skewed"))
            seconds = time.perf_counter() - started
            cores.append((tree_cpu_s(os.getpid()) - spent) / seconds)
            rates.append(size_bytes / seconds / 1e6)
    what = f"Spark scan of one partition of {LARGE_BYTES / 1e9:.2g} GB beside nine tiny ones"
    yield higher("spark-scan.skewed", what, "MB/s", rates)
    yield higher("spark-scan.cores", f"{what}: cores busy", "cores", cores, bar=Bar(value=1.8))
    yield lower(
        "spark-scan.worker-memory",
        f"{what}: anonymous memory of a Python worker",
        "MB",
        [memory_mb.largest],
        bar=Bar(value=300),
    )


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
