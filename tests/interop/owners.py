"""One log directory, one port, one ``server.properties``: Apache Kafka and stratalog take turns.

Clients see one broker that is restarted now and then, and are told nothing of who it is.
"""

import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from apache_kafka import KafkaBroker, KafkaDistribution

KAFKA, OURS = "Apache Kafka", "stratalog"
START_SECONDS = 120


class Owners:
    """At most one of the two runs. ``stop`` is a clean end, ``kill`` is ``kill -9``."""

    def __init__(
        self, distribution: KafkaDistribution, home: Path, configs: Mapping[str, str]
    ) -> None:
        self._kafka = KafkaBroker(distribution, home, configs)
        self.log_dir = self._kafka.log_dir
        self.bootstrap_server = self._kafka.bootstrap_server
        self._events = home / "events"
        self._ours: subprocess.Popen[str] | None = None
        self._owner = ""

    def start(self, owner: str) -> None:
        """Returns when the broker serves its partitions."""
        self._owner = owner
        if owner == KAFKA:
            self._kafka.start()
        else:
            self._serve()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def close(self) -> None:
        if self._owner:
            self.kill()

    def _serve(self) -> None:
        config = self.log_dir.parent / "server.properties"
        with self._events.open("ab") as events:
            self._ours = subprocess.Popen(
                [sys.executable, "-m", "stratalog", "serve", "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=events,
                text=True,
            )
        assert self._ours.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._ours.stdout, selectors.EVENT_READ)
            assert ready.select(START_SECONDS), self.said()
        assert self._ours.stdout.readline(), self.said()

    def _end(self, how: signal.Signals) -> None:
        owner, self._owner = self._owner, ""
        if owner == KAFKA:
            self._kafka.stop() if how == signal.SIGTERM else self._kafka.kill()
            return
        process, self._ours = self._ours, None
        assert process is not None
        assert process.stdout is not None
        process.send_signal(how)
        process.wait(START_SECONDS)
        process.stdout.close()

    def said(self) -> str:
        """What stratalog has told so far."""
        return self._events.read_text()[-3000:] if self._events.exists() else ""


def verify(log_dir: Path) -> None:
    """Our own check of the whole directory finds nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "stratalog", "log", "verify", str(log_dir)],
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing wrong" in done.stdout, done.stdout


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun
