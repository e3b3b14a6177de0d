"""Rules of storage that a review found broken: each test names one, and fails until it holds."""

import errno
import resource
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from log_harness import (
    DIRECTORY,
    START_MS,
    append_transactional,
    batch,
    clock_of,
    content,
    disk_of,
    end_transaction,
    fetch,
    new_context,
    new_log,
    produced,
    reopened,
    sized_batch,
)
from managers import ORDERS, fill, started

from open_files import open_files_in
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import DiskFullError, StorageError
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition, segment_file
from stratalog.storage.log import Log
from stratalog.storage.lookup import list_offset
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation
from stratalog.testing import CrashMode, SimulatedFileSystem


def on_a_real_disk(path: Path, **config: Any) -> Log:
    return new_log(context=new_context(OsFileSystem()), directory=f"{path}/t-0", **config)


# --- a flush that runs on another thread ------------------------------------------------------


def test_a_planned_flush_can_run_after_the_log_was_truncated(tmp_path: Path) -> None:
    log = on_a_real_disk(tmp_path, internal_segment_bytes=300, index_interval_bytes=1)
    for _ in range(9):
        log.append_as_leader(batch(2))
    task = log.plan_flush()
    assert task is not None
    log.truncate_to(2)
    task.run()
    log.complete_flush(task)
    assert log.recovery_point <= log.log_end_offset


def test_a_planned_flush_can_run_after_the_log_was_abandoned(tmp_path: Path) -> None:
    log = on_a_real_disk(tmp_path, index_interval_bytes=1)
    append_transactional(log, 7, 0)
    end_transaction(log, 7, commit=False)
    task = log.plan_flush()
    assert task is not None
    log.abandon()
    task.run()


# --- a full disk in the middle of a roll ------------------------------------------------------


@pytest.mark.parametrize("clean", [False, True])
def test_a_roll_that_met_a_full_disk_does_not_hide_what_is_appended_later(clean: bool) -> None:
    log = new_log(internal_segment_bytes=300)
    log.append_as_leader(sized_batch(120))
    log.append_as_leader(sized_batch(90))
    disk_of(log).fail(lambda each: each.path.endswith("2.index"), errno.ENOSPC)
    with pytest.raises(DiskFullError):
        log.append_as_leader(sized_batch(120))
    assert log.append_as_leader(sized_batch(68)).first_offset == 2
    log.flush()
    again = reopened(log, clean=clean)
    assert again.log_end_offset == 3
    assert [each.base_offset for each in fetch(again, 2)] == [2]


# --- names ------------------------------------------------------------------------------------


def test_a_flush_makes_the_name_of_a_new_segment_durable_wherever_the_log_starts() -> None:
    log = new_log(internal_segment_bytes=300)
    for _ in range(4):
        log.append_as_leader(sized_batch(120))
    assert log.segments.base_offsets == [0, 2]
    log.update_high_watermark(4)
    log.delete_records(3)
    log.flush()
    after_crash = disk_of(log).after_crash(CrashMode.LOSE_UNSYNCED)
    assert after_crash.exists(segment_file(DIRECTORY, 2, ".log"))


# --- the log start, cut back ------------------------------------------------------------------


@pytest.mark.parametrize("appended", [0, 3])
def test_a_crash_after_a_truncation_below_the_log_start_keeps_the_lower_start(
    appended: int,
) -> None:
    files = SimulatedFileSystem()
    manager = started(files)
    log = fill(manager.create(ORDERS), 2)
    log.delete_records(3)
    manager.flush_appended()
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_recovery_points()
    log.truncate_to(2)
    for _ in range(appended):
        log.append_as_leader(batch(1))
    manager.flush_appended()
    after_crash = started(files.clone())
    assert after_crash.directories[0].offline_logs == {}
    assert after_crash.get(ORDERS).log_start_offset == 2
    assert after_crash.get(ORDERS).log_end_offset == 2 + appended


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_cut_at_its_start_inside_a_batch_can_be_opened_again(clean: bool) -> None:
    log = new_log()
    log.append_as_leader(batch(2))
    log.append_as_leader(batch(4))
    log.update_high_watermark(6)
    log.delete_records(4)
    log.truncate_to(4)
    log.flush()
    again = reopened(log, clean=clean)
    assert (again.log_start_offset, again.log_end_offset) == (4, 4)


# --- around damage ----------------------------------------------------------------------------


def damaged_in_the_middle(**watermarks: int) -> Log:
    """Ten batches of two records; the one with offsets 6 and 7 has a wrong CRC."""
    log = new_log(index_interval_bytes=1)
    for _ in range(10):
        log.append_as_leader(batch(2))
    log.update_high_watermark(watermarks.get("high_watermark", 20))
    if "log_start_offset" in watermarks:
        log.delete_records(watermarks["log_start_offset"])
    log.flush()
    log.abandon()
    data = bytearray(content(log, 0, ".log"))
    data[3 * len(data) // 10 + 70] ^= 1
    disk_of(log).put(segment_file(DIRECTORY, 0, ".log"), bytes(data))
    return reopened(log, clean=False, is_recovery_point_known=False)


@pytest.mark.parametrize("log_start_offset", [6, 7])
def test_a_log_that_starts_inside_damage_is_readable_behind_it(log_start_offset: int) -> None:
    log = damaged_in_the_middle(log_start_offset=log_start_offset)
    assert log.is_damaged
    assert fetch(log, 8)[0].base_offset == 8


@pytest.mark.parametrize("high_watermark", [6, 7])
def test_what_lies_before_damage_is_readable_while_the_high_watermark_is_inside_it(
    high_watermark: int,
) -> None:
    log = damaged_in_the_middle(high_watermark=high_watermark)
    found = fetch(log, 0, isolation=Isolation.HIGH_WATERMARK)
    assert [each.base_offset for each in found] == [0, 2, 4]


def test_a_truncation_into_damage_is_done_or_refused_as_a_whole() -> None:
    log = damaged_in_the_middle()
    log.truncate_to(7)
    assert log.log_end_offset == 7
    assert [each.base_offset for each in fetch(log, 0)] == [0, 2, 4]


@pytest.mark.parametrize("batches_behind", [0, 1])
def test_recovery_keeps_a_batch_with_a_right_crc_whatever_is_in_it(batches_behind: int) -> None:
    log = new_log()
    log.append_as_follower(batch(2))
    odd = bytearray(batch(2, base_offset=2))
    odd[65] ^= 0x55
    odd[17:21] = struct.pack(">I", crc32c(bytes(odd[21:])))
    log.append_as_follower(bytes(odd))
    for number in range(batches_behind):
        log.append_as_follower(batch(1, base_offset=4 + number))
    log.flush()
    again = reopened(log, clean=False, recovery_point=0)
    assert again.log_end_offset == 4 + batches_behind
    assert not again.is_damaged


# --- descriptors and threads ------------------------------------------------------------------


@pytest.fixture
def thousand_descriptors() -> Iterator[None]:
    """Beside those that other tests of this process have left open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(highest + 1024, limits[1]), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("thousand_descriptors")
def test_many_segments_stay_within_the_usual_limit_of_descriptors(tmp_path: Path) -> None:
    log = on_a_real_disk(
        tmp_path, internal_segment_bytes=300, index_interval_bytes=1, flush_messages=1
    )
    for number in range(260):
        append_transactional(log, 7, 2 * number)
        append_transactional(log, 7, 2 * number + 1)
        end_transaction(log, 7, commit=False)
    log.update_high_watermark(log.log_end_offset)
    for segment in log.segments:
        log.read(segment.base_offset, max_bytes=10, isolation=Isolation.TXN_COMMITTED)
        segment.find_by_timestamp(START_MS, start_offset=0)
    list_offset(log, START_MS)
    assert 0 < open_files_in(tmp_path) < 900


@pytest.fixture
def restless_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless_threads")
def test_threads_that_open_logs_do_not_close_each_others_files(tmp_path: Path) -> None:
    topic = TopicConfig(
        internal_segment_bytes=300,
        segment_index_bytes=96,
        index_interval_bytes=1,
        message_timestamp_before_max_ms=2**62,
    )
    broker = BrokerConfig(
        log_dirs=(str(tmp_path),),
        num_recovery_threads_per_data_dir=8,
        log_flush_on_ack=False,
        log_dir_reserve_bytes=0,
        transaction_partition_verification_enable=False,
    )

    def start() -> LogManager:
        manager = LogManager(broker, topic_config=lambda _topic: topic)
        manager._handles.capacity = 2
        manager.start()
        return manager

    manager = start()
    for number in range(20):
        log = manager.create(TopicPartition("t", number))
        for sequence in range(12):
            log.append_as_leader(produced(7, sequence, transactional=True))
    manager.shutdown()
    for _ in range(5):
        (tmp_path / ".kafka_cleanshutdown").unlink()
        (tmp_path / "recovery-point-offset-checkpoint").unlink()
        manager = start()
        assert [log.log_end_offset for log in manager] == [12] * 20
        manager.shutdown()


def test_a_segment_whose_file_has_vanished_is_not_read_as_empty(tmp_path: Path) -> None:
    log = on_a_real_disk(tmp_path, internal_segment_bytes=300)
    for _ in range(6):
        log.append_as_leader(sized_batch(120))
    log.segments.first.release()
    gone = Path(log.segments.first.path)
    gone.unlink()
    with pytest.raises(StorageError):
        fetch(log, 0)
    assert not gone.exists()


# --- small things -----------------------------------------------------------------------------


def test_a_segment_that_truncation_emptied_is_young_again() -> None:
    log = new_log(segment_ms=1000)
    log.append_as_leader(batch(1, timestamp_ms=-1))
    clock_of(log).advance(2000)
    log.truncate_to(0)
    log.append_as_leader(batch(1, timestamp_ms=-1))
    log.append_as_leader(batch(1, timestamp_ms=-1))
    assert log.segments.base_offsets == [0]
