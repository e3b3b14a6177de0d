"""What an interrupted write leaves at the end, and what may be cut."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import (
    CONFIG,
    DIRECTORY,
    log_file,
    opened,
    produced,
    readable,
    report,
    stored,
    written,
)

from stratalog.config import TopicConfig
from stratalog.errors import SegmentOffsetOverflowError
from stratalog.storage.check import check
from stratalog.testing import SimulatedFileSystem

BATCH_BYTES = 99
ACTIVE = log_file(16)


def with_tail(tail: bytes, *, batches: int = 10) -> SimulatedFileSystem:
    """A log whose last segment goes on with bytes that nobody flushed."""
    files = written(batches)
    last = [name for name in sorted(files.tree(DIRECTORY)) if name.endswith(".log")][-1]
    files.put(f"{DIRECTORY}/{last}", files.contents(f"{DIRECTORY}/{last}") + tail)
    return files


def check_cut(files: SimulatedFileSystem, *, recovery_point: int = 20) -> None:
    """The tail goes, all that was flushed stays, and the log goes on."""
    batches = stored(written())
    log = opened(files, recovery_point=recovery_point)
    assert not log.is_damaged
    assert log.log_end_offset == 20
    assert files.contents(ACTIVE) == batches[8] + batches[9]
    assert readable(log) == batches
    log.append_as_leader(produced("after"), leader_epoch=5)
    assert check(log) == []
    log.close()
    assert len(readable(opened(files, clean=True))) == 11


def test_a_batch_torn_at_any_byte_is_cut_off() -> None:
    torn = produced("never flushed", base_offset=20, leader_epoch=4)
    for cut in range(1, len(torn)):
        check_cut(with_tail(torn[:cut]))


def test_a_batch_whose_bytes_did_not_all_arrive_is_cut_off() -> None:
    torn = produced("never flushed", base_offset=20, leader_epoch=4)
    for cut in range(0, len(torn), 7):
        check_cut(with_tail(torn[:cut] + bytes(len(torn) - cut)))


@pytest.mark.parametrize("size", [1, 11, 12, 17, 18, 60, 61, 62, 5000])
def test_a_tail_of_zeros_is_cut_off(size: int) -> None:
    check_cut(with_tail(bytes(size)))


@given(st.binary(min_size=1, max_size=300))
def test_a_tail_of_whatever_bytes_is_cut_off(tail: bytes) -> None:
    check_cut(with_tail(tail))


# The CRC covers neither the base offset nor the leader epoch.
CHECKED = st.integers(8, BATCH_BYTES - 1).filter(lambda position: position not in range(12, 16))


@given(CHECKED, st.integers(1, 255))
def test_a_changed_byte_in_the_last_batch_cuts_it_if_it_was_not_flushed(
    position: int, mask: int
) -> None:
    files = written()
    files.flip(ACTIVE, BATCH_BYTES + position, mask)
    log = opened(files, recovery_point=18)
    assert not log.is_damaged
    assert log.log_end_offset == 18
    assert readable(log) == stored(written())[:9]


@pytest.mark.parametrize("recovery_point", [None, 20])
def test_a_sound_last_batch_whose_offset_went_backwards_is_neither_served_nor_cut(
    recovery_point: int | None,
) -> None:
    for base_offset in (-(2**63), -1, 0, 16, 17):
        files = written()
        changed = base_offset.to_bytes(8, "big", signed=True)
        whole = files.contents(ACTIVE)
        files.put(ACTIVE, whole[:99] + changed + whole[107:])
        before = files.contents(ACTIVE)
        log = opened(files, recovery_point=recovery_point)
        assert log.is_damaged
        assert readable(log) == stored(written())[:9]
        assert files.contents(ACTIVE) == before


@pytest.mark.parametrize("recovery_point", [None, 20])
def test_a_batch_with_an_offset_too_far_from_its_base_is_not_cut_away(
    recovery_point: int | None,
) -> None:
    files = written()
    files.flip(ACTIVE, BATCH_BYTES, 1)
    before = stored(files)
    with suppress(SegmentOffsetOverflowError):
        opened(files, recovery_point=recovery_point)
    assert stored(files) == before


def test_a_whole_batch_that_nobody_flushed_is_kept() -> None:
    files = with_tail(produced("whole", base_offset=20, leader_epoch=4))
    log = opened(files, recovery_point=20)
    assert log.log_end_offset == 22
    assert report(log).truncated_bytes == 0
    assert log.epochs.latest_epoch == 4


def test_a_stale_batch_behind_the_last_one_is_neither_served_nor_cut() -> None:
    stale = stored(written())[3]
    files = with_tail(stale)
    log = opened(files)
    assert log.is_damaged
    assert readable(log) == stored(written())
    assert files.contents(ACTIVE).endswith(stale)


def test_of_two_batches_that_contradict_each_other_the_odd_one_is_damaged() -> None:
    files = written()
    whole = files.contents(ACTIVE)
    files.put(ACTIVE, (10**6).to_bytes(8, "big") + whole[8:])
    log = opened(files)
    assert [(d.start_position, d.end_offset) for d in report(log).damage[16]] == [(0, 18)]
    assert readable(log) == [*stored(written())[:8], *stored(written())[9:]]
    assert log.log_end_offset == 20


def test_what_is_cut_is_reported() -> None:
    log = opened(with_tail(bytes(123)), recovery_point=20)
    assert report(log).truncated_bytes == 123
    assert report(log).damage == {}


def test_a_cut_log_is_not_recovered_any_further_by_the_next_start() -> None:
    files = with_tail(bytes(123))
    opened(files, recovery_point=20).abandon()
    before = files.tree()
    log = opened(files, recovery_point=20)
    assert report(log).truncated_bytes == 0
    assert files.tree() == before


# --- files that end early -------------------------------------------------------------------------


def test_a_log_file_cut_at_any_byte_behind_the_recovery_point_ends_at_its_last_batch() -> None:
    batches = stored(written())
    whole = written().contents(ACTIVE)
    for cut in range(len(whole)):
        files = written()
        files.put(ACTIVE, whole[:cut])
        log = opened(files, recovery_point=16)
        kept = cut // BATCH_BYTES
        assert log.log_end_offset == 16 + 2 * kept
        assert not log.is_damaged
        assert readable(log) == batches[: 8 + kept]


def test_a_log_file_cut_inside_a_flushed_batch_is_damage_and_keeps_its_bytes() -> None:
    whole = written().contents(ACTIVE)
    for cut in range(1, len(whole)):
        if cut % BATCH_BYTES == 0:
            continue
        files = written()
        files.put(ACTIVE, whole[:cut])
        log = opened(files, recovery_point=20)
        assert log.is_damaged
        assert log.log_end_offset == 20, "offsets that were acknowledged are not given out again"
        assert files.contents(ACTIVE) == whole[:cut]


def test_segments_behind_a_cut_go_if_they_hold_no_batch() -> None:
    files = written()
    files.put(log_file(8), files.contents(log_file(8))[:250])
    files.put(log_file(16), bytes(1000))
    log = opened(files, recovery_point=8)
    assert not log.is_damaged
    assert log.log_end_offset == 12
    assert log.segments.base_offsets == [0, 8]
    assert not [name for name in files.tree(DIRECTORY) if name.startswith("0" * 18 + "16")]


def test_segments_behind_a_torn_one_stay_if_they_hold_a_batch() -> None:
    files = written()
    files.put(log_file(8), files.contents(log_file(8))[:250])
    log = opened(files)
    assert log.is_damaged
    assert log.segments.base_offsets == [0, 8, 16]
    assert len(files.contents(log_file(8))) == 250
    batches = stored(written())
    assert readable(log) == [*batches[:6], *batches[8:]]


@given(st.integers(0, 2 * 396 + 2 * BATCH_BYTES - 1), st.one_of(st.none(), st.integers(0, 10)))
def test_recovery_never_cuts_below_the_recovery_point(
    position: int, recovery_point: int | None
) -> None:
    files = written()
    base, position = divmod(position, 396)
    if position % BATCH_BYTES < 61:
        position += 61 - position % BATCH_BYTES  # a changed header has tests of its own
    files.flip(log_file(base * 8), position, 0xFF)
    before = files.tree(DIRECTORY)
    damaged = base * 4 + position // BATCH_BYTES
    flushed = None if recovery_point is None else 2 * recovery_point
    log = opened(files, recovery_point=flushed)
    if flushed is None or damaged * 2 < flushed:
        assert log.log_end_offset in (18, 20) if damaged == 9 else log.log_end_offset == 20
        assert [n for n in before if n.endswith(".log")] == log_names(files)
    else:
        assert log.log_end_offset == 2 * damaged
        assert not log.is_damaged
        assert stored(files) == stored(written())[:damaged]


def log_names(files: SimulatedFileSystem) -> list[str]:
    return [name for name in files.tree(DIRECTORY) if name.endswith(".log")]


# --- preallocated files ---------------------------------------------------------------------------


def test_the_unused_end_of_a_preallocated_file_is_cut_off() -> None:
    config = TopicConfig(
        internal_segment_bytes=CONFIG.internal_segment_bytes,
        segment_index_bytes=96,
        index_interval_bytes=50,
        preallocate=True,
    )
    files = written()
    log = opened(files, config=config)
    log.roll()
    log.append_as_leader(produced("one"), leader_epoch=4)
    log.flush()
    assert len(files.contents(log_file(20))) == 400
    log.abandon()
    again = opened(files, config=config, recovery_point=22)
    assert not again.is_damaged
    assert again.log_end_offset == 22
    assert len(readable(again)) == 11
