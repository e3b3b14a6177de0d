"""A DataFrame written over the wire: produced through librdkafka, at least once."""

import datetime
import pickle
import socket
from contextlib import contextmanager
from time import monotonic

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from sink_topics import create_topics, rows_in

from broker_fixture import running_broker
from lossy_proxy import METADATA, LossyProxy
from spark_fixture import spark_warnings_aside
from stratalog.records.partitioner import partition_of
from stratalog.scans.errors import ScanOptionError
from stratalog.spark.sink_errors import SinkError, SinkRowError
from stratalog.spark.sink_options import SinkOptions
from stratalog.spark.sink_plan import TaskPlace
from stratalog.spark.wire_sink import WirePlan, plan_wire, produce_rows

pytestmark = pytest.mark.xdist_group("spark")

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", HEADERS),
    ]
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    log_dir = tmp_path_factory.mktemp("logs")
    with running_broker(log_dir, auto_create_topics_enable="false") as running:
        create_topics(running.bootstrap_server, {"orders": 3, "payments": 2, "streamed": 2})
        running.log_dir = log_dir
        yield running


@pytest.fixture
def topic(broker, request):
    name = f"t{abs(hash(request.node.name))}"
    create_topics(broker.bootstrap_server, {name: 3})
    return name


def settings_for(broker, **more):
    options = {"kafka.bootstrap.servers": broker.bootstrap_server, "topic": "orders", **more}
    schema = StructType([StructField("value", BinaryType())])
    return plan_wire(SinkOptions.parse(options, is_streaming=False), schema).settings


def produce(broker, rows, *, columns, topic=None, **more):
    plan = WirePlan(topic=topic, columns=columns, settings=settings_for(broker, **more))
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    return produce_rows(iter([batch]), plan, TaskPlace(task=3, attempt=0))


def test_rows_of_a_frame_are_produced_where_kafkas_clients_would_put_them(spark, broker):
    rows = spark.range(0, 1000, 1, 2).selectExpr(
        "cast(id as string) as key", "concat('v', id) as value"
    )

    (
        rows.write.format("stratalog")
        .option("kafka.bootstrap.servers", broker.bootstrap_server)
        .option("topic", "orders")
        .option("compression", "lz4")
        .mode("append")
        .save()
    )

    found = rows_in(broker.log_dir, "orders")
    assert sorted(int(row["key"]) for row in found) == list(range(1000))
    for row in found:
        assert row["partition"] == partition_of(row["key"], 3)
        assert row["value"] == b"v" + row["key"]


def test_a_stream_is_produced(spark, broker, tmp_path):
    spark.range(0, 20, 1, 1).write.parquet(str(tmp_path / "source"))
    query = (
        spark.readStream.schema("id long")
        .parquet(str(tmp_path / "source"))
        .selectExpr("cast(id as string) as value")
        .writeStream.format("stratalog")
        .option("kafka.bootstrap.servers", broker.bootstrap_server)
        .option("topic", "streamed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with spark_warnings_aside():
        query.awaitTermination()

    assert sorted(int(row["value"]) for row in rows_in(broker.log_dir, "streamed")) == list(
        range(20)
    )


@pytest.mark.parametrize("has_headers", [True, False])
def test_every_column_is_produced_and_null_is_not_empty(broker, topic, has_headers):
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)
    rows = [
        {"key": b"k", "value": None, "partition": 2, "timestamp": when, "headers": None},
        {"key": b"", "value": b"", "partition": 2, "timestamp": when, "headers": []},
        {
            "key": None,
            "value": b"\x00v",
            "partition": 2,
            "timestamp": when,
            "headers": [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
        },
    ]
    columns = ("key", "value", "partition", "timestamp", *(["headers"] if has_headers else []))

    told = produce(broker, rows, columns=columns, topic=topic)

    found = rows_in(broker.log_dir, topic)
    assert told.row_count == 3
    assert [(row["key"], row["value"], row["partition"]) for row in found] == [
        (row["key"], row["value"], 2) for row in rows
    ]
    assert {row["timestamp"] for row in found} == {when}
    assert [row["headers"] or None for row in found] == [
        (row["headers"] if has_headers else None) or None for row in rows
    ]


def test_many_rows_at_once_keep_nulls_and_order(broker, topic):
    rows = [{"key": b"k", "value": (None, b"", b"v%d" % n)[n % 3]} for n in range(30)]

    produce(broker, [*rows, {"key": b"", "value": b"e"}], columns=("key", "value"), topic=topic)

    found = rows_in(broker.log_dir, topic)
    assert [row["value"] for row in found if row["key"] == b"k"] == [row["value"] for row in rows]
    (empty,) = [row for row in found if row["key"] == b""]
    assert empty["partition"] == partition_of(b"", 3)


def test_rows_of_several_topics_are_produced(broker):
    rows = [{"topic": ("orders", "payments")[n % 2], "value": b"both"} for n in range(10)]

    produce(broker, rows, columns=("topic", "value"))

    for name in ("orders", "payments"):
        found = [row for row in rows_in(broker.log_dir, name) if row["value"] == b"both"]
        assert len(found) == 5


@pytest.mark.parametrize("columns", [("value", "partition"), ("key", "value")])
def test_more_rows_than_may_wait_keep_their_order(broker, topic, monkeypatch, columns):
    monkeypatch.setattr("stratalog.spark.wire_sink.ROWS_AT_ONCE", 100)
    monkeypatch.setattr("stratalog.spark.wire_sink.WAITING_ROWS_MAX", 250)
    monkeypatch.setattr("stratalog.spark.wire_sink.WAITING_BYTES_MAX", 20_000)
    rows = [{"key": b"k", "value": str(n).encode() * 20, "partition": 1} for n in range(5000)]

    produce(broker, rows, columns=columns, topic=topic)

    assert [row["value"] for row in rows_in(broker.log_dir, topic)] == [
        row["value"] for row in rows
    ]


@pytest.mark.parametrize(
    ("given", "largest"),
    [
        ({"batchBytes": "2k"}, 2 << 10),
        ({"batchBytes": "1g", "kafka.batch.size": "4096"}, 4 << 10),
    ],
)
def test_batches_are_as_large_as_they_were_asked_for(broker, topic, given, largest):
    rows = [{"value": b"v" * 50} for _ in range(1000)]

    produce(broker, rows, columns=("value",), topic=topic, **given)

    logs = (path.read_bytes() for path in broker.log_dir.glob(f"{topic}-*/*.log"))
    assert largest / 2 < max(size for log in logs for size in batch_sizes(log)) <= largest


def batch_sizes(log):
    position = 0
    while position < len(log):
        size = 12 + int.from_bytes(log[position + 8 : position + 12])
        yield size
        position += size


def test_a_null_topic_is_refused_by_row(broker):
    with pytest.raises(SinkRowError, match="row 1 of Spark's partition 3, column 'topic'"):
        produce(broker, [{"topic": "orders"}, {"topic": None}], columns=("topic", "value"))


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("partition", -1),  # to librdkafka: none was named
        ("timestamp", datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)),
        ("timestamp", datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)),  # to it: now
        ("headers", [{"key": "h", "value": b"x"}, None]),
        ("headers", [{"key": None, "value": b"x"}]),
    ],
)
def test_what_the_producer_would_take_for_something_else_is_refused_by_row(
    broker, topic, column, wrong
):
    right = {"partition": 0, "headers": [{"key": "", "value": None}]}
    rows = [{"value": b"v", **right}, {"value": b"v"}, {"value": b"v", **right, column: wrong}]

    with pytest.raises(SinkRowError, match=f"row 2 of Spark's partition 3, column '{column}'"):
        produce(broker, rows, columns=("value", "partition", "timestamp", "headers"), topic=topic)

    assert rows_in(broker.log_dir, topic) == []


def test_what_a_broker_does_not_take_fails_the_task(broker):
    with pytest.raises(SinkError, match="nowhere"):
        produce(
            broker,
            [{"value": b"v"}],
            columns=("value",),
            topic="nowhere",
            **{"kafka.message.timeout.ms": "2000", "kafka.topic.metadata.propagation.max.ms": "10"},
        )


@pytest.mark.parametrize("columns", [("value",), ("value", "headers")])
def test_a_record_that_is_too_large_is_refused_by_row(broker, topic, columns):
    with pytest.raises(SinkRowError, match="row 1 of Spark's partition 3: the producer refuses it"):
        produce(
            broker, [{"value": b"v"}, {"value": b"v" * 2_000_000}], columns=columns, topic=topic
        )


def test_an_unknown_partition_is_refused_by_row(broker, topic):
    def rows():
        yield pa.RecordBatch.from_pylist([{"value": b"v", "partition": 2}], schema=SCHEMA)
        # By then librdkafka knows which partitions there are.
        until = monotonic() + 60
        while not rows_in(broker.log_dir, topic):
            assert monotonic() < until
        yield pa.RecordBatch.from_pylist([{"value": b"v", "partition": 7}], schema=SCHEMA)

    plan = WirePlan(topic=topic, columns=("value", "partition"), settings=settings_for(broker))
    with pytest.raises(SinkRowError, match="row 1 of Spark's partition 3, column 'partition'"):
        produce_rows(rows(), plan, TaskPlace(task=3, attempt=0))


def test_rows_before_a_refused_one_are_not_said_to_be_unwritten(broker, topic):
    rows = [{"topic": topic, "value": b"v"}, {"topic": None, "value": b"v"}]

    with pytest.raises(
        SinkRowError, match=r"row 1 .* Rows before it may have been written"
    ) as told:
        produce(broker, rows, columns=("topic", "value"))

    assert "Nothing was written" not in str(told.value)
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


def test_an_unknown_topic_over_the_wire_is_told_before_any_task_runs_and_is_not_made(tmp_path):
    at_once = {"kafka.topic.metadata.propagation.max.ms": "10"}
    with running_broker(tmp_path) as broker:
        with pytest.raises(SinkError, match="there is no topic 'ordres' at 127"):
            settings_for(broker, topic="ordres", **at_once)
        with pytest.raises(SinkError, match="Unknown topic"):
            produce_rows(
                iter([pa.RecordBatch.from_pylist([{"topic": "ordres"}], schema=SCHEMA)]),
                WirePlan(
                    topic=None,
                    columns=("topic", "value"),
                    settings={
                        **plan_by_column(broker).settings,
                        "topic.metadata.propagation.max.ms": "10",
                    },
                ),
                TaskPlace(task=0, attempt=0),
            )

    assert list(tmp_path.glob("ordres*")) == []


def plan_by_column(broker):
    schema = StructType([StructField(name, StringType()) for name in ("topic", "value")])
    options = {"kafka.bootstrap.servers": broker.bootstrap_server}
    return plan_wire(SinkOptions.parse(options, is_streaming=False), schema)


@pytest.mark.parametrize("topic", ["orders", None])
def test_a_broker_that_is_not_there_is_told_with_its_address_before_any_task_runs(topic):
    with free_port() as port:
        servers = f"127.0.0.1:{port}"
        options = {"kafka.bootstrap.servers": servers, "kafka.message.timeout.ms": "300"}
        schema = StructType([StructField(name, StringType()) for name in ("topic", "value")])
        told = SinkOptions.parse(
            options if topic is None else {**options, "topic": topic}, is_streaming=False
        )

        with pytest.raises(SinkError, match=rf"no broker of {servers} has answered in 0\.3 s"):
            plan_wire(told, schema)


@pytest.mark.parametrize(
    ("security", "reason"),
    [
        ({"kafka.security.protocol": "SSL"}, "SSL_HANDSHAKE"),
        (
            {
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.username": "nobody",
                "kafka.sasl.password": "s3cret",
            },
            "SASL PLAIN mechanism handshake failed",
        ),
    ],
)
def test_settings_of_security_that_are_wrong_are_not_told_as_a_wrong_address(
    broker, security, reason
):
    with pytest.raises(SinkError, match=reason) as told:
        settings_for(broker, **{"kafka.message.timeout.ms": "1000"}, **security)

    assert "kafka.security.protocol" in str(told.value)
    assert "s3cret" not in str(told.value)


def test_connections_that_are_lost_while_brokers_are_asked_are_made_again(broker):
    with LossyProxy() as proxy:
        proxy.target = broker.bootstrap_server
        proxy.lose_next(30, METADATA)

        settings_for(broker, **{"kafka.bootstrap.servers": f"127.0.0.1:{proxy.port}"})

    assert proxy.lost == 30


def test_rows_that_waited_in_vain_name_the_servers_and_the_option(broker):
    with free_port() as port:
        settings = {
            **settings_for(broker),
            "bootstrap.servers": f"127.0.0.1:{port}",
            "message.timeout.ms": "300",
        }
        plan = WirePlan(topic="orders", columns=("value",), settings=settings)
        batch = pa.RecordBatch.from_pylist([{"value": b"v"}], schema=SCHEMA)

        with pytest.raises(SinkError, match=r"127\.0\.0\.1:.* kafka\.message\.timeout\.ms"):
            produce_rows(iter([batch]), plan, TaskPlace(task=3, attempt=0))


@contextmanager
def free_port():
    """Where nobody listens, for as long as this lasts."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_a_setting_that_librdkafka_does_not_have_is_told_before_any_task_runs(broker):
    with pytest.raises(ScanOptionError, match=r"linger\.mss"):
        settings_for(broker, **{"kafka.linger.mss": "5"})
