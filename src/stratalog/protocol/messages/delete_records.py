"""DeleteRecords (key 21), versions 0 to 2.

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


class DeleteRecordsPartition(NamedTuple):
    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(NamedTuple):
    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(NamedTuple):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(NamedTuple):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_pack_iq = Struct(">iq").pack
_pack_iqh = Struct(">iqh").pack
_pack_iqhx = Struct(">iqhx").pack
_pack_iqx = Struct(">iqx").pack
_pack_ix = Struct(">ix").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_iqB = Struct(">iqB").unpack_from
_unpack_iqh = Struct(">iqh").unpack_from
_unpack_iqhB = Struct(">iqhB").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> DeleteRecordsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[DeleteRecordsTopic] = []
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
        if count * 12 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[DeleteRecordsPartition] = []
        for _ in range(count):
            partition_index, offset = _unpack_iq(buffer, position)
            position += 12
            partitions_items.append(new(DeleteRecordsPartition, (partition_index, offset)))
        partitions = tuple(partitions_items)
        topics_items.append(new(DeleteRecordsTopic, (name, partitions)))
    topics = tuple(topics_items)
    (timeout_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(DeleteRecordsRequest, (topics, timeout_ms))


def _decode_request_v2(buffer: bytes, position: int) -> DeleteRecordsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 3 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[DeleteRecordsTopic] = []
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
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 13 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[DeleteRecordsPartition] = []
        for _ in range(count):
            partition_index, offset, tags = _unpack_iqB(buffer, position)
            position += 13
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(new(DeleteRecordsPartition, (partition_index, offset)))
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(DeleteRecordsTopic, (name, partitions)))
    topics = tuple(topics_items)
    timeout_ms, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteRecordsRequest, (topics, timeout_ms))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    topics, timeout_ms = value
    out += _pack_i(len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, offset in partitions:
            out += _pack_iq(partition_index, offset)
    out += _pack_i(timeout_ms)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    topics, timeout_ms = value
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, partitions in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
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
        for partition_index, offset in partitions:
            out += _pack_iqx(partition_index, offset)
        out.append(0)
    out += _pack_ix(timeout_ms)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> DeleteRecordsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[DeleteRecordsTopicResult] = []
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
        if count * 14 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[DeleteRecordsPartitionResult] = []
        for _ in range(count):
            partition_index, low_watermark, error_code = _unpack_iqh(buffer, position)
            position += 14
            partitions_items.append(
                new(DeleteRecordsPartitionResult, (partition_index, low_watermark, error_code))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(DeleteRecordsTopicResult, (name, partitions)))
    topics = tuple(topics_items)
    return new(DeleteRecordsResponse, (throttle_time_ms, topics))


def _decode_response_v2(buffer: bytes, position: int) -> DeleteRecordsResponse:
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
    topics_items: list[DeleteRecordsTopicResult] = []
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
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 15 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[DeleteRecordsPartitionResult] = []
        for _ in range(count):
            partition_index, low_watermark, error_code, tags = _unpack_iqhB(buffer, position)
            position += 15
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(DeleteRecordsPartitionResult, (partition_index, low_watermark, error_code))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(DeleteRecordsTopicResult, (name, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteRecordsResponse, (throttle_time_ms, topics))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, low_watermark, error_code in partitions:
            out += _pack_iqh(partition_index, low_watermark, error_code)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_i(throttle_time_ms)
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, partitions in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
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
        for partition_index, low_watermark, error_code in partitions:
            out += _pack_iqhx(partition_index, low_watermark, error_code)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DeleteRecordsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[DeleteRecordsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DeleteRecordsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[DeleteRecordsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
}
