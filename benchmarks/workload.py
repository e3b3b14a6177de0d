"""The data that is measured with: 16 KiB batches of incompressible records of about 220 bytes."""

import os
import random
import time
from pathlib import Path

from stratalog.config import TopicConfig
from stratalog.records import Record, build_batch
from stratalog.storage.context import LogContext
from stratalog.storage.files import OsFile, OsFileSystem
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log

KEY_BYTES = 16
VALUE_BYTES = 190
RECORDS_A_BATCH = 75


class UnsyncedFileSystem(OsFileSystem):
    """For preparing what will be measured: nothing has to survive a loss of power."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> "UnsyncedFile":
        opened = super().open(path, create=create, writable=writable)
        return UnsyncedFile(path, os.dup(opened.fileno()))

    def sync_directory(self, path: str) -> None:
        pass


class UnsyncedFile(OsFile):
    def sync(self) -> None:
        pass


def make_batches(count: int, *, seed: int = 1) -> list[bytes]:
    """Produced batches, a second of event time apart, all of them within the last hour."""
    made = random.Random(seed)
    start_ms = time.time_ns() // 1_000_000 - 3_600_000
    return [
        build_batch(
            Record(
                made.randbytes(KEY_BYTES),
                made.randbytes(VALUE_BYTES),
                timestamp_ms=start_ms + number * 1_000 + index,
            )
            for index in range(RECORDS_A_BATCH)
        )
        for number in range(count)
    ]


def new_log(
    root: Path, name: str = "bench-0", config: TopicConfig | None = None, *, synced: bool = True
) -> Log:
    directory = root / name
    directory.mkdir()
    context = LogContext.default()
    if not synced:
        context.files = UnsyncedFileSystem()
    return open_log(str(directory), config or TopicConfig(), context, clean=True)


def fill(log: Log, size_bytes: int) -> int:
    """Append until ``size_bytes`` are there; returns the number of records."""
    batches = make_batches(400)
    written = records = 0
    while written < size_bytes:
        for batch in batches:
            log.append_as_leader(batch)
            written += len(batch)
            records += RECORDS_A_BATCH
    return records
