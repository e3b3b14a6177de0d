"""Bytes from anybody: every message is refused with ProtocolError or is a message, at no cost."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio_messages import EVERY_LAYOUT, full_entity, kio_encoded, schema, settled, varint

from stratalog.errors import ProtocolError
from stratalog.protocol.codec import decode_request, decode_request_header, decode_response
from stratalog.protocol.messages.index import CODECS

every_layout = pytest.mark.parametrize(("side", "api_key", "version"), EVERY_LAYOUT)
MUTATIONS = 100_000 if settings.get_current_profile_name() == "deep" else 800


def full_body(side: str, api_key: int, version: int) -> bytes:
    return kio_encoded(full_entity(schema(side, api_key, version)))


def decode_body(side: str, api_key: int, version: int, body: bytes) -> object:
    if side == "request":
        return decode_request(api_key, version, body)
    first_flexible = CODECS[api_key].first_flexible_version
    is_flexible = first_flexible is not None and version >= first_flexible and api_key != 18
    return decode_response(api_key, version, bytes(5 if is_flexible else 4) + body)


def is_refused(side: str, api_key: int, version: int, body: bytes) -> bool:
    """Whether ``body`` is refused, by the one exception that may be."""
    try:
        decode_body(side, api_key, version, body)
    except ProtocolError:
        return True
    return False


@contextmanager
def memory_below(limit_bytes: int) -> Iterator[None]:
    gc.collect()  # what earlier tests left is not ours, and its collection is not either
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit_bytes
    finally:
        tracemalloc.stop()


@every_layout
def test_a_message_cut_anywhere_is_refused(side: str, api_key: int, version: int) -> None:
    body = full_body(side, api_key, version)

    assert not is_refused(side, api_key, version, body)
    assert [n for n in range(len(body)) if not is_refused(side, api_key, version, body[:n])] == []


@every_layout
def test_bytes_after_a_message_change_nothing(side: str, api_key: int, version: int) -> None:
    body = full_body(side, api_key, version)

    alone = settled(decode_body(side, api_key, version, body))
    assert settled(decode_body(side, api_key, version, body + b"\xffmore")) == alone


HUGE = [
    bytes.fromhex("7fffffff"),
    bytes.fromhex("80000000"),
    varint(2**31 - 1),
    bytes.fromhex("ffffffffff"),
]


@every_layout
def test_no_length_wherever_it_stands_costs_memory(side: str, api_key: int, version: int) -> None:
    body = full_body(side, api_key, version)
    decode_body(side, api_key, version, body)  # imports what there is to import

    with memory_below(1 << 20):  # the lengths promise 2 GiB; other threads allocate a little, too
        for position in range(len(body)):
            for huge in HUGE:
                hostile = body[:position] + huge + body[position + len(huge) :]
                is_refused(side, api_key, version, hostile)


@settings(max_examples=MUTATIONS)
@given(st.sampled_from(EVERY_LAYOUT), st.data())
def test_mutated_messages_are_refused_or_are_messages(
    message: tuple[str, int, int], data: st.DataObject
) -> None:
    body = bytearray(full_body(*message))
    edits = st.tuples(st.integers(0, max(len(body) - 1, 0)), st.binary(max_size=5), st.booleans())
    for position, raw, is_inserted in data.draw(st.lists(edits, min_size=1, max_size=4)):
        body[position : position if is_inserted else position + len(raw)] = raw

    is_refused(*message, bytes(body))


@given(st.binary(max_size=40))
def test_a_request_header_of_any_bytes_is_refused_or_is_a_header(raw: bytes) -> None:
    try:
        header, position = decode_request_header(raw)
    except ProtocolError:
        return
    assert position <= len(raw)
    assert raw.startswith(header.api_key.to_bytes(2, signed=True))


def test_an_error_says_which_message_and_where() -> None:
    body = full_body("request", 3, 12)

    with pytest.raises(ProtocolError) as raised:
        decode_request(3, 12, body[:1] + varint(9_999) + body[2:])

    assert raised.value.api == "metadata request"
    assert raised.value.version == 12
    assert 0 < raised.value.position < len(body)
    assert str(raised.value.position) in str(raised.value)
