"""Rows of Arrow columns become batches."""

import pickle
import subprocess
import sys
from collections.abc import Iterable, Sequence
from mmap import mmap
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from other_client import DefaultRecordBatch
from row_strategies import (
    NOW_MS,
    PLAIN,
    ROWS,
    SHAPES,
    Row,
    Shape,
    arrow_batch,
    arrow_batches,
    expected_batches,
    in_seconds,
)

from stratalog.errors import ConfigError, InvalidColumnError, InvalidRowError
from stratalog.records import Codec, ProduceRules, read_headers, validate_produced
from stratalog.records.columns import decode_columns
from stratalog.records.encoding import BatchEncoder, EncodedBatch

SIZES = st.sampled_from((1, 100, 300, 1000, 10**6))


def by_partition(encoded: Iterable[EncodedBatch]) -> dict[int, list[bytes]]:
    gathered: dict[int, list[bytes]] = {}
    for each in encoded:
        batch = bytes(each.batch)
        assert [header.record_count for header in read_headers(batch)] == [each.record_count]
        gathered.setdefault(each.partition, []).append(batch)
    return gathered


def encode(
    rows: Sequence[Row], shape: Shape = PLAIN, *, partitions: int = 3, **settings: Any
) -> dict[int, list[bytes]]:
    encoder = BatchEncoder(partitions, **settings)
    encoded: list[EncodedBatch] = []
    for batch, numbers in arrow_batches(rows, shape):
        encoded += encoder.add(batch, numbers, now_ms=NOW_MS)
    encoded += encoder.flush()
    assert encoder.rows == len(rows)
    return by_partition(encoded)


def row(value: bytes | None = b"value", **fields: Any) -> Row:
    return Row(
        **{"partition": 0, "key": b"key", "headers": None, "timestamp_us": 5, **fields}, value=value
    )


# --- the bytes -------------------------------------------------------------------------------


@given(st.lists(ROWS, max_size=30), SHAPES, SIZES)
def test_batches_are_byte_for_byte_those_of_the_builder(
    rows: list[Row], shape: Shape, batch_bytes: int
) -> None:
    assert encode(rows, shape, batch_bytes=batch_bytes) == expected_batches(rows, batch_bytes)


@given(st.lists(ROWS, max_size=12), st.sampled_from(Codec), SIZES)
def test_compressed_batches_are_byte_for_byte_those_of_the_builder(
    rows: list[Row], codec: Codec, batch_bytes: int
) -> None:
    encoded = encode(rows, codec=codec, batch_bytes=batch_bytes)

    assert encoded == expected_batches(rows, batch_bytes, codec)


@pytest.mark.parametrize(
    ("codec", "level"), [(Codec.GZIP, 1), (Codec.LZ4, 12), (Codec.ZSTD, 19), (Codec.ZSTD, -5)]
)
def test_the_level_is_obeyed(codec: Codec, level: int) -> None:
    rows = [row(b"level " * 40, key=b"%d" % number) for number in range(50)]

    assert encode(rows, codec=codec, level=level) == expected_batches(rows, 10**6, codec, level)


@given(st.lists(ROWS, max_size=30), st.sampled_from(Codec), SIZES)
def test_decoding_gives_the_rows_of_each_partition_in_their_order(
    rows: list[Row], codec: Codec, batch_bytes: int
) -> None:
    encoded = encode(rows, codec=codec, batch_bytes=batch_bytes)

    for partition in range(3):
        batches = encoded.get(partition, [])
        columns = ("timestamp_ms", "key", "value", "headers")
        found = [
            each for one in batches for each in decode_columns(one, columns=columns).to_pylist()
        ]
        assert found == [
            {
                "timestamp_ms": each.record.timestamp_ms,
                "key": each.key,
                "value": each.value,
                "headers": [{"key": key, "value": value} for key, value in each.headers or ()],
            }
            for each in rows
            if each.partition == partition
        ]


@given(st.lists(ROWS, min_size=1, max_size=20), st.sampled_from(Codec))
def test_a_leader_and_another_client_take_what_was_encoded(rows: list[Row], codec: Codec) -> None:
    rules = ProduceRules(after_max_ms=2**62, before_max_ms=2**62)

    for batches in encode(rows, codec=codec, batch_bytes=500).values():
        for batch in batches:
            validate_produced(batch, rules, first_offset=7, leader_epoch=1, now_ms=NOW_MS)
            other = DefaultRecordBatch(batch)
            assert other.validate_crc()
            assert other.max_timestamp == max(each.timestamp for each in other)


@given(st.lists(ROWS, max_size=20), st.lists(st.integers(1, 7), max_size=4))
def test_how_rows_come_in_batches_of_arrow_changes_nothing(
    rows: list[Row], cuts: list[int]
) -> None:
    whole = encode(rows, batch_bytes=400)

    for cut in cuts:
        assert encode(rows, Shape(rows_a_batch=cut), batch_bytes=400) == whole


# --- where batches end -----------------------------------------------------------------------


def test_a_record_larger_than_a_batch_is_a_batch_of_its_own() -> None:
    rows = [row(b"a"), row(b"b" * 5000), row(b"c"), row(b"d")]

    (batches,) = encode(rows, batch_bytes=1000).values()

    assert [read_headers(batch)[0].record_count for batch in batches] == [1, 1, 2]


def test_a_batch_may_be_exactly_as_large_as_it_is_allowed_to_be() -> None:
    rows = [row(b"a" * 100), row(b"b" * 100)]
    ((whole,),) = encode(rows).values()

    assert len(encode(rows, batch_bytes=len(whole))[0]) == 1
    assert len(encode(rows, batch_bytes=len(whole) - 1)[0]) == 2


def test_what_all_open_batches_hold_is_bounded() -> None:
    encoder = BatchEncoder(100, memory_bytes=20_000)
    for number in range(200):
        encoder.add(*arrow_batch([row(b"v" * 1000, partition=number % 100)]), now_ms=NOW_MS)
        assert encoder._encoder.open_bytes <= 20_000


def test_closing_batches_for_want_of_memory_keeps_all_rows_in_order() -> None:
    rows = [row(b"%d" % number * 50, partition=number % 3) for number in range(300)]

    encoded = encode(rows, memory_bytes=2000)

    for partition, batches in encoded.items():
        found = [each for one in batches for each in decode_columns(one).column("value")]
        assert [each.as_py() for each in found] == [
            each.value for each in rows if each.partition == partition
        ]


def test_an_encoder_that_is_flushed_goes_on_with_new_batches() -> None:
    encoder = BatchEncoder(1)
    batch, numbers = arrow_batch([row()])

    assert encoder.add(batch, numbers, now_ms=NOW_MS) == []
    first = encoder.flush()
    assert encoder.flush() == []
    encoder.add(batch, numbers, now_ms=NOW_MS)
    assert by_partition(encoder.flush()) == by_partition(first)


def test_batches_are_their_own_memory_and_outlive_encoder_and_rows() -> None:
    encoder = BatchEncoder(1, batch_bytes=1)
    (first,) = encoder.add(*arrow_batch([row(b"a"), row(b"b")]), now_ms=NOW_MS)
    del encoder

    assert decode_columns(first.batch).column("value").to_pylist() == [b"a"]
    with pytest.raises(TypeError):
        memoryview(first.batch)[0] = 1


# --- columns ---------------------------------------------------------------------------------


def test_only_a_value_has_to_be_there() -> None:
    encoder = BatchEncoder(1)
    rows = pa.RecordBatch.from_pydict({"value": ["text", None], "topic": ["left", "out"]})

    encoder.add(rows, pa.array([0, 0]), now_ms=NOW_MS)

    (encoded,) = encoder.flush()
    assert decode_columns(encoded.batch, columns=("timestamp_ms", "key", "value")).to_pylist() == [
        {"timestamp_ms": NOW_MS, "key": None, "value": b"text"},
        {"timestamp_ms": NOW_MS, "key": None, "value": None},
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("ms"),
        pa.timestamp("us", "Europe/Paris"),
        pa.timestamp("ns"),
        pa.int64(),
        pa.int32(),
    ],
)
def test_timestamps_of_every_unit_are_rounded_down_to_milliseconds(kind: Any) -> None:
    ticks_a_s = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[getattr(kind, "unit", "ms")]
    stamps = pa.array([0, ticks_a_s, None, 2 * ticks_a_s - 1], pa.int64()).cast(kind)
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b""] * 4), "timestamp": stamps})
    encoder = BatchEncoder(1)

    encoder.add(rows, pa.array([0] * 4), now_ms=NOW_MS)

    (encoded,) = encoder.flush()
    found = decode_columns(encoded.batch).column("timestamp_ms").to_pylist()
    assert found == [0, 1000, NOW_MS, 1000 if ticks_a_s == 1 else 1999]


@given(st.lists(ROWS.map(in_seconds), min_size=1, max_size=10))
def test_values_of_other_layouts_are_cast(rows: list[Row]) -> None:
    batch, numbers = arrow_batch(rows)
    other = batch.set_column(
        batch.schema.get_field_index("value"), "value", batch.column("value").dictionary_encode()
    )
    encoder = BatchEncoder(3)

    encoder.add(other, numbers, now_ms=NOW_MS)

    assert by_partition(encoder.flush()) == encode(rows)


def test_columns_of_nulls_alone_are_taken() -> None:
    nothing = pa.nulls(2)
    rows = pa.RecordBatch.from_pydict(
        {"key": nothing, "value": nothing, "headers": nothing, "timestamp": nothing}
    )
    encoder = BatchEncoder(1)

    encoder.add(rows, pa.array([0, 0]), now_ms=NOW_MS)

    assert by_partition(encoder.flush()) == encode([row(None, key=None, timestamp_us=None)] * 2)


def test_no_rows_are_no_batches() -> None:
    batch, numbers = arrow_batch([row()])
    encoder = BatchEncoder(1)

    assert encoder.add(batch.slice(0, 0), numbers.slice(0, 0), now_ms=NOW_MS) == []
    assert encoder.add(batch.slice(1, 0), numbers.slice(1, 0), now_ms=NOW_MS) == []
    empty = pa.RecordBatch.from_pydict({"value": pa.array([], pa.binary())})
    assert encoder.add(empty, pa.array([], pa.int32()), now_ms=NOW_MS) == []
    assert encoder.flush() == []


@pytest.mark.parametrize(
    ("field", "array"),
    [
        ("value", pa.array([1.5])),
        ("key", pa.array([[b"list"]])),
        ("timestamp", pa.array(["yesterday"])),
        ("headers", pa.array([b"bytes"])),
        ("headers", pa.array([[{"key": "k", "value": 1.5}]])),
    ],
)
def test_a_column_of_a_type_that_cannot_be_taken_is_named(field: str, array: Any) -> None:
    columns = {"value": pa.array([b"v"]), field: array}

    with pytest.raises(InvalidColumnError) as refused:
        BatchEncoder(1).add(pa.RecordBatch.from_pydict(columns), pa.array([0]), now_ms=NOW_MS)

    assert refused.value.field == field
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


# --- rows that are refused -------------------------------------------------------------------


def refusal(rows: Sequence[Row], **settings: Any) -> InvalidRowError:
    """The error for rows that come two at a time."""
    with pytest.raises(InvalidRowError) as refused:
        encode(rows, Shape(rows_a_batch=2), **settings)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    return refused.value


@pytest.mark.parametrize("good_rows", [0, 1, 2, 3, 8])
@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (row(timestamp_us=-1), "timestamp"),
        (row(timestamp_us=-1000), "timestamp"),
        (row(partition=3), "partition"),
        (row(partition=-1), "partition"),
        (row(partition=None), "partition"),
        (row(b"v" * 300), "value"),
        (row(key=b"k" * 300), "value"),
        (row(key=None), "key"),
    ],
)
def test_a_row_that_is_refused_is_named_with_its_field(
    good_rows: int, bad: Row, field: str
) -> None:
    error = refusal([row()] * good_rows + [bad, row()], compacted=True, max_message_bytes=200)

    assert (error.row, error.field) == (good_rows, field)


@pytest.mark.parametrize("off_ms", [-11, 6, -(10**12), 10**12])
def test_a_timestamp_too_far_from_the_time_of_writing_is_refused(off_ms: int) -> None:
    bounds = {"before_max_ms": 10, "after_max_ms": 5}
    good = [row(timestamp_us=(NOW_MS + each) * 1000) for each in (-10, 0, 5)]
    nothing = row(timestamp_us=None)  # is written now

    error = refusal([*good, nothing, row(timestamp_us=(NOW_MS + off_ms) * 1000)], **bounds)

    assert (error.row, error.field) == (4, "timestamp")
    assert f"{NOW_MS + off_ms} ms is outside of {NOW_MS - 10} to {NOW_MS + 5}," in str(error)


def test_bounds_of_timestamps_that_no_clock_reaches_are_none() -> None:
    far = row(timestamp_us=2**62)
    no_limit = {"before_max_ms": 2**63 - 1, "after_max_ms": 2**63 - 1}

    assert encode([far, row(timestamp_us=0)], **no_limit) == encode([far, row(timestamp_us=0)])


def test_a_partition_beyond_any_number_is_not_taken_for_another() -> None:
    batch, _ = arrow_batch([row()])

    with pytest.raises(InvalidRowError):
        BatchEncoder(1).add(batch, pa.array([2**32]), now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("header", "reason"), [(None, "one of them is null"), ({"value": b"v"}, "has no key")]
)
def test_a_header_that_is_null_or_has_no_key_is_refused(header: Any, reason: str) -> None:
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    good = {"key": "k", "value": None}
    headers = pa.array([None, [], [good], [good, header]], pa.list_(pair))
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"v"] * 4), "headers": headers})

    with pytest.raises(InvalidRowError, match=reason) as refused:
        BatchEncoder(1).add(rows, pa.array([0] * 4), now_ms=NOW_MS)

    assert (refused.value.row, refused.value.field) == (3, "headers")


def test_headers_of_null_lists_are_left_out_even_if_they_are_there() -> None:
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    pairs = pa.array([{"key": None, "value": b"hidden"}, {"key": "k", "value": b"v"}], pair)
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pairs, mask=pa.array([True, False])
    )
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"a", b"b"]), "headers": lists})
    encoder = BatchEncoder(1)

    encoder.add(rows, pa.array([0, 0]), now_ms=NOW_MS)

    (encoded,) = encoder.flush()
    found = decode_columns(encoded.batch).column("headers").to_pylist()
    assert found == [[], [{"key": "k", "value": b"v"}]]


@pytest.mark.parametrize("codec", Codec)
def test_batches_keep_to_what_the_topic_takes_even_if_they_could_be_larger(codec: Codec) -> None:
    rows = [row(b"%d" % number * 20) for number in range(100)]

    encoded = encode(rows, codec=codec, batch_bytes=10**6, max_message_bytes=2000)

    assert all(len(batch) <= 2000 for batch in encoded[0])
    assert len(encoded[0]) > 1


def test_a_record_that_fits_when_compressed_is_taken() -> None:
    rows = [row(b"v" * 10_000)]

    assert encode(rows, codec=Codec.ZSTD, max_message_bytes=1000)
    assert refusal(rows, codec=Codec.NONE, max_message_bytes=1000).row == 0


@given(
    st.integers(0, 2**32), st.integers(1000, 5000), st.sampled_from(Codec), st.sampled_from(Codec)
)
def test_rows_that_do_not_compress_fit_in_the_codec_that_was_asked_for_and_in_the_topics(
    seed: int, max_message_bytes: int, codec: Codec, topic_codec: Codec
) -> None:
    random = Random(seed)
    rows = [row(random.randbytes(random.randint(50, 150)), key=None) for _ in range(200)]
    rules = ProduceRules(max_message_bytes=max_message_bytes, codec=topic_codec, after_max_ms=2**62)

    encoded = encode(rows, codec=codec, batch_bytes=10**6, max_message_bytes=max_message_bytes)

    for batch in encoded.get(0, []):
        assert read_headers(batch)[0].codec_id == codec
        validate_produced(batch, rules, first_offset=0, leader_epoch=1, now_ms=NOW_MS)


@pytest.mark.parametrize("codec", Codec)
def test_a_record_that_fits_only_when_it_is_not_compressed_is_not(codec: Codec) -> None:
    rows = [row(Random(7).randbytes(10_000))]
    ((whole,),) = encode(rows).values()

    ((batch,),) = encode(rows, codec=codec, max_message_bytes=len(whole)).values()

    assert batch == whole
    assert refusal(rows, codec=codec, max_message_bytes=len(whole) - 1).row == 0


def test_a_value_that_no_batch_can_hold_is_refused_without_being_read() -> None:
    size = 2**31
    data = pa.py_buffer(mmap(-1, size + 1))
    offsets = pa.array([0, 1, size + 1], pa.int64()).buffers()[1]
    values = pa.Array.from_buffers(pa.large_binary(), 2, [None, offsets, data])
    rows = pa.RecordBatch.from_arrays([values], ["value"])

    with pytest.raises(InvalidRowError, match="more bytes than a batch can hold") as refused:
        BatchEncoder(1).add(rows, pa.array([0, 0]), now_ms=NOW_MS)

    assert (refused.value.row, refused.value.field) == (1, "value")


def test_headers_that_no_batch_can_hold_are_refused_without_being_read() -> None:
    size = 2**30
    data = pa.py_buffer(mmap(-1, 2 * size))
    offsets = pa.array([0, size, 2 * size], pa.int64()).buffers()[1]
    values = pa.Array.from_buffers(pa.large_binary(), 2, [None, offsets, data])
    pairs = pa.StructArray.from_arrays([pa.array(["k", "k"]), values], ["key", "value"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), pairs)
    rows = pa.RecordBatch.from_arrays([pa.array([b"v"]), lists], ["value", "headers"])

    with pytest.raises(InvalidRowError, match="more bytes than a batch can hold"):
        BatchEncoder(1).add(rows, pa.array([0]), now_ms=NOW_MS)


# --- encoders --------------------------------------------------------------------------------


def test_an_encoder_that_has_failed_says_so() -> None:
    encoder = BatchEncoder(1)
    batch, _ = arrow_batch([row()])
    with pytest.raises(InvalidRowError):
        encoder.add(batch, pa.array([7]), now_ms=NOW_MS)

    with pytest.raises(ValueError, match="failed before"):
        encoder.flush()
    with pytest.raises(ValueError, match="failed before"):
        encoder.add(batch, pa.array([0]), now_ms=NOW_MS)


def test_a_level_that_the_codec_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError):
        BatchEncoder(1, codec=Codec.ZSTD, level=99)


def test_records_of_rows_do_not_need_arrow_until_there_are_rows() -> None:
    code = "import stratalog.records.partitioner, sys; sys.exit('pyarrow' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
