"""What a leader accepts from producers and keeps as it is."""

import pytest
from batch_strategies import RECORDS, changed, resealed
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import (
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    UnsupportedCompressionError,
)
from stratalog.records import (
    Codec,
    ProducedBatches,
    ProduceRules,
    Record,
    TimestampType,
    build_batch,
    lone_batch,
    read_header,
    validate_produced,
)
from stratalog.records._kernels import (
    seal_batch,
    stamp_create_time,
    stamp_header,
    stamp_log_append_time,
)
from stratalog.records.columns import decode_records

NOW_MS = 1_700_000_000_000
ANY_TIME = ProduceRules(after_max_ms=2**62)
CODECS = st.sampled_from(Codec)


def validate(
    records: bytes,
    rules: ProduceRules = ANY_TIME,
    *,
    first_offset: int = 500,
    is_client: bool = True,
) -> ProducedBatches:
    return validate_produced(
        records,
        rules,
        first_offset=first_offset,
        leader_epoch=7,
        now_ms=NOW_MS,
        is_client=is_client,
    )


def stored(produced: ProducedBatches) -> bytes:
    return b"".join(produced.buffers)


def timed(*timestamps_ms: int, **options: object) -> bytes:
    records = [Record(b"key", b"value", (), timestamp_ms) for timestamp_ms in timestamps_ms]
    return build_batch(records, **options)


# --- batches that are stored as they came ---


@given(st.lists(RECORDS, min_size=1, max_size=8), CODECS, st.integers(0, 2**62))
def test_a_good_batch_gets_its_offsets_and_epoch_and_nothing_else(
    records: list[Record], codec: Codec, first_offset: int
) -> None:
    batch = build_batch(records, codec=codec, producer_id=5, producer_epoch=1, base_sequence=9)
    produced = validate(batch, first_offset=first_offset)

    assert stored(produced) == stamp_header(batch, first_offset, 7) + batch[61:]
    assert (produced.log_append_time_ms, produced.rebuilt) == (-1, False)
    assert produced.max_timestamp_ms == max(record.timestamp_ms for record in records)
    assert produced.size_bytes == len(batch)


@given(st.lists(RECORDS, min_size=1, max_size=8), CODECS, st.booleans())
def test_the_header_says_what_will_be_stored(
    records: list[Record], codec: Codec, log_append_time: bool
) -> None:
    rules = ProduceRules(log_append_time=log_append_time, after_max_ms=2**62)
    produced = validate(build_batch(records, codec=codec), rules)
    read = read_header(stored(produced))

    assert repr(produced.header) == repr(read)
    assert read is not None
    assert produced.header.crc == read.crc
    assert [repr(header) for header in produced.headers] == [repr(read)]


@given(st.lists(RECORDS, min_size=1, max_size=8), CODECS)
def test_log_append_time_replaces_type_and_maximum_and_keeps_the_records(
    records: list[Record], codec: Codec
) -> None:
    batch = build_batch(records, codec=codec)
    produced = validate(batch, ProduceRules(log_append_time=True))

    assert stored(produced) == stamp_log_append_time(batch, 500, 7, NOW_MS) + batch[61:]
    assert produced.max_timestamp_ms == produced.log_append_time_ms == NOW_MS
    assert {record.timestamp_ms for record in decode_records(stored(produced))} == {NOW_MS}


@given(CODECS, st.integers(-1, 2**50))
def test_a_wrong_maximum_timestamp_is_corrected_and_the_crc_with_it(
    codec: Codec, claimed_ms: int
) -> None:
    batch = resealed(timed(40, 90, 60, codec=codec), 35, ">q", claimed_ms)
    produced = validate(batch)

    assert produced.max_timestamp_ms == 90
    assert stored(produced) == bytes(stamp_create_time(batch, 500, 7, 90)) + batch[61:]


def test_a_right_maximum_timestamp_leaves_even_unknown_attribute_bits_alone() -> None:
    batch = resealed(timed(40, 90), 21, ">h", 0x1200)

    assert validate(batch).header.attributes == 0x1200
    assert validate(resealed(batch, 35, ">q", 1)).header.attributes == 0


def test_create_time_takes_the_log_append_type_away_if_timestamps_are_in_range() -> None:
    batch = build_batch(
        [Record(b"key", b"value", (), 40)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time_ms=90,
    )
    header = validate(batch).header

    assert (header.is_log_append_time, header.max_timestamp_ms) == (False, 90)


def test_a_batch_cut_at_the_end_of_a_request_is_left_out() -> None:
    batch = timed(1)

    assert stored(validate(batch + batch[:30])) == stored(validate(batch))
    assert stored(validate(batch + batch[:-1])) == stored(validate(batch))


def test_the_body_is_not_copied_unless_it_is_tiny() -> None:
    batch = bytearray(timed(*range(200)))
    _, body = validate(batch).buffers

    assert isinstance(body, memoryview)
    assert body.obj is batch
    (whole,) = validate(timed(1)).buffers
    assert isinstance(whole, bytearray)


# --- rules of a request and of a batch ---


@pytest.mark.parametrize(
    "records",
    [
        b"",
        timed(1)[:-1],
        timed(1) + timed(1),
        timed(1, base_offset=1),
        resealed(timed(1), 23, ">i", -1),
        resealed(timed(1), 23, ">i", 1),
        resealed(timed(1), 57, ">i", 0),
        resealed(timed(1), 57, ">i", -1),
        resealed(timed(1), 57, ">i", 2),
        timed(1, control=True),
        timed(1, producer_id=3, producer_epoch=0),
        build_batch([]),
    ],
    ids=[
        "nothing",
        "only a part",
        "two batches",
        "base offset",
        "negative last offset delta",
        "last offset delta",
        "no records",
        "negative count",
        "count",
        "control",
        "producer id without sequence",
        "empty",
    ],
)
def test_a_request_that_breaks_a_rule_of_batches_is_invalid(records: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        validate(records)


@pytest.mark.parametrize(
    "records",
    [
        changed(timed(1), 17, ">I", 0),
        changed(timed(1), 16, ">b", 3),
        changed(timed(1), 8, ">i", 13),
        changed(timed(1), 8, ">i", 48),
        changed(timed(1), 8, ">i", 2**31 - 1),
        changed(timed(1), 40, ">b", 77),
    ],
    ids=["crc", "magic", "size", "size of v2", "size overflow", "contents"],
)
def test_a_damaged_batch_is_corrupt(records: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        validate(records)


def test_the_base_offset_is_checked_before_size_and_size_before_crc() -> None:
    rules = ProduceRules(max_message_bytes=70)
    broken = changed(timed(1, 2, 3), 17, ">I", 0)

    with pytest.raises(RecordTooLargeError):
        validate(broken, rules)
    with pytest.raises(InvalidRecordError):
        validate(changed(broken, 0, ">q", 1), rules)


def test_a_batch_of_exactly_the_largest_size_is_accepted() -> None:
    batch = timed(1, 2, 3)

    assert validate(batch, ProduceRules(max_message_bytes=len(batch), after_max_ms=2**62))
    with pytest.raises(RecordTooLargeError, match=str(len(batch))):
        validate(batch, ProduceRules(max_message_bytes=len(batch) - 1))


def test_a_codec_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedCompressionError):
        validate(resealed(timed(1), 21, ">h", 5))


def test_coordinators_may_write_control_batches_and_have_them_stored_uncompressed() -> None:
    marker = timed(1, control=True, transactional=True, producer_id=3, producer_epoch=0)
    rules = ProduceRules(codec=Codec.ZSTD, after_max_ms=2**62)
    produced = validate(marker, rules, is_client=False)

    assert stored(produced) == stamp_header(marker, 500, 7) + marker[61:]


@pytest.mark.parametrize("is_client", [True, False])
def test_offsets_stay_below_the_largest_there_is(is_client: bool) -> None:
    with pytest.raises(CorruptBatchError):
        validate(timed(1, 2), first_offset=2**63 - 1, is_client=is_client)


# --- rules of records ---


@pytest.mark.parametrize("codec", Codec)
def test_every_record_without_key_is_named_when_the_topic_is_compacted(codec: Codec) -> None:
    records = [Record(key, b"value") for key in (b"", None, b"key", None)]
    batch = build_batch(records, codec=codec)

    with pytest.raises(InvalidRecordError) as refused:
        validate(batch, ProduceRules(compacted=True))
    assert not isinstance(refused.value, InvalidTimestampError)
    assert [record.index for record in refused.value.rejected] == [1, 3]
    assert validate(batch, ProduceRules()).header.record_count == 4


@pytest.mark.parametrize("codec", Codec)
def test_timestamps_are_allowed_from_before_to_after_now_and_not_a_millisecond_more(
    codec: Codec,
) -> None:
    rules = ProduceRules(before_max_ms=1000, after_max_ms=50)
    accepted = timed(NOW_MS - 1000, NOW_MS + 50, -1, codec=codec)
    refused = timed(NOW_MS, NOW_MS - 1001, NOW_MS + 51, codec=codec)

    assert validate(accepted, rules).max_timestamp_ms == NOW_MS + 50
    with pytest.raises(InvalidTimestampError) as error:
        validate(refused, rules)
    assert [record.index for record in error.value.rejected] == [1, 2]
    assert str(NOW_MS + 51) in error.value.rejected[1].reason
    assert validate(refused, ProduceRules(log_append_time=True, before_max_ms=0, after_max_ms=0))


def test_one_bad_timestamp_among_bad_keys_makes_it_a_timestamp_error() -> None:
    records = [Record(None, b"", (), NOW_MS), Record(b"key", b"", (), 2 * NOW_MS)]

    with pytest.raises(InvalidTimestampError) as refused:
        validate(build_batch(records), ProduceRules(compacted=True))
    assert [record.index for record in refused.value.rejected] == [0, 1]


def test_a_producer_may_not_claim_log_append_time() -> None:
    claimed = build_batch(
        [Record(b"key", b"value")],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time_ms=90,
    )
    unset = resealed(claimed, 35, ">q", -1)

    for batch, rules in [(claimed, ProduceRules(log_append_time=True)), (unset, ANY_TIME)]:
        with pytest.raises(InvalidTimestampError, match="LogAppendTime"):
            validate(batch, rules)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_offset_deltas_must_count_from_zero_only_in_compressed_batches(codec: Codec) -> None:
    records = [Record(b"key", b"value")] * 3
    deltas = [0, 2, 1]
    plain = build_batch(records, offset_deltas=deltas, last_offset_delta=2)
    packed = build_batch(records, offset_deltas=deltas, last_offset_delta=2, codec=codec)

    assert validate(plain).header.last_offset == 502
    assert validate(plain).rebuilt
    with pytest.raises(InvalidRecordError, match="offset deltas"):
        validate(packed)


def around(body: bytes) -> bytes:
    """A batch that claims to hold one record, with a right CRC."""
    return bytes(
        seal_batch(
            body,
            base_offset=0,
            last_offset_delta=0,
            record_count=1,
            attributes=0,
            base_timestamp_ms=5,
            max_timestamp_ms=5,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            partition_leader_epoch=-1,
        )
    )


# length | attributes | timestamp delta | offset delta | key | value | header count | headers
@pytest.mark.parametrize(
    "fields",
    [
        "",
        "80 80 80 80 80 00",
        "01 00 00 00 02 4b 02 56 00",
        "12 00 00 00 02 4b 02 56 00",
        "0e 00 00 00 02 4b 02 56 00",
        "10 00 00 00 40 4b 02 56 00",
        "10 00 00 00 02 4b 40 56 00",
        "10 00 00 00 02 4b 02 56 01",
        "10 00 00 00 02 4b 02 56 02",
        "10 00 00 00 02 4b 02 56 40",
        "14 00 00 00 02 4b 02 56 02 01 01",
        "14 00 00 00 02 4b 02 56 02 40 01",
        "14 00 00 00 02 4b 02 56 02 00 40",
        "16 00 00 00 02 4b 02 56 02 00 01 00",
        "20 00 ff ff ff ff ff ff ff ff ff ff 00 00 01 01 00",
    ],
    ids=[
        "nothing",
        "length of six bytes",
        "negative length",
        "length too long",
        "length too short",
        "key past the end",
        "value past the end",
        "negative header count",
        "header missing",
        "header count beyond the record",
        "header without key",
        "header key past the end",
        "header value past the end",
        "byte left in the record",
        "timestamp delta of eleven bytes",
    ],
)
def test_records_that_do_not_parse_are_invalid(fields: str) -> None:
    with pytest.raises(InvalidRecordError):
        validate(around(bytes.fromhex(fields)))


@pytest.mark.parametrize(
    "fields",
    [
        "10 00 00 00 02 4b 02 56 00",
        "10 ff 00 00 02 4b 02 56 00",
        "0c 00 00 00 05 03 00",
        "16 00 80 00 80 00 02 4b 02 56 80 00",
        "14 00 00 00 02 4b 02 56 02 00 01",
        "1e 00 ff ff ff ff ff ff ff ff ff 7f 00 01 01 00",
    ],
    ids=[
        "plain",
        "attributes",
        "lengths below -1",
        "numbers longer than needed",
        "header of nothing",
        "timestamp delta of ten bytes",
    ],
)
def test_records_that_kafka_reads_are_accepted(fields: str) -> None:
    produced = validate(around(bytes.fromhex(fields)), ProduceRules(log_append_time=True))

    assert produced.header.record_count == 1


def test_bytes_after_the_last_record_are_invalid() -> None:
    batch = timed(1)
    longer = bytearray(batch + b"\0")
    longer[8:12] = (len(longer) - 12).to_bytes(4, "big")

    with pytest.raises(InvalidRecordError, match="remain"):
        validate(resealed(bytes(longer), 57, ">i", 1))


@given(st.lists(RECORDS, min_size=1, max_size=4), CODECS, st.data())
def test_any_damage_behind_a_right_crc_is_an_error_of_ours_or_nothing(
    records: list[Record], codec: Codec, draw: st.DataObject
) -> None:
    batch = build_batch(records, codec=codec)
    at = draw.draw(st.integers(21, len(batch) - 1))
    batch = resealed(batch, at, "B", draw.draw(st.integers(0, 255)))

    try:
        produced = validate(batch, ProduceRules(max_decompressed_bytes=10_000, compacted=True))
    except (CorruptBatchError, InvalidRecordError, RecordTooLargeError):
        return
    except UnsupportedCompressionError:
        assert batch[22] & 7 > 4
        return
    assert read_header(stored(produced)) is not None


def test_decompression_is_bounded_by_the_rules() -> None:
    bomb = build_batch([Record(b"key", bytes(2**24))], codec=Codec.ZSTD)

    assert len(bomb) < 2_000
    with pytest.raises(RecordTooLargeError):
        validate(bomb, ProduceRules(max_decompressed_bytes=2**20))


def test_each_batch_is_held_against_its_own_rules_whichever_were_read_before() -> None:
    keyless = build_batch([Record(None, b"value", (), 1)])
    lax, strict = ANY_TIME, ProduceRules(compacted=True, after_max_ms=2**62)
    for _ in range(2):
        assert validate(keyless, lax)
        with pytest.raises(InvalidRecordError):
            validate(keyless, strict)


# --- what a produce request may hold -----------------------------------------------------------


@given(behind=st.binary(max_size=11), codec=st.sampled_from(Codec))
def test_one_batch_is_measured_whatever_too_few_bytes_follow(behind: bytes, codec: Codec) -> None:
    batch = build_batch([Record(b"k", b"v" * 50, (), 1)], codec=codec)
    assert lone_batch(batch + behind) == (len(batch), codec)


@given(data=st.binary(max_size=80))
def test_of_any_bytes_the_size_is_within_them_or_they_are_refused(data: bytes) -> None:
    try:
        size_bytes, codec = lone_batch(data)
    except (InvalidRecordError, CorruptBatchError):
        return
    assert 26 <= size_bytes <= len(data)
    assert 0 <= codec <= 7


@pytest.mark.parametrize("size_bytes", [0, 11, 12, 16, 17, 60, 75])
def test_less_than_a_batch_is_none(size_bytes: int) -> None:
    batch = timed(1)
    assert size_bytes < len(batch)
    with pytest.raises(InvalidRecordError, match="exactly one batch"):
        lone_batch(batch[:size_bytes])


def test_none_two_and_other_formats_are_refused() -> None:
    batch = timed(1)
    for records in (None, batch + batch):
        with pytest.raises(InvalidRecordError, match="exactly one batch"):
            lone_batch(records)
    for magic in (0, 1):
        with pytest.raises(InvalidRecordError, match=f"not of {magic}"):
            lone_batch(batch[:16] + bytes([magic]) + batch[17:])
    for magic in (3, 255):
        with pytest.raises(CorruptBatchError, match=f"magic {magic}"):
            lone_batch(batch[:16] + bytes([magic]) + batch[17:])
    for length in (13, 0, -1, -(2**31)):
        with pytest.raises(CorruptBatchError, match=f"length {length}"):
            lone_batch(batch[:8] + length.to_bytes(4, "big", signed=True) + batch[12:])
