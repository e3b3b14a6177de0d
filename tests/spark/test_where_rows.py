"""Any ``where`` given to the scan returns what a full scan returns, filtered afterwards by Spark.

The records' times go to and fro by hours, so that no bound on time follows from an offset, and the
log has many segments, each with its time ranges.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as compute
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from topics import write_topic
from where_strategies import MIDDLE, OFFSETS, PARTITIONS, SPREAD_MINUTES, conditions

import stratalog.spark
from stratalog.records import Record
from stratalog.scans.where import Where, parse_where

pytestmark = pytest.mark.xdist_group("spark")

# An example takes seconds: shrinking one would take minutes, and a failure names its condition.
GENERATED = (Phase.explicit, Phase.reuse, Phase.generate)
EXAMPLES = settings.default.max_examples // 16
ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
CONFIG = {"internal.segment.bytes": "40000", "index.interval.bytes": "2000"}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("where") / "log"
    chance = random.Random(5)
    for topic in ("orders", "payments"):
        partitions = {
            partition: list(records(chance, drift=partition - 1)) for partition in range(PARTITIONS)
        }
        write_topic(path, topic, partitions, batch_records=4, config=CONFIG)
    return str(path)


def records(chance: random.Random, drift: int) -> Iterator[Record]:
    """``drift``: time goes back, stays or goes on, with an hour of disorder in any case."""
    for offset in range(OFFSETS):
        minute = drift * SPREAD_MINUTES * (2 * offset / OFFSETS - 1) + chance.uniform(-60, 60)
        when = MIDDLE + timedelta(minutes=minute)
        yield Record(
            None if offset % 11 == 0 else f"k{offset % 5}".encode(),
            None if offset % 13 == 0 else bytes(600),
            timestamp_ms=-1 if offset % 97 == 96 else int(when.timestamp() * 1000),
        )


def test_the_log_has_many_segments_with_time_ranges(log_dir: str) -> None:
    segments = list(Path(log_dir).glob("orders-0/*.log"))

    assert len(segments) > 3


@settings(max_examples=EXAMPLES, phases=GENERATED)
@given(wheres=st.lists(conditions, min_size=60, max_size=60), zone=st.sampled_from(ZONES))
def test_what_is_understood_of_a_condition_holds_for_every_row_that_it_keeps(
    spark: Any, log_dir: str, wheres: list[str], zone: str
) -> None:
    with time_zone(spark, zone):
        rows = all_rows(spark, log_dir, wheres)
    for number, where in enumerate(wheres):
        found = parse_where(where, zone).where
        kept = rows.filter(rows[f"c{number}"])
        assert kept.num_rows == kept.filter(is_allowed(kept, found)).num_rows, (where, found)


@settings(max_examples=EXAMPLES, phases=GENERATED)
@given(wheres=st.lists(conditions, min_size=4, max_size=4), zone=st.sampled_from(ZONES))
def test_a_scan_with_a_condition_is_a_full_scan_that_is_filtered(
    spark: Any, log_dir: str, wheres: list[str], zone: str
) -> None:
    with time_zone(spark, zone):
        rows = all_rows(spark, log_dir, wheres)
        for number, where in enumerate(wheres):
            expected = rows.filter(rows[f"c{number}"])
            assert places(scanned(spark, log_dir, where)) == places(expected), where


@contextmanager
def time_zone(spark: Any, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def all_rows(spark: Any, log_dir: str, wheres: list[str]) -> pyarrow.Table:
    """Every row, and whether each condition keeps it, by a query that prunes nothing."""
    every = spark.read.format("stratalog").option("subscribe", "orders,payments").load(log_dir)
    chosen = [f"(({where}) <=> true) AS c{number}" for number, where in enumerate(wheres)]
    columns = ["topic", "partition", "offset", "key", "unix_millis(timestamp) AS timestamp_ms"]
    rows = every.selectExpr(*columns, *chosen).toArrow()
    assert rows.num_rows == 2 * PARTITIONS * OFFSETS
    return rows


def is_allowed(rows: pyarrow.Table, where: Where) -> pyarrow.Array:
    """Which rows a scan that prunes by ``where``, as exactly as it may, still returns."""
    allowed = pyarrow.array([True] * rows.num_rows, pyarrow.bool_())
    for column, chosen in (
        ("topic", where.topics),
        ("partition", where.partitions),
        ("key", where.keys),
    ):
        if chosen is not None:
            of_column = pyarrow.array(sorted(chosen), rows[column].type)
            allowed = compute.and_(allowed, compute.is_in(rows[column], of_column))
    for column, least, most in (
        ("offset", where.min_offset, where.max_offset),
        ("timestamp_ms", where.min_timestamp_ms, where.max_timestamp_ms),
    ):
        if least is not None:
            allowed = compute.and_(allowed, compute.greater_equal(rows[column], least))
        if most is not None:
            allowed = compute.and_(allowed, compute.less_equal(rows[column], most))
    return allowed


def scanned(spark: Any, log_dir: str, where: str) -> pyarrow.Table:
    columns = ["topic", "partition", "offset"]
    topics = ["orders", "payments"]
    frame = stratalog.spark.scan(spark, log_dir, topic=topics, where=where, columns=columns)
    return frame.toArrow()


def places(rows: pyarrow.Table) -> list[tuple[str, int, int]]:
    return sorted(
        zip(
            rows["topic"].to_pylist(),
            rows["partition"].to_pylist(),
            rows["offset"].to_pylist(),
            strict=True,
        )
    )
