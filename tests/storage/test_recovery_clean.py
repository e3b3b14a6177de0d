"""Opening a directory that is new or was closed in order."""

import pytest
from small_logs import (
    CONFIG,
    DIRECTORY,
    log_file,
    new_disk,
    opened,
    produced,
    readable,
    report,
    stored,
    written,
)

from stratalog.errors import CorruptSegmentError, StorageError
from stratalog.storage.checkpoint import EpochEntry, read_epochs
from stratalog.storage.ours import OwnFiles

# --- a new directory ------------------------------------------------------------------------------


def test_a_new_replica_gets_an_empty_epoch_file_and_then_its_first_log_file() -> None:
    files = new_disk()
    start = len(files.trace)
    opened(files)
    created = [each.path for each in files.trace[start:] if each.kind == "create"]
    assert created[:2] == [f"{DIRECTORY}/leader-epoch-checkpoint", log_file(0)]
    assert files.contents(f"{DIRECTORY}/leader-epoch-checkpoint") == b""


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_without_segments_begins_at_the_log_start_checkpoint(clean: bool) -> None:
    log = opened(new_disk(), clean=clean, log_start_offset=17)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (17, 17, 17)
    assert log.segments.base_offsets == [17]
    assert opened(new_disk()).segments.base_offsets == [0]


def test_an_empty_log_is_opened_again_and_again_without_a_change() -> None:
    files = new_disk()
    opened(files).close()
    before = files.tree()
    for clean in (True, False, True):
        opened(files, clean=clean).close()
        assert files.tree() == before


# --- a clean start --------------------------------------------------------------------------------


def test_a_clean_restart_finds_the_log_as_it_was_closed() -> None:
    files = written(clean=True)
    batches = stored(files)
    log = opened(files, clean=True)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 20, 20)
    assert readable(log) == batches
    assert [entry.start_offset for entry in log.epochs.entries] == [0, 6, 12, 18]
    producer = log.producers.get(7)
    assert producer is not None
    assert (producer.last_sequence, producer.last_data_offset) == (19, 19)


def test_epochs_begin_at_the_first_segment_when_a_kill_has_kept_them_from_being_written() -> None:
    files = written(clean=True)
    for suffix in (".log", ".index", ".timeindex"):
        files.unlink(log_file(0, suffix), missing_ok=True)
    log = opened(files, clean=False)
    first = log.segments.first.base_offset
    log.close()

    assert first > 0
    assert log.epochs.entries[0].start_offset == first
    assert read_epochs(files, f"{DIRECTORY}/leader-epoch-checkpoint")[0].start_offset == first


def test_a_clean_start_and_stop_change_no_byte() -> None:
    files = written(clean=True)
    before = files.tree()
    opened(files, clean=True).close()
    assert files.tree() == before


def test_a_clean_start_scans_nothing_and_finds_the_end_from_the_last_index_entry() -> None:
    files = written(clean=True)
    read: list[tuple[str, object]] = []
    files.fail(lambda each: bool(each.kind == "read" and read.append((each.path, each.detail[0]))))
    log = opened(files, clean=True)
    assert report(log).scanned_segments == 0
    assert log_file(8) not in [path for path, _ in read]
    assert {position for path, position in read if path == log_file(16)} == {99}


def test_a_clean_start_does_not_verify_what_was_flushed() -> None:
    files = written(clean=True)
    files.flip(log_file(0), 90, 1)
    log = opened(files, clean=True)
    assert not log.is_damaged
    assert log.log_end_offset == 20


def test_a_log_that_is_opened_and_not_appended_to_leaves_its_indexes_as_they_are() -> None:
    files = written(clean=True)
    opened(files, clean=True).abandon()
    sizes = {base: len(files.contents(log_file(base, ".index"))) for base in (0, 8, 16)}
    assert sizes == {0: 24, 8: 24, 16: 8}


def test_the_active_segments_indexes_get_room_with_their_next_entry_and_the_others_do_not() -> None:
    files = written(clean=True)
    log = opened(files, clean=True)
    for text in ("one", "two"):
        log.append_as_leader(produced(text, base_offset=0))
    log.flush()
    sizes = {base: len(files.contents(log_file(base, ".index"))) for base in (0, 8, 16)}
    assert sizes == {0: 24, 8: 24, 16: CONFIG.segment_index_bytes}


def test_an_index_file_without_its_log_is_removed() -> None:
    files = written(clean=True)
    for suffix in (".index", ".timeindex", ".txnindex"):
        files.put(log_file(5, suffix), b"orphan")
    log = opened(files, clean=True)
    assert log.segments.base_offsets == [0, 8, 16]
    assert not [name for name in files.tree(DIRECTORY) if "05." in name]


def test_files_that_are_none_of_kafkas_stay_where_they_are() -> None:
    files = written(clean=True)
    files.put(f"{DIRECTORY}/notes.txt", b"mine")
    files.make_directory(f"{DIRECTORY}/sub")
    files.put(f"{DIRECTORY}/sub/{'0' * 20}.log", b"not a segment here")
    log = opened(files, clean=True)
    assert log.segments.base_offsets == [0, 8, 16]
    assert files.contents(f"{DIRECTORY}/notes.txt") == b"mine"
    assert files.contents(f"{DIRECTORY}/sub/{'0' * 20}.log") == b"not a segment here"


@pytest.mark.parametrize("clean", [True, False])
def test_what_an_interrupted_swap_left_is_tidied_before_anything_is_read(clean: bool) -> None:
    files = written(clean=clean)
    swapped = produced("compacted", count=8, leader_epoch=0)
    files.put(log_file(0, ".log.swap"), swapped)
    files.put(log_file(8, ".log.cleaned"), b"half a segment")
    files.put(log_file(3, ".log.deleted"), b"long gone")
    log = opened(files, clean=clean)
    assert readable(log) == [swapped, *stored(written())[4:]]
    states = (".swap", ".cleaned", ".deleted")
    assert not [name for name in files.tree(DIRECTORY) if name.endswith(states)]


@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_segment_inside_the_offsets_of_the_last_was_given_up_and_is_removed(
    clean: bool,
) -> None:
    files = written(clean=clean)
    files.put(log_file(18), b"")
    files.put(log_file(18, ".index"), b"")
    log = opened(files, clean=clean)
    assert (log.segments.base_offsets, log.log_end_offset) == ([0, 8, 16], 20)
    assert readable(log) == stored(written())
    assert not files.exists(log_file(18))
    assert not files.exists(log_file(18, ".index"))


# --- the log start --------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_the_log_starts_at_its_checkpoint_or_its_first_segment_whichever_is_higher(
    clean: bool,
) -> None:
    assert opened(written(clean=clean), clean=clean, log_start_offset=11).log_start_offset == 11
    files = written(clean=clean)
    for suffix in (".log", ".index", ".timeindex"):
        files.unlink(log_file(0, suffix))
    assert opened(files, clean=clean, log_start_offset=3).log_start_offset == 8


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_beyond_the_log_end_is_refused_and_nothing_is_deleted(clean: bool) -> None:
    files = written(clean=clean)
    before = files.tree()
    with pytest.raises(StorageError, match="log-start-offset-checkpoint"):
        opened(files, clean=clean, log_start_offset=21)
    after = files.tree()
    for name in before:
        if name.endswith(".log"):
            assert after[name] == before[name]
    assert set(before) <= set(after)
    assert opened(files, clean=clean, log_start_offset=20).log_end_offset == 20


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_whose_checkpoint_was_lost_is_taken_from_its_copy(clean: bool) -> None:
    files = written(clean=clean)
    log = opened(files, clean=clean, log_start_offset=11)
    log.mirror_log_start()
    log.close() if clean else log.abandon()
    assert opened(files.clone(), clean=clean).log_start_offset == 11
    assert opened(files.clone(), clean=clean, log_start_offset=13).log_start_offset == 13


def test_a_copy_of_the_log_start_that_lies_behind_the_log_end_is_not_believed() -> None:
    files = written()
    OwnFiles(files, DIRECTORY, exists=False).note_log_start(21)
    assert opened(files).log_start_offset == 0


def test_epochs_are_cut_at_the_log_start_and_answer_as_before_for_what_is_left() -> None:
    log = opened(written(clean=True), clean=True, log_start_offset=7)
    assert log.epochs.entries == (EpochEntry(1, 7), EpochEntry(2, 12), EpochEntry(3, 18))
    files = written(clean=True)
    for suffix in (".log", ".index", ".timeindex"):
        files.unlink(log_file(0, suffix))
    left = opened(files, clean=True).epochs
    assert [left.epoch_for_offset(offset) for offset in range(8, 20)] == [1] * 4 + [2] * 6 + [3] * 2


def test_epochs_that_start_at_or_behind_the_log_end_are_dropped() -> None:
    files = written(clean=True)
    files.put(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n5\n0 0\n1 6\n2 12\n3 18\n9 20\n")
    log = opened(files, clean=True)
    assert log.epochs.entries[-1] == EpochEntry(3, 18)
    log.append_as_leader(produced("new", base_offset=0), leader_epoch=3)
    assert b"9 20" not in files.contents(f"{DIRECTORY}/leader-epoch-checkpoint")


def test_opening_a_log_that_is_as_its_files_say_changes_none_of_them() -> None:
    files = written(clean=True)
    number = files.operations
    opened(files, clean=True).abandon()
    assert [each for each in files.trace[number:] if each.kind not in ("open", "close")] == []


def test_the_recovery_point_is_the_log_end_after_a_clean_stop_whatever_its_checkpoint() -> None:
    assert opened(written(clean=True), clean=True, recovery_point=3).recovery_point == 20


@pytest.mark.parametrize(("checkpoint", "expected"), [(0, 0), (9, 9), (20, 20)])
def test_the_recovery_point_is_its_checkpoint_after_a_crash(checkpoint: int, expected: int) -> None:
    assert opened(written(), recovery_point=checkpoint).recovery_point == expected


def test_a_recovery_point_above_the_log_end_says_that_flushed_batches_are_gone() -> None:
    log = opened(written(), recovery_point=50)
    assert log.is_damaged
    assert log.log_end_offset == 50, "what was acknowledged is not given out again"
    with pytest.raises(CorruptSegmentError):
        log.read(30, max_bytes=100)


def test_a_log_goes_on_where_it_ended() -> None:
    for clean in (True, False):
        files = written(clean=clean)
        log = opened(files, clean=clean)
        assert log.append_as_leader(produced("next"), leader_epoch=3).first_offset == 20
        log.close()
        assert len(readable(opened(files, clean=True))) == 11


def test_a_directory_with_the_name_of_a_segment_is_none() -> None:
    files = written(clean=True)
    files.make_directory(log_file(100))
    log = opened(files, clean=True, recovery_point=20)
    assert log.segments.base_offsets == [0, 8, 16]
    assert log.log_end_offset == 20
