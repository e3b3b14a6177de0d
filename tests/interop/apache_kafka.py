"""Apache Kafka itself, from Maven artifacts: its tools as a function, its broker as a context.

The pom beside this file pins the release. Its jars are copied once into ``.interop/`` (ignored by
git), under a name made from the pom's own bytes, so that another release never meets old jars.

A broker here is one process with both KRaft roles, on loopback ports that were free, with a small
heap and with every background task that would change files at a moment of its own pushed out of
the way. It is stopped by its process id: ``stop`` is a clean shutdown, ``kill`` is ``kill -9``.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from wire import KafkaConnection, WireError

from free_ports import free_port

HERE = Path(__file__).resolve().parent
POM = HERE / "kafka" / "pom.xml"
CACHE = HERE.parents[1] / ".interop"

CLUSTER_ID = "c3RyYXRhbG9nLXRlc3RzMA"  # any 16 bytes in base64url
START_SECONDS = 180
STOP_SECONDS = 120
TOOL_SECONDS = 300

# Start-up is most of what these processes do: no optimising compiler, the simplest collector.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx512m")

BROKER_DEFAULTS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # After kill -9 the controller lets the same node back in only when this has passed.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.cleaner.threads": "1",
    "num.io.threads": "2",
    "num.network.threads": "1",
    # The tests write records with fixed, old timestamps and compare files: nothing may age.
    "log.retention.ms": "-1",
    "log.message.timestamp.before.max.ms": "9223372036854775807",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
}


class KafkaUnavailableError(Exception):
    """This machine cannot run Apache Kafka; the reason is the message."""


class KafkaFailedError(Exception):
    """Apache Kafka ran and did not do what was asked; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What one run of a Kafka tool printed, and the code it left with."""

    stdout: str
    stderr: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class KafkaDistribution:
    """The jars of the pinned release, and the Java that runs them."""

    java: str
    classpath: str

    @classmethod
    @cache
    def resolve(cls) -> "KafkaDistribution":
        """Find the jars, fetching them the first time; raise KafkaUnavailableError if we cannot."""
        java = shutil.which("java")
        if java is None:
            raise KafkaUnavailableError("no java on the PATH")
        home = CACHE / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
        if not home.is_dir():
            _fetch_jars(home)
        return cls(java=java, classpath=str(home / "*"))

    def command(self, main_class: str, args: Sequence[str], *, log_level: str) -> list[str]:
        """The command line that runs a class of the distribution."""
        logging = (
            f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dlog4j2.StatusLogger.level=OFF",
        )
        return [self.java, *JVM_FLAGS, *logging, "-cp", self.classpath, main_class, *args]

    def run_tool(self, main_class: str, *args: str, cwd: Path | None = None) -> ToolRun:
        """Run one tool to its end; a non-zero exit code is the caller's to judge."""
        done = subprocess.run(
            self.command(main_class, args, log_level="off"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=TOOL_SECONDS,
            check=False,
        )
        return ToolRun(done.stdout, done.stderr, done.returncode)

    def dump_log(
        self, files: Sequence[str | Path], *flags: str, cwd: Path | None = None
    ) -> ToolRun:
        """kafka-dump-log over all ``files`` in one process."""
        names = ",".join(str(file) for file in files)
        main_class = "org.apache.kafka.tools.DumpLogSegments"
        return self.run_tool(main_class, *flags, "--files", names, cwd=cwd)


def _fetch_jars(home: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailableError("no mvn on the PATH to fetch Apache Kafka with")
    partial = home.with_name(f"{home.name}.{os.getpid()}.partial")
    goal = [
        "dependency:copy-dependencies",
        f"-DoutputDirectory={partial}",
        "-DincludeScope=runtime",
    ]
    done = subprocess.run(
        [maven, "-q", "-B", "-f", str(POM), *goal],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise KafkaUnavailableError(f"Maven could not fetch Apache Kafka: {done.stdout[-500:]}")
    if home.is_dir():  # another process was faster; its copy is as good
        shutil.rmtree(partial)
    else:
        partial.rename(home)


class KafkaBroker:
    """One Apache Kafka broker over ``data_dir``, which outlives it.

    Entering starts the process and returns when it answers requests; leaving stops it cleanly if it
    still runs. The same object can be started again: ports, directory and node stay.
    """

    def __init__(
        self,
        distribution: KafkaDistribution,
        data_dir: Path,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        self.distribution = distribution
        self.data_dir = data_dir
        self.log_dir = data_dir / "logs"
        self.console = data_dir / "broker.log"
        self.port, self._controller_port = free_port(), free_port()
        self._configs = dict(configs or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_server(self) -> str:
        """What a client is told to connect to."""
        return f"127.0.0.1:{self.port}"

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        """Where the broker keeps one partition."""
        return self.log_dir / f"{topic}-{partition}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.stop()

    def start(self) -> None:
        """Start the process and wait until it leads what it hosts."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        properties = self._write_properties()
        if not (self.log_dir / "meta.properties").exists():
            self._format(properties)
        # Appending keeps what earlier lives of this broker said, for the day a test fails.
        with self.console.open("ab") as console:
            self._process = subprocess.Popen(
                self.distribution.command("kafka.Kafka", [str(properties)], log_level="info"),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut down cleanly and wait for the end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a crash would."""
        self._end(signal.SIGKILL)

    def connect(self) -> KafkaConnection:
        """A raw connection to the broker."""
        return KafkaConnection("127.0.0.1", self.port)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process is not None, "the broker is not running"
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise KafkaFailedError(
                f"did not stop within {STOP_SECONDS} s: {self._said()}"
            ) from None

    def _write_properties(self) -> Path:
        listeners = (
            f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}"
        )
        configs = {
            **BROKER_DEFAULTS,
            "listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.log_dir),
            **self._configs,
        }
        path = self.data_dir / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in configs.items()))
        return path

    def _format(self, properties: Path) -> None:
        run = self.distribution.run_tool(
            "kafka.tools.StorageTool",
            *("format", "--config", str(properties), "--cluster-id", CLUSTER_ID),
        )
        if run.exit_code != 0:
            raise KafkaFailedError(f"storage format failed: {run.stdout}{run.stderr}")

    def _wait_until_ready(self) -> None:
        """Ask for metadata until the broker names itself: that is when it is unfenced."""
        assert self._process is not None
        tick = threading.Event()  # never set: a bounded wait between questions
        for _ in range(START_SECONDS * 10):
            if self._process.poll() is not None:
                raise KafkaFailedError(f"ended while starting: {self._said()}")
            try:
                with self.connect() as connection:
                    if connection.broker_ids() == [1]:
                        return
            except (OSError, WireError):
                pass
            tick.wait(0.1)
        raise KafkaFailedError(f"did not start within {START_SECONDS} s: {self._said()}")

    def _said(self) -> str:
        return self.console.read_text(errors="replace")[-3000:]
