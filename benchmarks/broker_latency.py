"""One record at a time: how long a synchronous produce takes, beside Apache Kafka.

One connection, one record of 100 bytes a request, acks=all, the next one sent when the answer is
there. Sides take turns every few hundred requests. Where each acknowledgement waits for the disk
a tenth as many are measured.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.broker_cost import topic
from benchmarks.broker_figures import SYNCED, Effort, compared
from benchmarks.broker_processes import BrokerProcess, all_sides
from benchmarks.broker_raw import Batch, Producer, make_batch
from benchmarks.result import Result

SAMPLES = 20_000
TURN = 400
TIMES_KAFKA = 0.7


def run(root: Path, effort: Effort) -> list[Result]:
    samples = min(SAMPLES, int(SAMPLES * effort.seconds / 30)) // effort.rounds
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    batch = make_batch(100, 1)
    with all_sides(root) as sides:
        for side in sides:
            with topic(side, "warm") as warm:
                measure(side, warm, batch, samples * effort.rounds, effort.seconds)
        for _ in range(effort.rounds):
            for name, latencies_us in one_round(sides, batch, samples).items():
                ordered = sorted(latencies_us)
                for quantile in (50, 99):
                    found[f"p{quantile}"][name].append(ordered[len(ordered) * quantile // 100])
    return [
        compared(
            f"one-record produce, {quantile}", figures, "µs", TIMES_KAFKA, higher_is_better=False
        )
        for quantile, figures in found.items()
    ]


def one_round(sides: Sequence[BrokerProcess], batch: Batch, samples: int) -> dict[str, list[float]]:
    latencies: dict[str, list[float]] = defaultdict(list)
    with topic(sides[0], "one") as name:
        for side in sides[1:]:
            with side.connect() as connection:
                connection.create_topic(name)
        for _ in range(max(samples // TURN, 1)):
            for side in sides:
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
