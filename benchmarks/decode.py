"""Decoding batches to Arrow, from page cache, on one core, all columns of Kafka's Spark source."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, higher
from benchmarks.timing import cpu_s
from benchmarks.workload import RECORDS_A_BATCH, make_batches
from stratalog.records.columns import decode_columns

COLUMNS = ("key", "value", "offset", "timestamp_ms", "timestamp_type", "headers")
BATCHES, TIMES, RUNS = scaled(1_000, least=100), 20, 7


def run(_root: Path, _effort: Effort) -> Iterator[Outcome]:
    data = b"".join(make_batches(BATCHES))

    def decode() -> None:
        for _ in range(TIMES):
            decode_columns(data, columns=COLUMNS)

    decode()  # to warm up
    seconds = [cpu_s(decode) / TIMES for _ in range(RUNS)]
    rates = [len(data) / each / 1e9 for each in seconds]
    records = [BATCHES * RECORDS_A_BATCH / each / 1e6 for each in seconds]
    yield higher("decode.rate", "decode to Arrow", "GB/s a core", rates, bar=Bar(value=1))
    yield higher(
        "decode.records", "decode to Arrow", "M records/s a core", records, bar=Bar(value=5)
    )
