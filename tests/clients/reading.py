"""Reading with a deadline: what every scenario does with a consumer."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from client_api import DEADLINE_SECONDS, Record, RefusedError, TopicPartition

T = TypeVar("T")


def read(consumer: Any, count: int) -> list[Record]:
    """Poll until ``count`` records have come; fail when they do not, or when more come."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    records: list[Record] = []
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
        records.extend(consumer.poll(0.1))
    assert len(records) == count
    return records


def read_partition(client: Any, partition: TopicPartition, at: int | str, count: int) -> Any:
    """What a consumer of its own reads from one place on."""
    consumer = client.consumer()
    consumer.assign({partition: at})
    return read(consumer, count)


def read_all(client: Any, topic: str, partitions: int, count: int) -> list[Record]:
    """A whole topic, in order of partition and offset."""
    consumer = client.consumer()
    consumer.assign({TopicPartition(topic, index): "beginning" for index in range(partitions)})
    records = read(consumer, count)
    return sorted(records, key=lambda record: (record.partition, record.offset))


def wait_until(question: Callable[[], T], is_answer: Callable[[T], bool]) -> T:
    """Ask until the answer is the one waited for; the last answer tells a failure."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        answer = question()
        if is_answer(answer):
            return answer
        assert time.monotonic() < deadline, f"the answer stayed {answer!r}"
        time.sleep(0.02)


def wait_for_topic(admin: Any, topic: str, partitions: int) -> None:
    """Apache Kafka answers that a topic is created some moments before it tells of it."""

    def count() -> int:
        try:
            told = admin.describe_topic(topic)
        except RefusedError:
            return 0
        return sum(each.leader >= 0 for each in told.values())

    wait_until(count, lambda found: found == partitions)
