"""Partitions that cannot be cleaned and disks that are full or fail: each is told, tried again, and
stops nobody else."""

import errno
import threading
from dataclasses import asdict, replace

import pytest
from cleaners import (
    COMPACT,
    ORDERS,
    PAYMENTS,
    TIMEOUT_S,
    Stop,
    WorkerFiles,
    check_log,
    cleaner_of,
    cleaning,
    clock_of,
    files_of,
    garble,
    latest,
    leftovers,
    marked,
    run_round,
    write,
    written,
)
from managers import manager as new_manager
from small_logs import START_MS

from stratalog.errors import DiskError, TooManyOpenFilesError
from stratalog.storage.cleaning import cleaner as cleaner_module
from stratalog.storage.cleaning.states import RETRY_MS_MAX
from stratalog.storage.layout import TopicPartition
from stratalog.testing import Operation

DAY_MS = 86_400_000


# --- one that cannot be cleaned ------------------------------------------------------------------


def test_a_corrupt_batch_is_told_with_its_place_and_stops_no_other_log() -> None:
    with cleaning() as logs:
        log, other = written(logs), written(logs, PAYMENTS)
        garble(logs, log)
        before = [files_of(logs).contents(segment.path) for segment in log.segments]
        run_round(logs)
        path = list(log.segments)[1].path
        assert path in marked(logs).reason
        assert list(cleaner_of(logs).last_runs) == [PAYMENTS]
        assert latest(other)
        assert logs.directories[0].is_online
        assert leftovers(logs) == []
        assert [files_of(logs).contents(segment.path) for segment in log.segments] == before
        assert log.own.cleaner_notes()["uncleanable"] == asdict(marked(logs))
        assert (
            cleaner_of(logs).status().uncleanable_bytes
            == log.size_bytes - log.segments.active.size_bytes
        )


def test_a_last_batch_whose_offsets_pass_the_next_segment_is_no_end_to_clean_up_to() -> None:
    with cleaning() as logs:
        log = written(logs)
        closed = list(log.segments)[-2]
        last = closed.last_header()
        assert last is not None
        # The base offset lies outside the CRC, and no batch follows in this file.
        closed.file().write_at(last.position, [(last.base_offset + 1_000).to_bytes(8, "big")])
        run_round(logs)
        assert "pass the next segment's base offset" in marked(logs).reason
        assert leftovers(logs) == []
        assert logs.directories[0].cleaner_offset(ORDERS) in (None, 0)


def test_it_is_tried_again_after_a_wait_that_doubles_up_to_an_hour() -> None:
    with cleaning(log_cleaner_backoff_ms=15_000) as logs:
        garble(logs, written(logs))
        waits = []
        for attempt in range(1, 12):
            run_round(logs)
            found = marked(logs)
            assert (found.attempts, found.since_ms) == (attempt, START_MS)
            waits.append(found.retry_at_ms - clock_of(logs).now_ms())
            clock_of(logs).set(found.retry_at_ms - 1)
            run_round(logs)
            assert marked(logs) == found, "not before its time"
            clock_of(logs).advance(1)
        assert waits == [min(15_000 << n, RETRY_MS_MAX) for n in range(11)]


def test_once_the_cause_is_gone_the_next_try_clears_the_mark() -> None:
    with cleaning() as logs:
        log = written(logs)
        mend = garble(logs, log)
        run_round(logs)
        mend()
        clock_of(logs).set(marked(logs).retry_at_ms)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}
        assert "uncleanable" not in log.own.cleaner_notes()
        assert log.own.cleaner_notes()["last_run"]["end_offset"] > 0
        check_log(log)


def test_a_changed_config_has_it_tried_at_once() -> None:
    with cleaning() as logs:
        mend = garble(logs, written(logs))
        run_round(logs)
        mend()
        run_round(logs)
        assert ORDERS in cleaner_of(logs).status().uncleanable
        logs.configure("orders", COMPACT)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}


def test_a_truncation_that_cuts_the_damage_away_clears_the_mark() -> None:
    with cleaning() as logs:
        log = written(logs)
        garble(logs, log, 2)
        run_round(logs)
        logs.truncate_to(ORDERS, list(log.segments)[1].base_offset)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}


def test_a_mark_goes_when_there_is_nothing_left_to_clean() -> None:
    with cleaning() as logs:
        log = written(logs)
        garble(logs, log, 2)
        run_round(logs)
        logs.truncate_fully_and_start_at(ORDERS, 100)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}
        assert log.own.cleaner_notes() == {}


@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_mark_goes_with_its_log(is_made_again: bool) -> None:
    with cleaning() as logs:
        garble(logs, written(logs))
        run_round(logs)
        logs.delete(ORDERS)
        assert cleaner_of(logs).status().uncleanable == {}
        if is_made_again:
            log = written(logs)
            run_round(logs)
            assert cleaner_of(logs).status().uncleanable == {}
            assert ORDERS in cleaner_of(logs).last_runs
            assert "uncleanable" not in log.own.cleaner_notes()


def test_a_log_that_is_not_compacted_any_more_is_not_marked() -> None:
    with cleaning() as logs:
        garble(logs, written(logs))
        run_round(logs)
        logs.configure("orders", replace(COMPACT, cleanup_policy=("delete",)))
        assert cleaner_of(logs).status().uncleanable == {}


def test_trouble_of_a_log_that_was_deleted_is_not_that_of_its_successor() -> None:
    with cleaning() as logs:
        garble(logs, written(logs), 0)
        stop = Stop(files_of(logs), 1)
        cleaner_of(logs).run(START_MS)
        assert stop.wait(cleaner_of(logs))
        logs.delete(ORDERS)
        log = written(logs)
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert cleaner_of(logs).status().uncleanable == {}
        assert "uncleanable" not in log.own.cleaner_notes()


def test_a_damaged_log_is_left_alone_and_says_so() -> None:
    with cleaning() as logs:
        log = written(logs)
        log.is_damaged = True
        run_round(logs)
        assert "stratalog log repair" in marked(logs).reason
        log.is_damaged = False
        clock_of(logs).set(marked(logs).retry_at_ms)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}


def test_a_new_process_tries_again_and_what_was_noted_is_over() -> None:
    files = WorkerFiles()
    with cleaning(files) as logs:
        mend = garble(logs, written(logs))
        run_round(logs)
        mend()
    with cleaning(files) as logs:
        log = logs.get(ORDERS)
        log.update_high_watermark(log.log_end_offset)
        assert "uncleanable" in log.own.cleaner_notes()
        run_round(logs)
        assert "uncleanable" not in log.own.cleaner_notes()


# --- unexpected things -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plan_log", "plan_round", "CleaningRound", "OffsetMap"])
@pytest.mark.parametrize("is_threaded", [True, False])
def test_whatever_planning_raises_is_the_partitions_own(
    name: str, is_threaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(cleaner_module, name)
    failures = [MemoryError("no memory")]

    def broken(*arguments: object, **options: object) -> object:
        if failures:
            raise failures.pop()
        return original(*arguments, **options)

    monkeypatch.setattr(cleaner_module, name, broken)
    logs = new_manager(WorkerFiles(), topic=COMPACT)
    logs._is_threaded = is_threaded
    logs.start()
    written(logs)
    written(logs, PAYMENTS)
    run_round(logs)
    status = cleaner_of(logs).status()
    assert [each.reason for each in status.uncleanable.values()] == ["MemoryError: no memory"]
    assert status.states == {}
    assert len(status.last_runs) == 1
    clock_of(logs).advance(RETRY_MS_MAX)
    run_round(logs)
    assert len(cleaner_of(logs).last_runs) == 2
    logs.shutdown()


def test_a_thread_that_cannot_be_started_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cleaning() as logs:
        for number in range(50):
            written(logs, TopicPartition("t", number), rows=6)

        def refuse(_thread: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(cleaner_module.threading.Thread, "start", refuse)
            cleaner_of(logs).run(START_MS)
        status = cleaner_of(logs).status()
        assert status.states == {}
        reasons = [each.reason for each in status.uncleanable.values()]
        assert all("can't start new thread" in each for each in reasons)
        clock_of(logs).advance(RETRY_MS_MAX)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}


def test_an_unexpected_exception_in_a_round_marks_the_partition() -> None:
    with cleaning() as logs:
        written(logs)
        written(logs, PAYMENTS)

        def explode(kind: str, path: str) -> None:
            if "orders-0" in path and kind == "create":
                raise ZeroDivisionError("by nothing")

        files_of(logs).on_worker = explode
        run_round(logs)
        assert marked(logs).reason == "ZeroDivisionError: by nothing"
        assert PAYMENTS in cleaner_of(logs).last_runs
        assert leftovers(logs) == []


# --- disks that are full, or fail ----------------------------------------------------------------


def fail_worker(files: WorkerFiles, number: int, error: int) -> None:
    """The worker's operation ``number`` fails; only those that a fault can be given to count.
    Not a sync of names: one that failed is another matter, whatever the reason it gave."""
    seen = 0

    def hits(operation: Operation) -> bool:
        nonlocal seen
        is_workers = bool(files.worker_operations) and files.worker_operations[-1] == (
            operation.kind,
            operation.path,
        )
        is_workers &= operation.kind != "sync_directory"
        seen += is_workers
        return is_workers and seen == number + 1

    files.fail(hits, error)


def count_worker_operations() -> int:
    with cleaning() as logs:
        written(logs)
        run_round(logs)
        kinds = [kind for kind, _ in files_of(logs).worker_operations]
        return sum(kind not in ("open", "look", "sync_directory") for kind in kinds)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_a_full_disk_at_any_operation_takes_nothing_offline(error: int) -> None:
    for number in range(count_worker_operations()):
        with cleaning() as logs:
            log = written(logs)
            fail_worker(files_of(logs), number, error)
            run_round(logs)
            files_of(logs).heal()
            assert logs.directories[0].is_online, number
            assert (log.failure, leftovers(logs)) == (None, []), number
            write(log, 1)
            # Removing what was left of an earlier attempt may fail as well as anything.
            found = marked(logs)
            clock_of(logs).set(found.retry_at_ms)
            run_round(logs)
            assert cleaner_of(logs).status().uncleanable == {}
            assert latest(log)
            check_log(log)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_names_that_cannot_be_made_durable_are_never_believed_again(error: int) -> None:
    with cleaning() as logs:
        log = written(logs)
        files_of(logs).fail(lambda o: o.kind == "sync_directory" and o.path == log.directory, error)
        run_round(logs)
        assert isinstance(log.failure, DiskError)
        assert not logs.directories[0].is_online
        assert logs.directories[0].cleaner_offset(ORDERS) in (None, 0)
        assert latest(log)


def test_a_directory_that_could_not_be_opened_to_be_synced_is_tried_again() -> None:
    with cleaning() as logs:
        log = written(logs)

        def refuse(kind: str, path: str) -> None:
            if (kind, path) == ("look", log.directory):
                raise TooManyOpenFilesError("open", path, errno.EMFILE, "too many open files")

        files_of(logs).on_worker = refuse
        run_round(logs)
        assert logs.directories[0].is_online
        assert "too many open files" in marked(logs).reason
        files_of(logs).on_worker = lambda _kind, _path: None
        clock_of(logs).set(marked(logs).retry_at_ms)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}
        check_log(log)


def test_a_swap_that_finds_no_space_changes_nothing() -> None:
    for number in range(4):
        with cleaning() as logs:
            log = written(logs)
            before = list(log.segments)
            seen = 0

            def is_offer(operation: Operation, number: int = number) -> bool:
                nonlocal seen
                is_one = operation.path.endswith(".cleaned") and operation.kind == "rename"
                is_one |= operation.kind == "sync_directory" and seen == 3
                seen += is_one
                return is_one and seen == number + 1

            files_of(logs).fail(is_offer, errno.ENOSPC)
            run_round(logs)
            files_of(logs).heal()
            if number < 3:
                assert (log.failure, leftovers(logs)) == (None, []), number
                assert list(log.segments) == before
                assert "No space" in marked(logs).reason
                clock_of(logs).set(marked(logs).retry_at_ms)
                run_round(logs)
                check_log(log)
            else:
                assert log.failure is not None, "a sync that failed is never believed again"
            assert latest(log)


def test_a_swap_that_is_taken_back_has_at_no_time_an_index_without_its_log() -> None:
    """A start in between could take such an index for that of the segment that stays."""
    with cleaning() as logs:
        log = written(logs)
        moments: list[list[str]] = []

        def note(_operation: Operation) -> None:
            moments.append([name for name in leftovers(logs) if name.endswith(".swap")])

        def is_third(operation: Operation) -> bool:
            is_one = operation.path.endswith(".timeindex.cleaned")
            return is_one and operation.kind == "rename"

        files_of(logs).observer = note
        fault = files_of(logs).fail(is_third, errno.ENOSPC)
        run_round(logs)
        assert (fault.times, log.failure, leftovers(logs)) == (0, None, [])
        kinds = [sorted(name.split(".")[-2] for name in moment) for moment in moments]
        assert ["index", "log"] in kinds, "so far it had come"
        assert all("log" in each for each in kinds if each)


def test_too_little_room_is_noticed_before_anything_is_written() -> None:
    with cleaning() as logs:
        log = written(logs)
        files_of(logs).capacity_bytes = 0
        run_round(logs)
        assert logs.directories[0].is_online
        assert "0 bytes are free" in marked(logs).reason
        assert not [o for o in files_of(logs).worker_operations if o[0] == "create"]
        files_of(logs).capacity_bytes = 1 << 30
        clock_of(logs).set(marked(logs).retry_at_ms)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}
        assert latest(log)


def test_a_full_disk_does_not_keep_retention_from_making_room() -> None:
    topic = replace(COMPACT, cleanup_policy=("compact", "delete"), retention_ms=DAY_MS)
    with cleaning(topic=topic) as logs:
        log = written(logs)
        files_of(logs).capacity_bytes = 0
        run_round(logs)
        clock_of(logs).advance(2 * DAY_MS)
        marked_before = marked(logs)
        cleaner_of(logs).uncleanable._marked[ORDERS] = replace(marked_before, retry_at_ms=1 << 62)
        run_round(logs)
        assert log.log_start_offset > 0


@pytest.mark.parametrize("kind", ["read", "create", "write", "sync"])
def test_a_disk_that_fails_under_a_round_takes_its_directory_offline_and_no_other(
    kind: str,
) -> None:
    with cleaning(None, "/a", "/b") as logs:
        log = written(logs, ORDERS, directory="/a")
        other = written(logs, PAYMENTS, directory="/b")

        def hits(operation: Operation) -> bool:
            is_workers = files_of(logs).worker_operations[-1:] == [(operation.kind, operation.path)]
            return is_workers and operation.kind == kind and "/a/" in operation.path

        files_of(logs).fail(hits, errno.EIO)
        run_round(logs)
        assert [directory.is_online for directory in logs.directories] == [False, True]
        assert log.failure is not None
        assert list(cleaner_of(logs).last_runs) == [PAYMENTS]
        assert cleaner_of(logs).status().uncleanable == {}
        write(other, 20)
        run_round(logs)
        assert cleaner_of(logs).last_runs[PAYMENTS].first_dirty_offset > 0


def test_a_directory_that_goes_offline_stops_the_rounds_in_it() -> None:
    with cleaning() as logs:
        log = written(logs)
        stop = Stop(files_of(logs), 9)
        cleaner_of(logs).run(START_MS)
        assert stop.wait(cleaner_of(logs))
        logs.directories[0].fail("somebody else met it")
        operations = len(files_of(logs).worker_operations)
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert cleaner_of(logs).last_runs == {}
        assert not [o for o in files_of(logs).worker_operations[operations:] if o[0] == "create"]
        assert not [o for o in files_of(logs).trace if o.kind == "rename" and "swap" in o.path]
        assert cleaner_of(logs).status().uncleanable == {}
        assert log.failure is None


def test_notes_that_cannot_be_read_or_written_are_passed_over() -> None:
    with cleaning() as logs:
        log = written(logs)
        garble(logs, log)
        run_round(logs)
        files_of(logs).fail(lambda o: o.path.endswith(".stratalog/cleaner"), errno.EIO, times=99)
        clock_of(logs).set(marked(logs).retry_at_ms)
        run_round(logs)
        assert marked(logs).attempts == 2
        assert logs.directories[0].is_online


# --- no memory, no threads ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "name", "error"),
    [
        (threading.Thread, "start", RuntimeError("can't start new thread")),
        (cleaner_module, "OffsetMap", MemoryError()),
    ],
)
def test_a_round_that_finds_no_thread_or_no_memory_is_made_later(
    where: object, name: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **_named: object) -> None:
        raise error

    with cleaning(topic=replace(COMPACT, cleanup_policy=("compact", "delete"))) as logs:
        written(logs)
        with monkeypatch.context() as patched:
            patched.setattr(where, name, refuse)
            run_round(logs)
        assert logs.directories[0].is_online
        assert marked(logs).attempts == 1
        assert ORDERS in cleaner_of(logs)._starved, "retention goes on"
        clock_of(logs).set(marked(logs).retry_at_ms)
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}
        assert ORDERS in cleaner_of(logs).last_runs
