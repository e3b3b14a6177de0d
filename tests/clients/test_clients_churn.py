"""Members that come and go at random while records keep coming: nothing may get lost.

At least once is what a group promises: every record is delivered. What a member has in hand when
the group changes under it comes again, and no more than that: the rest is committed. What a group
has committed at the end is all there is.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
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


@pytest.mark.deep
@pytest.mark.parametrize("start_broker", ["stratalog"], indirect=True, scope="session")
@pytest.mark.parametrize("seed", range(2))
# kafka-python leaves a connection to the garbage collector when it is closed while it connects.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("collect_garbage")
def test_nothing_is_lost_while_members_come_and_go(
    client: Any,
    admin: Any,
    make_topic: Callable[..., str],
    fresh_name: Callable[[], str],
    assignor: str,
    seed: int,
) -> None:
    topic = make_topic(PARTITIONS)
    load = Load(client.producer(is_idempotent=True), topic)
    with Group(client, fresh_name(), topic, assignor=assignor) as group:
        with load.running():
            churn(group, random.Random(seed), CHURN_SECONDS)
        group.wait_received(load.values)
        received = Counter(group.received())
        changes = sum(len(member.assignments_seen) for member in group.members)
        in_hand = max(member.largest_poll for member in group.members)

    assert set(received) == set(load.values)
    assert received.total() - len(received) <= changes * in_hand
    ends = {TopicPartition(topic, p): len(load.values) // PARTITIONS for p in range(PARTITIONS)}
    assert admin.group_offsets(group.group_id) == ends
