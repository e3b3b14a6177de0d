"""Spark's own Kafka connector, writing to our broker and reading from it.

One Spark session on two local threads serves all tests: to start it takes longer than they do.
The connector writes with a Java producer and plans with a Java Admin, both of an older release than
the pinned one.
"""

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tools_brokers import ours
from tools_fetched import ToolUnavailableError, spark_connector

pytestmark = pytest.mark.interop

START_MS = 1_700_000_000_000
ROWS = 1000
PARTITIONS = 3
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


class Spark(NamedTuple):
    """A session, and the broker that it is to talk to."""

    session: Any
    bootstrap_server: str

    def create(self, topic: str, partitions: int = PARTITIONS) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_server})
        for future in admin.create_topics([NewTopic(topic, partitions)]).values():
            future.result(30)

    def write(self, frame: Any, topic: str) -> None:
        options = {"kafka.bootstrap.servers": self.bootstrap_server, "topic": topic}
        frame.write.format("kafka").options(**options, includeHeaders="true").save()

    def options(self, topic: str, **more: str) -> dict[str, str]:
        named = {"kafka.bootstrap.servers": self.bootstrap_server, "subscribe": topic}
        return {**named, "includeHeaders": "true", **more}

    def read(self, topic: str, **more: str) -> list[Any]:
        frame = self.session.read.format("kafka").options(**self.options(topic, **more)).load()
        return list(frame.orderBy("partition", "offset").collect())


def unavailable() -> str | None:
    """Why Spark does not run here."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install -e '.[spark]'"
    if shutil.which("java") is None:
        return "no java on the PATH"
    return None


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    if reason := unavailable():
        pytest.skip(reason)
    try:
        jars = spark_connector()
    except ToolUnavailableError as error:
        pytest.skip(f"Spark's Kafka connector cannot be had here: {error}")
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_LOCAL_DIRS", str(home / "local"))
        patch.chdir(home)
        builder = SparkSession.builder.master("local[2]").appName("interop")
        settings = {**SETTINGS, "spark.jars": ",".join(str(jar) for jar in jars)}
        settings["spark.sql.warehouse.dir"] = str(home / "warehouse")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            with ours(home / "log") as address:
                yield Spark(session, address)
        finally:
            session.stop()


def rows(spark: Spark, start: int = 0, end: int = ROWS) -> Any:
    """A row a number: keys that spread, a header of its own, the partition from the number."""
    return spark.session.range(start, end).selectExpr(
        "cast(id as string) as key",
        "concat('value ', id) as value",
        "cast(id % 3 as int) as partition",
        "array(named_struct('key', 'number', 'value', cast(cast(id as string) as binary)))"
        " as headers",
    )


def number(row: Any) -> int:
    return int(bytes(row.key))


def test_a_batch_write_is_read_back_by_a_batch_read(spark: Spark) -> None:
    spark.create("batch")
    before = datetime.now(tz=UTC)
    spark.write(rows(spark), "batch")
    read = spark.read("batch")

    assert sorted(number(row) for row in read) == list(range(ROWS))
    for row in read:
        assert row.topic == "batch"
        assert bytes(row.value) == f"value {number(row)}".encode()
        assert row.partition == number(row) % PARTITIONS
        assert [(each.key, bytes(each.value)) for each in row.headers] == [
            ("number", str(number(row)).encode())
        ]
        assert row.timestampType == 0
        assert row.timestamp.astimezone(UTC) >= before.replace(microsecond=0)
    for partition in range(PARTITIONS):
        offsets = [row.offset for row in read if row.partition == partition]
        assert offsets == list(range(len(offsets)))


def test_offsets_in_json_bound_a_batch_read(spark: Spark) -> None:
    spark.create("bounded")
    spark.write(rows(spark, 0, 300), "bounded")
    starts = json.dumps({"bounded": {"0": 10, "1": -2, "2": 95}})
    ends = json.dumps({"bounded": {"0": 20, "1": 5, "2": -1}})
    read = spark.read("bounded", startingOffsets=starts, endingOffsets=ends)
    found = [(row.partition, row.offset) for row in read]
    assert found == (
        [(0, offset) for offset in range(10, 20)]
        + [(1, offset) for offset in range(5)]
        + [(2, offset) for offset in range(95, 100)]
    )


def test_times_bound_a_batch_read(spark: Spark) -> None:
    from confluent_kafka import Producer

    spark.create("timed", partitions=2)
    producer = Producer({"bootstrap.servers": spark.bootstrap_server, "compression.type": "zstd"})
    for slot in range(100):
        producer.produce("timed", str(slot), partition=slot % 2, timestamp=START_MS + 1000 * slot)
    assert producer.flush(30) == 0

    by_json = json.dumps({"timed": {str(partition): START_MS + 40_000 for partition in (0, 1)}})
    from_time = spark.read("timed", startingOffsetsByTimestamp=by_json)
    between = spark.read(
        "timed",
        startingTimestamp=str(START_MS + 10_500),
        endingTimestamp=str(START_MS + 20_000),
    )

    assert sorted(int(bytes(row.value)) for row in from_time) == list(range(40, 100))
    assert sorted(int(bytes(row.value)) for row in between) == list(range(11, 20))
    assert {row.timestamp.replace(tzinfo=UTC).timestamp() for row in between} == {
        START_MS / 1000 + slot for slot in range(11, 20)
    }


def test_a_large_partition_is_read_by_several_tasks(spark: Spark) -> None:
    spark.create("split", partitions=1)
    spark.write(rows(spark).drop("partition"), "split")
    read = spark.read("split", minPartitions="4")
    assert [row.offset for row in read] == list(range(ROWS))


def test_a_stream_goes_on_from_its_checkpoint(spark: Spark, tmp_path: Path) -> None:
    spark.create("stream")
    spark.create("copied")
    stream = spark.session.readStream.format("kafka").options(
        **spark.options("stream", startingOffsets="earliest", maxOffsetsPerTrigger="400")
    )
    sink = {"kafka.bootstrap.servers": spark.bootstrap_server, "topic": "copied"}
    sink["checkpointLocation"] = str(tmp_path / "checkpoint")

    def run() -> int:
        """Copy all that is there now; the number of rows that it read."""
        frame = stream.load().select("key", "value", "headers")
        query = frame.writeStream.format("kafka").options(**sink).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return sum(progress.numInputRows for progress in query.recentProgress)

    spark.write(rows(spark), "stream")
    first = run()
    spark.write(rows(spark, ROWS, ROWS + 100), "stream")
    second = run()
    third = run()

    assert (first, second, third) == (ROWS, 100, 0)
    copied = spark.read("copied")
    assert sorted(number(row) for row in copied) == list(range(ROWS + 100))
    assert all(bytes(row.value) == f"value {number(row)}".encode() for row in copied)


def test_a_read_that_may_lose_records_starts_where_the_log_does(spark: Spark) -> None:
    from confluent_kafka import TopicPartition

    spark.create("gone", partitions=1)
    spark.write(rows(spark, 0, 100).drop("partition"), "gone")
    admin = AdminClient({"bootstrap.servers": spark.bootstrap_server})
    for future in admin.delete_records([TopicPartition("gone", 0, 60)]).values():
        future.result(30)
    earliest = spark.read("gone")
    asked = json.dumps({"gone": {"0": 10}})
    tolerant = spark.read("gone", startingOffsets=asked, failOnDataLoss="false")

    assert [row.offset for row in earliest] == list(range(60, 100))
    assert [row.offset for row in tolerant] == list(range(60, 100))
