"""Apache Kafka opens a directory that Spark has loaded and compacted, and goes on with it.

It makes the topics and stops; rows are written into its directory with nobody owning it, few that
are appended and many that become segments, and a topic is compacted; it starts again, and its
clients and tools say what is there. One Kafka and one session serve the whole story.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from consuming import consume
from same_rows_sides import spark_session
from tools_fetched import ToolUnavailableError, spark_connector

from stratalog.config.properties import parse_properties
from stratalog.spark.jobs import compact

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark-same-rows")]

PARTITIONS = 3
EARLIER = 20
SMALL, LARGE = 500, 60_000
LARGE_VALUE_BYTES = 1_000
AT_MS = 1_700_000_000_000
# Tails of each length, no key at all, and one of no bytes.
KEYS = [b"", *(b"%d" % number + b"x" * (number % 9) for number in range(300))]


@dataclass
class Story:
    """What was done to the directory of ``broker``, which runs again."""

    broker: KafkaBroker
    spark: Any
    before: dict[str, list[Any]]


@pytest.fixture(scope="module")
def story(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    try:
        spark_connector()
    except ToolUnavailableError as why:
        pytest.skip(str(why))
    home = tmp_path_factory.mktemp("loaded")
    broker = KafkaBroker(kafka, home / "kafka")
    with broker:
        _make_topics(broker)
        _produce_earlier(broker)
        before = consume(broker.bootstrap_server, ["states"])
    with spark_session(home) as session:
        _load(session, broker)
        config = parse_properties((broker.data_dir / "server.properties").read_bytes())
        done = compact(session, broker.log_dir, "states", force=True, config=config)
        assert done.to_json(), done
        with broker:
            yield Story(broker, session, before)


def _make_topics(broker: KafkaBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    small = {"segment.bytes": "1048576"}
    wanted = [
        NewTopic("appended", PARTITIONS, 1),
        NewTopic("adopted", 1, 1, config={"segment.bytes": "16777216"}),
        NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        NewTopic("keyed", 7, 1),
        NewTopic("states", 1, 1, config={"cleanup.policy": "compact", **small}),
    ]
    for future in admin.create_topics(wanted).values():
        future.result(30)


def _produce_earlier(broker: KafkaBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_server, "linger.ms": 5})
    for number in range(EARLIER):
        for topic in ("appended", "adopted", "stamped"):
            producer.produce(topic, b"earlier %d" % number, partition=0, timestamp=AT_MS)
    for number in range(3_000):
        value = None if number % 50 == 0 else b"%d" % number + b"." * 900
        producer.produce("states", value, key=b"k%d" % (number % 40), timestamp=AT_MS + number)
    producer.flush()


def _load(spark: Any, broker: KafkaBroker) -> None:
    numbered = "cast(id as string) value", "cast('a' as binary) key"
    headers = "array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary))) headers"
    at = f"timestamp_millis({AT_MS} + id) timestamp"
    small = spark.range(0, SMALL, 1, 2)
    _write(
        small.selectExpr(*numbered, headers, at, f"cast(id % {PARTITIONS} as int) partition"),
        "appended",
        broker,
    )
    _write(small.selectExpr(*numbered), "stamped", broker)
    wide = f"rpad(cast(id as string), {LARGE_VALUE_BYTES}, '.') value"
    _write(spark.range(0, LARGE, 1, 2).selectExpr(wide, at), "adopted", broker)
    keyed = spark.createDataFrame(
        [(key, str(n)) for n, key in enumerate(KEYS)], "key binary, value string"
    )
    _write(keyed, "keyed", broker)


def _write(rows: Any, topic: str, broker: KafkaBroker) -> None:
    # What a topic does not say itself it has from its broker, whose settings are in its file.
    config = str(broker.data_dir / "server.properties")
    sink = rows.write.format("stratalog").option("topic", topic).option("brokerConfig", config)
    sink.mode("append").save(str(broker.log_dir))


def _ends(story: Story, topic: str, partitions: int = 1) -> list[tuple[int, int]]:
    address = {"bootstrap.servers": story.broker.bootstrap_server, "group.id": "ends"}
    consumer = Consumer(address)
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
            for partition in range(partitions)
        ]
    finally:
        consumer.close()


def test_a_client_of_kafka_reads_what_was_appended(story: Story) -> None:
    found = consume(story.broker.bootstrap_server, ["appended"])["appended"]
    ids = list(range(0, SMALL, PARTITIONS))
    loaded = found[EARLIER:]
    assert [each.offset for each in found] == list(range(EARLIER + len(ids)))
    assert [each.value for each in loaded] == [str(number).encode() for number in ids]
    assert [each.timestamp_ms for each in loaded] == [AT_MS + number for number in ids]
    assert {each.key for each in loaded} == {b"a"}
    assert loaded[1].headers == (("h", b"3"),)
    counts = [len(range(p, SMALL, PARTITIONS)) + (EARLIER if p == 0 else 0) for p in range(3)]
    assert _ends(story, "appended", PARTITIONS) == [(0, count) for count in counts]


def test_a_client_of_kafka_reads_what_became_segments(story: Story) -> None:
    assert len(list(story.broker.partition_dir("adopted").glob("*.log"))) > 2
    found = consume(story.broker.bootstrap_server, ["adopted"])["adopted"]
    assert [each.offset for each in found] == list(range(EARLIER + LARGE))
    numbers = [int(each.value.rstrip(b".")) for each in found[EARLIER:]]
    assert numbers == list(range(LARGE))


def test_a_topic_with_append_times_has_them(story: Story) -> None:
    found = consume(story.broker.bootstrap_server, ["stamped"])["stamped"]
    assert len(found) == EARLIER + SMALL
    assert {each.timestamp_type for each in found} == {2}
    assert min(each.timestamp_ms for each in found) > AT_MS + 86_400_000


def test_keys_are_where_the_java_producer_puts_them(story: Story) -> None:
    """librdkafka's murmur2_random is the Java client's partitioner, written by somebody else."""
    producer = Producer(
        {"bootstrap.servers": story.broker.bootstrap_server, "partitioner": "murmur2_random"}
    )
    wanted: dict[bytes, int] = {}
    for key in KEYS:
        if key:  # librdkafka takes a key of no bytes for none
            producer.produce(
                "keyed",
                b"again",
                key=key,
                on_delivery=lambda _error, sent: wanted.update({sent.key(): sent.partition()}),
            )
    producer.flush()
    rows = (
        story.spark.read.format("kafka")
        .option("kafka.bootstrap.servers", story.broker.bootstrap_server)
        .option("subscribe", "keyed")
        .load()
        .where("value <> cast('again' as binary)")
        .collect()
    )
    assert len(rows) == len(KEYS)
    found = {bytes(row.key): row.partition for row in rows}
    assert {key: found[key] for key in wanted} == wanted
    assert found[b""] == (275646681 & 0x7FFFFFFF) % 7


def test_kafka_reads_the_survivors_of_a_compaction(story: Story) -> None:
    before, found = story.before["states"], consume(story.broker.bootstrap_server, ["states"])
    newest = {each.key: each for each in before}
    kept = found["states"]
    assert len(kept) < len(before)
    assert {each.key: each for each in kept} == newest
    assert set(kept) <= set(before)


def test_dump_log_finds_nothing_wrong_with_what_was_loaded(story: Story) -> None:
    files: list[Path] = []
    for topic in ("appended", "adopted", "stamped"):
        names = sorted(story.broker.partition_dir(topic).glob("*.log"))
        files += names
        # The tool stumbles over the zeros behind the entries of a segment that is appended to.
        files += [
            name.with_suffix(each) for name in names[:-1] for each in (".index", ".timeindex")
        ]
    run = story.broker.distribution.dump_log(files, "--deep-iteration")
    assert run.exit_code == 0, run.stderr
    told = run.stdout + run.stderr
    # "-1 is followed by" is how it begins each segment but the first.
    wrong = r"isvalid: false|mismatch|corrupt|^ +[0-9]+ is followed by"
    assert not re.search(wrong, told, re.IGNORECASE | re.MULTILINE)


def test_producing_goes_on_behind_it(story: Story) -> None:
    producer = Producer({"bootstrap.servers": story.broker.bootstrap_server})
    placed: list[int] = []
    for topic in ("adopted", "states"):
        end = _ends(story, topic)[0][1]
        producer.produce(
            topic, b"later", key=b"later", on_delivery=lambda _e, sent: placed.append(sent.offset())
        )
        producer.flush()
        assert placed[-1] == end
