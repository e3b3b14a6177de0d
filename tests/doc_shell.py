"""The shell that a page's commands run in: one directory, at most one broker in the background.

``stratalog`` alone runs in this process, anything with more to it in ``sh``. Three things are not
taken as they are shown:

    stratalog serve … &    listens on a free port. The page goes on calling it 127.0.0.1:9092, and
                           what talks to a broker without saying to which is told the real one
    kill %1                stops that broker, as ``kill`` does, and waits for it; ``kill -9 %1`` too
    make TARGET            is looked up in the Makefile, since a test cannot run the tests
"""

import contextlib
import io
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from stratalog.cli.app import run

ROOT = Path(__file__).resolve().parents[1]
SHOWN_ADDRESS = "127.0.0.1:9092"
# A guard against what hangs, on any machine; most of what is shown takes less than a second.
SECONDS = 600
# Half a minute after its start a broker would delete what is old, and pages show old records.
_CALM = ("--set", "log.initial.task.delay.ms=3600000")

_TALKS_TO_A_BROKER = re.compile(r"stratalog (?:topic|produce|consume|group|config) [^|&;<>]*")
_SAYS_TO_WHICH = re.compile(r"--(?:bootstrap-server|log-dir|admin-url)\b")
_NEEDS_A_SHELL = re.compile(r"[|&;<>$*]")


class Shell:
    """``execute`` runs one command line; ``close`` ends what is left running."""

    def __init__(self) -> None:
        self._broker: _Broker | None = None

    def close(self) -> None:
        if self._broker is not None:
            self._broker.stop(signal.SIGKILL)
            self._broker = None
        # A page that starts one itself notes its number, and forgets it when it has stopped it.
        noted = Path("broker.pid")
        if noted.exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(noted.read_text()), signal.SIGKILL)

    def told(self, text: str) -> str:
        """``text`` with the real address of the broker in the place of the one that is shown."""
        return text.replace(SHOWN_ADDRESS, self._broker.address) if self._broker else text

    def shown(self, text: str) -> str:
        """The other way round."""
        return text.replace(self._broker.address, SHOWN_ADDRESS) if self._broker else text

    def execute(self, line: str) -> tuple[int, str]:
        """Exit code and all that was printed."""
        if line.startswith("stratalog serve ") and line.endswith("&"):
            return self._serve(line.removesuffix("&"))
        if line in ("kill %1", "kill -9 %1"):
            return self._kill(signal.SIGKILL if "-9" in line else signal.SIGTERM)
        if line.split()[0] == "make":
            return is_target(line), ""
        told = _TALKS_TO_A_BROKER.sub(self._addressed, self.told(line))
        exit_code, printed = in_process(told) if is_plain(told) else in_shell(told)
        return exit_code, self.shown(printed)

    def _addressed(self, command: re.Match[str]) -> str:
        if self._broker is None or _SAYS_TO_WHICH.search(command[0]):
            return command[0]
        return f"{command[0].rstrip()} --bootstrap-server {self._broker.address} "

    def _serve(self, line: str) -> tuple[int, str]:
        assert self._broker is None, "a page has one broker at a time"
        self._broker = _Broker(shlex.split(line)[1:])
        return 0, self.shown(self._broker.ready_line)

    def _kill(self, number: signal.Signals) -> tuple[int, str]:
        assert self._broker is not None, "no broker was started"
        ended_with = self._broker.stop(number)
        self._broker = None
        return (0 if ended_with in (0, -number) else ended_with), ""


class _Broker:
    """``stratalog serve`` in a process of its own, from its first line on."""

    def __init__(self, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "stratalog", *arguments, "--listen", "127.0.0.1:0", *_CALM]
        with Path("broker-events.txt").open("ab") as events:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=events
            )
        stdout: IO[Any] | None = self._process.stdout
        assert stdout is not None
        is_ready, _, _ = select.select([stdout], [], [], SECONDS)
        self.ready_line = stdout.readline().decode() if is_ready else ""
        if not self.ready_line:
            self.stop(signal.SIGKILL)
            said = Path("broker-events.txt").read_text()
            raise AssertionError(f"{shlex.join(arguments)} did not start: {said}")
        self.address = self.ready_line.split()[-1]

    def stop(self, number: signal.Signals) -> int:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        ended_with = self._process.wait(SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return ended_with


def is_plain(line: str) -> bool:
    """Whether a command is ``stratalog`` and its arguments, with nothing for a shell to do."""
    unquoted = re.sub(r"'[^']*'|\"[^\"$]*\"", "", line)
    return line.startswith("stratalog ") and not _NEEDS_A_SHELL.search(unquoted)


def in_process(line: str) -> tuple[int, str]:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        exit_code = run(shlex.split(line, comments=True)[1:])
    printed.seek(0)
    return exit_code, printed.read()


def in_shell(line: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """With the ``stratalog`` of this Python on the path, and not as a part of these tests."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        line,
        shell=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**outside, "PATH": path, **(environment or {})},
    )
    return done.returncode, done.stdout + done.stderr


def is_target(line: str) -> int:
    """0 if every word of a ``make`` line is a target or a variable, as an exit code."""
    words = shlex.split(line, comments=True)[1:]
    targets = [word for word in words if "=" not in word]
    return 0 if targets and set(targets) <= make_targets() else 2


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
