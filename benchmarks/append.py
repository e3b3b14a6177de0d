"""Appending 16 KiB batches, every record validated, beside a loop that does the least that could
be called storing them: a CRC-32C and a write. Both write new files, in turns, so that what else
the machine does meets both alike; processor time is counted."""

import os
import statistics
import time
from pathlib import Path

from crc32c import crc32c

from benchmarks.result import Result
from benchmarks.workload import make_batches, new_log

ROUNDS = 40


def run(root: Path) -> list[Result]:
    batches = make_batches(500)
    log = new_log(root)
    bare = os.open(root / "bare", os.O_CREAT | os.O_WRONLY)
    ratios, ours_us = [], []
    for _ in range(ROUNDS):
        started = time.process_time()
        for batch in batches:
            crc32c(memoryview(batch)[21:])
            os.write(bare, batch)
        bare_s = time.process_time() - started
        started = time.process_time()
        for batch in batches:
            log.append_as_leader(batch)
        ours_s = time.process_time() - started
        ratios.append(bare_s / ours_s)
        ours_us.append(ours_s / len(batches) * 1e6)
    os.close(bare)
    log.abandon()
    return [
        Result(
            "append, of a bare write + CRC loop",
            statistics.median(ratios) * 100,
            "%",
            50,
            detail=f"{statistics.median(ours_us):.1f} µs a batch of {len(batches[0])} bytes",
        )
    ]
