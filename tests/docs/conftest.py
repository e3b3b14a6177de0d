"""The directory that the commands and snippets of the pages find themselves in."""

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker_fixture import running_broker
from doc_pages import ROOT
from spark_fixture import collect_what_pyspark_left, running_spark

ARCHIVE = ROOT / "tests" / "interop" / "golden" / "kafka.tar.xz"

# Partitions that Apache Kafka wrote, under the names that the pages have for them.
PARTITIONS = {"orders-0": "clean/rolled-by-time-0", "payments-0": "clean/transactions-rolled-0"}


@pytest.fixture(scope="session")
def kafka_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("golden")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(unpacked, filter="data")
    directory = tmp_path_factory.mktemp("written-by-kafka")
    for name, place in PARTITIONS.items():
        shutil.copytree(unpacked / place, directory / name)
    return directory


@pytest.fixture
def page_directory(kafka_logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory but for ``kafka-logs``, which Apache Kafka has written and closed."""
    shutil.copytree(kafka_logs, tmp_path / "kafka-logs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def made_topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory that a broker has made empty topics in, of two partitions each."""
    directory = tmp_path_factory.mktemp("made") / "data"
    with running_broker(directory) as broker:
        client = AdminClient({"bootstrap.servers": broker.bootstrap_server})
        topics = [NewTopic(name, 2, replication_factor=1) for name in ("orders", "payments")]
        for made in client.create_topics(topics).values():
            made.result(60)
    return directory


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session that a page means by ``session()``."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    collect_what_pyspark_left()
