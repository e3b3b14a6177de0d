"""One record at a time: how long a synchronous produce takes, beside Apache Kafka.

One connection, one record of 100 bytes a request, acks=all, the next one sent when the answer is
there. Each side is warmed up for half a minute. Then sides take turns of a fraction of a second, in
every order there is; a repeat is a round of 36 000 requests a side, or of a tenth as many where
each acknowledgement waits for the disk. A request is one send and one receive on a blocking socket;
the client collects no garbage meanwhile.
"""

import gc
import itertools
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.broker_figures import SYNCED, compared
from benchmarks.broker_processes import BrokerProcess, all_sides, topic
from benchmarks.broker_raw import Batch, Producer, make_batch
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Better, Outcome, Series, quantile

TURN = 2_000  # requests: a fifth of a second
TURNS = scaled(18)  # of a round: its p99 is that of 36 000 requests
UNCOUNTED = 20  # one of so many: the first of a turn meet what the turn of another side left
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

Latencies = dict[str, list[float]]  # of a round, in µs and in order, by side


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    batch = make_batch(100, 1)
    with all_sides(root) as sides, no_collections():
        for side in sides:
            with topic(side, "warm") as name:
                warm_up(side, name, batch, effort.seconds)
        rounds = [one_round(sides, batch) for _ in range(effort.rounds)]
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
        series = Series(plot="latency", name=name)
        for share in PLOTTED:
            series.add(share, [quantile(each[name], share) for each in rounds])
        yield series


@contextmanager
def no_collections() -> Iterator[None]:
    """What the client's own collector takes would be told as a broker's."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def warm_up(side: BrokerProcess, name: str, batch: Batch, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        one_turn(side, name, batch)


def one_round(sides: Sequence[BrokerProcess], batch: Batch) -> Latencies:
    latencies: Latencies = {side.name: [] for side in sides}
    with topic(sides[0], "one") as name:
        for side in sides[1:]:
            with side.connect() as connection:
                connection.create_topic(name)
        # In every order: what one leaves to the disk meets each of the others as often.
        for order in itertools.islice(itertools.cycle(itertools.permutations(sides)), TURNS):
            for side in order:
                found = one_turn(side, name, batch)
                latencies[side.name] += [each / 1e3 for each in found]
        for side in sides[1:]:
            with side.connect() as connection:
                connection.delete_topic(name)
    return {name: sorted(found) for name, found in latencies.items()}


def one_turn(side: BrokerProcess, name: str, batch: Batch) -> "array[int]":
    """In nanoseconds."""
    count = TURN // 10 if side.name == SYNCED else TURN
    found, uncounted = (array("q", bytes(8 * each)) for each in (count, count // UNCOUNTED))
    with side.connect() as connection:
        producer = Producer(connection, name, 0, batch)
        producer.fill(uncounted)
        producer.fill(found)
    return found
