"""Load on a topic, and members of a group that come and go at random beside it."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from client_api import Record, TopicPartition
from group_members import Group, Member

PARTITIONS = 6
MEMBERS_MOST = 5
BATCH = 30
CHURN_SECONDS = 10.0


class Load:
    """A thread that produces numbered records until it is stopped."""

    def __init__(self, producer: Any, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.values: list[bytes] = []
        self.failure: BaseException | None = None

    def _run(self) -> None:
        try:
            while not self._is_stopping.wait(0.02):
                first = len(self.values)
                batch = [b"%07d" % number for number in range(first, first + BATCH)]
                records = [Record(v, partition=n % PARTITIONS) for n, v in enumerate(batch)]
                self._producer.send(self._topic, records)
                self.values.extend(batch)
        except BaseException as error:  # noqa: BLE001 - told to the test in its own thread
            self.failure = error

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._is_stopping.set()
            self._thread.join()
        if self.failure is not None:
            raise self.failure


def churn(group: Group, choose: random.Random, seconds: float) -> None:
    """Let members join and leave, one or two at once, with pauses of any length between."""
    ends = time.monotonic() + seconds
    present: list[Member] = [group.join()]
    pause = threading.Event()
    while time.monotonic() < ends:
        for _ in range(choose.choice([1, 1, 2])):
            if len(present) > 1 and (len(present) == MEMBERS_MOST or choose.random() < 0.5):
                present.pop(choose.randrange(len(present))).stop()
            else:
                present.append(group.join())
        pause.wait(choose.choice([0.0, 0.05, 0.3, 1.0]))
        group.check()
    group.wait_shared(present, PARTITIONS)


def check_nothing_lost(group: Group, values: list[bytes], committed: dict[Any, int]) -> None:
    """Every record has come; what was in hand when the group changed has come again, no more."""
    received = group.received()
    changes = sum(len(member.assignments_seen) for member in group.members)
    in_hand = max(member.largest_poll for member in group.members)

    assert set(received) == set(values)
    assert len(received) - len(values) <= changes * in_hand
    assert committed == {
        TopicPartition(group.topics[0], index): len(values) // PARTITIONS
        for index in range(PARTITIONS)
    }
