"""``stats``: what it says of a topic is what a plain count of its records says."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_commands import spark_command
from topics import START_MS, write_topic

from stratalog.records import Record
from stratalog.spark.jobs import stats
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.stats_tasks import PartitionCounts, try_codecs
from stratalog.storage.layout import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def made_records(seed: int, count: int = 400) -> list[Record]:
    dice = random.Random(seed)
    return [
        Record(
            None if dice.random() < 0.1 else b"k%d" % int(dice.paretovariate(0.8)),
            None if dice.random() < 0.2 else dice.randbytes(dice.randrange(40)),
            timestamp_ms=START_MS + dice.randrange(5 * DAY_MS),
        )
        for _ in range(count)
    ]


PARTITIONS = {number: made_records(number) for number in range(3)}
EVERY = [record for records in PARTITIONS.values() for record in records]


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("counted") / "log"
    config = {"internal.segment.bytes": "4000"}
    write_topic(path, "orders", PARTITIONS, batch_records=20, codec="zstd", config=config)
    write_topic(path, "empty", 1, 0)
    return path


def size_of(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")


# --- against a plain count -----------------------------------------------------------------------


def test_everything_agrees_with_a_plain_count(spark: Any, log_dir: Path) -> None:
    result = stats(spark, log_dir, bucket="hour", hottest=5)

    empty, orders = result.topics
    assert (empty.records, empty.size_bytes, empty.keys.hottest) == (0, 0, ())
    assert orders.records == len(EVERY)
    assert orders.record_bytes == sum(map(size_of, EVERY))
    assert orders.tombstones == sum(r.key is not None and r.value is None for r in EVERY)
    assert orders.no_key == sum(r.key is None for r in EVERY)
    assert orders.size_bytes == sum(log.stat().st_size for log in log_dir.glob("orders-*/*.log"))
    hours = Counter((number, r.timestamp_ms // HOUR_MS * HOUR_MS)
                    for number, records in PARTITIONS.items() for r in records)  # fmt: skip
    assert {(each.partition, each.start_ms): each.records for each in orders.buckets} == hours


def test_keys_are_those_of_a_compaction(spark: Any, log_dir: Path) -> None:
    (orders,) = stats(spark, log_dir, "orders", hottest=5).topics

    counts: Counter[tuple[int, bytes]] = Counter()
    newest: dict[tuple[int, bytes], int] = {}
    for number, records in PARTITIONS.items():
        for record in records:
            if record.key is not None:
                counts[number, record.key] += 1
                newest[number, record.key] = size_of(record)
    keyed = [record for record in EVERY if record.key is not None]
    assert orders.keys.is_exact
    assert orders.keys.distinct == len(counts)
    assert orders.keys.superseded_records == len(keyed) - len(counts)
    assert orders.keys.superseded_bytes == sum(map(size_of, keyed)) - sum(newest.values())
    assert orders.keys.records_a_key_max == max(counts.values())
    assert [each.records for each in orders.keys.hottest] == [
        count for _, count in counts.most_common(5)
    ]
    for each in orders.keys.hottest:
        assert counts[each.partition, each.key] == each.records


@given(
    st.lists(
        st.lists(st.tuples(st.none() | st.binary(max_size=2), st.none() | st.binary(max_size=9))),
        max_size=4,
    )
)
def test_what_a_task_passes_on_adds_up_to_what_it_read(
    batches: list[list[tuple[bytes | None, bytes | None]]],
) -> None:
    counts = PartitionCounts(TopicPartition("t", 0), DAY_MS, 1)
    offset = 0
    for rows in batches:
        keys, values = [key for key, _ in rows], [value for _, value in rows]
        times = pyarrow.array([0] * len(rows), "int64").cast(pyarrow.timestamp("us", "UTC"))
        counts.add(pyarrow.RecordBatch.from_pydict({
            "key": pyarrow.array(keys, "binary"), "value": pyarrow.array(values, "binary"),
            "timestamp": times,
            "offset": pyarrow.array(range(offset, offset + len(rows)), "int64"),
        }))  # fmt: skip
        offset += len(rows)
    passed = [row for batch in counts.take() for row in batch.to_pylist()]

    every = [row for rows in batches for row in rows]
    assert sum(row["records"] for row in passed if row["kind"] == "bucket") == len(every)
    expected = Counter(key for key, _ in every if key is not None)
    found = {row["key"]: row["records"] for row in passed if row["kind"] == "key"}
    assert found == expected


def test_a_sample_by_key_estimates_the_whole(
    spark: Any, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = stats(spark, log_dir, "orders").topics[0].keys
    monkeypatch.setattr("stratalog.spark.jobs.statistics._SAMPLED_RECORDS", 200)
    monkeypatch.setattr("stratalog.spark.jobs.statistics._RECORD_BYTES", 50)

    (sampled,) = stats(spark, log_dir, "orders").topics

    assert not sampled.keys.is_exact
    assert 0.3 * whole.distinct < sampled.keys.distinct < 3 * whole.distinct
    # A key that is among the hottest is found by counting, and not by luck.
    assert sampled.keys.hottest[:3] == whole.hottest[:3]
    exact = stats(spark, log_dir, "orders", exact=True).topics[0].keys
    assert exact == whole


def test_codecs_are_compared_by_what_they_make_of_the_records() -> None:
    rows = pyarrow.RecordBatch.from_pydict(
        {"key": pyarrow.array([b"k"] * 500), "value": pyarrow.array([b"the same " * 9] * 500)}
    )

    sizes = {row["label"]: row["value_bytes"] for row in try_codecs(rows, 1 << 20).to_pylist()}

    assert set(sizes) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert max(sizes, key=lambda name: sizes[name]) == "none"
    assert sizes["zstd"] < sizes["none"] / 10


# --- what could be saved -------------------------------------------------------------------------


def test_retention_is_planned_by_configs_that_are_tried(spark: Any, log_dir: Path) -> None:
    now_ms = START_MS + 6 * DAY_MS
    logs = list(log_dir.glob("orders-*/*.log"))

    def removed(**configs: str) -> int:
        proposed = {name.replace("_", "."): value for name, value in configs.items()}
        (orders,) = stats(spark, log_dir, "orders", proposed=proposed, now_ms=now_ms).topics
        assert orders.proposed is not None
        assert orders.retention is None, "nobody knows the configs of this directory"
        return orders.proposed.size_bytes

    assert removed(retention_ms=str(30 * DAY_MS)) == 0
    assert removed(retention_ms="1") == sum(log.stat().st_size for log in logs)
    assert 0 < removed(retention_ms="-1", retention_bytes="5000") < removed(retention_ms="1")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"bucket": "year"}, "expected minute, hour, day"),
        ({"hottest": 0}, "at least 1"),
        ({"proposed": {"segment.ms": "1"}}, "expected cleanup.policy"),
        ({"proposed": {"retention.ms": "soon"}}, "retention.ms"),
    ],
)
def test_what_nobody_can_act_on_is_refused(
    spark: Any, log_dir: Path, how: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JobOptionError, match=sentence):
        stats(spark, log_dir, "orders", **how)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.sampled_from([60_000, DAY_MS]))
def test_a_record_is_counted_where_its_time_is_before_and_after_1970(
    times_us: list[int], width_ms: int
) -> None:
    counts = PartitionCounts(TopicPartition("t", 0), width_ms, 1)
    times = pyarrow.array(times_us, "int64").cast(pyarrow.timestamp("us", "UTC"))
    counts.add(pyarrow.RecordBatch.from_pydict({
        "key": pyarrow.array([None] * len(times_us), "binary"),
        "value": pyarrow.array([None] * len(times_us), "binary"),
        "timestamp": times,
        "offset": pyarrow.array(range(len(times_us)), "int64"),
    }))  # fmt: skip

    passed = [row for batch in counts.take() for row in batch.to_pylist()]

    expected = Counter(each // (width_ms * 1000) for each in times_us)
    assert {row["bucket"]: row["records"] for row in passed} == expected


# --- shown ---------------------------------------------------------------------------------------


def test_rates_are_a_dataframe(spark: Any, log_dir: Path) -> None:
    rates = stats(spark, log_dir, "orders").rates()

    assert rates.selectExpr("sum(records)").first()[0] == len(EVERY)
    assert str(rates.selectExpr("min(start)").first()[0]).startswith("2023-11-14 00:00:00")


def test_a_time_that_no_calendar_has_is_told_in_milliseconds(spark: Any, tmp_path: Path) -> None:
    far_ms = START_MS * 1000 // DAY_MS * DAY_MS  # microseconds by mistake
    times = [START_MS, START_MS * 1000, -1]
    records = [Record(b"k", b"v", timestamp_ms=each) for each in times]
    config = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    write_topic(tmp_path / "log", "orders", {0: records}, config=config)

    done = spark_command("stats", "--log-dir", tmp_path / "log", "--topic", "orders")
    rows = stats(spark, tmp_path / "log", "orders").rates().collect()

    assert done.exit_code == 0, done.stderr
    assert [line[0] for line in done.table[-3:]] == [
        "1969-12-31T00:00+00:00", "2023-11-14T00:00+00:00", str(far_ms),
    ]  # fmt: skip
    assert [(row.start is None, row.start_ms) for row in rows] == [
        (False, -DAY_MS), (False, START_MS // DAY_MS * DAY_MS), (True, far_ms),
    ]  # fmt: skip


def test_the_command_shows_a_topic_whole(spark: Any, log_dir: Path) -> None:
    arguments = ("stats", "--log-dir", log_dir, "--topic", "orders", "--propose", "retention.ms=1")

    done = spark_command(*arguments)
    told = spark_command(*arguments, "-o", "json").json["topics"][0]

    assert done.exit_code == 0, done.stderr
    assert done.table[1][:4] == ["orders", "3", str(told["size_bytes"]), str(len(EVERY))]
    assert "hottest keys" in done.stdout
    assert "would remove" in done.stdout
    assert sum(each["records"] for each in told["rates"]) == len(EVERY)
    assert told["proposed_retention"]["removes_bytes"] == told["size_bytes"]
