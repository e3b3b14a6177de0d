"""Stores for the tests: made, copied as a crash would leave them, and opened again."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stratalog.config import BrokerConfig
from stratalog.metadata.image import Update
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore

CLUSTER_ID = "c3RyYXRhbG9nLXRlc3RzMA"
NODES = (1, 2, 3)
BROKER = BrokerConfig(num_partitions=2, default_replication_factor=2)
WAL_SUFFIX = "-wal"


def open_store(directory: Path, broker: BrokerConfig = BROKER) -> SqliteMetadataStore:
    return SqliteMetadataStore.open(str(directory / METADATA_FILE), broker=broker, nodes=NODES)


def new_store(directory: Path, update: Update | None = None) -> SqliteMetadataStore:
    store = open_store(directory)
    store.initialize(CLUSTER_ID, 1, update)
    return store


def copy_files(directory: Path, target: Path) -> Path:
    """The files as they are at this moment, while their owner has them open."""
    target.mkdir()
    for file in directory.iterdir():
        shutil.copyfile(file, target / file.name)
    return target


@contextmanager
def memory_directory() -> Iterator[Path]:
    """A directory where syncing costs nothing, if the machine has one: for tests that do it
    thousands of times and ask nothing about it."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if Path(memory).is_dir() else None) as directory:
        yield Path(directory)
