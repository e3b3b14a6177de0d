"""Heartbeat (key 12), versions 0 to 4.

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


class HeartbeatRequest(NamedTuple):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


class HeartbeatResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihx = Struct(">ihx").pack
_unpack_h = Struct(">h").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> HeartbeatRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("group_id")
    stop = position + size
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    generation_id, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    return new(HeartbeatRequest, (group_id, generation_id, member_id, None))


def _decode_request_v3(buffer: bytes, position: int) -> HeartbeatRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("group_id")
    stop = position + size
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    generation_id, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (size,) = _unpack_h(buffer, position)
    position += 2
    group_instance_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("group_instance_id", stop - position, position, end)
        group_instance_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    return new(HeartbeatRequest, (group_id, generation_id, member_id, group_instance_id))


def _decode_request_v4(buffer: bytes, position: int) -> HeartbeatRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("group_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    generation_id, size = _unpack_iB(buffer, position)
    position += 5
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("member_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    group_instance_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("group_instance_id", stop - position, position, end)
        group_instance_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(HeartbeatRequest, (group_id, generation_id, member_id, group_instance_id))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id, member_id, _ = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id, len(raw))
    out += raw
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id, member_id, group_instance_id = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id, len(raw))
    out += raw
    raw = b"" if group_instance_id is None else group_instance_id.encode()
    out += _pack_h(-1 if group_instance_id is None else len(raw))
    out += raw
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id, member_id, group_instance_id = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(generation_id)
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if group_instance_id is None:
        out.append(0)
    else:
        raw = group_instance_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_instance_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> HeartbeatResponse:
    (error_code,) = _unpack_h(buffer, position)
    position += 2
    return new(HeartbeatResponse, (0, error_code))


def _decode_response_v1(buffer: bytes, position: int) -> HeartbeatResponse:
    throttle_time_ms, error_code = _unpack_ih(buffer, position)
    position += 6
    return new(HeartbeatResponse, (throttle_time_ms, error_code))


def _decode_response_v4(buffer: bytes, position: int) -> HeartbeatResponse:
    throttle_time_ms, error_code, tags = _unpack_ihB(buffer, position)
    position += 7
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(HeartbeatResponse, (throttle_time_ms, error_code))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, error_code = value
    out += _pack_h(error_code)
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code = value
    out += _pack_ih(throttle_time_ms, error_code)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code = value
    out += _pack_ihx(throttle_time_ms, error_code)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], HeartbeatRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
}

ENCODE_REQUEST: dict[int, Callable[[HeartbeatRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], HeartbeatResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v1,
    4: _decode_response_v4,
}

ENCODE_RESPONSE: dict[int, Callable[[HeartbeatResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v1,
    4: _encode_response_v4,
}
