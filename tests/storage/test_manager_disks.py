"""Directories that fail and disks that fill up."""

import errno
from collections.abc import Callable

import pytest
from managers import ORDERS, PAYMENTS, fill, manager, started
from small_logs import produced, readable, report

from stratalog.config import TopicConfig
from stratalog.errors import DiskError, DiskFullError, LogClosedError, LogDirectoryError
from stratalog.storage.context import DiskState
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, Operation, SimulatedFileSystem

OTHER = TopicPartition("other", 0)
ONE_SEGMENT = TopicConfig()  # no roll, which flushes as well


def below(path: str, *kinds: str) -> Callable[[Operation], bool]:
    return lambda each: each.path.startswith(path + "/") and (not kinds or each.kind in kinds)


def two_disks(**settings: object) -> tuple[SimulatedFileSystem, LogManager, Log, Log]:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b", **settings)
    first = fill(logs.create(ORDERS, directory="/a"))
    second = fill(logs.create(PAYMENTS, directory="/b"))
    logs.flush_appended()
    return files, logs, first, second


def states(logs: LogManager) -> list[DiskState]:
    return [directory.state.state for directory in logs.directories]


OFFLINE_ONLINE = [DiskState.OFFLINE, DiskState.ONLINE]

# --- a directory fails ----------------------------------------------------------------------------


def test_an_append_that_the_disk_refuses_takes_its_directory_offline_and_no_other() -> None:
    files, logs, first, second = two_disks()
    files.fail(below("/a", "write"), errno.EIO)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    assert states(logs) == OFFLINE_ONLINE
    assert "/a/orders-0" in logs.directories[0].state.reason
    second.append_as_leader(produced("x"))
    assert second.log_end_offset == 12


def test_no_log_of_a_failed_directory_takes_appends_any_more() -> None:
    files, logs, first, _ = two_disks()
    neighbour = fill(logs.create(OTHER, directory="/a"))
    files.fail(below("/a/orders-0", "write"), errno.EIO)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    for log in (first, neighbour):
        with pytest.raises(LogClosedError):
            log.append_as_leader(produced("x"))


def test_nothing_of_a_failed_directory_is_flushed_any_more() -> None:
    files, logs, first, _ = two_disks(topic=ONE_SEGMENT)
    neighbour = fill(logs.create(OTHER, directory="/a"))
    files.fail(below("/a/orders-0", "write"), errno.EIO)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    start = len(files.trace)
    logs.flush_appended()
    assert files.trace[start:] == []
    assert neighbour.recovery_point == 0


def test_a_failed_fsync_is_not_tried_again_and_moves_nothing() -> None:
    files, logs, first, _ = two_disks(topic=ONE_SEGMENT)
    fill(first)
    files.fail(below("/a", "sync"), errno.EIO)
    with pytest.raises(DiskError):
        logs.flush_appended()
    assert states(logs)[0] is DiskState.OFFLINE
    assert first.recovery_point == 10
    for again in (first.flush, lambda: first.append_as_leader(produced("x"))):
        with pytest.raises(LogClosedError):
            again()
    assert first.recovery_point == 10


def test_all_who_wait_for_a_failed_fsync_fail_with_it() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", log_flush_on_ack=True)
    waiting = [fill(logs.create(TopicPartition("t", n))) for n in range(3)]
    files.fail(below("/a/t-1", "sync"), errno.EIO)
    with pytest.raises(DiskError):
        logs.flush_appended()
    for log in waiting:
        assert log.failure is not None
        log.update_high_watermark(log.log_end_offset)
        assert log.high_watermark <= log.recovery_point
        with pytest.raises(LogClosedError):
            log.append_as_leader(produced("x"))


def test_a_directory_that_cannot_flush_does_not_keep_the_others_from_it() -> None:
    files, logs, first, second = two_disks()
    fill(first)
    fill(second)
    files.fail(below("/a", "sync"), errno.EIO)
    with pytest.raises(DiskError):
        logs.flush_appended()
    assert second.recovery_point == 20


def test_the_high_watermark_never_passes_what_was_flushed() -> None:
    logs = started(SimulatedFileSystem(), log_flush_on_ack=True, topic=ONE_SEGMENT)
    log = fill(logs.create(ORDERS))
    assert (log.log_end_offset, log.high_watermark) == (10, 0)
    logs.flush_appended()
    assert log.update_high_watermark(10) == 10


def test_what_was_flushed_before_a_directory_failed_is_there_after_a_restart() -> None:
    files, logs, first, second = two_disks()
    fill(first)
    files.fail(below("/a", "sync"), errno.EIO)
    with pytest.raises(DiskError):
        logs.flush_appended()
    files.heal()
    logs.shutdown()
    assert not files.exists("/a/.kafka_cleanshutdown")
    assert files.exists("/b/.kafka_cleanshutdown")
    again = started(files.after_crash(CrashMode.LOSE_UNSYNCED), "/a", "/b")
    assert again.get(ORDERS).log_end_offset >= 10
    assert len(readable(again.get(ORDERS))) >= 5
    assert report(again.get(PAYMENTS)).scanned_segments == 0
    assert second.is_closed


def test_nothing_is_written_to_a_failed_directory_by_tasks_or_at_the_end() -> None:
    files, logs, first, _ = two_disks()
    files.fail(below("/a", "write"), errno.EIO)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    files.heal()
    start = len(files.trace)
    logs.clock.advance(10_000_000)  # type: ignore[attr-defined]
    logs.run_due()
    logs.shutdown()
    assert [each for each in files.trace[start:] if each.path.startswith("/a")] == []
    assert [each for each in files.trace[start:] if each.path.startswith("/b")] != []


def test_a_checkpoint_that_fails_takes_its_directory_offline_and_the_others_are_written() -> None:
    files, logs, _, _ = two_disks()
    files.fail(below("/a", "rename"), errno.EIO)
    logs.checkpoint_recovery_points()
    assert states(logs) == OFFLINE_ONLINE
    assert logs.directories[1].recovery_points() == {PAYMENTS: 10}


def test_a_stopped_broker_does_not_mark_a_directory_clean_whose_last_flush_failed() -> None:
    files, logs, first, _ = two_disks()
    fill(first)
    files.fail(below("/a/orders-0", "sync"), errno.EIO)
    logs.shutdown()
    assert not files.exists("/a/.kafka_cleanshutdown")
    assert files.exists("/b/.kafka_cleanshutdown")
    started(files, "/a", "/b").shutdown()


def test_a_directory_that_cannot_be_read_at_the_start_is_offline_and_the_others_serve() -> None:
    files, logs, _, _ = two_disks()
    logs.shutdown()
    files.fail(
        lambda each: each.kind == "read" and "/a/orders-0/0" in each.path, errno.EIO, times=9
    )
    again = started(files, "/a", "/b")
    assert states(again) == OFFLINE_ONLINE
    assert again.get(PAYMENTS).log_end_offset == 10


def test_without_any_usable_directory_there_is_no_start() -> None:
    files = SimulatedFileSystem()
    for path in ("/a", "/b"):
        files.make_directory(path)
        files.put(f"{path}/meta.properties", b"")
        files.make_directory(f"{path}/photos")
    with pytest.raises(LogDirectoryError, match=r"no log directory.*photos.*photos"):
        started(files, "/a", "/b")
    manager(files, "/c").start()


def test_a_partition_that_may_be_on_a_failed_disk_is_not_made_anew() -> None:
    files, logs, first, _ = two_disks()
    files.fail(below("/a", "write"), errno.EIO)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    with pytest.raises(LogDirectoryError, match="offline"):
        logs.create(OTHER, is_new=False)
    assert logs.create(OTHER).directory == "/b/other-0"
    with pytest.raises(LogDirectoryError, match="/a"):
        logs.create(TopicPartition("more", 0), directory="/a")


# --- creating and deleting where the disk refuses -------------------------------------------------


def test_who_wants_a_log_while_no_directory_is_online_is_told_why_none_is() -> None:
    _, logs, _, _ = two_disks()
    for directory in logs.directories:
        directory.fail("its disk was pulled out")
    with pytest.raises(LogDirectoryError, match=r"/a is offline: its.*/b is offline: its"):
        logs.create(OTHER)


def test_a_log_that_cannot_be_made_in_one_directory_is_made_in_the_next() -> None:
    files, logs, _, _ = two_disks()
    files.fail(below("/a", "mkdir"), errno.ENOSPC)
    assert logs.create(OTHER).directory == "/b/other-0"


def test_a_sync_of_the_whole_file_system_that_fails_fails_all_who_waited_for_it() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    waiting = [fill(logs.create(TopicPartition("t", n)), 1) for n in range(40)]
    files.fail(lambda each: each.kind == "sync_file_system", errno.EIO)
    with pytest.raises(DiskError):
        logs.flush_appended()
    assert states(logs) == [DiskState.OFFLINE]
    assert {log.recovery_point for log in waiting} == {0}
    assert all(log.failure is not None for log in waiting)


@pytest.mark.parametrize("kind", ["create", "sync_directory"])
def test_a_log_that_was_half_made_in_one_directory_is_found_only_in_the_other(kind: str) -> None:
    files, logs, _, _ = two_disks()
    files.fail(below("/a/other-0", kind), errno.ENOSPC)
    if kind == "sync_directory":
        files.fail(lambda each: each.kind == kind and each.path == "/a/other-0", errno.ENOSPC)
    assert logs.create(OTHER).directory == "/b/other-0"
    logs.shutdown()
    assert started(files, "/a", "/b").get(OTHER).directory == "/b/other-0"


def test_a_log_that_cannot_be_made_anywhere_says_why_for_each_directory() -> None:
    files, logs, _, _ = two_disks()
    files.fail(lambda each: each.kind == "mkdir", errno.ENOSPC, times=2)
    with pytest.raises(LogDirectoryError, match=r"/a/other-0.*/b/other-0"):
        logs.create(OTHER)
    assert OTHER not in logs


def test_a_deletion_that_the_disk_refuses_takes_the_directory_offline() -> None:
    files, logs, _, _ = two_disks()
    files.fail(lambda each: each.kind == "rename" and each.path == "/a/orders-0", errno.EIO)
    with pytest.raises(DiskError):
        logs.delete(ORDERS)
    assert states(logs) == OFFLINE_ONLINE


def test_files_that_cannot_be_removed_take_their_directory_offline() -> None:
    files, logs, _, _ = two_disks(log_initial_task_delay_ms=0)
    logs.delete(ORDERS)
    files.fail(lambda each: each.kind == "unlink" and "-delete/" in each.path, errno.EIO)
    logs.clock.advance(100_000)  # type: ignore[attr-defined]
    logs.run_due()
    assert states(logs) == OFFLINE_ONLINE


# --- a full disk ----------------------------------------------------------------------------------


def nearly_full(free_bytes: int = 1 << 20) -> tuple[SimulatedFileSystem, LogManager, Log]:
    files = SimulatedFileSystem()
    logs = started(files, log_dir_reserve_bytes=1 << 20)
    log = fill(logs.create(ORDERS))
    logs.flush_appended()
    set_free(files, free_bytes)
    logs.check_space()
    return files, logs, log


def set_free(files: SimulatedFileSystem, free_bytes: int) -> None:
    used = files.capacity_bytes - files.free_bytes("/data")
    files.capacity_bytes = used + free_bytes


def test_appends_are_refused_below_the_reserve_and_the_reason_has_the_numbers() -> None:
    _, logs, log = nearly_full((1 << 20) - 1)
    assert states(logs) == [DiskState.FULL]
    with pytest.raises(DiskFullError, match=r"1048575 bytes.*log\.dir\.reserve\.bytes=1048576"):
        log.append_as_leader(produced("x"))
    with pytest.raises(DiskFullError):
        log.append_as_follower(produced("x", base_offset=10))
    assert log.log_end_offset == 10


def test_appends_are_taken_with_exactly_the_reserve_left() -> None:
    _, logs, log = nearly_full(1 << 20)
    assert states(logs) == [DiskState.ONLINE]
    log.append_as_leader(produced("x"))


def test_appends_resume_by_themselves_within_a_second() -> None:
    files, logs, log = nearly_full(0)
    logs.run_due()
    set_free(files, 1 << 21)
    logs.clock.advance(1_000)  # type: ignore[attr-defined]
    logs.run_due()
    assert states(logs) == [DiskState.ONLINE]
    assert logs.directories[0].state.reason == ""
    log.append_as_leader(produced("x"))


def test_reads_deletes_checkpoints_and_a_clean_stop_go_on_when_the_disk_is_full() -> None:
    files, logs, log = nearly_full(1 << 19)
    assert len(readable(log)) == 5
    log.raise_log_start_offset(3)
    logs.delete(ORDERS)
    logs.create(PAYMENTS)
    logs.clock.advance(100_000)  # type: ignore[attr-defined]
    logs.run_due()
    assert states(logs) == [DiskState.FULL]
    logs.shutdown()
    assert files.exists("/data/.kafka_cleanshutdown")


def test_a_write_for_which_there_is_no_room_changes_nothing_and_is_no_failure() -> None:
    files, logs, log = nearly_full(1 << 20)
    for code in (errno.ENOSPC, errno.EDQUOT):
        files.fail(below("/data/orders-0", "write"), code)
        with pytest.raises(DiskFullError):
            log.append_as_leader(produced("x"))
        files.heal()
        assert states(logs)[0] is not DiskState.OFFLINE
        assert (log.log_end_offset, len(readable(log))) == (10, 5)
    logs.check_space()
    assert log.append_as_leader(produced("x")).first_offset == 10


def test_a_full_disk_is_the_state_of_one_directory_only() -> None:
    files, logs, first, second = two_disks(log_dir_reserve_bytes=1 << 20)
    free = {"/a": 5, "/b": 1 << 30}
    files.free_bytes = free.__getitem__  # type: ignore[method-assign]
    logs.check_space()
    assert states(logs) == [DiskState.FULL, DiskState.ONLINE]
    with pytest.raises(DiskFullError):
        first.append_as_leader(produced("x"))
    second.append_as_leader(produced("x"))


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC, errno.EMFILE])
def test_an_append_without_room_on_a_disk_that_has_some_is_remembered_until_one_finds_it(
    number: int,
) -> None:
    files, logs, first, second = two_disks(log_dir_reserve_bytes=0)
    files.fail(below("/a", "write"), number)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    logs.check_space()
    second.append_as_leader(produced("x"))
    refused = [each.state.refused for each in logs.directories]
    assert "/a/orders-0" in refused[0]
    assert refused[1] == ""
    assert states(logs) == [DiskState.ONLINE, DiskState.ONLINE]

    first.append_as_leader(produced("x"))
    assert [each.state.refused for each in logs.directories] == ["", ""]


def test_an_offline_directory_does_not_come_back_because_it_has_room() -> None:
    files, logs, first, _ = two_disks()
    files.fail(below("/a", "write"), errno.EIO)
    with pytest.raises(DiskError):
        first.append_as_leader(produced("x"))
    logs.check_space()
    assert states(logs) == OFFLINE_ONLINE


def test_a_disk_whose_space_cannot_be_asked_for_is_offline() -> None:
    files, logs, _, _ = two_disks()

    def refuse(path: str) -> int:
        if path == "/a":
            raise DiskError("statvfs", path, errno.EIO, "gone")
        return 1 << 40

    files.free_bytes = refuse  # type: ignore[method-assign]
    logs.check_space()
    assert states(logs) == OFFLINE_ONLINE


def test_a_disk_that_really_fills_up_refuses_appends_and_loses_nothing() -> None:
    files = SimulatedFileSystem(capacity_bytes=40 * 4096)
    logs = started(files, log_dir_reserve_bytes=4096)
    log = logs.create(ORDERS)

    def append_until_refused() -> None:
        while True:
            log.append_as_leader(produced("y" * 50))
            logs.check_space()

    with pytest.raises(DiskFullError):
        append_until_refused()
    end_offset = log.log_end_offset
    assert states(logs)[0] is not DiskState.OFFLINE
    files.capacity_bytes = 1 << 40
    logs.check_space()
    assert log.append_as_leader(produced("more")).first_offset == end_offset
    log.update_high_watermark(log.log_end_offset)
    assert len(readable(log)) == end_offset // 2 + 1


def test_what_was_flushed_before_a_partition_was_moved_is_not_cut_after_a_start() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    log = fill(logs.create(ORDERS, directory="/a"))
    end_offset = log.log_end_offset
    logs.shutdown()
    files.rename("/a/orders-0", "/b/orders-0")
    started(files, "/a", "/b")

    files = files.after_crash(CrashMode.KEEP_ALL)
    files.flip(f"/b/orders-0/{0:020d}.log", 70, 0x10)

    assert started(files, "/a", "/b").get(ORDERS).log_end_offset == end_offset
