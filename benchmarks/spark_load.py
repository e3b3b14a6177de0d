"""Spark writing a topic: our sink beside the files of a running broker of ours, and Spark's Kafka
sink into Apache Kafka.

Both write the very same rows, which Spark makes from a range, to as many partitions, with both
brokers on the same two cores. Ours has made all of it durable when the write returns; Apache Kafka
has it in the page cache. Each way is warmed up once and measured in turns, each time into a new
topic; what is told is the median.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.broker_processes import (
    BrokerProcess,
    apache_kafka,
    installed,
    running,
    stratalog,
)
from benchmarks.result import Result
from benchmarks.spark_scan import spark_session

ROWS = 10_000_000
VALUE_BYTES, VALUES = 190, 64
PARTITIONS = 4
SPARK_PARTITIONS = 8
WARM_UPS, RUNS = 1, 3
# Beside the defaults, what somebody would set who wants either way to be quick: larger batches for
# the connector, and for ours that Spark does not weigh its record batches after each row.
TUNED = {"kafka.batch.size": str(256 * 1024), "kafka.linger.ms": "20"}
WEIGHING = "spark.sql.execution.arrow.maxBytesPerBatch"
NEVER = str(2**31 - 1)


def run(root: Path) -> list[Result]:
    kafka = apache_kafka(root / "kafka")
    if kafka is None:
        return []
    # Spark's Python processes are as those of an installed package too.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(installed(root))
    with running([stratalog(root / "ours"), kafka]) as (ours, theirs), spark_session(root) as spark:
        return loads(spark, make_rows(spark), ours, theirs)


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


def loads(spark: Any, rows: Any, ours: BrokerProcess, theirs: BrokerProcess) -> list[Result]:
    def ours_tuned(topic: str) -> None:
        spark.conf.set(WEIGHING, NEVER)
        try:
            write_ours(rows, ours, topic)
        finally:
            spark.conf.unset(WEIGHING)

    ways: dict[str, tuple[BrokerProcess, Callable[[str], None]]] = {
        "stratalog": (ours, lambda topic: write_ours(rows, ours, topic)),
        "connector": (theirs, lambda topic: write_theirs(rows, theirs, topic)),
        "stratalog-tuned": (ours, ours_tuned),
        "connector-tuned": (theirs, lambda topic: write_theirs(rows, theirs, topic, **TUNED)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UPS + RUNS):
        for name, (broker, write) in ways.items():
            is_last = number == WARM_UPS + RUNS - 1
            spent = one_load(spark, broker, f"{name}-{number}", write, is_counted=is_last)
            if number >= WARM_UPS:
                seconds[name].append(spent)
    typical = {name: median(found) for name, found in seconds.items()}
    detail = ", ".join(
        f"{name} {ROWS / typical[name] / 1e6:.2f} M rows/s ({min(found):.2f} to {max(found):.2f} s)"
        for name, found in seconds.items()
    )
    what = f"Spark, load of {ROWS:,} rows of {VALUE_BYTES} bytes and a key"
    mine = typical["stratalog"]
    return [
        Result(
            f"{what}: times Spark's Kafka sink into Apache Kafka",
            typical["connector"] / mine,
            "x",
            3,
            detail=detail,
        ),
        Result(
            f"{what}: the same, both tuned",
            typical["connector-tuned"] / typical["stratalog-tuned"],
            "x",
            None,
        ),
    ]


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
        started = time.perf_counter()
        write(topic)
        spent = time.perf_counter() - started
        if is_counted:
            assert count(spark, broker, topic) == ROWS, "not all rows are there"
        connection.delete_topic(topic)
    return spent


def count(spark: Any, broker: BrokerProcess, topic: str) -> int:
    options = {"kafka.bootstrap.servers": broker.bootstrap_server, "subscribe": topic}
    found: int = spark.read.format("kafka").options(**options).load().count()
    return found
