"""The test process's side of ``launcher``: one launcher a process, started when first needed.

It ends with the test process, however that ends: in order at exit, otherwise because the sockets to
it do. A fork of the test process has no part in it, and gets a launcher of its own if it asks.
"""

import atexit
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Self

# In a broker's home: what it writes to standard error, and its log directory.
EVENTS_FILE: Final = "events.log"
LOGS_DIRECTORY: Final = "logs"

_END_SECONDS = 60.0
# -P: what lies in the current directory is the tests', and no part of a broker.
_MAIN = (
    "import sys; sys.path.append(sys.argv[3]); from stratalog.testing.launcher import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]))"
)


class Link:
    """One broker's socket: lines of JSON both ways, as ``launcher`` describes them."""

    def __init__(self, link: socket.socket) -> None:
        self._socket = link
        self._unread = b""

    def send(self, **what: Any) -> None:
        self._socket.sendall(json.dumps(what).encode() + b"\n")

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None when the link has ended. TimeoutError if neither comes in time."""
        give_up = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = give_up - time.monotonic()
            # Zero would mean to wait not at all, which is not the same as to be late.
            self._socket.settimeout(max(left, 0.000_001))
            try:
                received = self._socket.recv(1 << 16)
            except ConnectionError:
                received = b""
            if not received:
                return None
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Ask for the end of all that belongs to the link, and wait for it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while self.receive(_END_SECONDS) is not None:
                pass
        self.close()

    def close(self) -> None:
        """Let go of it; all that belongs to it ends when nobody else holds it."""
        self._socket.close()


class LauncherProcess:
    """The launcher as its parent knows it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, said: IO[bytes]):
        self._process = process
        self._owner = os.getpid()
        self._control = control
        self._said = said
        self._words = ""

    @classmethod
    def start(cls) -> Self:
        control, theirs = (_beyond_the_standard(each) for each in socket.socketpair())
        # Nobody reads it while all is well, and a pipe would fill.
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        arguments = (theirs.fileno(), os.getpid(), Path(__file__).parents[2])
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the tests, which then end their brokers.
                start_new_session=True,
                cwd="/",
            )
        return cls(process, control, said)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Not in a fork of the test process: a launcher is the child of one process only."""
        return self._process.poll() is None

    def said(self) -> str:
        """What it wrote to standard error: why it ended, if it did by itself."""
        if not self._said.closed:
            self._said.seek(0)
            self._words = self._said.read().decode(errors="replace").strip()
        return self._words

    def open_link(self) -> Link:
        """OSError if the launcher has ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"\0"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return Link(ours)

    def close(self) -> None:
        """End it, with every broker that still runs."""
        if os.getpid() == self._owner:
            with suppress(OSError):  # a fork of ours may hold the socket too, and go on
                self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.said()
        self._said.close()


def _beyond_the_standard(link: socket.socket) -> socket.socket:
    """Where standard input and its like are closed, a socket gets their numbers, which a process
    that is started then uses for its own."""
    with link:
        return socket.socket(fileno=fcntl.fcntl(link.fileno(), fcntl.F_DUPFD_CLOEXEC, 3))


_lock = threading.Lock()
_current: LauncherProcess | None = None


def launcher() -> LauncherProcess:
    """The one of this process; a new one if there is none, or it has ended."""
    global _current
    with _lock:
        if _current is not None and not _current.is_running:
            _current.close()
            _current = None
        if _current is None:
            _current = LauncherProcess.start()
        return _current


def close_launcher() -> None:
    """End what ``launcher`` has started; it starts again when it is needed again."""
    global _current
    with _lock:
        ended, _current = _current, None
        if ended is not None:
            ended.close()


atexit.register(close_launcher)
