"""10 000 partitions of two or three tiny batches each: starting with them, and keeping them.

A start is timed from the process to the first answer to a metadata request: once after a clean
stop, and once after kill -9, with a batch appended to every partition just before. In between the
broker is left alone for half a minute, some of which it spends on what it does again and again.
Files lie in the page cache for all.
"""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

from benchmarks.broker_figures import compared
from benchmarks.broker_idle import spent
from benchmarks.broker_processes import BrokerProcess, apache_kafka, stratalog
from benchmarks.broker_raw import BrokerFailedError, Producer, make_batch, produce
from benchmarks.broker_start import compile_modules
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Better, Outcome

TOPICS, PARTITIONS = 10, scaled(1_000, least=10)
COUNT = TOPICS * PARTITIONS
PASSES = 2  # batches of each partition
READY_SECONDS = 240.0
STOP_SECONDS = 120.0
# Idle is what is left when the first rounds of periodic work are over: both begin most of it after
# 30 s (log.initial.task.delay.ms), and each measurement has the rounds that come every few seconds.
SETTLE_SECONDS, IDLE_SECONDS = 45.0, 30.0
START = Bar(ratio=0.5)
IDLE = Bar(value=1.0)

Figures = dict[str, dict[str, list[float]]]  # by row and side


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    compile_modules(root)
    figures: Figures = defaultdict(lambda: defaultdict(list))
    makers: list[Callable[[Path], BrokerProcess | None]] = [stratalog, apache_kafka]
    for make in effort.at_most(rounds=1).turns(makers):
        broker = make(root / "broker")
        if broker is not None:
            for name, value in measure(broker, effort).items():
                figures[name][broker.name].append(value)
            shutil.rmtree(root / "broker")
    what = f"{COUNT:,} small partitions"
    for name, text, unit, bar in (
        ("clean", "start to the first metadata after a clean stop", "s", START),
        ("killed", "start to the first metadata after kill -9", "s", START),
        ("idle", "idle, broker CPU", "% of a core", IDLE),
        ("memory", "memory when idle", "MB", Bar()),
    ):
        yield from compared(
            f"many-partitions.{name}",
            f"{what}: {text}",
            figures[name],
            unit,
            Better.LOWER,
            bar,
            is_headline=name in ("clean", "killed"),
        )


def measure(broker: BrokerProcess, effort: Effort) -> dict[str, float]:
    figures = {}
    first_metadata(broker)
    try:
        fill(broker)
        broker.stop(STOP_SECONDS)
        figures["clean"] = first_metadata(broker)
        time.sleep(SETTLE_SECONDS if effort.seconds >= IDLE_SECONDS else effort.seconds)
        (figures["idle"],) = spent([broker], min(IDLE_SECONDS, effort.seconds)).values()
        figures["memory"] = broker.resident_mb()
        append_to_all(broker, 1)
        broker.kill()
        figures["killed"] = first_metadata(broker)
    finally:
        broker.stop(STOP_SECONDS)
    return figures


def first_metadata(broker: BrokerProcess) -> float:
    """Start it; seconds until it answered for the first time."""
    started = time.perf_counter()
    broker.spawn()
    while (seconds := time.perf_counter() - started) < READY_SECONDS:
        broker.raise_if_ended()
        with suppress(OSError, EOFError), broker.connect() as connection:
            if connection.broker_count():
                return time.perf_counter() - started
        time.sleep(0.01)
    raise BrokerFailedError(f"{broker.name} answered nothing in {seconds:.0f} s")


def fill(broker: BrokerProcess) -> None:
    with broker.connect() as connection:
        names = topics()
        # In two requests: Kafka's controller takes less than 10 000 partitions with one.
        for some in (names[: TOPICS // 2], names[TOPICS // 2 :]):
            connection.create_topics(some, partitions=PARTITIONS)
    append_to_all(broker, PASSES)


def append_to_all(broker: BrokerProcess, passes: int) -> None:
    batch = make_batch(100, 1)
    with broker.connect() as connection:
        for name in topics():
            connection.wait_until_led(name, PARTITIONS)
        producers = [
            Producer(connection, name, partition, batch)
            for name in topics()
            for partition in range(PARTITIONS)
        ]
        for _ in range(passes):
            produce(producers, len(producers) * len(batch.data), inf, in_flight=1)


def topics() -> Sequence[str]:
    return [f"many-{number}" for number in range(TOPICS)]
