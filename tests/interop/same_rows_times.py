"""Where Kafka finds a time: the first record that is not older, asked of a broker."""

from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from same_rows_sides import Rows

SECONDS = 60


class AskedTime(NamedTuple):
    """A time in a partition."""

    topic: str
    partition: int
    timestamp_ms: int


def times_of(rows: Rows) -> list[AskedTime]:
    """Each time that a record has, and those right before and after."""
    times = {
        AskedTime(topic, partition, round(row["timestamp"].timestamp() * 1_000) + step_ms)
        for (topic, partition), found in rows.items()
        for row in found
        for step_ms in (-1, 0, 1)
    }
    return sorted(asked for asked in times if asked.timestamp_ms >= 0)


def kafkas_times(
    bootstrap_server: str, times: list[AskedTime]
) -> Iterator[tuple[AskedTime, int | None]]:
    """The offset for each; ``None`` where all records are older."""
    settings = {"bootstrap.servers": bootstrap_server, "group.id": "times"}
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
    try:
        for asked in times:
            (found,) = consumer.offsets_for_times([TopicPartition(*asked)], SECONDS)
            assert found.error is None, found.error
            yield asked, found.offset if found.offset >= 0 else None
    finally:
        consumer.close()
