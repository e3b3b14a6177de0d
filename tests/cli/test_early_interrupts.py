"""Ctrl-C while a command is still being imported, or when it is already done."""

import signal
import subprocess
import sys
from typing import Any

import pytest

INTERRUPTED = 128 + signal.SIGINT

# As if it came at the import of a module: sooner than any command could notice.
EARLY = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import stratalog.cli.main as main

module = sys.argv.pop(1)

class Interrupting:
    def find_spec(self, name, *_):
        if name == module:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
main.main()
"""
LATE = """
import atexit, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(signal.raise_signal, signal.SIGINT)
from stratalog.cli.main import main
main()
"""
# What the program begins with; what Python itself has imported by then is its own affair.
FIRST = """
import sys
before = set(sys.modules)
import stratalog.cli.main
print(*sorted(set(sys.modules) - before))
"""


def run_python(code: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, timeout=300, check=False)


def assert_quiet(done: Any) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, b"", b"")


@pytest.mark.parametrize(
    "module", ["stratalog.cli.interrupts", "stratalog.cli.failures", "stratalog.cli.app", "typer"]
)
def test_an_interrupt_before_a_command_begins_is_no_traceback(module: str) -> None:
    assert_quiet(run_python(EARLY, module, "topic", "list"))


@pytest.mark.parametrize(
    "module", ["stratalog.demo.play", "rich.console", "confluent_kafka.cimpl", "pyarrow.lib"]
)
def test_nor_is_one_while_the_demo_is_imported(module: str) -> None:
    """Compiled modules among it: what they do with a KeyboardInterrupt is up to them."""
    assert_quiet(run_python(EARLY, module, "demo", "--dir", "/nowhere/at/all"))


def test_nor_is_one_before_a_broker_begins() -> None:
    assert_quiet(run_python(EARLY, "stratalog.cli.serve", "serve", "--log-dir", "/nowhere/at/all"))


def test_nor_is_one_after_a_command_and_what_it_wrote_is_there() -> None:
    done = run_python(LATE, "topic", "list", "--help")

    assert (done.returncode, done.stderr) == (INTERRUPTED, b"")
    assert done.stdout.startswith(b"Usage: stratalog topic list")
    assert done.stdout.endswith(b"\n")


def test_nothing_is_imported_before_interrupts_are_seen_to() -> None:
    assert run_python(FIRST).stdout.split() == [
        b"stratalog",
        b"stratalog.cli",
        b"stratalog.cli.main",
    ]
