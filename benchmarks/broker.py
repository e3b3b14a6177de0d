"""All that is measured of a broker, Apache Kafka beside it: the other ``broker_*`` in turn."""

import shutil
from importlib import import_module
from pathlib import Path

from benchmarks.broker_figures import Effort
from benchmarks.result import Result

PARTS = (
    "broker-cost",
    "broker-java",
    "broker-latency",
    "broker-start",
    "broker-growth",
    "broker-idle",
    "broker-stalls",
)


def run(root: Path, effort: Effort) -> list[Result]:
    results: list[Result] = []
    for part in PARTS:
        home = root / part
        home.mkdir()
        results += import_module(f"benchmarks.{part.replace('-', '_')}").run(home, effort)
        shutil.rmtree(home)
    return results
