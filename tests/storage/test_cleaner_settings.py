"""Settings of the cleaner that change while it works, and what is left when it has stopped."""

import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cleaners import (
    COMPACT,
    EXPECTED,
    ORDERS,
    PAYMENTS,
    TIMEOUT_S,
    WorkerFiles,
    cleaner_of,
    cleaning,
    files_of,
    keys,
    latest,
    leftovers,
    run_round,
    stopped,
    write,
    written,
)
from managers import manager as new_manager
from small_logs import START_MS

from stratalog.config import BrokerConfig
from stratalog.errors import ConfigError
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.states import Phase
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager

# --- settings that change ------------------------------------------------------------------------


def changed(logs: LogManager, **settings: object) -> BrokerConfig:
    return replace(logs.config, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        (4, 2, True),
        (4, 8, True),
        (4, 1, False),
        (4, 9, False),
        (3, 1, True),
        (5, 2, True),
        (1, 2, True),
        (1, 3, False),
    ],
)
def test_threads_change_to_between_half_and_twice(
    before: int, after: int, is_allowed: bool
) -> None:
    with cleaning(log_cleaner_threads=before, log_cleaner_dedupe_buffer_size=16 << 20) as logs:
        config = changed(logs, log_cleaner_threads=after)
        if is_allowed:
            cleaner_of(logs).reconfigure(config)
        else:
            with pytest.raises(ConfigError, match=r"log\.cleaner\.threads"):
                cleaner_of(logs).reconfigure(config)
            assert cleaner_of(logs)._config.log_cleaner_threads == before


@pytest.mark.parametrize("pattern", ["orders", "ord*", "other,ord*s"])
def test_topics_that_a_job_compacts_are_left_alone_until_they_are_named_no_more(
    pattern: str,
) -> None:
    excluded = tuple(pattern.split(","))
    with cleaning(log_cleaner_exclude_topics=excluded) as logs:
        written(logs, ORDERS)
        written(logs, PAYMENTS)
        run_round(logs)
        assert set(cleaner_of(logs).last_runs) == {PAYMENTS}
        cleaner_of(logs).reconfigure(changed(logs, log_cleaner_exclude_topics=()))
        run_round(logs)
        assert set(cleaner_of(logs).last_runs) == {ORDERS, PAYMENTS}


def test_fewer_threads_count_when_those_under_way_have_ended() -> None:
    with cleaning(log_cleaner_threads=2) as logs:
        for key in keys(4):
            written(logs, key)
        stop = stopped(0, logs)
        assert len(cleaner_of(logs).states.all()) == 2
        cleaner_of(logs).reconfigure(changed(logs, log_cleaner_threads=1))
        cleaner_of(logs).run(logs.clock.now_ms())
        assert len(cleaner_of(logs).states.all()) <= 2
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert len(cleaner_of(logs).last_runs) == 4


def test_a_shutdown_waits_for_rounds_of_before_a_change() -> None:
    files = WorkerFiles()
    before = set(threading.enumerate())
    with cleaning(files) as logs:
        written(logs)
        stop = stopped(5, logs)
        cleaner_of(logs).reconfigure(changed(logs, log_cleaner_threads=2))
        threading.Timer(0.0, stop.release).start()
    begun = set(threading.enumerate()) - before
    assert not [t for t in begun if t.name.startswith("kafka-log-cleaner")]
    assert not [name for name in files.tree("/") if name.endswith(".cleaned")]


@pytest.fixture
def throttled() -> Iterator[LogManager]:
    """A worker has spent more than it may for hours, and waits."""
    with cleaning(log_cleaner_io_max_bytes_per_second=1e-3) as logs:
        written(logs)
        throttle = cleaner_of(logs).throttle
        waiting = threading.Event()
        wait = throttle._wait

        def tell(seconds: float) -> object:
            waiting.set()
            return wait(seconds)

        throttle._wait = tell  # type: ignore[assignment]
        throttle._started -= 1.0  # its window is over
        cleaner_of(logs).run(logs.clock.now_ms())
        assert waiting.wait(TIMEOUT_S)
        yield logs


def test_another_rate_counts_at_once_for_a_worker_that_waits(throttled: LogManager) -> None:
    fast = changed(throttled, log_cleaner_io_max_bytes_per_second=1e12)
    cleaner_of(throttled).reconfigure(fast)
    assert cleaner_of(throttled).wait(TIMEOUT_S)
    assert ORDERS in cleaner_of(throttled).last_runs


def test_a_worker_that_waits_is_stopped_at_once(throttled: LogManager) -> None:
    cleaner_of(throttled).abort_and_pause(ORDERS)
    assert cleaner_of(throttled).wait(TIMEOUT_S)
    assert cleaner_of(throttled).states.state(ORDERS).phase is Phase.PAUSED


def test_a_shutdown_does_not_wait_for_the_throttle(throttled: LogManager) -> None:
    cleaner_of(throttled).shutdown()
    assert leftovers(throttled) == []


def test_another_map_size_counts_from_the_next_round_on() -> None:
    with cleaning() as logs:
        log = written(logs)
        stop = stopped(5, logs)
        half = changed(logs, log_cleaner_dedupe_buffer_size=5 << 19)
        cleaner_of(logs).reconfigure(half)
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        before = cleaner_of(logs).last_runs[ORDERS].map_capacity
        write(log, 20)
        run_round(logs)
        assert cleaner_of(logs).last_runs[ORDERS].map_capacity == pytest.approx(
            before / 2, rel=0.01
        )


# --- what is left ------------------------------------------------------------------------------


def test_no_map_outlives_a_shutdown() -> None:
    for number in (0, 9, 30):
        with cleaning() as logs:
            written(logs)
            stop = stopped(number, logs)
            cleaner_of(logs).abort(ORDERS)
            threading.Timer(0.0, stop.release).start()
        cleaner = cleaner_of(logs)
        gc.collect()
        maps = [each for each in gc.get_objects() if isinstance(each, OffsetMap)]
        assert maps == [], number
        assert cleaner._running == {}


def test_a_manager_that_was_never_shut_down_keeps_no_process_from_ending() -> None:
    logs = new_manager(WorkerFiles(), topic=COMPACT, log_cleaner_dedupe_buffer_size=4 << 20)
    logs._is_threaded = True
    logs.start()
    written(logs)
    cleaner_of(logs).run(START_MS)
    workers = [t for t in threading.enumerate() if t.name.startswith("kafka-log-cleaner")]
    assert all(worker.daemon for worker in workers)
    gone = weakref.ref(logs)
    logs.shutdown()
    del logs
    gc.collect()
    assert gone() is None


def test_an_owner_that_is_interrupted_in_a_swap_can_still_shut_down() -> None:
    with cleaning() as logs:
        log = written(logs)
        cleaner = cleaner_of(logs)
        cleaner.run(logs.clock.now_ms())
        interrupted = False

        def interrupt(operation: object) -> None:
            nonlocal interrupted
            if threading.current_thread() is threading.main_thread() and not interrupted:
                interrupted = True
                raise KeyboardInterrupt

        files_of(logs).observer = interrupt
        with pytest.raises(KeyboardInterrupt):
            cleaner.wait(TIMEOUT_S)
        files_of(logs).observer = None
        assert latest(log) == EXPECTED


def test_a_round_that_is_not_threaded_is_over_when_the_turn_is() -> None:
    logs = new_manager(WorkerFiles(), topic=COMPACT)
    logs._is_threaded = False
    logs.start()
    for key in (ORDERS, PAYMENTS):
        written(logs, key)
    cleaner_of(logs).run(START_MS)
    assert set(cleaner_of(logs).last_runs) == {ORDERS, PAYMENTS}
    assert files_of(logs).worker_operations == []
    logs.shutdown()


def test_status_tells_of_what_is_under_way_and_what_was_done() -> None:
    with cleaning() as logs:
        log: Log = written(logs)
        stop = stopped(5, logs)
        status = cleaner_of(logs).status()
        assert [str(state) for state in status.states.values()] == ["in progress"]
        assert (status.max_dirty_percent, status.last_run_ms) == (100, START_MS)
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        stats = cleaner_of(logs).status().last_runs[ORDERS]
        assert stats.messages_kept < stats.messages_read == log.segments.active.base_offset
        assert log.own.cleaner_notes()["last_run"]["messages_kept"] == stats.messages_kept


def test_a_manager_takes_changed_settings_of_cleaner_and_retention_at_once() -> None:
    with cleaning() as logs:
        logs.run_due()
        periods = {task.name: task.period_ms for task in logs.schedule.tasks}
        assert periods["kafka-log-cleaner"] == logs.config.log_cleaner_backoff_ms
        logs.reconfigure(changed(logs, log_cleaner_backoff_ms=7, log_retention_check_interval_ms=9))
        periods |= {"kafka-log-cleaner": 7, "kafka-log-retention": 9}
        assert {task.name: task.period_ms for task in logs.schedule.tasks} == periods
        assert cleaner_of(logs).uncleanable.backoff_ms == 7
        with pytest.raises(ConfigError, match="threads"):
            logs.reconfigure(changed(logs, log_cleaner_threads=100))
        assert logs.config.log_cleaner_backoff_ms == 7
