"""Runs ``stratalog`` inside the test's own process, and what the log of these tests holds."""

import contextlib
import io
from typing import NamedTuple

from stratalog.cli.app import run

START_MS = 1_700_000_000_000
BATCHES = 12


def time_of(offset: int) -> int:
    """The timestamp of a record of ``orders-0``."""
    return START_MS + 1000 * offset


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def stratalog(*arguments: str) -> Done:
    """What the command line said and how it ended."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = run(arguments)
    return Done(exit_code, stdout.getvalue(), stderr.getvalue())
