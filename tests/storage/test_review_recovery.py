"""Rules of recovery, each held against the smallest damage that was seen to break it."""

from contextlib import suppress
from typing import Any

import pytest
from small_logs import (
    CONFIG,
    DIRECTORY,
    START_MS,
    batches_in,
    log_file,
    new_disk,
    opened,
    produced,
    readable,
    written,
)

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError, StratalogError
from stratalog.records import build_end_transaction_marker, read_headers
from stratalog.storage.reading import Isolation
from stratalog.testing import CrashMode, SimulatedFileSystem
from stratalog.testing.faults import PowerLoss

FIRST, SECOND, LAST = log_file(0), log_file(8), log_file(16)
COMPACTED = TopicConfig(
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    file_delete_delay_ms=0,
    cleanup_policy=("compact",),
)


def sizes(files: SimulatedFileSystem) -> dict[str, int]:
    tree = files.tree(DIRECTORY)
    return {name: len(data) for name, data in tree.items() if name.endswith(".log")}


def batch_position(files: SimulatedFileSystem, path: str, number: int) -> int:
    return read_headers(files.contents(path), check_crc=False)[number].position


def cut_at(files: SimulatedFileSystem, path: str, position: int) -> None:
    files.put(path, files.contents(path)[:position])


def first_offset_read(log: Any, offset: int) -> int:
    fetched = log.read(offset, max_bytes=1, isolation=Isolation.LOG_END)
    assert fetched.records is not None, f"nothing is served at {offset}, inside the log"
    headers = read_headers(fetched.records.read())
    assert headers, f"what is served at {offset} is no whole batch"
    header = headers[0]
    assert header.base_offset <= offset <= header.last_offset, f"{offset} was skipped: {header}"
    return header.base_offset


def test_a_flipped_offset_in_a_compacted_log_leaves_the_sound_batches_readable() -> None:
    files = written()
    intact = batches_in(files.contents(FIRST))
    files.flip(FIRST, batch_position(files, FIRST, 1) + 2, 0x01)
    log = opened(files, config=COMPACTED)
    found = readable_below(log, 20)
    assert [batch for batch in intact if batch in found] == [intact[0], *intact[2:]]
    assert log.is_damaged


def test_a_flipped_offset_in_the_first_batch_of_a_compacted_log_is_no_assertion() -> None:
    files = written()
    files.flip(FIRST, 2, 0x01)
    with suppress(StratalogError):
        opened(files, config=COMPACTED)


def test_reads_go_on_around_an_offset_that_no_segment_can_hold() -> None:
    files = written()
    files.flip(FIRST, batch_position(files, FIRST, 1) + 2, 0x01)
    log = opened(files)
    assert log.is_damaged
    assert first_offset_read(log, 0) == 0
    assert first_offset_read(log, 4) == 4


@pytest.mark.parametrize("recovery_point", [0, 16])
def test_what_a_clean_start_found_damaged_is_not_cut_by_the_next(recovery_point: int) -> None:
    files = written(clean=True)
    files.flip(LAST, len(files.contents(LAST)) - 1, 0x01)
    before = sizes(files)
    log = opened(files, clean=True, recovery_point=recovery_point)
    assert log.is_damaged
    log.abandon()
    again = opened(files, clean=False, recovery_point=20)
    assert sizes(files) == before, "flushed bytes were cut"
    assert again.is_damaged


def test_bytes_behind_the_last_flushed_batch_are_judged_alike_by_two_starts() -> None:
    files = written(clean=True)
    files.put(LAST, files.contents(LAST) + b"garbage")
    first = opened(files, clean=True, recovery_point=20)
    was_damaged, end_offset = first.is_damaged, first.log_end_offset
    first.abandon()
    again = opened(files, clean=True, recovery_point=20)
    assert (again.is_damaged, again.log_end_offset) == (was_damaged, end_offset)


def test_a_garbled_note_of_damage_does_not_allow_to_cut_what_was_flushed() -> None:
    files = written()
    files.flip(FIRST, 80, 0x01)
    opened(files).abandon()
    files.put(f"{DIRECTORY}/.stratalog/damage", b"{")
    files.flip(LAST, len(files.contents(LAST)) - 1, 0x01)
    before = sizes(files)
    opened(files, recovery_point=20)
    assert sizes(files) == before, "flushed bytes were cut"


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_lost_its_flushed_end_at_a_batch_boundary_is_damaged(clean: bool) -> None:
    files = written(clean=clean)
    cut_at(files, LAST, batch_position(files, LAST, 1))
    log = opened(files, clean=clean, recovery_point=20)
    assert log.is_damaged


@pytest.mark.parametrize(
    "left",
    [
        # Nothing tells it from a gap that compaction or a leader left.
        pytest.param(0, marks=pytest.mark.xfail(strict=True)),
        30,
    ],
)
def test_reading_the_end_of_a_closed_segment_that_was_cut_short_is_corrupt(left: int) -> None:
    files = written(clean=True)
    cut_at(files, FIRST, batch_position(files, FIRST, 3) + left)
    log = opened(files, clean=True, recovery_point=20)
    with pytest.raises(CorruptSegmentError):
        first_offset_read(log, 6)


def test_a_batch_whose_last_offset_was_lowered_does_not_hide_its_last_record() -> None:
    files = written(clean=True)
    files.flip(FIRST, batch_position(files, FIRST, 1) + 26, 0x01)  # lastOffsetDelta 1 -> 0
    log = opened(files, clean=True, recovery_point=20)
    with pytest.raises(CorruptSegmentError):
        first_offset_read(log, 3)


def test_garbled_epochs_and_a_damaged_closed_segment_do_not_keep_a_log_from_opening() -> None:
    files = written(clean=True)
    files.put(FIRST, files.contents(FIRST) + bytes(20))
    files.put(f"{DIRECTORY}/leader-epoch-checkpoint", b"garbled")
    log = opened(files, clean=True, recovery_point=20)
    assert first_offset_read(log, 0) == 0


def test_a_garbled_entry_in_the_middle_of_the_epochs_changes_no_answer() -> None:
    files = written()
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    content = files.contents(path)
    assert b"\n1 6\n" in content
    files.put(path, content.replace(b"\n1 6\n", b"\n1 7\n"))
    log = opened(files, recovery_point=20)
    assert log.epochs.epoch_for_offset(6) == 1


def test_a_garbled_first_offset_of_an_aborted_transaction_changes_no_answer() -> None:
    files = with_an_aborted_transaction()
    files.flip(log_file(0, ".txnindex"), 17, 0x01)  # firstOffset 0 -> 1
    again = opened(files, clean=True, recovery_point=3)
    assert [each.first_offset for each in again.segments.first.transaction_index] == [0]


def with_an_aborted_transaction() -> SimulatedFileSystem:
    files = new_disk()
    log = opened(files, config=CONFIG)
    fields: dict[str, int] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_follower(produced("a", at_ms=START_MS, transactional=True, **fields))
    marker = build_end_transaction_marker(
        commit=False,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=START_MS,
        base_offset=2,
    )
    log.append_as_follower(marker)
    log.roll()
    log.close()
    return files


def readable_below(log: Any, end_offset: int) -> list[bytes]:
    """``readable``, for a log whose end a damaged offset may have put out of reach."""
    if log.log_end_offset <= 1000:
        return readable(log)
    found: list[bytes] = []
    for offset in range(log.log_start_offset, end_offset):
        try:
            fetched = log.read(offset, max_bytes=1, isolation=Isolation.LOG_END)
        except CorruptSegmentError:
            continue
        if fetched.records is not None:
            found += [b for b in batches_in(fetched.records.read()) if b not in found]
    return found


@pytest.mark.parametrize("offset", [2, 4])
def test_a_flipped_size_in_a_flushed_batch_does_not_hide_what_follows(offset: int) -> None:
    files = written(clean=True)
    files.flip(FIRST, batch_position(files, FIRST, 1) + 8, 0x40)
    log = opened(files, clean=True, recovery_point=20)
    with pytest.raises(CorruptSegmentError):
        first_offset_read(log, offset)


def test_producers_are_not_replayed_short_by_a_flipped_size() -> None:
    files = new_disk()
    log = opened(files)
    for number in range(3):
        fields = {"producer_id": 7 + number, "producer_epoch": 0, "base_sequence": 0}
        log.append_as_leader(produced(f"{number}", **fields))
    log.flush()
    log.abandon()
    files.flip(FIRST, batch_position(files, FIRST, 1) + 8, 0x40)
    again = opened(files, clean=True, recovery_point=6)
    assert again.is_damaged or again.producers.get(9) is not None


def test_a_flipped_size_in_the_last_flushed_batch_does_not_cut_its_end() -> None:
    files = written(1)
    size_bytes = len(files.contents(FIRST))
    files.flip(FIRST, 11, 0x02)
    assert read_headers(files.contents(FIRST), check_crc=False)[0].size_bytes < size_bytes
    log = opened(files, recovery_point=2)
    assert len(files.contents(FIRST)) == size_bytes, "flushed bytes were cut"
    assert log.is_damaged


@pytest.mark.parametrize(
    "content", [b'{"damage": {}, "recovery_point": 1e400}', b"[" * 100_000], ids=["huge", "deep"]
)
def test_a_garbled_note_of_damage_never_keeps_a_log_from_opening(content: bytes) -> None:
    files = written()
    files.put(f"{DIRECTORY}/.stratalog/damage", content)
    assert len(readable(opened(files, clean=True, recovery_point=20))) == 10


def test_a_log_whose_damaged_segment_was_deleted_is_damaged_no_more() -> None:
    files = written()
    files.flip(FIRST, 80, 0x01)
    log = opened(files)
    assert log.is_damaged
    log.raise_log_start_offset(8)
    log.delete_segments([log.segments.first])
    assert not log.is_damaged


def test_known_damage_is_known_after_a_power_loss() -> None:
    files = written(4)
    assert not files.exists(f"{DIRECTORY}/.stratalog")
    files.flip(FIRST, 80, 0x01)
    files.sync_file_system("/")
    log = opened(files)
    assert log.is_damaged
    again = opened(files.after_crash(CrashMode.LOSE_UNSYNCED), recovery_point=8)
    assert again.is_damaged


def test_a_crash_while_the_transaction_index_is_rebuilt_forgets_no_abort() -> None:
    files = with_an_aborted_transaction()
    path = log_file(0, ".txnindex")
    files.put(path, files.contents(path)[:-1])
    for number in range(1, 40):
        disk = files.clone()
        disk.crash_at(number)
        with suppress(PowerLoss):
            opened(disk, clean=True, recovery_point=3)
        again = opened(disk.after_crash(CrashMode.KEEP_ALL), recovery_point=3)
        found = [each.first_offset for each in again.segments.first.transaction_index]
        assert found == [0], f"after a crash at operation {number}"
