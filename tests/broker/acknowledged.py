"""Clients that put a broker under load, and a model of what it has acknowledged to them.

All of them go on by themselves while the broker is away. ``Acknowledged`` is filled from their
threads; who kills the broker waits there for something to have been acknowledged.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

SECONDS = 120
ORDERS, TABLE, NOISE, TRIMMED = "orders", "table", "noise", "trimmed"
PARTITIONS = 3
GROUP = "workers"
_OUTSTANDING = 60
_ADMIN_PAUSE_SECONDS = 0.03
_QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 20,
    "log_level": 0,
}

Place = tuple[str, int]


@dataclass
class Acknowledged:
    """What clients were told. ``in_doubt`` are topics whose last change was not answered."""

    records: dict[Place, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    seen: dict[Place, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    commits: dict[Place, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    deleted_topics: set[str] = field(default_factory=set)
    in_doubt: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failures: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def record(self, message: Message) -> None:
        with self.changed:
            self.records[message.topic(), message.partition()][message.offset()] = message.value()
            self._count("records")

    def saw(self, messages: list[Message]) -> None:
        """What a consumer is given once, it is given always."""
        with self.changed:
            for each in messages:
                place, offset, value = (each.topic(), each.partition()), each.offset(), each.value()
                if self.seen[place].setdefault(offset, value) != value:
                    self.failures.append(f"{place} at {offset} was something else before")
            self._count("seen", len(messages))

    def committed(self, offsets: list[TopicPartition]) -> None:
        with self.changed:
            for each in offsets:
                place = (each.topic, each.partition)
                self.commits[place] = max(self.commits.get(place, 0), each.offset)
            self._count("commits")

    def trimmed(self, partition: int, log_start_offset: int) -> None:
        """Records of TRIMMED were deleted."""
        with self.changed:
            self.starts[partition] = log_start_offset
            self._count("starts")

    def starts_at(self, partition: int, log_start_offset: int) -> None:
        """A partition of TRIMMED was seen to start there."""
        with self.changed:
            if log_start_offset < self.starts.get(partition, 0):
                self.failures.append(f"{TRIMMED}-{partition} starts at {log_start_offset} again")

    def topic(self, name: str, retention_ms: str | None) -> None:
        """``name`` has that retention.ms, or was deleted."""
        with self.changed:
            self.in_doubt.discard(name)
            if retention_ms is None:
                del self.topics[name]
                self.deleted_topics.add(name)
            else:
                self.topics[name] = retention_ms
            self._count("topics")

    def _count(self, what: str, number: int = 1) -> None:
        self.counts[what] += number
        self.changed.notify_all()

    def wait_for_more(self, what: str, number: int) -> None:
        """Until that many more of them have been acknowledged than now."""
        with self.changed:
            wanted = self.counts[what] + number
            self._wait(lambda: self.counts[what] >= wanted, f"{what} {wanted}")

    def wait_until_seen(self) -> None:
        """Until consumers were given everything that was acknowledged to producers of ORDERS."""
        with self.changed:
            acknowledged = {place: set(each) for place, each in self.records.items()}
            self._wait(
                lambda: all(
                    offsets <= self.seen[place].keys()
                    for place, offsets in acknowledged.items()
                    if place[0] == ORDERS
                ),
                "consumers",
            )

    def _wait(self, predicate: Callable[[], bool], what: str) -> None:
        done = self.changed.wait_for(lambda: bool(self.failures) or predicate(), SECONDS)
        assert not self.failures, self.failures
        assert done, f"nothing happens any more: waited for {what} with {dict(self.counts)}"


class Client:
    """A thread that works with one client until it is stopped."""

    def __init__(self, bootstrap_server: str, model: Acknowledged) -> None:
        self.settings: dict[str, Any] = {"bootstrap.servers": bootstrap_server, **_QUICK}
        self.model = model
        self.is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_guarded, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.is_stopping.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"{type(self).__name__} does not end"

    def _run_guarded(self) -> None:
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 - told where somebody looks
            with self.model.changed:
                self.model.failures.append(f"{type(self).__name__}: {error!r}")
                self.model.changed.notify_all()

    def run(self) -> None:
        raise NotImplementedError


class IdempotentProducing(Client):
    """acks=all, in order, each record once: values of a partition are counted up from 0.
    ``key_count`` keys are written over and over again, where there are any."""

    def __init__(
        self, bootstrap_server: str, model: Acknowledged, topic: str, key_count: int = 0
    ) -> None:
        super().__init__(bootstrap_server, model)
        self._topic = topic
        self._key_count = key_count
        self.produced = [0] * PARTITIONS

    def run(self) -> None:
        producer = Producer({**self.settings, "enable.idempotence": True, "linger.ms": 1})
        for number in count():
            if self.is_stopping.is_set():
                break
            partition = number % PARTITIONS
            sequence = self.produced[partition]
            self.produced[partition] += 1
            key = b"%d" % (sequence % self._key_count) if self._key_count else None
            producer.produce(
                self._topic, b"%d:" % sequence + bytes(60), key, partition, self._delivered
            )
            while len(producer) >= _OUTSTANDING and not self.is_stopping.is_set():
                producer.poll(0.05)
        assert producer.flush(SECONDS) == 0, "some records were never acknowledged"

    def _delivered(self, error: Any, message: Message) -> None:
        if error is not None:
            with self.model.changed:
                self.model.failures.append(f"{self._topic}: {error}")
                self.model.changed.notify_all()
        else:
            self.model.record(message)


class CarelessProducing(Client):
    """acks=1, to a topic that retention shortens all the time: nothing is remembered."""

    def run(self) -> None:
        producer = Producer({**self.settings, "acks": 1, "message.timeout.ms": 2000})
        for number in count():
            if self.is_stopping.is_set():
                break
            producer.produce(NOISE, b"%d" % number + bytes(80), partition=number % PARTITIONS)
            while len(producer) >= _OUTSTANDING and not self.is_stopping.is_set():
                producer.poll(0.05)
        producer.purge()
        producer.flush(SECONDS)


class Trimming(Client):
    """Writes records with acks=1 and deletes them; what was deleted must not be seen again."""

    def run(self) -> None:
        producer = Producer({**self.settings, "acks": 1})
        admin, reader = AdminClient(self.settings), Consumer({**self.settings, "group.id": "none"})
        for number in count():
            if self.is_stopping.is_set():
                break
            place = TopicPartition(TRIMMED, number % PARTITIONS)
            with suppress(KafkaException):
                low, high = reader.get_watermark_offsets(place, 3)
                self.model.starts_at(place.partition, low)
                place.offset = high
                future = admin.delete_records([place], request_timeout=3)[place]
                self.model.trimmed(place.partition, future.result(SECONDS).low_watermark)
            producer.produce(TRIMMED, b"%d" % number, partition=(number + 1) % PARTITIONS)
            producer.flush(0.1)
        producer.purge()
        producer.flush(SECONDS)
        reader.close()


class Consuming(Client):
    """A member of the group: reads ORDERS and commits what it has read."""

    def run(self) -> None:
        consumer = Consumer(
            {
                **self.settings,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 50,
                "check.crcs": True,
            }
        )
        consumer.subscribe([ORDERS])
        while not self.is_stopping.is_set():
            messages = consumer.consume(200, 0.05)
            found = [each for each in messages if each.error() is None]
            if not found:
                continue
            self.model.saw(found)
            with suppress(KafkaException):
                offsets = consumer.commit(asynchronous=False)
                self.model.committed([each for each in offsets if each.error is None])
        consumer.close()


class Administrating(Client):
    """Creates topics, changes and deletes them. What is not answered is in doubt."""

    def run(self) -> None:
        self._admin = AdminClient(self.settings)
        for number in count():
            self._create(f"topic-{number}")
            if number >= 2:
                self._alter(f"topic-{number - 2}")
            if number >= 4:
                self._delete(f"topic-{number - 4}")
            if self.is_stopping.wait(_ADMIN_PAUSE_SECONDS):
                break

    def _create(self, name: str) -> None:
        new = NewTopic(name, 2, 1, config={"retention.ms": "100000"})
        self._change(name, "100000", self._admin.create_topics([new], request_timeout=3)[name])

    def _alter(self, name: str) -> None:
        resource = altered(name, "retention.ms", "200000")
        future = self._admin.incremental_alter_configs([resource], request_timeout=3)[resource]
        self._change(name, "200000", future)

    def _delete(self, name: str) -> None:
        self._change(name, None, self._admin.delete_topics([name], request_timeout=3)[name])

    def _change(self, name: str, retention_ms: str | None, future: Any) -> None:
        if name in self.model.in_doubt:
            return
        with self.model.changed:
            self.model.in_doubt.add(name)
        with suppress(KafkaException):
            future.result(SECONDS)
            self.model.topic(name, retention_ms)


def altered(topic: str, name: str, value: str) -> ConfigResource:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
