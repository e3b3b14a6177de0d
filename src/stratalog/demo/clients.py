"""The demo's Kafka clients, all of confluent-kafka: a producer, a group of two, and a reader.

They are clients like anybody's: records are Python objects here, one call each.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from stratalog.demo.data import Row
from stratalog.demo.errors import DemoError

ANSWER_SECONDS = 300.0
_QUEUE_FULL_SECONDS = 0.05
_CHUNK = 2_000


def _client(address: str, **settings: Any) -> dict[str, Any]:
    # It says on standard error what it does about a broker that is gone; here that is shown anyway.
    quiet = {"log_level": 0, "error_cb": lambda _error: None}
    return {"bootstrap.servers": address, **quiet, **settings}


# --- administration -------------------------------------------------------------------------------


def create_topics(address: str, topics: Iterable[tuple[str, int, dict[str, str]]]) -> None:
    admin = AdminClient(_client(address))
    wanted = [NewTopic(name, partitions, config=config) for name, partitions, config in topics]
    for made in admin.create_topics(wanted).values():
        made.result(ANSWER_SECONDS)


def alter_topic(address: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(_client(address))
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(ANSWER_SECONDS)


# --- producing ------------------------------------------------------------------------------------


class ShopProducer:
    """Idempotent, so that what is sent again after a broken connection is stored once."""

    def __init__(self, address: str, *, batch_bytes: int) -> None:
        self.failures: list[str] = []
        settings: dict[str, Any] = {
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": batch_bytes,
            "delivery.report.only.error": True,
            "on_delivery": self._failed,
        }
        self._producer = Producer(_client(address, **settings))

    def _failed(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())

    def send(self, topic: str, rows: Iterable[Row]) -> None:
        """Hand over records; some of them may be on their way when this returns."""
        producer = self._producer
        for key, value, timestamp_ms, headers in rows:
            while True:
                try:
                    producer.produce(topic, value, key, timestamp=timestamp_ms, headers=headers)
                    break
                except BufferError:
                    producer.poll(_QUEUE_FULL_SECONDS)
        producer.poll(0)

    @property
    def waiting(self) -> int:
        """Records that are not acknowledged yet."""
        return len(self._producer)

    def finish(self, tell: Callable[[int], None] = lambda _left: None) -> None:
        """Wait until every record is acknowledged."""
        known, deadline = self.waiting, time.monotonic() + ANSWER_SECONDS
        while (left := self._producer.flush(0.1)) and time.monotonic() < deadline:
            if left < known:
                known, deadline = left, time.monotonic() + ANSWER_SECONDS
            tell(left)
        if left or self.failures:
            why = self.failures[0] if self.failures else f"{left} were not acknowledged"
            raise DemoError(f"Records were not delivered: {why}.")


@dataclass
class Acknowledged:
    """Which record was acknowledged at which place, by its number."""

    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def of(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(error.str())
            else:
                self.places[number] = (message.partition() or 0, message.offset() or 0)

        return note


class WitnessProducer:
    """A producer that writes down every acknowledgement; for a few records it may."""

    def __init__(self, address: str, *, batch_bytes: int) -> None:
        self.acknowledged = Acknowledged()
        self.sent = 0
        settings = {"enable.idempotence": True, "linger.ms": 5, "batch.size": batch_bytes}
        # Less than it would wait by itself for a broker that is away.
        settings |= {"reconnect.backoff.max.ms": 200, "queue.buffering.max.messages": 10_000_000}
        self._producer = Producer(_client(address, **settings))

    def send(self, topic: str, rows: Iterable[Row]) -> None:
        """Hand over the next ones; they are numbered from 0 on."""
        for key, value, timestamp_ms, headers in rows:
            note = self.acknowledged.of(self.sent)
            self._producer.produce(
                topic, value, key, timestamp=timestamp_ms, headers=headers, on_delivery=note
            )
            self.sent += 1

    def poll(self) -> int:
        """Hear of acknowledgements; how many there are."""
        self._producer.poll(0.01)
        return len(self.acknowledged.places)


# --- consuming ------------------------------------------------------------------------------------


@dataclass
class Member:
    """What one consumer of a group has read."""

    name: str
    records: Counter[str] = field(default_factory=Counter)
    partitions: set[tuple[str, int]] = field(default_factory=set)
    size_bytes: int = 0
    tombstones: int = 0
    failure: Exception | None = None

    def take(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            topic, value = message.topic() or "", message.value()
            self.records[topic] += 1
            self.partitions.add((topic, message.partition() or 0))
            if value is None:
                self.tombstones += 1
            else:
                self.size_bytes += len(value)


class ReadingGroup:
    """Consumers of one group, a thread each, until they have read ``expected`` records."""

    def __init__(self, address: str, group: str, topics: list[str], expected: int) -> None:
        self.members = [Member(f"consumer {number}") for number in (1, 2)]
        self._address = address
        self._group = group
        self._topics = topics
        self._expected = expected
        self._first_at = math.inf  # when the first records came
        self._is_over = threading.Event()

    @property
    def seconds(self) -> float:
        """Since the first records came."""
        return max(time.monotonic() - self._first_at, 0.001)

    @property
    def read(self) -> int:
        return sum(each.records.total() for each in self.members)

    def run(self, tell: Callable[[int], None]) -> None:
        """Raises what went wrong in a thread. At the end all that was read is committed."""
        threads = [
            threading.Thread(target=self._run, args=(each,), name=each.name, daemon=True)
            for each in self.members
        ]
        for thread in threads:
            thread.start()
        known, deadline = 0, time.monotonic() + ANSWER_SECONDS
        try:
            while self.read < self._expected and any(each.is_alive() for each in threads):
                if self.read > known:
                    known, deadline = self.read, time.monotonic() + ANSWER_SECONDS
                elif time.monotonic() > deadline:
                    raise DemoError(f"The group stopped at {known} of {self._expected} records.")
                threads[0].join(0.05)
                tell(self.read)
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join(ANSWER_SECONDS)
        for each in self.members:
            if each.failure is not None:
                raise DemoError(f"A consumer failed: {each.failure}") from each.failure

    def _run(self, member: Member) -> None:
        settings = {
            "group.id": self._group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        consumer = Consumer(_client(self._address, **settings))
        try:
            # Who takes a partition over goes on behind what was counted here.
            consumer.subscribe(self._topics, on_revoke=lambda each, _places: _commit(each))
            while not self._is_over.is_set():
                messages = consumer.consume(_CHUNK, 0.1)
                if messages:
                    self._first_at = min(self._first_at, time.monotonic())
                member.take(messages)
            _commit(consumer)
        except Exception as error:  # noqa: BLE001 - raised where the scene waits
            member.failure = error
        finally:
            consumer.close()


def _commit(consumer: Consumer) -> None:
    """All that ``consume`` has returned."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._NO_OFFSET:  # nothing since the last time
            raise


@contextmanager
def _reader(address: str, group: str = "demo-reader") -> Iterator[Consumer]:
    settings = {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(_client(address, **settings))
    try:
        yield consumer
    finally:
        with suppress(KafkaException):
            consumer.close()


def watermarks(address: str, topic: str, partitions: int) -> list[tuple[int, int]]:
    """Where each partition begins and ends, as any client learns it."""
    with _reader(address) as consumer:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_SECONDS)
            for number in range(partitions)
        ]


def committed(address: str, group: str, topic: str, partitions: int) -> list[int]:
    with _reader(address, group) as consumer:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [each.offset for each in consumer.committed(asked, timeout=ANSWER_SECONDS)]


def read_from(
    address: str, topic: str, offsets: list[int], tell: Callable[[int], None] = lambda _count: None
) -> Iterator[list[Message]]:
    """Every record of a topic from these offsets on to where it ends, in chunks."""
    with _reader(address) as consumer:
        consumer.assign([TopicPartition(topic, *place) for place in enumerate(offsets)])
        open_partitions, count = set(range(len(offsets))), 0
        deadline = time.monotonic() + ANSWER_SECONDS
        while open_partitions:
            if time.monotonic() > deadline:
                raise DemoError(f"{topic}: no record in {ANSWER_SECONDS:.0f} s, and no end.")
            chunk = []
            for message in consumer.consume(_CHUNK, 0.1):
                error = message.error()
                if error is None:
                    chunk.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                else:
                    raise KafkaException(error)
            if chunk:
                deadline = time.monotonic() + ANSWER_SECONDS
            count += len(chunk)
            tell(count)
            yield chunk
