"""A scan against a plain model of what recovery does, and every way a batch can be invalid."""

import struct
from collections.abc import Callable

import pytest
from batch_strategies import (
    BATCH_ROWS,
    BATCHES,
    changed,
    lay_out,
    legacy_message,
    resealed,
    resealed_message,
)
from hypothesis import given
from hypothesis import strategies as st

from stratalog.records import Codec, Record, SegmentScan, build_batch, compress, read_headers
from stratalog.records._kernels import encode_records, first_record, seal_batch

RECORD = Record(b"key", b"value" * 20, timestamp_ms=1000)


def scanned(log: bytes, base_offset: int = 0, interval_bytes: int = 100, **options) -> SegmentScan:
    scan = SegmentScan(base_offset, interval_bytes, **options)
    scan.feed(log)
    return scan


def with_body(body: bytes, record_count: int, codec: Codec = Codec.NONE) -> bytes:
    return bytes(
        seal_batch(
            body,
            base_offset=0,
            last_offset_delta=max(record_count - 1, 0),
            record_count=record_count,
            attributes=codec,
            base_timestamp_ms=0,
            max_timestamp_ms=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            partition_leader_epoch=0,
        )
    )


def model_indexes(log: bytes, base_offset: int, interval_bytes: int) -> tuple[bytes, bytes]:
    """The indexes that appending these batches one by one leaves when the segment is closed."""
    offset_entries, time_entries = b"", b""
    unindexed_bytes, indexed_ms, largest = 0, -1, (-1, -1)
    for header in read_headers(log):
        if header.max_timestamp_ms > largest[0]:
            largest = (header.max_timestamp_ms, header.last_offset - base_offset)
        if unindexed_bytes > interval_bytes:
            offset_entries += struct.pack(">ii", header.last_offset - base_offset, header.position)
            if largest[0] > indexed_ms:
                time_entries += struct.pack(">qi", *largest)
                indexed_ms = largest[0]
            unindexed_bytes = 0
        unindexed_bytes += header.size_bytes
    if largest[0] > indexed_ms:
        time_entries += struct.pack(">qi", *largest)
    return offset_entries, time_entries


@given(BATCH_ROWS, st.integers(0, 400), st.integers(0, 10**12), st.integers(0, 100))
def test_a_scan_builds_the_indexes_that_appending_builds(
    rows: list, interval_bytes: int, base_offset: int, tail: int
) -> None:
    log = b"".join(lay_out(rows, base_offset=base_offset))
    scan = scanned(log + build_batch([RECORD])[:tail], base_offset, interval_bytes)
    scan.finish()

    expected = model_indexes(log, base_offset, interval_bytes)
    assert (bytes(scan.offset_entries), bytes(scan.time_entries)) == expected
    assert scan.position == len(log)
    assert scan.fault is None


@given(BATCH_ROWS, st.sampled_from(Codec), st.lists(st.integers(1, 300), min_size=1))
def test_the_pieces_that_a_file_is_fed_in_do_not_matter(
    rows: list, codec: Codec, pieces: list[int]
) -> None:
    log = b"".join(lay_out(rows, codec=codec))
    whole = scanned(log, all_headers=True)
    scan = SegmentScan(0, 100, all_headers=True)
    headers, turn = [], 0
    while scan.position < len(log):
        size = max(pieces[turn % len(pieces)] + 61, scan.wanted_bytes)
        headers += scan.feed(log[scan.position : scan.position + size])
        turn += 1

    assert [h.base_offset for h in headers] == [h.base_offset for h in read_headers(log)]
    for name in ("position", "next_offset", "offset_entries", "time_entries", "record_count"):
        assert getattr(scan, name) == getattr(whole, name)


@given(BATCH_ROWS)
def test_a_scan_counts_what_it_passed(rows: list) -> None:
    log = b"".join(lay_out(rows, base_offset=7))
    scan = scanned(log, 7)
    headers = read_headers(log)

    assert scan.batch_count == len(headers)
    assert scan.record_count == sum(len(records) for records, _, _ in rows)
    assert scan.next_offset == (headers[-1].next_offset if headers else 7)
    assert scan.max_timestamp_ms == max((h.max_timestamp_ms for h in headers), default=-1)
    assert scan.first_timestamp_ms == (headers[0].max_timestamp_ms if headers else -1)
    assert scan.last_leader_epoch == (headers[-1].partition_leader_epoch if headers else -1)
    assert (scan.magic_mask, scan.codec_mask) == ((4, 1) if headers else (0, 0))


def test_only_headers_that_change_more_than_indexes_come_back() -> None:
    def batch(offset: int, **options) -> bytes:
        return build_batch([RECORD], base_offset=offset, **{"leader_epoch": 1} | options)

    log = (
        batch(0)
        + batch(1)
        + batch(2, producer_id=5)
        + batch(3, control=True)
        + batch(4, leader_epoch=2)
        + batch(5, leader_epoch=2)
    )

    assert [h.base_offset for h in SegmentScan(0, 100).feed(log)] == [0, 2, 3, 4]


def test_a_cut_batch_is_no_fault_and_says_how_much_it_wants() -> None:
    batch = build_batch([RECORD])
    scan = scanned(batch + build_batch([RECORD], base_offset=1)[:-1])
    short = scanned(batch[:40])

    assert (scan.position, scan.wanted_bytes, scan.fault) == (len(batch), len(batch), None)
    assert (short.position, short.wanted_bytes, short.fault) == (0, 0, None)


@pytest.mark.parametrize("check_records", [True, False])
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda batch: changed(batch, 8, ">i", 10), "size"),
        (lambda batch: changed(batch, 16, ">b", 7), "magic"),
        (lambda batch: changed(batch, 23, ">i", 5), "CRC"),
        (lambda batch: changed(batch, len(batch) - 1, ">B", 255), "CRC"),
        (lambda batch: changed(batch, 0, ">q", 0), "offset 0 where at least 1"),
        (lambda batch: resealed(batch, 57, ">i", -1), "record count"),
        (lambda batch: resealed(batch, 23, ">i", -1), "last offset delta"),
        (lambda batch: changed(batch, 0, ">q", 2**31), "too far"),
    ],
)
def test_an_invalid_batch_stops_the_scan_at_its_position(
    damage: Callable[[bytes], bytes], reason: str, check_records: bool
) -> None:
    first = build_batch([RECORD])
    second = build_batch([RECORD], base_offset=1)
    scan = scanned(first + damage(second) + second, check_records=check_records)

    assert scan.feed(second) == []
    assert scan.position == len(first)
    assert scan.next_offset == 1
    assert scan.fault is not None
    assert reason in scan.fault


def test_only_an_offset_too_far_away_is_an_overflow() -> None:
    last_that_fits = build_batch([RECORD], base_offset=5 + 2**31 - 1)
    beyond = build_batch([RECORD] * 2, base_offset=5 + 2**31 - 1)

    assert scanned(last_that_fits, 5).fault is None
    assert scanned(beyond, 5).overflow
    assert not scanned(bytes(61)).overflow


def test_a_batch_below_the_base_of_its_segment_is_out_of_order() -> None:
    assert scanned(build_batch([RECORD], base_offset=4), 5).fault is not None
    assert scanned(legacy_message(1, offset=4), 5).fault is not None
    with pytest.raises(ValueError, match="base offset"):
        SegmentScan(-1, 100)


BODY = bytes(encode_records([b"k"], [b"v"], [[("h", b"w")]], [0], 0))


@pytest.mark.parametrize(
    ("body", "record_count", "reason"),
    [
        (BODY + BODY, 1, "remain"),
        (BODY, 2, "end before"),
        (BODY[:-1], 1, "end before"),
        (changed(BODY, 0, ">B", 2), 1, "runs past"),
        (changed(BODY, 0, ">B", 1), 1, "length"),
        (changed(BODY, 4, ">B", 40), 1, "length"),
        (changed(BODY, 6, ">B", 40), 1, "length"),
        (changed(BODY, 8, ">B", 1), 1, "header count"),
        (changed(BODY, 8, ">B", 100), 1, "header count"),
        (changed(BODY, 9, ">B", 1), 1, "without a key"),
        (changed(BODY, 9, ">B", 100), 1, "length"),
        (changed(BODY, 11, ">B", 100), 1, "length"),
        (b"\xff\xff\xff\xff\xff\x01", 1, "number"),
        (b"\x18\x00" + b"\xff" * 11, 1, "number"),
        (b"\x20\x00" + b"\xff" * 10 + b"\x01\x00\x01\x01\x00", 1, "number"),
        (b"\x14\x00\x00" + b"\xff" * 5 + b"\x01\x01\x01\x00", 1, "number"),
        (changed(BODY, 0, ">B", BODY[0] + 2) + b"\x00", 1, "length"),
    ],
)
def test_records_that_do_not_fill_their_batch_exactly_are_a_fault_if_asked(
    body: bytes, record_count: int, reason: str
) -> None:
    batch = with_body(body, record_count)

    fault = scanned(batch).fault
    assert fault is not None
    assert reason in fault
    assert scanned(batch, check_records=False).fault is None


def test_the_longest_forms_of_numbers_are_read_and_their_excess_bits_dropped() -> None:
    timestamp_delta = b"\xff" * 9 + b"\x7f"
    offset_delta = b"\x80\x80\x80\x80\x70"
    fields = b"\x00" + timestamp_delta + offset_delta + b"\x01\x01\x00"

    assert scanned(with_body(bytes([2 * len(fields)]) + fields, 1)).fault is None
    assert read_varint(offset_delta) == 0


def read_varint(encoded: bytes) -> int:
    """Read a number where a key's length stands: that many bytes follow, or the key is null."""
    fields = b"\x00\x00\x00" + encoded + b"\x01\x00"
    record = first_record(bytes([2 * len(fields)]) + fields, 1)
    assert record is not None
    assert record[0] is not None
    return len(record[0])


def test_a_batch_of_no_records_is_not_looked_into() -> None:
    assert scanned(with_body(b"anything", 0)).fault is None
    assert scanned(with_body(b"anything", 0, Codec.ZSTD)).fault is None


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_compressed_records_are_opened_only_if_asked(codec: Codec) -> None:
    good = build_batch([RECORD] * 50, codec=codec)
    wrong_count = resealed(good, 57, ">i", 49)
    garbled = with_body(b"not what a codec writes", 1, codec)

    assert scanned(good).fault is None
    assert "remain" in (scanned(wrong_count).fault or "")
    assert scanned(garbled).fault is not None
    assert scanned(garbled, check_records=False).fault is None


def test_contents_too_large_to_open_are_counted_and_are_no_fault() -> None:
    batch = build_batch([Record(None, bytes(100_000))], codec=Codec.ZSTD)
    scan = scanned(batch, decompressed_max_bytes=1000)

    assert (scan.fault, scan.unopened_count, scan.batch_count) == (None, 1, 1)


def test_a_codec_that_does_not_exist_is_a_fault_of_the_contents() -> None:
    batch = resealed(build_batch([RECORD]), 21, ">h", 5)

    assert "codec 5" in (scanned(batch).fault or "")
    assert scanned(batch, check_records=False).fault is None


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_messages_are_scanned_like_batches(magic: int) -> None:
    log = b"".join(legacy_message(magic, offset, timestamp_ms=offset) for offset in range(3, 13))
    scan = scanned(log, 3, 60)
    scan.finish()

    assert (scan.fault, scan.position, scan.next_offset) == (None, len(log), 13)
    assert (scan.magic_mask, scan.record_count) == (1 << magic, 10)
    assert (bytes(scan.offset_entries), bytes(scan.time_entries)) == model_indexes(log, 3, 60)


def test_a_legacy_message_whose_lengths_exceed_it_is_a_fault() -> None:
    key_length_at = 26

    assert "CRC" in (scanned(changed(legacy_message(1), key_length_at, ">i", 100)).fault or "")
    garbled = resealed_message(legacy_message(1), key_length_at, ">i", 100)
    assert "lengths" in (scanned(garbled).fault or "")
    assert scanned(garbled, check_records=False).fault is None


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_legacy_messages_are_opened_only_if_asked(magic: int) -> None:
    inner = legacy_message(magic, 0) + legacy_message(magic, 1)
    good = legacy_message(magic, 1, attributes=1, value=bytes(compress(Codec.GZIP, inner)))
    nested = legacy_message(magic, 9, attributes=1, value=bytes(compress(Codec.GZIP, good)))
    empty = legacy_message(magic, 9, attributes=1, value=bytes(compress(Codec.GZIP, b"")))

    assert scanned(good).fault is None
    assert "another compressed" in (scanned(nested).fault or "")
    assert "no messages" in (scanned(empty).fault or "")
    assert scanned(nested + empty[:8], check_records=False).fault is None


def test_of_equal_timestamps_the_first_batch_counts() -> None:
    scan = scanned(b"".join(lay_out([([RECORD] * 2, 0, 0), ([RECORD] * 2, 0, 0)])))

    assert (scan.max_timestamp_ms, scan.offset_of_max_timestamp) == (1000, 1)


@given(BATCHES)
def test_finish_adds_one_time_entry_and_only_once(batch: bytes) -> None:
    header = read_headers(batch)[0]
    scan = scanned(batch, header.base_offset)
    scan.finish()
    scan.finish()

    expected = b""
    if header.max_timestamp_ms >= 0:
        expected = struct.pack(">qi", header.max_timestamp_ms, header.last_offset_delta)
    assert scan.time_entries == expected
    assert scan.offset_entries == b""


def test_a_batch_beyond_what_an_index_can_point_at_is_a_fault() -> None:
    batch = build_batch([RECORD])

    assert scanned(batch).fault is None
    assert "size" in (scanned(changed(batch, 8, ">i", 2**31 - 1)).fault or "")
