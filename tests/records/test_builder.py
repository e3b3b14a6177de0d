"""Built batches are what other clients write and read; stamping changes the header alone."""

import mmap
import struct

import pytest
from batch_strategies import BATCHES, RECORDS, changed
from hypothesis import given
from hypothesis import strategies as st
from other_client import DefaultRecordBatch, DefaultRecordBatchBuilder

from stratalog.errors import CorruptBatchError, RecordTooLargeError
from stratalog.records import (
    Codec,
    Record,
    SegmentScan,
    TimestampType,
    build_batch,
    check_crc,
    read_header,
)
from stratalog.records._kernels import (
    encode_records,
    seal_batch,
    stamp_create_time,
    stamp_header,
    stamp_log_append_time,
)

READABLE_CODECS = st.sampled_from([Codec.NONE, Codec.GZIP])
RECORD_LISTS = st.lists(RECORDS, min_size=1, max_size=8)


@given(RECORD_LISTS)
def test_a_batch_has_the_bytes_that_another_client_writes(records: list[Record]) -> None:
    theirs = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 10**6)
    for offset, record in enumerate(records):
        theirs.append(offset, record.timestamp_ms, record.key, record.value, list(record.headers))

    assert build_batch(records, leader_epoch=0) == changed(bytes(theirs.build()), 12, ">i", 0)


@given(RECORD_LISTS, READABLE_CODECS, st.integers(0, 2**40))
def test_another_client_reads_back_what_was_built(
    records: list[Record], codec: Codec, base_offset: int
) -> None:
    batch = build_batch(records, base_offset=base_offset, codec=codec)

    read = list(DefaultRecordBatch(batch))

    assert [(r.key, r.value, tuple(r.headers), r.timestamp) for r in read] == [
        tuple(record) for record in records
    ]
    assert [r.offset for r in read] == list(range(base_offset, base_offset + len(records)))


@given(BATCHES)
def test_every_built_batch_passes_a_scan(batch: bytes) -> None:
    header = read_header(batch)
    assert header is not None
    scan = SegmentScan(header.base_offset, 4096)
    scan.feed(batch)

    assert (scan.fault, scan.position) == (None, len(batch))


def test_offsets_that_compaction_left_are_kept() -> None:
    batch = build_batch(
        [Record(b"a", b""), Record(b"b", b"")],
        base_offset=100,
        offset_deltas=[1, 4],
        last_offset_delta=9,
    )

    header = read_header(batch)
    assert header is not None
    assert (header.record_count, header.last_offset) == (2, 109)
    assert [record.offset for record in DefaultRecordBatch(batch)] == [101, 104]
    assert len(build_batch([Record(b"a", b"")], offset_deltas=[7])) == len(batch) - 8
    assert read_header(build_batch([Record(b"a", b"")], offset_deltas=[7])).last_offset == 7


def test_a_batch_without_records_is_a_bare_header() -> None:
    batch = build_batch([], codec=Codec.ZSTD, base_offset=5, last_offset_delta=3)
    header = read_header(batch)

    assert len(batch) == 61
    assert header is not None
    assert (header.codec_id, header.record_count, header.last_offset) == (0, 0, 8)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (-1, -1)


def test_append_time_is_the_maximum_and_leaves_the_records_own_times() -> None:
    records = [Record(None, b"", timestamp_ms=5), Record(None, b"", timestamp_ms=9)]
    header = read_header(
        build_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=1000)
    )

    assert header is not None
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (5, 1000)
    assert header.is_log_append_time


def test_records_count_from_the_delete_horizon_if_there_is_one() -> None:
    batch = build_batch([Record(b"k", None, timestamp_ms=40)], delete_horizon_ms=100)

    assert [record.timestamp for record in DefaultRecordBatch(batch)] == [40]


def test_a_batch_that_begins_before_time_is_refused() -> None:
    with pytest.raises(ValueError, match="timestamp -2"):
        build_batch([Record(None, b"", timestamp_ms=-2)])


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (Record("text", b""), "key"),
        (Record(b"", 5), "value"),
        (Record(b"", b"", ((None, b""),)), "header key"),
        (Record(b"", b"", (("k", "text"),)), "header value"),
    ],
)
def test_what_is_not_bytes_is_refused_by_name(record: Record, what: str) -> None:
    with pytest.raises(TypeError, match=what):
        build_batch([record])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="columns"):
        encode_records([b"k"], [b"v", b"w"], None, [0, 0], 0)
    with pytest.raises(ValueError, match="columns"):
        encode_records(None, [b"v", b"w"], None, [0], 0)


def test_a_batch_larger_than_its_size_field_is_refused() -> None:
    # Anonymous memory that nothing touches: the size is checked before a byte is read.
    with mmap.mmap(-1, 2**31) as huge, pytest.raises(RecordTooLargeError):
        seal_batch(
            huge,
            base_offset=0,
            last_offset_delta=0,
            record_count=0,
            attributes=0,
            base_timestamp_ms=0,
            max_timestamp_ms=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            partition_leader_epoch=-1,
        )


@given(BATCHES, st.integers(0, 2**60), st.integers(-1, 2**31 - 1))
def test_stamping_replaces_offset_and_epoch_and_keeps_the_crc_right(
    batch: bytes, base_offset: int, leader_epoch: int
) -> None:
    header = stamp_header(batch[:61], base_offset, leader_epoch)

    expected = bytearray(batch[:61])
    struct.pack_into(">q", expected, 0, base_offset)
    struct.pack_into(">i", expected, 12, leader_epoch)
    assert header == expected
    assert check_crc(header + batch[61:])


@given(BATCHES, st.integers(0, 2**60), st.integers(0, 2**60), st.integers(0, 255))
def test_stamping_a_time_changes_time_type_maximum_and_crc_only(
    batch: bytes, base_offset: int, timestamp_ms: int, stray_bits: int
) -> None:
    stray = changed(changed(batch, 21, ">B", stray_bits), 22, ">B", batch[22] | 0x80)
    for stamp, append_time in ((stamp_log_append_time, True), (stamp_create_time, False)):
        header = stamp(stray + b"next batch", base_offset, 3, timestamp_ms)

        read = read_header(header)
        assert read is not None
        assert check_crc(header + batch[61:])
        assert (read.base_offset, read.partition_leader_epoch) == (base_offset, 3)
        assert (read.is_log_append_time, read.max_timestamp_ms) == (append_time, timestamp_ms)
        assert read.attributes | 8 == batch[22] & 0x7F | 8
        assert header[23:35] == batch[23:35]
        assert header[43:] == batch[43:61]


def test_stamping_needs_a_whole_batch_of_magic_2() -> None:
    batch = build_batch([Record(b"k", b"v")])

    with pytest.raises(ValueError, match="header"):
        stamp_header(batch[:60], 0, 0)
    with pytest.raises(ValueError, match="header"):
        stamp_header(changed(batch, 16, ">b", 1), 0, 0)
    with pytest.raises(ValueError, match="whole"):
        stamp_create_time(batch[:-1], 0, 0, 0)
    with pytest.raises(CorruptBatchError):
        stamp_create_time(changed(batch, 16, ">b", 1), 0, 0, 0)
