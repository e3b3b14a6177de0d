"""ListGroups (key 16), versions 0 to 5.

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


class ListGroupsRequest(NamedTuple):
    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


class ListedGroup(NamedTuple):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: Sequence[ListedGroup] = ()


_pack_h = Struct(">h").pack
_pack_hi = Struct(">hi").pack
_pack_ih = Struct(">ih").pack
_pack_ihi = Struct(">ihi").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hi = Struct(">hi").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ihi = Struct(">ihi").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> ListGroupsRequest:
    return new(ListGroupsRequest, ((), ()))


def _decode_request_v3(buffer: bytes, position: int) -> ListGroupsRequest:
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListGroupsRequest, ((), ()))


def _decode_request_v4(buffer: bytes, position: int) -> ListGroupsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("states_filter")
    if count > end - position:
        raise too_many("states_filter", count, position, end)
    states_filter_items: list[str] = []
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
        states_filter_items.append(item)
    states_filter = tuple(states_filter_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListGroupsRequest, (states_filter, ()))


def _decode_request_v5(buffer: bytes, position: int) -> ListGroupsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("states_filter")
    if count > end - position:
        raise too_many("states_filter", count, position, end)
    states_filter_items: list[str] = []
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
        states_filter_items.append(item)
    states_filter = tuple(states_filter_items)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("types_filter")
    if count > end - position:
        raise too_many("types_filter", count, position, end)
    types_filter_items: list[str] = []
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
        item_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        types_filter_items.append(item_2)
    types_filter = tuple(types_filter_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListGroupsRequest, (states_filter, types_filter))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    _, _ = value
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    _, _ = value
    out.append(0)
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    states_filter, _ = value
    size = len(states_filter) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in states_filter:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("states_filter", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out.append(0)
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    states_filter, types_filter = value
    size = len(states_filter) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in states_filter:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("states_filter", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    size = len(types_filter) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item_2 in types_filter:
        raw = item_2.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("types_filter", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> ListGroupsResponse:
    end = len(buffer)
    error_code, count = _unpack_hi(buffer, position)
    position += 6
    if count < 0:
        raise null_field("groups")
    if count * 4 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[ListedGroup] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("group_id")
        stop = position + size
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("protocol_type")
        stop = position + size
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        groups_items.append(new(ListedGroup, (group_id, protocol_type, "", "")))
    groups = tuple(groups_items)
    return new(ListGroupsResponse, (0, error_code, groups))


def _decode_response_v1(buffer: bytes, position: int) -> ListGroupsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihi(buffer, position)
    position += 10
    if count < 0:
        raise null_field("groups")
    if count * 4 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[ListedGroup] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("group_id")
        stop = position + size
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("protocol_type")
        stop = position + size
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        groups_items.append(new(ListedGroup, (group_id, protocol_type, "", "")))
    groups = tuple(groups_items)
    return new(ListGroupsResponse, (throttle_time_ms, error_code, groups))


def _decode_response_v3(buffer: bytes, position: int) -> ListGroupsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 3 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[ListedGroup] = []
    for _ in range(count):
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
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("protocol_type")
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(new(ListedGroup, (group_id, protocol_type, "", "")))
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListGroupsResponse, (throttle_time_ms, error_code, groups))


def _decode_response_v4(buffer: bytes, position: int) -> ListGroupsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 4 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[ListedGroup] = []
    for _ in range(count):
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
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("protocol_type")
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_state")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_state", stop - position, position, end)
        group_state = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(new(ListedGroup, (group_id, protocol_type, group_state, "")))
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListGroupsResponse, (throttle_time_ms, error_code, groups))


def _decode_response_v5(buffer: bytes, position: int) -> ListGroupsResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 5 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[ListedGroup] = []
    for _ in range(count):
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
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("protocol_type")
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_state")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_state", stop - position, position, end)
        group_state = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_type")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_type", stop - position, position, end)
        group_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(new(ListedGroup, (group_id, protocol_type, group_state, group_type)))
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListGroupsResponse, (throttle_time_ms, error_code, groups))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, error_code, groups = value
    out += _pack_hi(error_code, len(groups))
    for group_id, protocol_type, _, _ in groups:
        raw = group_id.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_type.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, groups = value
    out += _pack_ihi(throttle_time_ms, error_code, len(groups))
    for group_id, protocol_type, _, _ in groups:
        raw = group_id.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_type.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, groups = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, protocol_type, _, _ in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out.append(0)
    out.append(0)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, groups = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, protocol_type, group_state, _ in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = group_state.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_state", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out.append(0)
    out.append(0)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, groups = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, protocol_type, group_state, group_type in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = group_state.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_state", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = group_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], ListGroupsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v5,
}

ENCODE_REQUEST: dict[int, Callable[[ListGroupsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v5,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], ListGroupsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v5,
}

ENCODE_RESPONSE: dict[int, Callable[[ListGroupsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v5,
}
