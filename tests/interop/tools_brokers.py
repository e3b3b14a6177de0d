"""The broker that a real client is run against: ours, or Apache Kafka, which says what is right.

What a test expects of ours has to be what Kafka's does, so the tests of Kafka's own clients run
against both. Other people's clients run against ours alone: their tests only expect what was put in
to come out again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apache_kafka import KafkaBroker, KafkaDistribution

from broker_fixture import running_broker

BROKERS = ["stratalog", "apache-kafka"]


@contextmanager
def ours(log_dir: Path, **settings: str) -> Iterator[str]:
    """Our broker; its address. Only topics that somebody made exist, unless told otherwise."""
    settings = {"auto_create_topics_enable": "false", **settings}
    with running_broker(log_dir, **settings) as broker:
        yield broker.bootstrap_server


@contextmanager
def serving(name: str, kafka: KafkaDistribution, data_dir: Path) -> Iterator[str]:
    """The broker of that name; its address."""
    if name == "stratalog":
        with ours(data_dir) as address:
            yield address
    else:
        with KafkaBroker(kafka, data_dir) as broker:
            yield broker.bootstrap_server
