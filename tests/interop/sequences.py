"""Idempotent producers by hand: each that ever began goes on, and repeats its last batch first.

A broker that knows them answers the repeat with the offset of the first copy, and stores nothing.
One that gave the id of an older producer to a new one answers that one's first batch so too.
"""

import time
from dataclasses import dataclass, field

from batches import Record, make_batch
from wire import KafkaConnection


@dataclass(slots=True)
class Sequence:
    """One producer: its id and epoch, the batch it sent last, and where that lies."""

    producer: tuple[int, int]
    next_sequence: int = 0
    last_batch: bytes = b""
    last_offset: int = -1


@dataclass(slots=True)
class Sequences:
    """All producers of one topic. ``stored`` is what the log holds, value by value; ``repeats`` are
    the offsets of first copies beside those that the repeats were answered with."""

    topic: str
    sequences: list[Sequence] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    repeats: list[tuple[int, int]] = field(default_factory=list)

    @property
    def producer_ids(self) -> list[int]:
        return [each.producer[0] for each in self.sequences]

    def live_through(self, connection: KafkaConnection, beginning: int = 2) -> None:
        """Repeat, go on, and begin some new ones."""
        for each in self.sequences:
            again = connection.produce(self.topic, each.last_batch)
            self.repeats.append((each.last_offset, again.base_offset))
            self._send(connection, each)
        for _ in range(beginning):
            begun = Sequence(connection.init_producer_id())
            self.sequences.append(begun)
            self._send(connection, begun)

    def _send(self, connection: KafkaConnection, each: Sequence) -> None:
        value = f"{each.producer[0]} {each.next_sequence}".encode()
        # Of now: producers whose last batch is old are forgotten when a log is opened.
        record = Record(None, value, time.time_ns() // 1_000_000)
        each.last_batch = make_batch(
            [record], producer=each.producer, base_sequence=each.next_sequence
        )
        each.next_sequence += 1
        each.last_offset = connection.produce(self.topic, each.last_batch).base_offset
        self.stored.append(value)
        self.answered.append(each.last_offset)
