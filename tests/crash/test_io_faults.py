"""Every operation of a scenario fails once, in every way: what the engine says and what it keeps.

* A full disk refuses the append and changes nothing: the same append succeeds when there is room.
* Any other error takes the directory offline: no append, no flush, but reads go on.
* A failed sync never counts as one, and what it should have saved is recovered by the next start.
"""

import errno
from contextlib import suppress
from dataclasses import replace

import pytest
from crash_scenario import CONFIG, START_MS, check_producers, readable_batches
from fault_scenario import BROKER, ELSEWHERE, KEY, Work, manager_on, ready

from stratalog.errors import DiskError, DiskFullError, LogClosedError, StratalogError
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem


def count_operations() -> int:
    files, manager = ready()
    before = files.operations
    work = Work(manager)
    for step in work.steps():
        step()
    work.check_consistent()
    manager.shutdown()
    return files.operations - before


OPERATIONS = count_operations()
FULL = (
    {"error": errno.ENOSPC},
    {"error": errno.EDQUOT},
    {"error": errno.ENOSPC, "written_bytes": 30},
    {"error": errno.ENOSPC, "written_bytes": 30, "cut_back": False},
)


@pytest.mark.parametrize("fault", FULL, ids=["full", "quota", "short write", "half a batch"])
@pytest.mark.parametrize("number", range(1, OPERATIONS + 1))
def test_a_full_disk_refuses_one_append_and_changes_nothing(
    number: int, fault: dict[str, int]
) -> None:
    files, manager = ready()
    work = Work(manager)
    number += files.operations
    files.fail(number, **fault)  # type: ignore[arg-type]
    for step in work.steps():
        try:
            step()
        except DiskFullError:
            if files.trace[number - 1].kind.startswith("sync"):
                return  # a sync that failed for whatever reason is for another test
            work.check_consistent()
            step()
    assert manager.directories[0].is_online, "a full disk is a state, and has passed"
    work.check_consistent()
    manager.shutdown()
    again = Work(manager_on(files.after_crash(CrashMode.LOSE_UNSYNCED)), work.batches)
    again.check_consistent()


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_any_other_error_takes_the_directory_offline_and_no_other(error: int) -> None:
    """The error surfaces, what was flushed stays readable, and a restart has all of it."""
    surfaced = 0
    for number in range(1, OPERATIONS + 1):
        files, manager = ready()
        work = Work(manager)
        files.fail(files.operations + number, error)
        if fails(work):
            surfaced += 1
            check_offline(manager, work, number)
        else:
            manager.shutdown()
        check_restart(files, work, number)
    assert surfaced > 40


def fails(work: Work) -> bool:
    """Run until something fails. A checkpoint that failed shows at the next append."""
    try:
        for step in work.steps():
            step()
    except (DiskError, LogClosedError):
        return True
    return False


def check_offline(manager: LogManager, work: Work, number: int) -> None:
    failed, other = manager.directories
    assert not failed.is_online, f"operation {number} failed and the directory is online"
    with pytest.raises(LogClosedError):
        work.append(99)
    recovery_point = work.log.recovery_point
    with suppress(StratalogError):
        work.log.flush()
    assert work.log.recovery_point == recovery_point, "no flush counts any more"
    flushed = work.batches[: work.flushed]
    assert readable_batches(work.log)[: len(flushed)] == flushed, "reads go on"
    assert other.is_online
    manager.get(ELSEWHERE).append_as_leader(
        build_batch([Record(b"k", b"v", (), START_MS)]), leader_epoch=0
    )
    manager.shutdown()


def check_restart(files: SimulatedFileSystem, work: Work, number: int) -> None:
    """Whether killed or powered off, the next start finds everything that was flushed."""
    for mode in (CrashMode.KEEP_ALL, CrashMode.LOSE_UNSYNCED):
        log = manager_on(files.after_crash(mode, number)).get(KEY)
        flushed = work.batches[: work.flushed]
        found = readable_batches(log)
        assert found[: len(flushed)] == flushed, f"operation {number}, {mode}"
        check_producers(log, found)
        log.append_as_leader(build_batch([Record(b"k", b"v", (), START_MS)]), leader_epoch=9)


def test_a_failed_sync_never_moves_the_recovery_point() -> None:
    failures = 0
    for number in range(1, OPERATIONS + 1):
        files, manager = ready()
        work = Work(manager)
        target = files.operations + number
        files.fail(lambda o, target=target: o.number == target and o.kind.startswith("sync"))
        if not fails(work):
            continue
        failures += 1
        flushed = work.batches[: work.flushed]
        flushed_offset = read_headers(flushed[-1])[0].next_offset if flushed else 0
        assert work.log.recovery_point == flushed_offset
        assert work.log.update_high_watermark(2**40) <= flushed_offset, "nobody sees more"
        check_offline(manager, work, number)
        assert work.log.recovery_point == flushed_offset
        check_restart(files, work, number)
    assert failures > 10


def test_a_log_whose_flush_has_failed_is_never_flushed_nor_appended_to_again() -> None:
    files, manager = ready()
    work = Work(manager)
    work.append(0)
    log = work.log
    files.fail(lambda operation: operation.kind == "sync")
    with pytest.raises(DiskError):
        log.flush()
    assert log.failure is not None
    for attempt in (log.flush, lambda: work.append(1)):
        with pytest.raises(LogClosedError):
            attempt()
    assert log.recovery_point == 0
    assert readable_batches(log) == work.batches


def test_a_disk_that_really_fills_up_refuses_appends_until_there_is_room() -> None:
    files, manager = ready()
    files.put("/data/ballast", bytes(1 << 20))
    work = Work(manager)
    files.capacity_bytes = (1 << 20) + files_used(files) + 8 * 4096
    refused = 0
    for number in range(400):
        try:
            work.append(number)
        except DiskFullError:
            refused += 1
            work.check_consistent()
            files.unlink("/data/ballast", missing_ok=True)
            work.append(number)
    assert refused == 1
    work.flush()
    work.check_consistent()


def files_used(files: SimulatedFileSystem) -> int:
    return files.capacity_bytes - files.free_bytes("/data") - (1 << 20)


def test_below_the_reserve_appends_stop_and_resume_by_themselves() -> None:
    files = SimulatedFileSystem(capacity_bytes=1 << 20)
    clock = ManualClock(START_MS)
    config = replace(BROKER, log_dirs=("/data",), log_dir_reserve_bytes=300_000)
    manager = LogManager(
        config, files=files, clock=clock, topic_config=lambda _topic: CONFIG, is_threaded=False
    )
    manager.start()
    manager.create(KEY)
    work = Work(manager)
    work.append(0)
    files.put("/data/ballast", bytes(800_000))
    clock.advance(10_000)
    manager.run_due()
    with pytest.raises(DiskFullError, match=r"log\.dir\.reserve\.bytes=300000"):
        work.append(1)
    manager.checkpoint_recovery_points()  # lives off the reserve
    work.check_consistent()
    files.unlink("/data/ballast")
    clock.advance(10_000)
    manager.run_due()
    work.append(1)
    work.flush()
    work.check_consistent()
    manager.shutdown()


def test_an_error_while_reading_surfaces_and_the_log_goes_on() -> None:
    files, manager = ready()
    work = Work(manager)
    for number in range(4):
        work.append(number)
    work.flush()
    files.fail(lambda operation: operation.kind == "read")
    with pytest.raises(DiskError):
        readable_batches(work.log)
    work.check_consistent()
    assert read_headers(work.batches[-1])[0].next_offset == work.log.log_end_offset
