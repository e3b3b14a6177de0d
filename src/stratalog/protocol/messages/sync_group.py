"""SyncGroup (key 14), versions 0 to 5.

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


class SyncGroupRequestAssignment(NamedTuple):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(NamedTuple):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[SyncGroupRequestAssignment] = ()


class SyncGroupResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


_pack_h = Struct(">h").pack
_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihi = Struct(">ihi").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ihi = Struct(">ihi").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> SyncGroupRequest:
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("assignments")
    if count * 6 > end - position:
        raise too_many("assignments", count, position, end)
    assignments_items: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("member_id")
        stop = position + size
        if stop > end:
            raise too_long("member_id", stop - position, position, end)
        member_id_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_i(buffer, position)
        position += 4
        if size < 0:
            raise null_field("assignment")
        stop = position + size
        if stop > end:
            raise too_long("assignment", stop - position, position, end)
        assignment = buffer[position:stop]
        position = stop
        assignments_items.append(new(SyncGroupRequestAssignment, (member_id_2, assignment)))
    assignments = tuple(assignments_items)
    return new(
        SyncGroupRequest, (group_id, generation_id, member_id, None, None, None, assignments)
    )


def _decode_request_v3(buffer: bytes, position: int) -> SyncGroupRequest:
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("assignments")
    if count * 6 > end - position:
        raise too_many("assignments", count, position, end)
    assignments_items: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("member_id")
        stop = position + size
        if stop > end:
            raise too_long("member_id", stop - position, position, end)
        member_id_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_i(buffer, position)
        position += 4
        if size < 0:
            raise null_field("assignment")
        stop = position + size
        if stop > end:
            raise too_long("assignment", stop - position, position, end)
        assignment = buffer[position:stop]
        position = stop
        assignments_items.append(new(SyncGroupRequestAssignment, (member_id_2, assignment)))
    assignments = tuple(assignments_items)
    return new(
        SyncGroupRequest,
        (group_id, generation_id, member_id, group_instance_id, None, None, assignments),
    )


def _decode_request_v4(buffer: bytes, position: int) -> SyncGroupRequest:
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
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("assignments")
    if count * 3 > end - position:
        raise too_many("assignments", count, position, end)
    assignments_items: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("member_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("member_id", stop - position, position, end)
        member_id_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("assignment")
        stop = position + size - 1
        if stop > end:
            raise too_long("assignment", stop - position, position, end)
        assignment = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        assignments_items.append(new(SyncGroupRequestAssignment, (member_id_2, assignment)))
    assignments = tuple(assignments_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        SyncGroupRequest,
        (group_id, generation_id, member_id, group_instance_id, None, None, assignments),
    )


def _decode_request_v5(buffer: bytes, position: int) -> SyncGroupRequest:
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
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    protocol_type: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    protocol_name: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_name", stop - position, position, end)
        protocol_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("assignments")
    if count * 3 > end - position:
        raise too_many("assignments", count, position, end)
    assignments_items: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("member_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("member_id", stop - position, position, end)
        member_id_2 = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("assignment")
        stop = position + size - 1
        if stop > end:
            raise too_long("assignment", stop - position, position, end)
        assignment = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        assignments_items.append(new(SyncGroupRequestAssignment, (member_id_2, assignment)))
    assignments = tuple(assignments_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        SyncGroupRequest,
        (
            group_id,
            generation_id,
            member_id,
            group_instance_id,
            protocol_type,
            protocol_name,
            assignments,
        ),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id, member_id, _, _, _, assignments = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id, len(raw))
    out += raw
    out += _pack_i(len(assignments))
    for member_id_2, assignment in assignments:
        raw = member_id_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(assignment))
        out += assignment
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id, member_id, group_instance_id, _, _, assignments = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id, len(raw))
    out += raw
    raw = b"" if group_instance_id is None else group_instance_id.encode()
    out += _pack_h(-1 if group_instance_id is None else len(raw))
    out += raw
    out += _pack_i(len(assignments))
    for member_id_2, assignment in assignments:
        raw = member_id_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(assignment))
        out += assignment
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id, member_id, group_instance_id, _, _, assignments = value
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
    size = len(assignments) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for member_id_2, assignment in assignments:
        raw = member_id_2.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("member_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(assignment) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += assignment
        out.append(0)
    out.append(0)
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        generation_id,
        member_id,
        group_instance_id,
        protocol_type,
        protocol_name,
        assignments,
    ) = value
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
    if protocol_type is None:
        out.append(0)
    else:
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    if protocol_name is None:
        out.append(0)
    else:
        raw = protocol_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    size = len(assignments) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for member_id_2, assignment in assignments:
        raw = member_id_2.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("member_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(assignment) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += assignment
        out.append(0)
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> SyncGroupResponse:
    end = len(buffer)
    error_code, size = _unpack_hi(buffer, position)
    position += 6
    if size < 0:
        raise null_field("assignment")
    stop = position + size
    if stop > end:
        raise too_long("assignment", stop - position, position, end)
    assignment = buffer[position:stop]
    position = stop
    return new(SyncGroupResponse, (0, error_code, None, None, assignment))


def _decode_response_v1(buffer: bytes, position: int) -> SyncGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihi(buffer, position)
    position += 10
    if size < 0:
        raise null_field("assignment")
    stop = position + size
    if stop > end:
        raise too_long("assignment", stop - position, position, end)
    assignment = buffer[position:stop]
    position = stop
    return new(SyncGroupResponse, (throttle_time_ms, error_code, None, None, assignment))


def _decode_response_v4(buffer: bytes, position: int) -> SyncGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihB(buffer, position)
    position += 7
    if size > 127:
        size, position = long_length(buffer, position - 1)
    if not size:
        raise null_field("assignment")
    stop = position + size - 1
    if stop > end:
        raise too_long("assignment", stop - position, position, end)
    assignment = buffer[position:stop]
    position = stop
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(SyncGroupResponse, (throttle_time_ms, error_code, None, None, assignment))


def _decode_response_v5(buffer: bytes, position: int) -> SyncGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihB(buffer, position)
    position += 7
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    protocol_type: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_type", stop - position, position, end)
        protocol_type = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    protocol_name: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_name", stop - position, position, end)
        protocol_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_length(buffer, position - 1)
    if not size:
        raise null_field("assignment")
    stop = position + size - 1
    if stop > end:
        raise too_long("assignment", stop - position, position, end)
    assignment = buffer[position:stop]
    position = stop
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        SyncGroupResponse, (throttle_time_ms, error_code, protocol_type, protocol_name, assignment)
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, error_code, _, _, assignment = value
    out += _pack_hi(error_code, len(assignment))
    out += assignment
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, _, _, assignment = value
    out += _pack_ihi(throttle_time_ms, error_code, len(assignment))
    out += assignment
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, _, _, assignment = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(assignment) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += assignment
    out.append(0)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, protocol_type, protocol_name, assignment = value
    out += _pack_ih(throttle_time_ms, error_code)
    if protocol_type is None:
        out.append(0)
    else:
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    if protocol_name is None:
        out.append(0)
    else:
        raw = protocol_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    size = len(assignment) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += assignment
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], SyncGroupRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v5,
}

ENCODE_REQUEST: dict[int, Callable[[SyncGroupRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v5,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], SyncGroupResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v1,
    4: _decode_response_v4,
    5: _decode_response_v5,
}

ENCODE_RESPONSE: dict[int, Callable[[SyncGroupResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v1,
    4: _encode_response_v4,
    5: _encode_response_v5,
}
