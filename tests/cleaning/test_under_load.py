"""A writer, readers, the cleaner's threads and retention at once, on a real disk.

The owner's thread appends at a fixed rate, runs what is due, and hands slices of files to readers
on threads of their own, as a broker does. A record's value names its offset and its key, so that a
reader knows a wrong record when it sees one.
"""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Record, build_batch
from stratalog.records.columns import decode_columns
from stratalog.storage.check import check
from stratalog.storage.findings import Severity
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import FetchedData, Isolation

KEYS = 700
RECORDS_A_BATCH = 40
BATCHES_A_SECOND = 200

SMALL: dict[str, Any] = {
    "internal_segment_bytes": 200_000,
    "segment_index_bytes": 4096,
    "file_delete_delay_ms": 50,
    "min_cleanable_dirty_ratio": 0.01,
    "delete_retention_ms": 200,
}
TOPICS = {
    "compacted": TopicConfig(cleanup_policy=("compact",), **SMALL),
    "deleted": TopicConfig(cleanup_policy=("delete",), retention_bytes=600_000, **SMALL),
    "restless": TopicConfig(cleanup_policy=("compact",), **SMALL),
    "both": TopicConfig(cleanup_policy=("compact", "delete"), retention_bytes=50_000, **SMALL),
}
BROKER: dict[str, Any] = {
    "log_flush_on_ack": False,
    "log_dir_reserve_bytes": 0,
    "log_initial_task_delay_ms": 0,
    "log_retention_check_interval_ms": 20,
    "log_cleaner_backoff_ms": 10,
    "log_cleaner_threads": 2,
    "log_cleaner_dedupe_buffer_size": 8 << 20,
}


def key_of(number: int) -> bytes:
    # Some keys come often and some seldom, so that old records stay here and there.
    return b"key %d" % (number * number % KEYS)


class Reader(threading.Thread):
    """Reads what it is handed, over and over from the start of the log to its end."""

    def __init__(self, log: Log) -> None:
        super().__init__(daemon=True)
        self.log = log
        self.handed: queue.SimpleQueue[FetchedData | None] = queue.SimpleQueue()
        self.is_idle = threading.Event()
        self.is_idle.set()
        self.next_offset = 0
        self.passes = 0
        self.errors: list[Exception] = []

    def hand(self) -> None:
        """On the owner's thread: look the next slice up, if the last one has been read."""
        if not self.is_idle.is_set():
            return
        if self.next_offset >= self.log.high_watermark:
            self.passes += 1
            self.next_offset = self.log.log_start_offset
        offset = max(self.next_offset, self.log.log_start_offset)
        self.is_idle.clear()
        self.handed.put(self.log.read(offset, max_bytes=60_000, isolation=Isolation.HIGH_WATERMARK))

    def run(self) -> None:
        while (fetched := self.handed.get()) is not None:
            try:
                self._read(fetched)
            except Exception as error:  # noqa: BLE001 - the owner looks at it
                self.errors.append(error)
            self.is_idle.set()

    def _read(self, fetched: FetchedData) -> None:
        whole = fetched.whole_batches()
        before = -1
        for offset, key, value in rows(whole.content):
            assert offset > before, "offsets grow"
            assert value == value_of(offset, key)
            before = offset
        assert whole.next_offset > fetched.start_offset or not whole.content
        self.next_offset = max(whole.next_offset, fetched.start_offset + 1)


def value_of(offset: int, key: bytes) -> bytes:
    return b"%d of %s" % (offset, key) + b"." * (offset % 150)


def rows(content: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    batch = decode_columns(content, columns=("offset", "key", "value"))
    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@dataclass
class Load:
    manager: LogManager
    last: dict[str, dict[bytes, int]] = field(default_factory=dict)
    """By topic, where each key's last record lies."""
    appended: int = 0
    disturbed: int = 0

    def disturb(self) -> None:
        """Cut a log that is being cleaned, or take it away and make it anew."""
        key = TopicPartition("restless", 0)
        self.disturbed += 1
        if self.disturbed % 3:
            log = self.manager.get(key)
            self.manager.truncate_to(key, log.log_end_offset * (self.disturbed % 7) // 7)
        else:
            self.manager.delete(key)
            self.manager.create(key)

    def append(self, topic: str) -> None:
        log = self.manager.get(TopicPartition(topic, 0))
        first = log.log_end_offset
        keys = [key_of(first + index) for index in range(RECORDS_A_BATCH)]
        now_ms = time.time_ns() // 1_000_000
        records = [
            Record(key, value_of(first + index, key), (), now_ms) for index, key in enumerate(keys)
        ]
        info = log.append_as_leader(build_batch(records))
        assert info.first_offset == first
        log.update_high_watermark(log.log_end_offset)
        known = self.last.setdefault(topic, {})
        known.update((key, first + index) for index, key in enumerate(keys))
        self.appended += 1

    def is_early(self) -> bool:
        """Retention has not yet let go of anything: a busy machine takes longer to come there."""
        logs = [self.manager.get(TopicPartition(topic, 0)) for topic in ("deleted", "both")]
        return any(log.log_start_offset == 0 for log in logs)

    def run(self, seconds: float, readers: list[Reader]) -> None:
        """For so long, and until there is something of everything to check."""
        cleaner = self.manager.cleaner
        assert cleaner is not None
        started = time.monotonic()
        topics = list(TOPICS)
        while (elapsed := time.monotonic() - started) < (300 if self.is_early() else seconds):
            for reader in readers:
                reader.hand()
            self.manager.run_due()
            wait_s = self.appended / BATCHES_A_SECOND - elapsed
            if wait_s > 0:
                cleaner.inbox.wait(wait_s)  # and do meanwhile what the cleaner asks for
            else:
                self.append(topics[self.appended % len(topics)])
                if self.appended % (BATCHES_A_SECOND // 5) == 0:
                    self.disturb()


@contextmanager
def running(root: Path) -> Iterator[LogManager]:
    manager = LogManager(
        BrokerConfig(log_dirs=(str(root),), **BROKER),
        topic_config=lambda topic: TOPICS[topic],
    )
    manager.start()
    try:
        yield manager
    finally:
        manager.shutdown()


def check_run(load: Load, readers: list[Reader]) -> None:
    """After the last append: nothing went wrong, and every key has its last value."""
    manager = load.manager
    cleaner = manager.cleaner
    assert cleaner is not None
    for reader in readers:
        reader.handed.put(None)
        reader.join(120)
        assert not reader.errors, reader.errors[0]
        assert reader.passes > 0
    while not cleaner.wait(1):
        pass
    status = cleaner.status()
    assert not status.uncleanable
    assert {key.topic for key in status.last_runs} >= {"compacted", "both"}
    assert not manager.retention_failures
    for log in manager:
        assert log.failure is None
        errors = [str(each) for each in check(log) if each.severity is Severity.ERROR]
        assert not errors
    check_contents(load)


def check_contents(load: Load) -> None:
    for topic, last in load.last.items():
        log = load.manager.get(TopicPartition(topic, 0))
        found: dict[bytes, int] = {}
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            fetched = log.read(offset, max_bytes=1 << 20, isolation=Isolation.LOG_END)
            whole = fetched.whole_batches()
            if not whole.content:
                break  # a cut took a whole batch, and the log ends behind it
            for at, key, value in rows(whole.content):
                assert value == value_of(at, key)
                found[key] = at
            offset = whole.next_offset
        start = log.log_start_offset
        if topic == "restless":
            continue  # what was cut may have superseded what stays
        assert found == {key: at for key, at in last.items() if at >= start}
        assert (start > 0) == (topic != "compacted")


def run_load(root: Path, seconds: float) -> Load:
    with running(root) as manager:
        logs = [manager.create(TopicPartition(topic, 0)) for topic in TOPICS]
        readers = [Reader(log) for log in logs if log.topic_partition.topic != "restless"]
        for reader in readers:
            reader.start()
        load = Load(manager)
        load.run(seconds, readers)
        check_run(load, readers)
        return load


def test_writers_readers_cleaning_and_retention_do_not_meet(tmp_path: Path) -> None:
    run_load(tmp_path, 4)


@pytest.mark.deep
def test_nor_do_they_in_a_long_run(tmp_path: Path) -> None:
    run_load(tmp_path, 120)
