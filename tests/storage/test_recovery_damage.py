"""Damage that recovery may not cut away, for nobody knows it to be unflushed: named, never served,
never skipped. Here no recovery point is known, or it lies behind the damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import (
    DIRECTORY,
    log_file,
    opened,
    produced,
    readable,
    report,
    stored,
    written,
)

from stratalog.errors import CorruptSegmentError, LogDamagedError
from stratalog.records import read_headers
from stratalog.storage.check import check
from stratalog.storage.log import Log
from stratalog.testing import SimulatedFileSystem

BATCH_BYTES = 99
NOTE = f"{DIRECTORY}/.stratalog/damage"


def broken(batch: int, *, at: int = 70) -> SimulatedFileSystem:
    """A log with one changed byte in its ``batch``-th batch."""
    files = written()
    files.flip(log_file(batch // 4 * 8), batch % 4 * BATCH_BYTES + at, 0x10)
    return files


def read_error(log: Log, offset: int) -> CorruptSegmentError:
    with pytest.raises(CorruptSegmentError) as raised:
        log.read(offset, max_bytes=1000)
    return raised.value


@pytest.mark.parametrize("recovery_point", [None, 12, 20])
def test_damage_names_its_file_its_position_and_its_offset(recovery_point: int | None) -> None:
    files = broken(5)
    files.unlink(log_file(8, ".index"))  # so that all of the segment is read
    log = opened(files, recovery_point=recovery_point)
    error = read_error(log, 10)
    assert (error.path, error.position, error.offset) == (log_file(8), BATCH_BYTES, 10)
    assert "CRC" in error.reason or "crc" in error.reason
    damage = report(log).damage[8]
    assert [(each.start_position, each.end_position) for each in damage] == [(99, 198)]
    assert [(each.start_offset, each.end_offset) for each in damage] == [(10, 12)]
    assert (log_file(8), BATCH_BYTES) in [(each.path, each.position) for each in check(log)]


@given(st.integers(0, 8), st.integers(16, BATCH_BYTES - 1))
def test_a_corrupt_batch_with_a_valid_one_behind_it_is_damage_wherever_it_lies(
    batch: int, at: int
) -> None:
    files = broken(batch, at=at)
    before = {name: data for name, data in files.tree(DIRECTORY).items() if name.endswith(".log")}
    batches = stored(written())
    log = opened(files)
    assert log.is_damaged
    assert log.log_end_offset == 20
    assert readable(log) == batches[:batch] + batches[batch + 1 :]
    assert before == {name: files.tree(DIRECTORY)[name] for name in before}, "nothing was cut"


def test_every_offset_around_the_damage_is_read_and_every_offset_inside_it_is_refused() -> None:
    log = opened(broken(5))
    for offset in range(20):
        if offset in (10, 11):
            assert read_error(log, offset).offset == 10
        else:
            fetched = log.read(offset, max_bytes=10)
            assert fetched.records is not None
            header = read_headers(fetched.records.read())[0]
            assert header.base_offset <= offset <= header.last_offset


def test_a_slice_ends_where_damage_begins() -> None:
    log = opened(broken(5))
    fetched = log.read(8, max_bytes=10_000)
    assert fetched.size_bytes == BATCH_BYTES
    assert log.read(12, max_bytes=10_000).size_bytes == 2 * BATCH_BYTES


def test_several_damaged_ranges_are_all_named() -> None:
    files = broken(1)
    files.flip(log_file(0), 3 * BATCH_BYTES + 50, 1)
    files.flip(log_file(16), 20, 1)
    log = opened(files)
    found = [
        (base, each.start_offset, each.end_offset)
        for base, ranges in report(log).damage.items()
        for each in ranges
    ]
    assert found == [(0, 2, 4), (0, 6, 8), (16, 16, 18)]
    batches = stored(written())
    assert readable(log) == [batches[n] for n in (0, 2, 4, 5, 6, 7, 9)]


def test_the_last_batch_is_damaged_and_not_cut_if_it_was_flushed() -> None:
    files = broken(9)
    before = files.contents(log_file(16))
    log = opened(files, recovery_point=20)
    # Nothing below the recovery point is read again, so it may also go unnoticed here; what it
    # must not do is go away.
    assert log.log_end_offset == 20
    assert files.contents(log_file(16)) == before


def test_appends_to_a_damaged_log_are_refused() -> None:
    files = broken(5)
    log = opened(files)
    before = files.tree()
    with pytest.raises(LogDamagedError, match="repair"):
        log.append_as_leader(produced("more"), leader_epoch=9)
    with pytest.raises(LogDamagedError):
        log.append_as_follower(produced("more", base_offset=20))
    assert files.tree() == before


@pytest.mark.parametrize("clean", [True, False])
def test_damage_survives_restarts_whatever_the_checkpoint_and_the_marker_say(clean: bool) -> None:
    files = broken(5)
    log = opened(files)
    log.close()
    for _ in range(2):
        log = opened(files, clean=clean, recovery_point=20)
        assert log.is_damaged
        assert read_error(log, 10).path == log_file(8)
        log.close()


def test_damage_is_remembered_beside_the_log_before_anybody_reads() -> None:
    files = broken(5)
    files.unlink(log_file(8, ".index"))
    opened(files, recovery_point=12)
    assert files.is_synced(NOTE)
    assert b'"recovery_point": 12' in files.contents(NOTE)


def test_damage_that_was_mended_is_forgotten() -> None:
    files = broken(5)
    opened(files).close()
    files.flip(log_file(8), BATCH_BYTES + 70, 0x10)
    log = opened(files, clean=True, recovery_point=20)
    assert not log.is_damaged
    assert NOTE not in [f"{DIRECTORY}/{name}" for name in files.tree(DIRECTORY)]
    assert readable(log) == stored(written())
    assert log.append_as_leader(produced("more"), leader_epoch=9).first_offset == 20


def test_a_damaged_log_can_be_flushed_and_read_but_is_never_closed_in_order() -> None:
    log = opened(broken(5))
    log.flush()
    assert log.recovery_point == log.log_end_offset
    log.close()
    assert log.needs_recovery


def test_only_segments_from_the_recovery_point_on_are_read_again() -> None:
    files = broken(1)
    log = opened(files, recovery_point=9)
    assert not log.is_damaged
    assert report(log).scanned_segments == 2
    assert report(log).scanned_bytes <= 6 * BATCH_BYTES


def test_damage_in_a_segment_whose_index_is_rebuilt_is_found_also_at_a_clean_start() -> None:
    files = written(clean=True)
    files.flip(log_file(0), BATCH_BYTES + 70, 1)
    files.unlink(log_file(0, ".index"))
    log = opened(files, clean=True)
    assert log.is_damaged
    assert read_error(log, 2).position == BATCH_BYTES


@pytest.mark.parametrize("recovery_point", [0, 20])
def test_damage_at_a_segments_end_reaches_to_the_next_segment(recovery_point: int) -> None:
    files = written(clean=True)
    torn = files.contents(log_file(0))[:-20]
    files.put(log_file(0), torn)
    files.unlink(log_file(0, ".timeindex"))
    log = opened(files, clean=True, recovery_point=recovery_point)
    assert log.is_damaged
    assert files.contents(log_file(0)) == torn
    assert (read_error(log, 6).position, read_error(log, 7).offset) == (3 * BATCH_BYTES, 6)
    damage = report(log).damage[0][0]
    assert (damage.start_offset, damage.end_offset) == (6, 8)
    assert len(readable(log)) == 9


def test_a_last_segment_that_cannot_be_walked_is_damage_also_at_a_clean_start() -> None:
    files = written(clean=True)
    files.flip(log_file(16), BATCH_BYTES + 8, 0x80)  # the batch's size: negative
    before = files.contents(log_file(16))
    log = opened(files, clean=True, recovery_point=20)
    assert log.is_damaged
    assert files.contents(log_file(16)) == before
    assert read_error(log, 18).position == BATCH_BYTES
    assert log.log_end_offset >= 20, "offsets that were acknowledged are not given out again"


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("at", "mask"), [(8, 0xFF), (22, 0x20), (22, 0xFF)])
def test_damage_that_only_producer_replay_meets_is_named_and_read_around(
    at: int, mask: int, clean: bool
) -> None:
    files = written(clean=clean)
    files.flip(log_file(0), at, mask)
    for offset in (8, 16, 20):
        files.unlink(log_file(offset, ".snapshot"), missing_ok=True)
    log = opened(files, clean=clean, recovery_point=20 if clean else 4)
    assert log.is_damaged
    assert read_error(log, 0).position == 0
    assert readable(log) == stored(written())[1:]


def test_appends_behind_a_batch_that_cannot_be_walked_are_refused_with_its_place() -> None:
    files = written(clean=True)
    files.flip(log_file(16), 8, 0xFF)
    log = opened(files, clean=True, recovery_point=20)
    with pytest.raises((CorruptSegmentError, LogDamagedError), match=r"16\.log|repair"):
        log.append_as_leader(produced("more"), leader_epoch=9)
    log.close()


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 8, 16]), st.integers(0, 395), st.integers(1, 255)), max_size=4
    ),
    st.integers(0, 20),
)
def test_whatever_bytes_change_only_batches_that_were_written_are_served(
    changes: list[tuple[int, int, int]], recovery_point: int
) -> None:
    files = written()
    batches = stored(files)
    for base, position, mask in changes:
        size = len(files.contents(log_file(base)))
        if position % size % BATCH_BYTES >= 16:  # what the CRC covers, and the size
            files.flip(log_file(base), position % size, mask)
    log = opened(files)
    assert set(readable(log)) <= set(batches)
    untouched = [batch for batch in batches if batch in stored_loosely(files)]
    assert readable(log) == untouched


def stored_loosely(files: SimulatedFileSystem) -> list[bytes]:
    """Whatever stands in the files where batches were."""
    found = []
    for base in (0, 8, 16):
        if not files.exists(log_file(base)):
            continue  # nothing in it was valid, nor behind the cut in front of it
        data = files.contents(log_file(base))
        found += [data[at : at + BATCH_BYTES] for at in range(0, len(data), BATCH_BYTES)]
    return found


def test_damage_that_a_clean_start_met_is_met_by_every_start_after_it() -> None:
    files = written(clean=True)
    files.flip(log_file(16), 79, 0xFF)  # in the records of the first batch there
    files.flip(log_file(16), BATCH_BYTES + 8, 0x01)  # the length of the last
    first = opened(files, clean=True, recovery_point=20)
    first.close()
    for clean in (False, True):
        log = opened(files, clean=clean, recovery_point=20)
        assert report(log).damage == report(first).damage
        assert log.log_end_offset == 20
        log.close()
