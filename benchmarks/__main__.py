"""Measures all that has a bar, Apache Kafka and Spark's connector beside it.

    python -m benchmarks               everything, into benchmarks/results.json, and the report
    python -m benchmarks NAME…         these entries again; the rest of the file stays
    python -m benchmarks --quick       everything, tiny, to see whether it runs; kept elsewhere
    python -m benchmarks report        README's figures, docs/comparison.md and plots from the file
    python -m benchmarks stale         what was measured on another source than the present one

Exit code 1 where a bar is missed or an entry failed; one that needs what is not here, as those of
Apache Kafka's own tools do, is left out with why.
"""

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.effort import Effort
from benchmarks.entries import BY_NAME, ENTRIES
from benchmarks.machine import ROOT, busy_cores, method_digest, source_digest
from benchmarks.report import write_report
from benchmarks.results import PATH, Results
from benchmarks.runner import Options, OtherMachineError, minutes, run_all
from benchmarks.table import print_rows

QUICK = Options(Effort(seconds=1.0, rounds=2), scale=0.01)
BUSY_CORES = 0.1  # more than that, and medians move
QUICK_PATH = ROOT / "build" / "bench-quick.json"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="entries: " + ", ".join(BY_NAME),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries, or report, or stale")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, no bars")
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka and Spark's own")
    parser.add_argument("--results", type=Path, help="another file than benchmarks/results.json")
    parser.add_argument("--dir", help="where to write (about 10 GB); default: the temporary folder")
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"of warm-up and at most of a measurement, for brokers; default: {Effort.seconds:g}",
    )
    parser.add_argument(
        "--rounds", type=int, help=f"in which brokers take turns; default: {Effort.rounds}"
    )
    arguments = parser.parse_args()
    arguments.names = [each for name in arguments.names for each in name.split(",") if each]
    path = arguments.results or (QUICK_PATH if arguments.quick else PATH)
    if arguments.names == ["report"]:
        return report(path)
    if arguments.names == ["stale"]:
        return stale(path)
    if unknown := sorted(set(arguments.names) - set(BY_NAME)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    return measure(arguments, path)


def measure(arguments: argparse.Namespace, path: Path) -> int:
    base = QUICK if arguments.quick else Options()
    options = Options(
        Effort(
            arguments.seconds or base.effort.seconds,
            arguments.rounds or base.effort.rounds,
        ),
        base.scale,
        arguments.alone,
        arguments.dir,
    )
    names = arguments.names or [entry.name for entry in ENTRIES]
    path.parent.mkdir(parents=True, exist_ok=True)
    results = Results.load(path)
    # As Ctrl-C: the entry at hand has processes that must not stay.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if (busy := busy_cores()) > BUSY_CORES:
        print(
            f"others take {busy:.1f} cores of this machine: what is measured now is theirs too",
            file=sys.stderr,
        )
    try:
        failed = run_all(names, results, path, options)
    except KeyboardInterrupt:
        print(f"interrupted; what was measured until then is in {path}", file=sys.stderr)
        return 130
    except OtherMachineError as why:
        print(why, file=sys.stderr)
        return 2
    rows = [(entry, row) for entry, row in results.all_rows() if entry in names]
    console = Console()
    print_rows(rows, console if console.is_terminal else Console(width=180))
    if path == PATH:
        report(path)
    else:
        print(f"written to {path}")
    if failed:
        print(f"not measured: {', '.join(failed)}")
    if arguments.quick:
        return 1 if failed else 0
    return 1 if failed or any(row.is_met is False for _, row in rows) else 0


def report(path: Path) -> int:
    for written in write_report(Results.load(path), ROOT):
        print(f"wrote {written.relative_to(ROOT)}")
    return 0


def stale(path: Path) -> int:
    """Those that the code as it is now has not been measured for."""
    results, now, method = Results.load(path), source_digest(), method_digest()
    old = {
        name: run
        for name, run in results.runs.items()
        if name in BY_NAME
        and (run.source != now or run.method != method or run.why_not is not None)
    }
    missing = [entry.name for entry in ENTRIES if entry.name not in results.runs]
    for name, run in old.items():
        how = "measured" if run.why_not is None else "tried and not measured"
        was = f"{how} on {run.source} by {run.method or 'an older method'}"
        print(f"{name}: {was} ({run.commit}, {run.date}); now it is {now} by {method}")
    for name in missing:
        print(f"{name}: never measured")
    left_s = sum(BY_NAME[name].expected_s for name in [*old, *missing])
    if left_s:
        print(f"about {minutes(left_s)}: make bench ONLY={','.join([*old, *missing])!r}")
    return 1 if left_s else 0


if __name__ == "__main__":
    sys.exit(main())
