"""Scanning to Arrow, from page cache, on one core: what ``stratalog.scan`` and Spark tasks run."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.result import Result
from benchmarks.workload import KEY_BYTES, RECORDS_A_BATCH, VALUE_BYTES
from stratalog.records import Codec, Record, build_batch
from stratalog.scans.columns import KAFKA_COLUMNS
from stratalog.scans.reading import read_task
from stratalog.scans.slices import FileIdentity, ReadOptions, RowFilter, ScanSlice, ScanTask
from stratalog.storage.layout import TopicPartition

SEVEN = tuple(name for name in KAFKA_COLUMNS if name != "headers")
PARTITION = TopicPartition("bench", 0)
SCAN_BYTES = 512 << 20
ROUNDS = 5


def run(root: Path) -> list[Result]:
    task = _write(root, SCAN_BYTES)
    full = _best(task, ReadOptions(SEVEN))
    keys = _best(task, ReadOptions(("key", "offset")))
    one_key = _best(task, ReadOptions(SEVEN, row_filter=_one_key()))
    results = [
        Result("scan to Arrow, 7 columns", _rate(task, full), "GB/s a core", 1),
        Result("scan to Arrow, key and offset", _rate(task, keys), "GB/s a core", None),
        Result("key and offset against 7 columns", full / keys, "times", None),
        Result("scan to Arrow, rows of one key", _rate(task, one_key), "GB/s a core", None),
        Result("scan to Arrow, 8 columns, with headers", _headers(root), "GB/s a core", None),
    ]
    return results + [_codec(root, codec) for codec in Codec if codec is not Codec.NONE]


def _one_key() -> RowFilter:
    return RowFilter(keys=frozenset([b"\0" * KEY_BYTES]))


def _headers(root: Path) -> float:
    task = _write(root, SCAN_BYTES // 4, headers=(("trace", b"0123456789abcdef"), ("k", b"v")))
    return _rate(task, _best(task, ReadOptions(KAFKA_COLUMNS)))


def _codec(root: Path, codec: Codec) -> Result:
    """Of bytes decompressed: values that compress to about a half."""
    task = _write(root, SCAN_BYTES // 8, codec=codec, value=lambda: os.urandom(90).hex().encode())
    records = sum(batch.num_rows for batch in read_task(task, ReadOptions(("offset",))))
    seconds = _best(task, ReadOptions(SEVEN))
    decoded_bytes = records * (KEY_BYTES + 180 + 8)
    what = f"scan to Arrow, 7 columns, {codec.name.lower()}"
    return Result(what, decoded_bytes / seconds / 1e9, "GB/s a core", None, detail="decompressed")


def _write(
    root: Path,
    size_bytes: int,
    *,
    codec: Codec = Codec.NONE,
    headers: tuple[tuple[str, bytes], ...] = (),
    value: Callable[[], bytes] = lambda: os.urandom(VALUE_BYTES),
) -> ScanTask:
    """One segment of 16 KiB batches, and a task that reads all of it."""
    directory = root / str(PARTITION)
    directory.mkdir(exist_ok=True)
    path = directory / f"{0:020d}.log"
    offset = size = 0
    with path.open("wb") as file:
        while size < size_bytes:
            records = [
                Record(os.urandom(KEY_BYTES), value(), headers, timestamp_ms=offset + n)
                for n in range(RECORDS_A_BATCH)
            ]
            batch = build_batch(records, base_offset=offset, codec=codec, leader_epoch=0)
            size += file.write(batch)
            offset += len(records)
    found = path.stat()
    identity = FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns // 1_000_000)
    planned = ScanSlice(PARTITION, str(directory), "", 0, identity, 0, offset, 0, size)
    return ScanTask((planned,), str(root))


def _best(task: ScanTask, options: ReadOptions) -> float:
    """Seconds of the quickest of some rounds; the first ones warm up."""
    return min(_timed(task, options) for _ in range(ROUNDS))


def _timed(task: ScanTask, options: ReadOptions) -> float:
    started = time.process_time()
    rows = sum(batch.num_rows for batch in read_task(task, options))
    assert rows or options.row_filter is not None
    return time.process_time() - started


def _rate(task: ScanTask, seconds: float) -> float:
    return task.size_bytes / seconds / 1e9
