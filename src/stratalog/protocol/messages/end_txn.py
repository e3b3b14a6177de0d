"""EndTxn (key 26), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    STRING_BYTES_MAX,
    long_string_length,
    null_field,
    skip_tags,
    string_too_long,
    too_long,
    varint,
)

new = tuple.__new__


class EndTxnRequest(NamedTuple):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


class EndTxnResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


_pack_h = Struct(">h").pack
_pack_ih = Struct(">ih").pack
_pack_ihqhx = Struct(">ihqhx").pack
_pack_ihx = Struct(">ihx").pack
_pack_qht = Struct(">qh?").pack
_pack_qhtx = Struct(">qh?x").pack
_unpack_h = Struct(">h").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ihqhB = Struct(">ihqhB").unpack_from
_unpack_qht = Struct(">qh?").unpack_from
_unpack_qhtB = Struct(">qh?B").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> EndTxnRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("transactional_id")
    stop = position + size
    if stop > end:
        raise too_long("transactional_id", stop - position, position, end)
    transactional_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    producer_id, producer_epoch, committed = _unpack_qht(buffer, position)
    position += 11
    return new(EndTxnRequest, (transactional_id, producer_id, producer_epoch, committed))


def _decode_request_v3(buffer: bytes, position: int) -> EndTxnRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("transactional_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("transactional_id", stop - position, position, end)
    transactional_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    producer_id, producer_epoch, committed, tags = _unpack_qhtB(buffer, position)
    position += 12
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(EndTxnRequest, (transactional_id, producer_id, producer_epoch, committed))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, producer_id, producer_epoch, committed = value
    raw = transactional_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_qht(producer_id, producer_epoch, committed)
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, producer_id, producer_epoch, committed = value
    raw = transactional_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("transactional_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_qhtx(producer_id, producer_epoch, committed)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> EndTxnResponse:
    throttle_time_ms, error_code = _unpack_ih(buffer, position)
    position += 6
    return new(EndTxnResponse, (throttle_time_ms, error_code, -1, -1))


def _decode_response_v3(buffer: bytes, position: int) -> EndTxnResponse:
    throttle_time_ms, error_code, tags = _unpack_ihB(buffer, position)
    position += 7
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(EndTxnResponse, (throttle_time_ms, error_code, -1, -1))


def _decode_response_v5(buffer: bytes, position: int) -> EndTxnResponse:
    throttle_time_ms, error_code, producer_id, producer_epoch, tags = _unpack_ihqhB(
        buffer, position
    )
    position += 17
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(EndTxnResponse, (throttle_time_ms, error_code, producer_id, producer_epoch))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, _, _ = value
    out += _pack_ih(throttle_time_ms, error_code)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, _, _ = value
    out += _pack_ihx(throttle_time_ms, error_code)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, producer_id, producer_epoch = value
    out += _pack_ihqhx(throttle_time_ms, error_code, producer_id, producer_epoch)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], EndTxnRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
}

ENCODE_REQUEST: dict[int, Callable[[EndTxnRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], EndTxnResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
}

ENCODE_RESPONSE: dict[int, Callable[[EndTxnResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
}
