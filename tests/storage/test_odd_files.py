"""What is no regular file, under a name that a partition's file would have: nothing waits for it,
nothing goes offline, and what stood in the way of an index or of a new segment is out of it."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Record, build_batch
from stratalog.storage.check import check
from stratalog.storage.findings import Kind
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation

KEY = TopicPartition("orders", 0)


def listen(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path has to be short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(before)


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": listen,
    "directory": lambda path: (path.mkdir(), (path / "within").touch()),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
}
# The log ends at 3: no segment has these names yet, but for 0, of which each has lost one file.
NAMES = [
    *("00000000000000000003.log", "00000000000000000003.index", "00000000000000000001.log"),
    *("00000000000000000000.index", "00000000000000000000.timeindex"),
    *("00000000000000000000.txnindex", "00000000000000000003.snapshot"),
    *("00000000000000000009.snapshot", "00000000000000000000.log.deleted"),
    *("00000000000000000000.log.swap", "00000000000000000000.index.cleaned"),
    *("leader-epoch-checkpoint", ".stratalog"),
]


@contextmanager
def opened(path: Path) -> Iterator[LogManager]:
    logs = LogManager(
        BrokerConfig(log_dirs=(str(path),), log_dir_reserve_bytes=0),
        topic_config=lambda _topic: TopicConfig(),
        is_threaded=False,
    )
    logs.start()
    try:
        yield logs
    finally:
        logs.shutdown()


def append(log: Log) -> None:
    log.append_as_leader(build_batch([Record(b"k", b"v", ())]), leader_epoch=0)


def offsets(log: Log) -> int:
    fetched = log.read(0, max_bytes=1 << 20, isolation=Isolation.LOG_END)
    assert fetched.records is not None
    return len(fetched.records)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_log_opens_and_goes_on_whatever_has_the_name_of_a_file(
    tmp_path: Path, name: str, kind: str
) -> None:
    with opened(tmp_path) as logs:
        log = logs.create(KEY)
        for _ in range(3):
            append(log)
        size = offsets(log)
    odd = tmp_path / "orders-0" / name
    if odd.is_dir():
        odd.rename(tmp_path / "orders-0" / "before")
    odd.unlink(missing_ok=True)
    KINDS[kind](odd)

    for _ in range(2):
        (tmp_path / ".kafka_cleanshutdown").unlink(missing_ok=True)
        with opened(tmp_path) as logs:
            assert logs.directories[0].is_online
            log = logs.get(KEY)
            assert offsets(log) >= size
            log.roll()
            append(log)
            log.flush()
            assert [each for each in check(log) if each.severity == "error"] == []


def test_verify_tells_of_what_is_no_regular_file(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        append(logs.create(KEY))
    os.mkfifo(tmp_path / "orders-0" / "00000000000000000007.log")
    (finding,) = check(str(tmp_path))
    assert (finding.kind, finding.severity, finding.offset) == (Kind.NOT_A_FILE, "warning", 7)
    assert "is no regular file" in finding.sentence


def test_a_log_that_cannot_do_without_a_file_takes_nobody_with_it(tmp_path: Path) -> None:
    with opened(tmp_path) as logs:
        append(logs.create(KEY))
        append(logs.create(TopicPartition("payments", 0)))
    os.mkfifo(tmp_path / "orders-0" / "partition.metadata")
    with opened(tmp_path) as logs:
        assert logs.directories[0].is_online
        assert "not a regular file" in logs.directories[0].offline_logs[KEY]
        append(logs.get(TopicPartition("payments", 0)))
