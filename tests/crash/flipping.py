"""A small log directory, everything one can ask of it, and what one flipped byte changes."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from crash_scenario import START_MS

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import StratalogError
from stratalog.records import (
    AppendOrigin,
    Codec,
    Record,
    build_batch,
    build_end_transaction_marker,
    check_crc,
    read_header,
)
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.lookup import list_offset
from stratalog.storage.manager import LogManager
from stratalog.storage.producers import ProducerState
from stratalog.storage.reading import Isolation
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

KEY = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
CONFIG = TopicConfig(internal_segment_bytes=420, segment_index_bytes=48, index_interval_bytes=60)
BROKER = BrokerConfig(
    transaction_partition_verification_enable=False,
    log_dirs=("/data",),
    log_dir_reserve_bytes=0,
    num_recovery_threads_per_data_dir=1,
    log_flush_on_ack=False,
)


def manager_on(files: SimulatedFileSystem) -> LogManager:
    return LogManager(
        BROKER,
        files=files,
        clock=ManualClock(START_MS),
        topic_config=lambda _topic: CONFIG,
        is_threaded=False,
    )


@cache
def small_directory(*, clean: bool) -> SimulatedFileSystem:
    """Two segments with two epochs, two aborted transactions and an open one, every kind of file,
    and a first record that was deleted."""
    files = SimulatedFileSystem()
    manager = manager_on(files)
    manager.start()
    log = manager.create(KEY, topic_id=TOPIC_ID)
    transaction = {"producer_id": 5, "producer_epoch": 0}
    for number in range(7):
        epoch = 3 if number < 3 else 300
        identity = transaction | {"base_sequence": number // 2} if number % 2 else {}
        records = [Record(b"k%d" % number, b"value %d" % number, (), START_MS + number * 10)]
        codec = Codec.GZIP if number == 3 else Codec.NONE
        batch = build_batch(records, codec=codec, transactional=bool(identity), **identity)
        log.append_as_leader(batch, leader_epoch=epoch)
        if number in (1, 3):
            marker = build_end_transaction_marker(
                commit=False, coordinator_epoch=0, timestamp_ms=START_MS, **transaction
            )
            log.append_as_leader(marker, leader_epoch=epoch, origin=AppendOrigin.COORDINATOR)
        if number == 4:
            manager.flush_appended()
            log.update_high_watermark(log.log_end_offset)
            log.delete_records(1)
            manager.checkpoint_recovery_points()
            manager.checkpoint_log_start_offsets()
            manager.checkpoint_high_watermarks()
    if clean:
        manager.shutdown()
    return files.after_crash(CrashMode.KEEP_ALL)


@dataclass
class Observation:
    """All that was asked, with the answers, or the errors where there were any."""

    answers: dict[str, object] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def ask(self, question: str, answer: Callable[[], object]) -> None:
        try:
            self.answers[question] = answer()
        except StratalogError as error:
            self.errors[question] = f"{type(error).__name__}: {error}"


def observe(files: SimulatedFileSystem) -> Observation:
    """Start a manager on ``files`` and ask the log everything."""
    seen = Observation()
    manager = manager_on(files)

    def start() -> str:
        manager.start()
        return manager.directories[0].state.reason

    seen.ask("start", start)
    if "start" in seen.errors:
        return seen
    seen.ask("open", lambda: manager.get(KEY).directory)
    if "open" in seen.errors:
        return seen
    log = manager.get(KEY)
    if log.is_damaged:
        seen.errors["damage"] = str(log.recovery_report.damage)
    seen.ask("range", lambda: (log.log_start_offset, log.log_end_offset))
    seen.ask("high watermark", lambda: log.high_watermark)
    seen.ask("topic id", lambda: log.topic_id)
    seen.ask("epochs", lambda: log.epochs.entries)
    seen.ask("producers", lambda: sorted(map(_producer, log.producers)))
    log.update_high_watermark(log.log_end_offset)
    for offset in range(10):
        seen.ask(f"read {offset}", lambda offset=offset: first_batch(log, offset))
    seen.ask("aborted", lambda: aborted(log))
    for timestamp_ms in (START_MS, START_MS + 15, START_MS + 30, START_MS + 45, START_MS + 60):
        seen.ask(f"time {timestamp_ms}", lambda at=timestamp_ms: list_offset(log, at).offset)
    seen.ask("latest time", lambda: list_offset(log, -3).offset)
    if not log.is_damaged:
        batch = build_batch([Record(b"new", b"value", (), START_MS + 100)])
        seen.ask("append", lambda: log.append_as_leader(batch, leader_epoch=300).first_offset)
        if "append" in seen.answers:
            log.update_high_watermark(log.log_end_offset)
            seen.ask("appended", lambda: first_batch(log, log.log_end_offset - 1))
        seen.ask("roll", lambda: log.roll().base_offset)
    seen.ask("stop", manager.shutdown)
    return seen


def _producer(state: ProducerState) -> tuple[object, ...]:
    return (
        state.producer_id,
        state.epoch,
        state.last_sequence,
        state.last_data_offset,
        state.transaction_first_offset,
    )


def first_batch(log: Log, offset: int) -> tuple[int, int, bytes] | str:
    """What a consumer that checks CRCs gets at ``offset``: offset, epoch and the rest."""
    fetched = log.read(offset, max_bytes=1, isolation=Isolation.HIGH_WATERMARK)
    if fetched.records is None:
        return "nothing"
    data = fetched.records.read()
    header = read_header(data)
    if header is None or header.size_bytes > len(data) or not check_crc(data):
        return "consumer: corrupt"
    return header.base_offset, header.partition_leader_epoch, data[17:]


def aborted(log: Log) -> list[tuple[int, int]]:
    found = set()
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        fetched = log.read(offset, max_bytes=10_000, isolation=Isolation.TXN_COMMITTED)
        if fetched.records is None:
            break
        found |= {(each.producer_id, each.first_offset) for each in fetched.aborted or ()}
        data = fetched.records.read()
        position = 0
        while position < len(data) and (header := read_header(data, position)) is not None:
            position += header.size_bytes
            offset = max(offset + 1, header.next_offset)
    return sorted(found)
