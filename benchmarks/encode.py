"""Encoding Arrow rows to batches of four partitions, on one core: what a load does to each row.

Rows come 10 000 at a time, as Spark hands them over, and go where their keys say.
"""

import random
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.result import Result
from benchmarks.workload import KEY_BYTES, VALUE_BYTES
from stratalog.records import Codec
from stratalog.records.encoding import BatchEncoder
from stratalog.records.partitioner import Partitioner

ROWS, ROWS_A_BATCH, PARTITIONS = 400_000, 10_000, 4
RUNS = 5


def run(root: Path) -> list[Result]:
    pieces = rows()
    size_bytes = encode(pieces, Codec.NONE)
    encode_s = best(lambda: encode(pieces, Codec.NONE))
    partition_s = best(lambda: partition(pieces))
    packed = {codec: best(lambda codec=codec: encode(pieces, codec)) for codec in Codec if codec}
    detail = ", ".join(
        f"{codec.config_name} {size_bytes / seconds / 1e6:,.0f} MB/s"
        for codec, seconds in packed.items()
    )
    return [
        Result("encode Arrow rows", size_bytes / encode_s / 1e9, "GB/s a core", 1, detail=detail),
        Result("encode Arrow rows", ROWS / encode_s / 1e6, "M records/s", 4),
        Result("partition Arrow rows by key", ROWS / partition_s / 1e6, "M records/s", None),
    ]


def rows() -> list[tuple[Any, Any]]:
    """Record batches with the partitions of their rows; the bytes cannot be compressed."""
    made = random.Random(1)
    keys, values = binary(made, KEY_BYTES), binary(made, VALUE_BYTES)
    stamps = pa.array(range(1_700_000_000_000_000, 1_700_000_000_000_000 + ROWS), pa.int64())
    whole = pa.RecordBatch.from_arrays(
        [keys, values, stamps.cast(pa.timestamp("us"))], ["key", "value", "timestamp"]
    )
    partitions = Partitioner(PARTITIONS, seed=1).assign(keys, values)
    return [
        (whole.slice(start, ROWS_A_BATCH), partitions.slice(start, ROWS_A_BATCH))
        for start in range(0, ROWS, ROWS_A_BATCH)
    ]


def binary(made: random.Random, width: int) -> Any:
    ends = pa.array(accumulate([0] + [width] * ROWS), pa.int32()).buffers()[1]
    data = pa.py_buffer(made.randbytes(width * ROWS))
    return pa.Array.from_buffers(pa.binary(), ROWS, [None, ends, data])


def encode(pieces: list[tuple[Any, Any]], codec: Codec) -> int:
    encoder = BatchEncoder(PARTITIONS, codec=codec)
    size_bytes = 0
    for piece, partitions in pieces:
        for each in encoder.add(piece, partitions, now_ms=0):
            size_bytes += memoryview(each.batch).nbytes
    return size_bytes + sum(memoryview(each.batch).nbytes for each in encoder.flush())


def partition(pieces: list[tuple[Any, Any]]) -> None:
    partitioner = Partitioner(PARTITIONS, seed=1)
    for piece, _ in pieces:
        partitioner.assign(piece.column("key"), piece.column("value"))


def best(work: Callable[[], object]) -> float:
    return min(timed(work) for _ in range(RUNS))


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
