"""Brokers for the scenarios: stratalog in a thread, or Apache Kafka in a process."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}


@dataclass(frozen=True, slots=True)
class BrokerPlace:
    """Where a broker answers, and where it keeps its logs if that is known."""

    bootstrap_server: str
    log_dir: Path | None = None


StartBroker = Callable[..., AbstractContextManager[BrokerPlace]]


@contextmanager
def run_stratalog(data_dir: Path, port: int = 0, **settings: str) -> Iterator[BrokerPlace]:
    """``settings`` are Kafka's with ``_`` for ``.``; with port 0 the kernel chooses one."""
    from broker_fixture import running_broker

    settings["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
    with running_broker(data_dir, **{**SETTINGS, **_named(settings)}) as running:
        yield BrokerPlace(running.bootstrap_server, data_dir)


@contextmanager
def run_apache_kafka(data_dir: Path, port: int = 0, **settings: str) -> Iterator[BrokerPlace]:
    """The same with Apache Kafka; without Java or Maven the test is skipped."""
    interop = str(Path(__file__).resolve().parents[1] / "interop")
    if interop not in sys.path:
        sys.path.append(interop)
    from apache_kafka import KafkaBroker, KafkaDistribution, KafkaUnavailableError

    try:
        distribution = KafkaDistribution.resolve()
    except KafkaUnavailableError as error:
        pytest.skip(str(error))
    kafka = KafkaBroker(distribution, data_dir, {**SETTINGS, **_named(settings)})
    kafka.port = port or kafka.port
    with kafka as running:
        yield BrokerPlace(running.bootstrap_server, running.log_dir)


def _named(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}
