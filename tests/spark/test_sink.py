"""A DataFrame written to a log directory: all of its rows, in order, or none and a clear error."""

import datetime

import pytest
from pyspark.errors import PySparkException
from sink_topics import create_topics, left_behind, make_topics, rows_in, values_in

import stratalog
from broker_fixture import running_broker
from stratalog.records.partitioner import partition_of

pytestmark = pytest.mark.xdist_group("spark")

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def log_dir(tmp_path):
    make_topics(tmp_path / "logs", {"orders": 3, "payments": 1})
    return tmp_path / "logs"


def write(rows, log_dir, **options):
    (
        rows.write.format("stratalog")
        .options(**{"topic": "orders", **options})
        .mode("append")
        .save(str(log_dir))
    )


def numbered(spark, count, partitions=3):
    return spark.range(0, count, 1, partitions).selectExpr(
        "cast(id as string) as key", "concat('v', id) as value"
    )


def test_rows_go_where_their_keys_belong_in_the_order_of_spark(spark, log_dir):
    write(numbered(spark, 1000), log_dir, compression="zstd")

    rows = rows_in(log_dir, "orders")
    for partition in range(3):
        found = [row for row in rows if row["partition"] == partition]
        expected = [n for n in range(1000) if partition_of(str(n).encode(), 3) == partition]
        assert [row["key"] for row in found] == [str(n).encode() for n in expected]
        assert [row["value"] for row in found] == [f"v{n}".encode() for n in expected]
        assert [row["offset"] for row in found] == list(range(len(expected)))
    assert left_behind(log_dir) == []


def test_all_columns_are_written(spark, log_dir):
    rows = spark.sql(
        "select 'payments' as topic, cast('k' as binary) as key, null as value, 0 as partition, "
        "timestamp_millis(1700000000123) as timestamp, "
        "array(named_struct('key', 'h', 'value', cast('x' as binary)), "
        "named_struct('key', 'none', 'value', cast(null as binary))) as headers, 7 as ignored"
    ).selectExpr("* except (value)", "cast(value as binary) as value")

    rows.write.format("stratalog").mode("append").save(str(log_dir))

    (row,) = rows_in(log_dir, "payments")
    assert (row["partition"], row["key"], row["value"]) == (0, b"k", None)
    assert row["timestamp"] == EPOCH + datetime.timedelta(milliseconds=1700000000123)
    assert row["headers"] == [{"key": "h", "value": b"x"}, {"key": "none", "value": None}]


def test_what_was_read_can_be_written_again(spark, log_dir, tmp_path):
    write(numbered(spark, 100), log_dir)
    make_topics(tmp_path / "copy", {"orders": 3})

    loaded = (
        spark.read.format("stratalog")
        .option("subscribe", "orders")
        .option("includeHeaders", "true")
        .load(str(log_dir))
    )
    loaded.write.format("stratalog").mode("append").save(str(tmp_path / "copy"))

    assert values_in(tmp_path / "copy", "orders") == values_in(log_dir, "orders")


def test_writes_follow_each_other(spark, log_dir):
    for text in ("a", "b", "c"):
        rows = spark.sql(f"select '{text}' as value")
        rows.write.format("stratalog").mode("append").option("topic", "payments").save(str(log_dir))

    assert values_in(log_dir, "payments") == [b"a", b"b", b"c"]


def test_one_write_may_have_several_topics(spark, log_dir):
    rows = spark.range(0, 60, 1, 2).selectExpr(
        "if(id % 2 = 0, 'orders', 'payments') as topic", "cast(id as string) as value"
    )

    rows.write.format("stratalog").mode("append").save(str(log_dir))

    assert sorted(map(int, values_in(log_dir, "orders"))) == list(range(0, 60, 2))
    assert list(map(int, values_in(log_dir, "payments"))) == list(range(1, 60, 2))


def test_nothing_is_written_of_no_rows(spark, log_dir):
    write(numbered(spark, 0), log_dir)

    assert values_in(log_dir, "orders") == []
    assert left_behind(log_dir) == []


def test_a_version_is_written_once(spark, log_dir):
    for version in (5, 5, 4, 6):
        write(numbered(spark, 10), log_dir, txnAppId="nightly", txnVersion=str(version))
    write(numbered(spark, 10), log_dir, txnAppId="weekly", txnVersion="5")
    write(
        numbered(spark, 10), log_dir, topic="payments", txnAppId="nightly", txnVersion="5"
    )  # of another topic

    assert len(values_in(log_dir, "orders")) == 30
    assert len(values_in(log_dir, "payments")) == 10
    assert left_behind(log_dir) == []


def test_a_broker_takes_the_rows_while_it_serves(spark, tmp_path):
    with running_broker(tmp_path / "logs") as broker:
        create_topics(broker.bootstrap_server, {"orders": 3})

        write(numbered(spark, 1000), tmp_path / "logs")

        assert len(values_in(tmp_path / "logs", "orders")) == 1000
    assert len(set(values_in(tmp_path / "logs", "orders"))) == 1000
    assert left_behind(tmp_path / "logs") == []


def test_nothing_is_ever_overwritten(spark, log_dir):
    rows = numbered(spark, 10)
    with pytest.raises(PySparkException, match="a log is only ever appended to"):
        rows.write.format("stratalog").option("topic", "orders").mode("overwrite").save(
            str(log_dir)
        )
    for mode in ("ignore", "error"):
        with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            rows.write.format("stratalog").option("topic", "orders").mode(mode).save(str(log_dir))

    assert values_in(log_dir, "orders") == []


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            ["if(id = 7, null, 'payments') as topic", "'v' as value"],
            "row 7 of Spark's partition 0, column 'topic': null topic present in the data",
        ),
        (
            ["if(id = 17, 'paiments', 'payments') as topic", "'v' as value"],
            "row 7 of Spark's partition 1, column 'topic': there is no topic 'paiments'",
        ),
        (
            ["'payments' as topic", "if(id = 3, repeat('x', 2000000), 'v') as value"],
            "row 3 of Spark's partition 0, column 'value': the record makes a batch of 2000",
        ),
        (
            ["'payments' as topic", "'v' as value", "if(id = 19, 1, 0) as partition"],
            "row 9 of Spark's partition 1, column 'partition': there is no partition 1",
        ),
        (
            [
                "'payments' as topic",
                "'v' as value",
                "if(id = 13, timestamp_millis(4102444800000), null) as timestamp",
            ],
            "row 3 of Spark's partition 1, column 'timestamp': 4102444800000 ms is outside of",
        ),
    ],
)
def test_a_row_that_cannot_be_written_stops_the_write_and_leaves_nothing(
    spark, log_dir, columns, sentence
):
    rows = spark.range(0, 20, 1, 2).selectExpr(*columns)

    with pytest.raises(PySparkException) as caught:
        rows.write.format("stratalog").mode("append").save(str(log_dir))

    assert sentence in str(caught.value)
    assert values_in(log_dir, "payments") == []
    assert left_behind(log_dir) == []


def test_a_compacted_topic_takes_no_record_without_a_key(spark, tmp_path):
    make_topics(tmp_path, {"table": 2}, {"cleanup.policy": "compact"})

    with pytest.raises(PySparkException, match="compacted"):
        write(spark.sql("select 'v' as value"), tmp_path, topic="table")

    assert values_in(tmp_path, "table") == []


def test_an_unknown_topic_is_told_before_any_task_runs(spark, log_dir):
    with pytest.raises(PySparkException, match="there is no topic 'ordres'"):
        write(numbered(spark, 10), log_dir, topic="ordres")


def test_wrong_columns_are_told_before_any_task_runs(spark, log_dir):
    with pytest.raises(PySparkException, match="Required attribute 'value' not found"):
        write(spark.sql("select 'k' as key"), log_dir)


def test_a_topics_own_timestamps_win(spark, tmp_path):
    # How far a row's own timestamp may be off counts for nothing then.
    config = {"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": "1000"}
    make_topics(tmp_path, {"stamped": 1}, config)
    before = datetime.datetime.now(datetime.UTC)

    write(
        spark.sql("select 'v' as value, timestamp_millis(5) as timestamp"),
        tmp_path,
        topic="stamped",
    )

    (row,) = rows_in(tmp_path, "stamped")
    assert row["timestamp"] >= before - datetime.timedelta(seconds=1)


def test_the_log_is_sound_afterwards(spark, log_dir):
    write(numbered(spark, 5000), log_dir, batchBytes="4k")

    with stratalog.open_directory(log_dir) as logs:
        assert logs.check() == []
