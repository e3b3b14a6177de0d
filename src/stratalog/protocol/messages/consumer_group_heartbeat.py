"""ConsumerGroupHeartbeat (key 68), versions 0 to 1.

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


class TopicPartitions(NamedTuple):
    topic_id: bytes = NO_UUID
    partitions: Sequence[int] = ()


class ConsumerGroupHeartbeatRequest(NamedTuple):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Sequence[TopicPartitions] | None = ()


class Assignment(NamedTuple):
    topic_partitions: Sequence[TopicPartitions] = ()


class ConsumerGroupHeartbeatResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


_pack_u = Struct(">16s").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_unpack_uB = Struct(">16sB").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_iib = Struct(">iib").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> ConsumerGroupHeartbeatRequest:
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
    member_epoch, size = _unpack_iB(buffer, position)
    position += 5
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
    rebalance_timeout_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    subscribed_topic_names: tuple[str, ...] | None = None
    if count >= 0:
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
    server_assignor: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("server_assignor", stop - position, position, end)
        server_assignor = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    if count >= 0:
        if count * 18 > end - position:
            raise too_many("topic_partitions", count, position, end)
        topic_partitions_items: list[TopicPartitions] = []
        for _ in range(count):
            topic_id, count = _unpack_uB(buffer, position)
            position += 17
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
            topic_partitions_items.append(new(TopicPartitions, (topic_id, partitions)))
        topic_partitions = tuple(topic_partitions_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        ConsumerGroupHeartbeatRequest,
        (
            group_id,
            member_id,
            member_epoch,
            instance_id,
            rack_id,
            rebalance_timeout_ms,
            subscribed_topic_names,
            None,
            server_assignor,
            topic_partitions,
        ),
    )


def _decode_request_v1(buffer: bytes, position: int) -> ConsumerGroupHeartbeatRequest:
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
    member_epoch, size = _unpack_iB(buffer, position)
    position += 5
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
    rebalance_timeout_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    subscribed_topic_names: tuple[str, ...] | None = None
    if count >= 0:
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
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    server_assignor: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("server_assignor", stop - position, position, end)
        server_assignor = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    if count >= 0:
        if count * 18 > end - position:
            raise too_many("topic_partitions", count, position, end)
        topic_partitions_items: list[TopicPartitions] = []
        for _ in range(count):
            topic_id, count = _unpack_uB(buffer, position)
            position += 17
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
            topic_partitions_items.append(new(TopicPartitions, (topic_id, partitions)))
        topic_partitions = tuple(topic_partitions_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        ConsumerGroupHeartbeatRequest,
        (
            group_id,
            member_id,
            member_epoch,
            instance_id,
            rack_id,
            rebalance_timeout_ms,
            subscribed_topic_names,
            subscribed_topic_regex,
            server_assignor,
            topic_partitions,
        ),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        member_id,
        member_epoch,
        instance_id,
        rack_id,
        rebalance_timeout_ms,
        subscribed_topic_names,
        _,
        server_assignor,
        topic_partitions,
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
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(member_epoch)
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
    out += _pack_i(rebalance_timeout_ms)
    if subscribed_topic_names is None:
        out.append(0)
    else:
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
    if server_assignor is None:
        out.append(0)
    else:
        raw = server_assignor.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("server_assignor", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    if topic_partitions is None:
        out.append(0)
    else:
        size = len(topic_partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for topic_id, partitions in topic_partitions:
            out += _pack_u(topic_id)
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(partitions)
            out.append(0)
    out.append(0)
    return out


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    (
        group_id,
        member_id,
        member_epoch,
        instance_id,
        rack_id,
        rebalance_timeout_ms,
        subscribed_topic_names,
        subscribed_topic_regex,
        server_assignor,
        topic_partitions,
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
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(member_epoch)
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
    out += _pack_i(rebalance_timeout_ms)
    if subscribed_topic_names is None:
        out.append(0)
    else:
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
    if server_assignor is None:
        out.append(0)
    else:
        raw = server_assignor.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("server_assignor", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    if topic_partitions is None:
        out.append(0)
    else:
        size = len(topic_partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for topic_id, partitions in topic_partitions:
            out += _pack_u(topic_id)
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(partitions)
            out.append(0)
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> ConsumerGroupHeartbeatResponse:
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
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    member_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("member_id", stop - position, position, end)
        member_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    member_epoch, heartbeat_interval_ms, marker = _unpack_iib(buffer, position)
    position += 9
    assignment: Assignment | None = None
    if marker >= 0:
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topic_partitions")
        if count * 18 > end - position:
            raise too_many("topic_partitions", count, position, end)
        topic_partitions_items: list[TopicPartitions] = []
        for _ in range(count):
            topic_id, count = _unpack_uB(buffer, position)
            position += 17
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
            topic_partitions_items.append(new(TopicPartitions, (topic_id, partitions)))
        topic_partitions = tuple(topic_partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        assignment = new(Assignment, (topic_partitions,))
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        ConsumerGroupHeartbeatResponse,
        (
            throttle_time_ms,
            error_code,
            error_message,
            member_id,
            member_epoch,
            heartbeat_interval_ms,
            assignment,
        ),
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        error_code,
        error_message,
        member_id,
        member_epoch,
        heartbeat_interval_ms,
        assignment,
    ) = value
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
    if member_id is None:
        out.append(0)
    else:
        raw = member_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("member_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_ii(member_epoch, heartbeat_interval_ms)
    if assignment is None:
        out.append(255)
    else:
        out.append(1)
        (topic_partitions,) = assignment
        size = len(topic_partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for topic_id, partitions in topic_partitions:
            out += _pack_u(topic_id)
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(partitions)
            out.append(0)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], ConsumerGroupHeartbeatRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}

ENCODE_REQUEST: dict[int, Callable[[ConsumerGroupHeartbeatRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], ConsumerGroupHeartbeatResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
}

ENCODE_RESPONSE: dict[int, Callable[[ConsumerGroupHeartbeatResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
}
