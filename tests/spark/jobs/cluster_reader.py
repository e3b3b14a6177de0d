"""A driver on a cluster: reads one topic, and then paths that lead elsewhere on one of the hosts.

Arguments: master, archive, where to put what was seen as one JSON object, the log directory, and
the paths that have to fail.
"""

import json
import sys
from pathlib import Path

from stratalog.spark.session import session
from stratalog.spark.shipping import package_archive, shipping_configs

QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CONFIGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "700m",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.executor.memory": "512m",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.task.maxFailures": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main(master: str, archive: str, told: str, log_dir: str, *elsewhere: str) -> None:
    configs = shipping_configs(package_archive(archive), CONFIGS)
    spark = session(master, app_name="cluster reader", configs=configs)
    wait_for_executors(spark, 2)
    reader = spark.read.format("stratalog").option("subscribe", "orders")
    frame = reader.option("maxBytesPerPartition", "400").load(log_dir)
    seen = {
        "rows": sorted([row.partition, row.offset] for row in frame.collect()),
        "tasks": frame.rdd.getNumPartitions(),
        "hosts": [row.asDict() for row in hosts(spark)],
        "failures": {Path(path).name: failure(reader.load(path)) for path in elsewhere},
    }
    Path(told).write_text(json.dumps(seen))
    spark.stop()


def wait_for_executors(spark, number: int) -> None:  # type: ignore[no-untyped-def]
    """Workers register one after the other; the first alone would do all the tasks."""
    import time

    scheduler = spark.sparkContext._jsc.sc()
    while scheduler.getExecutorMemoryStatus().size() < number + 1:  # the driver counts as one
        time.sleep(0.1)


def hosts(spark):  # type: ignore[no-untyped-def]
    """Where tasks run, with which Python, and from where they have the package."""
    frame = spark.range(0, 4, 1, 4)
    found = frame.mapInArrow(look, "host string, python string, package string")
    return sorted(set(found.collect()))


def look(batches):  # type: ignore[no-untyped-def]
    import os
    import sys

    import pyarrow

    import stratalog.records._kernels

    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict(
            {
                "host": [os.environ["SPARK_LOCAL_IP"]],
                "python": [sys.executable],
                "package": [stratalog.records._kernels.__file__],
            }
        )


def failure(frame) -> str:  # type: ignore[no-untyped-def]
    from pyspark.errors import PySparkException

    for _ in range(10):
        try:
            frame.collect()  # tells nothing if one host was quick enough to do all the tasks
        except PySparkException as error:
            return str(error)
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
