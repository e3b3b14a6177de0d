"""A program that has a broker and is killed: ``python held_broker.py [fork]``.

It writes one line of JSON about what it has started, and waits for its input to end. With ``fork``
it has forked a process first, in a way that Python does not hear of. That holds everything open
that the program had opened, and ends with the input, which is not the program's alone.
"""

import ctypes
import json
import os
import sys

from stratalog.testing import broker
from stratalog.testing.launching import launcher


def main() -> None:
    with broker(topics=["orders"]) as running:
        is_fork = "fork" in sys.argv and ctypes.PyDLL(None).fork() == 0
        if not is_fork:
            what = {
                "broker": running.pid,
                "launcher": launcher().pid,
                "port": running.port,
                "home": os.path.dirname(running.log_dir),  # noqa: PTH120
            }
            sys.stdout.write(json.dumps(what) + "\n")
            sys.stdout.flush()
        sys.stdin.read()
        os._exit(0)


main()
