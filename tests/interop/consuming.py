"""Reading partitions to their end through a broker, with a client that nobody here wrote."""

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

POLL_SECONDS = 60


class Consumed(NamedTuple):
    """One record as a client sees it."""

    offset: int
    timestamp_type: int  # 0 none, 1 CreateTime, 2 LogAppendTime
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def consume(
    bootstrap_server: str, topics: Iterable[str], *, committed_only: bool = False
) -> dict[str, list[Consumed]]:
    """Every record that a client may see in partition 0 of each topic, up to its end."""
    records: dict[str, list[Consumed]] = {topic: [] for topic in topics}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_server,
            "group.id": "interop",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "fetch.wait.max.ms": 20,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in records])
        unfinished = set(records)
        while unfinished:
            message = consumer.poll(POLL_SECONDS)
            assert message is not None, f"{unfinished}: nothing within {POLL_SECONDS} s"
            error = message.error()
            if error is None:
                records[message.topic()].append(_consumed(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.topic())
            else:
                raise AssertionError(f"{message.topic()}: {error}")
        return records
    finally:
        consumer.close()


def _consumed(message) -> Consumed:  # type: ignore[no-untyped-def]
    timestamp_type, timestamp_ms = message.timestamp()
    if not timestamp_type:
        timestamp_ms = -1  # the client says 0, the format has none
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Consumed(
        message.offset(), timestamp_type, timestamp_ms, message.key(), message.value(), headers
    )
