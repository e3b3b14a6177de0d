"""Exports a topic to tables of Iceberg's, in every mode and more than once: run by a test.

    python iceberg_exporting.py JARS HOME

``HOME`` holds ``log``, a log directory with the topic ``orders``, which grows on the way. What each
export said, and what Spark then reads of the tables, is printed as one line of JSON. One process
does it all, since most of its time is a JVM that starts.
"""

import json
import sys
from pathlib import Path
from typing import Any

from lake_exporting import settings
from pyspark.sql import SparkSession

import stratalog
from stratalog import Record
from stratalog.spark.jobs import export
from stratalog.spark.jobs.exporting import start_export
from stratalog.spark.session import session

COPIED, FOLLOWED = "lake.db.copied", "lake.db.followed"
LATE = 10  # records that a partition grows by


def iceberg(home: Path) -> dict[str, str]:
    return {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(home / "warehouse"),
    }


def once(spark: SparkSession, home: Path) -> int:
    """How many rows the run has written, which goes on where the last one was, of either kind."""
    return export(spark, home / "log", "orders", FOLLOWED, **following(home)).rows_written


def continuous(spark: SparkSession, home: Path, *, grows: bool) -> int:
    how = {**following(home), "mode": "continuous", "every": "0 seconds"}
    query = start_export(spark, home / "log", "orders", FOLLOWED, **how)
    query.processAllAvailable()
    if grows:
        grow(home)
        query.processAllAvailable()
    query.stop()
    return sum(report.numInputRows for report in query.recentProgress)


def following(home: Path) -> dict[str, Any]:
    return {"format": "iceberg", "checkpoint": home / "checkpoint"}


def grow(home: Path) -> None:
    with stratalog.open_directory(home / "log") as logs:
        for topic, partition in logs.partitions():
            logs.log(topic, partition).append([Record(b"late", b"%d" % n) for n in range(LATE)])


def landed(spark: SparkSession, table: str) -> list[list[Any]]:
    """What is told apart by a client of Kafka's, of every row."""
    rows = spark.sql(
        "SELECT topic, partition, offset, hex(key), hex(value), unix_millis(timestamp), date"
        f" FROM {table} ORDER BY partition, offset"
    ).collect()
    return [[*row[:-1], row[-1].isoformat()] for row in rows]


def main(jars: str, home: Path) -> None:
    spark = session("local[2]", configs=settings(jars) | iceberg(home))
    copied = export(spark, home / "log", "orders", COPIED, format="iceberg", mode="batch")
    runs = [once(spark, home)]
    first = spark.sql(f"SELECT snapshot_id FROM {FOLLOWED}.snapshots ORDER BY committed_at").first()
    runs += [continuous(spark, home, grows=grows) for grows in (True, False)]
    runs += [once(spark, home)]
    then = spark.sql(f"SELECT count(*) FROM {FOLLOWED} VERSION AS OF {first[0]}").first()
    result = {
        "spark": spark.version,
        "copied": copied.rows_written,
        "followed": runs,
        "rows of the copy": landed(spark, COPIED),
        "rows followed": landed(spark, FOLLOWED),
        "rows of the first snapshot": then[0],
    }
    print(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
