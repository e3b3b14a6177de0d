"""What partitions and connections add to the cost of a MB: 1 000 and 500, by one of each.

Every connection has two requests in flight, of a batch of 16 KB each, and later reads what it
wrote, in fetches as large as a partition of the many holds. Each side is warmed up for ten seconds.
Apache Kafka's own growth is told beside ours. A step in between is there for the plot.
"""

from collections import defaultdict
from collections.abc import Iterator
from math import inf
from pathlib import Path

from benchmarks.broker_cost import Cost, warm_up
from benchmarks.broker_figures import OURS
from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog, topic
from benchmarks.broker_raw import Batch, Fetcher, Producer, connections, fetch, make_batch, produce
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import KAFKA, Bar, Outcome, Peer, Series, lower
from benchmarks.memory_touching import touch_memory
from benchmarks.peers import kafka_note

PARTITIONS, CONNECTIONS = scaled(1_000, least=50), scaled(500, least=25)
STEPS = ((1, 1), (PARTITIONS // 10, CONNECTIONS // 10), (PARTITIONS, CONNECTIONS))
IN_FLIGHT = 2  # of one connection
FETCHES = 6  # of all: they cost a tenth of what producing does
TIMES_ONE = 1.4
ONE = Peer("one of each", is_rival=False)
WORDS = ("produce", "consume")

Found = dict[tuple[str, str, int], list[float]]  # by word, side and partitions


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    effort = effort.at_most(rounds=2)
    touch_memory(root, effort.size_bytes)
    batch = make_batch(1_000, 16_384)
    found: Found = defaultdict(list)
    with running([stratalog(root / "ours"), apache_kafka(root / "kafka")]) as sides:
        names = [side.name for side in sides]
        for side in sides:
            warm_up(side, [batch], min(effort.seconds, 10))
        for side in effort.turns(sides):
            for partitions, clients in STEPS:
                if partitions == STEPS[1][0] and found[WORDS[0], side.name, partitions]:
                    continue  # once is enough of what has no bar
                costs = measure(side, batch, effort, partitions=partitions, clients=clients)
                for word, cost in zip(WORDS, costs, strict=True):
                    found[word, side.name, partitions].append(cost.cpu_s_per_gb)
    for word in WORDS:
        yield from rows(word, found)
        for name in names:
            series = Series(plot=f"{word}-growth", name=name)
            for partitions, _ in STEPS:
                series.add(partitions, found[word, name, partitions])
            yield series


def rows(word: str, found: Found) -> Iterator[Outcome]:
    ours = found[word, OURS, PARTITIONS]
    what = f"{word} with {PARTITIONS:,} partitions, {CONNECTIONS} connections: broker CPU"
    unit = "CPU-s a GB"
    yield lower(
        f"growth.{word}",
        what,
        unit,
        ours,
        found[word, OURS, 1],
        peer=ONE,
        bar=Bar(ratio=TIMES_ONE),
    )
    yield lower(
        f"growth.{word}.kafka",
        what,
        unit,
        ours,
        found[word, KAFKA.name, PARTITIONS],
        peer=KAFKA,
        note=kafka_note(),
    )


def measure(
    side: BrokerProcess, batch: Batch, effort: Effort, *, partitions: int, clients: int
) -> tuple[Cost, Cost]:
    """Of the second half that is produced, and of all fetches but the first: the first time in a
    partition costs more, and comes once."""
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
        consumed = fetch(fetchers, FETCHES * 2 * half_bytes, inf)
        consumed_s = side.cpu_s() - before_s
    return Cost.of(produced, produced_s), Cost.of(consumed, consumed_s)
