"""From starting the process to the first acknowledged record, and the memory it then takes.

Twice: over a directory that has a topic, and over an empty one in which the topic has to be made
(Apache Kafka's is formatted before the watch starts). Memory is what is resident some seconds
after that record. Files lie in the page cache for both.
"""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.broker_figures import compared
from benchmarks.broker_processes import BrokerProcess, apache_kafka, stratalog
from benchmarks.broker_raw import BrokerFailedError, Producer, make_batch
from benchmarks.effort import Effort
from benchmarks.measurement import Bar, Better, Outcome

TOPIC = "first"
SECONDS_MAX = Bar(value=0.5, ratio=0.2)
MB_MAX = Bar(value=60.0, ratio=0.2)
IDLE_SECONDS = 3.0
READY_SECONDS = 60.0

Figures = dict[str, list[float]]


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    makers: list[Callable[[Path], BrokerProcess | None]] = [
        stratalog,
        lambda home: stratalog(home, is_synced=True),
        apache_kafka,
    ]
    compile_modules(root)
    first: Figures = defaultdict(list)
    again: Figures = defaultdict(list)
    memory: Figures = defaultdict(list)
    for make in effort.turns(makers):
        broker = make(root / "broker")
        if broker is None:
            continue
        seconds, _ = start_once(broker, is_new=True)
        first[broker.name].append(seconds)
        seconds, resident_mb = start_once(broker, is_new=False, is_measured=True)
        again[broker.name].append(seconds)
        memory[broker.name].append(resident_mb)
        shutil.rmtree(root / "broker")
    start = "start to the first acknowledged record"
    rows = (
        ("start.empty", f"{start}, empty directory", first, "s", SECONDS_MAX, True),
        ("start.topic", f"{start}, one topic", again, "s", SECONDS_MAX, False),
        ("start.memory", "memory when idle", memory, "MB", MB_MAX, True),
    )
    for name, what, figures, unit, bar, is_headline in rows:
        yield from compared(name, what, figures, unit, Better.LOWER, bar, is_headline=is_headline)


def compile_modules(root: Path) -> None:
    """Done by pip where a package is installed."""
    start_once(stratalog(root / "compiled"), is_new=True)


def start_once(
    broker: BrokerProcess, *, is_new: bool, is_measured: bool = False
) -> tuple[float, float]:
    """Seconds until a record was acknowledged, and MB when nothing has gone on for a while."""
    batch = make_batch(100, 1)
    started = time.perf_counter()
    broker.spawn()
    try:
        while time.perf_counter() - started < READY_SECONDS:
            with suppress(OSError, EOFError, BrokerFailedError), broker.connect() as connection:
                if is_new:
                    connection.create_topic(TOPIC)
                    is_new = False
                Producer(connection, TOPIC, 0, batch).produce()
                seconds = time.perf_counter() - started
                if is_measured:
                    time.sleep(IDLE_SECONDS)
                return seconds, broker.resident_mb()
            broker.raise_if_ended()
            time.sleep(0.001)
        raise BrokerFailedError(f"{broker.name} acknowledged nothing")
    finally:
        broker.stop()
