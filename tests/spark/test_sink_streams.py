"""A streaming query that writes to a log directory: every batch is one commit, made once."""

import pytest
from pyspark.errors import PySparkException
from sink_topics import create_topics, left_behind, make_topics, values_in

from broker_fixture import running_broker
from spark_fixture import spark_warnings_aside

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def home(tmp_path):
    make_topics(tmp_path / "logs", {"orders": 2, "copies": 1})
    return tmp_path


def numbers(spark, home, batches=3, rows=10):
    """A stream of so many files, one for each batch."""
    source = home / "source"
    for number in range(batches):
        first = number * rows
        spark.range(first, first + rows, 1, 1).write.mode("append").parquet(str(source))
    return (
        spark.readStream.schema("id long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .selectExpr("cast(id as string) as key", "concat('v', id) as value")
    )


def run(stream, home, *, checkpoint="checkpoint", log_dir=None, topic="orders", **options):
    if topic is not None:
        options["topic"] = topic
    query = (
        stream.writeStream.format("stratalog")
        .options(**options)
        .option("checkpointLocation", str(home / checkpoint))
        .trigger(availableNow=True)
        .start(str(log_dir or home / "logs"))
    )
    with spark_warnings_aside():
        query.awaitTermination()
    return query


def expected(rows):
    return sorted(f"v{n}".encode() for n in range(rows))


def test_every_row_is_written_once(spark, home):
    query = run(numbers(spark, home), home)

    assert [each["batchId"] for each in query.recentProgress if each["numInputRows"]] == [0, 1, 2]
    assert sorted(values_in(home / "logs", "orders")) == expected(30)
    assert left_behind(home / "logs") == []


def test_a_batch_that_spark_forgot_is_not_written_again(spark, home):
    stream = numbers(spark, home)
    run(stream, home)
    # As if the driver had died between our commit and Spark's own note of it.
    (home / "checkpoint" / "commits" / "2").unlink()
    (home / "checkpoint" / "commits" / ".2.crc").unlink()

    run(stream, home)

    assert sorted(values_in(home / "logs", "orders")) == expected(30)
    assert left_behind(home / "logs") == []


def test_another_query_writes_its_own_rows(spark, home):
    stream = numbers(spark, home, batches=1)
    run(stream, home)
    run(stream, home, checkpoint="another")

    assert sorted(values_in(home / "logs", "orders")) == sorted(expected(10) * 2)


def test_a_broker_takes_batches_while_it_serves(spark, home):
    with running_broker(home / "served") as broker:
        create_topics(broker.bootstrap_server, {"orders": 2})
        run(numbers(spark, home), home, log_dir=home / "served")

        assert sorted(values_in(home / "served", "orders")) == expected(30)
    assert left_behind(home / "served") == []


def test_a_batch_without_rows_is_nothing_to_commit(spark, home):
    run(numbers(spark, home).where("value = 'v25'"), home)

    assert values_in(home / "logs", "orders") == [b"v25"]


def test_a_log_is_streamed_into_another(spark, home):
    run(numbers(spark, home), home)
    stream = (
        spark.readStream.format("stratalog")
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load(str(home / "logs"))
        .select("key", "value")
    )

    run(stream, home, checkpoint="copying", topic="copies")
    run(stream, home, checkpoint="copying", topic="copies")

    assert sorted(values_in(home / "logs", "copies")) == expected(30)


def test_foreach_batch_with_a_version_writes_every_row_once(spark, home):
    def write(rows, batch_id):
        for topic in ("orders", "copies"):
            (
                rows.write.format("stratalog")
                .option("topic", topic)
                .option("txnAppId", "copier")
                .option("txnVersion", batch_id)
                .mode("append")
                .save(str(home / "logs"))
            )

    stream = numbers(spark, home)
    for forgotten in (2, None):
        query = (
            stream.writeStream.foreachBatch(write)
            .option("checkpointLocation", str(home / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        with spark_warnings_aside():
            query.awaitTermination()
        if forgotten is not None:
            (home / "checkpoint" / "commits" / f"{forgotten}").unlink()
            (home / "checkpoint" / "commits" / f".{forgotten}.crc").unlink()

    assert sorted(values_in(home / "logs", "orders")) == expected(30)
    assert sorted(values_in(home / "logs", "copies")) == expected(30)


def test_a_row_that_cannot_be_written_stops_the_query_and_its_batch(spark, home):
    stream = numbers(spark, home).selectExpr(
        "if(key = '15', null, 'orders') as topic", "key", "value"
    )

    with pytest.raises(PySparkException, match="null topic present in the data"):
        run(stream, home, topic=None)

    assert sorted(values_in(home / "logs", "orders")) == expected(10)
    assert left_behind(home / "logs") == []


def test_a_query_with_wrong_options_does_not_start(spark, home):
    with pytest.raises(PySparkException, match="a streaming query is known by its own id"):
        run(numbers(spark, home, batches=1), home, txnAppId="job", txnVersion="1")
