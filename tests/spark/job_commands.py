"""``stratalog spark …`` in this process, with the session that the tests share."""

import contextlib
import io
import json
from typing import Any, NamedTuple

from stratalog.cli.app import run


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def table(self) -> list[list[str]]:
        return [line.split() for line in self.stdout.splitlines()]


def spark_command(*arguments: object) -> Done:
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = run(["spark", *map(str, arguments)])
    return Done(exit_code, stdout.getvalue(), stderr.getvalue())
