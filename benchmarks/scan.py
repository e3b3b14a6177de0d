"""Scanning to Arrow, from page cache, on one core: what ``stratalog.scan`` and Spark tasks run."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, higher
from benchmarks.timing import cpu_s
from benchmarks.workload import KEY_BYTES, RECORDS_A_BATCH, VALUE_BYTES
from stratalog.records import Codec, Record, build_batch
from stratalog.scans.columns import KAFKA_COLUMNS
from stratalog.scans.reading import read_task
from stratalog.scans.slices import FileIdentity, ReadOptions, RowFilter, ScanSlice, ScanTask
from stratalog.storage.layout import TopicPartition

SEVEN = tuple(name for name in KAFKA_COLUMNS if name != "headers")
PARTITION = TopicPartition("bench", 0)
SCAN_BYTES = scaled(512 << 20, least=16 << 20)
ROUNDS = 5


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    task = _write(root, SCAN_BYTES)
    full = _rates(task, ReadOptions(SEVEN))
    keys = _rates(task, ReadOptions(("key", "offset")))
    one_key = _rates(task, ReadOptions(SEVEN, row_filter=_one_key()))
    what = "stratalog.scan to Arrow"
    unit = "GB/s a core"
    note = f"key and offset alone: {median(keys) / median(full):.1f} times"
    yield higher(
        "scan.rate", f"{what}, 7 columns", unit, full, bar=Bar(value=1), note=note, is_headline=True
    )
    yield higher("scan.keys", f"{what}, key and offset", unit, keys)
    yield higher("scan.one-key", f"{what}, rows of one key", unit, one_key)
    yield higher("scan.headers", f"{what}, 8 columns with headers", unit, _headers(root))
    for codec in Codec:
        if codec is not Codec.NONE:
            yield _codec(root, codec)


def _one_key() -> RowFilter:
    return RowFilter(keys=frozenset([b"\0" * KEY_BYTES]))


def _headers(root: Path) -> list[float]:
    task = _write(root, SCAN_BYTES // 4, headers=(("trace", b"0123456789abcdef"), ("k", b"v")))
    return _rates(task, ReadOptions(KAFKA_COLUMNS))


def _codec(root: Path, codec: Codec) -> Outcome:
    """Of bytes decompressed: values that compress to about a half."""
    task = _write(root, SCAN_BYTES // 8, codec=codec, value=lambda: os.urandom(90).hex().encode())
    records = sum(batch.num_rows for batch in read_task(task, ReadOptions(("offset",))))
    decoded_bytes = records * (KEY_BYTES + 180 + 8)
    rates = _rates(task, ReadOptions(SEVEN), decoded_bytes)
    name = codec.config_name
    what = f"stratalog.scan to Arrow, 7 columns, {name}"
    return higher(f"scan.{name}", what, "GB/s a core", rates, note="of bytes decompressed")


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


def _rates(task: ScanTask, options: ReadOptions, size_bytes: int | None = None) -> list[float]:
    """GB/s of some rounds, after one that warms up."""

    def read() -> None:
        rows = sum(batch.num_rows for batch in read_task(task, options))
        assert rows or options.row_filter is not None

    read()
    return [(size_bytes or task.size_bytes) / cpu_s(read) / 1e9 for _ in range(ROUNDS)]
