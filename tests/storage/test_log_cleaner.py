"""The log cleaner's rounds on threads of their own: what may happen to a log while one is under
way, at every point of it, and what a round leaves behind."""

import errno
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from cleaners import (
    COMPACT,
    EXPECTED,
    ORDERS,
    TIMEOUT_S,
    WorkerFiles,
    check_log,
    cleaner_of,
    cleaning,
    clock_of,
    files_of,
    keys,
    latest,
    leftovers,
    run_round,
    stopped,
    values,
    write,
    written,
)
from small_logs import START_MS

from stratalog.errors import CleaningAbortedError, DiskError
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.rounds import CleaningRound, Work, plan_log, plan_round
from stratalog.storage.cleaning.states import Phase
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation

DELETE = replace(COMPACT, cleanup_policy=("delete",))


# --- something happens to the log while it is cleaned --------------------------------------------


def pause_and_resume(logs: LogManager) -> None:
    cleaner_of(logs).abort_and_pause(ORDERS)
    cleaner_of(logs).resume(ORDERS)


def pause_twice(logs: LogManager) -> None:
    for _ in range(2):
        cleaner_of(logs).abort_and_pause(ORDERS)
    for _ in range(2):
        cleaner_of(logs).resume(ORDERS)


def truncate(logs: LogManager) -> None:
    logs.truncate_to(ORDERS, 6)
    write(logs.get(ORDERS), 10)


def truncate_the_active_segment(logs: LogManager) -> None:
    log = logs.get(ORDERS)
    logs.truncate_to(ORDERS, log.log_end_offset - 1)
    write(log, 1)


def truncate_fully(logs: LogManager) -> None:
    logs.truncate_fully_and_start_at(ORDERS, 0)
    write(logs.get(ORDERS), 16)


def delete_and_create(logs: LogManager) -> None:
    logs.delete(ORDERS)
    written(logs)


def configure_away_and_back(logs: LogManager) -> None:
    logs.configure("orders", DELETE)
    logs.configure("orders", COMPACT)


def configure_a_change(logs: LogManager) -> None:
    logs.configure("orders", replace(COMPACT, segment_index_bytes=240))


def append_and_roll(logs: LogManager) -> None:
    write(logs.get(ORDERS), 3).roll()
    logs.truncate_to(ORDERS, 1 << 40)  # nothing is cut


def delete_records(logs: LogManager) -> None:
    logs.get(ORDERS).delete_records(7)
    logs.run_due()


def read_everything(logs: LogManager) -> None:
    assert latest(logs.get(ORDERS)) == EXPECTED


def run_all_tasks(logs: LogManager) -> None:
    clock_of(logs).advance(10 * 86_400_000)  # producers expire, checkpoints are written
    logs.run_due()


DISTURBANCES: list[Callable[[LogManager], None]] = [
    pause_and_resume,
    pause_twice,
    truncate,
    truncate_the_active_segment,
    truncate_fully,
    delete_and_create,
    configure_away_and_back,
    configure_a_change,
    append_and_roll,
    delete_records,
    read_everything,
    run_all_tasks,
]


def count_operations() -> int:
    with cleaning() as logs:
        written(logs)
        run_round(logs)
        return len(files_of(logs).worker_operations)


@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda each: each.__name__)
def test_whatever_happens_to_a_log_at_whatever_point_of_a_round(
    disturb: Callable[[LogManager], None],
) -> None:
    operations = count_operations()
    assert operations > 40, "maps, rewrites and finishes several groups"
    for number in range(operations):
        with cleaning() as logs:
            written(logs)
            stop = stopped(number, logs)
            disturb(logs)
            stop.release()
            assert cleaner_of(logs).wait(TIMEOUT_S), number

            log = logs.get(ORDERS)
            expected = latest(log)
            assert {key: expected[key] for key in EXPECTED} == expected
            assert logs.directories[0].is_online, (number, logs.directories[0].state)
            assert leftovers(logs) == [], number
            status = cleaner_of(logs).status()
            assert (status.states, status.uncleanable) == ({}, {}), number
            # And all is as if nothing had happened.
            run_round(logs)
            assert latest(log) == expected
            checkpoint = logs.directories[0].cleaner_offset(ORDERS)
            assert checkpoint == log.segments.active.base_offset, number
            below = [offset for offset in values(log) if offset < checkpoint]
            assert len(below) <= 4, "each key once, and the last record"
            check_log(log)
        assert files_of(logs).open_files() == 0, number


def test_a_log_that_is_deleted_at_any_point_of_a_round_is_gone() -> None:
    for number in range(count_operations()):
        with cleaning() as logs:
            written(logs)
            stop = stopped(number, logs)
            logs.delete(ORDERS)
            clock_of(logs).advance(60_000)
            logs.run_due()
            stop.release()
            assert cleaner_of(logs).wait(TIMEOUT_S)
            assert logs.directories[0].is_online, (number, logs.directories[0].state)
            assert [n for n in files_of(logs).tree("/") if "orders-0" in n] == [], number
            assert cleaner_of(logs).status().states == {}
            assert cleaner_of(logs).last_runs == {}


def test_a_policy_without_compact_stops_a_round_at_any_point_and_retention_follows() -> None:
    for number in range(0, count_operations(), 3):
        with cleaning() as logs:
            log = written(logs)
            stop = stopped(number, logs)
            swapped = len(log.segments)
            logs.configure("orders", replace(DELETE, retention_bytes=0))
            logs.delete_old_segments(logs.clock.now_ms())
            stop.release()
            assert cleaner_of(logs).wait(TIMEOUT_S)
            assert (log.size_bytes, len(log.segments)) == (0, 1), swapped
            assert logs.directories[0].is_online
            assert leftovers(logs) == []
            assert cleaner_of(logs).status().states == {}
            # Only a round that was all but over had noted how far it came.
            assert logs.directories[0].cleaner_offset(ORDERS) in (None, 12)
            check_log(log)


def test_a_shutdown_at_any_point_of_a_round_ends_and_loses_nothing() -> None:
    for number in range(count_operations()):
        files = WorkerFiles()
        with cleaning(files) as logs:
            log = written(logs)
            stop = stopped(number, logs)
            # The worker goes on only when the shutdown waits for it.
            threading.Timer(0.0, stop.release).start()
        assert files.open_files() == 0
        assert not [name for name in files.tree("/") if name.endswith((".cleaned", ".swap"))]
        assert log.is_closed
        with cleaning(files.clone()) as again:
            assert again.directories[0].is_online
            assert latest(again.get(ORDERS)) == EXPECTED
            assert again.get(ORDERS).recovery_report.scanned_bytes == 0, "a clean stop"


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_segment_that_waits_for_its_swap_is_not_taken_after_an_abort(is_deleted: bool) -> None:
    with cleaning() as logs:
        log = written(logs)
        before, arrived = list(log.segments), threading.Event()
        cleaner_of(logs).inbox.notify = arrived.set
        cleaner_of(logs).run(logs.clock.now_ms())
        assert arrived.wait(TIMEOUT_S)
        if is_deleted:
            logs.delete(ORDERS)
        else:
            cleaner_of(logs).abort_and_pause(ORDERS)
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert list(log.segments) == before, "the very same"
        assert logs.directories[0].is_online
        assert leftovers(logs) == []
        assert cleaner_of(logs).last_runs == {}


def test_what_was_known_of_a_log_is_not_told_of_another_of_its_name() -> None:
    with cleaning() as logs:
        written(logs)
        run_round(logs)
        logs.delete(ORDERS)
        logs.create(ORDERS)
        run_round(logs)
        assert cleaner_of(logs).status().last_runs == {}


def shrink(log: Log) -> None:
    log.truncate_to(log.log_end_offset - 1)


def shrink_and_grow_again(log: Log) -> None:
    end, bases = log.log_end_offset, list(log.segments.base_offsets)
    log.truncate_to(5)
    write(log, end - 5)
    assert log.segments.base_offsets == bases, "by their names, the same segments"


def lose_a_segment(log: Log) -> None:
    log.delete_segments([log.segments.first])


def break_down(log: Log) -> None:
    log.fail(DiskError("fsync", log.directory, errno.EIO, "no more"))


@pytest.mark.parametrize(
    "change", [shrink, shrink_and_grow_again, lose_a_segment, break_down, Log.close]
)
def test_a_log_that_has_changed_takes_no_segment_that_was_made_before(
    change: Callable[[Log], None],
) -> None:
    with cleaning() as logs:
        log = written(logs)
        plan = plan_round(log, plan_log(log, None, START_MS), now_ms=START_MS)
        round_ = CleaningRound(plan, Work(OffsetMap(1 << 20)))
        round_.build_map()
        group = round_.groups()[0]
        cleaned = round_.rewrite(group)
        change(log)
        before = files_of(logs).tree(log.directory)
        with pytest.raises(CleaningAbortedError):
            round_.swap(log, cleaned, group)
        assert files_of(logs).tree(log.directory) == before


def test_a_pause_lasts_until_everybody_has_resumed() -> None:
    with cleaning() as logs:
        written(logs)
        cleaner = cleaner_of(logs)
        stop = stopped(5, logs)
        cleaner.abort_and_pause(ORDERS)
        cleaner.abort_and_pause(ORDERS)
        stop.release()
        assert cleaner.wait(TIMEOUT_S)
        assert cleaner.states.state(ORDERS).phase is Phase.PAUSED
        for _ in range(2):
            run_round(logs)
            assert logs.directories[0].cleaner_offset(ORDERS) is None
            cleaner.resume(ORDERS)
        run_round(logs)
        assert logs.directories[0].cleaner_offset(ORDERS) is not None


def test_an_aborted_round_begins_again_by_itself() -> None:
    with cleaning() as logs:
        log = written(logs)
        stop = stopped(5, logs)
        cleaner_of(logs).abort(ORDERS)
        assert cleaner_of(logs).states.state(ORDERS).phase is Phase.ABORTED
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert logs.directories[0].cleaner_offset(ORDERS) == log.segments.active.base_offset


def test_a_truncation_that_cuts_nothing_does_not_stop_a_round() -> None:
    with cleaning() as logs:
        log = written(logs)
        stop = stopped(5, logs)
        assert not logs.truncate_to(ORDERS, log.log_end_offset)
        assert cleaner_of(logs).states.state(ORDERS).phase is Phase.IN_PROGRESS
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)


def test_what_is_swapped_in_goes_by_the_settings_that_the_log_has_by_then() -> None:
    with cleaning() as logs:
        log = written(logs)
        stop = stopped(5, logs)
        logs.configure("orders", replace(COMPACT, index_interval_bytes=1))
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        first = log.segments.first
        assert first._config.index_interval_bytes == 1


def test_readers_keep_what_they_were_given() -> None:
    with cleaning() as logs:
        log = written(logs)
        fetched = log.read(0, max_bytes=1 << 20, isolation=Isolation.LOG_END)
        assert fetched.records is not None
        before = fetched.records.read()
        run_round(logs)
        clock_of(logs).advance(60_000)
        logs.run_due()
        assert fetched.records.read() == before


# --- several at a time ---------------------------------------------------------------------------


def order_of_rounds(logs: LogManager) -> list[str]:
    """The partitions in the order in which rounds opened them first."""
    opened = [
        path.split("/")[2]
        for kind, path in files_of(logs).worker_operations
        if kind == "open" and path.count("/") == 3
    ]
    return list(dict.fromkeys(opened))


def test_the_filthiest_log_comes_first_over_all_directories() -> None:
    with cleaning(None, "/a", "/b") as logs:
        first, second, third = keys(3)
        written(logs, first, directory="/a")
        written(logs, second, directory="/b")
        run_round(logs)
        # Both have been cleaned; then one gets more than the other, and a third is all dirty.
        write(logs.get(first), 8)
        write(logs.get(second), 40)
        written(logs, third, directory="/a")
        files_of(logs).worker_operations.clear()
        run_round(logs)
        assert order_of_rounds(logs) == ["t-2", "t-1", "t-0"]


def test_one_thread_has_one_round_at_a_time_and_begins_the_next_by_itself() -> None:
    with cleaning() as logs:
        for key in keys(3):
            written(logs, key)
        stop = stopped(0, logs)
        assert len(cleaner_of(logs).states.all()) == 1
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert len(cleaner_of(logs).last_runs) == 3


class Barrier:
    """Workers wait at their first operation until so many are there."""

    def __init__(self, files: WorkerFiles, parties: int) -> None:
        self._barrier = threading.Barrier(parties, timeout=TIMEOUT_S)
        self._met: set[int] = set()
        files.on_worker = self._meet

    def _meet(self, _kind: str, _path: str) -> None:
        if threading.get_ident() not in self._met:
            self._met.add(threading.get_ident())
            self._barrier.wait()


def test_so_many_rounds_run_in_parallel_as_there_are_threads() -> None:
    with cleaning(log_cleaner_threads=3) as logs:
        for key in keys(3):
            written(logs, key)
        Barrier(files_of(logs), 3)  # breaks, and the rounds with it, if they take turns
        run_round(logs)
        assert len(cleaner_of(logs).last_runs) == 3
        assert cleaner_of(logs).status().uncleanable == {}
        for key in keys(3):
            assert latest(logs.get(key)) == EXPECTED


def test_a_log_under_way_is_not_begun_twice() -> None:
    before = set(threading.enumerate())
    with cleaning(log_cleaner_threads=4) as logs:
        written(logs)
        stop = stopped(3, logs)
        for _ in range(3):
            cleaner_of(logs).run(logs.clock.now_ms())
        assert list(cleaner_of(logs).states.all()) == [ORDERS]
        begun = set(threading.enumerate()) - before
        assert sum(t.name.startswith("kafka-log-cleaner") for t in begun) == 1
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
