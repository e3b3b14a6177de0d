"""What producing and consuming cost a broker: CPU-seconds a GB, and MB/s, beside Apache Kafka.

All sides run at once and one is loaded at a time. Each is warmed up for half a minute, with batches
of all sizes in turn, before any of them is measured. A turn makes a topic of one partition,
produces to it, fetches it all eight times from the page cache and deletes it. The raw client sends
batches of the size that the Java producer makes by default (16 KB) and that librdkafka does (1 MB),
over one connection with five requests in flight. GB and MB count the bytes of batches. CPU is that
of all threads of the broker, user and system.
"""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.broker_figures import SYNCED, compared
from benchmarks.broker_processes import BrokerProcess, all_sides, settle, topic
from benchmarks.broker_raw import Batch, Fetcher, Load, Producer, fetch, make_batch, produce
from benchmarks.effort import Effort
from benchmarks.measurement import Bar, Better, Outcome
from benchmarks.memory_touching import touch_memory

SYNCED_SECONDS = 3.0
FETCHES = 8  # of all that was produced: 4 GB, or most of a second of a broker's CPU
TIMES_KAFKA = Bar(ratio=1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """Records of one size in batches of one size."""

    id: str
    name: str
    value_bytes: int
    batch_bytes: int
    is_headline: bool = False

    def batch(self) -> Batch:
        return make_batch(self.value_bytes, self.batch_bytes)


CASES = (
    Case("1k-16k", "1 KB records, 16 KB batches", 1_000, 16_384, is_headline=True),
    Case("1k-1m", "1 KB records, 1 MB batches", 1_000, 1_000_000),
    Case("100-16k", "100 B records, 16 KB batches", 100, 16_384),
    Case("100-1m", "100 B records, 1 MB batches", 100, 1_000_000),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one measurement."""

    cpu_s_per_gb: float
    mb_per_s: float

    @classmethod
    def of(cls, load: Load, cpu_s: float) -> "Cost":
        return cls(cpu_s / load.size_bytes * 1e9, load.size_bytes / load.seconds / 1e6)


class Costs:
    """Of all sides, for one thing that was done."""

    def __init__(self, id: str, what: str, **rest: bool) -> None:  # noqa: A002
        self._id, self._what, self._rest = id, what, rest
        self._found: dict[str, list[Cost]] = defaultdict(list)

    def add(self, side: BrokerProcess, cost: Cost) -> None:
        self._found[side.name].append(cost)

    def __contains__(self, side: BrokerProcess) -> bool:
        return side.name in self._found

    def rows(self) -> Iterator[Outcome]:
        sides = self._found.items()
        yield from compared(
            f"{self._id}.cpu",
            f"{self._what}: broker CPU",
            {name: [each.cpu_s_per_gb for each in costs] for name, costs in sides},
            "CPU-s a GB",
            Better.LOWER,
            TIMES_KAFKA,
            **self._rest,
        )
        yield from compared(
            f"{self._id}.rate",
            self._what,
            {name: [each.mb_per_s for each in costs] for name, costs in sides},
            "MB/s",
            Better.HIGHER,
            TIMES_KAFKA,
            **self._rest,
        )


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    touch_memory(root, 2 * effort.size_bytes)
    with all_sides(root) as sides:
        batches = {case: case.batch() for case in CASES}
        for side in sides:
            warm_up(side, list(batches.values()), effort.seconds)
        for case, batch in batches.items():
            produced = Costs(
                f"produce.{case.id}", f"produce, {case.name}", is_headline=case.is_headline
            )
            consumed = Costs(
                f"consume.{case.id}",
                f"consume, {case.name}",
                is_headline=case.is_headline,
                with_flush=False,  # nothing is acknowledged
            )
            for side in effort.turns(sides):
                both = measure(side, batch, effort)
                produced.add(side, both[0])
                consumed.add(side, both[1])
            yield from produced.rows()
            yield from consumed.rows()
        memory = {side.name: [side.resident_mb()] for side in sides}
    yield from compared("memory.loaded", "memory after all this", memory, "MB", Better.LOWER)


def warm_up(side: BrokerProcess, batches: Sequence[Batch], seconds: float) -> None:
    """Under load for that long, without a pause between topics."""
    until = time.monotonic() + seconds
    for number, batch in enumerate(itertools.cycle(batches)):
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        share = Effort(seconds=min(seconds / len(batches) / 2, left_s))
        with side.connect() as connection:
            connection.create_topic(f"warm-{number}")
            load(side, f"warm-{number}", batch, share)
            connection.delete_topic(f"warm-{number}")
    settle(side, "warm")


def measure(side: BrokerProcess, batch: Batch, effort: Effort) -> tuple[Cost, Cost]:
    if side.name == SYNCED:  # as sure with less, and it takes its time
        effort = effort.at_most(seconds=SYNCED_SECONDS)
    with topic(side, "cost") as name:
        return load(side, name, batch, effort)


def load(side: BrokerProcess, name: str, batch: Batch, effort: Effort) -> tuple[Cost, Cost]:
    """All of it produced, and fetched again and again."""
    with side.connect() as connection:
        producer = Producer(connection, name, 0, batch)
        before_s = side.cpu_s()
        produced = produce([producer], effort.size_bytes, effort.seconds)
        between_s = side.cpu_s()
        fetcher = Fetcher(connection, name, 0, batch)
        consumed = fetch([fetcher], FETCHES * produced.size_bytes, effort.seconds)
        after_s = side.cpu_s()
    return Cost.of(produced, between_s - before_s), Cost.of(consumed, after_s - between_s)
