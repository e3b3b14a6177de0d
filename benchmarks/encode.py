"""Encoding Arrow rows to batches of four partitions, on one core: what a load does to each row.

Rows come 10 000 at a time, as Spark hands them over, and go where their keys say.
"""

import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, higher
from benchmarks.timing import cpu_s
from benchmarks.workload import KEY_BYTES, VALUE_BYTES
from stratalog.records import Codec
from stratalog.records.encoding import BatchEncoder
from stratalog.records.partitioner import Partitioner

ROWS, ROWS_A_BATCH, PARTITIONS = scaled(400_000, least=20_000), 10_000, 4
RUNS = 7


def run(_root: Path, _effort: Effort) -> Iterator[Outcome]:
    pieces = rows()
    size_bytes = encode(pieces, Codec.NONE)
    seconds = {codec: timed(lambda codec=codec: encode(pieces, codec)) for codec in Codec}
    plain = seconds.pop(Codec.NONE)
    note = ", ".join(
        f"{codec.config_name} {size_bytes / median(found) / 1e6:,.0f} MB/s"
        for codec, found in seconds.items()
    )
    rates = [size_bytes / each / 1e9 for each in plain]
    records = [ROWS / each / 1e6 for each in plain]
    what = "encode Arrow rows to batches"
    yield higher("encode.rate", what, "GB/s a core", rates, bar=Bar(value=1), note=note)
    yield higher("encode.records", what, "M records/s a core", records, bar=Bar(value=4))
    placed = [ROWS / each / 1e6 for each in timed(lambda: partition(pieces))]
    yield higher("encode.partitioner", "partition Arrow rows by key", "M records/s a core", placed)


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


def timed(work: Callable[[], object]) -> list[float]:
    return [cpu_s(work) for _ in range(RUNS)]
