"""SaslHandshake (key 17), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import null_field, too_long, too_many

new = tuple.__new__


class SaslHandshakeRequest(NamedTuple):
    mechanism: str = ""


class SaslHandshakeResponse(NamedTuple):
    error_code: int = 0
    mechanisms: Sequence[str] = ()


_pack_h = Struct(">h").pack
_pack_hi = Struct(">hi").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hi = Struct(">hi").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> SaslHandshakeRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("mechanism")
    stop = position + size
    if stop > end:
        raise too_long("mechanism", stop - position, position, end)
    mechanism = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    return new(SaslHandshakeRequest, (mechanism,))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    (mechanism,) = value
    raw = mechanism.encode()
    out += _pack_h(len(raw))
    out += raw
    return out


def _decode_response_v0(buffer: bytes, position: int) -> SaslHandshakeResponse:
    end = len(buffer)
    error_code, count = _unpack_hi(buffer, position)
    position += 6
    if count < 0:
        raise null_field("mechanisms")
    if count * 2 > end - position:
        raise too_many("mechanisms", count, position, end)
    mechanisms_items: list[str] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("item")
        stop = position + size
        if stop > end:
            raise too_long("item", stop - position, position, end)
        item = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        mechanisms_items.append(item)
    mechanisms = tuple(mechanisms_items)
    return new(SaslHandshakeResponse, (error_code, mechanisms))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    error_code, mechanisms = value
    out += _pack_hi(error_code, len(mechanisms))
    for item in mechanisms:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], SaslHandshakeRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
}

ENCODE_REQUEST: dict[int, Callable[[SaslHandshakeRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], SaslHandshakeResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
}

ENCODE_RESPONSE: dict[int, Callable[[SaslHandshakeResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
}
