"""``stratalog serve`` as a process on a port of its own, that a test can pause, kill and start."""

import selectors
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from free_ports import free_port

START_SECONDS = 120
QUICK = ["group.initial.rebalance.delay.ms=0", "log.dir.reserve.bytes=0"]


class ServedBroker:
    """Entering starts it; leaving stops it cleanly. The port outlives the process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.bootstrap_server = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(signal.SIGTERM)

    def start(self) -> None:
        """Returns when the broker has said that it accepts."""
        settings = [
            "--set",
            "group.initial.rebalance.delay.ms=0",
            "--set",
            "log.dir.reserve.bytes=0",
        ]
        listen = ["--listen", self.bootstrap_server, "--log-dir", str(self._home / "log")]
        with (self._home / "events").open("ab") as events:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "stratalog", "serve", *listen, *settings],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=events,
                text=True,
            )
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            assert ready.select(START_SECONDS), self._said()
        assert self._process.stdout.readline(), self._said()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Leave it running without a turn: its kernel still takes what clients send."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        process.wait(START_SECONDS)
        assert process.stdout is not None
        process.stdout.close()

    def _said(self) -> str:
        return (self._home / "events").read_text()[-3000:]
