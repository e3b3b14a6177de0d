"""Runs ``stratalog`` inside the test's own process."""

import contextlib
import io
from typing import NamedTuple

from stratalog.cli.app import run


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
