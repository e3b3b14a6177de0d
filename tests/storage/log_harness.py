"""Batches of known size and logs on a simulated disk: what the tests of a log are made of."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from stratalog.config import TopicConfig
from stratalog.records import (
    AppendOrigin,
    BatchHeader,
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.storage.appending import LogAppendInfo
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.files import FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import segment_file
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation
from stratalog.storage.recovery import open_log
from stratalog.testing import ManualClock, Operation, SimulatedFileSystem

DIRECTORY = "/logs/t-0"
START_MS = 1_700_000_000_000
EVERYTHING = 1 << 30

# Small indexes: a simulated disk holds preallocated zeros in memory. Timestamps may be anything.
SMALL: dict[str, Any] = {
    "segment_index_bytes": 1200,
    "message_timestamp_after_max_ms": 2**62,
}


def batch(count: int = 1, *, timestamp_ms: int = START_MS, **options: Any) -> bytes:
    """A batch of ``count`` records that all have one timestamp."""
    return build_batch([Record(b"k", b"value", (), timestamp_ms)] * count, **options)


def timed_batch(timestamps: Sequence[int], **options: Any) -> bytes:
    return build_batch([Record(b"k", b"v", (), each) for each in timestamps], **options)


def sized_batch(size_bytes: int, *, timestamp_ms: int = START_MS, **options: Any) -> bytes:
    """A batch of one record that takes exactly ``size_bytes``, between 68 and 124."""
    built = build_batch([Record(None, bytes(size_bytes - 68), (), timestamp_ms)], **options)
    assert len(built) == size_bytes, "the record has one-byte lengths"
    return built


def produced(
    producer_id: int, sequence: int, count: int = 1, *, epoch: int = 0, **options: Any
) -> bytes:
    """A batch of an idempotent producer."""
    return batch(
        count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **options
    )


def append_transactional(log: Log, producer_id: int, sequence: int, count: int = 1) -> int:
    return log.append_as_leader(
        produced(producer_id, sequence, count, transactional=True)
    ).first_offset


def end_transaction(
    log: Log,
    producer_id: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp_ms: int = START_MS,
) -> LogAppendInfo:
    marker = build_end_transaction_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=timestamp_ms,
    )
    return log.append_as_leader(marker, origin=AppendOrigin.COORDINATOR)


def new_context(files: FileSystem, *, flush_on_ack: bool = False) -> LogContext:
    clock = ManualClock(START_MS)
    return LogContext(files, clock, HandleCache(), DirectoryState(), flush_on_ack=flush_on_ack)


def new_log(*, context: LogContext | None = None, directory: str = DIRECTORY, **config: Any) -> Log:
    """A new log, on a simulated disk of its own unless ``context`` brings another."""
    context = context or new_context(SimulatedFileSystem())
    for path in (PurePosixPath(directory).parent, PurePosixPath(directory)):
        if not context.files.exists(str(path)):
            context.files.make_directory(str(path))
            context.files.sync_directory(str(path.parent))
    return open_log(directory, TopicConfig(**{**SMALL, **config}), context, clean=True)


def reopened(
    log: Log,
    *,
    clean: bool = True,
    files: FileSystem | None = None,
    recovery_point: int | None = None,
    is_recovery_point_known: bool = True,
) -> Log:
    """The log as the next process finds it: closed in order, or left as it was."""
    if clean and not log.is_closed:
        log.close()
    log.abandon()
    known = log.recovery_point if recovery_point is None else recovery_point
    context = log.context
    fresh = LogContext(
        files or context.files,
        context.clock,
        HandleCache(),
        DirectoryState(),
        flush_on_ack=context.flush_on_ack,
        producer_expiration_ms=context.producer_expiration_ms,
    )
    return open_log(
        log.directory,
        log.config,
        fresh,
        clean=clean,
        recovery_point=known if is_recovery_point_known else None,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
    )


def disk_of(log: Log) -> SimulatedFileSystem:
    files = log.context.files
    assert isinstance(files, SimulatedFileSystem), "this log lives on a real disk"
    return files


def clock_of(log: Log) -> ManualClock:
    clock = log.context.clock
    assert isinstance(clock, ManualClock), "this log runs by the real time"
    return clock


def content(log: Log, base_offset: int, suffix: str) -> bytes:
    return disk_of(log).contents(segment_file(log.directory, base_offset, suffix))


def names(log: Log) -> set[str]:
    """The files of the replica, less what is only ours."""
    return {e.name for e in log.context.files.list(log.directory) if not e.is_directory}


def trace_since(log: Log, number: int) -> list[tuple[str, str]]:
    """(operation, file name) of what happened after operation ``number``, ours left out."""
    return [(each.kind, PurePosixPath(each.path).name) for each in _kafkas(log, number)]


def _kafkas(log: Log, number: int) -> list[Operation]:
    return [o for o in disk_of(log).trace if o.number > number and ".stratalog" not in o.path]


def fetch(
    log: Log,
    start_offset: int,
    *,
    max_bytes: int = EVERYTHING,
    isolation: Isolation = Isolation.LOG_END,
) -> list[BatchHeader]:
    """The whole batches that one read returns."""
    fetched = log.read(start_offset, max_bytes=max_bytes, isolation=isolation)
    return [] if fetched.records is None else read_headers(fetched.records.read())


def read_all(log: Log, *, isolation: Isolation = Isolation.LOG_END) -> list[bytes]:
    """Every batch from the log start on, over as many reads as it takes."""
    found = []
    offset = log.log_start_offset
    while True:
        fetched = log.read(offset, max_bytes=300, isolation=isolation)
        if fetched.records is None:
            return found
        data = fetched.records.read()
        headers = read_headers(data)
        found += [data[h.position : h.position + h.size_bytes] for h in headers]
        assert headers[-1].next_offset > offset, "reads move on"
        offset = headers[-1].next_offset
