"""DeleteGroups (key 42), versions 0 to 2.

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


class DeleteGroupsRequest(NamedTuple):
    groups_names: Sequence[str] = ()


class DeletableGroupResult(NamedTuple):
    group_id: str = ""
    error_code: int = 0


class DeleteGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[DeletableGroupResult] = ()


_pack_h = Struct(">h").pack
_pack_hx = Struct(">hx").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> DeleteGroupsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("groups_names")
    if count * 2 > end - position:
        raise too_many("groups_names", count, position, end)
    groups_names_items: list[str] = []
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
        groups_names_items.append(item)
    groups_names = tuple(groups_names_items)
    return new(DeleteGroupsRequest, (groups_names,))


def _decode_request_v2(buffer: bytes, position: int) -> DeleteGroupsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups_names")
    if count > end - position:
        raise too_many("groups_names", count, position, end)
    groups_names_items: list[str] = []
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
        groups_names_items.append(item)
    groups_names = tuple(groups_names_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteGroupsRequest, (groups_names,))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    (groups_names,) = value
    out += _pack_i(len(groups_names))
    for item in groups_names:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    (groups_names,) = value
    size = len(groups_names) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in groups_names:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("groups_names", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> DeleteGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("results")
    if count * 4 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DeletableGroupResult] = []
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
        (error_code,) = _unpack_h(buffer, position)
        position += 2
        results_items.append(new(DeletableGroupResult, (group_id, error_code)))
    results = tuple(results_items)
    return new(DeleteGroupsResponse, (throttle_time_ms, results))


def _decode_response_v2(buffer: bytes, position: int) -> DeleteGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 4 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DeletableGroupResult] = []
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
        error_code, tags = _unpack_hB(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(new(DeletableGroupResult, (group_id, error_code)))
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteGroupsResponse, (throttle_time_ms, results))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_ii(throttle_time_ms, len(results))
    for group_id, error_code in results:
        raw = group_id.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_h(error_code)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_i(throttle_time_ms)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, error_code in results:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_hx(error_code)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DeleteGroupsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[DeleteGroupsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DeleteGroupsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[DeleteGroupsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
}
