"""Making many logs at once and deleting many at once: what the disk is asked for, and what is left
when it fails or the power does."""

import errno
import uuid

import pytest
from managers import fill, started, steps

from stratalog.errors import LogDirectoryError, LogExistsError, TopicNameError
from stratalog.storage.layout import LOG_START_CHECKPOINT, TopicPartition
from stratalog.storage.making import DetachedLog, NewLog, rename_deleted, write_all
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, SimulatedFileSystem

TOPIC_ID = uuid.UUID(int=0x1234567)
MANY, FEW = 40, 3


def wanted(count: int, topic: str = "orders") -> list[NewLog]:
    return [NewLog(TopicPartition(topic, n), TOPIC_ID, leader_epoch=5) for n in range(count)]


def made(logs: LogManager, count: int) -> list[NewLog]:
    new = wanted(count)
    logs.plan_create(new)
    logs.make(new)
    return new


def create(logs: LogManager, count: int) -> None:
    for each in made(logs, count):
        logs.take_in(each)


def delete(logs: LogManager, count: int) -> list[DetachedLog]:
    detached = [logs.detach(TopicPartition("orders", n)) for n in range(count)]
    failed = rename_deleted(logs.files, detached)
    for directory, error in write_all(logs.complete_deletion(detached, failed)):
        directory.checkpoint_failed(error)
    return detached


# --- making -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("mode", CrashMode)
def test_logs_that_were_made_are_there_after_a_power_failure(count: int, mode: CrashMode) -> None:
    files = SimulatedFileSystem()
    made(started(files), count)
    again = started(files.after_crash(mode))
    assert len([*again]) == count
    for log in again:
        assert log.topic_id == TOPIC_ID
        assert log.log_end_offset == 0


def test_many_logs_cost_one_sync_of_the_file_system_and_few_one_of_their_parent() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    start = len(files.trace)
    made(logs, MANY)
    assert steps(files, start, "sync", "sync_directory", "sync_file_system") == [
        ("sync_file_system", "/data")
    ]
    files = SimulatedFileSystem()
    logs = started(files)
    start = len(files.trace)
    made(logs, FEW)
    assert (
        steps(files, start, "sync_directory", "sync_file_system").count(("sync_directory", "/data"))
        == 1
    )


def test_nobody_sees_a_log_before_it_is_taken_in() -> None:
    logs = started(SimulatedFileSystem())
    new = made(logs, FEW)
    assert [*logs] == []
    assert [logs.take_in(each).topic_partition for each in new] == [
        each.topic_partition for each in new
    ]
    assert {log.epochs.latest_epoch for log in logs} == {5}
    fill(logs.get(TopicPartition("orders", 1)))


def test_logs_are_spread_over_the_directories_with_the_fewest() -> None:
    logs = started(SimulatedFileSystem(), "/a", "/b")
    logs.create(TopicPartition("other", 0), directory="/a")
    create(logs, 5)
    assert [len(directory.logs) for directory in logs.directories] == [3, 3]


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_directory_that_cannot_be_synced_leaves_its_logs_to_the_others(count: int) -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    kinds = ("sync_directory", "sync_file_system")
    files.fail(lambda each: each.kind in kinds and each.path == "/a", errno.EIO, times=9)
    new = made(logs, count)
    assert {each.directory.path for each in new if each.directory} == {"/b"}
    assert [entry.name for entry in files.list("/a") if entry.is_directory] == []
    assert all(logs.take_in(each) for each in new)


def test_a_log_that_no_directory_can_hold_says_why_and_the_others_are_made() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    files.fail(lambda each: "orders-1" in each.path, errno.ENOSPC, times=9)
    first, second, third = made(logs, FEW)
    with pytest.raises(LogDirectoryError, match=r"orders-1 .*/b/orders-1.*; .*/a/orders-1"):
        logs.take_in(second)
    assert logs.take_in(first)
    assert logs.take_in(third)


def test_what_cannot_be_planned_is_refused_before_anything_is_made() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    logs.create(TopicPartition("with.dot", 0))
    start = len(files.trace)
    with pytest.raises(LogExistsError):
        logs.plan_create([*wanted(1), NewLog(TopicPartition("with.dot", 0))])
    with pytest.raises(TopicNameError):
        logs.plan_create([*wanted(1), NewLog(TopicPartition("with_dot", 0))])
    with pytest.raises(TopicNameError):
        logs.plan_create([NewLog(TopicPartition("orders", -1))])
    logs.plan_create([NewLog(TopicPartition("with.dot", 1))])
    assert steps(files, start) == []


# --- deleting ---------------------------------------------------------------------------------


def test_many_deletions_cost_one_sync_of_their_directory() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    create(logs, MANY)
    detached = [logs.detach(TopicPartition("orders", n)) for n in range(MANY)]
    start = len(files.trace)
    assert rename_deleted(files, detached) == {}
    assert steps(files, start, "sync", "sync_directory") == [("sync_directory", "/data")]


@pytest.mark.parametrize("mode", CrashMode)
def test_deleted_logs_stay_deleted_after_a_power_failure(mode: CrashMode) -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    create(logs, MANY)
    delete(logs, MANY)
    assert [*started(files.after_crash(mode))] == []


def create_and_fill(logs: LogManager) -> None:
    """A few logs that have begun and ended somewhere, and the checkpoints that say where."""
    create(logs, FEW)
    for log in logs:
        fill(log).raise_log_start_offset(1)
        log.flush()
    logs.checkpoint_recovery_points()
    logs.checkpoint_log_start_offsets()


@pytest.mark.parametrize("mode", CrashMode)
def test_a_log_made_anew_does_not_inherit_where_its_namesake_was(mode: CrashMode) -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    create_and_fill(logs)
    delete(logs, FEW)
    create(logs, FEW)
    again = started(files.after_crash(mode))
    assert [log.log_end_offset for log in again] == [0] * FEW
    assert not any(log.is_damaged for log in again)


@pytest.mark.parametrize("mode", CrashMode)
def test_nor_does_it_after_a_crash_between_the_renames_and_the_checkpoints(
    mode: CrashMode,
) -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    create_and_fill(logs)
    rename_deleted(files, [logs.detach(TopicPartition("orders", n)) for n in range(FEW)])
    crashed = files.after_crash(mode)
    again = started(crashed)
    assert len(again.directories[0].log_start_offsets()) == FEW
    create(again, FEW)
    last = started(crashed.after_crash(mode))
    assert [log.log_end_offset for log in last] == [0] * FEW
    assert last.directories[0].offline_logs == {}
    assert not any(log.is_damaged for log in last)


def test_a_rename_that_fails_takes_its_directory_offline_and_no_other() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    create(logs, 4)
    files.fail(lambda each: each.kind == "rename" and "/a/" in each.path, errno.EIO, times=9)
    delete(logs, 4)
    assert [directory.is_online for directory in logs.directories] == [False, True]
    assert [*logs] == []


def test_checkpoints_that_find_no_room_are_written_before_the_name_is_used_again() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    create(logs, 1)
    (log,) = logs
    fill(log).raise_log_start_offset(1)
    logs.checkpoint_log_start_offsets()
    is_full = True
    files.fail(lambda each: is_full and "checkpoint" in each.path, errno.ENOSPC, times=99)
    delete(logs, 1)
    is_full = False
    assert logs.directories[0].is_online
    path = f"/data/{LOG_START_CHECKPOINT}"
    assert b"orders" in files.open(path).read_at(0, 1000)
    create(logs, 1)
    assert b"orders" not in files.open(path).read_at(0, 1000)
