"""Apache Kafka's own log, cleaner and retention, asked one question at a time.

``kafka/LogOracle.java`` is run by the source launcher against the pinned jars and lives as long as
the context: a question is one line of JSON, and so is its answer. A broker would clean and retain
at moments of its own; here the question names the clock.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

from apache_kafka import HERE, JVM_FLAGS, KafkaDistribution, KafkaFailedError

SOURCE = HERE / "kafka" / "LogOracle.java"
Answer = dict[str, Any]


class KafkaLogs:
    """A process that does to directories what a broker does to its own, when it is told to."""

    def __init__(
        self, distribution: KafkaDistribution, *, jvm_flags: Sequence[str] = JVM_FLAGS
    ) -> None:
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        self._errors = TemporaryFile()  # noqa: SIM115  lives as long as the process
        self._process = subprocess.Popen(
            [distribution.java, *jvm_flags, logging, "-cp", distribution.classpath, str(SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        self._errors.close()

    def ask(
        self, op: str, directory: Path, configs: Mapping[str, str], *, now_ms: int, **rest: object
    ) -> Answer:
        """One question; what Kafka threw is an answer with ``error`` and ``message``."""
        question = {"op": op, "directory": str(directory), "configs": dict(configs)}
        question |= {"now_ms": now_ms, **rest}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise KafkaFailedError(f"gave no answer: {self._errors.read()[-3000:]!r}")
        answer: Answer = json.loads(line)
        return answer
