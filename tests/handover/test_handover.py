"""A driver and the owner of a log directory: facts, commits and their answers, whoever owns it."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

import stratalog
from broker_fixture import running_broker
from handover_staging import in_no_time, rows, stage, staged_left
from stratalog.broker.startup import OpenedBroker
from stratalog.directories.owner_client import Answer
from stratalog.errors import DiskError, LogDirectoryError
from stratalog.handover import CommitUnknownError, Handover, HandoverError, open_handover
from stratalog.handover import handover as asking
from stratalog.handover.handover import _Wait, is_java
from stratalog.handover.owning import owned, owner_config
from stratalog.metadata.sqlite_store import METADATA_FILE
from stratalog.records import Record
from stratalog.storage.commits.errors import (
    CommitBusyError,
    CommitRefusedError,
    ManifestError,
    StagedFileError,
)
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.os_errors import disk_error
from stratalog.storage.owner_file import Owner

ORDERS = TopicPartition("orders", 0)


def make_topic(path: Path, name: str = "orders", partitions: int = 2, **config: str) -> None:
    """By a broker, which has ended when this returns."""
    with running_broker(path) as broker:
        create(broker.bootstrap_server, name, partitions, **config)


def create(bootstrap_server: str, name: str, partitions: int, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    configs = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=configs)])[name].result(60)


def keys_in(path: Path, topic: str = "orders", partition: int = 0) -> list[bytes | None]:
    with stratalog.open_directory(path, topics={topic: {}}) as logs:
        return [each.key for each in logs.log(topic, partition).records()]


def expected(first: int, count: int) -> list[bytes]:
    return [b"s%d" % number for number in range(first, first + count)]


# --- facts ------------------------------------------------------------------------------------


def test_facts_are_the_same_whether_a_broker_tells_them_or_nobody_does(tmp_path: Path) -> None:
    handover = open_handover(tmp_path)
    config = {"segment_bytes": "2000000", "cleanup_policy": "compact"}
    with running_broker(tmp_path) as broker:
        create(broker.bootstrap_server, "orders", 3, **config)
        told = handover.topics(["orders", "nowhere"])
        assert handover.topics() == told
    assert handover.topics(["orders", "nowhere"]) == told
    assert handover.topics([]) == {}
    (facts,) = told.values()
    assert facts.partitions == {each: f"{tmp_path}/orders-{each}" for each in range(3)}
    assert (facts.partition_count, facts.segment_bytes, facts.is_compacted) == (3, 2_000_000, True)
    assert facts.rules.compacted
    assert not facts.is_held


def test_what_a_broker_sets_for_all_topics_is_among_the_facts(tmp_path: Path) -> None:
    with running_broker(tmp_path, message_max_bytes="5000") as broker:
        create(broker.bootstrap_server, "orders", 1)
        assert open_handover(tmp_path).topics()["orders"].max_message_bytes == 5000
    alone = open_handover(tmp_path, config={"message.max.bytes": "6000"})
    assert alone.topics()["orders"].max_message_bytes == 6000


def test_a_directory_that_nobody_has_opened_before_is_adopted_and_its_topics_are_held(
    tmp_path: Path,
) -> None:
    with stratalog.open_directory(tmp_path, create=True) as logs:
        logs.create("orders").append([Record(b"k", b"v", timestamp_ms=1)])
    handover = open_handover(tmp_path)

    assert handover.topics()["orders"].is_held

    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    with pytest.raises(CommitRefusedError, match="orders"):
        handover.commit(manifest)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HandoverError, match="not a directory"):
        open_handover(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


# --- commits ----------------------------------------------------------------------------------


def committed_twice(handover: Handover, path: Path) -> None:
    """One that is appended and one that is adopted, each of them asked for twice."""
    small = stage(handover, "orders", {0: [rows(0, 5)], 1: [rows(5, 5)]})
    large = stage(handover, "orders", {0: [rows(10, 20, 50_000)] * 20})
    for manifest in (small, large):
        first, second = handover.commit(manifest), handover.commit(manifest)
        assert (first.status, second.status) == ("committed", "already committed")
        assert first.partitions == second.partitions
        assert handover.status(manifest) == "already committed"
    assert first.partitions == {ORDERS: (5, 405)}
    assert staged_left(path) == []


def test_a_commit_is_made_once_by_a_broker(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker.bootstrap_server, "orders", 2, max_message_bytes="2000000")
        committed_twice(open_handover(tmp_path), tmp_path)
    assert keys_in(tmp_path) == expected(0, 5) + expected(10, 20) * 20
    assert keys_in(tmp_path, partition=1) == expected(5, 5)


def test_a_commit_is_made_once_where_nobody_owns_the_directory(tmp_path: Path) -> None:
    make_topic(tmp_path, max_message_bytes="2000000")
    committed_twice(open_handover(tmp_path), tmp_path)
    assert not (tmp_path / ".stratalog-owner").exists()
    assert keys_in(tmp_path) == expected(0, 5) + expected(10, 20) * 20


def test_what_killed_drivers_have_staged_is_swept_by_the_next_one_that_commits(
    tmp_path: Path,
) -> None:
    make_topic(tmp_path)
    handover = open_handover(tmp_path)
    stage(handover, "orders", {0: [rows(0, 1)]}, seconds=0)
    held = stage(handover, "orders", {1: [rows(0, 1)]})
    handover.commit(stage(handover, "orders", {0: [rows(1, 1)]}))
    assert [each.parent.name for each in staged_left(tmp_path)] == [held.staging_id]


def test_a_broker_started_after_a_driver_has_committed_serves_and_remembers_it(
    tmp_path: Path,
) -> None:
    make_topic(tmp_path)
    handover = open_handover(tmp_path)
    manifest = stage(handover, "orders", {0: [rows(0, 9)]})
    handover.commit(manifest)
    with running_broker(tmp_path) as broker:
        assert handover.commit(manifest).status == "already committed"
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": "g"})
        consumer.assign([Place("orders", 0, 0)])
        found = [each.key() for each in consumer.consume(9, timeout=60)]
        consumer.close()
    assert found == expected(0, 9)


def test_a_stream_is_committed_version_by_version_and_never_back(tmp_path: Path) -> None:
    make_topic(tmp_path, partitions=1)
    handover = open_handover(tmp_path)

    def commit(version: int, first: int) -> str:
        app = AppVersion(name="q", version=version)
        manifest = stage(handover, "orders", {0: [rows(first, 2)]}, app=app)
        return handover.commit(manifest).status

    with running_broker(tmp_path):
        assert [commit(0, 0), commit(1, 2), commit(1, 100)] == ["committed"] * 2 + [
            "already committed"
        ]
    assert [commit(0, 100), commit(2, 4)] == ["already committed", "committed"]
    assert handover.status_of("other", AppVersion(name="q", version=1)) == "already committed"
    assert handover.status_of("other", AppVersion(name="q", version=3)) == "unknown"
    assert keys_in(tmp_path) == expected(0, 6)


def _unknown_topic(handover: Handover) -> Any:
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    (part,) = manifest.partitions
    return replace(manifest, partitions=(replace(part, topic="elsewhere"),)), CommitRefusedError


def _out_of_range(handover: Handover) -> Any:
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    (part,) = manifest.partitions
    return replace(manifest, partitions=(replace(part, partition=7),)), CommitRefusedError


def _another_topic_id(handover: Handover) -> Any:
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    (part,) = manifest.partitions
    other = "AAAAAAAAAAAAAAAAAAAAAQ"
    return replace(manifest, partitions=(replace(part, topic_id=other),)), CommitRefusedError


def _too_large(handover: Handover) -> Any:
    return stage(handover, "orders", {0: [rows(0, 1, 2_000_000)]}), StagedFileError


def _garbled(handover: Handover) -> Any:
    manifest = stage(handover, "orders", {0: [rows(0, 100)]})
    (file,) = staged_left(Path(handover.log_dir))
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    return manifest, StagedFileError


def _gone(handover: Handover) -> Any:
    manifest = stage(handover, "orders", {0: [rows(0, 100)]})
    (file,) = staged_left(Path(handover.log_dir))
    file.unlink()
    return manifest, StagedFileError


def _twice(handover: Handover) -> Any:
    manifest = stage(handover, "orders", {0: [rows(0, 100)]})
    return replace(manifest, partitions=manifest.partitions * 2), ManifestError


REFUSED = [_unknown_topic, _out_of_range, _another_topic_id, _too_large, _garbled, _gone, _twice]


@pytest.mark.parametrize("has_broker", [True, False], ids=["a broker", "nobody"])
def test_what_is_refused_raises_the_same_wherever_it_was_refused_and_changes_nothing(
    tmp_path: Path, has_broker: bool
) -> None:
    def refuse_all(handover: Handover) -> list[str]:
        said = []
        for make in REFUSED:
            manifest, kind = make(handover)
            with pytest.raises(kind) as caught:
                handover.commit(manifest)
            assert type(caught.value) is kind
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
            assert handover.status(manifest) in ("refused", "unknown")
            for file in staged_left(Path(handover.log_dir)):
                file.unlink()
            said.append(str(caught.value))
        return said

    if has_broker:
        with running_broker(tmp_path) as broker:
            create(broker.bootstrap_server, "orders", 1)
            said = refuse_all(open_handover(tmp_path))
    else:
        make_topic(tmp_path, partitions=1)
        said = refuse_all(open_handover(tmp_path))
    assert all(len(each) > 20 for each in said)
    assert keys_in(tmp_path) == []


def test_a_driver_goes_on_with_the_leader_epoch_even_if_the_last_owner_was_killed(
    tmp_path: Path,
) -> None:
    make_topic(tmp_path, partitions=1)
    handover = open_handover(tmp_path)

    def epochs() -> list[int]:
        lines = (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_text().splitlines()
        return [int(line.split()[0]) for line in lines[2:]]

    for number in range(3):
        handover.commit(stage(handover, "orders", {0: [rows(number, 1)]}))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    handover.commit(stage(handover, "orders", {0: [rows(3, 1)]}))
    assert len(epochs()) == 1
    assert keys_in(tmp_path) == expected(0, 4)


# --- owners that cannot be asked --------------------------------------------------------------


def test_who_has_the_directory_open_itself_is_told_to_close_it(tmp_path: Path) -> None:
    is_told = pytest.raises(HandoverError, match="close it")
    with stratalog.open_directory(tmp_path, create=True), is_told:
        in_no_time(open_handover(tmp_path)).topics()


LOCKING = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def holding(path: Path, python: str = sys.executable) -> "subprocess.Popen[str]":
    """A process that holds the lock and says nothing about itself, until its input ends."""
    process = subprocess.Popen(
        [python, "-S", "-c", LOCKING, str(path / ".lock")],
        env={**os.environ, "PYTHONHOME": sys.base_prefix},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_an_owner_that_cannot_be_asked_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    make_topic(tmp_path)
    handover = open_handover(tmp_path)
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    with holding(tmp_path) as process:
        in_no_time(handover)
        for ask in (handover.topics, lambda: handover.commit(manifest)):
            with pytest.raises(HandoverError, match=f"process {process.pid} owns it") as caught:
                ask()
            assert not isinstance(caught.value, CommitUnknownError), "surely it was not made"
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
    assert handover.commit(manifest).status == "committed"


def test_another_driver_that_owns_the_directory_for_a_moment_is_waited_for(
    tmp_path: Path,
) -> None:
    make_topic(tmp_path)
    handover = open_handover(tmp_path)
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    process = holding(tmp_path)
    waits = []

    def let_go(seconds: float) -> None:
        waits.append(seconds)
        assert process.stdin is not None
        if not process.stdin.closed:
            process.stdin.close()
            process.wait(60)

    handover._sleep = let_go
    assert handover.commit(manifest).status == "committed"
    assert len(waits) == 1
    assert process.stdout is not None
    process.stdout.close()


def test_a_live_apache_kafka_is_refused_with_the_way_to_write_to_it(tmp_path: Path) -> None:
    """Anything that runs as java is taken for one, if it holds the lock."""
    path = tmp_path / "logs"
    make_topic(path)
    handover = open_handover(path)
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    java = tmp_path / "java"
    java.write_bytes(Path(sys.executable).resolve().read_bytes())
    java.chmod(0o755)
    with holding(path, str(java)) as process:
        for ask in (handover.topics, lambda: handover.commit(manifest)):
            with pytest.raises(HandoverError, match=r"kafka\.bootstrap\.servers"):
                ask()
        assert process.stdin is not None
        process.stdin.close()
    assert not is_java(os.getpid())
    assert not is_java(None)
    assert not is_java(2**22 - 1)


def test_an_owner_that_takes_no_commits_cannot_say_that_the_one_before_made_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(tmp_path)
    handover = in_no_time(open_handover(tmp_path))
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    tries = 0

    def commit_here(_manifest: object) -> object:
        nonlocal tries
        tries += 1
        if tries == 1:
            return _Wait("it was killed", may_be_committed=True)
        raise HandoverError("an Apache Kafka owns it by now")

    monkeypatch.setattr(handover, "_commit_here", commit_here)
    with pytest.raises(CommitUnknownError, match="Apache Kafka"):
        handover.commit(manifest)


def test_who_does_not_know_of_a_commit_that_has_begun_cannot_say_that_it_was_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that listens where the owner did, which has died meanwhile."""
    make_topic(tmp_path)
    handover = in_no_time(open_handover(tmp_path))
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    owner = Owner(pid=1, admin="http://127.0.0.1:1", token="none")
    monkeypatch.setattr(asking, "find_owner", lambda _log_dir: (None, owner))
    monkeypatch.setattr(asking, "ask_status", lambda *_which: Answer(404, {}, "not found"))
    answers = iter([Answer(202, {"status": "running"}), *repeat(Answer(404, {}, "not found"), 99)])
    monkeypatch.setattr(asking, "ask_commit", lambda *_what: next(answers))
    with pytest.raises(CommitUnknownError, match="not found"):
        handover.commit(manifest)
    with pytest.raises(HandoverError, match="takes no such commit"):
        handover.commit(manifest)


def test_a_directory_whose_metadata_is_elsewhere_is_not_adopted_without_it(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with running_broker(first, log_dirs=f"{first},{second}") as broker:
        create(broker.bootstrap_server, "orders", 2)
    with pytest.raises(stratalog.StratalogError, match="metadata"):
        open_handover(second).topics()


class FailsOnce:
    """A disk that cannot sync a partition's directory, once, behind the journal's record."""

    def __init__(self, path: Path) -> None:
        self._files = OsFileSystem()
        self._path = path
        self.has_failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def sync_directory(self, path: str) -> None:
        journal = self._path / ".stratalog-commits"
        if not self.has_failed and path == f"{self._path}/orders-0" and journal.exists():
            self.has_failed = b'"type":"commit"' in journal.read_bytes()
            if self.has_failed:
                raise DiskError("fsync", path, errno.EIO, "a test")
        self._files.sync_directory(path)


def test_a_commit_that_a_failing_disk_left_undecided_is_settled_by_opening_again(
    tmp_path: Path,
) -> None:
    make_topic(tmp_path, max_message_bytes="2000000")
    handover = open_handover(tmp_path)
    manifest = stage(handover, "orders", {0: [rows(0, 20, 50_000)] * 20})
    failing = FailsOnce(tmp_path)
    handover._files = failing  # type: ignore[assignment]

    result = handover.commit(manifest)

    assert failing.has_failed
    assert (result.status, result.partitions) == ("already committed", {ORDERS: (0, 400)})
    assert keys_in(tmp_path) == expected(0, 20) * 20


def test_a_broker_that_starts_waits_for_a_driver_that_has_the_directory_for_a_moment(
    tmp_path: Path,
) -> None:
    make_topic(tmp_path)
    opening = owned(owner_config(str(tmp_path), {}))
    opening.__enter__()
    letting_go = threading.Timer(0.3, opening.__exit__, (None, None, None))
    letting_go.start()
    with running_broker(tmp_path):
        assert letting_go.finished.is_set()
    letting_go.join()


def test_a_broker_does_not_wait_for_another_one(tmp_path: Path) -> None:
    refused = pytest.raises(LogDirectoryError, match="locked")
    with running_broker(tmp_path), refused, running_broker(tmp_path):
        raise AssertionError("two brokers on one directory")


def test_a_directory_that_was_never_ours_is_looked_at_anew_each_time(tmp_path: Path) -> None:
    handover = None
    for name in ("orders", "made-later"):
        with stratalog.open_directory(tmp_path, create=True) as logs:
            logs.create(name)
        handover = open_handover(tmp_path, config={"log.retention.ms": "-1"})
        assert name in handover.topics()

    assert handover is not None
    with pytest.raises(CommitRefusedError, match="settings of orders are not known"):
        handover.commit(stage(handover, "orders", {0: [rows(0, 3)]}))
    assert not (tmp_path / METADATA_FILE).exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "made-later-0",
        "orders-0",
    ]


class FailingDisk:
    """Takes nothing any more from its ``first``-th change on."""

    def __init__(self, first: int, error: int) -> None:
        self._files = OsFileSystem()
        self._error = error
        self._changes_left = first
        self._guard = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def change(self, path: str) -> None:
        with self._guard:  # logs are opened on several threads
            self._changes_left -= 1
            if self._changes_left < 0:
                raise disk_error("write", path, OSError(self._error, os.strerror(self._error)))

    @property
    def has_failed(self) -> bool:
        return self._changes_left < 0

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self.change(path)
        return _FileOnFailingDisk(self, self._files.open(path, create=create, writable=writable))

    def rename(self, source: str, target: str) -> None:
        self.change(target)
        self._files.rename(source, target)


class _FileOnFailingDisk:
    def __init__(self, disk: FailingDisk, file: Any) -> None:
        self._disk, self._file = disk, file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write_at(self, position: int, buffers: Any) -> None:
        self._disk.change(self._file.path)
        self._file.write_at(position, buffers)

    def truncate(self, size: int) -> None:
        self._disk.change(self._file.path)
        self._file.truncate(size)


def said_of(handover: Handover, manifest: Manifest) -> str:
    try:
        return handover.commit(manifest, seconds=5).status
    except CommitBusyError:
        return "busy"  # nobody else is at it
    except CommitUnknownError:
        return "unknown"
    except (HandoverError, CommitRefusedError):
        return "refused"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_what_is_told_of_a_commit_on_a_disk_that_gives_up_is_true_whenever_it_does(
    tmp_path: Path, error: int
) -> None:
    """And what was staged is left only where nobody knows: it may be needed."""
    make_topic(tmp_path / "made")
    told = set()
    for first in count(1, 3):
        path = tmp_path / f"{first}"
        shutil.copytree(tmp_path / "made", path)
        handover = in_no_time(open_handover(path))
        manifest = stage(handover, "orders", {0: [rows(0, 10)], 1: [rows(0, 10)]})
        disk = FailingDisk(first, error)
        handover._files = disk  # type: ignore[assignment]
        said = said_of(handover, manifest)
        told.add(said)
        found = open_handover(path).status(manifest)
        if said == "refused":
            assert found == "unknown"
        elif said != "unknown":
            assert (said, found) == ("committed", "already committed")
        assert len(keys_in(path)) == (10 if found == "already committed" else 0)
        if not disk.has_failed:
            break
    assert told == {"committed", "refused", "unknown"}


@pytest.mark.parametrize("name", ["", "orders-0"])
def test_what_is_no_log_directory_is_refused_and_not_made_one(tmp_path: Path, name: str) -> None:
    """An empty disk that was claimed so could not join a broker's log.dirs any more."""
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    if name:
        (path / f"{0:020d}.log").touch()
    before = sorted(path.iterdir())
    with pytest.raises(HandoverError, match="is no log directory"):
        open_handover(path).topics(["orders"])
    with pytest.raises(HandoverError, match="is no log directory"):
        open_handover(path).status_of("load")
    assert sorted(path.iterdir()) == before


def test_a_directory_that_cannot_be_closed_well_takes_no_commit_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(tmp_path)
    handover = open_handover(tmp_path)
    manifest = stage(handover, "orders", {0: [rows(0, 1)]})
    close = OpenedBroker.close

    def fail(opened: OpenedBroker) -> None:
        close(opened)
        raise DiskError("close", str(tmp_path), errno.EIO, "Input/output error")

    monkeypatch.setattr(OpenedBroker, "close", fail)
    assert handover.commit(manifest).status == "committed"
