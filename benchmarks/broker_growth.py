"""What 1 000 partitions and 500 connections add to the cost of a MB, by one of each.

Every connection has two requests in flight, of a batch of 16 KB each, and later reads what it
wrote, in fetches as large as a partition of the many holds. Apache Kafka's own growth is told
beside ours.
"""

from collections import defaultdict
from pathlib import Path
from statistics import median

from benchmarks.broker_cost import Cost, topic
from benchmarks.broker_figures import OURS, Effort, told
from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog
from benchmarks.broker_raw import Batch, Fetcher, Producer, connections, fetch, make_batch, produce
from benchmarks.cleaning import touch_memory
from benchmarks.result import Result

PARTITIONS, CONNECTIONS = 1_000, 500
IN_FLIGHT = 2  # of one connection
TIMES_ONE = 1.4


def run(root: Path, effort: Effort) -> list[Result]:
    touch_memory(root, effort.size_bytes)
    batch = make_batch(1_000, 16_384)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with running([stratalog(root / "ours"), apache_kafka(root / "kafka")]) as sides:
        for side in sides:  # to warm up
            measure(side, batch, effort, partitions=1, clients=1)
        for side in effort.turns(sides):
            ones = measure(side, batch, effort, partitions=1, clients=1)
            many = measure(side, batch, effort, partitions=PARTITIONS, clients=CONNECTIONS)
            for what, one, all_ in zip(("produce", "consume"), ones, many, strict=True):
                found[f"{what}, one of each"][side.name].append(one.cpu_s_per_gb)
                found[what][side.name].append(all_.cpu_s_per_gb)
    return [
        row(what, found[what], found[f"{what}, one of each"]) for what in ("produce", "consume")
    ]


def row(what: str, many: dict[str, list[float]], ones: dict[str, list[float]]) -> Result:
    times = {side: median(costs) / median(ones[side]) for side, costs in many.items()}
    kafkas = "; ".join(f"{side} {value:.2f}" for side, value in times.items())
    return Result(
        f"{what} with {PARTITIONS:,} partitions, {CONNECTIONS} connections: CPU",
        times[OURS],
        "times one of each",
        TIMES_ONE,
        higher_is_better=False,
        detail=f"times: {kafkas}. {told(many, 'CPU-s a GB')}, one of each {told(ones, '')}",
    )


def measure(
    side: BrokerProcess, batch: Batch, effort: Effort, *, partitions: int, clients: int
) -> tuple[Cost, Cost]:
    with (
        topic(side, "growth", partitions) as name,
        connections(side.port, clients) as shared,
    ):
        places = [(shared[number % clients], number) for number in range(partitions)]
        producers = [Producer(connection, name, number, batch) for connection, number in places]
        in_flight = max(IN_FLIGHT * clients // partitions, 1)
        produce(producers, 0, 0, in_flight=in_flight)  # the first append of a partition costs more
        before_s = side.cpu_s()
        produced = produce(producers, effort.size_bytes // 2, effort.seconds, in_flight=in_flight)
        between_s = side.cpu_s()
        fetchers = [
            Fetcher(connection, name, number, batch, bytes_max=effort.size_bytes // 2 // PARTITIONS)
            for connection, number in places
        ]
        consumed = fetch(fetchers, produced.size_bytes, effort.seconds)
        after_s = side.cpu_s()
    return Cost.of(produced, between_s - before_s), Cost.of(consumed, after_s - between_s)
