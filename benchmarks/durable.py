"""What an acknowledgement that is on disk costs, beside Apache Kafka that flushes too.

Our default, `log.flush.on.ack=true`, beside one node of Apache Kafka with
`log.flush.interval.messages=1`: neither answers before its disk has the records. Both run at once,
on one disk, and one is loaded at a time; each is warmed up first.

One record at a time: one connection, one record of 100 bytes a request, acks=all, the next one sent
when the answer is there; sides take turns of a fraction of a second, and a repeat is a round of
2 400 requests a side. Throughput: 16 KB batches of 1 KB records, acks=all, from one producer, from
eight to one partition, and from eight to a partition each; all have a connection of their own and
five requests in flight. CPU is that of all threads of the broker, user and system.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.broker_cost import Cost
from benchmarks.broker_latency import no_collections
from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog, topic
from benchmarks.broker_raw import Batch, Producer, connections, make_batch, produce
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import (
    KAFKA,
    NO_BAR,
    Bar,
    Better,
    Measurement,
    Outcome,
    measured,
    quantile,
)
from benchmarks.peers import kafka_note

TURN = 200  # requests: about a tenth of a second
TURNS = scaled(12)  # of a round
UNCOUNTED = 20  # the first of a turn meet what the turn of another side left to the disk
WARM_SECONDS = 12.0
LOAD_SECONDS = 2.5
ENDLESS_BYTES = 1 << 62  # until the time is up
KAFKA_FLUSHES = {"log.flush.interval.messages": "1"}
NOTE = "both flush before each acknowledgement"

Figures = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Case:
    """So many producers that share so many partitions."""

    id: str
    what: str
    producers: int
    partitions: int
    rate_bar: Bar = NO_BAR
    cpu_bar: Bar = NO_BAR


CASES = (
    Case("1", "1 producer", 1, 1, Bar(ratio=1.8), Bar(ratio=0.85)),
    Case("8", "8 producers", 8, 1, Bar(ratio=5.0), Bar(ratio=0.3)),
    Case("8x8", "8 producers, a partition each", 8, 8),
)


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    record, batch = make_batch(100, 1), make_batch(1_000, 16_384)
    sides = [
        stratalog(root / "durable", is_synced=True),
        apache_kafka(root / "kafka", settings=KAFKA_FLUSHES),
    ]
    with running(sides) as there, no_collections():
        for side in there:
            warm_up(side, record, batch, effort.at_most(seconds=WARM_SECONDS).seconds)
        rounds = [one_round(there, record) for _ in range(effort.rounds)]
        loads = {case: loaded(there, batch, case, effort) for case in CASES}
    yield from latency_rows(rounds)
    for case, costs in loads.items():
        yield from load_rows(case, costs)


def beside(
    id: str,  # noqa: A002 - as in the file
    what: str,
    unit: str,
    figures: Figures,
    better: Better,
    bar: Bar,
) -> Measurement:
    theirs = figures.pop(KAFKA.name, None)
    (ours,) = figures.values()
    return measured(
        id,
        what,
        unit,
        ours,
        better=better,
        theirs=theirs,
        peer=KAFKA,
        bar=bar,
        note=kafka_note(NOTE),
        is_headline=True,
    )


# --- one record at a time ----------------------------------------------------------------------


def latency_rows(rounds: Sequence[Figures]) -> Iterator[Measurement]:
    for percent in (50, 99):
        found = {
            name: [quantile(each[name], percent / 100) for each in rounds] for name in rounds[0]
        }
        what = f"durable: one record at a time, produce p{percent}"
        bar = Bar(ratio=1.0)
        yield beside(f"durable.p{percent}", what, "µs", found, Better.LOWER, bar)


def one_round(sides: Sequence[BrokerProcess], record: Batch) -> Figures:
    """Latencies in microseconds."""
    found: Figures = {side.name: [] for side in sides}
    with ExitStack() as stack:
        for side in sides:
            stack.enter_context(topic(side, "one"))
        for number in range(TURNS):
            for side in sides if number % 2 else reversed(sides):
                found[side.name] += one_turn(side, record)
    return found


def one_turn(side: BrokerProcess, record: Batch) -> list[float]:
    found, uncounted = (array("q", bytes(8 * count)) for count in (TURN, UNCOUNTED))
    with side.connect() as connection:
        producer = Producer(connection, "one", 0, record)
        producer.fill(uncounted)
        producer.fill(found)
    return [each / 1e3 for each in found]


# --- throughput --------------------------------------------------------------------------------


def load_rows(case: Case, costs: dict[str, list[Cost]]) -> Iterator[Measurement]:
    what = f"durable: produce, 16 KB batches, {case.what}"
    rates = {name: [each.mb_per_s for each in found] for name, found in costs.items()}
    cpu = {name: [each.cpu_s_per_gb for each in found] for name, found in costs.items()}
    yield beside(f"durable.{case.id}.rate", what, "MB/s", rates, Better.HIGHER, case.rate_bar)
    yield beside(
        f"durable.{case.id}.cpu",
        f"{what}: broker CPU",
        "CPU-s a GB",
        cpu,
        Better.LOWER,
        case.cpu_bar,
    )


def loaded(
    sides: Sequence[BrokerProcess], batch: Batch, case: Case, effort: Effort
) -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = defaultdict(list)
    seconds = effort.at_most(seconds=LOAD_SECONDS).seconds
    for side in effort.turns(sides):
        with topic(side, "load", case.partitions):
            found[side.name].append(load(side, "load", batch, case, seconds))
    return found


def load(side: BrokerProcess, name: str, batch: Batch, case: Case, seconds: float) -> Cost:
    with connections(side.port, case.producers) as there:
        producers = [
            Producer(each, name, number % case.partitions, batch)
            for number, each in enumerate(there)
        ]
        before_s = side.cpu_s()
        moved = produce(producers, ENDLESS_BYTES, seconds)
        return Cost.of(moved, side.cpu_s() - before_s)


def warm_up(side: BrokerProcess, record: Batch, batch: Batch, seconds: float) -> None:
    kinds = [(record, 1, 1), *((batch, case.producers, 5) for case in CASES)]
    with topic(side, "warm", max(case.partitions for case in CASES)):
        for each, count, in_flight in kinds:
            with connections(side.port, count) as there:
                producers = [
                    Producer(connection, "warm", number, each)
                    for number, connection in enumerate(there)
                ]
                produce(producers, ENDLESS_BYTES, seconds / len(kinds), in_flight=in_flight)
