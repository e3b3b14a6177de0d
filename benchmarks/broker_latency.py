"""One record at a time: how long a synchronous produce takes, beside Apache Kafka.

One connection, one record of 100 bytes a request, acks=all, the next one sent when the answer is
there. Sides take turns every few hundred requests. Where each acknowledgement waits for the disk
a tenth as many are measured.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.broker_figures import SYNCED, compared
from benchmarks.broker_processes import BrokerProcess, all_sides, topic
from benchmarks.broker_raw import Batch, Producer, make_batch
from benchmarks.effort import Effort
from benchmarks.measurement import Bar, Better, Outcome, Series, quantile

SAMPLES = 20_000
TURN = 400
TIMES_KAFKA = Bar(ratio=0.7)
QUANTILES = (50, 99)
PLOTTED = (
    0.01,
    0.05,
    *(share / 10 for share in range(1, 10)),
    0.95,
    0.98,
    0.99,
    0.995,
    0.998,
    0.999,
)


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    samples = min(SAMPLES, int(SAMPLES * effort.seconds / 30)) // effort.rounds
    rounds: list[dict[str, list[float]]] = []
    batch = make_batch(100, 1)
    with all_sides(root) as sides:
        for side in sides:
            with topic(side, "warm") as warm:
                measure(side, warm, batch, samples * effort.rounds, effort.seconds)
        for _ in range(effort.rounds):
            rounds.append(one_round(sides, batch, samples))
    for percent in QUANTILES:
        found = {
            name: [quantile(each[name], percent / 100) for each in rounds] for name in rounds[0]
        }
        yield from compared(
            f"latency.p{percent}",
            f"one record at a time, produce p{percent}",
            found,
            "µs",
            Better.LOWER,
            TIMES_KAFKA,
            is_headline=True,
        )
    for name in rounds[0]:
        together = sorted(latency for each in rounds for latency in each[name])
        points = [[share, round(quantile(together, share), 1)] for share in PLOTTED]
        yield Series(plot="latency", name=name, points=points)


def one_round(sides: Sequence[BrokerProcess], batch: Batch, samples: int) -> dict[str, list[float]]:
    latencies: dict[str, list[float]] = defaultdict(list)
    with topic(sides[0], "one") as name:
        for side in sides[1:]:
            with side.connect() as connection:
                connection.create_topic(name)
        for number in range(max(samples // TURN, 1)):
            # Each goes first in turn: what one leaves to the disk meets another one next time.
            first = number % len(sides)
            for side in (*sides[first:], *sides[:first]):
                turn = TURN // 10 if side.name == SYNCED else TURN
                latencies[side.name] += measure(side, name, batch, turn, float("inf"))
        for side in sides[1:]:
            with side.connect() as connection:
                connection.delete_topic(name)
    return latencies


def measure(
    side: BrokerProcess, name: str, batch: Batch, samples: int, seconds: float
) -> list[float]:
    """In µs; the first few of a connection are not counted."""
    found, until = [], time.perf_counter() + seconds
    with side.connect() as connection:
        producer = Producer(connection, name, 0, batch)
        for _ in range(10):
            producer.produce()
        for _ in range(samples):
            started = time.perf_counter()
            producer.produce()
            ended = time.perf_counter()
            found.append((ended - started) * 1e6)
            if ended > until:
                break
    return found
