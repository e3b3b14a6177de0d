"""A real broker for tests of other people's code, in a process and a directory of its own.

    with stratalog.testing.broker(topics={"orders": 3}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Rule: when the block is left nothing remains, neither process nor port nor directory, and so it is
when the test process is killed inside it. A directory that the caller has named is the exception:
there the broker stops cleanly, and all stays.
"""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stratalog.errors import StratalogError
from stratalog.testing.launching import EVENTS_FILE, LOGS_DIRECTORY, LauncherProcess, Link, launcher

START_SECONDS = 60.0
STOP_SECONDS = 60.0
_LAUNCHERS_MAX = 3
_SAID_CHARACTERS = 4_000
_NO_LAUNCHER = "the process that starts brokers has ended"

# What makes tests quick, small disks do, and records of any year stay: retention would delete those
# older than a week, half a minute after the start. What is acknowledged survives a kill, as with
# Kafka's own defaults, and not a loss of power, which would not leave the tests either.
QUICK_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "log.dir.reserve.bytes": "0",
    "log.flush.on.ack": "false",
    "log.initial.task.delay.ms": "3600000",
    "offsets.topic.num.partitions": "1",
}

Topics = Mapping[str, int] | Iterable[str]
Settings = Mapping[str, str | int | float | bool]


class BrokerStartError(StratalogError):
    """A broker for a test is not ready; the sentence says why, with what the broker wrote."""


class RunningBroker:
    """A broker in another process. ``broker`` makes it, and ends it."""

    def __init__(
        self, settings: Mapping[str, str], *, port: int, log_dir: str, start_seconds: float
    ) -> None:
        self._settings = settings
        self._start_seconds = start_seconds
        self._owner = os.getpid()
        self._home = ""
        self._exit_code: int | None = None
        # Whoever holds it reads the link; what is told is noted for all.
        self._lock = threading.RLock()
        self._launcher, self._link = _open_link()
        self.pid = 0
        self.port = port
        self.log_dir = log_dir
        self.bootstrap_servers = ""
        # Of the admin port: http://host:port; empty where the settings have none.
        self.admin = ""

    @property
    def is_running(self) -> bool:
        """Whether its process runs now."""
        self._hear()
        return self.pid != 0

    @property
    def exit_code(self) -> int | None:
        """How it ended, as ``subprocess`` says it; None while it runs."""
        self._hear()
        return self._exit_code

    def events(self) -> str:
        """What it has written to standard error, since the first start."""
        path = Path(self._home) / EVENTS_FILE
        return path.read_text(errors="replace") if self._home and path.exists() else ""

    # --- topics -------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, configs: Settings | None = None) -> None:
        """Make a topic, and return when it can be used. ``configs`` are Kafka's."""
        from stratalog.testing.topics import create_topics

        texts = {key: as_text(value) for key, value in (configs or {}).items()}
        create_topics(self.bootstrap_servers, {name: partitions}, texts)

    def create_topics(self, topics: Topics) -> None:
        """Make several at once: names, or names with numbers of partitions."""
        from stratalog.testing.topics import create_topics

        create_topics(self.bootstrap_servers, by_name(topics), {})

    # --- stopping and starting ----------------------------------------------------------------

    def start(self) -> None:
        """Start it again after ``stop`` or ``kill``: same port, same directory."""
        with self._lock:
            if not self.is_running:
                self._start()

    def _start(self) -> None:
        address = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}"}
        where = {"log.dirs": self.log_dir} if self.log_dir else {}
        give_up = time.monotonic() + self._start_seconds
        try:
            self._link.send(start={**address, **where, **self._settings})
            while "ready" not in (told := self._receive(give_up)):
                if "failed" in told:
                    self._end_start()
                    raise self._not_ready(told["failed"])
                if "ended" in told:
                    raise self._not_ready(f"its process ended with exit code {told['ended']}")
        except TimeoutError:
            self._end_start()
            raise self._not_ready(f"it took longer than {self._start_seconds:g} s") from None
        except OSError:
            raise self._not_ready(_NO_LAUNCHER, self._launcher.said()) from None

    def stop(self) -> None:
        """Stop it cleanly, as SIGTERM does; its directory stays until the end of the block."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as ``kill -9`` does; the next start recovers what is in its directory."""
        self._signal(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it cleanly, and start it again."""
        self.stop()
        self.start()

    def end(self, *, is_kept: bool) -> None:
        """``is_kept``: what is in its log directory will be used again."""
        if os.getpid() != self._owner:
            self._link.close()
            return  # a fork that leaves the block of its parent
        try:
            if is_kept:
                self.stop()
        finally:
            self._link.end()
            self.pid = 0
            if self._home:  # the launcher has done it, if it still could
                shutil.rmtree(self._home, ignore_errors=True)

    def _end_start(self) -> None:
        """End the process of a start that failed, whether it has told its number yet or not."""
        give_up = time.monotonic() + STOP_SECONDS
        with suppress(ConnectionError):  # the launcher has ended, and with it the broker
            self._link.send(signal=int(signal.SIGKILL))
            while "ended" not in self._receive(give_up):
                pass

    def _signal(self, number: int) -> None:
        with self._lock:
            if not self.is_running:
                return
            give_up = time.monotonic() + STOP_SECONDS
            try:
                self._link.send(signal=int(number))
                while self.pid:
                    self._receive(give_up)
            except TimeoutError:
                raise TimeoutError(
                    f"The broker, process {self.pid}, has not ended in {STOP_SECONDS:g} s."
                ) from None
            except ConnectionError:
                pass  # the launcher has ended, and with it the broker

    # --- what comes over the link -------------------------------------------------------------

    def _hear(self) -> None:
        """Take what has come already, unless somebody else is at it."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            with suppress(TimeoutError, ConnectionError):
                while self.pid:
                    self._receive(0)
        finally:
            self._lock.release()

    def _receive(self, give_up: float) -> Mapping[str, Any]:
        """The next that is told, until ``give_up`` of the monotonic clock; what it says is noted.
        ConnectionError if nothing will ever be."""
        told = self._link.receive(max(give_up - time.monotonic(), 0))
        if told is None:
            self.pid = 0
            raise ConnectionError(_NO_LAUNCHER)
        if "home" in told:
            self._home = told["home"]
            self.log_dir = self.log_dir or f"{self._home}/{LOGS_DIRECTORY}"
        elif "pid" in told:
            self.pid, self._exit_code = told["pid"], None
        elif "ended" in told:
            self.pid, self._exit_code = 0, told["ended"]
        elif "ready" in told:
            self.bootstrap_servers = told["ready"]["bootstrap_servers"]
            self.port, self.admin = told["ready"]["port"], told["ready"]["admin"]
        return told

    def _not_ready(self, reason: str, said: str = "") -> BrokerStartError:
        said = (said or self.events()).strip()[-_SAID_CHARACTERS:]
        sentence = f"The broker is not ready: {reason}{'' if reason[-1] in '.?!' else '.'}"
        return BrokerStartError(f"{sentence} It wrote:\n{said}" if said else sentence)


def _open_link() -> tuple[LauncherProcess, Link]:
    for _ in range(_LAUNCHERS_MAX):
        found = launcher()
        with suppress(OSError):
            return found, found.open_link()
        found.close()  # it has ended: of itself, or it was killed and nobody has noticed yet
        if found.said():
            break
    raise BrokerStartError(f"The broker is not ready: {_NO_LAUNCHER}. It wrote:\n{found.said()}")


@contextmanager
def broker(
    settings: Settings | None = None,
    *,
    topics: Topics = (),
    log_dir: str | os.PathLike[str] | None = None,
    port: int = 0,
    start_seconds: float = START_SECONDS,
) -> Iterator[RunningBroker]:
    """A broker that accepts clients until the block is left.

    ``settings`` are the broker's, by Kafka's names. ``topics`` are made before the block is
    entered: names, or names with numbers of partitions. ``log_dir`` is served, and kept, instead of
    a temporary directory. ``port`` 0 is any that is free.
    """
    named = {**QUICK_SETTINGS, **{name: as_text(value) for name, value in (settings or {}).items()}}
    if "log.dirs" in named or "log.dir" in named:
        raise BrokerStartError("The broker's directory is the argument log_dir, not a setting.")
    if log_dir is not None and not os.fspath(log_dir):
        raise BrokerStartError("log_dir is empty; leave it out for a temporary directory.")
    kept = "" if log_dir is None else os.path.abspath(log_dir)
    if "," in kept:
        raise BrokerStartError(f"A log directory has no comma in its name, as {kept} has.")
    if kept:
        _make_directory(kept)
    running = RunningBroker(named, port=port, log_dir=kept, start_seconds=start_seconds)
    try:
        running.start()
        if topics:
            running.create_topics(topics)
        yield running
    finally:
        running.end(is_kept=bool(kept))


def _make_directory(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise BrokerStartError(f"log_dir {path} is not a directory.") from None
    except OSError as error:
        raise BrokerStartError(f"log_dir {path} cannot be made: {error.strerror}.") from error


def by_name(topics: Topics) -> dict[str, int]:
    """Topics with their numbers of partitions."""
    if isinstance(topics, Mapping):
        return dict(topics)
    return dict.fromkeys([topics] if isinstance(topics, str) else topics, 1)


def as_text(value: object) -> str:
    """A setting as a file of properties has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
