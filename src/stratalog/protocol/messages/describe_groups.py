"""DescribeGroups (key 15), versions 0 to 6.

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


class DescribeGroupsRequest(NamedTuple):
    groups: Sequence[str] = ()
    include_authorized_operations: bool = False


class DescribedGroupMember(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: int = -2147483648


class DescribeGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


_pack_t = Struct(">?").pack
_pack_tx = Struct(">?x").pack
_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_pack_ix = Struct(">ix").pack
_unpack_t = Struct(">?").unpack_from
_unpack_tB = Struct(">?B").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> DescribeGroupsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("groups")
    if count * 2 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[str] = []
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
        groups_items.append(item)
    groups = tuple(groups_items)
    return new(DescribeGroupsRequest, (groups, False))


def _decode_request_v3(buffer: bytes, position: int) -> DescribeGroupsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("groups")
    if count * 2 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[str] = []
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
        groups_items.append(item)
    groups = tuple(groups_items)
    (include_authorized_operations,) = _unpack_t(buffer, position)
    position += 1
    return new(DescribeGroupsRequest, (groups, include_authorized_operations))


def _decode_request_v5(buffer: bytes, position: int) -> DescribeGroupsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[str] = []
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
        groups_items.append(item)
    groups = tuple(groups_items)
    include_authorized_operations, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeGroupsRequest, (groups, include_authorized_operations))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    groups, _ = value
    out += _pack_i(len(groups))
    for item in groups:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    groups, include_authorized_operations = value
    out += _pack_i(len(groups))
    for item in groups:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_t(include_authorized_operations)
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    groups, include_authorized_operations = value
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in groups:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("groups", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_tx(include_authorized_operations)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> DescribeGroupsResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("groups")
    if count * 14 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
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
            raise null_field("group_state")
        stop = position + size
        if stop > end:
            raise too_long("group_state", stop - position, position, end)
        group_state = str(buffer[position:stop], "utf-8", "replace")
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
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("protocol_data")
        stop = position + size
        if stop > end:
            raise too_long("protocol_data", stop - position, position, end)
        protocol_data = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("members")
        if count * 14 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[DescribedGroupMember] = []
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
            if size < 0:
                raise null_field("client_id")
            stop = position + size
            if stop > end:
                raise too_long("client_id", stop - position, position, end)
            client_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("client_host")
            stop = position + size
            if stop > end:
                raise too_long("client_host", stop - position, position, end)
            client_host = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_metadata")
            stop = position + size
            if stop > end:
                raise too_long("member_metadata", stop - position, position, end)
            member_metadata = buffer[position:stop]
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_assignment")
            stop = position + size
            if stop > end:
                raise too_long("member_assignment", stop - position, position, end)
            member_assignment = buffer[position:stop]
            position = stop
            members_items.append(
                new(
                    DescribedGroupMember,
                    (member_id, None, client_id, client_host, member_metadata, member_assignment),
                )
            )
        members = tuple(members_items)
        groups_items.append(
            new(
                DescribedGroup,
                (
                    error_code,
                    None,
                    group_id,
                    group_state,
                    protocol_type,
                    protocol_data,
                    members,
                    -2147483648,
                ),
            )
        )
    groups = tuple(groups_items)
    return new(DescribeGroupsResponse, (0, groups))


def _decode_response_v1(buffer: bytes, position: int) -> DescribeGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("groups")
    if count * 14 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
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
            raise null_field("group_state")
        stop = position + size
        if stop > end:
            raise too_long("group_state", stop - position, position, end)
        group_state = str(buffer[position:stop], "utf-8", "replace")
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
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("protocol_data")
        stop = position + size
        if stop > end:
            raise too_long("protocol_data", stop - position, position, end)
        protocol_data = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("members")
        if count * 14 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[DescribedGroupMember] = []
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
            if size < 0:
                raise null_field("client_id")
            stop = position + size
            if stop > end:
                raise too_long("client_id", stop - position, position, end)
            client_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("client_host")
            stop = position + size
            if stop > end:
                raise too_long("client_host", stop - position, position, end)
            client_host = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_metadata")
            stop = position + size
            if stop > end:
                raise too_long("member_metadata", stop - position, position, end)
            member_metadata = buffer[position:stop]
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_assignment")
            stop = position + size
            if stop > end:
                raise too_long("member_assignment", stop - position, position, end)
            member_assignment = buffer[position:stop]
            position = stop
            members_items.append(
                new(
                    DescribedGroupMember,
                    (member_id, None, client_id, client_host, member_metadata, member_assignment),
                )
            )
        members = tuple(members_items)
        groups_items.append(
            new(
                DescribedGroup,
                (
                    error_code,
                    None,
                    group_id,
                    group_state,
                    protocol_type,
                    protocol_data,
                    members,
                    -2147483648,
                ),
            )
        )
    groups = tuple(groups_items)
    return new(DescribeGroupsResponse, (throttle_time_ms, groups))


def _decode_response_v3(buffer: bytes, position: int) -> DescribeGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("groups")
    if count * 18 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
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
            raise null_field("group_state")
        stop = position + size
        if stop > end:
            raise too_long("group_state", stop - position, position, end)
        group_state = str(buffer[position:stop], "utf-8", "replace")
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
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("protocol_data")
        stop = position + size
        if stop > end:
            raise too_long("protocol_data", stop - position, position, end)
        protocol_data = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("members")
        if count * 14 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[DescribedGroupMember] = []
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
            if size < 0:
                raise null_field("client_id")
            stop = position + size
            if stop > end:
                raise too_long("client_id", stop - position, position, end)
            client_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("client_host")
            stop = position + size
            if stop > end:
                raise too_long("client_host", stop - position, position, end)
            client_host = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_metadata")
            stop = position + size
            if stop > end:
                raise too_long("member_metadata", stop - position, position, end)
            member_metadata = buffer[position:stop]
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_assignment")
            stop = position + size
            if stop > end:
                raise too_long("member_assignment", stop - position, position, end)
            member_assignment = buffer[position:stop]
            position = stop
            members_items.append(
                new(
                    DescribedGroupMember,
                    (member_id, None, client_id, client_host, member_metadata, member_assignment),
                )
            )
        members = tuple(members_items)
        (authorized_operations,) = _unpack_i(buffer, position)
        position += 4
        groups_items.append(
            new(
                DescribedGroup,
                (
                    error_code,
                    None,
                    group_id,
                    group_state,
                    protocol_type,
                    protocol_data,
                    members,
                    authorized_operations,
                ),
            )
        )
    groups = tuple(groups_items)
    return new(DescribeGroupsResponse, (throttle_time_ms, groups))


def _decode_response_v4(buffer: bytes, position: int) -> DescribeGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("groups")
    if count * 18 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
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
            raise null_field("group_state")
        stop = position + size
        if stop > end:
            raise too_long("group_state", stop - position, position, end)
        group_state = str(buffer[position:stop], "utf-8", "replace")
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
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("protocol_data")
        stop = position + size
        if stop > end:
            raise too_long("protocol_data", stop - position, position, end)
        protocol_data = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("members")
        if count * 16 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[DescribedGroupMember] = []
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
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("client_id")
            stop = position + size
            if stop > end:
                raise too_long("client_id", stop - position, position, end)
            client_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_h(buffer, position)
            position += 2
            if size < 0:
                raise null_field("client_host")
            stop = position + size
            if stop > end:
                raise too_long("client_host", stop - position, position, end)
            client_host = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_metadata")
            stop = position + size
            if stop > end:
                raise too_long("member_metadata", stop - position, position, end)
            member_metadata = buffer[position:stop]
            position = stop
            (size,) = _unpack_i(buffer, position)
            position += 4
            if size < 0:
                raise null_field("member_assignment")
            stop = position + size
            if stop > end:
                raise too_long("member_assignment", stop - position, position, end)
            member_assignment = buffer[position:stop]
            position = stop
            members_items.append(
                new(
                    DescribedGroupMember,
                    (
                        member_id,
                        group_instance_id,
                        client_id,
                        client_host,
                        member_metadata,
                        member_assignment,
                    ),
                )
            )
        members = tuple(members_items)
        (authorized_operations,) = _unpack_i(buffer, position)
        position += 4
        groups_items.append(
            new(
                DescribedGroup,
                (
                    error_code,
                    None,
                    group_id,
                    group_state,
                    protocol_type,
                    protocol_data,
                    members,
                    authorized_operations,
                ),
            )
        )
    groups = tuple(groups_items)
    return new(DescribeGroupsResponse, (throttle_time_ms, groups))


def _decode_response_v5(buffer: bytes, position: int) -> DescribeGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 12 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
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
            raise null_field("protocol_data")
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_data", stop - position, position, end)
        protocol_data = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("members")
        if count * 7 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[DescribedGroupMember] = []
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
            if not size:
                raise null_field("client_id")
            stop = position + size - 1
            if stop > end:
                raise too_long("client_id", stop - position, position, end)
            client_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("client_host")
            stop = position + size - 1
            if stop > end:
                raise too_long("client_host", stop - position, position, end)
            client_host = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_length(buffer, position - 1)
            if not size:
                raise null_field("member_metadata")
            stop = position + size - 1
            if stop > end:
                raise too_long("member_metadata", stop - position, position, end)
            member_metadata = buffer[position:stop]
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_length(buffer, position - 1)
            if not size:
                raise null_field("member_assignment")
            stop = position + size - 1
            if stop > end:
                raise too_long("member_assignment", stop - position, position, end)
            member_assignment = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            members_items.append(
                new(
                    DescribedGroupMember,
                    (
                        member_id,
                        group_instance_id,
                        client_id,
                        client_host,
                        member_metadata,
                        member_assignment,
                    ),
                )
            )
        members = tuple(members_items)
        authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(
            new(
                DescribedGroup,
                (
                    error_code,
                    None,
                    group_id,
                    group_state,
                    protocol_type,
                    protocol_data,
                    members,
                    authorized_operations,
                ),
            )
        )
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeGroupsResponse, (throttle_time_ms, groups))


def _decode_response_v6(buffer: bytes, position: int) -> DescribeGroupsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 13 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        error_message: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
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
            raise null_field("protocol_data")
        stop = position + size - 1
        if stop > end:
            raise too_long("protocol_data", stop - position, position, end)
        protocol_data = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("members")
        if count * 7 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[DescribedGroupMember] = []
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
            if not size:
                raise null_field("client_id")
            stop = position + size - 1
            if stop > end:
                raise too_long("client_id", stop - position, position, end)
            client_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            if not size:
                raise null_field("client_host")
            stop = position + size - 1
            if stop > end:
                raise too_long("client_host", stop - position, position, end)
            client_host = str(buffer[position:stop], "utf-8", "replace")
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_length(buffer, position - 1)
            if not size:
                raise null_field("member_metadata")
            stop = position + size - 1
            if stop > end:
                raise too_long("member_metadata", stop - position, position, end)
            member_metadata = buffer[position:stop]
            position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_length(buffer, position - 1)
            if not size:
                raise null_field("member_assignment")
            stop = position + size - 1
            if stop > end:
                raise too_long("member_assignment", stop - position, position, end)
            member_assignment = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            members_items.append(
                new(
                    DescribedGroupMember,
                    (
                        member_id,
                        group_instance_id,
                        client_id,
                        client_host,
                        member_metadata,
                        member_assignment,
                    ),
                )
            )
        members = tuple(members_items)
        authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(
            new(
                DescribedGroup,
                (
                    error_code,
                    error_message,
                    group_id,
                    group_state,
                    protocol_type,
                    protocol_data,
                    members,
                    authorized_operations,
                ),
            )
        )
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeGroupsResponse, (throttle_time_ms, groups))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, groups = value
    out += _pack_i(len(groups))
    for error_code, _, group_id, group_state, protocol_type, protocol_data, members, _ in groups:
        raw = group_id.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        raw = group_state.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_type.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_data.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(members))
        for member_id, _, client_id, client_host, member_metadata, member_assignment in members:
            raw = member_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_host.encode()
            out += _pack_h(len(raw))
            out += raw
            out += _pack_i(len(member_metadata))
            out += member_metadata
            out += _pack_i(len(member_assignment))
            out += member_assignment
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, groups = value
    out += _pack_ii(throttle_time_ms, len(groups))
    for error_code, _, group_id, group_state, protocol_type, protocol_data, members, _ in groups:
        raw = group_id.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        raw = group_state.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_type.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_data.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(members))
        for member_id, _, client_id, client_host, member_metadata, member_assignment in members:
            raw = member_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_host.encode()
            out += _pack_h(len(raw))
            out += raw
            out += _pack_i(len(member_metadata))
            out += member_metadata
            out += _pack_i(len(member_assignment))
            out += member_assignment
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, groups = value
    out += _pack_ii(throttle_time_ms, len(groups))
    for (
        error_code,
        _,
        group_id,
        group_state,
        protocol_type,
        protocol_data,
        members,
        authorized_operations,
    ) in groups:
        raw = group_id.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        raw = group_state.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_type.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_data.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(members))
        for member_id, _, client_id, client_host, member_metadata, member_assignment in members:
            raw = member_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_host.encode()
            out += _pack_h(len(raw))
            out += raw
            out += _pack_i(len(member_metadata))
            out += member_metadata
            out += _pack_i(len(member_assignment))
            out += member_assignment
        out += _pack_i(authorized_operations)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, groups = value
    out += _pack_ii(throttle_time_ms, len(groups))
    for (
        error_code,
        _,
        group_id,
        group_state,
        protocol_type,
        protocol_data,
        members,
        authorized_operations,
    ) in groups:
        raw = group_id.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        raw = group_state.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_type.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = protocol_data.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(members))
        for (
            member_id,
            group_instance_id,
            client_id,
            client_host,
            member_metadata,
            member_assignment,
        ) in members:
            raw = member_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = b"" if group_instance_id is None else group_instance_id.encode()
            out += _pack_h(-1 if group_instance_id is None else len(raw))
            out += raw
            raw = client_id.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = client_host.encode()
            out += _pack_h(len(raw))
            out += raw
            out += _pack_i(len(member_metadata))
            out += member_metadata
            out += _pack_i(len(member_assignment))
            out += member_assignment
        out += _pack_i(authorized_operations)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, groups = value
    out += _pack_i(throttle_time_ms)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for (
        error_code,
        _,
        group_id,
        group_state,
        protocol_type,
        protocol_data,
        members,
        authorized_operations,
    ) in groups:
        out += _pack_h(error_code)
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
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
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = protocol_data.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_data", len(raw))
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
        for (
            member_id,
            group_instance_id,
            client_id,
            client_host,
            member_metadata,
            member_assignment,
        ) in members:
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
            raw = client_id.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("client_id", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            raw = client_host.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("client_host", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(member_metadata) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += member_metadata
            size = len(member_assignment) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += member_assignment
            out.append(0)
        out += _pack_ix(authorized_operations)
    out.append(0)
    return out


def _encode_response_v6(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, groups = value
    out += _pack_i(throttle_time_ms)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for (
        error_code,
        error_message,
        group_id,
        group_state,
        protocol_type,
        protocol_data,
        members,
        authorized_operations,
    ) in groups:
        out += _pack_h(error_code)
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
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
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
        raw = protocol_type.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_type", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        raw = protocol_data.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("protocol_data", len(raw))
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
        for (
            member_id,
            group_instance_id,
            client_id,
            client_host,
            member_metadata,
            member_assignment,
        ) in members:
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
            raw = client_id.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("client_id", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            raw = client_host.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("client_host", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(member_metadata) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += member_metadata
            size = len(member_assignment) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += member_assignment
            out.append(0)
        out += _pack_ix(authorized_operations)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DescribeGroupsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v5,
    6: _decode_request_v5,
}

ENCODE_REQUEST: dict[int, Callable[[DescribeGroupsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v5,
    6: _encode_request_v5,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DescribeGroupsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v5,
    6: _decode_response_v6,
}

ENCODE_RESPONSE: dict[int, Callable[[DescribeGroupsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v5,
    6: _encode_response_v6,
}
