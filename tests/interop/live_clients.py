"""Clients that live on while the broker behind their address is another: producers that lose and
repeat nothing, groups that go on. librdkafka's here; Java's are asked through ``JavaClient``."""

import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

RECONNECTS: dict[str, Any] = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}
PATIENCE_MS = 600_000


class LiveProducer:
    """An idempotent producer of librdkafka: counts up, and remembers what was acknowledged."""

    def __init__(self, bootstrap_server: str, topic: str) -> None:
        self._topic = topic
        self._next = 0
        self.acknowledged: dict[int, int] = {}
        self.failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_server,
                "enable.idempotence": True,
                "message.timeout.ms": PATIENCE_MS,
                "linger.ms": 1,
                "log_level": 0,
                **RECONNECTS,
            }
        )

    def send(self, count: int) -> None:
        """Without waiting for any of them."""
        for number in range(self._next, self._next + count):
            self._producer.produce(
                self._topic,
                str(number),
                partition=0,
                on_delivery=lambda error, at, it=number: self._answered(it, error, at),
            )
        self._next += count

    def settle(self, seconds: float = 60) -> None:
        """Until all that was sent has been answered."""
        left = self._producer.flush(seconds)
        assert left == 0, f"{left} records without an answer; failures: {self.failures[:3]}"

    def _answered(self, number: int, error: KafkaError | None, at: Message) -> None:
        if error is None:
            self.acknowledged[number] = at.offset()
        else:
            self.failures.append(str(error))


class LiveMember:
    """The only member of a group, on a thread of its own: what it has read, by offset."""

    def __init__(self, bootstrap_server: str, group: str, topic: str) -> None:
        self.read: list[int] = []
        self._is_leaving = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_server,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "log_level": 0,
                **RECONNECTS,
            }
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_leaving.set()
        self._thread.join(30)
        self._consumer.close()

    def _run(self) -> None:
        while not self._is_leaving.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read.append(message.offset())


def read_next(
    bootstrap_server: str, group: str, topic: str, count: int, seconds: float
) -> list[int]:
    """The next offsets of a group as a member that comes, commits, and goes reads them."""
    settings = {"bootstrap.servers": bootstrap_server, "group.id": group, "log_level": 0}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False, **RECONNECTS}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    offsets: list[int] = []
    try:
        for _ in range(int(seconds * 20)):
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                offsets.append(message.offset())
            if len(offsets) >= count:
                consumer.commit(asynchronous=False)
                break
    finally:
        consumer.close()
    return offsets


class Transactions:
    """What a transactional producer of librdkafka has committed, aborted and left open. Only Apache
    Kafka coordinates them."""

    ID = "history"

    def __init__(self, bootstrap_server: str, topic: str) -> None:
        self._server, self._topic = bootstrap_server, topic
        self.committed: list[str] = []
        self._open: Producer | None = None

    def live_through(self, turn: int) -> None:
        """One committed, one aborted, one left open: the next turn's first step aborts that."""
        producer = Producer(
            {
                "bootstrap.servers": self._server,
                "transactional.id": self.ID,
                "log_level": 0,
                **RECONNECTS,
            }
        )
        producer.init_transactions(60)
        for kind in ("committed", "aborted", "open"):
            producer.begin_transaction()
            producer.produce(self._topic, f"{kind} {turn}", partition=0)
            producer.flush(30)
            if kind == "committed":
                producer.commit_transaction(30)
                self.committed.append(f"committed {turn}")
            elif kind == "aborted":
                producer.abort_transaction(30)
        self._open = producer

    def forget(self) -> None:
        """Let go of a producer whose transaction nobody will end for it."""
        producer, self._open = self._open, None
        if producer is not None:
            with suppress(KafkaException):
                producer.purge()
