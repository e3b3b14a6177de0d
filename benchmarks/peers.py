"""The systems we are compared with, from the artifacts that the interop tests fetch from Maven.

What cannot be had here, or is not wanted (``--alone``), is a reason in words: our part is then
measured alone, and the row says why.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apache_kafka import KafkaDistribution
    from log_oracle import KafkaLogs

INTEROP = Path(__file__).resolve().parents[1] / "tests" / "interop"
ALONE_VARIABLE = "STRATALOG_BENCH_ALONE"
# What kafka-server-start.sh and kafka-run-class.sh hand to Java.
KAFKA_JVM = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-Djava.awt.headless=true",
)

for _directory in (INTEROP, INTEROP.parent):  # as pytest has them
    if str(_directory) not in sys.path:
        sys.path.append(str(_directory))


def kafka_distribution() -> "KafkaDistribution":
    from apache_kafka import KafkaDistribution

    return KafkaDistribution.resolve()


@cache
def why_no_kafka() -> str | None:
    """None where Apache Kafka can be run."""
    from apache_kafka import KafkaUnavailableError

    if os.environ.get(ALONE_VARIABLE):
        return "left out as asked"
    try:
        kafka_distribution()
    except KafkaUnavailableError as missing:
        return _first_words(missing)
    return None


@cache
def why_no_connector() -> str | None:
    """None where Spark's Kafka connector and a broker for it can be had."""
    if why := why_no_kafka():
        return why
    from tools_fetched import ToolUnavailableError

    try:
        connector_jars()
    except ToolUnavailableError as missing:
        return _first_words(missing)
    return None


def _first_words(missing: Exception) -> str:
    """What comes then is what Maven printed: addresses and paths that are nobody else's."""
    print(missing, file=sys.stderr)
    return str(missing).partition(":")[0].splitlines()[0]


@contextmanager
def kafka_logs() -> Iterator["KafkaLogs | None"]:
    """Apache Kafka's own log in a process that is asked; None where it cannot run."""
    if why_no_kafka() is not None:
        yield None
        return
    from log_oracle import KafkaLogs

    with KafkaLogs(kafka_distribution(), jvm_flags=KAFKA_JVM) as logs:
        yield logs


def connector_jars() -> list[Path]:
    from tools_fetched import spark_connector

    return spark_connector()


def kafka_note(note: str = "") -> str:
    """``note``, and why Apache Kafka is not there if it is not."""
    why = why_no_kafka()
    return note if why is None else "; ".join(filter(None, (note, f"no Apache Kafka: {why}")))


def kafka_version() -> str | None:
    """Of the release that the interop tests pin."""
    from apache_kafka import POM

    found = re.search(r"<kafka\.version>([^<]+)</", POM.read_text())
    return found[1] if found else None


def connector_version() -> str | None:
    """None where it is not there; nothing is fetched for the sake of a version."""
    if why_no_connector() is not None:
        return None
    names = (re.fullmatch(r"spark-sql-kafka.*-([\d.]+)\.jar", jar.name) for jar in connector_jars())
    return next((found[1] for found in names if found), None)
