"""Log directories to be opened: Kafka's from the archive, our own, and disks that stop working."""

import errno
import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import Any

from stratalog.broker.startup import OpenedBroker, open_broker
from stratalog.config import BrokerConfig
from stratalog.metadata import NewTopic
from stratalog.records import Record, build_batch
from stratalog.storage.files import DirectoryLock, File, OsFile, OsFileSystem
from stratalog.storage.layout import LOCK_FILE, TopicPartition
from stratalog.storage.os_errors import disk_error
from stratalog.testing import ManualClock

ARCHIVE = Path(__file__).parents[1] / "interop" / "golden" / "metadata.tar.xz"
START_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def unpack_kafka(target: Path) -> dict[str, Any]:
    """A directory of Apache Kafka's with a history, and what Kafka said of it."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target, filter="data")
    answers: dict[str, Any] = json.loads((target / "answers.json").read_text())
    return answers


def settings(*directories: Path, **more: Any) -> BrokerConfig:
    return BrokerConfig(
        log_dirs=tuple(map(str, directories)),
        log_dir_reserve_bytes=0,
        num_recovery_threads_per_data_dir=1,
        **more,
    )


def opened(
    *directories: Path,
    files: OsFileSystem | None = None,
    clock: ManualClock | None = None,
    is_config_known: bool = True,
    **more: Any,
) -> OpenedBroker:
    return open_broker(
        settings(*directories, **more),
        files=files,
        clock=clock or ManualClock(START_MS),
        is_config_known=is_config_known,
        is_threaded=False,
    )


def create(broker: OpenedBroker, name: str, partitions: int = 1, **configs: str) -> None:
    """A topic as a broker makes it, step by step."""
    topic = broker.store.create_topic(
        NewTopic(
            name=name,
            partition_count=partitions,
            replication_factor=1,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
    )
    for each in topic.partitions:
        broker.logs.create(TopicPartition(name, each.partition), topic_id=topic.topic_id)
    broker.store.mark_live(topic.topic_id)


def append(broker: OpenedBroker, key: TopicPartition, text: str, **fields: Any) -> None:
    rows = [Record(b"k", text.encode(), (), START_MS)]
    log = broker.logs.get(key)
    log.append_as_leader(build_batch(rows, **fields), leader_epoch=log.epochs.latest_epoch)


def data_of(*directories: Path) -> dict[str, str]:
    """Every ``.log`` by the name of its partition, and what it holds."""
    found = {}
    for directory in directories:
        for file in sorted(directory.glob("*/*.log")):
            found[str(file.relative_to(directory))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def tree_of(directory: Path) -> dict[str, bytes]:
    """All files but the lock: this process would lose it by closing another descriptor of it."""
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name != LOCK_FILE
    }


class Killed(BaseException):
    """The process ended here."""


class BrokenDisk(OsFileSystem):
    """One log directory cannot be taken: its disk does not answer."""

    def __init__(self, broken: Path) -> None:
        self._broken = f"{broken}/"

    def lock(self, path: str) -> DirectoryLock:
        if path.startswith(self._broken):
            raise disk_error("open", path, OSError(errno.EIO, "the disk is gone"))
        return super().lock(path)


class UnsyncedFile(OsFile):
    def sync(self) -> None:
        """Who is killed loses nothing that was written."""


class DyingFiles(OsFileSystem):
    """The real disk, not waited for, until the process is killed before this operation."""

    def __init__(self, killed_at: int = -1) -> None:
        self.operations = 0
        self._killed_at = killed_at

    def _count(self) -> None:
        self.operations += 1
        if self.operations == self._killed_at:
            raise Killed

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if create:
            self._count()
        return UnsyncedFile(path, self._descriptor(path, create=create, writable=writable))

    def _descriptor(self, path: str, *, create: bool, writable: bool) -> int:
        file = super().open(path, create=create, writable=writable)
        return os.dup(file.fileno())

    def make_directory(self, path: str) -> None:
        self._count()
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._count()
        super().rename(source, target)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        self._count()
        super().unlink(path, missing_ok=missing_ok)

    def sync_directory(self, path: str) -> None:
        self._count()
