"""Layouts: what a codec made of one reads, writes and refuses, kind by kind."""

import array
import ctypes
import struct
import tracemalloc
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import ProtocolError
from stratalog.records._kernels import MessageCodec

VARINT_EDGES = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28, 2**31 - 1, 2**32 - 1]


class One(NamedTuple):
    field: Any = None


class Two(NamedTuple):
    name: str = "nobody"
    tagged: Any = 7


def codec_of(
    kind: str, *inner: Any, nullable: int = -1, tag: int = -1, flexible: bool = False
) -> MessageCodec:
    """A codec of a message that has one field."""
    return MessageCodec("one", (One, (kind, 0, 9, nullable, tag, *inner)), 0, is_flexible=flexible)


# --- kinds ------------------------------------------------------------------------------------

KINDS = {
    "int8": ("b", -(2**7), 2**7 - 1),
    "int16": ("h", -(2**15), 2**15 - 1),
    "uint16": ("H", 0, 2**16 - 1),
    "int32": ("i", -(2**31), 2**31 - 1),
    "int64": ("q", -(2**63), 2**63 - 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_big_endian_and_what_does_not_fit_is_refused_by_name(kind: str) -> None:
    letter, low, high = KINDS[kind]
    codec = codec_of(kind)
    for number in {low, low + 1, 0, 1, high - 1, high}:
        raw = struct.pack(f">{letter}", number)
        assert codec.encode(One(number)) == raw
        assert codec.decode(raw) == One(number)
    for number in (low - 1, high + 1, 2**80, -(2**80), None, "1", 1.0):
        with pytest.raises(ProtocolError, match="field is"):
            codec.encode(One(number))


class Index:
    def __index__(self) -> int:
        return 5


def test_what_is_as_good_as_an_integer_is_one() -> None:
    assert codec_of("int16").encode(One(Index())) == b"\0\5"
    assert codec_of("int16").encode(One(True)) == b"\0\1"


def test_floats_booleans_and_ids_are_as_kafka_writes_them() -> None:
    assert codec_of("float64").encode(One(1.5)) == struct.pack(">d", 1.5)
    assert codec_of("float64").decode(struct.pack(">d", -1e300)) == One(-1e300)
    assert codec_of("bool").encode(One(True)) == b"\1"
    assert codec_of("bool").decode(b"\x02").field is True
    assert codec_of("uuid").encode(One(b"u" * 16)) == b"u" * 16
    assert codec_of("uuid").decode(b"u" * 16) == One(b"u" * 16)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("uuid", b"u" * 15),
        ("uuid", "u" * 16),
        ("float64", "1"),
        ("string", b"text"),
        ("string", "\ud800"),
        ("string", "s" * 32_768),
        ("bytes", "bytes"),
        ("string", None),
        ("bytes", None),
        ("[]int32", None),
        ("[]int32", 5),
        ("[]int32", [2**31]),
        ("[]string", [None]),
    ],
)
@pytest.mark.parametrize("flexible", [False, True])
def test_a_value_of_another_kind_is_refused_by_name(kind: str, value: Any, flexible: bool) -> None:
    with pytest.raises(ProtocolError, match=r"^one version 0: field "):
        codec_of(kind, flexible=flexible).encode(One(value))


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
def test_arrays_of_integers_are_packed_however_many(values: list[int]) -> None:
    packed = codec_of("[]int32").encode(One(values))

    assert packed == struct.pack(f">i{len(values)}i", len(values), *values)
    assert codec_of("[]int32").decode(packed) == One(tuple(values))


def test_arrays_too_long_for_their_slots_to_be_made_at_once_are_read() -> None:
    values = tuple(range(5_000))

    assert codec_of("[]int32").decode(codec_of("[]int32").encode(One(values))) == One(values)


def test_elements_that_would_fit_take_memory_only_as_they_are_read() -> None:
    raw = varint(1_000_001) + bytes(1_000_000)  # of which the first is null, and refused
    codec = codec_of("[]string", flexible=True)

    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="field is null"):
            codec.decode(raw)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # their slots would take 8 MB
    finally:
        tracemalloc.stop()


def test_any_sequence_is_an_array_and_any_tuple_a_struct() -> None:
    codec = codec_of("[]struct", (Two, ("string", 0, 9, -1, -1), ("int8", 5, 9, -1, -1)))
    raw = b"\0\0\0\1\0\1a"

    for value in ([Two("a")], (("a", 9),), {"k": ["a", 9]}.values()):
        assert codec.encode(One(value)) == raw
    for wrong in (("a",), ("a", 9, 9), 5, None, object()):
        with pytest.raises(ProtocolError, match=r"is no |is null"):
            codec.encode(One([wrong]))


# --- versions ---------------------------------------------------------------------------------


def test_a_field_is_there_in_its_versions_and_elsewhere_has_its_default() -> None:
    layout = (Two, ("string", 2, 3, 3, -1), ("int8", 0, 9, -1, -1))
    for version, raw, value in (
        (1, b"\5", Two("nobody", 5)),
        (2, b"\0\1a\5", Two("a", 5)),
        (3, b"\xff\xff\5", Two(None, 5)),  # type: ignore[arg-type]
        (4, b"\5", Two("nobody", 5)),
    ):
        codec = MessageCodec("two", layout, version)
        assert codec.encode(value) == raw
        assert codec.decode(raw) == value
    with pytest.raises(ProtocolError, match="name is null"):
        MessageCodec("two", layout, 2).decode(b"\xff\xff\5")


@pytest.mark.parametrize(
    "layout",
    [
        (One,),
        (One, ("int8", 0, 9, -1, -1), ("int8", 0, 9, -1, -1)),
        (dict, ("int8", 0, 9, -1, -1)),
        (One, ("int8", 0, 9, -1, 0)),
        (One, ("struct", 0, 9, -1, -1)),
        (One, ("[]struct", 0, 9, -1, -1, (Two, ("int8", 1, 9, -1, -1), ("int8", 1, 9, -1, -1)))),
        (One, ("[]records", 0, 9, -1, -1)),
        (One, ("int128", 0, 9, -1, -1)),
    ],
)
def test_a_layout_that_would_mislead_is_refused(layout: Any) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        MessageCodec("one", layout, 0)


HAS_RECORDS = (One, ("records", 0, 9, -1, -1))


@pytest.mark.parametrize(
    "field",
    [
        ("records", 0, 9, -1, 0),
        ("struct", 0, 9, -1, 0, HAS_RECORDS),
        ("[]struct", 0, 9, -1, 0, HAS_RECORDS),
        ("struct", 0, 9, -1, 0, (One, ("[]struct", 0, 9, -1, -1, HAS_RECORDS))),
    ],
)
def test_records_in_a_tagged_field_however_deep_are_refused_when_the_codec_is_made(
    field: Any,
) -> None:
    with pytest.raises(ValueError, match="records are in a tagged field"):
        MessageCodec("one", (One, field), 0, is_flexible=True)


# --- varints and tags -------------------------------------------------------------------------


def varint(value: int) -> bytes:
    low = value & 0x7F
    return bytes([low]) if value < 128 else bytes([low | 0x80]) + varint(value >> 7)


NOTHING = MessageCodec("two", (Two, *[("int8", 5, 9, -1, -1)] * 2), 0, is_flexible=True)


@given(st.sampled_from(VARINT_EDGES) | st.integers(0, 2**32 - 1))
def test_a_varint_has_32_bits_and_a_tag_is_one(tag: int) -> None:
    assert NOTHING.decode(b"\1" + varint(tag) + b"\1x") == Two()


@pytest.mark.parametrize("raw", ["ffffffff10", "ffffffff7f", "8080808080", "ffffffffff01"])
def test_a_varint_of_more_than_32_bits_is_refused(raw: str) -> None:
    with pytest.raises(ProtocolError, match="varint of more than"):
        NOTHING.decode(b"\1" + bytes.fromhex(raw) + bytes(9))


@pytest.mark.parametrize("raw", ["", "01", "0163", "016309aa", "02630163", "ff", "ffffffff0f6300"])
def test_tags_that_do_not_fit_are_refused(raw: str) -> None:
    with pytest.raises(ProtocolError, match="tagged field"):
        NOTHING.decode(bytes.fromhex(raw))


def test_more_tags_than_bytes_are_refused_before_any_is_read() -> None:
    with pytest.raises(ProtocolError, match="tagged fields claims 9 elements where 4 bytes"):
        NOTHING.decode(b"\x09\x63\x00\x64\x00")


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 20_000])
def test_a_tagged_field_has_its_size_before_it_however_long(size: int) -> None:
    layout = (Two, ("string", 0, 9, -1, -1), ("bytes", 0, 9, -1, 3))
    codec = MessageCodec("two", layout, 0, is_flexible=True)
    content = varint(size + 1) + b"b" * size
    raw = b"\2a\1\3" + varint(len(content)) + content

    assert codec.encode(Two("a", b"b" * size)) == raw
    assert codec.decode(raw) == Two("a", b"b" * size)


def test_a_tagged_field_is_left_out_where_it_is_the_default_and_the_last_of_two_counts() -> None:
    layout = (Two, ("string", 0, 9, -1, -1), ("int8", 0, 9, -1, 1))
    codec = MessageCodec("two", layout, 0, is_flexible=True)

    assert codec.encode(Two("a")) == b"\2a\0"
    assert codec.encode(Two("a", 8)) == b"\2a\1\1\1\x08"
    assert codec.decode(b"\2a\2\1\1\x08\1\1\x09") == Two("a", 9)


class Listed(NamedTuple):
    field: Any = ()


def test_a_tagged_array_is_left_out_where_it_is_empty_whatever_sequence_it_is() -> None:
    layout = (Listed, ("[]int8", 0, 9, -1, 0))
    codec = MessageCodec("listed", layout, 0, is_flexible=True)

    assert [codec.encode(Listed(empty)) for empty in ((), [], {}.keys())] == [b"\0"] * 3
    assert codec.encode(Listed([5])) == b"\1\0\2\2\5"
    for wrong in (5, None):
        with pytest.raises(ProtocolError, match=r"^listed version 0: field is "):
            codec.encode(Listed(wrong))


# --- frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [-1, 2, 2**60])
def test_a_position_outside_the_frame_is_refused(position: int) -> None:
    with pytest.raises(ProtocolError):
        codec_of("int8").decode(b"a", position)


def test_a_frame_may_be_any_memory_and_records_are_views_of_its_bytes() -> None:
    frame = memoryview(bytearray(b"\0\0\0\2ab__")).cast("i")

    found = codec_of("records").decode(frame).field

    assert (type(found), bytes(found)) == (memoryview, b"ab")


def test_records_have_no_single_buffer() -> None:
    with pytest.raises(ValueError, match="more than one buffer"):
        codec_of("records").encode(One(b"batch"))


class Slice:
    """As of a file: a length, and no bytes to be had without reading."""

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("records", "size_bytes"),
    [
        (b"ab", 2),
        (bytearray(3), 3),
        (Slice(), 2),
        (array.array("i", [1, 2, 3]), 12),
        (memoryview(bytes(12)).cast("i"), 12),
        (memoryview(bytes(12)).cast("B", (3, 4)), 12),
        (memoryview(bytes(4)).cast("i", ()), 4),
        (ctypes.c_int(5), 4),
        (memoryview(b""), 0),
        (memoryview(b"").cast("i"), 0),
    ],
)
def test_records_are_measured_in_bytes(records: Any, size_bytes: int) -> None:
    head, given = codec_of("records").encode_response(1, One(records))

    assert bytes(head)[-4:] == struct.pack(">i", size_bytes)  # type: ignore[call-overload]
    assert len(given) == size_bytes, "which is what the size of the frame is reckoned with"
    assert bytes(head)[:4] == struct.pack(">i", 8 + size_bytes)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "records", [5, "text", [1, 2], (), {1: 2}, {3}, object(), memoryview(b"abcd")[::2]]
)
def test_records_that_are_no_bytes_are_refused(records: Any) -> None:
    with pytest.raises(ProtocolError, match=r"field is .*(neither bytes|not in one place)"):
        codec_of("records").encode_response(1, One(records))


# --- how much a message may name --------------------------------------------------------------


class Nested(NamedTuple):
    names: Any = ()
    tagged: Any = ()


def nested(elements_max: int | None) -> MessageCodec:
    inner = (Listed, ("[]int8", 0, 9, -1, -1))
    layout = (Nested, ("[]struct", 0, 9, -1, -1, inner), ("[]string", 0, 9, -1, 0))
    return MessageCodec("nested", layout, 0, is_flexible=True, elements_max=elements_max)


SEVEN_THINGS = Nested((Listed((1, 2)), Listed((3,))), ("a", "b"))


def test_the_elements_of_all_arrays_are_counted_together() -> None:
    raw = nested(None).encode(SEVEN_THINGS)

    assert nested(7).decode(raw) == nested(None).decode(raw) == SEVEN_THINGS
    with pytest.raises(ProtocolError, match="with tagged it names 7 things; at most 6 are taken"):
        nested(6).decode(raw)
    with pytest.raises(ProtocolError, match="with field it names 4 things; at most 3 are taken"):
        nested(3).decode(raw)


def test_each_message_is_counted_from_nothing() -> None:
    codec, raw = nested(7), nested(None).encode(SEVEN_THINGS)

    assert [codec.decode(raw) for _ in range(3)] == [SEVEN_THINGS] * 3


def test_an_array_of_too_many_elements_is_refused_before_it_is_made() -> None:
    raw = varint(1_000_001) + b"\1\0" * 1_000_000 + b"\0"
    codec = nested(50_000)

    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="names 1000000 things"):
            codec.decode(raw)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


# --- text that is not UTF-8 -------------------------------------------------------------------

MOST = 0x7FFF


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize(
    ("raw", "text_bytes"),
    [
        (b"x" * MOST, MOST),
        ("\u20ac".encode() * (MOST // 3), MOST - 1),
        (b"\xff" * (MOST // 3), MOST - 1),
        (b"x" * (MOST - 3) + b"\xff", MOST),
    ],
)
def test_text_is_read_if_it_can_be_written_again(
    raw: bytes, text_bytes: int, flexible: bool
) -> None:
    codec = codec_of("string", flexible=flexible)
    size = varint(len(raw) + 1) if flexible else struct.pack(">h", len(raw))

    found = codec.decode(size + raw + b"\0")

    assert found.field == raw.decode(errors="replace")
    assert len(found.field.encode()) == text_bytes
    assert codec.decode(codec.encode(found)) == found


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize(
    "raw", [b"\xff" * (MOST // 3 + 1), b"\xff" * MOST, b"x" * (MOST - 2) + b"\xff"]
)
def test_text_that_could_not_be_written_again_is_refused(raw: bytes, flexible: bool) -> None:
    size = varint(len(raw) + 1) if flexible else struct.pack(">h", len(raw))

    with pytest.raises(ProtocolError, match=r"field has .* over the limit of 32767"):
        codec_of("string", flexible=flexible).decode(size + raw + b"\0")
