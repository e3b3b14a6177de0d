"""What the scenes share: the folder, what runs, the records that were made up, and the books.

The books say how many records each topic must hold by what has been done to it. In the end a client
and ``stratalog log verify`` are asked the same, and every claim of a scene is among ``checks``.
"""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from stratalog.demo.broker import BrokerProcess
from stratalog.demo.data import Records, make_customers, make_orders
from stratalog.demo.errors import DemoError
from stratalog.demo.folder import DemoFolder
from stratalog.demo.screen import Screen
from stratalog.demo.session import SparkInBackground

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20_260_314
WAIT_SECONDS = 300.0
ORDERS, CUSTOMERS, DELIVERIES = "orders", "customers", "deliveries"
TOPICS = {ORDERS: 6, CUSTOMERS: 3, DELIVERIES: 4}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything; ``scale`` makes it less for who only wants to see it work."""

    scale: float = 1.0

    def _scaled(self, count: int) -> int:
        return max(int(count * self.scale), 1)

    @property
    def orders(self) -> int:
        return self._scaled(300_000)

    @property
    def customer_updates(self) -> int:
        return self._scaled(120_000)

    @property
    def customers(self) -> int:
        return self._scaled(6_000)

    @property
    def orders_at_the_crash(self) -> int:
        return self._scaled(40_000)

    @property
    def deliveries(self) -> int:
        return self._scaled(1_000_000)

    @property
    def segment_bytes(self) -> int:
        """The least that Kafka allows, and less where there is little to fill it with."""
        return min(max(int((1 << 20) * self.scale), 1 << 14), 1 << 20)

    @property
    def batch_bytes(self) -> int:
        """A batch is the least that a reader of some minutes has to read."""
        return min(self.segment_bytes // 4, 32 << 10)

    @property
    def segment_config(self) -> dict[str, str]:
        name = "segment.bytes" if self.segment_bytes >= 1 << 20 else "internal.segment.bytes"
        return {name: str(self.segment_bytes)}


@dataclass(frozen=True, slots=True)
class Check:
    """Two opinions of one thing, which must be the same; or a bound, and what it was."""

    what: str
    expected: int
    found: int
    is_bound: bool = False

    @property
    def holds(self) -> bool:
        return self.found <= self.expected if self.is_bound else self.found == self.expected

    @property
    def must_be(self) -> str:
        return f"{'at most ' * self.is_bound}{self.expected:,}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scene did and how fast, for the table at the end."""

    what: str
    speed: str = ""


@dataclass
class Stage:
    folder: DemoFolder
    screen: Screen
    sizes: Sizes
    broker: BrokerProcess
    background: SparkInBackground
    end_ms: int
    books: Counter[str] = field(default_factory=Counter)
    checks: list[Check] = field(default_factory=list)
    orders: Records = field(init=False)
    customers: Records = field(init=False)

    @property
    def log_dir(self) -> str:
        return str(self.folder.data)

    @property
    def spark(self) -> "SparkSession":
        return self.background.get(self.screen)

    def make_records(self) -> None:
        sizes, end_ms = self.sizes, self.end_ms
        self.orders = make_orders(sizes.orders, sizes.customers, end_ms=end_ms, seed=SEED)
        self.customers = make_customers(
            sizes.customer_updates, sizes.customers, end_ms=end_ms, seed=SEED
        )

    def segment_sizes(self, topic: str) -> dict[str, list[int]]:
        """Bytes of each segment by log, as the file system has them; oldest first."""
        logs = [f"{topic}-{number}" for number in range(TOPICS[topic])]
        return {name: _sizes(self.folder.data / name) for name in logs}

    def active_offsets(self, topic: str) -> list[int]:
        """Where the active segment of each partition begins."""
        directories = [self.folder.data / f"{topic}-{number}" for number in range(TOPICS[topic])]
        return [max(int(each.stem) for each in path.glob("*.log")) for path in directories]

    def size_bytes(self, topic: str) -> int:
        return sum(map(sum, self.segment_sizes(topic).values()))

    def check(self, what: str, expected: int, found: int, *, is_bound: bool = False) -> bool:
        """Written down for the end; whether it holds."""
        self.checks.append(Check(what, expected, found, is_bound))
        return self.checks[-1].holds


def _sizes(directory: Path) -> list[int]:
    try:
        return [each.stat().st_size for each in sorted(directory.glob("*.log"))]
    except FileNotFoundError:
        return []  # one has been renamed in between; who draws it looks again soon


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Look again and again; the demo ends with ``what`` if it does not become true."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise DemoError(f"After {seconds:.0f} s still not: {what}.")
        time.sleep(0.05)


@contextmanager
def stage(folder: DemoFolder, screen: Screen, sizes: Sizes) -> Iterator[Stage]:
    """Everything that runs is stopped at the end of the block, however that comes about."""
    background = SparkInBackground(folder)
    broker = BrokerProcess(folder)
    is_hurried = True
    try:
        background.start()
        yield Stage(folder, screen, sizes, broker, background, time.time_ns() // 1_000_000)
        is_hurried = False
    finally:
        with _deaf():
            broker.stop()
            background.stop(is_hurried=is_hurried)


@contextmanager
def _deaf() -> Iterator[None]:
    """Nobody interrupts the clearing up, which takes seconds at most."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def own_output(others: Path) -> Iterator[TextIO]:
    """Our standard output, while that and standard error of this process, and so of Spark's JVM,
    go to the file ``others``: JVMs and clients print what is of no use to who watches."""
    sys.stdout.flush()
    sys.stderr.flush()
    shown, errors = os.dup(1), os.dup(2)
    aside = os.open(others, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(aside, 1)
    os.dup2(aside, 2)
    os.close(aside)
    screen = os.fdopen(shown, "w", encoding=sys.stdout.encoding, errors="replace")
    try:
        yield screen
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(shown, 1)
        os.dup2(errors, 2)
        os.close(errors)
        with suppress(OSError):  # who read it may have seen enough
            screen.close()
