"""Batches that a leader encodes anew: another codec, or messages of magic 0 and 1."""

import pytest
from batch_strategies import (
    LEGACY_CODECS,
    LEGACY_RECORDS,
    RECORDS,
    resealed,
    resealed_message,
)
from hypothesis import given
from hypothesis import strategies as st
from other_client import DefaultRecordBatch
from test_validation import NOW_MS, stored, validate

from stratalog.errors import (
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    UnsupportedCompressionError,
)
from stratalog.records import (
    Codec,
    ProduceRules,
    Record,
    TimestampType,
    build_batch,
    check_crc,
    compress,
)
from stratalog.records._kernels import encode_records
from stratalog.records.columns import decode_records
from stratalog.testing.legacy import legacy_message, legacy_message_set

CODECS = st.sampled_from(Codec)


def rules_for(codec: Codec | None, **options: int) -> ProduceRules:
    return ProduceRules(codec=codec, after_max_ms=2**62, **options)


@given(st.lists(RECORDS, min_size=1, max_size=6), CODECS, CODECS, st.booleans())
def test_another_codec_keeps_every_record(
    records: list[Record], source: Codec, target: Codec, log_append_time: bool
) -> None:
    rules = ProduceRules(codec=target, after_max_ms=2**62, log_append_time=log_append_time)
    batch = build_batch(records, codec=source)
    produced = validate(batch, rules)

    assert produced.rebuilt == (source is not target)
    assert check_crc(stored(produced))
    assert produced.header.codec_id == target
    assert produced.header.is_log_append_time == log_append_time
    assert [
        (record.offset, record.key, record.value, record.headers, record.timestamp_ms)
        for record in decode_records(stored(produced))
    ] == [
        (
            500 + i,
            record.key,
            record.value,
            tuple(record.headers),
            NOW_MS if log_append_time else record.timestamp_ms,
        )
        for i, record in enumerate(records)
    ]


@given(st.lists(RECORDS, min_size=1, max_size=6), st.booleans())
def test_a_rebuilt_batch_is_what_a_builder_would_have_made(
    records: list[Record], transactional: bool
) -> None:
    options = {
        "producer_id": 9,
        "producer_epoch": 3,
        "base_sequence": 11,
        "transactional": transactional,
    }
    produced = validate(build_batch(records, codec=Codec.ZSTD, **options), rules_for(Codec.NONE))

    expected = build_batch(records, base_offset=500, leader_epoch=7, **options)
    assert stored(produced) == expected


def test_numbers_longer_than_needed_and_stray_bits_do_not_survive() -> None:
    plain = build_batch([Record(None, b"V", [("h", None)], 5)])
    # attributes 0x7f, offset delta 9, null lengths -3, everything in more bytes than needed
    body = bytes.fromhex("26 7f 8000 92 00 8500 8200 56 8200 8200 68 8500".replace(" ", ""))
    body = bytes([2 * (len(body) - 1)]) + body[1:]
    odd = bytearray(plain[:61] + body)
    odd[8:12] = (len(odd) - 12).to_bytes(4, "big")
    odd = bytearray(resealed(bytes(odd), 21, ">h", 0x1000))
    expected = build_batch([Record(None, b"V", [("h", None)], 5)], base_offset=500, leader_epoch=7)

    packed = validate(bytes(odd), rules_for(Codec.GZIP))
    plain_again = validate(resealed_base(stored(packed)), rules_for(Codec.NONE))
    assert stored(plain_again) == expected


def resealed_base(batch: bytes) -> bytes:
    """A stored batch as a producer would send it."""
    return bytes(8) + batch[8:]


def test_a_rebuilt_batch_takes_log_append_time_as_the_timestamp_of_each_record() -> None:
    batch = build_batch(
        [Record(b"a", b"", (), 1), Record(b"b", b"", (), 2)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time_ms=90,
    )
    produced = validate(batch, rules_for(Codec.GZIP))

    assert [record.timestamp_ms for record in decode_records(stored(produced))] == [90, 90]


def test_a_rebuilt_batch_is_measured_again() -> None:
    batch = build_batch([Record(b"key", bytes(5_000))], codec=Codec.ZSTD)

    assert validate(batch, rules_for(None, max_message_bytes=200))
    with pytest.raises(RecordTooLargeError, match="rebuilt"):
        validate(batch, rules_for(Codec.NONE, max_message_bytes=200))


def test_the_rules_of_records_hold_for_rebuilt_batches_too() -> None:
    batch = build_batch([Record(None, b"", (), 5), Record(b"key", b"", (), NOW_MS)])

    with pytest.raises(InvalidRecordError) as refused:
        validate(batch, ProduceRules(codec=Codec.GZIP, compacted=True))
    assert [record.index for record in refused.value.rejected] == [0]
    with pytest.raises(InvalidTimestampError) as refused:
        validate(batch, ProduceRules(codec=Codec.GZIP, before_max_ms=9))
    assert [record.index for record in refused.value.rejected] == [0]


def test_a_negative_timestamp_cannot_be_encoded_anew() -> None:
    body = encode_records([b"key"], [b"value"], [()], [-7], 0)
    batch = bytearray(build_batch([Record(b"key", b"value", (), 0)])[:61] + bytes(body))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    negative = resealed(bytes(batch), 35, ">q", -1)

    assert validate(negative).max_timestamp_ms == -1
    with pytest.raises(InvalidTimestampError, match="negative"):
        validate(negative, rules_for(Codec.GZIP))


def test_another_client_reads_the_rebuilt_batch() -> None:
    records = [Record(b"key", b"value", [("h", b"1"), ("n", None)], 5 + i) for i in range(3)]
    produced = validate(build_batch(records), rules_for(Codec.GZIP))
    batch = DefaultRecordBatch(bytearray(stored(produced)))

    assert batch.validate_crc()
    assert [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in batch
    ] == [(500 + i, 5 + i, b"key", b"value", [("h", b"1"), ("n", None)]) for i in range(3)]


# --- messages of magic 0 and 1 ---


@given(LEGACY_RECORDS, LEGACY_CODECS, st.sampled_from([0, 1]), CODECS | st.none())
def test_legacy_messages_are_stored_as_one_v2_batch(
    records: list[tuple[bytes | None, bytes | None, int]],
    source: Codec,
    magic: int,
    target: Codec | None,
) -> None:
    messages = legacy_message_set(records, magic=magic, codec=source)
    produced = validate(messages, rules_for(target))

    assert (produced.header.magic, produced.rebuilt) == (2, True)
    assert produced.header.codec_id == (source if target is None else target)
    assert (produced.header.base_offset, produced.header.partition_leader_epoch) == (500, 7)
    assert [
        (record.offset, record.key, record.value, record.timestamp_ms)
        for record in decode_records(stored(produced))
    ] == [
        (500 + i, key, value, timestamp_ms if magic else -1)
        for i, (key, value, timestamp_ms) in enumerate(records)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_wrong_inner_offsets_of_old_clients_are_repaired(magic: int) -> None:
    records = [(b"key", b"value", 5)] * 3
    messages = legacy_message_set(records, magic=magic, codec=Codec.GZIP, offset_deltas=[0, 0, 0])
    produced = validate(messages, rules_for(None))

    assert [record.offset for record in decode_records(stored(produced))] == [500, 501, 502]


GZIPPED = legacy_message_set([(b"key", b"value", 5)], magic=1, codec=Codec.GZIP)
PLAIN = legacy_message_set([(b"key", b"value", 5)], magic=1)


def wrapped(inner: bytes, *, magic: int = 1, codec: Codec = Codec.SNAPPY, offset: int = 0) -> bytes:
    packed = bytes(compress(codec, inner, magic=magic))
    return legacy_message(None, packed, offset=offset, magic=magic, attributes=codec)


@pytest.mark.parametrize(
    "messages",
    [
        PLAIN + legacy_message_set([(b"key", b"value", 5)], magic=0),
        PLAIN + build_batch([Record(b"key", b"value")]),
        GZIPPED + GZIPPED,
        PLAIN + GZIPPED,
        wrapped(GZIPPED),
        wrapped(b""),
        wrapped(legacy_message_set([(b"key", b"value", 5)], magic=0), magic=1),
        wrapped(legacy_message(b"key", b"value", offset=9, magic=1), offset=5),
        resealed_message(PLAIN, 26, ">i", 99),
    ],
    ids=[
        "magic 0 after 1",
        "magic 2 after 1",
        "two compressed",
        "compressed among others",
        "nested",
        "empty",
        "inner magic",
        "inner offset above the wrapper's",
        "key length",
    ],
)
def test_a_message_set_that_breaks_a_rule_is_invalid(messages: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        validate(messages, rules_for(None))


@pytest.mark.parametrize(
    "messages",
    [
        PLAIN[:-1] + b"X",
        wrapped(PLAIN[:-1] + b"X"),
        legacy_message(None, None, offset=0, magic=1, attributes=Codec.GZIP),
        legacy_message(None, b"not gzip", offset=0, magic=1, attributes=Codec.GZIP),
    ],
    ids=["crc", "inner crc", "no value", "not the codec"],
)
def test_a_damaged_message_set_is_corrupt(messages: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        validate(messages, rules_for(None))


def test_zstd_is_not_allowed_in_legacy_messages() -> None:
    message = legacy_message(None, b"any", offset=0, magic=1, attributes=Codec.ZSTD)

    with pytest.raises(UnsupportedCompressionError):
        validate(message, rules_for(None))


def test_the_rules_of_records_hold_for_legacy_messages_too() -> None:
    records = [(b"key", b"", 5), (None, b"", 5), (b"key", b"", NOW_MS)]

    for codec in (Codec.NONE, Codec.LZ4):
        messages = legacy_message_set(records, magic=1, codec=codec)
        with pytest.raises(InvalidRecordError) as refused:
            validate(messages, ProduceRules(compacted=True))
        assert [record.index for record in refused.value.rejected] == [1]
        with pytest.raises(InvalidTimestampError):
            validate(messages, ProduceRules(before_max_ms=9))


def test_a_legacy_producer_may_not_claim_log_append_time() -> None:
    for codec in (Codec.NONE, Codec.GZIP):
        messages = legacy_message_set(
            [(b"key", b"", 5)], magic=1, codec=codec, log_append_time_ms=9
        )
        with pytest.raises(InvalidTimestampError, match="LogAppendTime"):
            validate(messages, ProduceRules(log_append_time=True))


def test_decompressing_a_legacy_message_is_bounded_by_the_rules() -> None:
    bomb = legacy_message_set([(b"key", bytes(2**22), 5)], magic=1, codec=Codec.GZIP)

    with pytest.raises(RecordTooLargeError):
        validate(bomb, rules_for(None, max_decompressed_bytes=2**20))
