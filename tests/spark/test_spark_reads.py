"""stratalog.spark.reads: what tasks have read, in their own words and not the plan's."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from topics import record, write_topic

from stratalog import spark as stratalog_spark
from stratalog.scans.errors import ScanOptionError
from stratalog.spark.counting import LOGGING_SETTING, Reads

pytestmark = pytest.mark.xdist_group("spark")

RECORDS = 20_000
BATCH_RECORDS = 100
TOLD_SECONDS = 120


@pytest.fixture
def keeping(spark: Any) -> Iterator[Any]:
    """A session of its own, which keeps what workers log."""
    own = spark.newSession()
    own.conf.set(LOGGING_SETTING, "true")
    yield own
    own.conf.unset(LOGGING_SETTING)


def reads_of(spark: Any, *, rows: int) -> Reads:
    """As soon as the tasks have told of so many rows: Spark hears of them on its own time."""
    deadline = time.monotonic() + TOLD_SECONDS
    while (found := stratalog_spark.reads(spark)).rows < rows:
        assert time.monotonic() < deadline, found
    assert found.rows == rows
    return found


def rows_of(path: Path, spark: Any, where: str | None) -> int:
    return stratalog_spark.scan(
        spark, str(path), topic="orders", where=where, columns=["value"]
    ).count()


def log_bytes(path: Path) -> int:
    return sum(each.stat().st_size for each in path.glob("orders-*/*.log"))


def test_it_is_the_bytes_that_tasks_read_and_not_those_of_the_plan(
    keeping: Any, tmp_path: Path
) -> None:
    write_topic(tmp_path, "orders", 2, RECORDS, batch_records=BATCH_RECORDS)
    where = "timestamp < '2023-11-14 22:23:20'"  # the first ten minutes, a record a second

    assert stratalog_spark.reads(keeping) == Reads(0, 0, 0, 0)
    assert rows_of(tmp_path, keeping, where) == 600
    some = reads_of(keeping, rows=600)
    assert some.batches >= 600 // BATCH_RECORDS
    assert 0 < some.bytes_read < log_bytes(tmp_path) // 10

    assert rows_of(tmp_path, keeping, None) == 2 * RECORDS
    everything = reads_of(keeping, rows=600 + 2 * RECORDS)
    assert everything.tasks > some.tasks
    assert everything.batches == some.batches + 2 * RECORDS // BATCH_RECORDS
    assert everything.bytes_read >= some.bytes_read + log_bytes(tmp_path)


def test_a_task_that_is_left_early_tells_what_it_had_read(keeping: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", {0: [record(each) for each in range(10)]})

    scanned = stratalog_spark.scan(keeping, str(tmp_path), topic="orders")
    assert len(scanned.limit(1).collect()) == 1

    assert reads_of(keeping, rows=10).tasks == 1


def test_a_session_that_keeps_no_logs_is_told_what_to_set(spark: Any) -> None:
    with pytest.raises(ScanOptionError, match=LOGGING_SETTING.replace(".", r"\.")):
        stratalog_spark.reads(spark)
