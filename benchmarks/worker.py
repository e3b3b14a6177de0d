"""``python -m benchmarks.worker NAME ROOT OUT``: one entry in a process of its own.

It writes below ROOT; what it finds goes to OUT, as a pickle of its rows. What goes wrong ends it
with a message on standard error and no file, so that whatever happens here costs this entry alone.
Whoever starts it removes ROOT, when all that it started has ended too.
"""

import argparse
import importlib
import pickle
import sys
from pathlib import Path

from benchmarks.effort import Effort
from benchmarks.entries import BY_NAME
from benchmarks.measurement import NotMeasuredError

LEFT_OUT = 3  # how it ends where the entry cannot be measured here and says so itself


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=Effort.seconds)
    parser.add_argument("--rounds", type=int, default=Effort.rounds)
    arguments = parser.parse_args()
    arguments.root.mkdir()
    module = importlib.import_module(BY_NAME[arguments.name].module)
    try:
        found = list(module.run(arguments.root, Effort(arguments.seconds, arguments.rounds)))
    except NotMeasuredError as why:
        print(why, file=sys.stderr)
        return LEFT_OUT
    arguments.out.write_bytes(pickle.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
