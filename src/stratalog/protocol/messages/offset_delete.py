"""OffsetDelete (key 47), versions 0 to 0.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import null_field, too_long, too_many

new = tuple.__new__


class OffsetDeleteRequestPartition(NamedTuple):
    partition_index: int = 0


class OffsetDeleteRequestTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[OffsetDeleteRequestPartition] = ()


class OffsetDeleteRequest(NamedTuple):
    group_id: str = ""
    topics: Sequence[OffsetDeleteRequestTopic] = ()


class OffsetDeleteResponsePartition(NamedTuple):
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[OffsetDeleteResponsePartition] = ()


class OffsetDeleteResponse(NamedTuple):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: Sequence[OffsetDeleteResponseTopic] = ()


_pack_h = Struct(">h").pack
_pack_hii = Struct(">hii").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hii = Struct(">hii").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> OffsetDeleteRequest:
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
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetDeleteRequestTopic] = []
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
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetDeleteRequestPartition] = []
        for _ in range(count):
            (partition_index,) = _unpack_i(buffer, position)
            position += 4
            partitions_items.append(new(OffsetDeleteRequestPartition, (partition_index,)))
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetDeleteRequestTopic, (name, partitions)))
    topics = tuple(topics_items)
    return new(OffsetDeleteRequest, (group_id, topics))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    group_id, topics = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (partition_index,) in partitions:
            out += _pack_i(partition_index)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> OffsetDeleteResponse:
    end = len(buffer)
    error_code, throttle_time_ms, count = _unpack_hii(buffer, position)
    position += 10
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetDeleteResponseTopic] = []
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
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 6 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetDeleteResponsePartition] = []
        for _ in range(count):
            partition_index, error_code_2 = _unpack_ih(buffer, position)
            position += 6
            partitions_items.append(
                new(OffsetDeleteResponsePartition, (partition_index, error_code_2))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetDeleteResponseTopic, (name, partitions)))
    topics = tuple(topics_items)
    return new(OffsetDeleteResponse, (error_code, throttle_time_ms, topics))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    error_code, throttle_time_ms, topics = value
    out += _pack_hii(error_code, throttle_time_ms, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, error_code_2 in partitions:
            out += _pack_ih(partition_index, error_code_2)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], OffsetDeleteRequest]] = {
    0: _decode_request_v0,
}

ENCODE_REQUEST: dict[int, Callable[[OffsetDeleteRequest], bytearray]] = {
    0: _encode_request_v0,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], OffsetDeleteResponse]] = {
    0: _decode_response_v0,
}

ENCODE_RESPONSE: dict[int, Callable[[OffsetDeleteResponse], bytearray]] = {
    0: _encode_response_v0,
}
