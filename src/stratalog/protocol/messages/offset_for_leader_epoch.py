"""OffsetForLeaderEpoch (key 23), versions 2 to 4.

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


class OffsetForLeaderPartition(NamedTuple):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(NamedTuple):
    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(NamedTuple):
    replica_id: int = -2
    topics: Sequence[OffsetForLeaderTopic] = ()


class EpochEndOffset(NamedTuple):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(NamedTuple):
    topic: str = ""
    partitions: Sequence[EpochEndOffset] = ()


class OffsetForLeaderEpochResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()


_pack_h = Struct(">h").pack
_pack_hiiq = Struct(">hiiq").pack
_pack_hiiqx = Struct(">hiiqx").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_pack_iii = Struct(">iii").pack
_pack_iiix = Struct(">iiix").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hiiq = Struct(">hiiq").unpack_from
_unpack_hiiqB = Struct(">hiiqB").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iii = Struct(">iii").unpack_from
_unpack_iiiB = Struct(">iiiB").unpack_from


def _decode_request_v2(buffer: bytes, position: int) -> OffsetForLeaderEpochRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 12 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetForLeaderPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, leader_epoch = _unpack_iii(buffer, position)
            position += 12
            partitions_items.append(
                new(OffsetForLeaderPartition, (partition, current_leader_epoch, leader_epoch))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetForLeaderTopic, (topic, partitions)))
    topics = tuple(topics_items)
    return new(OffsetForLeaderEpochRequest, (-2, topics))


def _decode_request_v3(buffer: bytes, position: int) -> OffsetForLeaderEpochRequest:
    end = len(buffer)
    replica_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 12 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetForLeaderPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, leader_epoch = _unpack_iii(buffer, position)
            position += 12
            partitions_items.append(
                new(OffsetForLeaderPartition, (partition, current_leader_epoch, leader_epoch))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetForLeaderTopic, (topic, partitions)))
    topics = tuple(topics_items)
    return new(OffsetForLeaderEpochRequest, (replica_id, topics))


def _decode_request_v4(buffer: bytes, position: int) -> OffsetForLeaderEpochRequest:
    end = len(buffer)
    replica_id, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 3 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("topic")
        stop = position + size - 1
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 13 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetForLeaderPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, leader_epoch, tags = _unpack_iiiB(buffer, position)
            position += 13
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(OffsetForLeaderPartition, (partition, current_leader_epoch, leader_epoch))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetForLeaderTopic, (topic, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetForLeaderEpochRequest, (replica_id, topics))


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    _, topics = value
    out += _pack_i(len(topics))
    for topic, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition, current_leader_epoch, leader_epoch in partitions:
            out += _pack_iii(partition, current_leader_epoch, leader_epoch)
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    replica_id, topics = value
    out += _pack_ii(replica_id, len(topics))
    for topic, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition, current_leader_epoch, leader_epoch in partitions:
            out += _pack_iii(partition, current_leader_epoch, leader_epoch)
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    replica_id, topics = value
    out += _pack_i(replica_id)
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for topic, partitions in topics:
        raw = topic.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("topic", len(raw))
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
        for partition, current_leader_epoch, leader_epoch in partitions:
            out += _pack_iiix(partition, current_leader_epoch, leader_epoch)
        out.append(0)
    out.append(0)
    return out


def _decode_response_v2(buffer: bytes, position: int) -> OffsetForLeaderEpochResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[EpochEndOffset] = []
        for _ in range(count):
            error_code, partition, leader_epoch, end_offset = _unpack_hiiq(buffer, position)
            position += 18
            partitions_items.append(
                new(EpochEndOffset, (error_code, partition, leader_epoch, end_offset))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetForLeaderTopicResult, (topic, partitions)))
    topics = tuple(topics_items)
    return new(OffsetForLeaderEpochResponse, (throttle_time_ms, topics))


def _decode_response_v4(buffer: bytes, position: int) -> OffsetForLeaderEpochResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 3 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("topic")
        stop = position + size - 1
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 19 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[EpochEndOffset] = []
        for _ in range(count):
            error_code, partition, leader_epoch, end_offset, tags = _unpack_hiiqB(buffer, position)
            position += 19
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(EpochEndOffset, (error_code, partition, leader_epoch, end_offset))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetForLeaderTopicResult, (topic, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetForLeaderEpochResponse, (throttle_time_ms, topics))


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for topic, partitions in topics:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for error_code, partition, leader_epoch, end_offset in partitions:
            out += _pack_hiiq(error_code, partition, leader_epoch, end_offset)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_i(throttle_time_ms)
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for topic, partitions in topics:
        raw = topic.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("topic", len(raw))
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
        for error_code, partition, leader_epoch, end_offset in partitions:
            out += _pack_hiiqx(error_code, partition, leader_epoch, end_offset)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], OffsetForLeaderEpochRequest]] = {
    2: _decode_request_v2,
    3: _decode_request_v3,
    4: _decode_request_v4,
}

ENCODE_REQUEST: dict[int, Callable[[OffsetForLeaderEpochRequest], bytearray]] = {
    2: _encode_request_v2,
    3: _encode_request_v3,
    4: _encode_request_v4,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], OffsetForLeaderEpochResponse]] = {
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v4,
}

ENCODE_RESPONSE: dict[int, Callable[[OffsetForLeaderEpochResponse], bytearray]] = {
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v4,
}
