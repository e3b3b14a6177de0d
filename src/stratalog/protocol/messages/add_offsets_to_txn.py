"""AddOffsetsToTxn (key 25), versions 0 to 4.

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


class AddOffsetsToTxnRequest(NamedTuple):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0


_pack_h = Struct(">h").pack
_pack_ih = Struct(">ih").pack
_pack_ihx = Struct(">ihx").pack
_pack_qh = Struct(">qh").pack
_pack_qhh = Struct(">qhh").pack
_unpack_h = Struct(">h").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_qhB = Struct(">qhB").unpack_from
_unpack_qhh = Struct(">qhh").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> AddOffsetsToTxnRequest:
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
    producer_id, producer_epoch, size = _unpack_qhh(buffer, position)
    position += 12
    if size < 0:
        raise null_field("group_id")
    stop = position + size
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    return new(AddOffsetsToTxnRequest, (transactional_id, producer_id, producer_epoch, group_id))


def _decode_request_v3(buffer: bytes, position: int) -> AddOffsetsToTxnRequest:
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
    producer_id, producer_epoch, size = _unpack_qhB(buffer, position)
    position += 11
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("group_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(AddOffsetsToTxnRequest, (transactional_id, producer_id, producer_epoch, group_id))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, producer_id, producer_epoch, group_id = value
    raw = transactional_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = group_id.encode()
    out += _pack_qhh(producer_id, producer_epoch, len(raw))
    out += raw
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, producer_id, producer_epoch, group_id = value
    raw = transactional_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("transactional_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_qh(producer_id, producer_epoch)
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> AddOffsetsToTxnResponse:
    throttle_time_ms, error_code = _unpack_ih(buffer, position)
    position += 6
    return new(AddOffsetsToTxnResponse, (throttle_time_ms, error_code))


def _decode_response_v3(buffer: bytes, position: int) -> AddOffsetsToTxnResponse:
    throttle_time_ms, error_code, tags = _unpack_ihB(buffer, position)
    position += 7
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(AddOffsetsToTxnResponse, (throttle_time_ms, error_code))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code = value
    out += _pack_ih(throttle_time_ms, error_code)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code = value
    out += _pack_ihx(throttle_time_ms, error_code)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], AddOffsetsToTxnRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
}

ENCODE_REQUEST: dict[int, Callable[[AddOffsetsToTxnRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], AddOffsetsToTxnResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
    4: _decode_response_v3,
}

ENCODE_RESPONSE: dict[int, Callable[[AddOffsetsToTxnResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
    4: _encode_response_v3,
}
