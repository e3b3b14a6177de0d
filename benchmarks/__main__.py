"""``python -m benchmarks [NAME…] [--dir DIR]``: figures and their bars; exit 1 if one is missed."""

import argparse
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.broker import PARTS
from benchmarks.broker_figures import Effort
from benchmarks.result import Result

STORAGE = (
    *("append", "recovery", "decode", "encode", "lookup", "opening", "memory"),
    *("cleaning", "cleaning-load"),
    *("scan", "planning", "pruning"),
)
SPARK = ("spark-scan", "spark-load", "spark-compact", "spark-jobs")
ALL = (*STORAGE, "broker", "commit-load", *SPARK)
NAMES = (*ALL, *PARTS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--dir", help="where to write (about 10 GB); default: the temporary folder")
    parser.add_argument(
        "--seconds",
        type=float,
        default=Effort.seconds,
        help="of warm-up and at most of a measurement, for brokers; default: %(default)g",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=Effort.rounds,
        help="in which brokers take turns; default: %(default)d",
    )
    arguments = parser.parse_args()
    effort = Effort(arguments.seconds, arguments.rounds)
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    results: list[Result] = []
    for name in arguments.names or ALL:
        root = Path(tempfile.mkdtemp(prefix="stratalog-bench-", dir=arguments.dir))
        try:
            module = importlib.import_module(f"benchmarks.{name.replace('-', '_')}")
            is_broker = name not in (*STORAGE, *SPARK)
            results.extend(module.run(root, effort) if is_broker else module.run(root))
        finally:
            shutil.rmtree(root)
    table = Table("what", "measured", "bar", "", "")
    for result in results:
        table.add_row(*result.row())
    Console().print(table)
    return 0 if all(result.is_met for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
