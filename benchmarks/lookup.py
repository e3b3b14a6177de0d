"""Finding the batch that holds an offset in a segment of 1 GiB."""

import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, lower
from benchmarks.timing import cpu_s
from benchmarks.workload import fill, new_log

SEGMENT_BYTES = scaled((1 << 30) - (8 << 20), least=8 << 20)
LOOKUPS = 20_000


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    log = new_log(root)
    fill(log, SEGMENT_BYTES)
    log.flush()
    segment = log.segments.first
    assert len(log.segments) == 1
    chosen = random.Random(7).choices(range(log.log_end_offset), k=LOOKUPS)

    def find() -> None:
        for offset in chosen:
            segment.find(offset)

    found_us = [cpu_s(find) / LOOKUPS * 1e6 for _ in range(7)]
    entries = segment.offset_index.entries
    log.abandon()
    yield lower(
        "lookup.time",
        "offset lookup in a segment of 1 GiB",
        "µs",
        found_us,
        bar=Bar(value=20),
        note=f"{entries:,} index entries",
    )
