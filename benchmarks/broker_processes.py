"""The brokers that are measured, each in a process of its own over a directory of its own.

Apache Kafka is one KRaft node with the heap, the collector and the settings that its own start
script and its own server.properties give it; its jars are those of the interop tests. Ours is
``stratalog serve``. Both log warnings only or events only, to a file.

What a broker spends is what the kernel says of its process: user and system time of all threads.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.broker_figures import OURS, SYNCED
from benchmarks.broker_raw import BrokerFailedError, Connection, free_ports
from benchmarks.measurement import KAFKA
from benchmarks.peers import KAFKA_JVM, kafka_distribution, why_no_kafka
from benchmarks.processes import cpu_s

READY_SECONDS = 60
STOP_SECONDS = 60
CLUSTER_ID = "c3RyYXRhbG9nLWJlbmNoMA"  # any 16 bytes in base64url

# What its server.properties says where that is not the default anyway.
KAFKA_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
# Of both: what one turn deleted shall be gone before the next.
SETTINGS = {"log.segment.delete.delay.ms": "100"}
SETTLE_SECONDS = 1.0


@dataclass(slots=True)
class BrokerProcess:
    """One broker; ``start`` returns when it answers, ``stop`` when it has ended."""

    name: str
    home: Path
    port: int
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def bootstrap_server(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it is not running"
        return self._process.pid

    @property
    def log_dir(self) -> Path:
        return self.home / "logs"

    def connect(self) -> Connection:
        return Connection(self.port)

    def spawn(self) -> None:
        """Start the process and wait for nothing."""
        with (self.home / "console.log").open("ab") as console:
            self._process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
            )

    def start(self) -> None:
        self.spawn()
        until, tick = time.monotonic() + READY_SECONDS, threading.Event()
        while time.monotonic() < until:
            self.raise_if_ended()
            with suppress(OSError, EOFError), self.connect() as connection:
                if connection.broker_count():
                    return
            tick.wait(0.05)
        self.stop()
        raise BrokerFailedError(f"{self.name} did not start: {self._said()}")

    def raise_if_ended(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise BrokerFailedError(f"{self.name} ended by itself: {self._said()}")

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """As kill -9 does: nothing is finished."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def cpu_s(self) -> float:
        """What all threads of the process have spent since it started."""
        return cpu_s(self.pid)

    def waited_s(self) -> float:
        """How long its first thread was ready to run and others had the cores."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e9

    def resident_mb(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (found,) = (line for line in lines if line.startswith("VmRSS"))
        return int(found.split()[1]) * 1024 / 1e6

    def _said(self) -> str:
        return (self.home / "console.log").read_text(errors="replace")[-2000:]


def stratalog(
    home: Path, *, is_synced: bool = False, settings: Mapping[str, str] | None = None
) -> BrokerProcess:
    home.mkdir(parents=True)
    (port,) = free_ports(1)
    flush = {"log.flush.on.ack": str(is_synced).lower()}
    all_settings = {**SETTINGS, **flush, **(settings or {})}
    command = [sys.executable, "-m", "stratalog", "serve", "--log-dir", str(home / "logs")]
    command += ["--listen", f"127.0.0.1:{port}"]
    for name, value in all_settings.items():
        command += ["--set", f"{name}={value}"]
    return BrokerProcess(SYNCED if is_synced else OURS, home, port, command, installed(home.parent))


def installed(root: Path) -> Mapping[str, str]:
    """The environment of a Python that keeps what it compiles, as an installed package has it.

    Whoever develops may have told Python not to, which is a start several times as long. What
    the first start compiles is kept below ``root``.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(root / "bytecode")}


def apache_kafka(home: Path, *, settings: Mapping[str, str] | None = None) -> BrokerProcess | None:
    """A formatted directory and the command for a broker over it; None where it cannot run."""
    if why_no_kafka() is not None:
        return None
    home.mkdir(parents=True)
    port, controller_port = free_ports(2)
    all_settings = {
        **KAFKA_SETTINGS,
        **SETTINGS,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(home / "logs"),
        **(settings or {}),
    }
    properties = home / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in all_settings.items()))
    formatted = kafka_distribution().run_tool(
        "kafka.tools.StorageTool",
        *("format", "--config", str(properties), "--cluster-id", CLUSTER_ID),
    )
    if formatted.exit_code:
        raise BrokerFailedError(f"storage format failed: {formatted.stdout}{formatted.stderr}")
    command = java_command(KAFKA_JVM, "kafka.Kafka", str(properties))
    return BrokerProcess(KAFKA.name, home, port, command)


def java_command(jvm_flags: Sequence[str], main_class: str, *arguments: str) -> list[str]:
    """The command line for a class of Apache Kafka, which logs warnings."""
    distribution = kafka_distribution()
    logging = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dlog4j2.StatusLogger.level=OFF")
    command = [distribution.java, *jvm_flags, *logging, "-cp", distribution.classpath]
    return [*command, main_class, *arguments]


@contextmanager
def running(brokers: Sequence[BrokerProcess | None]) -> Iterator[list[BrokerProcess]]:
    """Those there are, started and in the end stopped."""
    with ExitStack() as stack:
        there = [broker for broker in brokers if broker is not None]
        for broker in there:
            stack.callback(broker.stop)
            broker.start()
        yield there


@contextmanager
def all_sides(
    root: Path, *, settings: Mapping[str, str] | None = None
) -> Iterator[list[BrokerProcess]]:
    """Ours, ours with a flush before each acknowledgement, and Apache Kafka."""
    sides = [
        stratalog(root / "ours", settings=settings),
        stratalog(root / "synced", is_synced=True, settings=settings),
        apache_kafka(root / "kafka", settings=settings),
    ]
    with running(sides) as there:
        yield there


class topic:
    """A new topic that is deleted again, its files too, before anybody else is measured."""

    def __init__(self, side: BrokerProcess, name: str, partitions: int = 1) -> None:
        self._side, self._name, self._partitions = side, name, partitions

    def __enter__(self) -> str:
        with self._side.connect() as connection:
            connection.create_topic(self._name, partitions=self._partitions)
        return self._name

    def __exit__(self, *_: object) -> None:
        with self._side.connect() as connection:
            connection.delete_topic(self._name)
        settle(self._side, self._name)


def settle(side: BrokerProcess, name: str) -> None:
    """When a topic that was deleted, or all whose names begin so, is gone from the disk."""
    tick = threading.Event()
    while any(side.log_dir.glob(f"{name}-*")):
        tick.wait(0.1)
    tick.wait(SETTLE_SECONDS)
