"""Control records: the marker that ends a transaction, and what other bytes are read as."""

import struct

import pytest
from batch_strategies import resealed
from hypothesis import given
from hypothesis import strategies as st
from other_client import DefaultRecordBatch

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Codec,
    ControlRecord,
    ControlType,
    Record,
    build_batch,
    build_end_transaction_marker,
    check_crc,
    parse_control_record,
    read_control_batch,
    read_header,
)

COMMIT_KEY = struct.pack(">hh", 0, 1)
VALUE = struct.pack(">hi", 0, 5)


@given(
    st.booleans(),
    st.integers(0, 2**62),
    st.integers(0, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**45),
)
def test_a_marker_reads_back_as_what_it_ends(
    commit: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int
) -> None:
    batch = build_end_transaction_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=timestamp_ms,
        base_offset=9,
        leader_epoch=2,
    )

    header = read_header(batch)
    expected_type = ControlType.COMMIT if commit else ControlType.ABORT
    assert header is not None
    assert check_crc(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch) == (producer_id, producer_epoch)
    assert (header.base_sequence, header.record_count, header.next_offset) == (-1, 1, 10)
    assert read_control_batch(batch) == ControlRecord(expected_type, coordinator_epoch)
    (theirs,) = DefaultRecordBatch(batch)
    assert (theirs.commit, theirs.abort) == (commit, not commit)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, VALUE),
        (COMMIT_KEY[:3], VALUE),
        (COMMIT_KEY, None),
        (COMMIT_KEY, VALUE[:5]),
        (struct.pack(">hh", -1, 1), VALUE),
        (COMMIT_KEY, struct.pack(">hi", -1, 5)),
    ],
)
def test_a_control_record_cut_short_or_of_a_negative_version_is_corrupt(key, value) -> None:
    with pytest.raises(CorruptBatchError):
        parse_control_record(key, value)


def test_newer_versions_are_read_as_the_first() -> None:
    key = struct.pack(">hhq", 7, 0, 1)
    value = struct.pack(">hiq", 3, 5, 1)

    assert parse_control_record(key, value) == ControlRecord(ControlType.ABORT, 5)


@pytest.mark.parametrize(("type_id", "expected"), [(2, "LEADER_CHANGE"), (99, "UNKNOWN")])
def test_only_markers_have_a_value_to_read(type_id: int, expected: str) -> None:
    record = parse_control_record(struct.pack(">hh", 0, type_id), None)

    assert record == ControlRecord(ControlType[expected], -1)
    assert not record.type.ends_transaction


@pytest.mark.parametrize("codec", list(Codec))
def test_a_control_batch_may_be_compressed(codec: Codec) -> None:
    batch = build_batch([Record(COMMIT_KEY, VALUE)], control=True, codec=codec)

    assert read_control_batch(batch + b"more") == ControlRecord(ControlType.COMMIT, 5)


def test_a_control_batch_that_compaction_emptied_says_nothing() -> None:
    assert read_control_batch(build_batch([], control=True)) is None


def test_what_is_no_whole_control_batch_is_corrupt() -> None:
    control = build_batch([Record(COMMIT_KEY, VALUE)], control=True)

    for batch in (
        control[:-1],
        control[:20],
        build_batch([Record(COMMIT_KEY, VALUE)]),
        resealed(control, 61, ">B", 0x7F),
    ):
        with pytest.raises(CorruptBatchError):
            read_control_batch(batch)
