"""Private memory while 4 GiB are appended and recovered, and descriptors with 10 000 segments.

Each runs in a process of its own: what is measured is its peak.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, lower
from benchmarks.processes import anonymous_mb
from benchmarks.workload import fill, make_batches, new_log
from stratalog.config import TopicConfig
from stratalog.storage.context import LogContext
from stratalog.storage.recovery import open_log

SIZE_BYTES = scaled(4 << 30, least=64 << 20)
SEGMENTS = scaled(10_000, least=400)
PRIVATE_MB = Bar(value=150)


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    size = f"{SIZE_BYTES / (1 << 30):.3g} GiB"
    appended = [in_process("append", root)]
    yield lower("memory.append", f"memory while appending {size}", "MB", appended, bar=PRIVATE_MB)
    recovered = [in_process("recover", root)]
    yield lower(
        "memory.recover", f"memory while recovering {size}", "MB", recovered, bar=PRIVATE_MB
    )
    what = f"descriptors with {SEGMENTS:,} segments read"
    found = [in_process("descriptors", root)]
    yield lower("memory.descriptors", what, "descriptors", found, bar=Bar(value=1_024))


def in_process(step: str, root: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.memory", step, str(root)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(answer.stdout.strip().splitlines()[-1])


def private_mb() -> float:
    """Anonymous memory: what is not shared with the page cache."""
    return anonymous_mb(os.getpid())


def append(root: Path) -> float:
    log = new_log(root, "memory-0")
    peak = 0.0
    for _ in range(16):
        fill(log, SIZE_BYTES // 16)
        peak = max(peak, private_mb())
    log.abandon()
    return peak


def recover(root: Path) -> float:
    peak = [0.0]

    def progress(_size_bytes: int) -> None:
        peak[0] = max(peak[0], private_mb())

    log = open_log(str(root / "memory-0"), TopicConfig(), LogContext.default(), progress=progress)
    assert log.size_bytes >= SIZE_BYTES
    log.abandon()
    return peak[0]


def descriptors(root: Path) -> float:
    batches = make_batches(4)
    config = TopicConfig(internal_segment_bytes=len(batches[0]) + 1)
    log = new_log(root, "descriptors-0", config, synced=False)
    for number in range(SEGMENTS):
        log.append_as_leader(batches[number % 4])
    assert len(log.segments) == SEGMENTS
    peak = 0
    for offset in range(0, log.log_end_offset, log.log_end_offset // SEGMENTS):
        assert log.segments.floor(offset) is not None
        log.segments.floor(offset).find(offset)  # type: ignore[union-attr]
        if offset % 1_000 == 0:
            peak = max(peak, len(list(Path("/proc/self/fd").iterdir())))
    log.close()
    return float(peak)


if __name__ == "__main__":
    steps = {"append": append, "recover": recover, "descriptors": descriptors}
    print(steps[sys.argv[1]](Path(sys.argv[2])))
