"""Planning a scan of very many segments, of which the listing is simulated.

It runs in a process of its own: what is measured is its peak.
"""

import json
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import Bar, Outcome, lower
from stratalog.scans.planning import plan_scan
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import take_snapshot
from stratalog.testing.listing import ListedLogs

PARTITIONS = scaled(10_000, least=100)
SEGMENTS = 100


def run(_root: Path, _effort: Effort) -> Iterator[Outcome]:
    command = [sys.executable, "-m", "benchmarks.planning"]
    found = []
    for _ in range(repeats(2)):
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(answer.stdout))
    what = f"planning a scan of {PARTITIONS:,} partitions of {SEGMENTS} segments"
    note = f"{found[0]['tasks']:,} tasks, {found[0]['pickled_mb']:.0f} MB pickled"
    seconds = [each["seconds"] for each in found]
    yield lower("planning.time", what, "s", seconds, bar=Bar(value=15), note=note)
    peaks = [each["peak_mb"] for each in found]
    yield lower("planning.memory", f"memory while {what}", "MB", peaks, bar=Bar(value=1_000))


def main() -> None:
    files = ListedLogs(PARTITIONS, SEGMENTS)
    began = time.perf_counter()
    snapshot = take_snapshot(
        files.path, Subscribe(("t",)), isolation=ScanIsolation.READ_UNCOMMITTED, files=files
    )
    listed = time.perf_counter()
    plan = plan_scan(snapshot, files=files)
    planned = time.perf_counter()
    pickled = [pickle.dumps(task) for task in plan.tasks]
    ended = time.perf_counter()
    found = {
        "seconds": ended - began,
        "steps": [listed - began, planned - listed, ended - planned],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "tasks": len(plan.tasks),
        "pickled_mb": sum(map(len, pickled)) / 1e6,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
