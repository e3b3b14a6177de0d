"""Message sets of magic 0 and 1, read as columns."""

import contextlib

import pytest
from batch_strategies import LEGACY_CODECS, LEGACY_RECORDS, changed, resealed_message
from hypothesis import given
from hypothesis import strategies as st
from other_client import LegacyRecordBatchBuilder

from stratalog.errors import CorruptBatchError, RecordTooLargeError, UnsupportedCompressionError
from stratalog.records import Codec, Record, build_batch, compress
from stratalog.records._kernels import COLUMN_NAMES
from stratalog.records.columns import decode_columns, decode_records
from stratalog.testing.legacy import legacy_message, legacy_message_set

MAGICS = st.sampled_from([0, 1])
Rows = list[tuple[bytes | None, bytes | None, int]]


@given(LEGACY_RECORDS, LEGACY_CODECS, MAGICS, st.integers(1, 2**50))
def test_messages_become_records(records: Rows, codec: Codec, magic: int, base_offset: int) -> None:
    messages = legacy_message_set(records, magic=magic, codec=codec, base_offset=base_offset)

    assert decode_records(messages) == [
        (
            base_offset + i,
            timestamp_ms if magic else -1,
            0 if magic else -1,
            key,
            value,
            (),
        )
        for i, (key, value, timestamp_ms) in enumerate(records)
    ]


@given(LEGACY_RECORDS, LEGACY_CODECS, st.integers(1, 2**40))
def test_log_append_time_of_a_wrapper_is_that_of_all_its_messages(
    records: Rows, codec: Codec, appended_ms: int
) -> None:
    messages = legacy_message_set(records, magic=1, codec=codec, log_append_time_ms=appended_ms)

    assert {(r.timestamp_ms, r.timestamp_type) for r in decode_records(messages)} == {
        (appended_ms, 1)
    }


@given(LEGACY_RECORDS, LEGACY_CODECS, MAGICS, st.integers(0, 12), st.integers(0, 12))
def test_offsets_are_cut_inside_a_compressed_message(
    records: Rows, codec: Codec, magic: int, start: int, length: int
) -> None:
    messages = legacy_message_set(records, magic=magic, codec=codec, base_offset=3)
    batch = decode_columns(
        messages, columns=["offset"], start_offset=start, end_offset=start + length
    )

    held = range(3, 3 + len(records))
    assert batch["offset"].to_pylist() == [o for o in held if start <= o < start + length]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5, unique=True), LEGACY_CODECS, MAGICS)
def test_offsets_that_compaction_left_are_kept(deltas: list[int], codec: Codec, magic: int) -> None:
    records = [(b"key", b"value", 5)] * len(deltas)
    messages = legacy_message_set(
        records, magic=magic, codec=codec, base_offset=100, offset_deltas=sorted(deltas)
    )

    assert [record.offset for record in decode_records(messages)] == [
        100 + delta for delta in sorted(deltas)
    ]


def test_batches_of_all_formats_are_read_in_one_run() -> None:
    records = [(b"key", b"value", 5)] * 2
    zero = legacy_message_set(records, magic=0, codec=Codec.GZIP, base_offset=1)
    one = legacy_message_set(records, magic=1, base_offset=3)
    two = build_batch([Record(b"key", b"value", (), 5)], base_offset=5, leader_epoch=9)
    batch = decode_columns(zero + one + two, columns=COLUMN_NAMES, position=50)
    batch.validate(full=True)

    half = len(one) // 2
    places = [50, 50, 50 + len(zero), 50 + len(zero) + half, 50 + len(zero) + len(one)]
    assert batch["offset"].to_pylist() == [1, 2, 3, 4, 5]
    assert batch["batch_position"].to_pylist() == places
    assert batch["batch_base_offset"].to_pylist() == [1, 1, 3, 4, 5]
    assert batch["leader_epoch"].to_pylist() == [-1, -1, -1, -1, 9]
    assert batch["producer_id"].to_pylist() == batch["sequence"].to_pylist() == [-1] * 5
    assert batch["codec"].to_pylist() == [1, 1, 0, 0, 0]
    assert batch["timestamp_type"].to_pylist() == [-1, -1, 0, 0, 0]


@given(LEGACY_RECORDS, MAGICS, st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_another_clients_messages_are_read(records: Rows, magic: int, codec: Codec) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=2**20)
    for i, (key, value, timestamp_ms) in enumerate(records):
        builder.append(i, timestamp=abs(timestamp_ms), key=key, value=value)

    assert [
        (record.offset, record.key, record.value, record.timestamp_ms)
        for record in decode_records(builder.build())
    ] == [
        (i, key, value, abs(timestamp_ms) if magic else -1)
        for i, (key, value, timestamp_ms) in enumerate(records)
    ]


@given(LEGACY_RECORDS, MAGICS)
def test_the_test_writer_writes_what_another_client_writes(records: Rows, magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=0, batch_size=2**20)
    for i, (key, value, timestamp_ms) in enumerate(records):
        builder.append(i, timestamp=abs(timestamp_ms), key=key, value=value)

    rows = [(key, value, abs(timestamp_ms)) for key, value, timestamp_ms in records]
    assert legacy_message_set(rows, magic=magic) == bytes(builder.build())


# --- what is refused ---

PLAIN = legacy_message(b"key", b"value", offset=4, magic=1, timestamp_ms=5)
GZIPPED = legacy_message_set([(b"key", b"value", 5)], magic=1, codec=Codec.GZIP)


def wrapped(inner: bytes, *, offset: int = 0) -> bytes:
    packed = bytes(compress(Codec.GZIP, inner))
    return legacy_message(None, packed, offset=offset, magic=1, attributes=Codec.GZIP)


@pytest.mark.parametrize(
    "messages",
    [
        wrapped(GZIPPED),
        wrapped(b""),
        wrapped(PLAIN, offset=3),
        wrapped(changed(PLAIN, 30, "B", 0)),
        wrapped(resealed_message(PLAIN, 16, "B", 2)),
        wrapped(changed(PLAIN, 8, ">i", 13)),
        resealed_message(PLAIN, 26, ">i", 2**31 - 1),
        resealed_message(PLAIN, 33, ">i", 6),
        legacy_message(None, None, offset=0, magic=1, attributes=Codec.GZIP),
        changed(PLAIN, 30, "B", 0),
    ],
    ids=[
        "nested",
        "empty",
        "offset below the last inner one",
        "inner crc",
        "inner magic",
        "inner size",
        "key past the end",
        "value past the end",
        "no value",
        "crc",
    ],
)
def test_messages_that_contradict_themselves_are_corrupt(messages: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decode_records(messages)


def test_zstd_is_refused() -> None:
    with pytest.raises(UnsupportedCompressionError):
        decode_records(legacy_message(None, b"any", offset=0, magic=1, attributes=Codec.ZSTD))


def test_a_wrapper_with_offset_zero_has_its_messages_count_from_zero() -> None:
    inner = legacy_message(b"a", b"", offset=0, magic=1) + legacy_message(
        b"b", b"", offset=1, magic=1
    )

    assert [record.offset for record in decode_records(wrapped(inner))] == [0, 1]


def test_a_message_cut_at_the_end_of_a_wrapper_ends_it() -> None:
    inner = legacy_message(b"a", b"", offset=0, magic=1)

    assert len(decode_records(wrapped(inner + inner[:-1]))) == 1


def test_any_negative_length_is_null() -> None:
    message = legacy_message(None, None, offset=0, magic=1)

    assert decode_records(resealed_message(message, 26, ">i", -7))[0].key is None


def test_decompressing_is_bounded() -> None:
    bomb = legacy_message_set([(b"key", bytes(2**22), 5)], magic=1, codec=Codec.GZIP)

    with pytest.raises(RecordTooLargeError):
        decode_records(bomb, limit_bytes=2**20)


@given(LEGACY_RECORDS, LEGACY_CODECS, MAGICS, st.data())
def test_any_damage_behind_a_right_crc_is_an_error_of_ours_or_a_valid_batch(
    records: Rows, codec: Codec, magic: int, draw: st.DataObject
) -> None:
    messages = legacy_message_set(records[:1], magic=magic, codec=codec)
    at = draw.draw(st.integers(16, len(messages) - 1))
    messages = resealed_message(messages, at, "B", draw.draw(st.integers(0, 255)))

    with contextlib.suppress(CorruptBatchError, RecordTooLargeError, UnsupportedCompressionError):
        decode_columns(messages, columns=COLUMN_NAMES, limit_bytes=10_000).validate(full=True)
