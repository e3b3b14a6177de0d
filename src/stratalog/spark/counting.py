"""What tasks have really read, in their own words: ``reads(spark)``.

Spark counts nothing for a source that is written in Python. But it keeps what Python workers log,
if the session's ``spark.sql.pyspark.worker.logging.enabled`` is true: each task that reads a topic
logs one line when it ends, and here they are added up. Without the setting nobody hears the lines.

A plan (``explain``) says what would be read; this says what was, attempts that failed included.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stratalog.scans.reading import ScanReport

LOGGING_SETTING = "spark.sql.pyspark.worker.logging.enabled"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reads:
    """Of all tasks of a session; ``batches`` are those of the log, ``rows`` what Spark got."""

    tasks: int
    bytes_read: int
    batches: int
    rows: int


def tell_read(report: ScanReport) -> None:
    """For the log of the worker that this runs in."""
    counted = {name: str(getattr(report, name)) for name in _COUNTED}
    _log.info("a task read %(bytes_read)s bytes", counted, extra={"context": counted})


def let_workers_tell() -> None:
    """In a worker: what it says reaches who listens; by itself logging passes on warnings only."""
    _log.setLevel(logging.INFO)


def reads(spark: SparkSession) -> Reads:
    """What has been read of topics in this session until now, by tasks that have ended."""
    # Not above: every worker imports this module, and few of them scan.
    from stratalog.scans.errors import ScanOptionError

    kept = str(spark.conf.get(LOGGING_SETTING, "false"))
    if kept.lower() != "true":
        raise ScanOptionError(
            LOGGING_SETTING, kept, "true lets Spark keep what tasks say they read"
        )
    sums = [f"sum(cast(context['{name}'] AS bigint)) AS {name}" for name in _COUNTED]
    lines = spark.tvf.python_worker_logs().where(f"logger = '{__name__}'")
    (row,) = lines.selectExpr("count(*) AS tasks", *sums).collect()
    return Reads(**{each.name: row[each.name] or 0 for each in fields(Reads)})


_COUNTED = tuple(each.name for each in fields(Reads) if each.name != "tasks")
