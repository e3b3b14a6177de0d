"""stratalog.spark.scan, snapshot and explain: right rows, fewer bytes, files that stay."""

from pathlib import Path
from typing import Any

import pytest
from batch_loads import load, places
from topics import START_MS, record, write_topic

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException, ParseException

import stratalog
from stratalog import spark as stratalog_spark
from stratalog.records import Record
from stratalog.scans.errors import ScanOptionError

pytestmark = pytest.mark.xdist_group("spark")


CONDITIONS = [
    "partition = 2",
    "offset between 3 and 6 and partition in (0, 1)",
    "timestamp >= '2023-11-14 22:13:30' and timestamp < '2023-11-14 22:14:00'",
    "partition = 1 or cast(key as string) = 'k3'",
    "not (offset > 2) and length(value) = 2",
]


def test_a_scan_returns_what_spark_keeps_of_everything(spark: Any, tmp_path: Path) -> None:
    # Times that go back and forth, so that no bound on them is a bound on offsets.
    shuffled = {
        partition: [
            record(number, timestamp_ms=START_MS + number * 7919 % 80 * 1000)
            for number in range(partition * 20, partition * 20 + 20)
        ]
        for partition in range(4)
    }
    write_topic(tmp_path, "orders", shuffled, batch_records=3)
    everything = load(spark, tmp_path).cache()

    for condition in CONDITIONS:
        found = stratalog_spark.scan(spark, str(tmp_path), topic="orders", where=condition)
        assert places(found) == places(everything.where(condition)), condition
    everything.unpersist()


def test_a_scan_has_the_columns_asked_for_and_no_others(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 5)

    found = stratalog_spark.scan(
        spark,
        str(tmp_path),
        topic="orders",
        where="Partition = 1 and timestamp is not null",
        columns=["value", "offset"],
        startingOffsets={"orders": {"0": 0, "1": 2}},
    )

    assert found.columns == ["value", "offset"]
    assert sorted((row.offset, bytes(row.value)) for row in found.collect()) == [
        (2, b"v7"),
        (3, b"v8"),
        (4, b"v9"),
    ]


def test_a_plan_tells_what_is_read(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 4, 50)

    whole = stratalog_spark.explain(spark, str(tmp_path), topic="orders")
    one = stratalog_spark.explain(
        spark, str(tmp_path), topic="orders", where="partition = 1 and offset < 10"
    )

    assert whole.bytes_kept == whole.bytes_total
    assert 0 < one.bytes_kept <= whole.bytes_total / 4
    assert (whole.partitions_kept, one.partitions_kept) == (4, 1)
    assert "bytes are read" in one.lines()[0]


@pytest.mark.parametrize(("where", "word"), [("offst > 3", "offst"), ("no SQL at all", "at")])
def test_a_condition_that_is_none_is_refused_by_a_scan_and_its_plan(
    spark: Any, tmp_path: Path, where: str, word: str
) -> None:
    write_topic(tmp_path, "orders", 1, 1)

    for asked in (stratalog_spark.scan, stratalog_spark.explain):
        with pytest.raises((AnalysisException, ParseException), match=rf"[`']{word}[`']"):
            asked(spark, str(tmp_path), topic="orders", where=where)


def test_a_wrong_option_of_a_scan_is_told_in_python(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ScanOptionError, match="minPartitions"):
        stratalog_spark.scan(spark, str(tmp_path), topic="orders", minPartitions=0)
    with pytest.raises(ScanOptionError, match=r"kafka\.isolation\.level"):
        stratalog_spark.scan(spark, str(tmp_path), topic="orders", kafka_isolation_level="none")
    with pytest.raises(ScanOptionError, match="there is no such column"):
        stratalog_spark.scan(spark, str(tmp_path), topic="orders", columns=["size"])


def test_a_snapshot_is_read_again_and_again_while_its_files_are_removed(
    spark: Any, tmp_path: Path
) -> None:
    large = [Record(b"k", bytes(300_000), timestamp_ms=START_MS) for _ in range(8)]
    config = {"segment.bytes": "1048576"}
    write_topic(tmp_path, "orders", {0: large}, batch_records=1, config=config)

    with stratalog_spark.snapshot(spark, str(tmp_path), topic="orders") as moment:
        assert moment.offsets == {"orders": {0: (0, 8)}}
        assert moment.holding.is_held, moment.holding.why_not
        before = moment.dataframe()
        with stratalog.open_directory(tmp_path, topics={"orders": config}) as logs:
            logs.log("orders").append([record(8)])
            logs.log("orders").delete_records(7)
            logs.maintain()

        assert before.count() == 8
        assert moment.scan(where="offset < 5", columns=["offset"]).count() == 5
    assert not list(tmp_path.glob(".stratalog-lease-*")), "the lease ends with the block"


def test_a_lease_is_not_asked_for_when_nobody_wants_one(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 3)

    assert load(spark, tmp_path, leaseSeconds="0").count() == 3
    assert not list(tmp_path.glob(".stratalog-lease-*"))
    assert load(spark, tmp_path).count() == 3
    assert len(list(tmp_path.glob(".stratalog-lease-*"))) == 1
