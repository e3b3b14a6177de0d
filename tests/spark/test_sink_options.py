"""Options and columns of the sink: what is taken, and the sentence for what is not."""

import pickle

import pytest

from stratalog.records.compression import Codec
from stratalog.scans.errors import ScanOptionError
from stratalog.spark.sink_columns import check_columns
from stratalog.spark.sink_commit import batch_app
from stratalog.spark.sink_options import SinkOptions


def parse(is_streaming=False, **options):
    named = {name.replace("_", "."): value for name, value in options.items()}
    return SinkOptions.parse({"path": "/logs", **named}, is_streaming=is_streaming)


def schema(text):
    # Without a session there is no parser of Spark's; its JSON will do.
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    kinds = {
        "string": StringType(),
        "binary": BinaryType(),
        "int": IntegerType(),
        "long": LongType(),
        "timestamp": TimestampType(),
        "headers": ArrayType(header),
        "texts": ArrayType(StringType()),
    }
    fields = [each.split() for each in text.split(",")]
    return StructType([StructField(name, kinds[kind]) for name, kind in fields])


def test_names_are_found_in_any_case():
    found = SinkOptions.parse(
        {"PATH": "/logs", "Topic": "orders", "TXNAPPID": "job", "txnversion": "7"},
        is_streaming=False,
    )

    assert (found.path, found.topic, found.app_id, found.app_version) == (
        "/logs",
        "orders",
        "job",
        7,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", (Codec.NONE, None)),
        ("ZSTD", (Codec.ZSTD, None)),
        ("zstd:7", (Codec.ZSTD, 7)),
        ("zstd:-5", (Codec.ZSTD, -5)),
        ("gzip:9", (Codec.GZIP, 9)),
        ("snappy", (Codec.SNAPPY, None)),
        ("lz4", (Codec.LZ4, None)),
    ],
)
def test_a_codec_may_have_a_level(text, expected):
    found = parse(compression=text)

    assert (found.codec, found.level) == expected


def test_the_producers_own_codec_is_obeyed_where_ours_is_not_said():
    assert parse(kafka_compression_type="lz4").codec is Codec.LZ4
    assert parse(kafka_compression_type="lz4", compression="zstd").codec is Codec.ZSTD


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"compression": "brotli"}, "must be one of none, gzip, snappy, lz4, zstd"),
        ({"compression": "gzip:10"}, "levels of gzip are 1 to 9"),
        ({"compression": "snappy:1"}, "snappy has no levels"),
        ({"compression": "zstd:fast"}, "levels of zstd are"),
        ({"batchBytes": "12"}, "expected 1024 to"),
        ({"batchBytes": "2g"}, "'2147483648': expected 1024 to 1073741824"),
        ({"topic": "no spaces"}, "no spaces"),
        ({"txnAppId": "job"}, "option 'txnVersion' is '': it is missing"),
        ({"txnVersion": "1"}, "option 'txnAppId' is '': it is missing"),
        ({"txnAppId": "job", "txnVersion": "-1"}, "expected a whole number from 0"),
        ({"txnAppId": " ", "txnVersion": "1"}, "expected a name"),
        ({"compresion": "zstd"}, "is compression meant?"),
        ({"txnAppID_": "job"}, "is txnAppId meant?"),
        ({"stagingSeconds": "1"}, "expected a whole number from 30"),
        ({"kafka.key.serializer": "x"}, "cast the column key"),
        ({"kafka.bootstrap.servers": "localhost:9092"}, "give one of them"),
        ({"path": "hdfs://a/b"}, "only directories of a mounted file system"),
        ({"path": " "}, "name the log directory to write"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(options, sentence):
    with pytest.raises(ScanOptionError) as caught:
        SinkOptions.parse({"path": "/logs", **options}, is_streaming=False)

    assert sentence in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_write_needs_a_directory_or_brokers():
    with pytest.raises(ScanOptionError, match="name the log directory to write"):
        SinkOptions.parse({"topic": "orders"}, is_streaming=False)


def test_brokers_are_written_to_over_the_wire_with_their_producers_settings():
    found = SinkOptions.parse(
        {"kafka.bootstrap.servers": "a:9092,b:9092", "kafka.linger.ms": "5"}, is_streaming=True
    )

    assert not found.is_direct
    assert found.kafka["linger.ms"] == "5"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kafka.transactional.id": "x"}, "at least once, outside of any transaction"),
        ({"kafka.error_cb": "x"}, "an option is a text, and no function"),
        ({"kafka.on_delivery": "x"}, "an option is a text, and no function"),
        ({"kafka.default.topic.config": "x"}, "kafka. options of their own"),
        ({"kafka.acks": "0", "kafka.enable.idempotence": "false"}, "option 'kafka.acks' is '0'"),
        ({"kafka.request.required.acks": " 0"}, "nobody would say that they are"),
        ({"kafka.acks": "00"}, "expected all, -1 or 1"),  # 0 to librdkafka, and so are the next
        ({"kafka.acks": "-0"}, "expected all, -1 or 1"),
        ({"kafka.acks": "+0"}, "expected all, -1 or 1"),
        ({"kafka.request.required.acks": "0x0"}, "expected all, -1 or 1"),
        ({"kafka.compression.codec": "gzip"}, "give it as compression"),
        ({"compression": "zstd:22"}, "levels over the wire are 0 to 12"),
        ({"kafka.compression.type": "zstd:-5"}, "levels over the wire are 0 to 12"),
        ({"stagingSeconds": "900"}, "option 'stagingSeconds' is '900': it is for a log directory"),
        ({"commitseconds": "600"}, "option 'commitSeconds' is '600': it is for a log directory"),
        (
            {"brokerConfig": "/etc/x"},
            "option 'brokerConfig' is '/etc/x': it is for a log directory",
        ),
    ],
)
def test_what_would_fail_late_or_lose_rows_over_the_wire_is_refused(options, sentence):
    with pytest.raises(ScanOptionError) as caught:
        SinkOptions.parse({"kafka.bootstrap.servers": "a:9092", **options}, is_streaming=False)

    assert sentence in str(caught.value)


@pytest.mark.parametrize("acks", ["all", "-1", "1", "ALL"])
def test_acknowledgements_that_tell_of_lost_rows_are_taken(acks):
    found = SinkOptions.parse(
        {"kafka.bootstrap.servers": "a:9092", "kafka.acks": acks}, is_streaming=False
    )

    assert found.kafka["acks"] == acks


def test_a_batch_may_have_a_gibibyte():
    assert parse(batchBytes="1g").batch_bytes == 1 << 30


def test_an_address_that_is_a_path_is_a_directory():
    found = SinkOptions.parse({"kafka.bootstrap.servers": "/var/logs"}, is_streaming=True)

    assert found.is_direct
    assert found.path == "/var/logs"


def test_versions_are_for_batch_writes_of_a_directory():
    with pytest.raises(ScanOptionError, match="foreachBatch"):
        parse(is_streaming=True, txnAppId="job", txnVersion="1")
    with pytest.raises(ScanOptionError, match="at least once"):
        SinkOptions.parse(
            {"kafka.bootstrap.servers": "a:9092", "txnAppId": "job", "txnVersion": "1"},
            is_streaming=False,
        )


def test_an_applications_version_is_of_its_writes_to_one_topic():
    told = {"txnAppId": "job", "txnVersion": "3"}

    assert batch_app(parse()) is None
    assert batch_app(parse(**told)).name == "job"
    assert batch_app(parse(**told, topic="orders")) != batch_app(parse(**told, topic="payments"))
    assert batch_app(parse(**told, topic="orders")).name == "job/orders"
    assert len(batch_app(parse(**told, topic="t" * 249)).name) <= 200


def test_no_two_of_application_and_topic_share_a_name():
    found = {
        batch_app(
            parse(txnAppId=name, txnVersion="3", **({} if topic is None else {"topic": topic}))
        ).name
        for name in ("a", "a/", "a//", "a/b", "a//b", "a/b/b", "a%2Fb")
        for topic in (None, "a", "b", "a.b")
    }

    assert len(found) == 7 * 4


@pytest.mark.parametrize(
    ("columns", "topic", "used"),
    [
        ("value string", "orders", ("value",)),
        ("value binary,key binary,topic string", None, ("value", "key", "topic")),
        ("topic string,value binary", "orders", ("value",)),
        (
            "key string,value binary,headers headers,partition int,timestamp timestamp,offset long",
            "orders",
            ("key", "value", "headers", "partition", "timestamp"),
        ),
    ],
)
def test_columns_are_known_by_name_and_others_are_ignored(columns, topic, used):
    assert check_columns(schema(columns), topic) == used


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ("key string", "orders", "Required attribute 'value' not found"),
        ("value string", None, "topic option required when no 'topic' attribute is present"),
        ("value long", "orders", "value attribute type must be a string or binary"),
        ("value string,key int", "orders", "key attribute type must be a string or binary"),
        ("value string,topic binary", None, "topic attribute type must be a string"),
        ("value string,partition long", "orders", "partition attribute type must be a int"),
        ("value string,timestamp long", "orders", "timestamp attribute type must be a timestamp"),
        ("value string,headers texts", "orders", "headers attribute type must be a array<struct"),
        ("value string,value string", "orders", "a column is named twice"),
    ],
)
def test_columns_of_other_types_are_refused(columns, topic, sentence):
    with pytest.raises(ScanOptionError) as caught:
        check_columns(schema(columns), topic)

    assert sentence in str(caught.value)
