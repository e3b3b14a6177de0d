"""Decoding batches to Arrow, from page cache, on one core, all columns of Kafka's Spark source."""

import time
from pathlib import Path

from benchmarks.result import Result
from benchmarks.workload import RECORDS_A_BATCH, make_batches
from stratalog.records.columns import decode_columns

COLUMNS = ("key", "value", "offset", "timestamp_ms", "timestamp_type", "headers")


def run(root: Path) -> list[Result]:
    data = b"".join(make_batches(1_000))
    repeats = 20
    best_s = min(_timed(data, repeats) for _ in range(5)) / repeats
    records = 1_000 * RECORDS_A_BATCH
    return [
        Result("decode to Arrow", len(data) / best_s / 1e9, "GB/s a core", 1),
        Result("decode to Arrow", records / best_s / 1e6, "M records/s", 5),
    ]


def _timed(data: bytes, repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        decode_columns(data, columns=COLUMNS)
    return time.process_time() - started
