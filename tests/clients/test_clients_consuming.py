"""Where each client library starts to read, and what it is told of the ends of a partition."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from client_api import Record, TopicPartition
from reading import read, read_partition, wait_until

COUNT = 100
START_MS = int(time.time() * 1_000) - 3_600_000
STEP_MS = 1_000


@pytest.fixture
def filled(client: Any, partition: TopicPartition) -> TopicPartition:
    """A partition with a record a second."""
    records = [
        Record(b"%d" % number, timestamp_ms=START_MS + number * STEP_MS, partition=0)
        for number in range(COUNT)
    ]
    producer = client.producer()
    for start in range(0, COUNT, 20):  # batches, so that some lookups end inside one
        producer.send(partition.topic, records[start : start + 20])
    return partition


@pytest.mark.parametrize("offset", [0, 1, 50, 99])
def test_reading_starts_at_an_offset(client: Any, filled: TopicPartition, offset: int) -> None:
    received = read_partition(client, filled, offset, COUNT - offset)

    assert [each.offset for each in received] == list(range(offset, COUNT))
    assert received[0].value == b"%d" % offset


def test_reading_from_the_end_sees_only_what_comes_later(
    client: Any, filled: TopicPartition
) -> None:
    consumer = client.consumer()
    producer = client.producer()
    consumer.assign({filled: "end"})

    # The end is where it is when the library looks, which is at some moment from now on.
    def send_and_poll() -> list[Record]:
        producer.send(filled.topic, [Record(b"later", partition=0)])
        return consumer.poll(0.1)

    received = wait_until(send_and_poll, bool)
    assert {each.value for each in received} == {b"later"}
    assert received[0].offset is not None
    assert received[0].offset >= COUNT


def test_seeking_reads_again(client: Any, filled: TopicPartition) -> None:
    consumer = client.consumer()
    consumer.assign({filled: "beginning"})
    read(consumer, COUNT)

    consumer.seek(filled, 90)

    assert [each.offset for each in read(consumer, 10)] == list(range(90, COUNT))


def test_a_timestamp_is_looked_up_to_the_first_record_at_or_after_it(
    client: Any, filled: TopicPartition
) -> None:
    consumer = client.consumer()

    def look_up(timestamp_ms: int) -> int | None:
        return consumer.offsets_for_times({filled: timestamp_ms})[filled]

    assert look_up(0) == 0
    assert look_up(START_MS + 30 * STEP_MS) == 30
    assert look_up(START_MS + 30 * STEP_MS + 1) == 31
    assert look_up(START_MS + (COUNT - 1) * STEP_MS) == COUNT - 1
    assert look_up(START_MS + COUNT * STEP_MS) is None


def test_the_ends_of_a_partition_are_told(client: Any, filled: TopicPartition) -> None:
    assert client.consumer().bounds(filled) == (0, COUNT)


def test_an_offset_out_of_range_starts_where_the_reset_policy_says(
    client: Any, filled: TopicPartition
) -> None:
    consumer = client.consumer(reset="earliest")
    consumer.assign({filled: 5_000})

    assert read(consumer, COUNT)[0].offset == 0


def test_a_waiting_consumer_gets_a_record_when_it_is_produced(
    client: Any, partition: TopicPartition
) -> None:
    consumer, producer = client.consumer(), client.producer()
    consumer.assign({partition: "beginning"})
    assert consumer.poll(0.1) == []

    for number in range(5):
        producer.send(partition.topic, [Record(b"%d" % number, partition=0)])
        (received,) = read(consumer, 1)
        assert received.offset == number


def test_many_partitions_are_read_by_one_consumer(
    client: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(12)
    sent = [Record(b"%d" % number, partition=number % 12) for number in range(240)]
    client.producer().send(topic, sent)

    consumer = client.consumer()
    consumer.assign({TopicPartition(topic, index): "beginning" for index in range(12)})
    received = read(consumer, 240)

    assert sorted((each.partition, each.offset) for each in received) == [
        (partition, offset) for partition in range(12) for offset in range(20)
    ]


@pytest.mark.needs("offset of the largest timestamp")
def test_the_offset_of_the_largest_timestamp_is_told(
    client: Any, admin: Any, partition: TopicPartition
) -> None:
    stamps = [START_MS + 5, START_MS + 9, START_MS + 7]
    client.producer().send(
        partition.topic, [Record(b"v", timestamp_ms=stamp, partition=0) for stamp in stamps]
    )

    assert admin.max_timestamp_offset(partition) == 1


def test_committed_offsets_are_kept_for_a_consumer_without_members(
    client: Any, filled: TopicPartition, fresh_name: Callable[[], str]
) -> None:
    group = fresh_name()
    consumer = client.consumer(group)
    consumer.assign({filled: "beginning"})
    assert consumer.committed([filled]) == {filled: None}

    consumer.commit({filled: 42})
    assert client.consumer(group).committed([filled]) == {filled: 42}
    consumer.commit({filled: 17})

    assert client.consumer(group).committed([filled]) == {filled: 17}


def test_a_consumer_goes_on_where_its_group_committed(
    client: Any, filled: TopicPartition, fresh_name: Callable[[], str]
) -> None:
    group = fresh_name()
    first = client.unkept_consumer(group)
    first.subscribe([filled.topic])
    read(first, COUNT)
    first.commit({filled: 60})
    first.close()

    second = client.consumer(group)
    second.subscribe([filled.topic])

    assert [each.offset for each in read(second, 40)] == list(range(60, COUNT))


def test_the_positions_are_committed_when_no_offsets_are_named(
    client: Any, filled: TopicPartition, fresh_name: Callable[[], str]
) -> None:
    group = fresh_name()
    consumer = client.consumer(group)
    consumer.subscribe([filled.topic])
    read(consumer, COUNT)

    consumer.commit()

    assert (
        wait_until(
            lambda: client.consumer(group).committed([filled])[filled], lambda it: it is not None
        )
        == COUNT
    )


def test_a_group_with_automatic_commits_goes_on_where_it_was_closed(
    client: Any, filled: TopicPartition, fresh_name: Callable[[], str]
) -> None:
    group = fresh_name()
    first = client.unkept_consumer(group, is_committing=True)
    first.subscribe([filled.topic])
    read(first, COUNT)
    first.poll(0.1)
    first.close()
    client.producer().send(filled.topic, [Record(b"later", partition=0)])

    second = client.consumer(group, is_committing=True)
    second.subscribe([filled.topic])

    assert [each.offset for each in read(second, 1)] == [COUNT]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_both_isolation_levels_see_what_no_transaction_wrote(
    client: Any, filled: TopicPartition, isolation: str
) -> None:
    consumer = client.consumer(isolation=isolation)
    consumer.assign({filled: "beginning"})

    assert len(read(consumer, COUNT)) == COUNT
    assert consumer.bounds(filled) == (0, COUNT)
    client.producer().send(filled.topic, [Record(b"later", partition=0)])
    assert [each.offset for each in read(consumer, 1)] == [COUNT]


def test_a_consumer_that_changes_its_partitions_reads_the_ones_it_has(
    client: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(6)
    partitions = [TopicPartition(topic, index) for index in range(6)]
    producer, consumer = client.producer(), client.consumer()
    ends = dict.fromkeys(range(6), 0)

    # A fetch session holds what was asked before: leave some out, take them back, add others.
    for chosen in ([0, 1, 2], [1], [1, 4, 5], [0, 1, 2, 3, 4, 5], [3]):
        consumer.assign({partitions[index]: ends[index] for index in chosen})
        producer.send(topic, [Record(b"%d" % index, partition=index) for index in chosen])
        received = read(consumer, len(chosen))
        assert sorted((each.partition, each.offset) for each in received) == [
            (index, ends[index]) for index in chosen
        ]
        for index in chosen:
            ends[index] += 1
