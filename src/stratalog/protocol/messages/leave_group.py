"""LeaveGroup (key 13), versions 0 to 5.

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


class MemberIdentity(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(NamedTuple):
    group_id: str = ""
    member_id: str = ""
    members: Sequence[MemberIdentity] = ()


class MemberResponse(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


class LeaveGroupResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: Sequence[MemberResponse] = ()


_pack_h = Struct(">h").pack
_pack_hx = Struct(">hx").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihi = Struct(">ihi").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ihi = Struct(">ihi").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> LeaveGroupRequest:
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
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    return new(LeaveGroupRequest, (group_id, member_id, ()))


def _decode_request_v3(buffer: bytes, position: int) -> LeaveGroupRequest:
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("members")
    if count * 4 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[MemberIdentity] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
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
        members_items.append(new(MemberIdentity, (member_id, group_instance_id, None)))
    members = tuple(members_items)
    return new(LeaveGroupRequest, (group_id, "", members))


def _decode_request_v4(buffer: bytes, position: int) -> LeaveGroupRequest:
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
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("members")
    if count * 3 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[MemberIdentity] = []
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
        members_items.append(new(MemberIdentity, (member_id, group_instance_id, None)))
    members = tuple(members_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(LeaveGroupRequest, (group_id, "", members))


def _decode_request_v5(buffer: bytes, position: int) -> LeaveGroupRequest:
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
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("members")
    if count * 4 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[MemberIdentity] = []
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
        reason: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("reason", stop - position, position, end)
            reason = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        members_items.append(new(MemberIdentity, (member_id, group_instance_id, reason)))
    members = tuple(members_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(LeaveGroupRequest, (group_id, "", members))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    group_id, member_id, _ = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_h(len(raw))
    out += raw
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    group_id, _, members = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(members))
    for member_id, group_instance_id, _ in members:
        raw = member_id.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = b"" if group_instance_id is None else group_instance_id.encode()
        out += _pack_h(-1 if group_instance_id is None else len(raw))
        out += raw
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    group_id, _, members = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    size = len(members) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for member_id, group_instance_id, _ in members:
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
    out.append(0)
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    group_id, _, members = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    size = len(members) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for member_id, group_instance_id, reason in members:
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
        if reason is None:
            out.append(0)
        else:
            raw = reason.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("reason", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out.append(0)
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> LeaveGroupResponse:
    (error_code,) = _unpack_h(buffer, position)
    position += 2
    return new(LeaveGroupResponse, (0, error_code, ()))


def _decode_response_v1(buffer: bytes, position: int) -> LeaveGroupResponse:
    throttle_time_ms, error_code = _unpack_ih(buffer, position)
    position += 6
    return new(LeaveGroupResponse, (throttle_time_ms, error_code, ()))


def _decode_response_v3(buffer: bytes, position: int) -> LeaveGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihi(buffer, position)
    position += 10
    if count < 0:
        raise null_field("members")
    if count * 6 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[MemberResponse] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
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
        (error_code_2,) = _unpack_h(buffer, position)
        position += 2
        members_items.append(new(MemberResponse, (member_id, group_instance_id, error_code_2)))
    members = tuple(members_items)
    return new(LeaveGroupResponse, (throttle_time_ms, error_code, members))


def _decode_response_v4(buffer: bytes, position: int) -> LeaveGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, count = _unpack_ihB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("members")
    if count * 5 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[MemberResponse] = []
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
        error_code_2, tags = _unpack_hB(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position - 1)
        members_items.append(new(MemberResponse, (member_id, group_instance_id, error_code_2)))
    members = tuple(members_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(LeaveGroupResponse, (throttle_time_ms, error_code, members))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, error_code, _ = value
    out += _pack_h(error_code)
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, _ = value
    out += _pack_ih(throttle_time_ms, error_code)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, members = value
    out += _pack_ihi(throttle_time_ms, error_code, len(members))
    for member_id, group_instance_id, error_code_2 in members:
        raw = member_id.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = b"" if group_instance_id is None else group_instance_id.encode()
        out += _pack_h(-1 if group_instance_id is None else len(raw))
        out += raw
        out += _pack_h(error_code_2)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, members = value
    out += _pack_ih(throttle_time_ms, error_code)
    size = len(members) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for member_id, group_instance_id, error_code_2 in members:
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
        out += _pack_hx(error_code_2)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], LeaveGroupRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v5,
}

ENCODE_REQUEST: dict[int, Callable[[LeaveGroupRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v5,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], LeaveGroupResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v4,
}

ENCODE_RESPONSE: dict[int, Callable[[LeaveGroupResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v4,
}
