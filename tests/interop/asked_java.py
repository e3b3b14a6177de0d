"""A Java process that lives as long as its context: a question is one line of JSON, and so is its
answer."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

from apache_kafka import JVM_FLAGS, KafkaDistribution, KafkaFailedError

END_SECONDS = 60


class AskedJava:
    """What ``main`` reads from its stdin, on the jars of ``distribution``."""

    def __init__(
        self,
        distribution: KafkaDistribution,
        main: str,
        *,
        classpath: str,
        jvm_flags: Sequence[str] = JVM_FLAGS,
    ) -> None:
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        self._errors = TemporaryFile()  # noqa: SIM115  lives as long as the process
        self._process = subprocess.Popen(
            [distribution.java, *jvm_flags, logging, "-cp", classpath, main],
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
        self._process.wait(END_SECONDS)
        self._process.stdout.close()
        self._errors.close()

    def answer_to(self, question: Mapping[str, object]) -> Any:
        """What Kafka threw is an answer too, with ``error`` and ``message``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise KafkaFailedError(f"gave no answer: {self._errors.read()[-3000:]!r}")
        return json.loads(line)
