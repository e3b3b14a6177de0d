"""Reading a topic until there is a reason to stop: the loop behind ``stratalog consume``."""

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratalog.cli.client import (
    REQUEST_SECONDS,
    Connection,
    answer_of,
    client_error,
    told,
)
from stratalog.cli.consume_offsets import Bounds, Range, Start, resolve_end, resolve_start
from stratalog.cli.failures import CommandError
from stratalog.cli.interrupts import interrupts_stay, interrupts_wait
from stratalog.cli.output import write_error

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_BATCH = 500
# How often a signal is looked for.
_POLL_SECONDS = 0.5
_NO_OFFSET = -1

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for. ``is_placed``: it says where to begin, so no group is joined."""

    topic: str | None
    pattern: re.Pattern[str] | None
    partition: int | None
    offsets: Range
    is_placed: bool
    group: str | None
    isolation_level: str
    exits_at_end: bool
    max_messages: int | None
    timeout_ms: int | None
    skips_bad: bool

    @property
    def is_member(self) -> bool:
        return self.group is not None and not self.is_placed

    @property
    def commits(self) -> bool:
        """Who looks at some place does not move the group; who goes on from where it is does."""
        return self.is_member or (self.group is not None and self.offsets.start is Start.STORED)


class Reading:
    """One run: made, ``run``, and then ``count`` is how many records were printed."""

    def __init__(
        self, connection: Connection, wanted: Wanted, render: Callable[[Any], bytes]
    ) -> None:
        self.count = 0
        self._connection = connection
        self._wanted = wanted
        self._render = render
        # Where each partition that is read ends, None if it does not; gone when it was reached.
        self._ends: dict[Place, int | None] = {}
        self._is_assigned = False
        self._is_told_lost = False

    def run(self) -> None:
        consumer = self._connection.consumer(self._settings())
        try:
            with interrupts_stay() as look_up:
                self._begin(consumer)
                self._loop(consumer, look_up)
        except KeyboardInterrupt:
            pass  # how a reading without an end is ended
        finally:
            with told("Leaving"):
                consumer.close()

    def _settings(self) -> dict[str, Any]:
        wanted = self._wanted
        is_first = wanted.offsets.start is not Start.END
        return {
            "client.id": "console-consumer",
            # A name is needed even by who joins no group.
            "group.id": wanted.group or "stratalog-console-consumer",
            "enable.auto.commit": wanted.commits,
            # Only what was printed is committed, not what has been fetched.
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest" if is_first else "latest",
            "isolation.level": wanted.isolation_level,
            "topic.metadata.refresh.interval.ms": 10_000,
            "error_cb": self._lost,
        }

    # --- beginning ----------------------------------------------------------------------------

    def _begin(self, consumer: "Consumer") -> None:
        topics = self._topics(consumer)
        if self._wanted.is_member:
            names = sorted(topics) if self._wanted.pattern is None else self._patterns()
            consumer.subscribe(names, on_assign=self._assigned, on_revoke=self._revoked)
            return
        places = self._places(topics)
        bounds = self._bounds(consumer, places)
        starts = {place: self._start(consumer, place, bounds[place]) for place in places}
        from confluent_kafka import TopicPartition

        for place in places:
            end = resolve_end(self._wanted.offsets, bounds[place], exits=self._wanted.exits_at_end)
            if end is None or starts[place] < end:
                self._ends[place] = end
        self._is_assigned = True
        consumer.assign([TopicPartition(*place, starts[place]) for place in self._ends])

    def _patterns(self) -> list[str]:
        """A caret first is how librdkafka knows a pattern from a name."""
        assert self._wanted.pattern is not None
        return [f"^({self._wanted.pattern.pattern})$"]

    def _topics(self, consumer: "Consumer") -> dict[str, list[int]]:
        wanted = self._wanted
        with told("Asking for topics"):
            # None asks for all of them.
            answer = consumer.list_topics(wanted.topic, timeout=REQUEST_SECONDS)
        found = {
            name: sorted(topic.partitions)
            for name, topic in answer.topics.items()
            if topic.error is None and (wanted.pattern is None or wanted.pattern.fullmatch(name))
        }
        if not found:
            which = wanted.topic or f"that matches {wanted.pattern and wanted.pattern.pattern}"
            raise CommandError(f"There is no topic {which}.")
        return found

    def _places(self, topics: dict[str, list[int]]) -> list[Place]:
        one = self._wanted.partition
        places = [
            (topic, partition)
            for topic, partitions in sorted(topics.items())
            for partition in partitions
            if one is None or partition == one
        ]
        if not places:
            raise CommandError(f"Topic {', '.join(sorted(topics))} has no partition {one}.")
        return places

    def _bounds(self, _consumer: "Consumer", places: list[Place]) -> dict[Place, Bounds]:
        from confluent_kafka.admin import OffsetSpec

        wanted = self._wanted.offsets
        starts = self._offsets(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self._offsets(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        at_start: dict[Place, int] = {}
        at_end: dict[Place, int] = {}
        if wanted.start is Start.TIMESTAMP:
            at_start = self._offsets(places, OffsetSpec.for_timestamp(wanted.value))
        if wanted.end_timestamp_ms is not None:
            at_end = self._offsets(places, OffsetSpec.for_timestamp(wanted.end_timestamp_ms))

        def found(offset: int | None) -> int | None:
            return None if offset == _NO_OFFSET else offset

        return {
            place: Bounds(
                starts[place], ends[place], found(at_start.get(place)), found(at_end.get(place))
            )
            for place in places
        }

    def _offsets(self, places: list[Place], which: Any) -> dict[Place, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel[self._wanted.isolation_level.upper()]
        with told("Asking for offsets"):
            futures = self._admin().list_offsets(
                {TopicPartition(*place): which for place in places},
                isolation_level=level,
                request_timeout=REQUEST_SECONDS,
            )
        return {
            (place.topic, place.partition): answer_of(future, "Asking for offsets").offset
            for place, future in futures.items()
        }

    def _admin(self) -> Any:
        if not hasattr(self, "_admin_client"):
            self._admin_client = self._connection.admin()
        return self._admin_client

    def _start(self, consumer: "Consumer", place: Place, bounds: Bounds) -> int:
        wanted = self._wanted.offsets
        if wanted.start is Start.STORED:
            return self._committed(consumer, place, bounds)
        start = resolve_start(wanted, bounds)
        if wanted.start is Start.OFFSET and not bounds.start <= start <= bounds.end:
            if self._wanted.partition is not None:
                raise CommandError(
                    f"Offset {start} is outside of partition {place[1]} of {place[0]}, which "
                    f"holds [{bounds.start}, {bounds.end})."
                )
            return min(max(start, bounds.start), bounds.end)
        return start

    def _committed(self, consumer: "Consumer", place: Place, bounds: Bounds) -> int:
        from confluent_kafka import TopicPartition

        with told("Asking for committed offsets"):
            (found,) = consumer.committed([TopicPartition(*place)], timeout=REQUEST_SECONDS)
        return found.offset if found.offset >= 0 else bounds.start

    # --- as a member of a group ---------------------------------------------------------------

    def _assigned(self, _consumer: "Consumer", partitions: Any) -> None:
        self._is_assigned = True
        self._ends |= {(each.topic, each.partition): None for each in partitions}

    def _revoked(self, _consumer: "Consumer", partitions: Any) -> None:
        # What was not read yet may come back: nothing has ended before the next assignment.
        self._is_assigned = False
        for each in partitions:
            self._ends.pop((each.topic, each.partition), None)

    def _lost(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._is_told_lost:
            self._is_told_lost = True
            write_error(f"No broker answers at {self._connection.bootstrap_server}; waiting.")

    # --- reading ------------------------------------------------------------------------------

    def _loop(self, consumer: "Consumer", look_up: Callable[[], None]) -> None:
        wanted = self._wanted
        output = sys.stdout.buffer
        heard_at = time.monotonic()
        while not self._is_done():
            look_up()
            room = _BATCH
            if wanted.max_messages is not None:
                room = min(room, wanted.max_messages - self.count)
            patience = _POLL_SECONDS
            if wanted.timeout_ms is not None:
                left = heard_at + wanted.timeout_ms / 1000 - time.monotonic()
                if left <= 0:
                    return
                patience = min(patience, left)
            # One at first: a batch is waited for until it is full.
            messages = consumer.consume(1, patience)
            if messages and room > 1:
                messages += consumer.consume(room - 1, 0)
            last: dict[Place, Message] = {}
            lines = [line for each in messages if (line := self._take(consumer, each, last))]
            with interrupts_wait():
                if lines:
                    output.write(b"".join(lines))
                    output.flush()
                self._store(consumer, last)
            if lines:
                heard_at = time.monotonic()

    def _store(self, consumer: "Consumer", last: "dict[Place, Message]") -> None:
        """What was printed is committed now and then, and at the end."""
        if self._wanted.commits:
            for message in last.values():
                consumer.store_offsets(message)

    def _is_done(self) -> bool:
        if self._wanted.max_messages is not None and self.count >= self._wanted.max_messages:
            return True
        is_bounded = self._wanted.exits_at_end or self._wanted.offsets.end_timestamp_ms is not None
        return is_bounded and self._is_assigned and not self._ends

    def _take(
        self, consumer: "Consumer", message: "Message", last: "dict[Place, Message]"
    ) -> bytes | None:
        from confluent_kafka import KafkaError, TopicPartition

        error = message.error()
        place = (str(message.topic()), int(message.partition() or 0))
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise client_error(f"Reading {message.topic()}", error)
            if self._wanted.exits_at_end or self._ends.get(place) is not None:
                self._ends.pop(place, None)
            return None
        if place not in self._ends:
            return None
        end, offset = self._ends[place], int(message.offset() or 0)
        if end is not None and offset + 1 >= end:
            del self._ends[place]
            if not self._wanted.is_member:
                consumer.pause([TopicPartition(*place)])
            if offset >= end:
                return None
        self.count += 1
        last[place] = message
        try:
            return self._render(message)
        except CommandError as error_:
            if not self._wanted.skips_bad:
                raise
            write_error(f"{place[0]}-{place[1]} offset {offset}: {error_}")
            return None
