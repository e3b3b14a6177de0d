"""A disk that fails within a commit: before its record nothing has changed, behind it the next
start brings it about, and at the record itself nobody claims to know."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import stratalog
from broker_fixture import RunningBroker, running_broker
from handover_staging import in_no_time, rows, stage
from stratalog.errors import DiskError, DiskFullError
from stratalog.handover import CommitUnknownError, open_handover
from stratalog.storage.commits.errors import CommitRefusedError
from stratalog.storage.files import OsFileSystem

JOURNAL = ".stratalog-commits"
Failing = Callable[[str, str], "DiskError | None"]


class FailingFiles:
    """The real disk, but that an operation on a path may fail: ``failing`` says how."""

    def __init__(self) -> None:
        self._files = OsFileSystem()
        self.failing: Failing = lambda _operation, _path: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def check(self, operation: str, path: str) -> None:
        error = self.failing(operation, path)
        if error is not None:
            raise error

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> Any:
        return FailingFile(self, self._files.open(path, create=create, writable=writable))

    def sync_directory(self, path: str) -> None:
        self.check("sync_directory", path)
        self._files.sync_directory(path)


class FailingFile:
    def __init__(self, files: FailingFiles, file: Any) -> None:
        self._files = files
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write_at(self, position: int, buffers: Any) -> None:
        self._files.check("write", self._file.path)
        self._file.write_at(position, buffers)

    def sync(self) -> None:
        self._files.check("sync", self._file.path)
        self._file.sync()


def create(broker: RunningBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server, "log_level": 0})
    config = {"max.message.bytes": "2000000"}
    admin.create_topics([NewTopic("orders", 2, 1, config=config)])["orders"].result(60)


def count_in(path: Path) -> int:
    with stratalog.open_directory(path, topics={"orders": {}}) as logs:
        assert logs.check() == []
        return len(logs.log("orders", 0).to_arrow())


@pytest.mark.parametrize("kind", [DiskError, DiskFullError])
@pytest.mark.parametrize("place", [".index", JOURNAL])
def test_a_disk_that_fails_before_the_record_refuses_the_commit_and_it_can_be_tried_again(
    tmp_path: Path, kind: type[DiskError], place: str
) -> None:
    files = FailingFiles()
    with running_broker(tmp_path, files=files) as broker:  # type: ignore[arg-type]
        create(broker)
        handover = open_handover(tmp_path)
        handover.commit(stage(handover, "orders", {1: [rows(0, 1)]}))  # there is a journal now
        manifest = stage(handover, "orders", {0: [rows(0, 20, 50_000)] * 20})

        def fail(operation: str, path: str) -> DiskError | None:
            is_wanted = "/staging/" in path if place == ".index" else operation == "write"
            if is_wanted and path.endswith(place):
                return kind("write", path, errno.ENOSPC, "a test")
            return None

        files.failing = fail
        with pytest.raises(CommitRefusedError, match="a test"):
            handover.commit(manifest)
        files.failing = lambda _operation, _path: None
        assert handover.commit(manifest).status == "committed"
    assert count_in(tmp_path) == 400


def test_a_disk_that_fails_behind_the_record_leaves_the_commit_made_and_the_next_start_does_it(
    tmp_path: Path,
) -> None:
    files = FailingFiles()
    with running_broker(tmp_path, files=files) as broker:  # type: ignore[arg-type]
        create(broker)
        handover = open_handover(tmp_path)
        manifest = stage(handover, "orders", {0: [rows(0, 20, 50_000)] * 20})

        def fail(operation: str, path: str) -> DiskError | None:
            journal = tmp_path / JOURNAL
            is_recorded = journal.exists() and b'"type":"commit"' in journal.read_bytes()
            if is_recorded and path.endswith("orders-0"):
                return DiskError(operation, path, errno.EIO, "a test")
            return None

        files.failing = fail
        result = handover.commit(manifest)
        assert (result.status, len(result.partitions)) == ("committed", 1)
        assert handover.status(manifest) == "already committed"
        files.failing = lambda _operation, _path: None
    with running_broker(tmp_path):
        assert handover.commit(manifest).partitions == result.partitions
    assert count_in(tmp_path) == 400


def test_where_the_record_may_or_may_not_be_written_nobody_is_told_that_it_is_not(
    tmp_path: Path,
) -> None:
    files = FailingFiles()
    with running_broker(tmp_path, files=files) as broker:  # type: ignore[arg-type]
        create(broker)
        handover = open_handover(tmp_path)
        handover.commit(stage(handover, "orders", {1: [rows(0, 1)]}))
        manifest = stage(handover, "orders", {0: [rows(0, 7)]})

        def fail(operation: str, path: str) -> DiskError | None:
            if operation == "sync" and path.endswith(JOURNAL):
                return DiskError("fsync", path, errno.EIO, "a test")
            return None

        files.failing = fail
        for _ in range(2):
            with pytest.raises(CommitUnknownError, match="a test"):
                in_no_time(open_handover(tmp_path)).commit(manifest)
        files.failing = lambda _operation, _path: None
    result = handover.commit(manifest)
    assert result.status in ("committed", "already committed")
    assert count_in(tmp_path) == 7
