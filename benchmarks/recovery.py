"""Recovery after an unclean stop, from page cache, on one core: headers, CRCs, records, and both
indexes rebuilt because they are gone. Apache Kafka's own log recovers the same files beside it, in
one process that grows warm. Verification of the same log, also on one core.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import KAFKA, Bar, Outcome, Series, higher
from benchmarks.peers import kafka_logs, kafka_note
from benchmarks.timing import cpu_s, wall_s
from benchmarks.workload import fill, new_log
from stratalog.config import TopicConfig
from stratalog.storage.check import check
from stratalog.storage.context import LogContext
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log

if TYPE_CHECKING:
    from log_oracle import KafkaLogs

SIZE_BYTES = scaled(1 << 30, least=64 << 20)
SEGMENT_BYTES = SIZE_BYTES // 4
STEPS = 4  # of a growing log, for the plot


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    log = new_log(root, config=TopicConfig(segment_bytes=SEGMENT_BYTES))
    sides = [Series(plot="recovery", name=name) for name in ("stratalog", KAFKA.name)]
    with kafka_logs() as kafka:
        for _ in range(STEPS):
            fill(log, SIZE_BYTES // STEPS)
            log.close()
            seconds = times(log, kafka, repeats(3))
            for side, found in zip(sides, seconds, strict=True):
                side.add(log.size_bytes / 1e9, found)
            log = open_log(log.directory, log.config, LogContext.default(), clean=True)
    log.close()
    size_gb = log.size_bytes / 1e9
    ours, theirs = ([size_gb / each for each in found] for found in seconds)
    yield higher(
        "recovery.rate",
        f"recovery of {size_gb:.1f} GB, both indexes rebuilt",
        "GB/s",
        ours,
        theirs,
        peer=KAFKA,
        bar=Bar(value=1),
        note=kafka_note("one thread each"),
        is_headline=True,
    )
    verified = [size_gb / cpu_s(lambda: verify(log)) for _ in range(repeats(5))]
    yield higher("verify.rate", "verify, every byte", "GB/s a core", verified, bar=Bar(value=1))
    yield from (side for side in sides if side.points)


def verify(log: Log) -> None:
    assert check(log.directory) == []


def times(log: Log, kafka: "KafkaLogs | None", count: int) -> tuple[list[float], list[float]]:
    """Seconds of ours and of theirs, in turns; the first one warms up."""
    ours, theirs = [], []
    for _ in range(1 + count):
        forget_indexes(log)
        ours.append(wall_s(lambda: recover(log)))
        if kafka is not None:
            forget_indexes(log)
            theirs.append(recover_with_kafka(log, kafka))
    return ours[1:], theirs[1:]


def forget_indexes(log: Log) -> None:
    for index in Path(log.directory).glob("*index"):
        index.unlink()


def recover(log: Log) -> None:
    again = open_log(log.directory, log.config, LogContext.default(), recovery_point=0)
    assert again.log_end_offset == log.log_end_offset
    again.abandon()


def recover_with_kafka(log: Log, kafka: "KafkaLogs") -> float:
    configs = {"segment.bytes": str(SEGMENT_BYTES)}
    now_ms = time.time_ns() // 1_000_000
    answer = kafka.ask(
        "open", Path(log.directory), configs, now_ms=now_ms, is_clean=False, recovery_point=0
    )
    assert answer.get("log_end_offset") == log.log_end_offset, answer
    return float(answer["opened_s"])
