"""What 1 000 partitions and 500 connections add to the cost of a MB, by one of each.

Every connection has two requests in flight, of a batch of 16 KB each, and later reads what it
wrote, in fetches as large as a partition of the many holds. Apache Kafka's own growth is told
beside ours.
"""

from collections import defaultdict
from math import inf
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
    all_times = "; ".join(f"{side} {value:.2f}" for side, value in times.items())
    return Result(
        f"{what} with {PARTITIONS:,} partitions, {CONNECTIONS} connections: CPU",
        times[OURS],
        "times one of each",
        TIMES_ONE,
        higher_is_better=False,
        detail=f"times: {all_times}. {told(many, 'CPU-s a GB')}. {told(ones, 'One of each')}",
    )


def measure(
    side: BrokerProcess, batch: Batch, effort: Effort, *, partitions: int, clients: int
) -> tuple[Cost, Cost]:
    """Of the second half that is produced, and the second time that all of it is fetched: the
    first time in a partition costs more, and comes once."""
    passes = max(min(effort.size_bytes // 2 // PARTITIONS, 1 << 20) // len(batch.data), 2)
    half_bytes = passes // 2 * PARTITIONS * len(batch.data)
    fetch_bytes = passes // 2 * 2 * len(batch.data)
    with (
        topic(side, "growth", partitions) as name,
        connections(side.port, clients) as shared,
    ):
        places = [(shared[number % clients], number) for number in range(partitions)]
        producers = [Producer(connection, name, number, batch) for connection, number in places]
        fetchers = [
            Fetcher(connection, name, number, batch, bytes_max=fetch_bytes)
            for connection, number in places
        ]
        in_flight = max(IN_FLIGHT * clients // partitions, 1)
        produce(producers, half_bytes, inf, in_flight=in_flight)
        before_s = side.cpu_s()
        produced = produce(producers, half_bytes, inf, in_flight=in_flight)
        produced_s = side.cpu_s() - before_s
        fetch(fetchers, 2 * half_bytes, inf)
        before_s = side.cpu_s()
        consumed = fetch(fetchers, 2 * half_bytes, inf)
        consumed_s = side.cpu_s() - before_s
    return Cost.of(produced, produced_s), Cost.of(consumed, consumed_s)
