"""The header of a batch: every field of every format, and what no header may say."""

import random
import struct

import crc32c as crc32c_package
import pytest
from batch_strategies import BATCH_ROWS, BATCHES, changed, lay_out, legacy_message
from hypothesis import given
from hypothesis import strategies as st
from other_client import DefaultRecordBatch

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    BatchHeader,
    Record,
    build_batch,
    check_crc,
    find_batch,
    read_header,
    read_headers,
)
from stratalog.records._kernels import crc32c

V2 = struct.Struct(">qiibIhiqqqhii")
BATCH = build_batch([Record(b"k", b"v", (("h", None),), timestamp_ms=7)] * 3, base_offset=40)


@given(BATCHES)
def test_a_header_has_the_fields_that_its_bytes_have(batch: bytes) -> None:
    header = read_header(batch, position=77)

    assert header is not None
    fields = (
        header.base_offset,
        header.size_bytes - 12,
        header.partition_leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    assert fields == V2.unpack_from(batch)
    assert header.position == 77
    assert header.next_offset == header.last_offset + 1


@given(BATCHES)
def test_a_header_says_what_another_client_reads_in_it(batch: bytes) -> None:
    header = read_header(batch)
    theirs = DefaultRecordBatch(batch)

    assert header is not None
    assert theirs.validate_crc()
    assert header.base_offset == theirs.base_offset
    assert header.next_offset == theirs.next_offset
    assert header.codec_id == theirs.compression_type
    assert header.is_log_append_time == bool(theirs.timestamp_type)
    assert header.is_transactional == theirs.is_transactional
    assert header.is_control == theirs.is_control_batch
    assert header.last_sequence == (-1 if theirs.base_sequence == -1 else theirs.last_sequence)
    assert header.has_producer_id == (theirs.producer_id >= 0)


def test_a_header_needs_only_its_own_bytes() -> None:
    assert isinstance(read_header(BATCH[:61]), BatchHeader)
    assert isinstance(read_header(b"xyz" + BATCH[:61], 3), BatchHeader)
    assert all(read_header(BATCH[:size]) is None for size in range(61))
    assert all(read_header(legacy_message(0)[:size]) is None for size in range(18))
    assert all(read_header(legacy_message(1)[:size]) is None for size in range(26))


@pytest.mark.parametrize(
    ("at", "layout", "value"),
    [
        (8, ">i", 13),
        (8, ">i", 48),
        (8, ">i", -1),
        (8, ">i", 2**31 - 12),
        (16, ">b", 3),
        (16, ">b", -1),
        (23, ">i", -1),
        (57, ">i", -1),
        (0, ">q", 2**63 - 3),
    ],
)
def test_a_header_that_no_batch_can_have_is_corrupt(at: int, layout: str, value: int) -> None:
    batch = changed(BATCH, at, layout, value)

    with pytest.raises(CorruptBatchError) as raised:
        read_header(batch, position=500)

    assert raised.value.position == 500
    assert raised.value.base_offset == struct.unpack_from(">q", batch)[0]


def test_a_legacy_message_shorter_than_its_format_is_corrupt() -> None:
    with pytest.raises(CorruptBatchError):
        read_header(changed(legacy_message(1), 8, ">i", 21))
    with pytest.raises(CorruptBatchError):
        read_header(changed(legacy_message(0), 8, ">i", 13))


@pytest.mark.parametrize("at", [-1, len(BATCH) + 1])
def test_a_header_outside_the_buffer_is_a_mistake_of_the_caller(at: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        read_header(BATCH, at)
    with pytest.raises(ValueError, match="outside"):
        check_crc(BATCH, at)


@pytest.mark.parametrize(
    ("base_sequence", "record_count", "last_sequence"),
    [(-1, 3, -1), (0, 3, 2), (2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 4, 1)],
)
def test_sequences_continue_at_zero(
    base_sequence: int, record_count: int, last_sequence: int
) -> None:
    batch = build_batch([Record(None, b"")] * record_count, base_sequence=base_sequence)

    header = read_header(batch)

    assert header is not None
    assert header.last_sequence == last_sequence


def test_a_delete_horizon_is_there_only_if_its_bit_is() -> None:
    with_horizon = read_header(build_batch([Record(b"k", None)], delete_horizon_ms=99))
    without = read_header(build_batch([Record(b"k", None, timestamp_ms=99)]))

    assert with_horizon is not None
    assert without is not None
    assert with_horizon.delete_horizon_ms == 99
    assert without.delete_horizon_ms is None


@pytest.mark.parametrize("magic", [0, 1])
def test_a_legacy_message_is_a_batch_of_one(magic: int) -> None:
    header = read_header(legacy_message(magic, offset=12, timestamp_ms=34))

    assert header is not None
    assert (header.base_offset, header.last_offset, header.record_count) == (12, 12, 1)
    assert header.max_timestamp_ms == (34 if magic == 1 else -1)
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (-1, -1, -1)
    assert header.partition_leader_epoch == -1
    assert header.size_bytes == len(legacy_message(magic))
    assert check_crc(legacy_message(magic))


def test_a_compressed_legacy_message_knows_only_its_last_offset() -> None:
    header = read_header(legacy_message(1, offset=12, attributes=0x09))

    assert header is not None
    assert (header.base_offset, header.last_offset, header.record_count) == (-1, 12, -1)
    assert header.last_offset_delta == -1
    assert header.codec_id == 1
    assert header.is_log_append_time


def test_bits_of_v2_mean_nothing_in_a_legacy_message() -> None:
    header = read_header(legacy_message(0, attributes=0x78))

    assert header is not None
    assert not header.is_control
    assert not header.is_transactional
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None


@given(BATCHES, st.data())
def test_the_crc_notices_any_bit_that_it_covers(batch: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(batch) - 1))
    damaged = bytearray(batch)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))

    covered = at >= 17 or 8 <= at < 12 or at == 16
    assert check_crc(batch)
    assert check_crc(damaged) is not covered


def test_a_batch_that_is_not_wholly_there_has_no_right_crc() -> None:
    assert check_crc(b"ab" + BATCH + b"tail", 2, len(BATCH))
    assert not check_crc(BATCH, 0, len(BATCH) - 1)
    assert not check_crc(BATCH[:-1])
    assert not check_crc(BATCH[:20])


@given(st.integers(0, 30_000), st.integers(0, 30_000), st.integers(0, 2**32))
def test_crc32c_is_the_one_everybody_computes(size: int, cut: int, seed: int) -> None:
    data = random.Random(seed).randbytes(size)

    assert crc32c(data) == crc32c_package.crc32c(data)
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


@given(BATCH_ROWS, st.integers(0, 60))
def test_all_whole_batches_are_read_and_a_cut_one_is_left_out(rows: list, cut: int) -> None:
    batches = lay_out(rows)
    joined = b"".join(batches)

    headers = read_headers(joined + BATCH[:cut], position=1000)

    assert [header.size_bytes for header in headers] == [len(batch) for batch in batches]
    assert [header.position for header in headers] == [
        1000 + sum(map(len, batches[:i])) for i in range(len(batches))
    ]
    assert len(read_headers(joined[:-1])) == max(len(batches) - 1, 0)


def test_reading_headers_stops_at_a_wrong_crc_and_says_where() -> None:
    damaged = changed(BATCH, len(BATCH) - 1, ">B", 0xFF)

    with pytest.raises(CorruptBatchError) as raised:
        read_headers(BATCH + damaged, position=8)

    assert (raised.value.position, raised.value.base_offset) == (8 + len(BATCH), 40)
    assert len(read_headers(BATCH + damaged, check_crc=False)) == 2


@given(BATCH_ROWS, st.integers(-1, 60), st.integers(61, 400))
def test_find_batch_finds_the_first_that_reaches_the_target_in_any_steps(
    rows: list, target_offset: int, window: int
) -> None:
    joined = b"".join(lay_out(rows))
    headers = read_headers(joined)
    expected = next((h.position for h in headers if h.last_offset >= target_offset), len(joined))

    position = 0
    while position < len(joined):
        found = find_batch(
            joined[position : position + window], position, target_offset, len(joined)
        )
        if isinstance(found, BatchHeader):
            position = found.position
            break
        position = found

    assert position == expected


def test_find_batch_looks_at_nothing_from_the_limit_on() -> None:
    assert find_batch(BATCH + BATCH, 10, 10**6, 10 + len(BATCH)) == 10 + len(BATCH)
    assert find_batch(BATCH, 10, 0, 10) == 10


def test_find_batch_says_where_a_bad_header_is() -> None:
    with pytest.raises(CorruptBatchError) as raised:
        find_batch(BATCH + bytes(61), 10, 10**6, 10**6)

    assert raised.value.position == 10 + len(BATCH)


def test_a_header_cannot_be_made_by_hand_and_shows_its_fields() -> None:
    with pytest.raises(TypeError):
        BatchHeader()
    assert "base_offset=40" in repr(read_header(BATCH))
