"""InitProducerId (key 22), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    STRING_BYTES_MAX,
    long_string_length,
    skip_tags,
    string_too_long,
    too_long,
    varint,
)

new = tuple.__new__


class InitProducerIdRequest(NamedTuple):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


class InitProducerIdResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ihqh = Struct(">ihqh").pack
_pack_ihqhx = Struct(">ihqhx").pack
_pack_iqhx = Struct(">iqhx").pack
_pack_ix = Struct(">ix").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ihqh = Struct(">ihqh").unpack_from
_unpack_ihqhB = Struct(">ihqhB").unpack_from
_unpack_iqhB = Struct(">iqhB").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> InitProducerIdRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    transactional_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("transactional_id", stop - position, position, end)
        transactional_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    (transaction_timeout_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(InitProducerIdRequest, (transactional_id, transaction_timeout_ms, -1, -1))


def _decode_request_v2(buffer: bytes, position: int) -> InitProducerIdRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    transactional_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("transactional_id", stop - position, position, end)
        transactional_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    transaction_timeout_ms, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(InitProducerIdRequest, (transactional_id, transaction_timeout_ms, -1, -1))


def _decode_request_v3(buffer: bytes, position: int) -> InitProducerIdRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    transactional_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("transactional_id", stop - position, position, end)
        transactional_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    transaction_timeout_ms, producer_id, producer_epoch, tags = _unpack_iqhB(buffer, position)
    position += 15
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        InitProducerIdRequest,
        (transactional_id, transaction_timeout_ms, producer_id, producer_epoch),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, transaction_timeout_ms, _, _ = value
    raw = b"" if transactional_id is None else transactional_id.encode()
    out += _pack_h(-1 if transactional_id is None else len(raw))
    out += raw
    out += _pack_i(transaction_timeout_ms)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, transaction_timeout_ms, _, _ = value
    if transactional_id is None:
        out.append(0)
    else:
        raw = transactional_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("transactional_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_ix(transaction_timeout_ms)
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    transactional_id, transaction_timeout_ms, producer_id, producer_epoch = value
    if transactional_id is None:
        out.append(0)
    else:
        raw = transactional_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("transactional_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_iqhx(transaction_timeout_ms, producer_id, producer_epoch)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> InitProducerIdResponse:
    throttle_time_ms, error_code, producer_id, producer_epoch = _unpack_ihqh(buffer, position)
    position += 16
    return new(InitProducerIdResponse, (throttle_time_ms, error_code, producer_id, producer_epoch))


def _decode_response_v2(buffer: bytes, position: int) -> InitProducerIdResponse:
    throttle_time_ms, error_code, producer_id, producer_epoch, tags = _unpack_ihqhB(
        buffer, position
    )
    position += 17
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(InitProducerIdResponse, (throttle_time_ms, error_code, producer_id, producer_epoch))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, producer_id, producer_epoch = value
    out += _pack_ihqh(throttle_time_ms, error_code, producer_id, producer_epoch)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, producer_id, producer_epoch = value
    out += _pack_ihqhx(throttle_time_ms, error_code, producer_id, producer_epoch)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], InitProducerIdRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
}

ENCODE_REQUEST: dict[int, Callable[[InitProducerIdRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], InitProducerIdResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v2,
    5: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[InitProducerIdResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v2,
    5: _encode_response_v2,
}
