"""Throughput by the size of a record, from ten bytes to a hundred thousand, beside Apache Kafka.

Batches of 256 KB, which a producer makes that is told to wait a little, and a warm-up of ten
seconds; else as ``broker-cost``. For the plot; the bars are there.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.broker_cost import Cost, measure, warm_up
from benchmarks.broker_figures import OURS
from benchmarks.broker_processes import apache_kafka, running, stratalog
from benchmarks.broker_raw import make_batch
from benchmarks.effort import Effort
from benchmarks.measurement import KAFKA, Outcome, Series, higher
from benchmarks.memory_touching import touch_memory
from benchmarks.peers import kafka_note

SIZES = (10, 100, 1_000, 10_000, 100_000)
BATCH_BYTES = 256_000
PLOTS = ("produce-by-size", "consume-by-size")


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    warm_s, effort = min(effort.seconds, 10), effort.at_most(seconds=4, rounds=2)
    touch_memory(root, effort.size_bytes)
    series = {
        (plot, side): Series(plot=plot, name=side) for plot in PLOTS for side in (OURS, KAFKA.name)
    }
    with running([stratalog(root / "ours"), apache_kafka(root / "kafka")]) as sides:
        for side in sides:
            warm_up(side, [make_batch(size, BATCH_BYTES) for size in SIZES], warm_s)
        for size_bytes in SIZES:
            batch = make_batch(size_bytes, BATCH_BYTES)
            found: dict[str, list[tuple[Cost, Cost]]] = {side.name: [] for side in sides}
            for side in effort.turns(sides):
                found[side.name].append(measure(side, batch, effort))
            for number, (plot, word) in enumerate(zip(PLOTS, ("produce", "consume"), strict=True)):
                rates = {
                    name: [costs[number].mb_per_s for costs in all_costs]
                    for name, all_costs in found.items()
                }
                for name, rate in rates.items():
                    series[plot, name].add(size_bytes, rate)
                yield higher(
                    f"sizes.{word}.{size_bytes}",
                    f"{word}, records of {size_bytes:,} B in 256 KB batches",
                    "MB/s",
                    rates[OURS],
                    rates.get(KAFKA.name),
                    peer=KAFKA,
                    note=kafka_note(),
                )
    yield from (each for each in series.values() if each.points)
