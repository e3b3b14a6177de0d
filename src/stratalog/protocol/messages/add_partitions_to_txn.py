"""AddPartitionsToTxn (key 24), versions 0 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
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


class AddPartitionsToTxnTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[int] = ()


class AddPartitionsToTxnRequest(NamedTuple):
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnPartitionResult(NamedTuple):
    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(NamedTuple):
    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResponse(NamedTuple):
    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = ()


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihx = Struct(">ihx").pack
_pack_ii = Struct(">ii").pack
_pack_qh = Struct(">qh").pack
_pack_qhi = Struct(">qhi").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_qhB = Struct(">qhB").unpack_from
_unpack_qhi = Struct(">qhi").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> AddPartitionsToTxnRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("v3_and_below_transactional_id")
    stop = position + size
    if stop > end:
        raise too_long("v3_and_below_transactional_id", stop - position, position, end)
    v3_and_below_transactional_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    v3_and_below_producer_id, v3_and_below_producer_epoch, count = _unpack_qhi(buffer, position)
    position += 14
    if count < 0:
        raise null_field("v3_and_below_topics")
    if count * 6 > end - position:
        raise too_many("v3_and_below_topics", count, position, end)
    v3_and_below_topics_items: list[AddPartitionsToTxnTopic] = []
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
        if count < len(UNPACK_INT32S):
            partitions = UNPACK_INT32S[count](buffer, position)
        else:
            partitions = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        v3_and_below_topics_items.append(new(AddPartitionsToTxnTopic, (name, partitions)))
    v3_and_below_topics = tuple(v3_and_below_topics_items)
    return new(
        AddPartitionsToTxnRequest,
        (
            v3_and_below_transactional_id,
            v3_and_below_producer_id,
            v3_and_below_producer_epoch,
            v3_and_below_topics,
        ),
    )


def _decode_request_v3(buffer: bytes, position: int) -> AddPartitionsToTxnRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("v3_and_below_transactional_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("v3_and_below_transactional_id", stop - position, position, end)
    v3_and_below_transactional_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    v3_and_below_producer_id, v3_and_below_producer_epoch, count = _unpack_qhB(buffer, position)
    position += 11
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("v3_and_below_topics")
    if count * 3 > end - position:
        raise too_many("v3_and_below_topics", count, position, end)
    v3_and_below_topics_items: list[AddPartitionsToTxnTopic] = []
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
        v3_and_below_topics_items.append(new(AddPartitionsToTxnTopic, (name, partitions)))
    v3_and_below_topics = tuple(v3_and_below_topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        AddPartitionsToTxnRequest,
        (
            v3_and_below_transactional_id,
            v3_and_below_producer_id,
            v3_and_below_producer_epoch,
            v3_and_below_topics,
        ),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    (
        v3_and_below_transactional_id,
        v3_and_below_producer_id,
        v3_and_below_producer_epoch,
        v3_and_below_topics,
    ) = value
    raw = v3_and_below_transactional_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_qhi(
        v3_and_below_producer_id, v3_and_below_producer_epoch, len(v3_and_below_topics)
    )
    for name, partitions in v3_and_below_topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        out += pack_int32s(partitions)
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    (
        v3_and_below_transactional_id,
        v3_and_below_producer_id,
        v3_and_below_producer_epoch,
        v3_and_below_topics,
    ) = value
    raw = v3_and_below_transactional_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("v3_and_below_transactional_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_qh(v3_and_below_producer_id, v3_and_below_producer_epoch)
    size = len(v3_and_below_topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, partitions in v3_and_below_topics:
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
        out += pack_int32s(partitions)
        out.append(0)
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> AddPartitionsToTxnResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("results_by_topic_v3_and_below")
    if count * 6 > end - position:
        raise too_many("results_by_topic_v3_and_below", count, position, end)
    results_by_topic_v3_and_below_items: list[AddPartitionsToTxnTopicResult] = []
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
            raise null_field("results_by_partition")
        if count * 6 > end - position:
            raise too_many("results_by_partition", count, position, end)
        results_by_partition_items: list[AddPartitionsToTxnPartitionResult] = []
        for _ in range(count):
            partition_index, partition_error_code = _unpack_ih(buffer, position)
            position += 6
            results_by_partition_items.append(
                new(AddPartitionsToTxnPartitionResult, (partition_index, partition_error_code))
            )
        results_by_partition = tuple(results_by_partition_items)
        results_by_topic_v3_and_below_items.append(
            new(AddPartitionsToTxnTopicResult, (name, results_by_partition))
        )
    results_by_topic_v3_and_below = tuple(results_by_topic_v3_and_below_items)
    return new(AddPartitionsToTxnResponse, (throttle_time_ms, results_by_topic_v3_and_below))


def _decode_response_v3(buffer: bytes, position: int) -> AddPartitionsToTxnResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results_by_topic_v3_and_below")
    if count * 3 > end - position:
        raise too_many("results_by_topic_v3_and_below", count, position, end)
    results_by_topic_v3_and_below_items: list[AddPartitionsToTxnTopicResult] = []
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
            raise null_field("results_by_partition")
        if count * 7 > end - position:
            raise too_many("results_by_partition", count, position, end)
        results_by_partition_items: list[AddPartitionsToTxnPartitionResult] = []
        for _ in range(count):
            partition_index, partition_error_code, tags = _unpack_ihB(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position - 1)
            results_by_partition_items.append(
                new(AddPartitionsToTxnPartitionResult, (partition_index, partition_error_code))
            )
        results_by_partition = tuple(results_by_partition_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        results_by_topic_v3_and_below_items.append(
            new(AddPartitionsToTxnTopicResult, (name, results_by_partition))
        )
    results_by_topic_v3_and_below = tuple(results_by_topic_v3_and_below_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(AddPartitionsToTxnResponse, (throttle_time_ms, results_by_topic_v3_and_below))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results_by_topic_v3_and_below = value
    out += _pack_ii(throttle_time_ms, len(results_by_topic_v3_and_below))
    for name, results_by_partition in results_by_topic_v3_and_below:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(results_by_partition))
        for partition_index, partition_error_code in results_by_partition:
            out += _pack_ih(partition_index, partition_error_code)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results_by_topic_v3_and_below = value
    out += _pack_i(throttle_time_ms)
    size = len(results_by_topic_v3_and_below) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, results_by_partition in results_by_topic_v3_and_below:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(results_by_partition) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for partition_index, partition_error_code in results_by_partition:
            out += _pack_ihx(partition_index, partition_error_code)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], AddPartitionsToTxnRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
}

ENCODE_REQUEST: dict[int, Callable[[AddPartitionsToTxnRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], AddPartitionsToTxnResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
}

ENCODE_RESPONSE: dict[int, Callable[[AddPartitionsToTxnResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
}
