"""Cleaning one log, with one thread: ours, Apache Kafka's own cleaner, and the bare bytes moved.

    random       2 GiB of records of 100 bytes, each with one of 1 M keys: nearly all superseded
    distinct     500 MB of them, no key twice and as many as fit the map: all are kept
    wide         as much, in records of 1 KB
    memory       20 M keys, no two alike, cleaned to the end in as many rounds as the map needs

All logs lie in the page cache. MB/s are bytes of the cleaned range by wall clock, in turns that
measure each side once. Apache Kafka's cleaner runs with the JVM settings of its broker and is
warmed by cleaning a smaller log three times.
"""

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.effort import SCALE, Effort, repeats, scaled
from benchmarks.measurement import KAFKA, NO_BAR, Bar, Outcome, Peer, higher, lower
from benchmarks.memory_touching import touch_memory
from benchmarks.peers import kafka_logs, kafka_note
from benchmarks.workload import UnsyncedFileSystem
from stratalog.config import TopicConfig
from stratalog.records._kernels import encode_records, seal_batch
from stratalog.storage.cleaning.rounds import RoundResult, clean_now
from stratalog.storage.context import LogContext
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log

if TYPE_CHECKING:
    from log_oracle import KafkaLogs

START_MS = 1_700_000_000_000
NOW_MS = START_MS + 3_600_000
MAP_BYTES = 128 << 20
LOG_BYTES = scaled(2 << 30)
KEYS = scaled(1_000_000)
DISTINCT = scaled(5_000_000)
MEMORY_KEYS = scaled(20_000_000)
RECORDS_A_BATCH = 160
VALUE_BYTES = 73  # of a record that takes 100 bytes, its key of 16 included
PRIVATE_MB_MAX = MAP_BYTES / 1e6 + 64
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(max(int((1 << 30) * SCALE), 1 << 20)),
}
BARE = Peer("bare read, read, write, fsync", is_rival=False)


class Rate(NamedTuple):
    """MB/s by wall clock, and by the time that was spent on a core."""

    wall: float
    core: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one case, all its turns."""

    bare: list[Rate]
    ours: list[Rate]
    kafka: list[Rate]


@dataclass(frozen=True, slots=True)
class Case:
    """A log to clean, and the bars for it."""

    name: str
    what: str
    batches: Callable[[], Iterator[list[bytes]]]
    value_bytes: int = VALUE_BYTES
    core_bar: Bar = NO_BAR
    kafka_bar: Bar = NO_BAR
    bare_bar: Bar = NO_BAR

    def write(self, root: Path) -> Path:
        write_log(root / f"{self.name}-0", self.batches(), self.value_bytes)
        return root / f"{self.name}-0"

    def rows(self, rates: Rates) -> Iterator[Outcome]:
        ours = [each.wall for each in rates.ours]
        yield higher(
            f"cleaning.{self.name}",
            self.what,
            "MB/s",
            ours,
            [each.wall for each in rates.kafka],
            peer=KAFKA,
            bar=self.kafka_bar,
            note=kafka_note("one thread each"),
            is_headline=self.kafka_bar is not NO_BAR,
        )
        core = [each.core for each in rates.ours]
        yield higher(
            f"cleaning.{self.name}.core",
            self.what,
            "MB/s a core",
            core,
            [each.core for each in rates.kafka],
            peer=KAFKA,
            bar=self.core_bar,
            note=kafka_note("Apache Kafka's thread alone, without those that collect its garbage"),
        )
        bare = [each.wall for each in rates.bare]
        yield higher(
            f"cleaning.{self.name}.bare",
            self.what,
            "MB/s",
            ours,
            bare,
            peer=BARE,
            bar=self.bare_bar,
        )


def cases() -> tuple[Case, ...]:
    return (
        Case(
            "random",
            f"compaction of {LOG_BYTES / 1e9:.2g} GB of 100-byte records with {KEYS:,} keys",
            lambda: random_keys(LOG_BYTES // (RECORDS_A_BATCH * 100)),
            core_bar=Bar(value=250),
            kafka_bar=Bar(ratio=3),
        ),
        Case(
            "distinct",
            f"compaction where nothing is superseded: {DISTINCT:,} keys, 100-byte records",
            lambda: distinct_keys(DISTINCT),
            # No bar by the bare bytes: hashing a key and finding it a place in 128 MiB takes as
            # long as moving 100 bytes three times.
        ),
        Case(
            "wide",
            f"compaction where nothing is superseded: {DISTINCT // 10:,} keys, 1 KB records",
            lambda: distinct_keys(DISTINCT // 10),
            value_bytes=1_000,
            bare_bar=Bar(ratio=0.6),
        ),
    )


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    with warmed_kafka(root) as kafka:
        for case in cases():
            log = case.write(root)
            rates = Rates([], [], [])
            for _ in range(repeats(3 if case.kafka_bar is not NO_BAR else 2)):
                measure(log, root, kafka, rates)
            yield from case.rows(rates)
            shutil.rmtree(log)
    yield memory_row(root)


def measure(log: Path, root: Path, kafka: "KafkaLogs | None", rates: Rates) -> None:
    """One after the other, so that what else the machine does meets all of them alike."""
    size_bytes = sum(file.stat().st_size for file in log.iterdir())
    touch_memory(root, size_bytes)
    rates.bare.append(move_bytes(log))
    with copied(log, root / "ours") as ours:
        touch_memory(root, size_bytes)
        rates.ours.append(clean(ours))
    if kafka is not None:
        with copied(log, root / "kafka") as theirs:
            touch_memory(root, size_bytes)
            rates.kafka.append(clean_with_kafka(kafka, theirs))


@contextmanager
def copied(log: Path, root: Path) -> Iterator[Path]:
    shutil.copytree(log, root / log.name)
    try:
        yield root / log.name
    finally:
        shutil.rmtree(root)


def memory_row(root: Path) -> Outcome:
    command = [sys.executable, "-m", "benchmarks.cleaning", str(root / "memory-0")]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    peak_mb, rounds = answer.stdout.split()
    return lower(
        "cleaning.memory",
        f"memory while compacting {MEMORY_KEYS:,} keys with a map of {MAP_BYTES >> 20} MiB",
        "MB",
        [float(peak_mb)],
        bar=Bar(value=round(PRIVATE_MB_MAX)),
        note=f"{rounds} rounds",
    )


# --- the logs ---------------------------------------------------------------------------------


def random_keys(batches: int) -> Iterator[list[bytes]]:
    keys, dice = [b"%016d" % key for key in range(KEYS)], random.Random(1)
    for _ in range(batches):
        yield dice.choices(keys, k=RECORDS_A_BATCH)


def distinct_keys(count: int) -> Iterator[list[bytes]]:
    for first in range(0, count, RECORDS_A_BATCH):
        yield [b"%016d" % key for key in range(first, min(first + RECORDS_A_BATCH, count))]


def write_log(
    directory: Path, batches: Iterator[list[bytes]], value_bytes: int = VALUE_BYTES
) -> None:
    """A closed log of uncompressed batches of these keys, and a last one as active segment."""
    directory.mkdir()
    context = LogContext.default()
    context.files = UnsyncedFileSystem()
    log = open_log(str(directory), TopicConfig.from_properties(CONFIGS), context, clean=True)
    value = random.Random(2).randbytes(value_bytes)
    for keys in batches:
        log.append_as_leader(_batch(keys, value))
    log.roll()
    log.append_as_leader(_batch([b"last"], value))
    log.close()


def _batch(keys: list[bytes], value: bytes) -> bytearray:
    count = len(keys)
    times = list(range(START_MS, START_MS + count))
    return seal_batch(
        encode_records(keys, [value] * count, None, times, START_MS),
        base_offset=0,
        last_offset_delta=count - 1,
        record_count=count,
        attributes=0,
        base_timestamp_ms=START_MS,
        max_timestamp_ms=times[-1],
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        partition_leader_epoch=-1,
    )


def cleaned_bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in sorted(directory.glob("*.log"))[:-1])


# --- what is measured -------------------------------------------------------------------------


@contextmanager
def opened(directory: Path) -> Iterator[Log]:
    config = TopicConfig.from_properties(CONFIGS)
    log = open_log(str(directory), config, LogContext.default(), clean=True)
    log.flush()
    log.raise_high_watermark(log.log_end_offset)
    try:
        yield log
    finally:
        log.close()


def clean(directory: Path) -> Rate:
    size_mb = cleaned_bytes(directory) / 1e6
    with opened(directory) as log:
        os.sync()
        started, worked = time.perf_counter(), time.process_time()
        result = clean_now(log, first_dirty_offset=0, now_ms=NOW_MS, map_bytes=MAP_BYTES)
        wall_s, worked_s = time.perf_counter() - started, time.process_time() - worked
    assert result.end_offset == log.segments.active.base_offset, "the keys did not fit the map"
    return Rate(size_mb / wall_s, size_mb / worked_s)


def move_bytes(directory: Path, *, buffer_bytes: int = 1 << 20) -> Rate:
    """Reading each segment twice, writing it once and syncing it."""
    size_mb = cleaned_bytes(directory) / 1e6
    buffer = memoryview(bytearray(buffer_bytes))
    os.sync()
    started, worked = time.perf_counter(), time.process_time()
    for source in sorted(directory.glob("*.log"))[:-1]:
        copy = source.with_suffix(".copy")
        with source.open("rb", 0) as read, copy.open("wb", 0) as written:
            while read.readinto(buffer):
                pass
            read.seek(0)
            while size := read.readinto(buffer):
                written.write(buffer[:size])
            os.fsync(written.fileno())
    wall_s, worked_s = time.perf_counter() - started, time.process_time() - worked
    for copy in directory.glob("*.copy"):
        copy.unlink()
    return Rate(size_mb / wall_s, size_mb / worked_s)


def clean_with_kafka(logs: "KafkaLogs", directory: Path) -> Rate:
    size_mb = cleaned_bytes(directory) / 1e6
    os.sync()
    answer = logs.ask("clean", directory, CONFIGS, now_ms=NOW_MS, map_bytes=MAP_BYTES)
    assert answer["end_offset"] == answer["first_uncleanable_offset"], answer
    return Rate(size_mb / answer["elapsed_s"], size_mb / answer["worked_s"])


@contextmanager
def warmed_kafka(root: Path) -> Iterator["KafkaLogs | None"]:
    """Apache Kafka's cleaner, its code compiled by use; None where it cannot run."""
    with kafka_logs() as logs:
        if logs is not None:
            write_log(root / "warm-0", random_keys(LOG_BYTES // (RECORDS_A_BATCH * 800)))
            for _ in range(3):
                with copied(root / "warm-0", root / "kafka") as warm:
                    clean_with_kafka(logs, warm)
        yield logs


# --- memory, in a process of its own ----------------------------------------------------------


def private_mb() -> float:
    """What belongs to this process alone."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024 / 1e6


def peak_while_cleaning(directory: Path) -> tuple[float, int]:
    """The peak in MB, and how many rounds it took to clean everything."""
    write_log(directory, distinct_keys(MEMORY_KEYS), 16)
    peak, finished = [private_mb()], threading.Event()

    def watch() -> None:
        while not finished.wait(0.02):
            peak.append(max(peak[-1], private_mb()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with opened(directory) as log:
        rounds, dirty, end = 0, 0, log.segments.active.base_offset
        while dirty < end:
            result: RoundResult = clean_now(
                log, first_dirty_offset=dirty, now_ms=NOW_MS, map_bytes=MAP_BYTES
            )
            assert result.end_offset > dirty
            rounds, dirty = rounds + 1, result.end_offset
        assert result.stats.messages_kept > 0
    finished.set()
    watcher.join()
    return peak[-1], rounds


if __name__ == "__main__":
    print(*peak_while_cleaning(Path(sys.argv[1])))
