"""Looking at directories without touching them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from log_harness import batch, disk_of, new_log, produced, timed_batch

from stratalog.errors import DiskError, LogDirectoryError, OffsetOutOfRangeError, TopicNameError
from stratalog.storage.explain import Search
from stratalog.storage.files import OsFileSystem
from stratalog.storage.inspection import find_replicas, list_replica, one_replica
from stratalog.storage.lookup import list_offset
from stratalog.storage.reading import Isolation
from stratalog.storage.readonly import ReadOnlyFileSystem, lock_owner
from stratalog.testing import SimulatedFileSystem

# --- a file system that cannot change anything -------------------------------------------------


@pytest.fixture
def disk() -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    files.make_directory("/d")
    file = files.open("/d/f", create=True)
    file.write_at(0, [b"0123456789"])
    file.close()
    return files


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("make_directory", ("/d/new",)),
        ("remove_directory", ("/d",)),
        ("rename", ("/d/f", "/d/g")),
        ("unlink", ("/d/f",)),
        ("set_modified", ("/d/f", 1)),
        ("sync_directory", ("/d",)),
        ("sync_file_system", ("/d",)),
        ("lock", ("/d/.lock",)),
    ],
)
def test_every_mutation_is_refused(
    disk: SimulatedFileSystem, operation: str, arguments: tuple[Any, ...]
) -> None:
    before = len(disk.trace)

    with pytest.raises(AssertionError, match="read only"):
        getattr(ReadOnlyFileSystem(disk), operation)(*arguments)

    assert len(disk.trace) == before


def test_files_are_opened_to_be_read_whatever_is_asked(disk: SimulatedFileSystem) -> None:
    file = ReadOnlyFileSystem(disk).open("/d/f", create=True, writable=True)
    before = len(disk.trace)
    for change in (lambda: file.write_at(0, [b"x"]), lambda: file.truncate(0), file.sync):
        with pytest.raises(AssertionError):
            change()
    assert len(disk.trace) == before
    assert file.read_at(2, 3) == b"234"
    assert bytes(memoryview(file.map(4))) == b"0123"


def test_a_missing_file_is_not_created(disk: SimulatedFileSystem) -> None:
    with pytest.raises(DiskError):
        ReadOnlyFileSystem(disk).open("/d/missing", create=True)
    assert not disk.exists("/d/missing")


def test_a_map_of_a_file_that_shrank_has_zeros_behind_its_end(disk: SimulatedFileSystem) -> None:
    file = ReadOnlyFileSystem(disk).open("/d/f")
    disk.open("/d/f").truncate(4)

    assert bytes(memoryview(file.map(10))) == b"0123" + bytes(6)


def test_the_owner_of_a_lock_is_known_and_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert lock_owner(str(path)) is None
    assert not path.exists()
    script = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert lock_owner(str(path)) == process.pid
        process.communicate()
    assert lock_owner(str(path)) is None
    lock = OsFileSystem().lock(str(path))
    assert lock_owner(str(path)) == os.getpid()
    lock.release()


# --- what a path names -------------------------------------------------------------------------


def make(files: SimulatedFileSystem, *paths: str) -> SimulatedFileSystem:
    for path in paths:
        if path.endswith("/"):
            files.make_directory(path.rstrip("/"))
        else:
            files.open(path, create=True).close()
    return files


def test_a_log_directory_may_be_called_like_a_replica() -> None:
    files = make(
        SimulatedFileSystem(),
        "/logs-1/",
        "/logs-1/meta.properties",
        "/logs-1/orders-0/",
        "/logs-1/a-b-12/",
        "/logs-1/orders-3.0123456789abcdef0123456789abcdef-delete/",
        "/logs-1/lost+found/",
    )

    found = find_replicas(files, "/logs-1/")

    assert found.is_log_directory
    assert found.replicas == ("/logs-1/a-b-12", "/logs-1/orders-0")
    assert found.foreign == ("/logs-1/lost+found",)


def test_a_replica_is_known_by_what_is_in_it_or_by_its_name() -> None:
    files = make(
        SimulatedFileSystem(),
        "/logs/",
        "/logs/orders-0/",
        "/logs/orders-0/00000000000000000000.log",
        "/logs/new-0/",
    )

    assert find_replicas(files, "/logs/orders-0").replicas == ("/logs/orders-0",)
    assert find_replicas(files, "/logs/new-0").replicas == ("/logs/new-0",)
    assert one_replica(files, "/logs/orders-0").topic_partition.topic == "orders"


def test_what_is_no_log_is_refused_with_a_sentence() -> None:
    files = make(
        SimulatedFileSystem(), "/etc/", "/etc/file", "/bad/", "/bad/leader-epoch-checkpoint"
    )
    for path in ("/etc", "/etc/file", "/nowhere"):
        with pytest.raises(LogDirectoryError):
            find_replicas(files, path)
    with pytest.raises(TopicNameError):
        find_replicas(files, "/bad")


def test_files_on_their_way_out_are_not_listed() -> None:
    files = make(
        SimulatedFileSystem(),
        "/t-0/",
        "/t-0/00000000000000000007.log",
        "/t-0/00000000000000000007.index",
        "/t-0/00000000000000000000.log.deleted",
        "/t-0/00000000000000000003.log.cleaned",
        "/t-0/00000000000000000005.timeindex",
        "/t-0/00000000000000000007.snapshot",
        "/t-0/.stratalog/",
        "/t-0/partition.metadata",
    )

    replica = list_replica(files, "/t-0")

    assert [segment.base_offset for segment in replica.segments] == [7]
    assert replica.orphans == ("/t-0/00000000000000000005.timeindex",)
    assert replica.snapshots == (7,)
    assert replica.other_files == {"partition.metadata"}
    assert [replica.floor(offset) for offset in (6, 7, 8)] == [-1, 0, 0]


# --- searches ----------------------------------------------------------------------------------


def searched(log: Any, *, start: int = 0) -> Search:
    files = ReadOnlyFileSystem(disk_of(log))
    return Search(files, list_replica(files, log.directory), log_start_offset=start)


def test_a_search_by_time_agrees_with_the_engine() -> None:
    log = new_log(internal_segment_bytes=500, index_interval_bytes=100)
    times = [5, 9, 2, 40, 41, 7, 8, 39, 90, 12, 60, 91, 3, 4]
    for first, second in zip(times[::2], times[1::2], strict=True):
        log.append_as_leader(timed_batch([first, second]))
    log.flush()
    for start in (0, 3, 9):
        for timestamp_ms in range(95):
            log.log_start_offset = start
            expected = list_offset(log, timestamp_ms, Isolation.LOG_END)
            search = searched(log, start=start)
            steps = list(search.by_timestamp(timestamp_ms))
            found = (
                (-1, -1)
                if search.found is None
                else (
                    search.found.offset,
                    search.found.timestamp_ms,
                )
            )
            assert found == (expected.offset, expected.timestamp_ms)
            assert steps


def test_a_search_by_offset_finds_the_batch_that_holds_it() -> None:
    log = new_log(internal_segment_bytes=500, index_interval_bytes=100)
    for number in range(9):
        log.append_as_leader(produced(1, 3 * number, 3))
    log.flush()
    for offset in range(27):
        search = searched(log)
        list(search.by_offset(offset))
        assert search.found is not None
        assert search.found.header.base_offset == offset - offset % 3
        assert search.found.offset == offset
    for offset in (-1, 27):
        with pytest.raises(OffsetOutOfRangeError):
            list(searched(log).by_offset(offset))


def test_an_offset_that_was_compacted_away_leads_to_the_next_record() -> None:
    log = new_log(internal_segment_bytes=500)
    log.append_as_follower(batch(base_offset=3, leader_epoch=0))
    log.append_as_follower(batch(base_offset=10, leader_epoch=0))
    log.roll()
    log.append_as_follower(batch(base_offset=20, leader_epoch=0))
    log.flush()
    for offset, expected in ((0, 3), (4, 10), (11, 20), (20, 20)):
        search = searched(log)
        list(search.by_offset(offset))
        assert search.found is not None
        assert search.found.offset == expected
