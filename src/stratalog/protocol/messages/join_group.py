"""JoinGroup (key 11), versions 0 to 9.

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


class JoinGroupRequestProtocol(NamedTuple):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(NamedTuple):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()
    reason: str | None = None


class JoinGroupResponseMember(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()


_pack_t = Struct(">?").pack
_pack_h = Struct(">h").pack
_pack_hih = Struct(">hih").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihi = Struct(">ihi").pack
_pack_ihih = Struct(">ihih").pack
_pack_ii = Struct(">ii").pack
_pack_iih = Struct(">iih").pack
_unpack_tB = Struct(">?B").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hih = Struct(">hih").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihiB = Struct(">ihiB").unpack_from
_unpack_ihih = Struct(">ihih").unpack_from
_unpack_iiB = Struct(">iiB").unpack_from
_unpack_iih = Struct(">iih").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> JoinGroupRequest:
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
    session_timeout_ms, size = _unpack_ih(buffer, position)
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
    if size < 0:
        raise null_field("protocol_type")
    stop = position + size
    if stop > end:
        raise too_long("protocol_type", stop - position, position, end)
    protocol_type = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("protocols")
    if count * 6 > end - position:
        raise too_many("protocols", count, position, end)
    protocols_items: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_i(buffer, position)
        position += 4
        if size < 0:
            raise null_field("metadata")
        stop = position + size
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        protocols_items.append(new(JoinGroupRequestProtocol, (name, metadata)))
    protocols = tuple(protocols_items)
    return new(
        JoinGroupRequest,
        (group_id, session_timeout_ms, -1, member_id, None, protocol_type, protocols, None),
    )


def _decode_request_v1(buffer: bytes, position: int) -> JoinGroupRequest:
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
    session_timeout_ms, rebalance_timeout_ms, size = _unpack_iih(buffer, position)
    position += 10
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("protocols")
    if count * 6 > end - position:
        raise too_many("protocols", count, position, end)
    protocols_items: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_i(buffer, position)
        position += 4
        if size < 0:
            raise null_field("metadata")
        stop = position + size
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        protocols_items.append(new(JoinGroupRequestProtocol, (name, metadata)))
    protocols = tuple(protocols_items)
    return new(
        JoinGroupRequest,
        (
            group_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            member_id,
            None,
            protocol_type,
            protocols,
            None,
        ),
    )


def _decode_request_v5(buffer: bytes, position: int) -> JoinGroupRequest:
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
    session_timeout_ms, rebalance_timeout_ms, size = _unpack_iih(buffer, position)
    position += 10
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
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("protocol_type")
    stop = position + size
    if stop > end:
        raise too_long("protocol_type", stop - position, position, end)
    protocol_type = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("protocols")
    if count * 6 > end - position:
        raise too_many("protocols", count, position, end)
    protocols_items: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (size,) = _unpack_i(buffer, position)
        position += 4
        if size < 0:
            raise null_field("metadata")
        stop = position + size
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        protocols_items.append(new(JoinGroupRequestProtocol, (name, metadata)))
    protocols = tuple(protocols_items)
    return new(
        JoinGroupRequest,
        (
            group_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            member_id,
            group_instance_id,
            protocol_type,
            protocols,
            None,
        ),
    )


def _decode_request_v6(buffer: bytes, position: int) -> JoinGroupRequest:
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
    session_timeout_ms, rebalance_timeout_ms, size = _unpack_iiB(buffer, position)
    position += 9
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
    if not size:
        raise null_field("protocol_type")
    stop = position + size - 1
    if stop > end:
        raise too_long("protocol_type", stop - position, position, end)
    protocol_type = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("protocols")
    if count * 3 > end - position:
        raise too_many("protocols", count, position, end)
    protocols_items: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("name")
        stop = position + size - 1
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("metadata")
        stop = position + size - 1
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        protocols_items.append(new(JoinGroupRequestProtocol, (name, metadata)))
    protocols = tuple(protocols_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        JoinGroupRequest,
        (
            group_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            member_id,
            group_instance_id,
            protocol_type,
            protocols,
            None,
        ),
    )


def _decode_request_v8(buffer: bytes, position: int) -> JoinGroupRequest:
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
    session_timeout_ms, rebalance_timeout_ms, size = _unpack_iiB(buffer, position)
    position += 9
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
    if not size:
        raise null_field("protocol_type")
    stop = position + size - 1
    if stop > end:
        raise too_long("protocol_type", stop - position, position, end)
    protocol_type = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("protocols")
    if count * 3 > end - position:
        raise too_many("protocols", count, position, end)
    protocols_items: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("name")
        stop = position + size - 1
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("metadata")
        stop = position + size - 1
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        protocols_items.append(new(JoinGroupRequestProtocol, (name, metadata)))
    protocols = tuple(protocols_items)
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
    return new(
        JoinGroupRequest,
        (
            group_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            member_id,
            group_instance_id,
            protocol_type,
            protocols,
            reason,
        ),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    group_id, session_timeout_ms, _, member_id, _, protocol_type, protocols, _ = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(session_timeout_ms, len(raw))
    out += raw
    raw = protocol_type.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(protocols))
    for name, metadata in protocols:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(metadata))
        out += metadata
    return out


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        _,
        protocol_type,
        protocols,
        _,
    ) = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_iih(session_timeout_ms, rebalance_timeout_ms, len(raw))
    out += raw
    raw = protocol_type.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(protocols))
    for name, metadata in protocols:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(metadata))
        out += metadata
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        _,
    ) = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_iih(session_timeout_ms, rebalance_timeout_ms, len(raw))
    out += raw
    raw = b"" if group_instance_id is None else group_instance_id.encode()
    out += _pack_h(-1 if group_instance_id is None else len(raw))
    out += raw
    raw = protocol_type.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(protocols))
    for name, metadata in protocols:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(metadata))
        out += metadata
    return out


def _encode_request_v6(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        _,
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
    out += _pack_ii(session_timeout_ms, rebalance_timeout_ms)
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
    raw = protocol_type.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("protocol_type", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    size = len(protocols) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, metadata in protocols:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(metadata) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += metadata
        out.append(0)
    out.append(0)
    return out


def _encode_request_v8(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        reason,
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
    out += _pack_ii(session_timeout_ms, rebalance_timeout_ms)
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
    raw = protocol_type.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("protocol_type", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    size = len(protocols) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, metadata in protocols:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(metadata) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += metadata
        out.append(0)
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
    return out


def _decode_response_v0(buffer: bytes, position: int) -> JoinGroupResponse:
    end = len(buffer)
    error_code, generation_id, size = _unpack_hih(buffer, position)
    position += 8
    if size < 0:
        raise null_field("protocol_name")
    stop = position + size
    if stop > end:
        raise too_long("protocol_name", stop - position, position, end)
    protocol_name = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("leader")
    stop = position + size
    if stop > end:
        raise too_long("leader", stop - position, position, end)
    leader = str(buffer[position:stop], "utf-8", "replace")
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("members")
    if count * 6 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[JoinGroupResponseMember] = []
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
            raise null_field("metadata")
        stop = position + size
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        members_items.append(new(JoinGroupResponseMember, (member_id_2, None, metadata)))
    members = tuple(members_items)
    return new(
        JoinGroupResponse,
        (0, error_code, generation_id, None, protocol_name, leader, False, member_id, members),
    )


def _decode_response_v2(buffer: bytes, position: int) -> JoinGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, generation_id, size = _unpack_ihih(buffer, position)
    position += 12
    if size < 0:
        raise null_field("protocol_name")
    stop = position + size
    if stop > end:
        raise too_long("protocol_name", stop - position, position, end)
    protocol_name = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("leader")
    stop = position + size
    if stop > end:
        raise too_long("leader", stop - position, position, end)
    leader = str(buffer[position:stop], "utf-8", "replace")
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("members")
    if count * 6 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[JoinGroupResponseMember] = []
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
            raise null_field("metadata")
        stop = position + size
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        members_items.append(new(JoinGroupResponseMember, (member_id_2, None, metadata)))
    members = tuple(members_items)
    return new(
        JoinGroupResponse,
        (
            throttle_time_ms,
            error_code,
            generation_id,
            None,
            protocol_name,
            leader,
            False,
            member_id,
            members,
        ),
    )


def _decode_response_v5(buffer: bytes, position: int) -> JoinGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, generation_id, size = _unpack_ihih(buffer, position)
    position += 12
    if size < 0:
        raise null_field("protocol_name")
    stop = position + size
    if stop > end:
        raise too_long("protocol_name", stop - position, position, end)
    protocol_name = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("leader")
    stop = position + size
    if stop > end:
        raise too_long("leader", stop - position, position, end)
    leader = str(buffer[position:stop], "utf-8", "replace")
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
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("members")
    if count * 8 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[JoinGroupResponseMember] = []
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
        (size,) = _unpack_h(buffer, position)
        position += 2
        group_instance_id: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("group_instance_id", stop - position, position, end)
            group_instance_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        (size,) = _unpack_i(buffer, position)
        position += 4
        if size < 0:
            raise null_field("metadata")
        stop = position + size
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        members_items.append(
            new(JoinGroupResponseMember, (member_id_2, group_instance_id, metadata))
        )
    members = tuple(members_items)
    return new(
        JoinGroupResponse,
        (
            throttle_time_ms,
            error_code,
            generation_id,
            None,
            protocol_name,
            leader,
            False,
            member_id,
            members,
        ),
    )


def _decode_response_v6(buffer: bytes, position: int) -> JoinGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, generation_id, size = _unpack_ihiB(buffer, position)
    position += 11
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("protocol_name")
    stop = position + size - 1
    if stop > end:
        raise too_long("protocol_name", stop - position, position, end)
    protocol_name = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("leader")
    stop = position + size - 1
    if stop > end:
        raise too_long("leader", stop - position, position, end)
    leader = str(buffer[position:stop], "utf-8", "replace")
    position = stop
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
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("members")
    if count * 4 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[JoinGroupResponseMember] = []
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
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("metadata")
        stop = position + size - 1
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        members_items.append(
            new(JoinGroupResponseMember, (member_id_2, group_instance_id, metadata))
        )
    members = tuple(members_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        JoinGroupResponse,
        (
            throttle_time_ms,
            error_code,
            generation_id,
            None,
            protocol_name,
            leader,
            False,
            member_id,
            members,
        ),
    )


def _decode_response_v7(buffer: bytes, position: int) -> JoinGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, generation_id, size = _unpack_ihiB(buffer, position)
    position += 11
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
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("leader")
    stop = position + size - 1
    if stop > end:
        raise too_long("leader", stop - position, position, end)
    leader = str(buffer[position:stop], "utf-8", "replace")
    position = stop
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
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("members")
    if count * 4 > end - position:
        raise too_many("members", count, position, end)
    members_items: list[JoinGroupResponseMember] = []
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
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("metadata")
        stop = position + size - 1
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        members_items.append(
            new(JoinGroupResponseMember, (member_id_2, group_instance_id, metadata))
        )
    members = tuple(members_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        JoinGroupResponse,
        (
            throttle_time_ms,
            error_code,
            generation_id,
            protocol_type,
            protocol_name,
            leader,
            False,
            member_id,
            members,
        ),
    )


def _decode_response_v9(buffer: bytes, position: int) -> JoinGroupResponse:
    end = len(buffer)
    throttle_time_ms, error_code, generation_id, size = _unpack_ihiB(buffer, position)
    position += 11
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
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("leader")
    stop = position + size - 1
    if stop > end:
        raise too_long("leader", stop - position, position, end)
    leader = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    skip_assignment, size = _unpack_tB(buffer, position)
    position += 2
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("member_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
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
    members_items: list[JoinGroupResponseMember] = []
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
            size, position = long_length(buffer, position - 1)
        if not size:
            raise null_field("metadata")
        stop = position + size - 1
        if stop > end:
            raise too_long("metadata", stop - position, position, end)
        metadata = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        members_items.append(
            new(JoinGroupResponseMember, (member_id_2, group_instance_id, metadata))
        )
    members = tuple(members_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        JoinGroupResponse,
        (
            throttle_time_ms,
            error_code,
            generation_id,
            protocol_type,
            protocol_name,
            leader,
            skip_assignment,
            member_id,
            members,
        ),
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, error_code, generation_id, _, protocol_name, leader, _, member_id, members = value
    raw = protocol_name.encode()
    out += _pack_hih(error_code, generation_id, len(raw))
    out += raw
    raw = leader.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(members))
    for member_id_2, _, metadata in members:
        raw = member_id_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(metadata))
        out += metadata
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, generation_id, _, protocol_name, leader, _, member_id, members = (
        value
    )
    raw = protocol_name.encode()
    out += _pack_ihih(throttle_time_ms, error_code, generation_id, len(raw))
    out += raw
    raw = leader.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(members))
    for member_id_2, _, metadata in members:
        raw = member_id_2.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(metadata))
        out += metadata
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, generation_id, _, protocol_name, leader, _, member_id, members = (
        value
    )
    raw = protocol_name.encode()
    out += _pack_ihih(throttle_time_ms, error_code, generation_id, len(raw))
    out += raw
    raw = leader.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(members))
    for member_id_2, group_instance_id, metadata in members:
        raw = member_id_2.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = b"" if group_instance_id is None else group_instance_id.encode()
        out += _pack_h(-1 if group_instance_id is None else len(raw))
        out += raw
        out += _pack_i(len(metadata))
        out += metadata
    return out


def _encode_response_v6(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, error_code, generation_id, _, protocol_name, leader, _, member_id, members = (
        value
    )
    out += _pack_ihi(throttle_time_ms, error_code, generation_id)
    raw = protocol_name.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("protocol_name", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    raw = leader.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("leader", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
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
    for member_id_2, group_instance_id, metadata in members:
        raw = member_id_2.encode()
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
        size = len(metadata) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += metadata
        out.append(0)
    out.append(0)
    return out


def _encode_response_v7(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        error_code,
        generation_id,
        protocol_type,
        protocol_name,
        leader,
        _,
        member_id,
        members,
    ) = value
    out += _pack_ihi(throttle_time_ms, error_code, generation_id)
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
    raw = leader.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("leader", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
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
    for member_id_2, group_instance_id, metadata in members:
        raw = member_id_2.encode()
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
        size = len(metadata) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += metadata
        out.append(0)
    out.append(0)
    return out


def _encode_response_v9(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        error_code,
        generation_id,
        protocol_type,
        protocol_name,
        leader,
        skip_assignment,
        member_id,
        members,
    ) = value
    out += _pack_ihi(throttle_time_ms, error_code, generation_id)
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
    raw = leader.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("leader", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_t(skip_assignment)
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
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
    for member_id_2, group_instance_id, metadata in members:
        raw = member_id_2.encode()
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
        size = len(metadata) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += metadata
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], JoinGroupRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v1,
    4: _decode_request_v1,
    5: _decode_request_v5,
    6: _decode_request_v6,
    7: _decode_request_v6,
    8: _decode_request_v8,
    9: _decode_request_v8,
}

ENCODE_REQUEST: dict[int, Callable[[JoinGroupRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v1,
    4: _encode_request_v1,
    5: _encode_request_v5,
    6: _encode_request_v6,
    7: _encode_request_v6,
    8: _encode_request_v8,
    9: _encode_request_v8,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], JoinGroupResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v2,
    5: _decode_response_v5,
    6: _decode_response_v6,
    7: _decode_response_v7,
    8: _decode_response_v7,
    9: _decode_response_v9,
}

ENCODE_RESPONSE: dict[int, Callable[[JoinGroupResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v2,
    5: _encode_response_v5,
    6: _encode_response_v6,
    7: _encode_response_v7,
    8: _encode_response_v7,
    9: _encode_response_v9,
}
