"""Finding the batch that holds an offset in a segment of 1 GiB."""

import random
import time
from pathlib import Path

from benchmarks.result import Result
from benchmarks.workload import fill, new_log


def run(root: Path) -> list[Result]:
    log = new_log(root)
    fill(log, (1 << 30) - (8 << 20))
    log.flush()
    segment = log.segments.first
    assert len(log.segments) == 1
    chosen = random.Random(7).choices(range(log.log_end_offset), k=20_000)
    best_us = min(_timed(segment.find, chosen) for _ in range(5))
    log.abandon()
    return [
        Result(
            "offset lookup in a segment of 1 GiB",
            best_us,
            "µs",
            20,
            higher_is_better=False,
            detail=f"{segment.offset_index.entries} index entries",
        )
    ]


def _timed(find: object, offsets: list[int]) -> float:
    assert callable(find)
    started = time.process_time()
    for offset in offsets:
        find(offset)
    return (time.process_time() - started) / len(offsets) * 1e6
