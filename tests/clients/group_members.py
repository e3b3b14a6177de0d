"""Members of a consumer group, each in a thread: poll, keep, commit, over and over.

A member commits what a poll returned before it polls again, so a record comes twice only when the
group changed while somebody had it in hand. Whoever leaves by ``stop`` has committed all it has
received.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from client_api import DEADLINE_SECONDS, Record, RefusedError, TopicPartition

POLL_SECONDS = 0.05
REBALANCED = {22, 25, 27}  # ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS


class Member:
    """One consumer of a group with the thread that polls it."""

    def __init__(self, group: "Group", open_consumer: Callable[[], Any]) -> None:
        self._group = group
        self._open_consumer = open_consumer
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.assignments_seen: list[frozenset[TopicPartition]] = []
        self.received: list[Record] = []
        self.largest_poll = 0
        self.failure: BaseException | None = None

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the group as the library does when it is closed."""
        self._is_stopping.set()
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive(), "the member does not stop"

    def _run(self) -> None:
        try:
            consumer = self._open_consumer()
            try:
                consumer.subscribe(self._group.topics)
                while not self._is_stopping.is_set():
                    self._turn(consumer)
            finally:
                consumer.close()
        except BaseException as error:  # noqa: BLE001 - told to the test in its own thread
            self.failure = error
        with self._group.changed:
            self.assignment = frozenset()
            self._group.changed.notify_all()

    def _turn(self, consumer: Any) -> None:
        records = consumer.poll(POLL_SECONDS)
        self._commit(consumer, records)
        assignment = frozenset(consumer.assignment())
        with self._group.changed:
            if records or assignment != self.assignment:
                self.received.extend(records)
                self.largest_poll = max(self.largest_poll, len(records))
                if assignment != self.assignment:
                    self.assignments_seen.append(assignment)
                self.assignment = assignment
                self._group.changed.notify_all()

    def _commit(self, consumer: Any, records: Sequence[Record]) -> None:
        ends: dict[TopicPartition, int] = {}
        for record in records:
            assert record.partition is not None
            assert record.offset is not None
            ends[TopicPartition(self._group.topics[0], record.partition)] = record.offset + 1
        try:
            if ends:
                consumer.commit(ends)
        except RefusedError as error:
            if error.code > 0 and error.code not in REBALANCED:
                raise


class Group:
    """The members of one group that read one topic."""

    def __init__(self, client: Any, group_id: str, topic: str, **options: Any) -> None:
        self._client = client
        self._options = options
        self.group_id = group_id
        self.topics = [topic]
        self.changed = threading.Condition()
        self.members: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for member in self.members:
            member._is_stopping.set()  # all at once: no rebalance for the sake of the last
        for member in self.members:
            member.stop()
        if exc is None:
            self.check()

    def join(self, **options: Any) -> Member:
        """A new member; it is in the group when its assignment says so."""
        chosen = {**self._options, **options}

        def open_consumer() -> Any:
            return self._client.unkept_consumer(self.group_id, **chosen)

        member = Member(self, open_consumer)
        self.members.append(member)
        return member.start()

    def wait(self, holds: Callable[[], bool], told: Callable[[], object]) -> None:
        """Wait until something holds of the members; ``told`` describes a failure."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        with self.changed:
            while not holds():
                self.check()
                left = deadline - time.monotonic()
                assert left > 0, told()
                self.changed.wait(left)

    def wait_shared(self, members: Sequence[Member], partitions: int) -> None:
        """Wait until these members have all partitions, each exactly one of them, evenly."""
        topic = self.topics[0]
        everything = sorted(TopicPartition(topic, index) for index in range(partitions))
        most = -(-partitions // len(members))

        def is_shared() -> bool:
            held = sorted(each for member in members for each in member.assignment)
            return held == everything and all(len(member.assignment) <= most for member in members)

        self.wait(is_shared, lambda: [sorted(member.assignment) for member in members])

    def wait_received(self, values: Iterable[bytes]) -> None:
        """Wait until somebody has received each of these."""
        wanted = set(values)
        self.wait(lambda: wanted <= self._values(), lambda: sorted(wanted - self._values()))

    def check_received(self, values: list[bytes]) -> None:
        """All that was committed before partitions changed hands has come once."""
        received = self.received()
        assert sorted(set(received)) == values
        # Who has a partition again may be given by librdkafka what it fetched the first time.
        if self._client.name != "confluent-kafka":
            assert received == values

    def received(self) -> list[bytes]:
        """All that came, in any order, as often as it came."""
        return sorted(record.value or b"" for member in self.members for record in member.received)

    def _values(self) -> set[bytes | None]:
        return {record.value for member in self.members for record in member.received}

    def check(self) -> None:
        """Fail if a member has failed."""
        for member in self.members:
            if member.failure is not None:
                raise AssertionError("a member failed") from member.failure
