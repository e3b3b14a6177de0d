"""Indexes, snapshots and epochs are hints: lost or garbled, they change no answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import (
    CONFIG,
    DIRECTORY,
    START_MS,
    log_file,
    new_disk,
    opened,
    produced,
    readable,
    report,
    stored,
    written,
)

from stratalog.records import AppendOrigin, build_end_transaction_marker
from stratalog.storage.check import check
from stratalog.storage.log import Log
from stratalog.storage.lookup import list_offset
from stratalog.storage.reading import Isolation
from stratalog.testing import SimulatedFileSystem

EPOCHS = f"{DIRECTORY}/leader-epoch-checkpoint"
INDEXES = [log_file(base, kind) for base in (0, 8, 16) for kind in (".index", ".timeindex")]
SNAPSHOTS = [log_file(base, ".snapshot") for base in (8, 16)]


def answers(log: Log) -> object:
    """All that a reader or a producer can find out."""
    producer = log.producers.get(7)
    assert producer is not None
    return (
        readable(log),
        (log.log_start_offset, log.log_end_offset),
        log.epochs.entries,
        (producer.epoch, producer.last_sequence, producer.last_data_offset),
        [list_offset(log, START_MS + ms) for ms in range(0, 100, 5)],
    )


EXPECTED = answers(opened(written()))


def content(files: SimulatedFileSystem, path: str) -> bytes:
    """An index without the room behind its entries."""
    return files.contents(path).rstrip(b"\0")


# --- indexes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", INDEXES)
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_index_is_rebuilt_as_it_was_and_no_other_is_written(
    path: str, clean: bool
) -> None:
    files = written(clean=clean)
    before = {each: content(files, each) for each in INDEXES}
    files.unlink(path)
    start = len(files.trace)
    log = opened(files, clean=clean)
    assert {each: content(files, each) for each in INDEXES} == before
    assert report(log).rebuilt == [path]
    written_to = {each.path for each in files.trace[start:] if each.kind == "write"}
    assert not written_to & (set(INDEXES) - {path})
    assert answers(log) == EXPECTED


def test_all_indexes_lost_are_all_rebuilt_as_they_were() -> None:
    files = written(clean=True)
    before = {path: files.contents(path) for path in INDEXES}
    for path in INDEXES:
        files.unlink(path)
    opened(files).close()
    assert {path: files.contents(path) for path in INDEXES} == before


def test_an_unclean_start_writes_no_index_that_is_right() -> None:
    files = written()
    start = len(files.trace)
    assert report(opened(files)).rebuilt == []
    assert not [
        each for each in files.trace[start:] if each.kind == "write" and "index" in each.path
    ]


@given(
    st.sampled_from(INDEXES),
    st.binary(max_size=120),
    st.booleans(),
)
def test_an_index_of_whatever_bytes_changes_no_answer(
    path: str, garbage: bytes, clean: bool
) -> None:
    files = written(clean=clean)
    files.put(path, garbage)
    assert answers(opened(files, clean=clean)) == EXPECTED


@given(st.sampled_from(INDEXES), st.integers(0, 35), st.integers(1, 255), st.integers(0, 20))
def test_a_changed_byte_in_an_index_changes_no_answer(
    path: str, position: int, mask: int, recovery_point: int
) -> None:
    for clean in (True, False):
        files = written(clean=clean)
        files.flip(path, position % len(files.contents(path)), mask)
        log = opened(files, clean=clean, recovery_point=recovery_point)
        assert answers(log) == EXPECTED


@given(st.sampled_from(INDEXES), st.binary(max_size=120))
def test_an_index_of_whatever_bytes_is_right_again_after_recovery(
    path: str, garbage: bytes
) -> None:
    files = written()
    expected = content(files, path)
    files.put(path, garbage)
    assert check(opened(files)) == []
    assert content(files, path) == expected


@given(st.sampled_from(INDEXES), st.binary(max_size=120), st.booleans())
def test_an_index_of_whatever_bytes_never_shortens_a_log_file(
    path: str, garbage: bytes, clean: bool
) -> None:
    files = written(clean=clean)
    before = stored(files)
    files.put(path, garbage)
    log = opened(files, clean=clean)
    log.append_as_leader(produced("next"), leader_epoch=3)
    log.close()
    assert stored(files)[:10] == before


def test_an_index_without_room_for_all_entries_is_filled_as_far_as_it_goes() -> None:
    files = written()
    small = CONFIG.altered(segment_index_bytes=16)
    log = opened(files, config=small)
    assert readable(log) == stored(written())
    assert len(files.contents(log_file(0, ".index"))) == 16
    assert len(files.contents(log_file(0, ".timeindex"))) == 12


# --- transaction indexes --------------------------------------------------------------------------


def with_abort(*, clean: bool) -> SimulatedFileSystem:
    files = new_disk()
    log = opened(files)
    log.append_as_leader(
        produced("t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=0,
    )
    marker = build_end_transaction_marker(
        commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=START_MS
    )
    log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    log.roll()
    log.append_as_leader(produced("after"), leader_epoch=0)
    log.close() if clean else log.flush()
    return files


def aborted(log: Log) -> list[tuple[int, int, int]]:
    fetched = log.read(0, max_bytes=10_000, isolation=Isolation.TXN_COMMITTED)
    assert fetched.aborted is not None
    return [(each.producer_id, each.first_offset, each.last_offset) for each in fetched.aborted]


GARBAGE = {"zeros": bytes(34), "ones": b"\xff" * 34, "two": b"\x01" * 68}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_corrupt_transaction_index_is_rebuilt(garbage: str, clean: bool) -> None:
    files = with_abort(clean=clean)
    path = log_file(0, ".txnindex")
    before = files.contents(path)
    files.put(path, GARBAGE[garbage])
    log = opened(files, clean=clean, recovery_point=0)
    assert aborted(log) == [(7, 0, 2)]
    assert files.contents(path) == before
    assert path in report(log).rebuilt


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("cut", [5, 33])
def test_a_transaction_index_cut_short_changes_no_answer(cut: int, clean: bool) -> None:
    files = with_abort(clean=clean)
    path = log_file(0, ".txnindex")
    files.put(path, files.contents(path)[:cut])
    assert aborted(opened(files, clean=clean)) == [(7, 0, 2)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [None, b""])
def test_a_missing_or_empty_transaction_index_changes_no_answer(
    content: bytes | None, clean: bool
) -> None:
    files = with_abort(clean=clean)
    files.unlink(log_file(0, ".txnindex"))
    if content is not None:
        files.put(log_file(0, ".txnindex"), content)
    assert aborted(opened(files, clean=clean)) == [(7, 0, 2)]


def test_a_torn_entry_behind_the_others_is_passed_over() -> None:
    files = with_abort(clean=True)
    path = log_file(0, ".txnindex")
    before = files.contents(path)
    files.put(path, before + b"torn")
    assert aborted(opened(files, clean=True)) == [(7, 0, 2)]


# --- producer snapshots ---------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
@given(data=st.data())
def test_snapshots_lost_or_garbled_change_no_answer(clean: bool, data: st.DataObject) -> None:
    files = written(clean=clean)
    for path in [*SNAPSHOTS, *([log_file(20, ".snapshot")] if clean else [])]:
        what = data.draw(st.sampled_from(["keep", "lose", "empty", "garble", "flip"]))
        if what == "lose":
            files.unlink(path)
        elif what in ("empty", "garble"):
            files.put(path, data.draw(st.binary(max_size=60)) if what == "garble" else b"")
        elif what == "flip":
            files.flip(path, data.draw(st.integers(0, len(files.contents(path)) - 1)), 1)
    log = opened(files, clean=clean, recovery_point=data.draw(st.integers(0, 20)))
    assert answers(log) == EXPECTED


def test_a_snapshot_of_batches_that_are_gone_is_not_believed() -> None:
    files = written()
    files.put(log_file(16), b"")
    log = opened(files, recovery_point=16)
    producer = log.producers.get(7)
    assert producer is not None
    assert (log.log_end_offset, producer.last_sequence) == (16, 15)
    for offset in (18, 30, 2**40):
        files.put(log_file(offset, ".snapshot"), files.contents(log_file(16, ".snapshot")))
    again = opened(files, recovery_point=16)
    producer = again.producers.get(7)
    assert producer is not None
    assert producer.last_sequence == 15
    assert max(again.snapshots.offsets) <= 16


def test_recovery_takes_a_snapshot_at_each_segments_end_for_the_next_flush_to_sync() -> None:
    files = written()
    for path in SNAPSHOTS:
        files.unlink(path)
    log = opened(files)
    assert log.snapshots.offsets == [8, 16, 20]
    log.flush()
    synced = [each.path for each in files.trace if each.kind == "sync"]
    assert {log_file(offset, ".snapshot") for offset in (8, 16, 20)} <= set(synced)


def test_stray_snapshots_of_earlier_stops_are_removed() -> None:
    files = written(clean=True)
    for offset in (3, 11):
        files.put(log_file(offset, ".snapshot"), files.contents(log_file(8, ".snapshot")))
    log = opened(files, clean=True)
    assert log.snapshots.offsets == [8, 16, 20]
    assert answers(log) == EXPECTED


# --- leader epochs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [
        None,
        b"",
        b"0\n0\n",
        b"1\n0\n",
        b"\xff\xff",
        b"0\n1\n0 0\n",
        b"0\n2\n0 0\n1 6\n",
        b"0\n5\n0 0\n1 6\n2 12\n3 18\n8 25\n",
        b"0\n4\n0 0\n1 6\n2 12\n9 18\n",
        b"0\n1\n3 19\n",
    ],
)
@pytest.mark.parametrize("clean", [True, False])
def test_an_epoch_file_lost_stale_or_garbled_is_made_to_agree_with_the_batches(
    garbage: bytes | None, clean: bool
) -> None:
    files = written(clean=clean)
    if garbage is None:
        files.unlink(EPOCHS)
    else:
        files.put(EPOCHS, garbage)
    log = opened(files, clean=clean)
    assert answers(log) == EXPECTED
    assert check(log) == []
    log.close()
    assert files.contents(EPOCHS) == b"0\n4\n0 0\n1 6\n2 12\n3 18\n"


def test_an_epoch_that_recovery_meets_is_written_at_once() -> None:
    files = written()
    batch = produced("later", base_offset=20, leader_epoch=8)
    files.put(log_file(16), files.contents(log_file(16)) + batch)
    log = opened(files, recovery_point=20)
    assert log.epochs.latest_epoch == 8
    assert files.contents(EPOCHS).endswith(b"3 18\n8 20\n")
    assert files.is_synced(EPOCHS)
