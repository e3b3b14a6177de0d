"""What a broker spends while nothing happens: without clients, and with 200 idle consumers.

The consumers are librdkafka's, as they come, in ten groups of twenty over a topic of twenty
partitions: each waits for records half a second a fetch and sends a heartbeat every three. They
run in a process of their own; only the broker's time counts.
"""

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.broker_cost import topic
from benchmarks.broker_figures import OURS, Effort, compared, told
from benchmarks.broker_processes import BrokerProcess, apache_kafka, running, stratalog
from benchmarks.broker_raw import BrokerFailedError
from benchmarks.result import Result

GROUPS, MEMBERS = 10, 20
JOIN_SECONDS = 120.0
WATCH_SECONDS = 10.0
PERCENT_MAX = 0.5


def run(root: Path, effort: Effort) -> list[Result]:
    alone: dict[str, list[float]] = defaultdict(list)
    with_consumers: dict[str, list[float]] = defaultdict(list)
    sides = [
        stratalog(root / "ours"),
        stratalog(root / "synced", is_synced=True),
        apache_kafka(root / "kafka"),
    ]
    with running(sides) as there:
        time.sleep(effort.seconds)
        for _ in range(effort.rounds):
            for name, percent in spent(there, effort.seconds).items():
                alone[name].append(percent)
        for side in there:
            with topic(side, "idle", MEMBERS) as name:
                with_consumers[side.name] = watch_consumers(side, name, effort)
    what = f"idle with {GROUPS * MEMBERS} consumers: CPU"
    return [
        Result(
            "idle without clients: CPU",
            median(alone[OURS]),
            "%",
            PERCENT_MAX,
            higher_is_better=False,
            detail=told(alone, "% of a core"),
        ),
        compared(what, with_consumers, "% of a core", 1.0, higher_is_better=False),
    ]


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
        seconds = min(effort.seconds, WATCH_SECONDS)
        found = [spent([side], seconds)[side.name] for _ in range(effort.rounds)]
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
