"""``cleaner-offset-checkpoint``: up to where logs were cleaned, and all that moves it."""

import errno
from dataclasses import replace

import pytest
from cleaners import (
    COMPACT,
    ORDERS,
    PAYMENTS,
    TIMEOUT_S,
    Stop,
    WorkerFiles,
    cleaner_of,
    cleaning,
    files_of,
    latest,
    run_round,
    stopped,
    write,
    written,
)
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import DiskError
from stratalog.storage.checkpoint import read_offsets, write_offsets
from stratalog.storage.layout import CLEANER_CHECKPOINT, TopicPartition
from stratalog.storage.manager import LogManager

PATH = f"/data/{CLEANER_CHECKPOINT}"


def stored(logs: LogManager) -> dict[TopicPartition, int]:
    return read_offsets(logs.files, PATH)


def cleaned_disk(rows: int = 16) -> WorkerFiles:
    """With a log that was cleaned up to its active segment, closed."""
    files = WorkerFiles()
    with cleaning(files) as logs:
        written(logs, rows=rows)
        run_round(logs)
    return files


def test_a_round_notes_where_it_ended_and_the_next_process_goes_on_there() -> None:
    files = WorkerFiles()
    with cleaning(files) as logs:
        log = written(logs)
        run_round(logs)
        end = log.segments.active.base_offset
        assert stored(logs) == {ORDERS: end}
        assert files.is_synced(PATH)
    with cleaning(files) as logs:
        assert logs.directories[0].cleaner_offset(ORDERS) == end
        write(logs.get(ORDERS), 20)
        run_round(logs)
        assert cleaner_of(logs).last_runs[ORDERS].first_dirty_offset == end


def test_each_directory_has_a_file_of_its_own() -> None:
    with cleaning(None, "/a", "/b") as logs:
        written(logs, ORDERS, directory="/a")
        written(logs, PAYMENTS, directory="/b")
        run_round(logs)
        found = [read_offsets(logs.files, f"{d}/{CLEANER_CHECKPOINT}") for d in ("/a", "/b")]
        assert [list(each) for each in found] == [[ORDERS], [PAYMENTS]]


@pytest.mark.parametrize("wrong", [-7, 3, 1 << 40])
def test_an_offset_outside_the_log_is_set_back_to_its_start(wrong: int) -> None:
    files = cleaned_disk()
    with cleaning(files) as logs:
        logs.get(ORDERS).update_high_watermark(16)
        logs.get(ORDERS).delete_records(5)
    write_offsets(files, PATH, {ORDERS: wrong})
    with cleaning(files) as logs:
        config = replace(COMPACT, min_cleanable_dirty_ratio=1.0)
        logs.configure("orders", config)
        cleaner_of(logs).run(logs.clock.now_ms())
        # Nothing was cleaned, and the file is in order again.
        assert cleaner_of(logs).last_runs == {}
        assert stored(logs) == {ORDERS: 5}
        logs.configure("orders", COMPACT)
        logs.get(ORDERS).update_high_watermark(16)
        run_round(logs)
        assert cleaner_of(logs).last_runs[ORDERS].first_dirty_offset == 5


@pytest.mark.parametrize("content", [b"", b"garbage", b"0\n2\norders 0 8\n", b"7\n0\n", b"\xff"])
def test_without_a_readable_file_everything_is_cleaned_again(content: bytes) -> None:
    files = cleaned_disk()
    files.put(PATH, content)
    with cleaning(files) as logs:
        log = logs.get(ORDERS)
        log.update_high_watermark(log.log_end_offset)
        run_round(logs)
        assert cleaner_of(logs).last_runs[ORDERS].first_dirty_offset == 0
        assert stored(logs) == {ORDERS: log.segments.active.base_offset}


def test_only_partitions_that_are_here_are_kept() -> None:
    files = cleaned_disk()
    gone = TopicPartition("gone", 1)
    write_offsets(files, PATH, {gone: 5, **read_offsets(files, PATH)})
    with cleaning(files) as logs:
        write(logs.get(ORDERS), 20)
        run_round(logs)
        assert list(stored(logs)) == [ORDERS]


def test_an_entry_of_a_log_that_could_not_be_opened_is_kept() -> None:
    files = cleaned_disk()
    with cleaning(files) as logs:
        written(logs, PAYMENTS)
        logs.directories[0].offline_logs[TopicPartition("broken", 0)] = "a person may mend it"
        write_offsets(files, PATH, {TopicPartition("broken", 0): 5, **stored(logs)})
        logs.directories[0]._cleaner_offsets = None
        run_round(logs)
        assert set(stored(logs)) == {ORDERS, PAYMENTS, TopicPartition("broken", 0)}


@given(st.integers(0, 20))
def test_a_truncation_lowers_it_to_the_active_segment_at_most(offset: int) -> None:
    with cleaning() as logs:
        log = written(logs)
        run_round(logs)
        before = stored(logs)[ORDERS]
        logs.truncate_to(ORDERS, offset)
        expected = min(before, log.segments.active.base_offset)
        assert stored(logs) == {ORDERS: expected}
        assert logs.directories[0].cleaner_offset(ORDERS) == expected <= log.log_end_offset


@pytest.mark.parametrize("offset", [0, 7, 100])
def test_a_full_truncation_lowers_it_too(offset: int) -> None:
    with cleaning() as logs:
        log = written(logs)
        run_round(logs)
        before = stored(logs)[ORDERS]
        logs.truncate_fully_and_start_at(ORDERS, offset)
        assert stored(logs) == {ORDERS: min(before, offset)}
        write(log, 16)
        run_round(logs)
        assert stored(logs) == {ORDERS: log.segments.active.base_offset}


def test_a_log_that_was_never_cleaned_gets_no_entry_by_a_truncation() -> None:
    with cleaning() as logs:
        written(logs)
        logs.truncate_to(ORDERS, 5)
        assert stored(logs) == {}


def test_it_goes_with_its_log_and_does_not_count_for_another_of_the_same_name() -> None:
    with cleaning() as logs:
        written(logs)
        written(logs, PAYMENTS)
        run_round(logs)
        logs.delete(ORDERS)
        assert list(stored(logs)) == [PAYMENTS]
        written(logs)
        assert logs.directories[0].cleaner_offset(ORDERS) is None
        run_round(logs)
        assert cleaner_of(logs).last_runs[ORDERS].first_dirty_offset == 0


def test_an_entry_that_could_not_be_removed_does_not_count_either() -> None:
    files = WorkerFiles()
    with cleaning(files) as logs:
        written(logs)
        run_round(logs)
        files.fail(lambda each: CLEANER_CHECKPOINT in each.path, errno.ENOSPC)
        logs.delete(ORDERS)
        files.heal()
        assert list(stored(logs)) == [ORDERS]
        written(logs)
        assert logs.directories[0].cleaner_offset(ORDERS) is None


def test_an_entry_left_by_a_crash_does_not_count_for_a_new_log() -> None:
    files = WorkerFiles()
    with cleaning(files):
        pass
    write_offsets(files, PATH, {ORDERS: 9})
    with cleaning(files) as logs:
        written(logs)
        assert stored(logs) == {}
        run_round(logs)
        assert cleaner_of(logs).last_runs[ORDERS].first_dirty_offset == 0


def test_a_log_is_not_made_where_the_stale_entry_of_its_name_cannot_be_removed() -> None:
    files = WorkerFiles()
    with cleaning(files, "/a", "/b"):
        pass
    write_offsets(files, f"/a/{CLEANER_CHECKPOINT}", {ORDERS: 9})
    with cleaning(files, "/a", "/b") as logs:
        files.fail(lambda each: "/a/cleaner-offset" in each.path, errno.ENOSPC, times=9)
        log = logs.create(ORDERS)
        assert log.directory == "/b/orders-0"
        assert [ORDERS in directory.logs for directory in logs.directories] == [False, True]
        assert not files.exists("/a/orders-0")


def test_an_aborted_round_moves_nothing() -> None:
    with cleaning() as logs:
        log = written(logs)
        run_round(logs)
        before = stored(logs)
        write(log, 20)
        stop = Stop(files_of(logs), 5)
        cleaner_of(logs).run(logs.clock.now_ms())
        assert stop.wait(cleaner_of(logs))
        cleaner_of(logs).abort_and_pause(ORDERS)
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert stored(logs) == before


def test_a_round_that_fails_keeps_the_first_dirty_offset() -> None:
    with cleaning() as logs:
        log = written(logs)
        run_round(logs)
        before = stored(logs)
        write(log, 20)
        target = log.segments.above(before[ORDERS])[0]
        files_of(logs).flip(target.path, 70, 1)
        run_round(logs)
        assert ORDERS in cleaner_of(logs).status().uncleanable
        assert stored(logs) == before


def test_a_checkpoint_that_cannot_be_written_is_told_and_written_later() -> None:
    with cleaning() as logs:
        log = written(logs)
        files_of(logs).fail(lambda each: CLEANER_CHECKPOINT in each.path, errno.ENOSPC)
        run_round(logs)
        assert logs.directories[0].is_online
        marked = cleaner_of(logs).status().uncleanable[ORDERS]
        assert CLEANER_CHECKPOINT in marked.reason
        logs.clock.set(marked.retry_at_ms)  # type: ignore[attr-defined]
        run_round(logs)
        assert cleaner_of(logs).status().uncleanable == {}
        assert stored(logs) == {ORDERS: log.segments.active.base_offset}


def test_a_disk_that_fails_under_the_checkpoint_takes_its_directory_offline() -> None:
    with cleaning(None, "/a", "/b") as logs:
        written(logs, ORDERS, directory="/a")
        other = written(logs, PAYMENTS, directory="/b")
        files_of(logs).fail(lambda each: f"/a/{CLEANER_CHECKPOINT}" in each.path, errno.EIO)
        run_round(logs)
        assert [directory.is_online for directory in logs.directories] == [False, True]
        assert PAYMENTS in cleaner_of(logs).last_runs
        assert latest(other)


def test_a_file_that_cannot_be_read_takes_its_directory_offline_and_no_other() -> None:
    files = WorkerFiles()
    with cleaning(files, "/a", "/b") as logs:
        written(logs, ORDERS, directory="/a")
        written(logs, PAYMENTS, directory="/b")
        run_round(logs)
    with cleaning(files, "/a", "/b") as logs:
        for log in logs:
            write(log, 20)
        files.fail(lambda o: o.kind == "read" and f"/a/{CLEANER_CHECKPOINT}" in o.path, errno.EIO)
        run_round(logs)
        assert [directory.is_online for directory in logs.directories] == [False, True]
        assert list(cleaner_of(logs).last_runs) == [PAYMENTS]
        assert isinstance(logs.get(ORDERS).failure, DiskError)


# --- a worker writes it, and something else changes it -------------------------------------------


def writing_operations() -> list[int]:
    """The numbers of a round's operations that have to do with the file."""
    with cleaning() as logs:
        written(logs)
        run_round(logs)
        operations = files_of(logs).worker_operations
    found = [n for n, (_, path) in enumerate(operations) if CLEANER_CHECKPOINT in path]
    assert len(found) > 3, "made, written, synced, renamed"
    return found


@pytest.mark.parametrize("offset", [0, 6])
def test_a_truncation_while_it_is_written_is_what_it_says_in_the_end(offset: int) -> None:
    for number in writing_operations():
        with cleaning() as logs:
            log = written(logs)
            stop = stopped(number, logs)
            cleaner_of(logs).abort_and_pause(ORDERS)
            logs.truncate_to(ORDERS, offset)  # and does not wait for the worker
            stop.release()
            assert cleaner_of(logs).wait(TIMEOUT_S)
            active = log.segments.active.base_offset
            assert stored(logs) == {ORDERS: active}, number
            assert logs.directories[0].cleaner_offset(ORDERS) == active


def test_a_deletion_while_it_is_written_is_not_undone() -> None:
    for number in writing_operations():
        with cleaning() as logs:
            written(logs)
            stop = stopped(number, logs)
            logs.delete(ORDERS)
            stop.release()
            assert cleaner_of(logs).wait(TIMEOUT_S)
            assert stored(logs) == {}, number
            assert leftover_checkpoints(logs) == []


def leftover_checkpoints(logs: LogManager) -> list[str]:
    return [name for name in files_of(logs).tree("/") if name.endswith(".tmp")]


def test_two_rounds_that_end_at_once_are_both_in_it() -> None:
    for number in writing_operations():
        with cleaning() as logs:
            written(logs)
            stop = stopped(number, logs)
            other = written(logs, PAYMENTS)
            logs.directories[0].note_cleaner_offset(PAYMENTS, 7)
            stop.release()
            assert cleaner_of(logs).wait(TIMEOUT_S)
            found = stored(logs)
            assert found == {key: logs.directories[0].cleaner_offset(key) for key in found}
            assert set(found) == {ORDERS, PAYMENTS}
            assert found[PAYMENTS] in (7, other.segments.active.base_offset)
            assert leftover_checkpoints(logs) == []
