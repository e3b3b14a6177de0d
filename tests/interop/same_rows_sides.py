"""The two ways to the same records: Spark's Kafka connector, which asks a broker, and ours, which
reads its directory. One session runs both.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from same_rows_data import OLD, await_checkpoints, old_log, produce_all
from tools_fetched import spark_connector
from wire import KafkaConnection

from broker_fixture import running_broker

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # A refusal is an answer here: nothing is to be tried again.
    "spark.task.maxFailures": "1",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.noDataProgressEventInterval": "100ms",
}
KAFKA_CONFIGS = {
    "log.index.size.max.bytes": "65536",
    "log.cleaner.backoff.ms": "100",
    # What it writes down is all that another process sees of a running Kafka.
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
}
# Long enough for a loaded machine; a broker that has the record answers at once.
CONNECTOR_OPTIONS = {
    "kafkaConsumer.pollTimeoutMs": "20000",
    "fetchOffset.numRetries": "1",
    "kafka.fetch.max.wait.ms": "20",
}
Rows = dict[tuple[str, int], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a read came to: a schema and the rows of each partition in their order, or a refusal."""

    schema: Any = None
    rows: Rows = field(default_factory=dict)
    task_count: int = 0
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """A format of Spark, and the address that it needs."""

    session: Any
    format: str
    address: Mapping[str, str]
    path: str | None = None

    def read(self, options: Mapping[str, str]) -> Answer:
        """Load and collect; whoever refuses, at whatever moment, has refused."""
        try:
            frame = self.frame(options)
            schema = frame.schema
            table = frame.toArrow()
            task_count = frame.rdd.getNumPartitions()
        except Exception as error:  # noqa: BLE001 - the JVM's come as many types
            return Answer(refusal=said(error))
        return Answer(schema, by_partition(table.to_pylist()), task_count)

    def reader(self, options: Mapping[str, str]) -> Any:
        return self.session.read.format(self.format).options(**{**self.address, **options})

    def frame(self, options: Mapping[str, str]) -> Any:
        reader = self.reader(options)
        return reader.load(self.path) if self.path else reader.load()

    def stream(self, options: Mapping[str, str]) -> Any:
        reader = self.session.readStream.format(self.format).options(**{**self.address, **options})
        return reader.load(self.path) if self.path else reader.load()


def connector(session: Any, bootstrap_server: str) -> Side:
    address = {"kafka.bootstrap.servers": bootstrap_server, **CONNECTOR_OPTIONS}
    return Side(session, "kafka", address)


def files(session: Any, log_dir: Path) -> Side:
    return Side(session, "stratalog", {}, str(log_dir))


def by_partition(rows: list[dict[str, Any]]) -> Rows:
    """In the order of arrival: tasks come in theirs, and each in its own."""
    found: Rows = {}
    for row in rows:
        found.setdefault((row["topic"], row["partition"]), []).append(row)
    return found


def said(error: Exception) -> str:
    """The first lines, and those that name a cause: between them the JVM lists its stack."""
    lines = str(error).splitlines()
    causes = [line for line in lines if line.startswith("Caused by:")]
    return "\n".join([type(error).__name__, *lines[:8], *causes])


@contextmanager
def spark_session(home: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    settings = {**SETTINGS, "spark.jars": ",".join(str(jar) for jar in spark_connector())}
    settings["spark.sql.warehouse.dir"] = str(home / "warehouse")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_LOCAL_DIRS", str(home / "local"))
        patch.chdir(home)
        builder = SparkSession.builder.master("local[2]").appName("same rows")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def filled_kafka(distribution: KafkaDistribution, data_dir: Path) -> Iterator[KafkaBroker]:
    """Apache Kafka with all topics, its checkpoints written, running."""
    broker = KafkaBroker(distribution, data_dir, KAFKA_CONFIGS)
    with broker, broker.connect() as connection:
        connection.create_topic(OLD, {"segment.index.bytes": "65536"})
    # Kafka looks at what is in a log only after it was not closed cleanly.
    (broker.log_dir / ".kafka_cleanshutdown").unlink()
    (broker.partition_dir(OLD) / f"{0:020d}.log").write_bytes(old_log())
    with broker:
        with broker.connect() as connection:
            produce_all(connection, broker.log_dir)
        await_checkpoints(broker.log_dir, broker.bootstrap_server)
        yield broker


@contextmanager
def filled_ours(log_dir: Path) -> Iterator[str]:
    """Our broker with all that a client can have it write; its address."""
    settings = {"auto_create_topics_enable": "false", "log_cleaner_backoff_ms": "100"}
    # Records of fixed, old times are to stay.
    settings["log_retention_ms"] = "-1"
    with running_broker(log_dir, **settings) as broker:
        host, port = broker.bootstrap_server.split(":")
        with KafkaConnection(host, int(port)) as connection:
            produce_all(connection, log_dir, has_transactions=False)
        yield broker.bootstrap_server
