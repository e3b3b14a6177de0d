"""Deleting a log: gone at once, its files later, and for good."""

import pytest
from managers import ORDERS, PAYMENTS, fill, started, steps
from small_logs import START_MS

from stratalog.config import TopicConfig
from stratalog.errors import LogClosedError, UnknownLogError
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem


def delete_directories(files: SimulatedFileSystem) -> list[str]:
    return [entry.name for entry in files.list("/data") if entry.name.endswith("-delete")]


def test_a_deleted_log_is_gone_at_once_and_its_files_after_the_delay() -> None:
    files, clock = SimulatedFileSystem(), ManualClock(START_MS)
    topic = TopicConfig(file_delete_delay_ms=5_000)
    logs = started(files, clock=clock, topic=topic, log_initial_task_delay_ms=0)
    log = fill(logs.create(ORDERS))
    logs.delete(ORDERS)
    assert ORDERS not in logs
    assert not files.exists("/data/orders-0")
    assert len(delete_directories(files)) == 1
    clock.advance(4_999)
    logs.run_due()
    assert len(delete_directories(files)) == 1
    clock.advance(1_001)
    logs.run_due()
    assert delete_directories(files) == []
    with pytest.raises(LogClosedError):
        log.read(0, max_bytes=10)


def test_a_deletion_is_renamed_synced_and_then_taken_out_of_the_checkpoints() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    fill(logs.create(PAYMENTS)).raise_log_start_offset(1)
    start = len(files.trace)
    logs.delete(ORDERS)
    kinds = [(kind, path.rpartition("/")[2]) for kind, path in steps(files, start)]
    assert kinds[:2] == [("rename", "orders-0"), ("sync_directory", "data")]
    renamed = [path for kind, path in kinds[2:] if kind == "rename"]
    assert [path for path in renamed if "checkpoint" in path] == [
        "recovery-point-offset-checkpoint.tmp",
        "log-start-offset-checkpoint.tmp",
    ]
    assert set(logs.directories[0].recovery_points()) == {PAYMENTS}
    assert logs.directories[0].log_start_offsets() == {PAYMENTS: 1}


def test_a_deleted_log_does_not_come_back_after_a_crash() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    logs.delete(ORDERS)
    for mode in CrashMode:
        assert ORDERS not in started(files.after_crash(mode))


def test_a_log_can_be_made_again_while_its_old_files_wait_to_go() -> None:
    files, clock = SimulatedFileSystem(), ManualClock(START_MS)
    logs = started(files, clock=clock, log_initial_task_delay_ms=0)
    fill(logs.create(ORDERS))
    logs.delete(ORDERS)
    assert fill(logs.create(ORDERS), 1).log_end_offset == 2
    clock.advance(61_000)
    logs.run_due()
    assert delete_directories(files) == []
    assert logs.get(ORDERS).log_end_offset == 2


def test_what_was_waiting_to_be_deleted_goes_after_a_restart_too() -> None:
    files, clock = SimulatedFileSystem(), ManualClock(START_MS)
    logs = started(files, clock=clock)
    fill(logs.create(ORDERS))
    logs.delete(ORDERS)
    logs.shutdown()
    again = started(files, clock=clock, log_initial_task_delay_ms=0)
    again.run_due()
    assert len(delete_directories(files)) == 1
    clock.advance(60_000)
    again.run_due()
    assert delete_directories(files) == []


def test_an_unknown_log_cannot_be_deleted() -> None:
    with pytest.raises(UnknownLogError):
        started(SimulatedFileSystem()).delete(ORDERS)
