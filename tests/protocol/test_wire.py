"""Varints and integer arrays: the parts that generated codecs call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.protocol.wire import (
    UNPACK_INT32S,
    Malformed,
    pack_int32s,
    read_varint,
    skip_tags,
    varint,
)

EDGES = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28, 2**31 - 1, 2**32 - 1]


@given(st.sampled_from(EDGES) | st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_a_varint_is_read_back_and_has_seven_bits_a_byte(value: int, rest: bytes) -> None:
    encoded = varint(value)

    assert len(encoded) == max(1, -(-value.bit_length() // 7))
    assert read_varint(encoded + rest, 0) == (value, len(encoded))
    assert read_varint(memoryview(rest + encoded), len(rest))[0] == value


@pytest.mark.parametrize("raw", ["ffffffff10", "ffffffff7f", "8080808080", "ffffffffff01"])
def test_a_varint_of_more_than_32_bits_is_refused(raw: str) -> None:
    with pytest.raises(Malformed):
        read_varint(bytes.fromhex(raw), 0)


@pytest.mark.parametrize("raw", ["01", "0163", "016309aa", "02630163", "ff", "ffffffff0f6300"])
def test_tags_that_do_not_fit_are_refused(raw: str) -> None:
    with pytest.raises((Malformed, IndexError)):
        skip_tags(bytes.fromhex(raw), 0)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
def test_integers_are_packed_big_endian_however_many(values: list[int]) -> None:
    packed = pack_int32s(values)

    assert packed == b"".join(value.to_bytes(4, signed=True) for value in values)
    if len(values) < len(UNPACK_INT32S):
        assert list(UNPACK_INT32S[len(values)](packed, 0)) == values
