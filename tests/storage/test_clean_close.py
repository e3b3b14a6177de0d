"""A clean stop of many logs: durable as that of one, for a few syncs."""

import errno

import pytest
from managers import fill, started

from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, SimulatedFileSystem

MARKER = "/data/.kafka_cleanshutdown"
MANY = [TopicPartition("orders", number) for number in range(SYNC_FILE_SYSTEM_FROM)]


def with_many(files: SimulatedFileSystem) -> LogManager:
    logs = started(files)
    for key in MANY:
        fill(logs.create(key), 2)
    return logs


def test_many_logs_are_closed_with_two_syncs_of_their_file_system() -> None:
    files = SimulatedFileSystem()
    logs = with_many(files)
    start = len(files.trace)
    logs.shutdown()
    done = [each for each in files.trace[start:] if "/orders-" in each.path]
    assert [each.path for each in done if each.kind == "sync"] == []
    assert [each.kind for each in files.trace[start:]].count("sync_file_system") == 2


@pytest.mark.parametrize("mode", CrashMode)
def test_many_logs_that_were_closed_are_whole_whatever_a_crash_takes(mode: CrashMode) -> None:
    files = SimulatedFileSystem()
    with_many(files).shutdown()
    again = started(files.after_crash(mode))
    assert [again.get(key).log_end_offset for key in MANY] == [4] * len(MANY)
    assert {again.get(key).recovery_report.scanned_segments for key in MANY} == {0}
    assert {tuple(again.get(key).snapshots.offsets) for key in MANY} == {(4,)}


@pytest.mark.parametrize("mode", CrashMode)
@pytest.mark.parametrize("number", [1, 2])
def test_no_stop_is_clean_whose_sync_of_many_logs_failed(mode: CrashMode, number: int) -> None:
    files = SimulatedFileSystem()
    logs = with_many(files)
    seen = []
    files.fail(
        lambda each: each.kind == "sync_file_system" and len(seen.append(each) or seen) == number,
        errno.EIO,
    )
    logs.shutdown()
    assert not files.exists(MARKER)
    again = started(files.after_crash(mode))
    assert not any(again.get(key).is_damaged for key in MANY)


def test_a_stop_of_many_logs_leaves_no_file_of_theirs_open() -> None:
    files = SimulatedFileSystem()
    logs = with_many(files)
    held = [logs.get(key) for key in MANY]
    logs.shutdown()
    assert all(log.is_closed for log in held)
    assert {log.segments.active._file for log in held} == {None}
