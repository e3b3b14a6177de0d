"""Where a batch begins and ends, what it has lost, and how it is cut into tasks."""

import json
from pathlib import Path
from typing import Any

import pytest
from batch_loads import all_places, load, places
from topics import START_MS, record, write_topic

import stratalog
from stratalog.records import Record

pytestmark = pytest.mark.xdist_group("spark")


def by_partition(*numbers: int) -> str:
    return json.dumps({"orders": {str(each): number for each, number in enumerate(numbers)}})


def offsets(frame: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for _, partition, offset in places(frame):
        found.setdefault(partition, []).append(offset)
    return found


def test_offsets_are_given_for_each_partition(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 6)

    found = load(
        spark, tmp_path, startingOffsets=by_partition(2, -2), endingOffsets=by_partition(-1, 3)
    )

    assert offsets(found) == {0: [2, 3, 4, 5], 1: [0, 1, 2]}


def test_times_are_given_for_all_or_for_each_partition(spark: Any, tmp_path: Path) -> None:
    # Partition 0 has the seconds 0 to 5, partition 1 the seconds 6 to 11.
    write_topic(tmp_path, "orders", 2, 6)
    at = [START_MS + second * 1000 for second in range(13)]

    assert offsets(load(spark, tmp_path, startingTimestamp=str(at[3] - 1))) == {
        0: [3, 4, 5],
        1: [0, 1, 2, 3, 4, 5],
    }
    assert offsets(load(spark, tmp_path, endingTimestamp=str(at[8]))) == {
        0: [0, 1, 2, 3, 4, 5],
        1: [0, 1],
    }
    for_each = load(
        spark,
        tmp_path,
        startingOffsetsByTimestamp=by_partition(at[5], at[7]),
        endingOffsetsByTimestamp=by_partition(at[12], at[9]),
        startingOffsets="earliest",
    )
    assert offsets(for_each) == {0: [5], 1: [1, 2]}


def test_a_start_after_every_record_is_an_error_or_the_end(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 6)
    late = str(START_MS + 8000)

    with pytest.raises(Exception, match="orders-0 has no record of that time"):
        load(spark, tmp_path, startingTimestamp=late).count()
    allowed = load(
        spark, tmp_path, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest"
    )
    assert offsets(allowed) == {1: [2, 3, 4, 5]}


def test_offsets_name_every_partition_and_no_other(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 1)

    with pytest.raises(Exception, match="it lacks orders-1"):
        load(spark, tmp_path, startingOffsets=by_partition(0)).count()
    with pytest.raises(Exception, match="names orders-2"):
        load(spark, tmp_path, endingOffsets=by_partition(0, 0, 0)).count()


def test_what_is_lost_is_told_to_the_offset_or_passed_over(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 10)
    with stratalog.open_directory(tmp_path, topics={"orders": {}}) as logs:
        logs.log("orders").delete_records(4)

    asked = {"startingOffsets": by_partition(1), "endingOffsets": by_partition(12)}
    with pytest.raises(Exception, match=r"orders-0 has lost the offsets 1 to 3 \(3 of them\)"):
        load(spark, tmp_path, **asked).count()
    with pytest.raises(Exception, match=r"offsets 10 to 11 \(2 of them\): the log ends at 10"):
        load(spark, tmp_path, endingOffsets=by_partition(12)).count()
    passed_over = load(spark, tmp_path, failOnDataLoss="false", **asked)
    assert offsets(passed_over) == {0: [4, 5, 6, 7, 8, 9]}


def test_segments_gone_after_the_load_are_lost_to_the_offset(spark: Any, tmp_path: Path) -> None:
    large = [Record(b"k", bytes(300_000), timestamp_ms=START_MS) for _ in range(8)]
    config = {"segment.bytes": "1048576"}
    write_topic(tmp_path, "orders", {0: large}, batch_records=1, config=config)
    first, second = sorted((tmp_path / "orders-0").glob("*.log"))[:2]
    strict, lenient = load(spark, tmp_path), load(spark, tmp_path, failOnDataLoss="false")
    first.unlink()

    kept_from = int(second.stem)
    with pytest.raises(Exception, match=f"orders-0 has lost the offsets 0 to {kept_from - 1} "):
        strict.count()
    assert offsets(lenient) == {0: list(range(kept_from, 8))}


def test_tasks_are_as_small_as_asked_for(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 60, batch_records=5)

    def tasks(**options: str) -> int:
        found = load(spark, tmp_path, **options)
        assert places(found) == all_places("orders", 2, 60)
        return int(found.rdd.getNumPartitions())

    assert tasks(minPartitions="6") >= 6
    assert tasks(maxRecordsPerPartition="20") >= 6
    assert tasks(maxBytesPerPartition="500") >= 6


def test_a_key_is_looked_for_where_its_producer_put_it(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", {0: [record(number) for number in range(14)]})

    rows = load(spark, tmp_path, key="k3").collect()

    assert sorted(row.offset for row in rows) == [3, 10]
    assert {bytes(row.key) for row in rows} == {b"k3"}


def test_holes_are_rows_of_their_own_shape(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 10)
    with stratalog.open_directory(tmp_path, topics={"orders": {}}) as logs:
        logs.log("orders").delete_records(4)

    found = load(spark, tmp_path, gaps="true", startingOffsets=by_partition(1))

    assert found.columns == ["topic", "partition", "startOffset", "endOffset", "reason"]
    assert [tuple(row) for row in found.collect()] == [("orders", 0, 1, 4, "expired")]
    some = load(
        spark,
        tmp_path,
        "reason string, endOffset long",
        gaps="true",
        startingOffsets=by_partition(1),
    )
    assert [tuple(row) for row in some.collect()] == [("expired", 4)]
