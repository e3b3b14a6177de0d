"""The same costs with Kafka's own client: its producer and consumer performance tools as they come.

The Java producer is idempotent, waits for all replicas and sends batches of 16 KB; the consumer
joins a group. On a small machine client and broker compete for the cores, so MB/s say as much
about the client; the broker's CPU-seconds are its own. MB and GB count the values of records. With
each acknowledgement on disk it is measured once.
"""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.broker_cost import Cost, Costs
from benchmarks.broker_figures import SYNCED
from benchmarks.broker_processes import BrokerProcess, all_sides, java_command, topic
from benchmarks.broker_raw import BrokerFailedError, Load
from benchmarks.effort import Effort
from benchmarks.measurement import NotMeasuredError, Outcome
from benchmarks.memory_touching import touch_memory
from benchmarks.peers import why_no_kafka

TOOLS = "org.apache.kafka.tools"
TOOL_JVM = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
TOOL_SECONDS = 300
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}  # of both: a group has one member
SIZES = {"1k": ("1 KB records", 1_000), "100": ("100 B records", 100)}


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    if why := why_no_kafka():
        raise NotMeasuredError(f"these are Apache Kafka's own tools: {why}")
    effort = effort.at_most(seconds=4, rounds=3)
    touch_memory(root, effort.size_bytes)
    with all_sides(root, settings=SETTINGS) as sides:
        for side in sides:
            measure(side, 1_000, effort)
        for name, (what, size_bytes) in SIZES.items():
            produced = Costs(f"java.produce.{name}", f"Java producer, {what}")
            consumed = Costs(f"java.consume.{name}", f"Java consumer, {what}", with_flush=False)
            for side in effort.turns(sides):
                if side.name == SYNCED and side in produced:
                    continue
                both = measure(side, size_bytes, effort)
                produced.add(side, both[0])
                consumed.add(side, both[1])
            yield from produced.rows()
            yield from consumed.rows()


def measure(side: BrokerProcess, record_bytes: int, effort: Effort) -> tuple[Cost, Cost]:
    """As many records as the client makes in about ``effort.seconds``."""
    count = int(effort.seconds * 20e6 / (record_bytes + 100))
    with topic(side, "java") as name:
        before_s = side.cpu_s()
        produced_s = produce(side, name, count, record_bytes)
        between_s = side.cpu_s()
        consumed_s = consume(side, name, count)
        after_s = side.cpu_s()
    size = count * record_bytes
    return (
        Cost.of(Load(size, produced_s), between_s - before_s),
        Cost.of(Load(size, consumed_s), after_s - between_s),
    )


def produce(side: BrokerProcess, name: str, count: int, record_bytes: int) -> float:
    """By the tool's own watch, which starts when the producer is there."""
    said = run_tool(
        *("ProducerPerformance", "--bootstrap-server", side.bootstrap_server, "--topic", name),
        *("--num-records", str(count), "--record-size", str(record_bytes), "--throughput", "-1"),
    )
    summary = said[-1].split()  # N records sent, R records/sec (...
    if int(summary[0]) != count:
        raise BrokerFailedError(f"the producer sent {summary[0]} of {count}")
    return count / float(summary[3])


def consume(side: BrokerProcess, name: str, count: int) -> float:
    """Without the time that joining the group took."""
    said = run_tool(
        *("ConsumerPerformance", "--bootstrap-server", side.bootstrap_server, "--topic", name),
        *("--num-records", str(count), "--hide-header"),
    )
    fields = said[-1].split(", ")
    if int(fields[4]) < count:
        raise BrokerFailedError(f"the consumer got {fields[4]} of {count}")
    return int(fields[7]) / 1e3


def run_tool(name: str, *arguments: str) -> Sequence[str]:
    """The lines that it printed."""
    done = subprocess.run(
        java_command(TOOL_JVM, f"{TOOLS}.{name}", *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        raise BrokerFailedError(f"{name}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return lines
