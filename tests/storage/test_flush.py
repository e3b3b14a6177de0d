"""Flushing: what is synced, in which order, and what may be believed afterwards."""

import errno
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    append_transactional,
    batch,
    clock_of,
    content,
    disk_of,
    end_transaction,
    fetch,
    new_context,
    new_log,
    read_all,
    reopened,
    trace_since,
)

from stratalog.errors import DiskError, LogClosedError
from stratalog.storage.context import DiskState
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM, flush_together
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation
from stratalog.testing import CrashMode, SimulatedFileSystem

MakeLog = Callable[..., Log]


def synced(log: Log, number: int) -> list[str]:
    """The files and directories that were synced, in order."""
    return [name for kind, name in trace_since(log, number) if kind.startswith("sync")]


def fail_syncs(log: Log, suffix: str) -> None:
    disk_of(log).fail(lambda o: o.kind == "sync" and o.path.endswith(suffix), errno.EIO)


# --- what is synced ------------------------------------------------------------------------------


def test_a_flush_syncs_the_log_then_its_indexes_then_the_directory_of_a_new_segment(
    make_log: MakeLog,
) -> None:
    log = make_log()
    append_transactional(log, 7, 0)
    end_transaction(log, 7, commit=False)
    number = disk_of(log).operations
    log.flush()
    suffixes = (".log", ".index", ".timeindex", ".txnindex")
    assert synced(log, number) == [*(f"{0:020d}{each}" for each in suffixes), "t-0"]
    assert log.recovery_point == 2


def test_an_abort_is_synced_even_if_its_file_was_let_go_of_before_the_flush(
    make_log: MakeLog,
) -> None:
    log = make_log()
    append_transactional(log, 7, 0)
    end_transaction(log, 7, commit=False)
    number = disk_of(log).operations
    log.segments.active.release()
    log.flush()
    assert f"{0:020d}.txnindex" in synced(log, number)


def test_the_directory_is_not_synced_again_for_a_segment_whose_name_is_durable(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch())
    log.flush()
    log.append_as_leader(batch())
    number = disk_of(log).operations
    log.flush()
    assert "t-0" not in synced(log, number)
    assert f"{0:020d}.log" in synced(log, number)


def test_nothing_is_synced_where_nothing_was_appended(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch())
    log.flush()
    number = disk_of(log).operations
    log.flush()
    assert synced(log, number) == []
    assert log.plan_flush() is None


def test_segments_are_synced_from_the_one_that_owns_the_recovery_point_upwards(
    make_log: MakeLog,
) -> None:
    log = make_log()
    for _ in range(3):
        log.append_as_leader(batch(2))
        log.roll()
    log.append_as_leader(batch(2))
    log = reopened(log, clean=False, recovery_point=3)
    number = disk_of(log).operations
    log.flush()
    logs = [name for name in synced(log, number) if name.endswith(".log")]
    assert logs == [f"{base:020d}.log" for base in (2, 4, 6)]
    assert synced(log, number)[-1] == "t-0"
    assert log.recovery_point == 8


def test_an_ordinary_flush_leaves_an_empty_active_segment_out(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    log.roll()
    log = reopened(log, clean=False, recovery_point=0)
    number = disk_of(log).operations
    log.flush()
    assert [name for name in synced(log, number) if name.endswith(".log")] == [f"{0:020d}.log"]
    assert log.recovery_point == 2


def test_a_forced_flush_includes_an_empty_active_segment(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    log.roll()
    rolled = disk_of(log).operations
    log.flush()
    number = disk_of(log).operations
    log.flush()
    assert f"{2:020d}.log" not in synced(log, number)
    log.flush(include_empty_active=True)
    assert f"{2:020d}.log" in synced(log, number)
    assert "t-0" in synced(log, rolled)
    assert log.recovery_point == 2


def test_closing_flushes_also_an_empty_log(make_log: MakeLog) -> None:
    log = make_log()
    number = disk_of(log).operations
    log.close()
    assert f"{0:020d}.log" in synced(log, number)
    assert "t-0" in synced(log, number)


def test_closing_syncs_before_it_trims_the_indexes_and_snapshots_last(make_log: MakeLog) -> None:
    log = make_log(index_interval_bytes=0)
    log.append_as_leader(batch(1))
    log.append_as_leader(batch(1))
    log.flush()
    number = disk_of(log).operations
    log.close()
    trace = trace_since(log, number)
    steps = [("sync", f"{0:020d}.log"), ("sync", f"{2:020d}.snapshot")]
    assert trace.index(steps[0]) < trace.index(steps[1])
    assert trace.index(steps[0]) < trace.index(("truncate", f"{0:020d}.index"))


# --- when ----------------------------------------------------------------------------------------


def test_an_append_waits_for_nobody(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch())
    number = disk_of(log).operations
    for _ in range(20):
        log.append_as_leader(batch())
    assert synced(log, number) == []
    assert (log.recovery_point, log.unflushed_messages) == (0, 21)


@pytest.mark.parametrize(("waited_ms", "due"), [(99, False), (100, True)])
def test_a_flush_is_due_when_the_last_one_is_flush_ms_ago(
    make_log: MakeLog, waited_ms: int, due: bool
) -> None:
    log = make_log(flush_ms=100)
    log.append_as_leader(batch())
    clock_of(log).advance(50)
    log.flush()
    log.append_as_leader(batch())
    clock_of(log).advance(waited_ms)
    assert log.is_flush_due(clock_of(log).now_ms()) == due


def test_no_flush_is_due_where_nothing_waits(make_log: MakeLog) -> None:
    log = make_log(flush_ms=100)
    clock_of(log).advance(1000)
    assert not log.is_flush_due(clock_of(log).now_ms())
    assert not log.needs_flush


# --- what may be believed ------------------------------------------------------------------------


@given(st.lists(st.sampled_from("aaafr"), max_size=25), st.sampled_from(CrashMode))
def test_what_is_below_the_recovery_point_survives_the_loss_of_power(
    steps: list[str], mode: CrashMode
) -> None:
    log = new_log(internal_segment_bytes=300)
    flushed = 0
    for step in steps:
        if step == "a":
            log.append_as_leader(batch(2))
        elif step == "f":
            log.flush()
        else:
            log.roll()
        flushed = max(flushed, log.recovery_point)
    kept = read_all(log)[: flushed // 2]
    again = reopened(log, clean=False, files=disk_of(log).after_crash(mode))
    assert not again.is_damaged
    assert again.log_end_offset >= flushed
    assert read_all(again)[: len(kept)] == kept


def test_zeros_that_preallocation_left_are_never_served_after_a_loss_of_power() -> None:
    log = new_log(preallocate=True, internal_segment_bytes=300)
    log.append_as_leader(batch(2))
    log.flush()
    log.roll()
    log.append_as_leader(batch(2))
    log.flush()
    kept = read_all(log)
    again = reopened(log, clean=False, files=disk_of(log).after_crash(CrashMode.LOSE_UNSYNCED))
    assert not again.is_damaged
    assert read_all(again) == kept


def test_the_cut_of_a_preallocated_segment_is_durable_after_a_clean_stop(make_log: MakeLog) -> None:
    log = make_log(preallocate=True, internal_segment_bytes=300)
    log.append_as_leader(batch(2))
    kept = read_all(log)
    log.close()
    again = reopened(log, files=disk_of(log).after_crash(CrashMode.LOSE_UNSYNCED))
    assert not again.is_damaged
    assert (again.log_end_offset, read_all(again)) == (2, kept)


@given(st.lists(st.sampled_from("afhr"), max_size=25))
def test_with_flush_on_ack_the_high_watermark_never_passes_the_recovery_point(
    steps: list[str],
) -> None:
    log = new_log(
        context=new_context(SimulatedFileSystem(), flush_on_ack=True), internal_segment_bytes=300
    )
    for step in steps:
        if step == "a":
            log.append_as_leader(batch(2))
        elif step == "f":
            log.flush()
        elif step == "r":
            log.roll()
        else:
            assert log.update_high_watermark(log.log_end_offset) == log.recovery_point
        assert log.high_watermark <= log.recovery_point <= log.log_end_offset
        durable = disk_of(log).after_crash(CrashMode.LOSE_UNSYNCED)
        assert log.high_watermark == 0 or durable.exists(f"{log.directory}/{0:020d}.log")


@pytest.mark.parametrize("flush_on_ack", [True, False])
def test_a_roll_is_flushed_by_others_later_only_where_no_acknowledgement_waits_for_the_disk(
    make_log: MakeLog, flush_on_ack: bool
) -> None:
    log = make_log(flush_on_ack=flush_on_ack)
    log.context.flush_later = lambda _log: True
    log.append_as_leader(batch())
    number = disk_of(log).operations
    log.roll()
    is_flushed = f"{0:020d}.log" in synced(log, number)
    assert (is_flushed, log.recovery_point) == (flush_on_ack, int(flush_on_ack))


def test_without_it_the_high_watermark_may_reach_the_log_end(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    assert log.update_high_watermark(9) == 2
    assert log.raise_high_watermark(1) is False
    assert log.high_watermark == 2


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_failed_sync_fails_the_log_and_is_never_tried_again(
    make_log: MakeLog, suffix: str
) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    log.flush()
    log.append_as_leader(batch(2))
    fail_syncs(log, suffix)
    with pytest.raises(DiskError):
        log.flush()
    for call in (log.flush, lambda: log.append_as_leader(batch())):
        with pytest.raises(LogClosedError):
            call()
    assert log.context.directory_state.state is DiskState.OFFLINE
    assert (log.recovery_point, log.needs_flush, log.needs_recovery) == (2, False, True)
    assert len(fetch(log, 0, isolation=Isolation.HIGH_WATERMARK)) == 0


def test_a_failed_log_is_closed_without_a_snapshot_or_a_sync(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    fail_syncs(log, ".log")
    with pytest.raises(DiskError):
        log.flush()
    number = disk_of(log).operations
    log.close()
    assert trace_since(log, number) == []
    assert log.needs_recovery


def test_a_log_that_was_cut_while_it_was_flushed_elsewhere_keeps_its_recovery_point(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(4))
    log.append_as_leader(batch(4))
    task = log.plan_flush()
    assert task is not None
    task.run()
    log.truncate_to(4)
    log.append_as_leader(batch(4))
    log.complete_flush(task)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 8


def test_what_is_appended_while_a_flush_runs_waits_for_the_next(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(4))
    task = log.plan_flush()
    assert task is not None
    log.append_as_leader(batch(4))
    task.run()
    log.complete_flush(task)
    assert (log.recovery_point, log.log_end_offset) == (4, 8)


def test_recovery_point_and_high_watermark_stay_inside_the_log(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(6))
    log.flush()
    log.update_high_watermark(6)
    log.truncate_to(3)
    assert log.recovery_point == 3
    log.append_as_leader(batch(3))
    log.update_high_watermark(6)
    log.delete_records(5)
    assert log.recovery_point == 6


# --- many at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, SYNC_FILE_SYSTEM_FROM])
def test_logs_flushed_together_are_all_durable(files: SimulatedFileSystem, count: int) -> None:
    context = new_context(files)
    logs = [new_log(context=context, directory=f"/logs/t-{n}") for n in range(count)]
    for log in logs[1:]:
        log.append_as_leader(batch(2))
    flush_together(files, "/logs", logs, context.directory_state.syncs)
    assert [log.recovery_point for log in logs] == [0] + [2] * (count - 1)
    for log in logs[1:]:
        assert files.is_synced(f"{log.directory}/{0:020d}.log")
        assert len(content(log, 0, ".log")) > 0
