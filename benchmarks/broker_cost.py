"""What producing and consuming cost a broker: CPU-seconds a GB, and MB/s, beside Apache Kafka.

All sides run at once and one is loaded at a time. A turn makes a topic of one partition, produces
to it, fetches it all twice from the page cache and deletes it. The raw client sends batches of
the size that the Java producer makes by default (16 KB) and that librdkafka does (1 MB), over one
connection with five requests in flight. GB and MB count the bytes of batches.
"""

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.broker_figures import OURS, Effort, compared, told
from benchmarks.broker_processes import BrokerProcess, all_sides
from benchmarks.broker_raw import Batch, Fetcher, Load, Producer, fetch, make_batch, produce
from benchmarks.cleaning import touch_memory
from benchmarks.result import Result

SETTLE_SECONDS = 1.0
FETCHES = 2  # of all that was produced
CPU_TIMES_KAFKA = RATE_TIMES_KAFKA = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """Records of one size in batches of one size."""

    name: str
    value_bytes: int
    batch_bytes: int

    def batch(self) -> Batch:
        return make_batch(self.value_bytes, self.batch_bytes)


CASES = (
    Case("1 KB records, 16 KB batches", 1_000, 16_384),
    Case("1 KB records, 1 MB batches", 1_000, 1_000_000),
    Case("100 B records, 16 KB batches", 100, 16_384),
    Case("100 B records, 1 MB batches", 100, 1_000_000),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one measurement."""

    cpu_s_per_gb: float
    mb_per_s: float

    @classmethod
    def of(cls, load: Load, cpu_s: float) -> "Cost":
        return cls(cpu_s / load.size_bytes * 1e9, load.size_bytes / load.seconds / 1e6)


class Figures:
    """Costs of all sides, by what was done."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[Cost]]] = defaultdict(lambda: defaultdict(list))

    def add(self, what: str, side: str, cost: Cost) -> None:
        self._found[what][side].append(cost)
        line = f"{cost.cpu_s_per_gb:.2f} CPU-s a GB, {cost.mb_per_s:.0f} MB/s"
        print(f"{what}, {side}: {line}", file=sys.stderr)  # a whole run takes most of an hour

    def rows(self) -> Iterator[Result]:
        for what, sides in self._found.items():
            cpu = {side: [each.cpu_s_per_gb for each in costs] for side, costs in sides.items()}
            rate = {side: [each.mb_per_s for each in costs] for side, costs in sides.items()}
            yield compared(
                f"{what}: CPU", cpu, "CPU-s a GB", CPU_TIMES_KAFKA, higher_is_better=False
            )
            yield compared(f"{what}: rate", rate, "MB/s", RATE_TIMES_KAFKA, higher_is_better=True)


def run(root: Path, effort: Effort) -> list[Result]:
    touch_memory(root, 2 * effort.size_bytes)
    figures = Figures()
    with all_sides(root) as sides:
        batches = {case: case.batch() for case in CASES}
        for side in sides:
            warm_up(side, list(batches.values()), effort)
        for case, batch in batches.items():
            for side in effort.turns(sides):
                produced, consumed = measure(side, batch, effort)
                figures.add(f"produce {case.name}", side.name, produced)
                figures.add(f"consume {case.name}", side.name, consumed)
        memory = {side.name: [side.resident_mb()] for side in sides}
    detail = told(memory, "MB resident")
    row = Result("memory after all this", memory[OURS][0], "MB", None, detail=detail)
    return [*figures.rows(), row]


def warm_up(side: BrokerProcess, batches: list[Batch], effort: Effort) -> None:
    share = Effort(seconds=effort.seconds / len(batches) / 2)
    for batch in batches:
        measure(side, batch, share)


def measure(side: BrokerProcess, batch: Batch, effort: Effort) -> tuple[Cost, Cost]:
    with topic(side, "cost") as name, side.connect() as connection:
        producer = Producer(connection, name, 0, batch)
        before_s = side.cpu_s()
        produced = produce([producer], effort.size_bytes, effort.seconds)
        between_s = side.cpu_s()
        fetcher = Fetcher(connection, name, 0, batch)
        consumed = fetch([fetcher], FETCHES * produced.size_bytes, effort.seconds)
        after_s = side.cpu_s()
    return Cost.of(produced, between_s - before_s), Cost.of(consumed, after_s - between_s)


class topic:
    """A new topic that is deleted again, its files too, before anybody else is measured."""

    def __init__(self, side: BrokerProcess, name: str, partitions: int = 1) -> None:
        self._side, self._name, self._partitions = side, name, partitions

    def __enter__(self) -> str:
        with self._side.connect() as connection:
            connection.create_topic(self._name, partitions=self._partitions)
        return self._name

    def __exit__(self, *_: object) -> None:
        with self._side.connect() as connection:
            connection.delete_topic(self._name)
        tick = threading.Event()
        while any(self._side.log_dir.glob(f"{self._name}-*")):
            tick.wait(0.1)
        tick.wait(SETTLE_SECONDS)
