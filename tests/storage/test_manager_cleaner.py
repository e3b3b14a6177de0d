"""A log manager with its cleaner: who is cleaned, whose retention is checked, and when; and a real
disk with everybody at work."""

import errno
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

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
    marked,
    run_round,
    values,
    write,
    written,
)
from managers import manager as new_manager
from small_logs import START_MS

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

DAY_MS = 86_400_000
TASK = "kafka-log-cleaner"


# --- who is cleaned, and whose retention is checked ----------------------------------------------


def by_topic(
    topics: dict[str, TopicConfig | None], clock: ManualClock | None = None, **settings: object
) -> LogManager:
    clock = clock or ManualClock(START_MS)
    logs = LogManager(
        BrokerConfig(
            **{  # type: ignore[arg-type]
                "log_dirs": ("/data",),
                "num_recovery_threads_per_data_dir": 1,
                "log_flush_on_ack": False,
                "log_dir_reserve_bytes": 0,
                "log_cleaner_dedupe_buffer_size": 4 << 20,
                **settings,
            }
        ),
        files=WorkerFiles(now_ms=clock.now_ms),
        clock=clock,
        topic_config=topics.get,
    )
    logs.start()
    return logs


def test_a_log_whose_configs_are_unknown_is_never_touched() -> None:
    logs = by_topic({"payments": COMPACT}, log_cleanup_policy=("compact",))
    held = write(logs.create(ORDERS))
    held.roll()
    known = written(logs, PAYMENTS)
    run_round(logs)
    assert held.is_held
    assert held.config.compact
    assert len(values(held)) == 16
    assert list(cleaner_of(logs).last_runs) == [PAYMENTS]
    assert latest(known)
    logs.configure("orders", COMPACT)
    run_round(logs)
    assert ORDERS in cleaner_of(logs).last_runs
    logs.shutdown()


def test_without_the_cleaner_nothing_is_cleaned_and_no_compacted_log_is_checked() -> None:
    logs = by_topic(
        {"orders": replace(COMPACT, cleanup_policy=("compact", "delete"), retention_ms=1)},
        log_cleaner_enable=False,
    )
    log = written(logs)
    log.delete_records(8)
    assert logs.cleaner is None
    assert TASK not in [task.name for task in logs.schedule.tasks]
    logs.clock.advance(DAY_MS)  # type: ignore[attr-defined]
    logs.run_due()
    assert log.segments.first.base_offset == 0
    assert len(values(log)) == 8
    # What the cleaner is told of elsewhere goes without it, too.
    logs.truncate_to(ORDERS, 12)
    logs.truncate_fully_and_start_at(ORDERS, 0)
    logs.configure("orders", COMPACT)
    logs.delete(ORDERS)
    logs.shutdown()


@pytest.mark.parametrize(
    ("policy", "start_offset"),
    [(("compact",), 8), (("compact", "delete"), 16), (("delete",), 0), ((), 0)],
)
def test_a_turn_checks_the_retention_of_compacted_logs(
    policy: tuple[str, ...], start_offset: int
) -> None:
    topic = replace(
        COMPACT, cleanup_policy=policy, retention_ms=DAY_MS, min_cleanable_dirty_ratio=1.0
    )
    with cleaning(topic=topic) as logs:
        log = written(logs)
        if start_offset:
            log.delete_records(8)
        clock_of(logs).advance(2 * DAY_MS)
        cleaner_of(logs).run(logs.clock.now_ms())
        if policy:
            assert log.log_start_offset == start_offset
        assert (log.segments.first.base_offset > 0) == (start_offset > 0)


def both() -> TopicConfig:
    return replace(COMPACT, cleanup_policy=("compact", "delete"), retention_ms=DAY_MS)


def test_retention_waits_for_a_round_and_for_a_pause() -> None:
    with cleaning(topic=both()) as logs:
        log = written(logs)
        stop = Stop(files_of(logs), 5)
        cleaner_of(logs).run(START_MS)
        assert stop.wait(cleaner_of(logs))
        clock_of(logs).advance(2 * DAY_MS)
        cleaner_of(logs).run(logs.clock.now_ms())
        assert log.log_start_offset == 0
        stop.release()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        cleaner_of(logs).abort_and_pause(ORDERS)
        cleaner_of(logs).run(logs.clock.now_ms())
        assert log.log_start_offset == 0
        cleaner_of(logs).resume(ORDERS)
        cleaner_of(logs).run(logs.clock.now_ms())
        assert log.log_start_offset == 16
        check_log(log)


def test_a_log_that_cannot_be_cleaned_is_not_checked_either() -> None:
    with cleaning(topic=both()) as logs:
        log, other = written(logs), written(logs, PAYMENTS)
        garble(logs, log)
        run_round(logs)
        clock_of(logs).advance(2 * DAY_MS)
        cleaner_of(logs).uncleanable._marked[ORDERS] = replace(marked(logs), retry_at_ms=1 << 62)
        run_round(logs)
        assert (log.log_start_offset, other.log_start_offset) == (0, 16)


def test_retention_that_fails_on_one_log_stops_no_other() -> None:
    with cleaning(topic=replace(both(), min_cleanable_dirty_ratio=1.0)) as logs:
        log, other = written(logs), written(logs, PAYMENTS)
        files_of(logs).fail(
            lambda o: o.kind == "rename" and "orders-0" in o.path, errno.ENOSPC, times=9
        )
        clock_of(logs).advance(2 * DAY_MS)
        cleaner_of(logs).run(logs.clock.now_ms())
        assert ORDERS in logs.retention_failures
        assert other.log_start_offset == 16
        assert logs.directories[0].is_online
        files_of(logs).heal()
        cleaner_of(logs).run(logs.clock.now_ms())
        assert log.log_start_offset == 16


# --- by the clock --------------------------------------------------------------------------------


def test_the_cleaner_takes_its_turn_every_backoff() -> None:
    with cleaning(log_cleaner_backoff_ms=15_000) as logs:
        log = written(logs)
        assert TASK in logs.run_due()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        end = log.segments.active.base_offset
        assert logs.directories[0].cleaner_offset(ORDERS) == end
        write(log, 20)
        clock_of(logs).advance(14_999)
        assert TASK not in logs.run_due()
        clock_of(logs).advance(1)
        assert TASK in logs.run_due()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert logs.directories[0].cleaner_offset(ORDERS) == log.segments.active.base_offset > end


def test_run_due_does_what_workers_wait_for_even_when_nothing_is_due() -> None:
    with cleaning() as logs:
        written(logs)
        told = threading.Event()
        cleaner_of(logs).inbox.notify = told.set
        logs.run_due()
        while cleaner_of(logs).states.all():
            assert told.wait(TIMEOUT_S), "a worker says when it needs the owner"
            told.clear()
            assert TASK not in logs.run_due()
        assert ORDERS in cleaner_of(logs).last_runs


def test_records_younger_than_the_lag_wait_until_they_are_older() -> None:
    with cleaning(topic=replace(COMPACT, min_compaction_lag_ms=3_600_000)) as logs:
        written(logs)
        logs.run_due()
        assert cleaner_of(logs).status().states == {}
        clock_of(logs).advance(3_600_000)
        logs.run_due()
        assert cleaner_of(logs).wait(TIMEOUT_S)
        assert ORDERS in cleaner_of(logs).last_runs


def test_a_log_below_its_ratio_is_cleaned_when_its_oldest_record_is_overdue() -> None:
    topic = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=3_600_000)
    with cleaning(topic=topic) as logs:
        written(logs)
        clock_of(logs).advance(3_600_000)
        run_round(logs)
        assert cleaner_of(logs).last_runs == {}
        clock_of(logs).advance(1)
        run_round(logs)
        assert ORDERS in cleaner_of(logs).last_runs


# --- on a real disk, with everybody at work ------------------------------------------------------


def test_appends_reads_rolls_and_deletes_go_on_while_several_logs_are_cleaned(
    tmp_path: Path,
) -> None:
    logs = LogManager(
        BrokerConfig(
            log_dirs=(str(tmp_path / "a"), str(tmp_path / "b")),
            log_flush_on_ack=False,
            log_dir_reserve_bytes=0,
            log_cleaner_threads=3,
            log_cleaner_dedupe_buffer_size=8 << 20,
            log_cleaner_io_buffer_size=1 << 12,
        ),
        clock=ManualClock(START_MS),
        topic_config=lambda _topic: replace(
            COMPACT, internal_segment_bytes=4_000, segment_index_bytes=400
        ),
    )
    logs.start()
    keys = [TopicPartition("t", number) for number in range(5)]
    for key in keys:
        written(logs, key, rows=200)
    cleaner = cleaner_of(logs)
    for turn in range(24):
        cleaner.run(START_MS)
        for key in keys:
            log = write(logs.get(key), 20)
            expected = {
                b"key-%d" % (offset % 3): b"value of %d" % offset
                for offset in range(log.log_start_offset, log.log_end_offset)
            }
            assert latest(log) == expected
        if turn % 8 == 3:
            logs.truncate_to(keys[0], logs.get(keys[0]).log_end_offset // 2)
        if turn % 8 == 5:
            logs.delete(keys[1])
            written(logs, keys[1], rows=100)
        if turn % 8 == 7:
            logs.get(keys[2]).delete_records(logs.get(keys[2]).log_end_offset // 2)
        logs.delete_due(START_MS + DAY_MS)
    assert cleaner.wait(TIMEOUT_S)
    cleaner.run(START_MS)
    assert cleaner.wait(TIMEOUT_S)
    assert cleaner.status().uncleanable == {}
    assert all(directory.is_online for directory in logs.directories)
    for key in keys:
        log = logs.get(key)
        assert sum(offset < log.segments.active.base_offset for offset in values(log)) <= 4
        check_log(log)
    logs.shutdown()
    left = [path.name for path in tmp_path.rglob("*") if path.suffix in (".cleaned", ".swap")]
    assert left == []


LEAVING = """
import sys, stratalog
from stratalog.records import Record

logs = stratalog.open_directory(
    sys.argv[1], create=True, config={"log.cleaner.dedupe.buffer.size": "4194304"}
)
settings = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"
}
orders = logs.create("orders", config=settings)
for _ in range(8):
    orders.append([Record(b"key", bytes(400_000), (), 1)])
# One round is begun; nobody comes back for what its worker asks for.
logs._manager.cleaner.run(2)
"""


def test_an_owner_that_leaves_without_a_word_does_not_keep_its_process_from_ending(
    tmp_path: Path,
) -> None:
    left = subprocess.run(
        [sys.executable, "-c", LEAVING, str(tmp_path)], timeout=TIMEOUT_S, check=False
    )
    assert left.returncode == 0


def test_a_disk_that_loses_power_in_a_round_is_no_trouble_for_the_next_start() -> None:
    files = WorkerFiles()
    logs = new_manager(files, topic=COMPACT)
    logs._is_threaded = True
    logs.start()
    written(logs)
    stop = Stop(files, 12)
    cleaner_of(logs).run(START_MS)
    assert stop.wait(cleaner_of(logs))
    survivor: SimulatedFileSystem = files.after_crash("keep_all")
    stop.release()
    logs.shutdown()
    again = new_manager(survivor, topic=COMPACT)
    again.start()
    assert latest(again.get(ORDERS))
    assert not [name for name in survivor.tree("/") if name.endswith(".cleaned")]
    again.shutdown()
