"""ListOffsets (key 2), versions 1 to 11.

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


class ListOffsetsPartition(NamedTuple):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


class ListOffsetsTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[ListOffsetsPartition] = ()


class ListOffsetsRequest(NamedTuple):
    replica_id: int = 0
    isolation_level: int = 0
    topics: Sequence[ListOffsetsTopic] = ()
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(NamedTuple):
    name: str = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[ListOffsetsTopicResponse] = ()


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ib = Struct(">ib").pack
_pack_ibi = Struct(">ibi").pack
_pack_ihqq = Struct(">ihqq").pack
_pack_ihqqi = Struct(">ihqqi").pack
_pack_ihqqix = Struct(">ihqqix").pack
_pack_ii = Struct(">ii").pack
_pack_iiq = Struct(">iiq").pack
_pack_iiqx = Struct(">iiqx").pack
_pack_iq = Struct(">iq").pack
_pack_ix = Struct(">ix").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ibB = Struct(">ibB").unpack_from
_unpack_ibi = Struct(">ibi").unpack_from
_unpack_ihqq = Struct(">ihqq").unpack_from
_unpack_ihqqi = Struct(">ihqqi").unpack_from
_unpack_ihqqiB = Struct(">ihqqiB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiq = Struct(">iiq").unpack_from
_unpack_iiqB = Struct(">iiqB").unpack_from
_unpack_iq = Struct(">iq").unpack_from


def _decode_request_v1(buffer: bytes, position: int) -> ListOffsetsRequest:
    end = len(buffer)
    replica_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopic] = []
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
        partitions_items: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, timestamp = _unpack_iq(buffer, position)
            position += 12
            partitions_items.append(new(ListOffsetsPartition, (partition_index, -1, timestamp)))
        partitions = tuple(partitions_items)
        topics_items.append(new(ListOffsetsTopic, (name, partitions)))
    topics = tuple(topics_items)
    return new(ListOffsetsRequest, (replica_id, 0, topics, 0))


def _decode_request_v2(buffer: bytes, position: int) -> ListOffsetsRequest:
    end = len(buffer)
    replica_id, isolation_level, count = _unpack_ibi(buffer, position)
    position += 9
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopic] = []
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
        partitions_items: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, timestamp = _unpack_iq(buffer, position)
            position += 12
            partitions_items.append(new(ListOffsetsPartition, (partition_index, -1, timestamp)))
        partitions = tuple(partitions_items)
        topics_items.append(new(ListOffsetsTopic, (name, partitions)))
    topics = tuple(topics_items)
    return new(ListOffsetsRequest, (replica_id, isolation_level, topics, 0))


def _decode_request_v4(buffer: bytes, position: int) -> ListOffsetsRequest:
    end = len(buffer)
    replica_id, isolation_level, count = _unpack_ibi(buffer, position)
    position += 9
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopic] = []
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
        if count * 16 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, current_leader_epoch, timestamp = _unpack_iiq(buffer, position)
            position += 16
            partitions_items.append(
                new(ListOffsetsPartition, (partition_index, current_leader_epoch, timestamp))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(ListOffsetsTopic, (name, partitions)))
    topics = tuple(topics_items)
    return new(ListOffsetsRequest, (replica_id, isolation_level, topics, 0))


def _decode_request_v6(buffer: bytes, position: int) -> ListOffsetsRequest:
    end = len(buffer)
    replica_id, isolation_level, count = _unpack_ibB(buffer, position)
    position += 6
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 3 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopic] = []
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
        if count * 17 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, current_leader_epoch, timestamp, tags = _unpack_iiqB(buffer, position)
            position += 17
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(ListOffsetsPartition, (partition_index, current_leader_epoch, timestamp))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(ListOffsetsTopic, (name, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListOffsetsRequest, (replica_id, isolation_level, topics, 0))


def _decode_request_v10(buffer: bytes, position: int) -> ListOffsetsRequest:
    end = len(buffer)
    replica_id, isolation_level, count = _unpack_ibB(buffer, position)
    position += 6
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 3 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopic] = []
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
        if count * 17 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, current_leader_epoch, timestamp, tags = _unpack_iiqB(buffer, position)
            position += 17
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(ListOffsetsPartition, (partition_index, current_leader_epoch, timestamp))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(ListOffsetsTopic, (name, partitions)))
    topics = tuple(topics_items)
    timeout_ms, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListOffsetsRequest, (replica_id, isolation_level, topics, timeout_ms))


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    replica_id, _, topics, _ = value
    out += _pack_ii(replica_id, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, _, timestamp in partitions:
            out += _pack_iq(partition_index, timestamp)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    replica_id, isolation_level, topics, _ = value
    out += _pack_ibi(replica_id, isolation_level, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, _, timestamp in partitions:
            out += _pack_iq(partition_index, timestamp)
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    replica_id, isolation_level, topics, _ = value
    out += _pack_ibi(replica_id, isolation_level, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, current_leader_epoch, timestamp in partitions:
            out += _pack_iiq(partition_index, current_leader_epoch, timestamp)
    return out


def _encode_request_v6(value: Any) -> bytearray:
    out = bytearray()
    replica_id, isolation_level, topics, _ = value
    out += _pack_ib(replica_id, isolation_level)
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
        for partition_index, current_leader_epoch, timestamp in partitions:
            out += _pack_iiqx(partition_index, current_leader_epoch, timestamp)
        out.append(0)
    out.append(0)
    return out


def _encode_request_v10(value: Any) -> bytearray:
    out = bytearray()
    replica_id, isolation_level, topics, timeout_ms = value
    out += _pack_ib(replica_id, isolation_level)
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
        for partition_index, current_leader_epoch, timestamp in partitions:
            out += _pack_iiqx(partition_index, current_leader_epoch, timestamp)
        out.append(0)
    out += _pack_ix(timeout_ms)
    return out


def _decode_response_v1(buffer: bytes, position: int) -> ListOffsetsResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopicResponse] = []
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
        if count * 22 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partition_index, error_code, timestamp, offset = _unpack_ihqq(buffer, position)
            position += 22
            partitions_items.append(
                new(
                    ListOffsetsPartitionResponse,
                    (partition_index, error_code, timestamp, offset, -1),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(ListOffsetsTopicResponse, (name, partitions)))
    topics = tuple(topics_items)
    return new(ListOffsetsResponse, (0, topics))


def _decode_response_v2(buffer: bytes, position: int) -> ListOffsetsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopicResponse] = []
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
        if count * 22 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partition_index, error_code, timestamp, offset = _unpack_ihqq(buffer, position)
            position += 22
            partitions_items.append(
                new(
                    ListOffsetsPartitionResponse,
                    (partition_index, error_code, timestamp, offset, -1),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(ListOffsetsTopicResponse, (name, partitions)))
    topics = tuple(topics_items)
    return new(ListOffsetsResponse, (throttle_time_ms, topics))


def _decode_response_v4(buffer: bytes, position: int) -> ListOffsetsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[ListOffsetsTopicResponse] = []
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
        if count * 26 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partition_index, error_code, timestamp, offset, leader_epoch = _unpack_ihqqi(
                buffer, position
            )
            position += 26
            partitions_items.append(
                new(
                    ListOffsetsPartitionResponse,
                    (partition_index, error_code, timestamp, offset, leader_epoch),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(ListOffsetsTopicResponse, (name, partitions)))
    topics = tuple(topics_items)
    return new(ListOffsetsResponse, (throttle_time_ms, topics))


def _decode_response_v6(buffer: bytes, position: int) -> ListOffsetsResponse:
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
    topics_items: list[ListOffsetsTopicResponse] = []
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
        if count * 27 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partition_index, error_code, timestamp, offset, leader_epoch, tags = _unpack_ihqqiB(
                buffer, position
            )
            position += 27
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    ListOffsetsPartitionResponse,
                    (partition_index, error_code, timestamp, offset, leader_epoch),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(ListOffsetsTopicResponse, (name, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ListOffsetsResponse, (throttle_time_ms, topics))


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    _, topics = value
    out += _pack_i(len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, error_code, timestamp, offset, _ in partitions:
            out += _pack_ihqq(partition_index, error_code, timestamp, offset)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, error_code, timestamp, offset, _ in partitions:
            out += _pack_ihqq(partition_index, error_code, timestamp, offset)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, error_code, timestamp, offset, leader_epoch in partitions:
            out += _pack_ihqqi(partition_index, error_code, timestamp, offset, leader_epoch)
    return out


def _encode_response_v6(value: Any) -> bytearray:
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
        for partition_index, error_code, timestamp, offset, leader_epoch in partitions:
            out += _pack_ihqqix(partition_index, error_code, timestamp, offset, leader_epoch)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], ListOffsetsRequest]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v6,
    7: _decode_request_v6,
    8: _decode_request_v6,
    9: _decode_request_v6,
    10: _decode_request_v10,
    11: _decode_request_v10,
}

ENCODE_REQUEST: dict[int, Callable[[ListOffsetsRequest], bytearray]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v6,
    7: _encode_request_v6,
    8: _encode_request_v6,
    9: _encode_request_v6,
    10: _encode_request_v10,
    11: _encode_request_v10,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], ListOffsetsResponse]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v4,
    5: _decode_response_v4,
    6: _decode_response_v6,
    7: _decode_response_v6,
    8: _decode_response_v6,
    9: _decode_response_v6,
    10: _decode_response_v6,
    11: _decode_response_v6,
}

ENCODE_RESPONSE: dict[int, Callable[[ListOffsetsResponse], bytearray]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v4,
    5: _encode_response_v4,
    6: _encode_response_v6,
    7: _encode_response_v6,
    8: _encode_response_v6,
    9: _encode_response_v6,
    10: _encode_response_v6,
    11: _encode_response_v6,
}
