"""What a broker spends while nothing happens: without clients, and with 200 idle consumers.

The consumers are librdkafka's, as they come, in ten groups of twenty over a topic of twenty
partitions: each waits for records half a second a fetch and sends a heartbeat every three. They
run in a process of their own; only the broker's time counts.
"""

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.broker_figures import compared
from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog, topic
from benchmarks.broker_raw import BrokerFailedError
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Better, Outcome

GROUPS, MEMBERS = scaled(10), 20
JOIN_SECONDS = 120.0
WATCH_SECONDS = 6.0
UNIT = "% of a core"


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    effort = effort.at_most(seconds=WATCH_SECONDS, rounds=3)
    alone: dict[str, list[float]] = defaultdict(list)
    with_consumers: dict[str, list[float]] = defaultdict(list)
    with running([stratalog(root / "ours"), apache_kafka(root / "kafka")]) as there:
        time.sleep(effort.seconds)
        for _ in range(effort.rounds):
            for name, percent in spent(there, effort.seconds).items():
                alone[name].append(percent)
        for side in there:
            with topic(side, "idle", MEMBERS) as name:
                with_consumers[side.name] = watch_consumers(side, name, effort)
    what = "idle without clients: broker CPU"
    yield from compared("idle.alone", what, alone, UNIT, Better.LOWER, Bar(value=0.5))
    yield from compared(
        "idle.consumers",
        f"idle with {GROUPS * MEMBERS} consumers: broker CPU",
        with_consumers,
        UNIT,
        Better.LOWER,
        Bar(ratio=1.0),
    )


def spent(sides: Sequence[BrokerProcess], seconds: float) -> dict[str, float]:
    """By each of them in that time, in % of a core."""
    before_s, started = [side.cpu_s() for side in sides], time.perf_counter()
    time.sleep(seconds)
    elapsed_s = time.perf_counter() - started
    return {
        side.name: (side.cpu_s() - earlier_s) / elapsed_s * 100
        for side, earlier_s in zip(sides, before_s, strict=True)
    }


def watch_consumers(side: BrokerProcess, name: str, effort: Effort) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.broker_idle", side.bootstrap_server, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as consumers:
        assert consumers.stdout is not None
        assert consumers.stdin is not None
        said = consumers.stdout.readline()
        if said.strip() != b"ready":
            raise BrokerFailedError(f"{side.name}: the consumers did not get their partitions")
        time.sleep(effort.seconds)  # to warm up
        found = [spent([side], effort.seconds)[side.name] for _ in range(effort.rounds)]
        consumers.stdin.close()
    return found


# --- the consumers, in a process of their own ---------------------------------------------------


def consume(bootstrap_server: str, topic_name: str) -> None:
    """Until standard input ends."""
    from confluent_kafka import Consumer

    consumers = [
        Consumer({"bootstrap.servers": bootstrap_server, "group.id": f"idle-{group}"})
        for group in range(GROUPS)
        for _ in range(MEMBERS)
    ]
    for consumer in consumers:
        consumer.subscribe([topic_name])
    until, waiting = time.monotonic() + JOIN_SECONDS, consumers
    while waiting and time.monotonic() < until:
        for consumer in consumers:
            consumer.poll(0.002)
        waiting = [consumer for consumer in consumers if len(consumer.assignment()) != 1]
    print("late" if waiting else "ready", flush=True)
    sys.stdin.read()
    for consumer in consumers:
        consumer.close()


if __name__ == "__main__":
    consume(*sys.argv[1:])
