"""Ctrl-C while a command is still being imported."""

import signal
import subprocess
import sys

# As if it came at the first import: sooner than any command could notice.
EARLY = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import stratalog.cli.main as main

class Interrupting:
    def find_spec(self, name, *_):
        if name == "stratalog.cli.app":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["stratalog", "topic", "list"]
main.main()
"""


def test_an_interrupt_before_a_command_begins_is_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY], capture_output=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")
