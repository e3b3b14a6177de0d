"""What an acknowledgement that is on disk costs, beside Apache Kafka that flushes too.

Our default, `log.flush.on.ack=true`, beside one node of Apache Kafka with
`log.flush.interval.messages=1`: neither answers before its disk has the records. Both run at once,
on one disk, and one is loaded at a time; each is warmed up first.

One record at a time: one connection, one record of 100 bytes a request, acks=all, the next one sent
when the answer is there; sides take turns of a fraction of a second, and a repeat is a round of
2 400 requests a side. Throughput: 16 KB batches of 1 KB records, acks=all, from one producer and
from eight, each with a connection and a partition of its own and five requests in flight. CPU is
that of all threads of the broker, user and system.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.broker_cost import Cost
from benchmarks.broker_latency import no_collections
from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog, topic
from benchmarks.broker_raw import Batch, Producer, connections, make_batch, produce
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import KAFKA, Bar, Better, Measurement, Outcome, measured, quantile
from benchmarks.peers import kafka_note

TURN = 200  # requests: about a tenth of a second
TURNS = scaled(12)  # of a round
UNCOUNTED = 20  # the first of a turn meet what the turn of another side left to the disk
WARM_SECONDS = 12.0
LOAD_SECONDS = 3.0
PRODUCERS = (1, 8)
KAFKA_FLUSHES = {"log.flush.interval.messages": "1"}
NOTE = "both flush before each acknowledgement"

Figures = dict[str, list[float]]


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
        loads = {count: loaded(there, batch, count, effort) for count in PRODUCERS}
    yield from latency_rows(rounds)
    for count, costs in loads.items():
        yield from load_rows(count, costs)


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


def load_rows(count: int, costs: dict[str, list[Cost]]) -> Iterator[Measurement]:
    who = "1 producer" if count == 1 else f"{count} producers"
    what = f"durable: produce, 16 KB batches, {who}"
    rates = {name: [each.mb_per_s for each in found] for name, found in costs.items()}
    cpu = {name: [each.cpu_s_per_gb for each in found] for name, found in costs.items()}
    rate_bar = Bar(ratio=1.8 if count == 1 else 5.0)
    yield beside(f"durable.{count}.rate", what, "MB/s", rates, Better.HIGHER, rate_bar)
    yield beside(
        f"durable.{count}.cpu",
        f"{what}: broker CPU",
        "CPU-s a GB",
        cpu,
        Better.LOWER,
        CPU_BARS[count],
    )


# Of what Apache Kafka takes for it in the same run.
CPU_BARS = {1: Bar(ratio=1.0), 8: Bar(ratio=1.0)}


def loaded(
    sides: Sequence[BrokerProcess], batch: Batch, count: int, effort: Effort
) -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = defaultdict(list)
    seconds = effort.at_most(seconds=LOAD_SECONDS).seconds
    for side in effort.turns(sides):
        with topic(side, "load", count):
            found[side.name].append(load(side, "load", batch, count, seconds))
    return found


def load(side: BrokerProcess, name: str, batch: Batch, count: int, seconds: float) -> Cost:
    with connections(side.port, count) as there:
        producers = [Producer(each, name, partition, batch) for partition, each in enumerate(there)]
        before_s = side.cpu_s()
        moved = produce(producers, 1 << 62, seconds)
        return Cost.of(moved, side.cpu_s() - before_s)


def warm_up(side: BrokerProcess, record: Batch, batch: Batch, seconds: float) -> None:
    with topic(side, "warm", max(PRODUCERS)):
        for each, count in ((record, 1), (batch, 1), (batch, max(PRODUCERS))):
            with connections(side.port, count) as there:
                producers = [
                    Producer(connection, "warm", partition, each)
                    for partition, connection in enumerate(there)
                ]
                in_flight = 1 if each is record else 5
                produce(producers, 1 << 62, seconds / 3, in_flight=in_flight)
