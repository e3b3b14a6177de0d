"""Appends at a fixed 20 MB/s while the cleaner and retention work on the same disk, beside the same
appends without them: what cleaning costs those who write.

The owner's thread appends 16 KiB batches on a schedule, to a compacted log and to one with
retention, runs what is due and hands slices to a reader. Another thread flushes without a pause, as
that of a broker whose acknowledgements wait for it. A latency counts from the moment an
append was due, so that a pause is felt by all that should have happened in it. Runs with and
without cleaning take turns, so that what else the machine does meets both alike.

The compacted log begins with every key, about 110 MB, and a round copies all that is clean: with a
roll every 0.8 s the cleaner is at work most of the time.
"""

import queue
import random
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, Peer, lower, quantile
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Record, build_batch
from stratalog.storage.cleaning.rounds import CleanerStats
from stratalog.storage.flushing import FlushTask
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import FetchedData, Isolation

BYTES_A_SECOND = 20_000_000
SECONDS = 10.0  # of a phase
TURNS = 2
KEYS = scaled(500_000, least=20_000)
RECORDS_A_BATCH = 75
ALONE = Peer("the same without", is_rival=False)
COMPACTED, DELETED = TopicPartition("compacted", 0), TopicPartition("deleted", 0)

SEGMENT: dict[str, Any] = {"internal_segment_bytes": 8 << 20, "file_delete_delay_ms": 1000}
TOPICS = {
    "compacted": TopicConfig(
        cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01, **SEGMENT
    ),
    "deleted": TopicConfig(retention_bytes=64 << 20, **SEGMENT),
}


@dataclass
class Phase:
    """One run: how late each append was done, and what went on beside it."""

    latencies_ms: list[float] = field(default_factory=list)
    rounds: int = 0
    seconds_cleaned: float = 0.0
    reads: int = 0

    def count(self, stats: CleanerStats | None) -> None:
        if stats is not None:
            self.rounds += 1
            self.seconds_cleaned += stats.seconds


class Reader(threading.Thread):
    """Reads the compacted log from its start to its end, again and again."""

    def __init__(self, log: Log, phase: Phase) -> None:
        super().__init__(daemon=True)
        self._log = log
        self._phase = phase
        self._handed: queue.SimpleQueue[FetchedData | None] = queue.SimpleQueue()
        self._is_idle = True
        self._next_offset = 0
        self.failure: Exception | None = None

    def hand(self) -> None:
        if not self._is_idle:
            return
        if self._next_offset >= self._log.high_watermark:
            self._next_offset = self._log.log_start_offset
        self._is_idle = False
        self._handed.put(
            self._log.read(
                self._next_offset, max_bytes=64 << 10, isolation=Isolation.HIGH_WATERMARK
            )
        )

    def stop(self) -> None:
        self._handed.put(None)
        self.join()
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        while (fetched := self._handed.get()) is not None:
            try:
                whole = fetched.whole_batches()
                self._next_offset = max(whole.next_offset, self._next_offset + 1)
                self._phase.reads += 1
            except Exception as error:  # noqa: BLE001 - told when it stops
                self.failure = error
            self._is_idle = True


class Flusher(threading.Thread):
    """Syncs what was appended, over and over; the owner plans and completes."""

    def __init__(self, logs: list[Log]) -> None:
        super().__init__(daemon=True)
        self._logs = logs
        self._handed: queue.SimpleQueue[tuple[Log, FlushTask] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Log, FlushTask]] = queue.SimpleQueue()
        self._under_way = 0

    def turn(self) -> None:
        """On the owner's thread: note what is durable, and hand over what is not."""
        while not self._done.empty():
            log, done = self._done.get()
            log.complete_flush(done)
            log.raise_high_watermark(log.log_end_offset)
            self._under_way -= 1
        if self._under_way == 0:
            for log in self._logs:
                if (task := log.plan_flush()) is not None:
                    self._under_way += 1
                    self._handed.put((log, task))

    def stop(self) -> None:
        self._handed.put(None)
        self.join()

    def run(self) -> None:
        while (handed := self._handed.get()) is not None:
            handed[1].run()
            self._done.put(handed)


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    batches = make_batches()
    seconds = min(SECONDS, effort.seconds)
    alone, beside = [], []
    for turn in range(TURNS):
        alone.append(run_phase(root / f"alone {turn}", batches, seconds, cleans=False))
        beside.append(run_phase(root / f"beside {turn}", batches, seconds, cleans=True))
    rounds = sum(phase.rounds for phase in beside)
    busy_s = sum(phase.seconds_cleaned for phase in beside)
    worst_ms = max(quantile(phase.latencies_ms, 0.999) for phase in beside)
    yield lower(
        "cleaning-load.p99",
        "append p99 at 20 MB/s beside compaction and retention",
        "ms",
        [quantile(phase.latencies_ms, 0.99) for phase in beside],
        [quantile(phase.latencies_ms, 0.99) for phase in alone],
        peer=ALONE,
        bar=Bar(value=5, ratio=3, either=True),
        note=f"p99.9 {worst_ms:.3g} ms; {rounds} rounds, {busy_s:.0f} s of {TURNS * seconds:.0f} s",
    )


def make_batches() -> list[bytes]:
    """Every key once, in no order."""
    made = random.Random(7)
    keys = list(range(KEYS))
    made.shuffle(keys)
    now_ms = time.time_ns() // 1_000_000
    return [
        build_batch(
            Record(b"key %08d" % key, made.randbytes(190), timestamp_ms=now_ms)
            for key in keys[first : first + RECORDS_A_BATCH]
        )
        for first in range(0, KEYS, RECORDS_A_BATCH)
    ]


def run_phase(root: Path, batches: list[bytes], seconds: float, *, cleans: bool) -> Phase:
    root.mkdir()
    manager = LogManager(
        BrokerConfig(
            log_dirs=(str(root),),
            log_initial_task_delay_ms=0,
            log_cleaner_enable=cleans,
            log_cleaner_backoff_ms=100,
            log_retention_check_interval_ms=500 if cleans else 10**9,
        ),
        topic_config=lambda topic: TOPICS[topic],
    )
    manager.start()
    phase = Phase()
    try:
        logs = [manager.create(COMPACTED), manager.create(DELETED)]
        for batch in batches:
            logs[0].append_as_leader(batch)
        logs[0].flush()
        write(manager, logs, batches, seconds, phase)
    finally:
        manager.shutdown()
        shutil.rmtree(root)
    return phase


def write(
    manager: LogManager, logs: list[Log], batches: list[bytes], seconds: float, phase: Phase
) -> None:
    """The owner's loop; its waits are short, for what the cleaner wants."""
    reader, flusher = Reader(logs[0], phase), Flusher(logs)
    reader.start()
    flusher.start()
    cleaner = manager.cleaner
    interval_s = len(batches[0]) / BYTES_A_SECOND
    started = time.perf_counter()
    last_run: CleanerStats | None = None
    for number in range(int(seconds / interval_s)):
        due = started + number * interval_s
        while time.perf_counter() < due:
            manager.run_due()
            flusher.turn()
            reader.hand()
            wait_s = min(due - time.perf_counter(), 0.0005)
            if wait_s > 0 and cleaner is not None:
                cleaner.inbox.wait(wait_s)
            elif wait_s > 0:
                time.sleep(wait_s)
        log = logs[number % 2]
        log.append_as_leader(batches[number % len(batches)])
        phase.latencies_ms.append((time.perf_counter() - due) * 1000)
        if cleaner is not None and (stats := cleaner.last_runs.get(COMPACTED)) is not last_run:
            last_run = stats
            phase.count(stats)
    reader.stop()
    flusher.stop()
    if cleaner is not None:
        while not cleaner.wait(1):
            pass
        if cleaner.uncleanable.all() or not cleaner.last_runs:
            raise RuntimeError(f"cleaning went wrong: {cleaner.status()}")
