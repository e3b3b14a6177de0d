"""Producer snapshots: their bytes, when they are written and removed, and that a bad one only costs
time."""

import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    append_transactional,
    batch,
    clock_of,
    content,
    disk_of,
    end_transaction,
    names,
    produced,
    reopened,
    trace_since,
)

from stratalog.errors import CorruptFileError, OutOfOrderSequenceError
from stratalog.storage.log import Log
from stratalog.storage.producers import ProducerBatch, ProducerState
from stratalog.storage.snapshots import Snapshots, decode_snapshot, encode_snapshot
from stratalog.testing import SimulatedFileSystem

MakeLog = Callable[..., Log]
ENTRY = struct.Struct(">qhiqiqiq")
LONGS = st.integers(0, 2**62)


@st.composite
def states(draw: st.DrawFn) -> ProducerState:
    timestamp_ms = draw(LONGS)
    state = ProducerState(
        draw(LONGS),
        draw(st.integers(0, 2**15 - 1)),
        draw(st.integers(-1, 2**31 - 1)),
        timestamp_ms,
        draw(st.none() | LONGS),
    )
    if draw(st.booleans()):
        sequence, delta = draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 2**31 - 1))
        state.batches.append(ProducerBatch(sequence, draw(LONGS), delta, timestamp_ms))
    return state


STATES = st.lists(states(), max_size=30, unique_by=lambda state: state.producer_id)


def snapshot_offsets(log: Log) -> list[int]:
    return sorted(int(name[:20]) for name in names(log) if name.endswith(".snapshot"))


# --- the bytes -----------------------------------------------------------------------------------


@given(STATES)
def test_a_snapshot_is_read_as_it_was_written(found: list[ProducerState]) -> None:
    data = encode_snapshot(found)
    assert len(data) == 10 + 46 * len(found)
    decoded = {state.producer_id: state for state in decode_snapshot("/x", data)}
    assert decoded == {state.producer_id: state for state in found}


def test_a_snapshot_is_version_crc_count_and_46_bytes_a_producer(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(5))
    log.append_as_leader(produced(7, 3, 4, epoch=2, timestamp_ms=99, transactional=True))
    log.roll()
    data = content(log, 9, ".snapshot")
    body = struct.pack(">i", 1) + ENTRY.pack(7, 2, 6, 8, 3, 99, -1, 5)
    assert data == struct.pack(">hI", 1, crc32c(body)) + body


def test_after_a_marker_the_entry_keeps_the_last_data_batch_and_has_the_markers_time(
    make_log: MakeLog,
) -> None:
    log = make_log()
    append_transactional(log, 7, 0, count=2)
    end_transaction(log, 7, commit=True, coordinator_epoch=4, timestamp_ms=111)
    log.roll()
    (entry,) = ENTRY.iter_unpack(content(log, 3, ".snapshot")[10:])
    assert entry == (7, 0, 1, 1, 1, 111, 4, -1)


def test_only_the_last_batch_of_a_producer_survives(make_log: MakeLog) -> None:
    log = make_log()
    for sequence in range(3):
        log.append_as_leader(produced(7, sequence))
    log = reopened(log)
    assert log.append_as_leader(produced(7, 2)).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(produced(7, 1))


def test_an_entry_without_a_batch_accepts_only_sequence_zero(make_log: MakeLog) -> None:
    log = make_log()
    end_transaction(log, 7, commit=True, epoch=3)
    log = reopened(log)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(produced(7, 1, epoch=3))
    log.append_as_leader(produced(7, 0, epoch=3))


def test_producers_are_written_in_the_order_of_apache_kafkas_hash_map() -> None:
    """Small ids ascend; beyond the buckets of the map they wrap around."""
    small = [ProducerState(producer_id) for producer_id in (5, 3, 4, 0)]
    ids = [state.producer_id for state in decode_snapshot("/x", encode_snapshot(small))]
    assert ids == [0, 3, 4, 5]
    wrapped = [ProducerState(producer_id) for producer_id in (1, 16, 2)]
    ids = [state.producer_id for state in decode_snapshot("/x", encode_snapshot(wrapped))]
    assert ids == [16, 1, 2]


@given(STATES.filter(bool), st.data())
def test_any_flipped_bit_and_any_cut_is_noticed(
    found: list[ProducerState], data: st.DataObject
) -> None:
    good = encode_snapshot(found)
    bad = bytearray(good)
    bad[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = good[: data.draw(st.integers(0, len(good) - 1))]
    for each in (bytes(bad), cut, good + b"\0"):
        with pytest.raises(CorruptFileError):
            decode_snapshot("/x", each)


@pytest.mark.parametrize("count", [-1, 2, 2**31 - 1])
def test_a_count_that_the_file_has_no_room_for_is_refused(count: int) -> None:
    body = struct.pack(">i", count) + ENTRY.pack(7, 2, 6, 8, 3, 99, -1, 5)
    with pytest.raises(CorruptFileError, match="entries"):
        decode_snapshot("/x", struct.pack(">hI", 1, crc32c(body)) + body)


# --- when they are written -----------------------------------------------------------------------


def test_a_roll_writes_a_snapshot_at_the_new_base_without_a_sync_of_it(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(7, 0, 3))
    number = disk_of(log).operations
    log.roll()
    name = f"{3:020d}.snapshot"
    assert [kind for kind, path in trace_since(log, number) if path == name] == ["create", "write"]


def test_the_first_segment_has_no_snapshot_and_an_empty_log_writes_none(make_log: MakeLog) -> None:
    log = make_log()
    log.close()
    assert snapshot_offsets(log) == []


def test_closing_writes_a_durable_snapshot_at_the_log_end(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(7, 0, 3))
    number = disk_of(log).operations
    log.close()
    assert snapshot_offsets(log) == [3]
    assert ("sync", f"{3:020d}.snapshot") in trace_since(log, number)


def test_no_snapshot_is_written_where_nothing_was_appended_since_the_last(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(produced(7, 0, 3))
    log.roll()
    before = content(log, 3, ".snapshot")
    number = disk_of(log).operations
    log.close()
    assert ("create", f"{3:020d}.snapshot") not in trace_since(log, number)
    assert content(log, 3, ".snapshot") == before


def test_a_longer_file_of_the_same_name_is_not_written_over_but_replaced(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(7, 0, 3))
    disk_of(log).put(f"{log.directory}/{3:020d}.snapshot", b"older and longer" * 20)
    log.roll()
    assert len(decode_snapshot("/x", content(log, 3, ".snapshot"))) == 1


def test_a_log_goes_on_where_its_snapshot_left_it(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 7, 0)
    log = reopened(log)
    assert log.producers.first_unstable_offset == 0
    assert append_transactional(log, 7, 1) == 1


def test_producers_idle_too_long_are_left_out_when_a_snapshot_is_loaded_but_not_with_a_transaction(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0, timestamp_ms=START_MS - 86_400_000))
    log.append_as_leader(produced(2, 0, timestamp_ms=START_MS - 86_399_999))
    log.append_as_leader(produced(3, 0, timestamp_ms=5, transactional=True))
    log = reopened(log)
    assert sorted(state.producer_id for state in log.producers) == [2, 3]
    clock_of(log).advance(86_400_000)
    assert [state.producer_id for state in reopened(log).producers] == [3]


# --- which are kept ------------------------------------------------------------------------------


def filled(log: Log) -> Log:
    """Segments at 0, 3 and 6 and a snapshot at each of the last two and at the log end."""
    for start in (0, 3):
        log.append_as_leader(produced(7, start, 3))
        log.roll()
    log.append_as_leader(produced(7, 6, 3))
    log.close()
    assert snapshot_offsets(log) == [3, 6, 9]
    return log


@pytest.mark.parametrize("offset", [3, 6, 9])
@pytest.mark.parametrize("content_of", [b"", b"garbage", b"\0\1" + bytes(60)])
def test_a_corrupt_snapshot_is_removed_and_an_older_one_or_the_log_itself_tells(
    make_log: MakeLog, offset: int, content_of: bytes
) -> None:
    log = filled(make_log())
    for bad in range(offset, 10, 3):
        disk_of(log).put(f"{log.directory}/{bad:020d}.snapshot", content_of)
    log = reopened(log)
    state = log.producers.get(7)
    assert state is not None
    assert (state.last_sequence, state.last_data_offset) == (8, 8)
    log.append_as_leader(produced(7, 9))


def test_at_a_load_stray_snapshots_go_but_for_the_newest_at_or_above_the_last_segment(
    make_log: MakeLog,
) -> None:
    log = filled(make_log())
    for stray in (1, 5, 7):
        data = content(log, 6, ".snapshot")
        disk_of(log).put(f"{log.directory}/{stray:020d}.snapshot", data)
    assert snapshot_offsets(reopened(log)) == [3, 6, 9]


@given(st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12), min_size=1))
def test_strays_are_those_of_no_segment_but_the_newest_if_it_is_not_below_the_last_base(
    offsets: set[int], bases: set[int]
) -> None:
    files = SimulatedFileSystem()
    snapshots = Snapshots(files, "", offsets)
    snapshots.remove_strays(bases)
    strays = sorted(offsets - bases)
    newest = {strays[-1]} if strays and strays[-1] >= max(bases) else set()
    assert set(snapshots.offsets) == (offsets & bases) | newest


def test_the_snapshot_of_a_deleted_segment_is_renamed_and_unlinked_with_its_files(
    make_log: MakeLog,
) -> None:
    log = make_log()
    for start in (0, 3):
        log.append_as_leader(produced(7, start, 3))
        log.roll()
    log.update_high_watermark(6)
    log.delete_segments(list(log.segments)[:2])
    assert snapshot_offsets(log) == [6]
    assert f"{3:020d}.snapshot.deleted" in names(log)
    log.run_deletes(2**62)
    assert f"{3:020d}.snapshot.deleted" not in names(log)
