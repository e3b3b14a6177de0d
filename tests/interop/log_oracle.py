"""Apache Kafka's own log, cleaner and retention, asked one question at a time.

``kafka/LogOracle.java`` is run by the source launcher against the pinned jars. A broker would clean
and retain at moments of its own; here the question names the clock.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from apache_kafka import HERE, JVM_FLAGS, KafkaDistribution
from asked_java import AskedJava

SOURCE = HERE / "kafka" / "LogOracle.java"
Answer = dict[str, Any]


class KafkaLogs(AskedJava):
    """A process that does to directories what a broker does to its own, when it is told to."""

    def __init__(
        self, distribution: KafkaDistribution, *, jvm_flags: Sequence[str] = JVM_FLAGS
    ) -> None:
        super().__init__(
            distribution, str(SOURCE), classpath=distribution.classpath, jvm_flags=jvm_flags
        )

    def ask(
        self, op: str, directory: Path, configs: Mapping[str, str], *, now_ms: int, **rest: object
    ) -> Answer:
        """One question; what Kafka threw is an answer with ``error`` and ``message``."""
        question = {"op": op, "directory": str(directory), "configs": dict(configs)}
        answer: Answer = self.answer_to(question | {"now_ms": now_ms, **rest})
        return answer
