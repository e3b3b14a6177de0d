"""Spark writing a topic: our sink beside the files of a running broker of ours, and Spark's Kafka
sink into Apache Kafka.

Both write the very same rows, which Spark makes from a range, to as many partitions, with both
brokers on the same two cores. Ours has made all of it durable when the write returns; Apache Kafka
has it in the page cache. Each way is warmed up, until the JVM has compiled what it runs, and
measured in turns, each time into a new topic and into memory that the machine has been given
before; what is told is the median.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog
from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import CONNECTOR, NO_BAR, Bar, Outcome, higher
from benchmarks.memory_touching import touch_memory
from benchmarks.peers import why_no_connector
from benchmarks.spark_session import spark_session
from benchmarks.timing import wall_s
from stratalog.storage.files import OsFileSystem

ROWS = scaled(10_000_000)
VALUE_BYTES, VALUES = 190, 64
PARTITIONS = 4
SPARK_PARTITIONS = 8
WARM_UPS, RUNS = repeats(3), repeats(5)
TUNED_RUNS = 2
# What a load leaves in the page cache.
LOADED_BYTES = ROWS * (VALUE_BYTES + 20)
# Beside the defaults, what somebody would set who wants either way to be quick: larger batches for
# the connector, and for ours that Spark does not weigh its record batches after each row.
TUNED = {"kafka.batch.size": str(256 * 1024), "kafka.linger.ms": "20"}
WEIGHING = "spark.sql.execution.arrow.maxBytesPerBatch"
NEVER = str(2**31 - 1)

DURABILITY = "ours is on disk when the write returns, theirs in the page cache of an Apache Kafka"

Way = tuple[BrokerProcess, Callable[[str], None]]  # to a new topic of that broker


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    kafka = apache_kafka(root / "kafka") if why_no_connector() is None else None
    with (
        running([stratalog(root / "ours"), kafka]) as (ours, *theirs),
        spark_session(root, with_connector=True) as spark,
    ):
        rows = make_rows(spark)
        ways = our_ways(spark, rows, ours)
        if theirs:
            ways |= their_ways(rows, theirs[0])
        yield from figures(loads(root, spark, ways))


def make_rows(spark: Any) -> Any:
    """Rows that cost Spark little to make, so that what is measured is the writing of them."""
    from pyspark.sql import functions as F

    made = random.Random(1)
    values = F.array(*(F.lit(bytearray(made.randbytes(VALUE_BYTES))) for _ in range(VALUES)))
    return spark.range(0, ROWS, 1, SPARK_PARTITIONS).select(
        F.col("id").cast("string").cast("binary").alias("key"),
        F.get(values, (F.col("id") % VALUES).cast("int")).alias("value"),
    )


def write_ours(rows: Any, broker: BrokerProcess, topic: str) -> None:
    writer = rows.write.format("stratalog").option("topic", topic)
    writer.mode("append").save(str(broker.log_dir))


def write_theirs(rows: Any, broker: BrokerProcess, topic: str, **settings: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_server, "topic": topic}
    rows.write.format("kafka").options(**options, **settings).save()


def our_ways(spark: Any, rows: Any, broker: BrokerProcess) -> dict[str, Way]:
    def tuned(topic: str) -> None:
        spark.conf.set(WEIGHING, NEVER)
        try:
            write_ours(rows, broker, topic)
        finally:
            spark.conf.unset(WEIGHING)

    return {
        "ours": (broker, lambda topic: write_ours(rows, broker, topic)),
        "ours-tuned": (broker, tuned),
    }


def their_ways(rows: Any, broker: BrokerProcess) -> dict[str, Way]:
    return {
        "theirs": (broker, lambda topic: write_theirs(rows, broker, topic)),
        "theirs-tuned": (broker, lambda topic: write_theirs(rows, broker, topic, **TUNED)),
    }


def loads(root: Path, spark: Any, ways: dict[str, Way]) -> dict[str, list[float]]:
    """Seconds of each way, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UPS + RUNS):
        for name, (broker, write) in ways.items():
            if "tuned" in name and number < WARM_UPS + RUNS - TUNED_RUNS:
                continue  # warm by then, and without a bar
            is_last = number == WARM_UPS + RUNS - 1 and "tuned" not in name
            settle(root)
            spent = one_load(spark, broker, f"{name}-{number}", write, is_counted=is_last)
            if number >= WARM_UPS:
                seconds[name].append(spent)
    return seconds


def settle(root: Path) -> None:
    """What was written before is on disk or deleted, and the page cache has room at hand."""
    OsFileSystem().sync_file_system(str(root))
    touch_memory(root, LOADED_BYTES)


def figures(seconds: dict[str, list[float]]) -> Iterator[Outcome]:
    what = f"Spark load of {ROWS:,} rows of {VALUE_BYTES} bytes and a key"
    why = why_no_connector()
    for tuned, words, bar in (("", "", Bar(ratio=3)), ("-tuned", ", both tuned", NO_BAR)):
        ours, theirs = seconds[f"ours{tuned}"], seconds.get(f"theirs{tuned}")
        yield higher(
            f"spark-load{tuned or '.default'}".replace("-tuned", ".tuned"),
            f"{what}{words}",
            "M rows/s",
            [ROWS / each / 1e6 for each in ours],
            [ROWS / each / 1e6 for each in theirs or ()],
            peer=CONNECTOR,
            bar=bar,
            note=f"no connector: {why}" if why else DURABILITY,
            is_headline=not tuned,
        )


def one_load(
    spark: Any,
    broker: BrokerProcess,
    topic: str,
    write: Callable[[str], None],
    *,
    is_counted: bool,
) -> float:
    with broker.connect() as connection:
        connection.create_topic(topic, partitions=PARTITIONS)
        spent = wall_s(lambda: write(topic))
        if is_counted:
            assert count(spark, broker, topic) == ROWS, "not all rows are there"
        connection.delete_topic(topic)
    return spent


def count(spark: Any, broker: BrokerProcess, topic: str) -> int:
    """By Spark's own connector where it is there, whoever wrote."""
    if why_no_connector() is None:
        options = {"kafka.bootstrap.servers": broker.bootstrap_server, "subscribe": topic}
        frame = spark.read.format("kafka").options(**options).load()
    else:
        frame = spark.read.format("stratalog").option("subscribe", topic).load(str(broker.log_dir))
    found: int = frame.count()
    return found
