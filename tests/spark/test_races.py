"""Scans while the log changes: what was loaded is what is returned, whatever happens to the files.

Each change comes at two moments: between ``load()`` and the first action, and between two tasks
of one query.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from racing import PARTITIONS, RECORDS, TOPIC, RacingBroker, racing_broker

import stratalog.spark
from stratalog.clock import SystemClock
from stratalog.testing import ManualClock

pytestmark = pytest.mark.xdist_group("spark")

Rows = Counter[tuple[int, int, bytes]]

CHANGES: dict[str, Callable[[RacingBroker], None]] = {
    "rolling": RacingBroker.roll,
    "retention": RacingBroker.retain,
    "deleted records": RacingBroker.delete_records,
    "compaction": RacingBroker.compact,
    "truncation": RacingBroker.truncate,
    "deletion of the topic": RacingBroker.delete_topic,
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RacingBroker]:
    with racing_broker(tmp_path / "log") as racing:
        yield racing


@pytest.fixture(params=CHANGES, ids=str)
def change(request: pytest.FixtureRequest) -> Callable[[RacingBroker], None]:
    return CHANGES[request.param]


def load(spark: Any, broker: RacingBroker, **options: str) -> Any:
    """A DataFrame of many tasks: one a segment or so."""
    reader = spark.read.format("stratalog").option("subscribe", TOPIC).options(**options)
    return reader.option("maxRecordsPerPartition", "20").load(str(broker.log_dir))


def written() -> Rows:
    """What the broker was given before anything changed."""
    return Counter(
        (partition, number, f"v{number}".encode() * 20)
        for partition in range(PARTITIONS)
        for number in range(RECORDS)
    )


def rows_of(found: Any) -> Rows:
    return Counter((row.partition, row.offset, bytes(row.value)) for row in found)


def test_a_change_between_load_and_the_first_action(
    spark: Any, broker: RacingBroker, change: Callable[[RacingBroker], None]
) -> None:
    frame = load(spark, broker)

    change(broker)

    assert rows_of(frame.collect()) == written()
    assert frame.count() == RECORDS * PARTITIONS


def test_a_change_between_two_tasks(
    spark: Any, broker: RacingBroker, change: Callable[[RacingBroker], None]
) -> None:
    # One job a task: the tasks that follow have not begun when the first rows are here.
    tasks = iter(load(spark, broker).toLocalIterator())
    first = next(tasks)

    change(broker)

    assert rows_of([first, *tasks]) == written()


def test_records_that_took_the_place_of_truncated_ones_are_never_returned(
    spark: Any, broker: RacingBroker
) -> None:
    frame = load(spark, broker)
    broker.truncate()
    broker.produce(RECORDS, prefix="w")  # batches of the same size, at the same places

    assert rows_of(frame.collect()) == written()


def test_a_snapshot_outlives_changes_until_it_is_let_go(spark: Any, broker: RacingBroker) -> None:
    with stratalog.spark.snapshot(spark, str(broker.log_dir), topic=TOPIC) as moment:
        broker.retain()
        broker.roll()
        assert rows_of(moment.dataframe().collect()) == written()
        late = moment.scan(where="offset >= 50", columns=["partition", "offset", "value"])
        assert late.count() == 10 * PARTITIONS
    broker.unlink()

    assert kept_files(broker.log_dir) == []


def test_what_nobody_keeps_is_lost_with_its_exact_range(spark: Any, broker: RacingBroker) -> None:
    frame = load(spark, broker, leaseSeconds="0")
    broker.retain()
    start_offsets = [broker.log(partition).log_start_offset for partition in range(PARTITIONS)]

    with pytest.raises(Exception, match=rf"{TOPIC}-\d has lost the offsets") as failure:
        frame.collect()
    assert f"{TOPIC}-" in str(failure.value)
    left = load(spark, broker, leaseSeconds="0", failOnDataLoss="false")
    assert left.count() == RECORDS * PARTITIONS - sum(start_offsets)


def test_an_abandoned_lease_ends_by_itself(spark: Any, tmp_path: Path) -> None:
    # It begins at the time of day, by which others renew leases, and moves when it is told to.
    clock = ManualClock(SystemClock().now_ms())
    with racing_broker(tmp_path / "log", clock=clock) as broker:
        frame = load(spark, broker, leaseSeconds="300")
        broker.retain()
        assert frame.count() == RECORDS * PARTITIONS
        assert kept_files(broker.log_dir)
        del frame  # nobody tells the broker

        clock.advance(301_000)
        broker.unlink()

        assert kept_files(broker.log_dir) == []


def kept_files(log_dir: Path) -> list[str]:
    """Files that are no part of a log any more, and are kept for somebody."""
    return [str(each) for each in log_dir.glob("*/.stratalog/leased/*")]
