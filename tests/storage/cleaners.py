"""Cleaners over compacted logs, whose workers can be stopped at any operation of theirs.

A worker stands still at a chosen operation while the test, which is the owner's thread, does
something to the log under it; then it goes on. Nobody sleeps, and every wait has an end.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from managers import manager as new_manager
from small_logs import START_MS

from stratalog.config import TopicConfig
from stratalog.records import Record, build_batch
from stratalog.records.columns import decode_records
from stratalog.storage.check import check
from stratalog.storage.cleaning.cleaner import LogCleaner
from stratalog.storage.cleaning.states import Uncleanable
from stratalog.storage.findings import Kind
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation
from stratalog.testing import Fault, ManualClock, SimulatedFileSystem
from stratalog.testing.files import SimulatedFile

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
TIMEOUT_S = 120.0

COMPACT = TopicConfig(
    cleanup_policy=("compact",),
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    min_cleanable_dirty_ratio=0.0,
    file_delete_delay_ms=0,
)
# What reading all of ``written`` comes to.
EXPECTED = {b"key-%d" % (offset % 3): b"value of %d" % offset for offset in range(16)}


class WorkerFiles(SimulatedFileSystem):
    """Tells ``on_worker`` of every operation of a cleaner's thread, opens and reads included."""

    def __init__(self, **options: Any) -> None:
        super().__init__(count_reads=True, **options)
        self.on_worker: Callable[[str, str], None] = lambda _kind, _path: None
        self.worker_operations: list[tuple[str, str]] = []

    def begin(self, kind: str, path: str, *detail: object) -> Fault | None:
        self._tell(kind, path)
        return super().begin(kind, path, *detail)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SimulatedFile:
        self._tell("open", path)
        return super().open(path, create=create, writable=writable)

    def sync_directory(self, path: str) -> None:
        self._tell("look", path)
        super().sync_directory(path)

    def _tell(self, kind: str, path: str) -> None:
        if threading.current_thread().name.startswith("kafka-log-cleaner-thread"):
            self.worker_operations.append((kind, path))
            self.on_worker(kind, path)

    def open_files(self) -> int:
        return sum(getattr(node, "open_count", 0) for node in self._root.nodes())


class Stop:
    """A worker waits at its operation ``number`` until ``release``."""

    def __init__(self, files: WorkerFiles, number: int) -> None:
        self._arrived = threading.Event()
        self._released = threading.Event()
        self._number = number
        self._lock = threading.Lock()
        files.on_worker = self._meet

    def _meet(self, _kind: str, _path: str) -> None:
        with self._lock:
            self._number -= 1
            is_here = self._number == -1
        if is_here:
            self._arrived.set()
            assert self._released.wait(TIMEOUT_S), "nobody let the worker go on"

    @property
    def has_arrived(self) -> bool:
        return self._arrived.is_set()

    def wait(self, cleaner: LogCleaner) -> bool:
        """As the owner: help the round along until the worker stands there, or it is over."""
        for _ in range(int(TIMEOUT_S * 200)):
            if self._arrived.wait(0.005):
                return True
            cleaner.inbox.run_all()
            if not cleaner.states.all():
                return self._arrived.is_set()
        raise AssertionError("the worker neither arrived nor ended")

    def release(self) -> None:
        self._released.set()


@contextmanager
def cleaning(
    files: SimulatedFileSystem | None = None,
    *directories: str,
    topic: TopicConfig = COMPACT,
    clock: ManualClock | None = None,
    **settings: Any,
) -> Iterator[LogManager]:
    """A started manager, shut down at the end."""
    clock = clock or ManualClock(START_MS)
    settings = {"log_cleaner_dedupe_buffer_size": 5 << 20} | settings
    logs = new_manager(
        files if files is not None else WorkerFiles(now_ms=clock.now_ms),
        *directories,
        clock=clock,
        topic=topic,
        **settings,
    )
    # The simulated disk is for one thread, and for a worker that takes turns with it.
    logs._is_threaded = True
    logs.start()
    try:
        yield logs
    finally:
        logs.shutdown()


def cleaner_of(logs: LogManager) -> LogCleaner:
    assert logs.cleaner is not None, "the cleaner is enabled"
    return logs.cleaner


def files_of(logs: LogManager) -> WorkerFiles:
    assert isinstance(logs.files, WorkerFiles), "a disk that tells"
    return logs.files


def clock_of(logs: LogManager) -> ManualClock:
    assert isinstance(logs.clock, ManualClock), "a clock with hands"
    return logs.clock


def write(log: Log, rows: int = 16, *, keys: int = 3, at_ms: int = START_MS) -> Log:
    """Records of one batch each, their values naming their offsets; all can be seen."""
    for _ in range(rows):
        offset = log.log_end_offset
        row = Record(b"key-%d" % (offset % keys), b"value of %d" % offset, (), at_ms)
        log.append_as_leader(build_batch([row]))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


def written(logs: LogManager, key: TopicPartition = ORDERS, rows: int = 16, **where: Any) -> Log:
    return write(logs.create(key, **where), rows)


def values(log: Log) -> dict[int, bytes | None]:
    """What a reader finds: the values, by offset."""
    found: dict[int, bytes | None] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes=1 << 20, isolation=Isolation.LOG_END)
        if fetched.records is None:
            break
        data = fetched.whole_batches()
        for record in decode_records(data.content, include_control=False):
            if record.offset >= offset:
                found[record.offset] = record.value
        offset = data.next_offset
    return found


def latest(log: Log, *, keys: int = 3) -> dict[bytes, bytes]:
    """What somebody who reads all of ``log`` believes at the end, by what ``write`` wrote."""
    state: dict[bytes, bytes] = {}
    for offset, value in values(log).items():
        assert value == b"value of %d" % offset, f"offset {offset} holds {value!r}"
        state[b"key-%d" % (offset % keys)] = value
    return state


def check_log(log: Log) -> None:
    """All is in order, on disk and in memory, but for epochs that nobody has assigned."""
    found = [str(each) for each in check(log) if each.kind is not Kind.LEADER_EPOCHS]
    assert found == []


def leftovers(logs: LogManager) -> list[str]:
    """Files that no finished or aborted round may leave."""
    names = files_of(logs).tree("/")
    # What is in the directory of a deleted log goes with it.
    return [n for n in names if n.endswith((".cleaned", ".swap")) and "-delete/" not in n]


def run_round(logs: LogManager) -> None:
    """One turn of the cleaner, until all it began is over."""
    cleaner_of(logs).run(logs.clock.now_ms())
    assert cleaner_of(logs).wait(TIMEOUT_S), "the rounds do not end"


def stopped(number: int, logs: LogManager) -> Stop:
    stop = Stop(files_of(logs), number)
    cleaner_of(logs).run(logs.clock.now_ms())
    assert stop.wait(cleaner_of(logs)), "a round has so many operations"
    return stop


def garble(logs: LogManager, log: Log, segment: int = 1) -> Callable[[], None]:
    """Damage a batch in the middle of the log; returns what mends it."""
    path = list(log.segments)[segment].path
    files_of(logs).flip(path, 70, 1)
    return lambda: files_of(logs).flip(path, 70, 1)


def marked(logs: LogManager, key: TopicPartition = ORDERS) -> Uncleanable:
    return cleaner_of(logs).status().uncleanable[key]


def keys(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]
