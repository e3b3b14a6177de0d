"""What each client library produces is what each reads back, whatever codec and acks it uses."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from brokers import BrokerPlace
from client_api import CODECS, DEADLINE_SECONDS, Record, RefusedError, TopicPartition
from reading import read_all, read_partition

MESSAGE_TOO_LARGE = 10
INVALID_RECORD = 87
UNKNOWN = -1

# Ends at which a length changes its form on the wire, and values that say nothing at all.
SHAPES = (
    Record(b"value", b"key", (("header", b"one"), ("header", b"two"), ("empty", b""))),
    Record(None, b"tombstone"),
    Record(b"", b""),
    Record(b"no key"),
    Record(b"\x00\xff" * 4_000, b"k" * 200, (("h" * 100, b"v" * 300),)),
)


def without_place(records: list[Record]) -> list[Record]:
    return [Record(each.value, each.key, each.headers, each.timestamp_ms) for each in records]


def stored_codecs(log_dir: Path, partition: TopicPartition) -> set[str]:
    """The codecs that the headers of the stored batches name."""
    segment = log_dir / f"{partition.topic}-{partition.partition}" / f"{0:020}.log"
    stored, codecs, at = segment.read_bytes(), set(), 0
    while at < len(stored):
        codecs.add(CODECS[stored[at + 22] & 7])
        at += 12 + int.from_bytes(stored[at + 8 : at + 12], "big")
    return codecs


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent(
    client: Any, broker: BrokerPlace, partition: TopicPartition, codec: str
) -> None:
    start_ms = int(time.time() * 1_000) - 60_000
    sent = [
        Record(shape.value, shape.key, shape.headers, start_ms + 7 * index, partition=0)
        for index, shape in enumerate(SHAPES * 20)
    ]

    delivered = client.producer(codec=codec).send(partition.topic, sent)

    assert [each.offset for each in delivered] == list(range(len(sent)))
    received = read_partition(client, partition, "beginning", len(sent))
    assert [each.offset for each in received] == list(range(len(sent)))
    assert without_place(received) == without_place(sent)
    if broker.log_dir is not None:
        assert stored_codecs(broker.log_dir, partition) == {codec}


@pytest.mark.parametrize("codec", CODECS)
def test_an_idempotent_producer_writes_each_record_once_and_in_order(
    client: Any, make_topic: Callable[..., str], codec: str
) -> None:
    topic = make_topic(3)
    producer = client.producer(is_idempotent=True, codec=codec)
    sent = [Record(b"%06d" % number, partition=number % 3) for number in range(600)]

    for start in range(0, len(sent), 200):
        producer.send(topic, sent[start : start + 200])

    received = read_all(client, topic, 3, len(sent))
    for index in range(3):
        values = [each.value for each in received if each.partition == index]
        assert values == [b"%06d" % number for number in range(index, 600, 3)]


def test_two_idempotent_producers_do_not_disturb_each_other(client: Any, topic: str) -> None:
    first, second = client.producer(is_idempotent=True), client.producer(is_idempotent=True)

    for number in range(5):
        first.send(topic, [Record(b"first %d" % number)])
        second.send(topic, [Record(b"second %d" % number)])

    received = read_all(client, topic, 1, 10)
    assert [each.value for each in received[::2]] == [b"first %d" % n for n in range(5)]
    assert [each.value for each in received[1::2]] == [b"second %d" % n for n in range(5)]


@pytest.mark.parametrize("acks", [1, -1])
def test_what_was_answered_can_be_seen_at_once(
    client: Any, admin: Any, partition: TopicPartition, acks: int
) -> None:
    producer, consumer = client.producer(acks=acks), client.consumer()

    for number in range(1, 21):
        producer.send(partition.topic, [Record(b"v", partition=0)])
        assert consumer.bounds(partition)[1] == number
        assert admin.delete_records({partition: number}) == {partition: number}


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_acks_setting_delivers(client: Any, topic: str, acks: int) -> None:
    sent = [Record(b"%d" % number, partition=0) for number in range(50)]

    client.producer(acks=acks).send(topic, sent)

    assert [each.value for each in read_all(client, topic, 1, 50)] == [each.value for each in sent]


def test_records_with_the_same_key_lie_in_one_partition(
    client: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(4)
    keys = [b"key %d" % (number % 10) for number in range(100)]

    delivered = client.producer().send(topic, [Record(b"v", key) for key in keys])

    places: dict[bytes, set[int]] = {}
    for key, each in zip(keys, delivered, strict=True):
        places.setdefault(key, set()).add(each.partition)
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(set().union(*places.values())) > 1


def test_a_message_as_large_as_the_topic_allows_is_taken_and_a_larger_one_is_refused(
    client: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(max_message_bytes="3000000")
    producer = client.producer(max_request_bytes=4_000_000)
    value = bytes(2_999_900)  # with the headers of record and batch just below

    producer.send(topic, [Record(value, partition=0)])
    with pytest.raises(RefusedError) as refused:
        producer.send(topic, [Record(bytes(3_000_000), partition=0)])

    assert refused.value.code == MESSAGE_TOO_LARGE
    (received,) = read_partition(client, TopicPartition(topic, 0), "beginning", 1)
    assert received.value == value


def test_a_message_above_the_fetch_size_is_still_received(
    client: Any, partition: TopicPartition
) -> None:
    large = bytes(range(256)) * 2_000
    client.producer().send(partition.topic, [Record(large), Record(b"small")])

    consumer = client.consumer(max_partition_bytes=4_096)
    consumer.assign({partition: "beginning"})

    received: list[Record] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(received) < 2:
        assert time.monotonic() < deadline
        received.extend(consumer.poll(0.1))
    assert [each.value for each in received] == [large, b"small"]


def test_a_topic_is_created_when_somebody_produces_to_it(
    client: Any, admin: Any, fresh_name: Callable[[], str]
) -> None:
    topic = fresh_name()

    client.producer().send(topic, [Record(b"first", partition=0)])

    assert topic in admin.topics()
    assert read_all(client, topic, 1, 1)[0].value == b"first"


def test_a_compacted_topic_refuses_a_record_without_a_key(
    client: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(cleanup_policy="compact")
    producer = client.producer()

    with pytest.raises(RefusedError) as refused:
        producer.send(topic, [Record(b"value")])

    is_known = client.name != "aiokafka"  # which has no name for the code
    assert refused.value.code == (INVALID_RECORD if is_known else UNKNOWN)
    producer.send(topic, [Record(b"value", b"key")])
    assert read_all(client, topic, 1, 1)[0].key == b"key"


def test_a_topic_with_log_append_time_stamps_records_itself(
    client: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1_000)

    client.producer().send(topic, [Record(b"value", timestamp_ms=before_ms - 3_600_000)])

    (received,) = read_all(client, topic, 1, 1)
    assert received.timestamp_ms is not None
    assert before_ms <= received.timestamp_ms <= int(time.time() * 1_000)
