"""Conditions as the scan reads them and as Spark does: a row that Spark keeps is never pruned."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from stratalog.scans.where import Where, parse_where

pytestmark = pytest.mark.xdist_group("spark")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = "id int, key binary, topic string, partition int, offset long, timestamp timestamp"
ZONE = "Europe/Berlin"
MOMENTS = (
    *("1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z", "2024-03-31T00:59:59.999Z"),
    *("2024-03-31T01:00:00Z", "2024-03-31T01:30:00Z", "2024-10-27T00:30:00Z"),
    *("2024-10-27T01:30:00Z", "2023-12-31T23:00:00Z", "2024-01-01T00:00:00.001Z"),
)
KEYS = (None, b"", b"a", b"A", b"\xff", b"ab", "é".encode())
CONDITIONS = (
    *("offset > 3", "offset >= 3 AND offset < 5", "3 >= offset", "offset BETWEEN -1 AND 2L"),
    *("NOT (offset < 2 OR offset >= 6)", "offset IN (1, 5)", "offset = 5S", "offset <=> 4"),
    *("NOT offset <= 4", "!(offset > 4)", "offset == 2", "offset > 99999999999999999999"),
    *("partition IN (0, 2)", "partition < 2", "partition = 1 OR partition = 2", "partition > 1"),
    *("topic = 'a'", "topic IN ('a', \"B\")", "topic = 'A '", "topic = 'a' AND topic = 'B'"),
    *(
        "key = X'6162'",
        "key = 'a'",
        "CAST(key AS STRING) IN ('a', '')",
        "CAST(key AS STRING) = 'é'",
        "key = x''",
    ),
    *("key <=> 'a'", "NOT key = 'a'", "string(key) = 'a' OR key = X'FF'", "key = 'a' 'b'"),
    *("timestamp >= '2024-01-01'", "timestamp < DATE '2024-01-01'", "timestamp = '1970-01-01'"),
    *("timestamp > TIMESTAMP '2024-03-31 02:30:00'", "timestamp <= '2024-03-31 02:30:00'"),
    *("timestamp = '2024-10-27 02:30:00'", "timestamp > '2024-10-27T02:30:00.0005'"),
    *("timestamp >= '2024-01-01 00:00:00.001Z'", "timestamp < '2024-01-01 00:00:00-01:00'"),
    *(
        "timestamp >= CAST('2024-01-01' AS TIMESTAMP)",
        "timestamp > TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    ),
    *("timestamp BETWEEN '2024-01-01' AND '2024-03-31 03:00:00'", "timestamp > '2024-01-01 01:00'"),
    *(
        "timestamp >= TIMESTAMP_LTZ '2024-01-01 00:00:00'",
        "(offset < 2 AND partition = 0) OR offset = 6",
    ),
    *("true", "offset > 2 AND false", "NOT false", "offset > 1.5", "offset > '3'", "offset >= 1e0"),
    *("offset > 3 AND length(topic) = 1", "timestamp > timestamp('2024-01-01')", "offset = +3"),
)


def rows() -> list[tuple[Any, ...]]:
    count = len(MOMENTS) * len(KEYS)
    return [
        (
            place,
            KEYS[place % len(KEYS)],
            "aAB"[place % 3],
            place % 4,
            place % 8 - 1,
            datetime.fromisoformat(MOMENTS[place % len(MOMENTS)]),
        )
        for place in range(count)
    ]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    # As a Python session has it, where moments without a zone are of the machine's.
    return spark.createDataFrame(rows(), SCHEMA).cache()


def is_kept(where: Where, row: tuple[Any, ...]) -> bool:
    _, key, topic, partition, offset, moment = row
    milliseconds = (moment - EPOCH) // timedelta(milliseconds=1)
    low, high = where.min_timestamp_ms, where.max_timestamp_ms
    return (
        (where.topics is None or topic in where.topics)
        and (where.partitions is None or partition in where.partitions)
        and (where.keys is None or key in where.keys)
        and (where.min_offset is None or where.min_offset <= offset)
        and (where.max_offset is None or offset <= where.max_offset)
        and (low is None or low <= milliseconds)
        and (high is None or milliseconds <= high)
    )


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    named = {f"spark.sql.{name.replace('_', '.')}": value for name, value in values.items()}
    before = {name: spark.conf.get(name) for name in named}
    for name, value in named.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            spark.conf.set(name, known or "")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_keeps_no_row_that_is_pruned_and_the_same_where_all_is_understood(
    spark: SparkSession, table: DataFrame, ansi: str
) -> None:
    # One query for all conditions: a column each.
    flags = [f"({sql}) AS c{place}" for place, sql in enumerate(CONDITIONS)]
    with settings(spark, session_timeZone=ZONE, ansi_enabled=ansi):
        answers = {row.id: row for row in table.selectExpr("id", *flags).collect()}
    for place, sql in enumerate(CONDITIONS):
        parsed = parse_where(sql, ZONE)
        kept = {row[0] for row in rows() if is_kept(parsed.where, row)}
        wanted = {number for number, answer in answers.items() if answer[f"c{place}"]}
        assert wanted <= kept, sql
        assert parsed.left or wanted == kept, sql
