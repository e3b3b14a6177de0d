"""A broker whose log changes under a reader, at the very moment that a test says.

Files that leave a log are unlinked at once (``file.delete.delay.ms=0``): nothing but a lease keeps
them for a reader.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from broker_fixture import RunningBroker, running_broker
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log

TOPIC = "orders"
PARTITIONS = 2
RECORDS = 60
START_MS = 1_700_000_000_000
WAIT_SECONDS = 120

_TOPIC_CONFIG = {
    "internal.segment.bytes": "2000",
    "index.interval.bytes": "200",
    "retention.ms": "-1",
    "file.delete.delay.ms": "0",
    "min.cleanable.dirty.ratio": "0",
}


class RacingBroker:
    """``orders`` with two partitions of sixty records each in several segments."""

    def __init__(self, running: RunningBroker, log_dir: Path) -> None:
        self.running = running
        self.log_dir = log_dir
        self._logs = running.broker.services.logs
        self._client = {"bootstrap.servers": running.bootstrap_server, "log_level": 0}
        self._admin = AdminClient(self._client)

    def make_topic(self) -> None:
        topic = NewTopic(TOPIC, PARTITIONS, 1, config=_TOPIC_CONFIG)
        self._admin.create_topics([topic])[TOPIC].result(WAIT_SECONDS)
        self.produce(RECORDS)

    def produce(self, records: int, prefix: str = "v") -> None:
        """Batches of five, in every partition; ten keys, each written again and again."""
        producer = Producer({**self._client, "linger.ms": 0})
        for first in range(0, records, 5):
            for partition in range(PARTITIONS):
                for number in range(first, first + 5):
                    producer.produce(
                        TOPIC,
                        key=f"k{number % 10}",
                        value=f"{prefix}{number}".encode() * 20,
                        partition=partition,
                        timestamp=START_MS + number,
                    )
            assert producer.flush(WAIT_SECONDS) == 0

    # --- what happens to the log ----------------------------------------------------------------

    def roll(self) -> None:
        before = self._count_segments()
        self.produce(RECORDS)
        assert self._count_segments() > before

    def retain(self) -> None:
        """All but the active segment goes, by age."""
        self._alter("retention.ms", "1000")
        self._on_logs(lambda log: self._logs.check_retention(log, self._logs.clock.now_ms()))
        self._on_logs(lambda log: self._expect(log.log_start_offset > 0))
        self.unlink()

    def delete_records(self) -> None:
        self._on_logs(lambda log: log.delete_records(RECORDS // 2))
        self._on_logs(lambda log: self._logs.check_retention(log, self._logs.clock.now_ms()))
        self.unlink()

    def compact(self) -> None:
        before = self._size_bytes()
        self._alter("cleanup.policy", "compact")
        self.roll()
        deadline = time.monotonic() + WAIT_SECONDS
        while self._size_bytes() > before and time.monotonic() < deadline:
            self.running.call(self._logs.run_due)
            time.sleep(0.02)  # the cleaner works on a thread of its own
        assert self._size_bytes() <= before, "nothing was compacted"
        self.unlink()

    def truncate(self) -> None:
        """Cut off the second half, as a follower does that has more than its leader."""
        for partition in range(PARTITIONS):
            key = TopicPartition(TOPIC, partition)
            self.running.call(self._logs.truncate_to, key, RECORDS // 2)
        self.unlink()

    def delete_topic(self) -> None:
        self._admin.delete_topics([TOPIC])[TOPIC].result(WAIT_SECONDS)
        self.unlink()

    def unlink(self) -> None:
        """Let go of all files that nobody keeps."""
        self.running.call(self._logs.delete_due, self._logs.clock.now_ms())
        self.running.call(self._logs._janitor.finish)

    # --- looking ----------------------------------------------------------------------------------

    def log(self, partition: int) -> Log:
        return self._logs.get(TopicPartition(TOPIC, partition))

    def _count_segments(self) -> int:
        return sum(self._on_logs(lambda log: len(log.segments)))

    def _size_bytes(self) -> int:
        return sum(self._on_logs(lambda log: log.size_bytes))

    def _on_logs(self, action: Callable[[Log], Any]) -> list[Any]:
        return [self.running.call(action, self.log(partition)) for partition in range(PARTITIONS)]

    def _expect(self, is_so: bool) -> None:
        assert is_so

    def _alter(self, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)


@contextmanager
def racing_broker(log_dir: Path, **settings: Any) -> Iterator[RacingBroker]:
    chosen = {
        "log_cleaner_backoff_ms": "20",
        "log_initial_task_delay_ms": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        **settings,
    }
    with running_broker(log_dir, **chosen) as running:
        broker = RacingBroker(running, log_dir)
        broker.make_topic()
        yield broker
