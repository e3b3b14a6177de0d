"""Planning a scan of very many segments, of which the listing is simulated.

It runs in a process of its own: what is measured is its peak.
"""

import json
import pickle
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.result import Result
from stratalog.scans.planning import plan_scan
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import take_snapshot
from stratalog.testing.listing import ListedLogs

PARTITIONS = 10_000
SEGMENTS = 100


def run(_root: Path) -> list[Result]:
    command = [sys.executable, "-m", "benchmarks.planning"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(answer.stdout)
    what = f"planning {PARTITIONS:,} partitions of {SEGMENTS} segments"
    detail = f"{found['tasks']:,} tasks, {found['pickled_mb']:.0f} MB pickled"
    return [
        Result(what, found["seconds"], "s", 15, higher_is_better=False, detail=detail),
        Result(f"memory while {what}", found["peak_mb"], "MB", 1_000, higher_is_better=False),
    ]


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
