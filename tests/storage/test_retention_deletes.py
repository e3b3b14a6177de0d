"""Carrying a plan out: the log start first, then names, then files, and what stays on disk."""

import errno
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
from log_harness import (
    START_MS,
    batch,
    clock_of,
    disk_of,
    names,
    new_context,
    new_log,
    reopened,
    sized_batch,
    trace_since,
)

from stratalog.storage.log import Log
from stratalog.storage.retention import Hold, delete_old_segments
from stratalog.testing import CrashMode, Operation, SimulatedFileSystem

MakeLog = Callable[..., Log]
DAY_MS = 86_400_000


def fill(log: Log, count: int = 6) -> Log:
    """Segments of two batches, a day apart: 0 and 1 in the first, and so on."""
    for number in range(count):
        log.append_as_leader(sized_batch(100, timestamp_ms=START_MS + number * DAY_MS))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    clock_of(log).set(START_MS + count * DAY_MS)
    return log


def check(log: Log) -> list[int]:
    return [
        each.segment.base_offset for each in delete_old_segments(log, clock_of(log).now_ms()).doomed
    ]


def small(make_log: MakeLog, **config: Any) -> Log:
    return fill(make_log(internal_segment_bytes=200, **config))


def test_the_log_starts_at_the_first_segment_that_stays(make_log: MakeLog) -> None:
    log = small(make_log, retention_ms=2 * DAY_MS + 1)

    assert check(log) == [0, 2]
    assert log.log_start_offset == log.segments.first.base_offset == 4
    assert check(log) == []


def test_files_are_renamed_at_once_and_unlinked_after_their_delay(make_log: MakeLog) -> None:
    log = small(make_log, retention_bytes=400, file_delete_delay_ms=1000)
    check(log)

    gone = {name for name in names(log) if name.startswith("0" * 20)}
    assert gone == {f"{0:020}{kind}.deleted" for kind in (".log", ".index", ".timeindex")}
    log.run_deletes(clock_of(log).now_ms() + 999)
    assert gone <= names(log)
    log.run_deletes(clock_of(log).now_ms() + 1000)
    assert not gone & names(log)


def test_the_active_segment_goes_after_a_new_one_was_begun(make_log: MakeLog) -> None:
    log = small(make_log, retention_ms=1)
    before = disk_of(log).operations

    assert check(log) == [0, 2, 4]
    assert log.segments.base_offsets == [6]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (6, 6, 0)
    done = trace_since(log, before)
    created = done.index(("create", f"{6:020}.log"))
    assert created < done.index(("rename", f"{0:020}.log"))
    assert log.append_as_leader(batch()).first_offset == 6


@pytest.mark.parametrize("retention", [{"retention_ms": 1}, {"retention_bytes": 300}])
def test_what_is_left_survives_a_new_start(make_log: MakeLog, retention: dict[str, int]) -> None:
    log = small(make_log, **retention)
    check(log)
    kept = (log.log_start_offset, log.log_end_offset, log.segments.base_offsets)

    again = reopened(log)

    assert (again.log_start_offset, again.log_end_offset, again.segments.base_offsets) == kept


def test_what_has_gone_does_not_come_back_when_power_is_lost(make_log: MakeLog) -> None:
    log = small(make_log, retention_ms=2 * DAY_MS + 1)
    check(log)

    left = disk_of(log).after_crash(CrashMode.LOSE_UNSYNCED)

    assert reopened(log, clean=False, files=left).log_start_offset == 4


def test_what_delete_records_left_goes_whole_segment_by_segment(make_log: MakeLog) -> None:
    log = small(make_log, cleanup_policy=())
    log.delete_records(3)

    assert check(log) == [0]
    assert log.log_start_offset == 3
    assert log.segments.first.base_offset == 2


def test_a_log_whose_configs_are_unknown_loses_nothing(make_log: MakeLog) -> None:
    log = small(make_log, retention_ms=1)
    log.is_held = True

    plan = delete_old_segments(log, clock_of(log).now_ms())

    assert plan.doomed == ()
    assert plan.held is not None
    assert plan.held.hold is Hold.UNKNOWN_CONFIGS
    assert log.segments.base_offsets == [0, 2, 4]
    log.configure(log.config)
    assert check(log) == [0, 2, 4]


def test_where_no_record_has_a_timestamp_the_time_of_the_last_write_counts() -> None:
    now = [START_MS]
    context = new_context(SimulatedFileSystem(now_ms=lambda: now[0]))
    log = new_log(context=context, internal_segment_bytes=200, retention_ms=1000)
    for _ in range(4):
        log.append_as_leader(sized_batch(100, timestamp_ms=-1))
        now[0] += 300
    log.update_high_watermark(4)
    last_write_ms = START_MS + 300

    assert delete_old_segments(log, last_write_ms + 1000).segments == []
    plan = delete_old_segments(log, last_write_ms + 1001)
    assert [each.base_offset for each in plan.segments] == [0]


def test_on_a_full_disk_all_but_the_active_segment_go(make_log: MakeLog) -> None:
    log = small(make_log, retention_ms=1)
    disk_of(log).fail(_is_new_segment, errno.ENOSPC)

    plan = delete_old_segments(log, clock_of(log).now_ms())

    assert [each.base_offset for each in plan.segments] == [0, 2]
    assert plan.held is not None
    assert plan.held.hold is Hold.ACTIVE_SEGMENT
    assert plan.log_start_offset == log.log_start_offset == 4
    assert log.failure is None
    assert check(log) == [4]


def _is_new_segment(operation: Operation) -> bool:
    return operation.kind == "create" and PurePosixPath(operation.path).name.startswith("0" * 19)


def test_a_damaged_segment_is_kept_by_age_and_keeps_nothing_else_from_working() -> None:
    log = fill(new_log(internal_segment_bytes=200, retention_ms=1))
    again = reopened(log)
    disk_of(again).flip(again.segments.first.path, 16, 0xFF)
    disk_of(again).put(again.segments.first.time_index.path, b"")

    plan = delete_old_segments(again, START_MS + 100 * DAY_MS)

    assert plan.doomed == ()
    assert plan.held is not None
    assert plan.held.hold is Hold.DAMAGE
