"""DescribeTopicPartitions (key 75), versions 0 to 0.

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


class TopicRequest(NamedTuple):
    name: str = ""


class Cursor(NamedTuple):
    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequest(NamedTuple):
    topics: Sequence[TopicRequest] = ()
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(NamedTuple):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] | None = None
    last_known_elr: Sequence[int] | None = None
    offline_replicas: Sequence[int] = ()


class DescribeTopicPartitionsResponseTopic(NamedTuple):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = NO_UUID
    is_internal: bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class DescribeTopicPartitionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None


_pack_ut = Struct(">16s?").pack
_pack_h = Struct(">h").pack
_pack_hiii = Struct(">hiii").pack
_pack_i = Struct(">i").pack
_pack_ix = Struct(">ix").pack
_unpack_utB = Struct(">16s?B").unpack_from
_unpack_b = Struct(">b").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hiiiB = Struct(">hiiiB").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ib = Struct(">ib").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> DescribeTopicPartitionsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 2 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[TopicRequest] = []
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
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(TopicRequest, (name,)))
    topics = tuple(topics_items)
    response_partition_limit, marker = _unpack_ib(buffer, position)
    position += 5
    cursor: Cursor | None = None
    if marker >= 0:
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("topic_name")
        stop = position + size - 1
        if stop > end:
            raise too_long("topic_name", stop - position, position, end)
        topic_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        partition_index, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        cursor = new(Cursor, (topic_name, partition_index))
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeTopicPartitionsRequest, (topics, response_partition_limit, cursor))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    topics, response_partition_limit, cursor = value
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for (name,) in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out.append(0)
    out += _pack_i(response_partition_limit)
    if cursor is None:
        out.append(255)
    else:
        out.append(1)
        topic_name, partition_index = cursor
        raw = topic_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("topic_name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_ix(partition_index)
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> DescribeTopicPartitionsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 26 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[DescribeTopicPartitionsResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        name: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        topic_id, is_internal, count = _unpack_utB(buffer, position)
        position += 18
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 20 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[DescribeTopicPartitionsResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiiB(
                buffer, position
            )
            position += 15
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            eligible_leader_replicas: tuple[int, ...] | None = None
            if count >= 0:
                if count * 4 > end - position:
                    raise too_many("eligible_leader_replicas", count, position, end)
                if count < len(UNPACK_INT32S):
                    eligible_leader_replicas = UNPACK_INT32S[count](buffer, position)
                else:
                    eligible_leader_replicas = unpack_from(f">{count}i", buffer, position)
                position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            last_known_elr: tuple[int, ...] | None = None
            if count >= 0:
                if count * 4 > end - position:
                    raise too_many("last_known_elr", count, position, end)
                if count < len(UNPACK_INT32S):
                    last_known_elr = UNPACK_INT32S[count](buffer, position)
                else:
                    last_known_elr = unpack_from(f">{count}i", buffer, position)
                position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    DescribeTopicPartitionsResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        eligible_leader_replicas,
                        last_known_elr,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topic_authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(
                DescribeTopicPartitionsResponseTopic,
                (error_code, name, topic_id, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    (marker,) = _unpack_b(buffer, position)
    position += 1
    next_cursor: Cursor | None = None
    if marker >= 0:
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("topic_name")
        stop = position + size - 1
        if stop > end:
            raise too_long("topic_name", stop - position, position, end)
        topic_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        partition_index_2, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        next_cursor = new(Cursor, (topic_name, partition_index_2))
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeTopicPartitionsResponse, (throttle_time_ms, topics, next_cursor))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics, next_cursor = value
    out += _pack_i(throttle_time_ms)
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, name, topic_id, is_internal, partitions, topic_authorized_operations in topics:
        out += _pack_h(error_code)
        if name is None:
            out.append(0)
        else:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out += _pack_ut(topic_id, is_internal)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            eligible_leader_replicas,
            last_known_elr,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, leader_epoch)
            size = len(replica_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(replica_nodes)
            size = len(isr_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(isr_nodes)
            if eligible_leader_replicas is None:
                out.append(0)
            else:
                size = len(eligible_leader_replicas) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(eligible_leader_replicas)
            if last_known_elr is None:
                out.append(0)
            else:
                size = len(last_known_elr) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(last_known_elr)
            size = len(offline_replicas) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(offline_replicas)
            out.append(0)
        out += _pack_ix(topic_authorized_operations)
    if next_cursor is None:
        out.append(255)
    else:
        out.append(1)
        topic_name, partition_index_2 = next_cursor
        raw = topic_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("topic_name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_ix(partition_index_2)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DescribeTopicPartitionsRequest]] = {
    0: _decode_request_v0,
}

ENCODE_REQUEST: dict[int, Callable[[DescribeTopicPartitionsRequest], bytearray]] = {
    0: _encode_request_v0,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DescribeTopicPartitionsResponse]] = {
    0: _decode_response_v0,
}

ENCODE_RESPONSE: dict[int, Callable[[DescribeTopicPartitionsResponse], bytearray]] = {
    0: _encode_response_v0,
}
