"""FindCoordinator (key 10), versions 0 to 6.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    STRING_BYTES_MAX,
    long_length,
    long_string_length,
    null_field,
    skip_tags,
    string_too_long,
    too_long,
    too_many,
    varint,
)

new = tuple.__new__


class FindCoordinatorRequest(NamedTuple):
    key: str = ""
    key_type: int = 0
    coordinator_keys: Sequence[str] = ()


class Coordinator(NamedTuple):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


class FindCoordinatorResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: Sequence[Coordinator] = ()


_pack_b = Struct(">b").pack
_pack_bx = Struct(">bx").pack
_pack_h = Struct(">h").pack
_pack_hih = Struct(">hih").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihh = Struct(">ihh").pack
_pack_ix = Struct(">ix").pack
_unpack_b = Struct(">b").unpack_from
_unpack_bB = Struct(">bB").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hih = Struct(">hih").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ihh = Struct(">ihh").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> FindCoordinatorRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("key")
    stop = position + size
    if stop > end:
        raise too_long("key", stop - position, position, end)
    key = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    return new(FindCoordinatorRequest, (key, 0, ()))


def _decode_request_v1(buffer: bytes, position: int) -> FindCoordinatorRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("key")
    stop = position + size
    if stop > end:
        raise too_long("key", stop - position, position, end)
    key = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (key_type,) = _unpack_b(buffer, position)
    position += 1
    return new(FindCoordinatorRequest, (key, key_type, ()))


def _decode_request_v3(buffer: bytes, position: int) -> FindCoordinatorRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("key")
    stop = position + size - 1
    if stop > end:
        raise too_long("key", stop - position, position, end)
    key = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    key_type, tags = _unpack_bB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(FindCoordinatorRequest, (key, key_type, ()))


def _decode_request_v4(buffer: bytes, position: int) -> FindCoordinatorRequest:
    end = len(buffer)
    key_type, count = _unpack_bB(buffer, position)
    position += 2
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("coordinator_keys")
    if count > end - position:
        raise too_many("coordinator_keys", count, position, end)
    coordinator_keys_items: list[str] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("item")
        stop = position + size - 1
        if stop > end:
            raise too_long("item", stop - position, position, end)
        item = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        coordinator_keys_items.append(item)
    coordinator_keys = tuple(coordinator_keys_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(FindCoordinatorRequest, ("", key_type, coordinator_keys))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    key, _, _ = value
    raw = key.encode()
    out += _pack_h(len(raw))
    out += raw
    return out


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    key, key_type, _ = value
    raw = key.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_b(key_type)
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    key, key_type, _ = value
    raw = key.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("key", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_bx(key_type)
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    _, key_type, coordinator_keys = value
    out += _pack_b(key_type)
    size = len(coordinator_keys) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in coordinator_keys:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("coordinator_keys", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> FindCoordinatorResponse:
    end = len(buffer)
    error_code, node_id, size = _unpack_hih(buffer, position)
    position += 8
    if size < 0:
        raise null_field("host")
    stop = position + size
    if stop > end:
        raise too_long("host", stop - position, position, end)
    host = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (port,) = _unpack_i(buffer, position)
    position += 4
    return new(FindCoordinatorResponse, (0, error_code, "", node_id, host, port, ()))


def _decode_response_v1(buffer: bytes, position: int) -> FindCoordinatorResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihh(buffer, position)
    position += 8
    error_message: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    node_id, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("host")
    stop = position + size
    if stop > end:
        raise too_long("host", stop - position, position, end)
    host = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (port,) = _unpack_i(buffer, position)
    position += 4
    return new(
        FindCoordinatorResponse,
        (throttle_time_ms, error_code, error_message, node_id, host, port, ()),
    )


def _decode_response_v3(buffer: bytes, position: int) -> FindCoordinatorResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihB(buffer, position)
    position += 7
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    error_message: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    node_id, size = _unpack_iB(buffer, position)
    position += 5
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("host")
    stop = position + size - 1
    if stop > end:
        raise too_long("host", stop - position, position, end)
    host = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    port, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        FindCoordinatorResponse,
        (throttle_time_ms, error_code, error_message, node_id, host, port, ()),
    )


def _decode_response_v4(buffer: bytes, position: int) -> FindCoordinatorResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("coordinators")
    if count * 14 > end - position:
        raise too_many("coordinators", count, position, end)
    coordinators_items: list[Coordinator] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("key")
        stop = position + size - 1
        if stop > end:
            raise too_long("key", stop - position, position, end)
        key = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        node_id, size = _unpack_iB(buffer, position)
        position += 5
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("host")
        stop = position + size - 1
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, error_code, size = _unpack_ihB(buffer, position)
        position += 7
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        error_message: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        coordinators_items.append(
            new(Coordinator, (key, node_id, host, port, error_code, error_message))
        )
    coordinators = tuple(coordinators_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(FindCoordinatorResponse, (throttle_time_ms, 0, "", 0, "", 0, coordinators))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, error_code, _, node_id, host, port, _ = value
    raw = host.encode()
    out += _pack_hih(error_code, node_id, len(raw))
    out += raw
    out += _pack_i(port)
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, error_message, node_id, host, port, _ = value
    raw = b"" if error_message is None else error_message.encode()
    out += _pack_ihh(throttle_time_ms, error_code, -1 if error_message is None else len(raw))
    out += raw
    raw = host.encode()
    out += _pack_ih(node_id, len(raw))
    out += raw
    out += _pack_i(port)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, error_message, node_id, host, port, _ = value
    out += _pack_ih(throttle_time_ms, error_code)
    if error_message is None:
        out.append(0)
    else:
        raw = error_message.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("error_message", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_i(node_id)
    raw = host.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("host", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_ix(port)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, _, _, _, _, _, coordinators = value
    out += _pack_i(throttle_time_ms)
    size = len(coordinators) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for key, node_id, host, port, error_code, error_message in coordinators:
        raw = key.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("key", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_i(node_id)
        raw = host.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("host", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_ih(port, error_code)
        if error_message is None:
            out.append(0)
        else:
            raw = error_message.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("error_message", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], FindCoordinatorRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v4,
}

ENCODE_REQUEST: dict[int, Callable[[FindCoordinatorRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v4,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], FindCoordinatorResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v4,
    6: _decode_response_v4,
}

ENCODE_RESPONSE: dict[int, Callable[[FindCoordinatorResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v4,
    6: _encode_response_v4,
}
