"""Periodic work by a clock that a test turns."""

import pytest
from managers import ORDERS, PAYMENTS, fill, manager, started
from small_logs import START_MS, produced

from stratalog.config import TopicConfig
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

# Kafka's table: first run after, then every (ms).
TASKS = {
    "kafka-log-flusher": (30_000, 2**63 - 1),
    "kafka-recovery-point-checkpoint": (30_000, 60_000),
    "kafka-log-start-offset-checkpoint": (30_000, 60_000),
    "highwatermark-checkpoint": (0, 5_000),
    "producer-expiration": (600_000, 600_000),
}


def ticking(**settings: object) -> tuple[LogManager, ManualClock]:
    clock = ManualClock(START_MS)
    return started(SimulatedFileSystem(now_ms=clock.now_ms), clock=clock, **settings), clock


@pytest.mark.parametrize("name", TASKS)
def test_each_task_first_runs_and_repeats_when_kafkas_does(name: str) -> None:
    logs, _ = ticking()
    (task,) = [task for task in logs.schedule.tasks if task.name == name]
    assert (task.due_ms - START_MS, task.period_ms) == TASKS[name]


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("log_flush_scheduler_interval_ms", "kafka-log-flusher"),
        ("log_flush_offset_checkpoint_interval_ms", "kafka-recovery-point-checkpoint"),
        ("log_flush_start_offset_checkpoint_interval_ms", "kafka-log-start-offset-checkpoint"),
        ("replica_high_watermark_checkpoint_interval_ms", "highwatermark-checkpoint"),
        ("producer_id_expiration_check_interval_ms", "producer-expiration"),
    ],
)
def test_each_period_is_a_setting(setting: str, name: str) -> None:
    logs, _ = ticking(**{setting: 777})
    assert [task.period_ms for task in logs.schedule.tasks if task.name == name] == [777]


def test_the_delay_before_the_first_run_is_a_setting() -> None:
    logs, _ = ticking(log_initial_task_delay_ms=123)
    due = {task.name: task.due_ms - START_MS for task in logs.schedule.tasks}
    assert due["kafka-recovery-point-checkpoint"] == due["kafka-delete-logs"] == 123
    assert due["highwatermark-checkpoint"] == 0


def test_nothing_is_scheduled_before_the_start() -> None:
    assert manager(SimulatedFileSystem()).schedule.tasks == []


def test_recovery_points_are_on_disk_a_minute_after_they_moved() -> None:
    logs, clock = ticking()
    log = fill(logs.create(ORDERS))
    log.flush()
    clock.advance(29_999)
    logs.run_due()
    assert logs.directories[0].recovery_points() == {}
    clock.advance(1)
    assert "kafka-recovery-point-checkpoint" in logs.run_due()
    assert logs.directories[0].recovery_points() == {ORDERS: 10}
    fill(log)
    log.flush()
    clock.advance(59_999)
    logs.run_due()
    assert logs.directories[0].recovery_points() == {ORDERS: 10}
    clock.advance(1)
    logs.run_due()
    assert logs.directories[0].recovery_points() == {ORDERS: 20}


def test_high_watermarks_are_on_disk_every_five_seconds() -> None:
    logs, clock = ticking()
    fill(logs.create(ORDERS))
    assert "highwatermark-checkpoint" in logs.run_due()
    assert logs.directories[0].high_watermarks() == {ORDERS: 10}
    logs.get(ORDERS).update_high_watermark(6)
    clock.advance(4_999)
    logs.run_due()
    assert logs.directories[0].high_watermarks() == {ORDERS: 10}
    clock.advance(1)
    logs.run_due()
    assert logs.directories[0].high_watermarks() == {ORDERS: 6}


def test_log_starts_are_on_disk_a_minute_after_they_moved() -> None:
    logs, clock = ticking()
    fill(logs.create(ORDERS)).raise_log_start_offset(3)
    clock.advance(30_000)
    logs.run_due()
    assert logs.directories[0].log_start_offsets() == {ORDERS: 3}


def test_a_log_is_flushed_when_its_last_flush_is_flush_ms_ago() -> None:
    topic = TopicConfig(flush_ms=5_000)
    logs, clock = ticking(
        topic=topic, log_flush_scheduler_interval_ms=1_000, log_initial_task_delay_ms=0
    )
    log = fill(logs.create(ORDERS))
    clock.advance(4_999)
    logs.run_due()
    assert log.recovery_point == 0
    clock.advance(1_000)
    logs.run_due()
    assert log.recovery_point == 10


def test_an_idle_log_is_not_flushed_again() -> None:
    topic = TopicConfig(flush_ms=1)
    logs, clock = ticking(
        topic=topic, log_flush_scheduler_interval_ms=1_000, log_initial_task_delay_ms=0
    )
    fill(logs.create(ORDERS))
    clock.advance(1_000)
    logs.run_due()
    syncs = [each for each in logs.files.trace if each.kind == "sync"]  # type: ignore[attr-defined]
    clock.advance(1_000)
    logs.flush_due(clock.now_ms())
    again = [each for each in logs.files.trace if each.kind == "sync"]  # type: ignore[attr-defined]
    log_syncs = [each for each in again[len(syncs) :] if each.path.endswith(".log")]
    assert log_syncs == []


def test_producers_are_forgotten_when_they_have_been_silent_for_long() -> None:
    logs, clock = ticking(producer_id_expiration_ms=3_600_000)
    log = logs.create(ORDERS)
    log.append_as_leader(produced("x", producer_id=9, producer_epoch=0, base_sequence=0))
    clock.advance(600_000)
    assert "producer-expiration" in logs.run_due()
    assert log.producers.get(9) is not None
    clock.advance(3_600_000)
    logs.run_due()
    assert log.producers.get(9) is None


def test_files_of_deleted_segments_go_after_their_delay() -> None:
    logs, clock = ticking(
        topic=TopicConfig(file_delete_delay_ms=10_000, internal_segment_bytes=400)
    )
    log = fill(logs.create(ORDERS), 12)
    first = log.segments.first
    log.delete_segments([first])
    renamed = first.path + ".deleted"
    assert logs.files.exists(renamed)
    clock.advance(30_000)
    assert "kafka-delete-logs" in logs.run_due()
    assert not logs.files.exists(renamed)


def test_one_flush_serves_every_log_that_was_appended_to() -> None:
    logs, _ = ticking()
    for key in (ORDERS, PAYMENTS):
        fill(logs.create(key))
    logs.flush_appended()
    assert [(log.recovery_point, log.needs_flush) for log in logs] == [(10, False)] * 2


@pytest.mark.parametrize(("count", "at_once"), [(31, 0), (32, 1)])
def test_many_dirty_logs_are_flushed_by_one_sync_of_the_file_system(
    count: int, at_once: int
) -> None:
    logs, _ = ticking()
    for partition in range(count):
        fill(logs.create(TopicPartition("t", partition)), 1)
    trace = logs.files.trace  # type: ignore[attr-defined]
    start = len(trace)
    logs.flush_appended()
    kinds = [each.kind for each in trace[start:]]
    assert kinds.count("sync_file_system") == at_once
    assert (kinds.count("sync") == 0) == bool(at_once)
    assert {log.recovery_point for log in logs} == {2}


@pytest.mark.parametrize("count", [1, 31, 32])
def test_what_was_flushed_survives_the_loss_of_power_however_it_was_flushed(count: int) -> None:
    logs, _ = ticking()
    for partition in range(count):
        fill(logs.create(TopicPartition("t", partition)), 6)
    logs.flush_appended()
    left = logs.files.after_crash(CrashMode.LOSE_UNSYNCED)  # type: ignore[attr-defined]
    assert [log.log_end_offset for log in started(left)] == [12] * count


def test_nothing_is_due_twice_at_the_same_time() -> None:
    logs, clock = ticking()
    clock.advance(10_000_000)
    assert set(logs.run_due()) >= set(TASKS)
    assert logs.run_due() == []
