"""Spark's own pushdown, which is for one filter a load: right rows in both of Spark's settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_loads import load, places
from topics import write_topic

pytestmark = pytest.mark.xdist_group("spark")

SETTING = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(params=["false", "true"])
def setting(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, request.param)
    yield request.param
    spark.conf.set(SETTING, before)


CONDITIONS = [
    "partition in (0, 3) and offset >= 2",
    "key = X'6B33' and topic = 'orders'",
    "timestamp > timestamp'2023-11-14 22:13:25' and timestamp <= timestamp'2023-11-14 22:13:30.5'",
    "partition = 1 or offset = 0",
]


def test_pushing_one_filter_a_load_changes_no_rows(
    spark: Any, tmp_path: Path, setting: str
) -> None:
    write_topic(tmp_path, "orders", 4, 5)
    rows = load(spark, tmp_path).cache()

    for condition in CONDITIONS:
        found = load(spark, tmp_path, pushdown="true").where(condition)
        assert places(found) == places(rows.where(condition)), condition
    rows.unpersist()


def test_a_pushed_filter_reads_fewer_tasks(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 4, 50)
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "true")
    try:
        cut = {"maxRecordsPerPartition": "50"}
        found = load(spark, tmp_path, pushdown="true", **cut).where("partition = 1")
        assert found.rdd.getNumPartitions() == 1
        unpushed = load(spark, tmp_path, **cut).where("partition = 1")
        assert unpushed.rdd.getNumPartitions() == 4
    finally:
        spark.conf.set(SETTING, before)
