"""Runs ``stratalog`` inside the test's own process, with bytes on stdin and stdout."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from stratalog.cli.app import run


class Ran(NamedTuple):
    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]


def run_stratalog(*arguments: str, stdin: bytes = b"") -> Ran:
    """What the command line wrote and how it ended."""
    stdout, stderr = io.BytesIO(), io.BytesIO()
    with _standard_streams(stdin, stdout, stderr):
        exit_code = run(arguments)
    return Ran(exit_code, stdout.getvalue(), stderr.getvalue().decode())


@contextlib.contextmanager
def _standard_streams(stdin: bytes, stdout: io.BytesIO, stderr: io.BytesIO) -> Iterator[None]:
    def text(raw: io.BytesIO) -> io.TextIOWrapper:
        return io.TextIOWrapper(raw, "utf-8", write_through=True)

    before = sys.stdin, sys.stdout, sys.stderr
    swapped = text(io.BytesIO(stdin)), text(stdout), text(stderr)
    sys.stdin, sys.stdout, sys.stderr = swapped
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in swapped[1:]:
            stream.flush()
            # The bytes are still wanted when the wrapper is gone.
            stream.detach()


class CommandLine:
    """``stratalog`` against one broker."""

    def __init__(self, bootstrap_server: str) -> None:
        self.bootstrap_server = bootstrap_server

    def run(self, *arguments: str, stdin: bytes = b"") -> Ran:
        return run_stratalog(*arguments, "--bootstrap-server", self.bootstrap_server, stdin=stdin)

    def ok(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """The same, for a command that must succeed."""
        ran = self.run(*arguments, stdin=stdin)
        assert ran.exit_code == 0, ran
        return ran

    def refused(self, *arguments: str, stdin: bytes = b"") -> str:
        """What a command said that must fail: one sentence, nothing on stdout."""
        ran = self.run(*arguments, stdin=stdin)
        assert (ran.exit_code in (1, 2), ran.stdout) == (True, b""), ran
        return ran.stderr.strip()

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        return self.ok(*arguments, "-o", "json", stdin=stdin).json
