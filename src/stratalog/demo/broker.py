"""The demo's broker: ``stratalog serve`` in a process of its own, started, killed and stopped.

It runs in a session of its own, so that a Ctrl-C at the terminal reaches the demo alone, which
then stops it. Its events go to a file, from which the demo reads what the broker has to say.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from stratalog.demo.errors import DemoError
from stratalog.demo.folder import DemoFolder

# The defaults, but for these: periods that nobody wants to sit through, and the one topic that
# Spark compacts here instead of the broker.
SETTINGS = (
    "log.retention.check.interval.ms=1000",
    "log.initial.task.delay.ms=1000",
    "log.cleaner.exclude.topics=customers",
)
START_SECONDS = 300.0
STOP_SECONDS = 60.0


class BrokerProcess:
    def __init__(self, folder: DemoFolder) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._seen_bytes = 0
        self.address = "127.0.0.1:0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def command(self) -> list[str]:
        """What is run, as one would type it."""
        settings = [word for each in SETTINGS for word in ("--set", each)]
        place = ["--log-dir", str(self._folder.data), "--listen", self.address]
        return ["stratalog", "serve", *place, *settings]

    def start(self) -> float:
        """Returns when clients can connect, and how many seconds that took."""
        began = time.monotonic()
        self._seen_bytes = self._events_bytes()
        python = [sys.executable, "-P", "-m", *self.command(), "--set", "event.log.format=json"]
        with self._folder.events.open("ab") as events:
            self._process = subprocess.Popen(
                python,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=events,
                start_new_session=True,
            )
        line = self._ready_line()
        if not line.startswith("stratalog is ready on "):
            said = self._folder.events.read_text(errors="replace").splitlines()
            self.stop()
            raise DemoError(f"The broker did not start: {said[-1] if said else 'no word of why'}")
        self.address = line.split()[-1]
        return time.monotonic() - began

    def _ready_line(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        waiting = select.poll()
        waiting.register(process.stdout.fileno(), select.POLLIN)
        if not waiting.poll(START_SECONDS * 1000):
            return ""
        return process.stdout.readline().decode(errors="replace").strip()

    def kill(self) -> None:
        """As ``kill -9`` does: it learns nothing of it."""
        process = self._process
        assert process is not None
        process.kill()
        self._wait(STOP_SECONDS)

    def stop(self) -> None:
        """A clean stop; a broker that does not stop in time is killed."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            if not self._wait(STOP_SECONDS):
                self._process.kill()
        self._wait(STOP_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def _wait(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    # --- what it says ---------------------------------------------------------------------------

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Its events of these names since it was last started."""
        if not self._folder.events.exists():
            return []
        with self._folder.events.open("rb") as told:
            told.seek(self._seen_bytes)
            lines = [line for line in told if line.endswith(b"\n")]
        found = []
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # words of the interpreter's, not an event
            if event.get("event") in names:
                found.append(event)
        return found

    def _events_bytes(self) -> int:
        try:
            return os.stat(self._folder.events).st_size  # noqa: PTH116
        except FileNotFoundError:
            return 0


def run_stratalog(arguments: Sequence[str]) -> tuple[int, str]:
    """A command of ours in a process of its own: its exit code, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stratalog", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if done.returncode and not done.stdout:
        raise DemoError(f"stratalog {' '.join(arguments)}: {done.stderr.strip()}")
    return done.returncode, done.stdout
