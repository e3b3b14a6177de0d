"""ConsumerGroupDescribe (key 69), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    NO_UUID,
    STRING_BYTES_MAX,
    UNPACK_INT32S,
    long_length,
    long_string_length,
    null_field,
    pack_int32s,
    skip_tags,
    string_too_long,
    too_long,
    too_many,
    varint,
)

new = tuple.__new__


class ConsumerGroupDescribeRequest(NamedTuple):
    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


class TopicPartitions(NamedTuple):
    topic_id: bytes = NO_UUID
    topic_name: str = ""
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    topic_partitions: Sequence[TopicPartitions] = ()


_DEFAULT_Assignment = Assignment()


class Member(NamedTuple):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: int = -1


class DescribedGroup(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[Member] = ()
    authorized_operations: int = -2147483648


class ConsumerGroupDescribeResponse(NamedTuple):
    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


_pack_u = Struct(">16s").pack
_pack_tx = Struct(">?x").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_pack_ix = Struct(">ix").pack
_pack_xbx = Struct(">xbx").pack
_pack_xx = Struct(">xx").pack
_unpack_uB = Struct(">16sB").unpack_from
_unpack_tB = Struct(">?B").unpack_from
_unpack_bB = Struct(">bB").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_iiB = Struct(">iiB").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> ConsumerGroupDescribeRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("group_ids")
    if count > end - position:
        raise too_many("group_ids", count, position, end)
    group_ids_items: list[str] = []
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
        group_ids_items.append(item)
    group_ids = tuple(group_ids_items)
    include_authorized_operations, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ConsumerGroupDescribeRequest, (group_ids, include_authorized_operations))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    group_ids, include_authorized_operations = value
    size = len(group_ids) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in group_ids:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_ids", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_tx(include_authorized_operations)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> ConsumerGroupDescribeResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 20 > end - position:
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
        group_epoch, assignment_epoch, size = _unpack_iiB(buffer, position)
        position += 9
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("assignor_name")
        stop = position + size - 1
        if stop > end:
            raise too_long("assignor_name", stop - position, position, end)
        assignor_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("members")
        if count * 16 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[Member] = []
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
            instance_id: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("instance_id", stop - position, position, end)
                instance_id = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            rack_id: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("rack_id", stop - position, position, end)
                rack_id = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            member_epoch, size = _unpack_iB(buffer, position)
            position += 5
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
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("subscribed_topic_names")
            if count > end - position:
                raise too_many("subscribed_topic_names", count, position, end)
            subscribed_topic_names_items: list[str] = []
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
                subscribed_topic_names_items.append(item)
            subscribed_topic_names = tuple(subscribed_topic_names_items)
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            subscribed_topic_regex: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("subscribed_topic_regex", stop - position, position, end)
                subscribed_topic_regex = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("topic_partitions")
            if count * 19 > end - position:
                raise too_many("topic_partitions", count, position, end)
            topic_partitions_items: list[TopicPartitions] = []
            for _ in range(count):
                topic_id, size = _unpack_uB(buffer, position)
                position += 17
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                if not size:
                    raise null_field("topic_name")
                stop = position + size - 1
                if stop > end:
                    raise too_long("topic_name", stop - position, position, end)
                topic_name = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("partitions")
                if count * 4 > end - position:
                    raise too_many("partitions", count, position, end)
                if count < len(UNPACK_INT32S):
                    partitions = UNPACK_INT32S[count](buffer, position)
                else:
                    partitions = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topic_partitions_items.append(
                    new(TopicPartitions, (topic_id, topic_name, partitions))
                )
            topic_partitions = tuple(topic_partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            assignment = new(Assignment, (topic_partitions,))
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("topic_partitions")
            if count * 19 > end - position:
                raise too_many("topic_partitions", count, position, end)
            topic_partitions_2_items: list[TopicPartitions] = []
            for _ in range(count):
                topic_id_2, size = _unpack_uB(buffer, position)
                position += 17
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                if not size:
                    raise null_field("topic_name")
                stop = position + size - 1
                if stop > end:
                    raise too_long("topic_name", stop - position, position, end)
                topic_name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("partitions")
                if count * 4 > end - position:
                    raise too_many("partitions", count, position, end)
                if count < len(UNPACK_INT32S):
                    partitions_2 = UNPACK_INT32S[count](buffer, position)
                else:
                    partitions_2 = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topic_partitions_2_items.append(
                    new(TopicPartitions, (topic_id_2, topic_name_2, partitions_2))
                )
            topic_partitions_2 = tuple(topic_partitions_2_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            target_assignment = new(Assignment, (topic_partitions_2,))
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            members_items.append(
                new(
                    Member,
                    (
                        member_id,
                        instance_id,
                        rack_id,
                        member_epoch,
                        client_id,
                        client_host,
                        subscribed_topic_names,
                        subscribed_topic_regex,
                        assignment,
                        target_assignment,
                        -1,
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
                    group_epoch,
                    assignment_epoch,
                    assignor_name,
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
    return new(ConsumerGroupDescribeResponse, (throttle_time_ms, groups))


def _decode_response_v1(buffer: bytes, position: int) -> ConsumerGroupDescribeResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 20 > end - position:
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
        group_epoch, assignment_epoch, size = _unpack_iiB(buffer, position)
        position += 9
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("assignor_name")
        stop = position + size - 1
        if stop > end:
            raise too_long("assignor_name", stop - position, position, end)
        assignor_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("members")
        if count * 17 > end - position:
            raise too_many("members", count, position, end)
        members_items: list[Member] = []
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
            instance_id: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("instance_id", stop - position, position, end)
                instance_id = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            rack_id: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("rack_id", stop - position, position, end)
                rack_id = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            member_epoch, size = _unpack_iB(buffer, position)
            position += 5
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
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("subscribed_topic_names")
            if count > end - position:
                raise too_many("subscribed_topic_names", count, position, end)
            subscribed_topic_names_items: list[str] = []
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
                subscribed_topic_names_items.append(item)
            subscribed_topic_names = tuple(subscribed_topic_names_items)
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            subscribed_topic_regex: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("subscribed_topic_regex", stop - position, position, end)
                subscribed_topic_regex = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("topic_partitions")
            if count * 19 > end - position:
                raise too_many("topic_partitions", count, position, end)
            topic_partitions_items: list[TopicPartitions] = []
            for _ in range(count):
                topic_id, size = _unpack_uB(buffer, position)
                position += 17
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                if not size:
                    raise null_field("topic_name")
                stop = position + size - 1
                if stop > end:
                    raise too_long("topic_name", stop - position, position, end)
                topic_name = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("partitions")
                if count * 4 > end - position:
                    raise too_many("partitions", count, position, end)
                if count < len(UNPACK_INT32S):
                    partitions = UNPACK_INT32S[count](buffer, position)
                else:
                    partitions = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topic_partitions_items.append(
                    new(TopicPartitions, (topic_id, topic_name, partitions))
                )
            topic_partitions = tuple(topic_partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            assignment = new(Assignment, (topic_partitions,))
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("topic_partitions")
            if count * 19 > end - position:
                raise too_many("topic_partitions", count, position, end)
            topic_partitions_2_items: list[TopicPartitions] = []
            for _ in range(count):
                topic_id_2, size = _unpack_uB(buffer, position)
                position += 17
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                if not size:
                    raise null_field("topic_name")
                stop = position + size - 1
                if stop > end:
                    raise too_long("topic_name", stop - position, position, end)
                topic_name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("partitions")
                if count * 4 > end - position:
                    raise too_many("partitions", count, position, end)
                if count < len(UNPACK_INT32S):
                    partitions_2 = UNPACK_INT32S[count](buffer, position)
                else:
                    partitions_2 = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topic_partitions_2_items.append(
                    new(TopicPartitions, (topic_id_2, topic_name_2, partitions_2))
                )
            topic_partitions_2 = tuple(topic_partitions_2_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            target_assignment = new(Assignment, (topic_partitions_2,))
            member_type, tags = _unpack_bB(buffer, position)
            position += 2
            if tags:
                position = skip_tags(buffer, position - 1)
            members_items.append(
                new(
                    Member,
                    (
                        member_id,
                        instance_id,
                        rack_id,
                        member_epoch,
                        client_id,
                        client_host,
                        subscribed_topic_names,
                        subscribed_topic_regex,
                        assignment,
                        target_assignment,
                        member_type,
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
                    group_epoch,
                    assignment_epoch,
                    assignor_name,
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
    return new(ConsumerGroupDescribeResponse, (throttle_time_ms, groups))


def _encode_response_v0(value: Any) -> bytearray:
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
        group_epoch,
        assignment_epoch,
        assignor_name,
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
        out += _pack_ii(group_epoch, assignment_epoch)
        raw = assignor_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("assignor_name", len(raw))
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
            instance_id,
            rack_id,
            member_epoch,
            client_id,
            client_host,
            subscribed_topic_names,
            subscribed_topic_regex,
            assignment,
            target_assignment,
            _,
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
            if instance_id is None:
                out.append(0)
            else:
                raw = instance_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("instance_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            if rack_id is None:
                out.append(0)
            else:
                raw = rack_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("rack_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            out += _pack_i(member_epoch)
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
            size = len(subscribed_topic_names) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for item in subscribed_topic_names:
                raw = item.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("subscribed_topic_names", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            if subscribed_topic_regex is None:
                out.append(0)
            else:
                raw = subscribed_topic_regex.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("subscribed_topic_regex", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            (topic_partitions,) = assignment
            size = len(topic_partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for topic_id, topic_name, partitions in topic_partitions:
                out += _pack_u(topic_id)
                raw = topic_name.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("topic_name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                size = len(partitions) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partitions)
                out.append(0)
            (topic_partitions_2,) = target_assignment
            out.append(0)
            size = len(topic_partitions_2) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for topic_id_2, topic_name_2, partitions_2 in topic_partitions_2:
                out += _pack_u(topic_id_2)
                raw = topic_name_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("topic_name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                size = len(partitions_2) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partitions_2)
                out.append(0)
            out += _pack_xx()
        out += _pack_ix(authorized_operations)
    out.append(0)
    return out


def _encode_response_v1(value: Any) -> bytearray:
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
        group_epoch,
        assignment_epoch,
        assignor_name,
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
        out += _pack_ii(group_epoch, assignment_epoch)
        raw = assignor_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("assignor_name", len(raw))
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
            instance_id,
            rack_id,
            member_epoch,
            client_id,
            client_host,
            subscribed_topic_names,
            subscribed_topic_regex,
            assignment,
            target_assignment,
            member_type,
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
            if instance_id is None:
                out.append(0)
            else:
                raw = instance_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("instance_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            if rack_id is None:
                out.append(0)
            else:
                raw = rack_id.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("rack_id", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            out += _pack_i(member_epoch)
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
            size = len(subscribed_topic_names) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for item in subscribed_topic_names:
                raw = item.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("subscribed_topic_names", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            if subscribed_topic_regex is None:
                out.append(0)
            else:
                raw = subscribed_topic_regex.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("subscribed_topic_regex", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            (topic_partitions,) = assignment
            size = len(topic_partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for topic_id, topic_name, partitions in topic_partitions:
                out += _pack_u(topic_id)
                raw = topic_name.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("topic_name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                size = len(partitions) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partitions)
                out.append(0)
            (topic_partitions_2,) = target_assignment
            out.append(0)
            size = len(topic_partitions_2) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for topic_id_2, topic_name_2, partitions_2 in topic_partitions_2:
                out += _pack_u(topic_id_2)
                raw = topic_name_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("topic_name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                size = len(partitions_2) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partitions_2)
                out.append(0)
            out += _pack_xbx(member_type)
        out += _pack_ix(authorized_operations)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], ConsumerGroupDescribeRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
}

ENCODE_REQUEST: dict[int, Callable[[ConsumerGroupDescribeRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], ConsumerGroupDescribeResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}

ENCODE_RESPONSE: dict[int, Callable[[ConsumerGroupDescribeResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}
