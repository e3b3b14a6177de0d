"""Appending 16 KiB batches, every record validated, beside a loop that does the least that could
be called storing them: a CRC-32C and a write. Both write new files, in turns, so that what else
the machine does meets both alike; processor time is counted."""

import os
from collections.abc import Iterator
from pathlib import Path

from crc32c import crc32c

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, Peer, higher
from benchmarks.timing import cpu_s
from benchmarks.workload import make_batches, new_log

ROUNDS = 40
BARE = Peer("a bare loop of CRC and write", is_rival=False)


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    batches = make_batches(scaled(500, least=50))
    size_mb = sum(map(len, batches)) / 1e6
    log = new_log(root)
    bare = os.open(root / "bare", os.O_CREAT | os.O_WRONLY)

    def store_barely() -> None:
        for batch in batches:
            crc32c(memoryview(batch)[21:])
            os.write(bare, batch)

    def append() -> None:
        for batch in batches:
            log.append_as_leader(batch)

    theirs, ours = [], []
    for _ in range(ROUNDS):
        theirs.append(size_mb / cpu_s(store_barely))
        ours.append(size_mb / cpu_s(append))
    os.close(bare)
    log.abandon()
    yield higher(
        "append.rate",
        "append of 16 KiB batches, every record validated",
        "MB/s a core",
        ours,
        theirs,
        peer=BARE,
        bar=Bar(ratio=0.5),
    )
