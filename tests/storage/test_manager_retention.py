"""The retention task: which logs it checks and when, and that one log's trouble is its own."""

import errno
from collections.abc import Callable

import pytest
from managers import ORDERS, PAYMENTS, fill, started
from small_logs import START_MS

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

TASK = "kafka-log-retention"
DAY_MS = 86_400_000


def config(**settings: object) -> TopicConfig:
    return TopicConfig(
        **{  # type: ignore[arg-type]
            "internal_segment_bytes": 400,
            "segment_index_bytes": 96,
            "retention_ms": DAY_MS,
            "segment_ms": DAY_MS,
            **settings,
        }
    )


def ticking(**settings: object) -> tuple[LogManager, ManualClock]:
    clock = ManualClock(START_MS)
    topic = settings.pop("topic", config())
    return (
        started(SimulatedFileSystem(now_ms=clock.now_ms), clock=clock, topic=topic, **settings),
        clock,
    )


def with_topics(
    topic_config: Callable[[str], TopicConfig | None],
    files: SimulatedFileSystem | None = None,
    *,
    clock: ManualClock | None = None,
) -> LogManager:
    logs = LogManager(
        BrokerConfig(
            log_dirs=("/data",),
            num_recovery_threads_per_data_dir=1,
            log_flush_on_ack=False,
            log_dir_reserve_bytes=0,
        ),
        files=files or SimulatedFileSystem(),
        clock=clock or ManualClock(START_MS),
        topic_config=topic_config,
    )
    logs.start()
    return logs


def test_old_segments_go_at_the_first_check_and_then_every_five_minutes() -> None:
    logs, clock = ticking()
    log = fill(logs.create(ORDERS), 12)
    (task,) = [task for task in logs.schedule.tasks if task.name == TASK]
    assert (task.due_ms - START_MS, task.period_ms) == (30_000, 300_000)

    clock.advance(30_000)
    assert TASK in logs.run_due()
    assert log.log_start_offset == 0
    clock.set(START_MS + DAY_MS + 2)
    assert TASK in logs.run_due()
    assert (log.log_start_offset, log.size_bytes) == (24, 0)


def test_the_period_of_the_checks_is_a_setting() -> None:
    logs, _ = ticking(log_retention_check_interval_ms=777, log_initial_task_delay_ms=5)
    (task,) = [task for task in logs.schedule.tasks if task.name == TASK]
    assert (task.due_ms - START_MS, task.period_ms) == (5, 777)


@pytest.mark.parametrize("cleaner", [True, False])
@pytest.mark.parametrize(
    ("policy", "is_checked"),
    [(("delete",), True), ((), True), (("compact",), False), (("compact", "delete"), False)],
)
def test_a_log_with_compact_is_not_the_tasks_to_check(
    policy: tuple[str, ...], is_checked: bool, cleaner: bool
) -> None:
    logs, clock = ticking(topic=config(cleanup_policy=policy), log_cleaner_enable=cleaner)
    log = fill(logs.create(ORDERS), 12)
    log.delete_records(10)
    first = log.segments.first.base_offset

    logs.delete_old_segments(clock.now_ms())

    assert (log.segments.first.base_offset > first) == is_checked


def test_a_topic_whose_configs_are_unknown_is_held_until_they_are_known() -> None:
    clock = ManualClock(START_MS)
    logs = with_topics(lambda topic: config() if topic == "orders" else None, clock=clock)
    known, unknown = fill(logs.create(ORDERS), 12), fill(logs.create(PAYMENTS), 12)
    assert (known.is_held, unknown.is_held) == (False, True)
    clock.advance(100 * DAY_MS)

    logs.run_due()
    assert (known.size_bytes, unknown.log_start_offset) == (0, 0)
    assert unknown.config == TopicConfig()
    unknown.configure(config())
    logs.delete_old_segments(clock.now_ms())
    assert unknown.size_bytes == 0


def test_what_was_known_of_a_topic_does_not_outlive_the_process() -> None:
    files, clock = SimulatedFileSystem(), ManualClock(START_MS)
    logs = with_topics(lambda _topic: config(), files, clock=clock)
    fill(logs.create(ORDERS), 12)
    logs.shutdown()

    clock.advance(100 * DAY_MS)
    again = with_topics(lambda _topic: None, files, clock=clock)
    again.run_due()

    assert again.get(ORDERS).is_held
    assert again.get(ORDERS).log_start_offset == 0


def test_a_log_that_cannot_be_checked_keeps_no_other_from_its_check() -> None:
    logs, clock = ticking()
    keys = [TopicPartition("t", number) for number in range(3)]
    for key in keys:
        fill(logs.create(key), 12)
    broken = logs.get(keys[1]).directory
    fault = lambda operation: operation.kind == "rename" and broken in operation.path  # noqa: E731
    logs.files.fail(fault, errno.ENOSPC)  # type: ignore[attr-defined]

    clock.set(START_MS + 2 * DAY_MS)
    logs.delete_old_segments(clock.now_ms())

    assert [logs.get(key).size_bytes == 0 for key in keys] == [True, False, True]
    assert list(logs.retention_failures) == [keys[1]]
    assert logs.directories[0].is_online
    logs.delete_old_segments(clock.now_ms())
    assert logs.get(keys[1]).size_bytes == 0
    assert logs.retention_failures == {}


def test_a_disk_that_fails_takes_its_own_directory_offline_and_no_other() -> None:
    clock = ManualClock(START_MS)
    logs = started(
        SimulatedFileSystem(now_ms=clock.now_ms), "/a", "/b", clock=clock, topic=config()
    )
    first = fill(logs.create(ORDERS, directory="/a"), 12)
    second = fill(logs.create(PAYMENTS, directory="/b"), 12)
    fault = lambda operation: operation.kind == "rename" and "/a/" in operation.path  # noqa: E731
    logs.files.fail(fault)  # type: ignore[attr-defined]

    clock.set(START_MS + 2 * DAY_MS)
    logs.delete_old_segments(clock.now_ms())

    assert first.failure is not None
    assert [directory.is_online for directory in logs.directories] == [False, True]
    assert second.size_bytes == 0
    # A directory that is offline is left alone.
    logs.delete_old_segments(clock.now_ms())
    assert ORDERS in logs.retention_failures
