"""The process that brokers of tests are forked from: it has imported the broker once for all.

To import takes most of a broker's start, so that a fork of a process that has done it is ready in a
tenth of the time. This process has one thread and opens nothing that a fork could spoil.

Rule: nothing outlives the tests. Each broker has a *home*, a temporary directory, and a *link*, a
socket to the test process. When the link ends, in whichever way, the broker is killed and its home
removed; when the test process is gone, so is this one. A broker ends with this process too: the
system kills it (Linux), and its *leash*, a socket to this process, tells it (elsewhere).

    control   one byte for each new link, which comes along as a descriptor
    link      lines of JSON, to here:  {"start": settings}   {"signal": number}
              and back:                {"home": path}   {"ended": exit code}
              from the broker itself:  {"pid": number}   {"ready": {...}} or {"failed": sentence}
    leash     nothing; it only ends

An exit code is as in ``subprocess``: below zero, the number of the signal.
"""

import asyncio
import ctypes
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stratalog.errors import StratalogError
from stratalog.testing.launching import EVENTS_FILE, LOGS_DIRECTORY

if TYPE_CHECKING:
    from stratalog.broker.server import Broker

_LINE_BYTES_MAX = 1 << 20
_PR_SET_PDEATHSIG = 1


def main(control: int, parent: int) -> None:
    """Run until the test process, ``parent``, is gone; ``control`` is the socket to it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, children could not be waited for
    _import_broker()
    gc.collect()
    gc.freeze()  # pages that brokers share with this process stay shared
    Launcher(socket.socket(fileno=control), parent).run()


def _import_broker() -> None:
    """All that a broker needs to be ready."""
    import stratalog.broker.process
    import stratalog.broker.server  # noqa: F401


def write_line(link: socket.socket, **what: Any) -> None:
    link.sendall(json.dumps(what).encode() + b"\n")


class Home:
    """One broker's directory, its link, and its process while one runs."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.path = ""
        self.pid = 0
        self.leash: socket.socket | None = None
        self.unread = bytearray()

    def lines(self) -> list[Any] | None:
        """What has come over the link; None when it has ended."""
        try:
            received = self.link.recv(1 << 16)
        except OSError:
            return None
        self.unread += received
        if not received or len(self.unread) > _LINE_BYTES_MAX:
            return None
        *whole, rest = self.unread.split(b"\n")
        self.unread = bytearray(rest)
        return [json.loads(line) for line in whole]


class Launcher:
    """Starts brokers, and ends them. ``run`` returns when the test process is gone."""

    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._pid = os.getpid()
        self._homes: set[Home] = set()
        self._selector = selectors.DefaultSelector()
        self._is_over = False

    def run(self) -> None:
        self._selector.register(self._control, selectors.EVENT_READ, self._open_link)
        # What the tests have forked holds the other ends too, maybe for longer than the tests run.
        look_again_seconds: float | None = 1.0
        with suppress(AttributeError, OSError):
            self._selector.register(os.pidfd_open(self._parent), selectors.EVENT_READ, self._end)
            look_again_seconds = None
        while not self._is_over and os.getppid() == self._parent:
            for key, _ in self._selector.select(look_again_seconds):
                key.data()
        for home in list(self._homes):
            self._remove(home)

    def _end(self) -> None:
        self._is_over = True

    def _open_link(self) -> None:
        try:
            _, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        except OSError:
            descriptors = []
        if not descriptors:
            self._end()
            return
        home = Home(socket.socket(fileno=descriptors[0]))
        self._homes.add(home)
        self._selector.register(home.link, selectors.EVENT_READ, lambda: self._obey(home))

    def _obey(self, home: Home) -> None:
        lines = home.lines() if home in self._homes else []
        if lines is None:
            self._remove(home)
            return
        for line in lines:
            if "start" in line:
                self._start(home, line["start"])
            elif home.pid:
                os.kill(home.pid, line["signal"])

    # --- one broker ---------------------------------------------------------------------------

    def _start(self, home: Home, settings: dict[str, str]) -> None:
        try:
            if not home.path:
                home.path = _make_home(has_logs="log.dirs" not in settings)
                write_line(home.link, home=home.path)
        except OSError as error:
            self._refuse(home, f"no temporary directory could be made for it: {error}")
            return
        try:
            home.leash, leash = socket.socketpair()
            home.pid = os.fork()
        except OSError as error:
            self._refuse(home, f"no process could be made for it: {error}")
            return
        if home.pid == 0:
            self._become_broker(home, leash, settings)
        leash.close()
        self._selector.register(home.leash, selectors.EVENT_READ, lambda: self._reap(home))

    def _refuse(self, home: Home, why: str) -> None:
        _tell(home.link, failed=why)
        _tell(home.link, ended=1)

    def _reap(self, home: Home) -> None:
        """The broker has ended, or will at once: nobody else holds the other end of its leash."""
        if home.leash is None:
            return  # done, when the link ended in the same moment
        self._selector.unregister(home.leash)
        home.leash.close()
        _, status = os.waitpid(home.pid, 0)
        home.pid, home.leash = 0, None
        _tell(home.link, ended=os.waitstatus_to_exitcode(status))

    def _remove(self, home: Home) -> None:
        if home.pid:
            os.kill(home.pid, signal.SIGKILL)
            self._reap(home)
        if home.path:
            shutil.rmtree(home.path, ignore_errors=True)
        self._homes.remove(home)
        self._selector.unregister(home.link)
        home.link.close()  # last: who waits for its end finds nothing left

    def _become_broker(self, home: Home, leash: socket.socket, settings: dict[str, str]) -> None:
        """What the fork does; it does not return."""
        code = 1
        try:
            _die_with(self._pid)
            # By itself, so that nothing else that it tells can come before.
            write_line(home.link, pid=os.getpid())
            self._selector.close()
            self._control.close()
            for other in self._homes:
                if other is not home:
                    other.link.close()
                if other.leash is not None:
                    other.leash.close()
            _redirect_output(f"{home.path}/{EVENTS_FILE}")
            code = _run(home, leash, settings)
        except StratalogError as error:
            _tell(home.link, failed=str(error))
        except BaseException:  # noqa: BLE001 - a fork has nobody to raise to
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _make_home(*, has_logs: bool) -> str:
    home = tempfile.mkdtemp(prefix="stratalog-")
    if has_logs and "," in home:
        os.rmdir(home)
        # A broker's log directories are a list with commas in between.
        raise OSError(
            f"{os.path.dirname(home)} has a comma in its name, which the path of a log directory "
            "cannot have. Set TMPDIR to another, or give log_dir"
        )
    return home


def _run(home: Home, leash: socket.socket, settings: dict[str, str]) -> int:
    from stratalog.broker.process import run_broker
    from stratalog.config.listeners import format_address

    def ready(broker: "Broker") -> None:
        asyncio.get_running_loop().add_reader(leash, os._exit, 1)
        admin = broker.admin
        write_line(
            home.link,
            ready={
                "bootstrap_servers": format_address(broker.endpoint.host, broker.endpoint.port),
                "port": broker.endpoint.port,
                "admin": f"http://{format_address(admin.host, admin.port)}" if admin else "",
            },
        )

    log_dir = f"{home.path}/{LOGS_DIRECTORY}"
    return run_broker({"log.dirs": log_dir, **settings}, is_config_known=False, ready=ready)


def _tell(link: socket.socket, **what: Any) -> None:
    """Where the test process is gone already, the link has ended, which is seen next."""
    with suppress(OSError):
        write_line(link, **what)


def _die_with(launcher: int) -> None:
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(1)


def _redirect_output(path: str) -> None:
    """Appends: what a broker wrote before it was started again stays."""
    events = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(events, descriptor)
    os.close(events)
