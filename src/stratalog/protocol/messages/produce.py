"""Produce (key 0), versions 3 to 13.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence, Sized
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    NO_UUID,
    STRING_BYTES_MAX,
    Records,
    long_length,
    long_string_length,
    null_field,
    skip_tags,
    string_too_long,
    tag_count,
    tag_head,
    tag_of_another_size,
    too_long,
    too_many,
    varint,
)

new = tuple.__new__


class PartitionProduceData(NamedTuple):
    index: int = 0  # type: ignore[assignment]
    records: Records | None = None


class TopicProduceData(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partition_data: Sequence[PartitionProduceData] = ()


class ProduceRequest(NamedTuple):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: Sequence[TopicProduceData] = ()


class BatchIndexAndErrorMessage(NamedTuple):
    batch_index: int = 0
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


_DEFAULT_LeaderIdAndEpoch = LeaderIdAndEpoch()


class PartitionProduceResponse(NamedTuple):
    index: int = 0  # type: ignore[assignment]
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class TopicProduceResponse(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partition_responses: Sequence[PartitionProduceResponse] = ()


class NodeEndpoint(NamedTuple):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ProduceResponse(NamedTuple):
    responses: Sequence[TopicProduceResponse] = ()
    throttle_time_ms: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()


_pack_u = Struct(">16s").pack
_pack_h = Struct(">h").pack
_pack_hi = Struct(">hi").pack
_pack_hii = Struct(">hii").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihqq = Struct(">ihqq").pack
_pack_ihqqq = Struct(">ihqqq").pack
_pack_ihqqqi = Struct(">ihqqqi").pack
_pack_ii = Struct(">ii").pack
_pack_iix = Struct(">iix").pack
_pack_ix = Struct(">ix").pack
_unpack_uB = Struct(">16sB").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hiB = Struct(">hiB").unpack_from
_unpack_hii = Struct(">hii").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihqq = Struct(">ihqq").unpack_from
_unpack_ihqqq = Struct(">ihqqq").unpack_from
_unpack_ihqqqB = Struct(">ihqqqB").unpack_from
_unpack_ihqqqi = Struct(">ihqqqi").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiB = Struct(">iiB").unpack_from


def _decode_request_v3(buffer: memoryview, position: int) -> ProduceRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    transactional_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("transactional_id", stop - position, position, end)
        transactional_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    acks, timeout_ms, count = _unpack_hii(buffer, position)
    position += 10
    if count < 0:
        raise null_field("topic_data")
    if count * 6 > end - position:
        raise too_many("topic_data", count, position, end)
    topic_data_items: list[TopicProduceData] = []
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
            raise null_field("partition_data")
        if count * 8 > end - position:
            raise too_many("partition_data", count, position, end)
        partition_data_items: list[PartitionProduceData] = []
        for _ in range(count):
            index, size = _unpack_ii(buffer, position)
            position += 8
            records: memoryview | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            partition_data_items.append(new(PartitionProduceData, (index, records)))
        partition_data = tuple(partition_data_items)
        topic_data_items.append(new(TopicProduceData, (name, NO_UUID, partition_data)))
    topic_data = tuple(topic_data_items)
    return new(ProduceRequest, (transactional_id, acks, timeout_ms, topic_data))


def _decode_request_v9(buffer: memoryview, position: int) -> ProduceRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    transactional_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("transactional_id", stop - position, position, end)
        transactional_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    acks, timeout_ms, count = _unpack_hiB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topic_data")
    if count * 3 > end - position:
        raise too_many("topic_data", count, position, end)
    topic_data_items: list[TopicProduceData] = []
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
            raise null_field("partition_data")
        if count * 6 > end - position:
            raise too_many("partition_data", count, position, end)
        partition_data_items: list[PartitionProduceData] = []
        for _ in range(count):
            index, size = _unpack_iB(buffer, position)
            position += 5
            if size > 127:
                size, position = long_length(buffer, position - 1)
            records: memoryview | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partition_data_items.append(new(PartitionProduceData, (index, records)))
        partition_data = tuple(partition_data_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topic_data_items.append(new(TopicProduceData, (name, NO_UUID, partition_data)))
    topic_data = tuple(topic_data_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ProduceRequest, (transactional_id, acks, timeout_ms, topic_data))


def _decode_request_v13(buffer: memoryview, position: int) -> ProduceRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    transactional_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("transactional_id", stop - position, position, end)
        transactional_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    acks, timeout_ms, count = _unpack_hiB(buffer, position)
    position += 7
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topic_data")
    if count * 18 > end - position:
        raise too_many("topic_data", count, position, end)
    topic_data_items: list[TopicProduceData] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partition_data")
        if count * 6 > end - position:
            raise too_many("partition_data", count, position, end)
        partition_data_items: list[PartitionProduceData] = []
        for _ in range(count):
            index, size = _unpack_iB(buffer, position)
            position += 5
            if size > 127:
                size, position = long_length(buffer, position - 1)
            records: memoryview | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("records", stop - position, position, end)
                records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partition_data_items.append(new(PartitionProduceData, (index, records)))
        partition_data = tuple(partition_data_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topic_data_items.append(new(TopicProduceData, ("", topic_id, partition_data)))
    topic_data = tuple(topic_data_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ProduceRequest, (transactional_id, acks, timeout_ms, topic_data))


def _encode_request_v3(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    transactional_id, acks, timeout_ms, topic_data = value
    raw = b"" if transactional_id is None else transactional_id.encode()
    out += _pack_h(-1 if transactional_id is None else len(raw))
    out += raw
    out += _pack_hii(acks, timeout_ms, len(topic_data))
    for name, _, partition_data in topic_data:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partition_data))
        for index, records in partition_data:
            out += _pack_ii(index, -1 if records is None else len(records))
            if records is not None:
                out = bytearray()
                parts += (records, out)
    return parts


def _encode_request_v9(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    transactional_id, acks, timeout_ms, topic_data = value
    if transactional_id is None:
        out.append(0)
    else:
        raw = transactional_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("transactional_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_hi(acks, timeout_ms)
    size = len(topic_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, _, partition_data in topic_data:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(partition_data) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for index, records in partition_data:
            out += _pack_i(index)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out = bytearray()
                parts += (records, out)
            out.append(0)
        out.append(0)
    out.append(0)
    return parts


def _encode_request_v13(value: Any) -> list[Sized]:
    out = bytearray()
    parts: list[Sized] = [out]
    transactional_id, acks, timeout_ms, topic_data = value
    if transactional_id is None:
        out.append(0)
    else:
        raw = transactional_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("transactional_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_hi(acks, timeout_ms)
    size = len(topic_data) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partition_data in topic_data:
        out += _pack_u(topic_id)
        size = len(partition_data) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for index, records in partition_data:
            out += _pack_i(index)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out = bytearray()
                parts += (records, out)
            out.append(0)
        out.append(0)
    out.append(0)
    return parts


def _decode_response_v3(buffer: bytes, position: int) -> ProduceResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[TopicProduceResponse] = []
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
            raise null_field("partition_responses")
        if count * 22 > end - position:
            raise too_many("partition_responses", count, position, end)
        partition_responses_items: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms = _unpack_ihqq(buffer, position)
            position += 22
            partition_responses_items.append(
                new(
                    PartitionProduceResponse,
                    (
                        index,
                        error_code,
                        base_offset,
                        log_append_time_ms,
                        -1,
                        (),
                        None,
                        _DEFAULT_LeaderIdAndEpoch,
                    ),
                )
            )
        partition_responses = tuple(partition_responses_items)
        responses_items.append(new(TopicProduceResponse, (name, NO_UUID, partition_responses)))
    responses = tuple(responses_items)
    (throttle_time_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(ProduceResponse, (responses, throttle_time_ms, ()))


def _decode_response_v5(buffer: bytes, position: int) -> ProduceResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[TopicProduceResponse] = []
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
            raise null_field("partition_responses")
        if count * 30 > end - position:
            raise too_many("partition_responses", count, position, end)
        partition_responses_items: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms, log_start_offset = _unpack_ihqqq(
                buffer, position
            )
            position += 30
            partition_responses_items.append(
                new(
                    PartitionProduceResponse,
                    (
                        index,
                        error_code,
                        base_offset,
                        log_append_time_ms,
                        log_start_offset,
                        (),
                        None,
                        _DEFAULT_LeaderIdAndEpoch,
                    ),
                )
            )
        partition_responses = tuple(partition_responses_items)
        responses_items.append(new(TopicProduceResponse, (name, NO_UUID, partition_responses)))
    responses = tuple(responses_items)
    (throttle_time_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(ProduceResponse, (responses, throttle_time_ms, ()))


def _decode_response_v8(buffer: bytes, position: int) -> ProduceResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[TopicProduceResponse] = []
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
            raise null_field("partition_responses")
        if count * 36 > end - position:
            raise too_many("partition_responses", count, position, end)
        partition_responses_items: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms, log_start_offset, count = (
                _unpack_ihqqqi(buffer, position)
            )
            position += 34
            if count < 0:
                raise null_field("record_errors")
            if count * 6 > end - position:
                raise too_many("record_errors", count, position, end)
            record_errors_items: list[BatchIndexAndErrorMessage] = []
            for _ in range(count):
                batch_index, size = _unpack_ih(buffer, position)
                position += 6
                batch_index_error_message: str | None = None
                if size >= 0:
                    stop = position + size
                    if stop > end:
                        raise too_long("batch_index_error_message", stop - position, position, end)
                    batch_index_error_message = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                record_errors_items.append(
                    new(BatchIndexAndErrorMessage, (batch_index, batch_index_error_message))
                )
            record_errors = tuple(record_errors_items)
            (size,) = _unpack_h(buffer, position)
            position += 2
            error_message: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("error_message", stop - position, position, end)
                error_message = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            partition_responses_items.append(
                new(
                    PartitionProduceResponse,
                    (
                        index,
                        error_code,
                        base_offset,
                        log_append_time_ms,
                        log_start_offset,
                        record_errors,
                        error_message,
                        _DEFAULT_LeaderIdAndEpoch,
                    ),
                )
            )
        partition_responses = tuple(partition_responses_items)
        responses_items.append(new(TopicProduceResponse, (name, NO_UUID, partition_responses)))
    responses = tuple(responses_items)
    (throttle_time_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(ProduceResponse, (responses, throttle_time_ms, ()))


def _decode_response_v9(buffer: bytes, position: int) -> ProduceResponse:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 3 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[TopicProduceResponse] = []
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
            raise null_field("partition_responses")
        if count * 33 > end - position:
            raise too_many("partition_responses", count, position, end)
        partition_responses_items: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms, log_start_offset, count = (
                _unpack_ihqqqB(buffer, position)
            )
            position += 31
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("record_errors")
            if count * 6 > end - position:
                raise too_many("record_errors", count, position, end)
            record_errors_items: list[BatchIndexAndErrorMessage] = []
            for _ in range(count):
                batch_index, size = _unpack_iB(buffer, position)
                position += 5
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                batch_index_error_message: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("batch_index_error_message", stop - position, position, end)
                    batch_index_error_message = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                record_errors_items.append(
                    new(BatchIndexAndErrorMessage, (batch_index, batch_index_error_message))
                )
            record_errors = tuple(record_errors_items)
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            error_message: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("error_message", stop - position, position, end)
                error_message = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partition_responses_items.append(
                new(
                    PartitionProduceResponse,
                    (
                        index,
                        error_code,
                        base_offset,
                        log_append_time_ms,
                        log_start_offset,
                        record_errors,
                        error_message,
                        _DEFAULT_LeaderIdAndEpoch,
                    ),
                )
            )
        partition_responses = tuple(partition_responses_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(TopicProduceResponse, (name, NO_UUID, partition_responses)))
    responses = tuple(responses_items)
    throttle_time_ms, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ProduceResponse, (responses, throttle_time_ms, ()))


def _decode_response_v10(buffer: bytes, position: int) -> ProduceResponse:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 3 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[TopicProduceResponse] = []
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
            raise null_field("partition_responses")
        if count * 33 > end - position:
            raise too_many("partition_responses", count, position, end)
        partition_responses_items: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms, log_start_offset, count = (
                _unpack_ihqqqB(buffer, position)
            )
            position += 31
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("record_errors")
            if count * 6 > end - position:
                raise too_many("record_errors", count, position, end)
            record_errors_items: list[BatchIndexAndErrorMessage] = []
            for _ in range(count):
                batch_index, size = _unpack_iB(buffer, position)
                position += 5
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                batch_index_error_message: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("batch_index_error_message", stop - position, position, end)
                    batch_index_error_message = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                record_errors_items.append(
                    new(BatchIndexAndErrorMessage, (batch_index, batch_index_error_message))
                )
            record_errors = tuple(record_errors_items)
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            error_message: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("error_message", stop - position, position, end)
                error_message = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            current_leader: LeaderIdAndEpoch = _DEFAULT_LeaderIdAndEpoch
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        leader_id, leader_epoch, tags = _unpack_iiB(buffer, position)
                        position += 9
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        current_leader_2 = new(LeaderIdAndEpoch, (leader_id, leader_epoch))
                        current_leader = current_leader_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partition_responses_items.append(
                new(
                    PartitionProduceResponse,
                    (
                        index,
                        error_code,
                        base_offset,
                        log_append_time_ms,
                        log_start_offset,
                        record_errors,
                        error_message,
                        current_leader,
                    ),
                )
            )
        partition_responses = tuple(partition_responses_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(TopicProduceResponse, (name, NO_UUID, partition_responses)))
    responses = tuple(responses_items)
    throttle_time_ms, tags = _unpack_iB(buffer, position)
    position += 5
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number_2, position, tag_end_2 = tag_head(buffer, position)
            if tag_number_2 == 0:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("node_endpoints")
                if count * 11 > end - position:
                    raise too_many("node_endpoints", count, position, end)
                node_endpoints_2_items: list[NodeEndpoint] = []
                for _ in range(count):
                    node_id, size = _unpack_iB(buffer, position)
                    position += 5
                    if size > 127:
                        size, position = long_string_length(buffer, position - 1)
                    if not size:
                        raise null_field("host")
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("host", stop - position, position, end)
                    host = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                    port, size = _unpack_iB(buffer, position)
                    position += 5
                    if size > 127:
                        size, position = long_string_length(buffer, position - 1)
                    rack: str | None = None
                    if size:
                        stop = position + size - 1
                        if stop > end:
                            raise too_long("rack", stop - position, position, end)
                        rack = str(buffer[position:stop], "utf-8", "replace")
                        position = stop
                    tags = buffer[position]
                    position += 1
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    node_endpoints_2_items.append(new(NodeEndpoint, (node_id, host, port, rack)))
                node_endpoints_2 = tuple(node_endpoints_2_items)
                node_endpoints = node_endpoints_2
            else:
                position = tag_end_2
            if position != tag_end_2:
                raise tag_of_another_size(tag_number_2, position, tag_end_2)
    return new(ProduceResponse, (responses, throttle_time_ms, node_endpoints))


def _decode_response_v13(buffer: bytes, position: int) -> ProduceResponse:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 18 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[TopicProduceResponse] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partition_responses")
        if count * 33 > end - position:
            raise too_many("partition_responses", count, position, end)
        partition_responses_items: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms, log_start_offset, count = (
                _unpack_ihqqqB(buffer, position)
            )
            position += 31
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("record_errors")
            if count * 6 > end - position:
                raise too_many("record_errors", count, position, end)
            record_errors_items: list[BatchIndexAndErrorMessage] = []
            for _ in range(count):
                batch_index, size = _unpack_iB(buffer, position)
                position += 5
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                batch_index_error_message: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("batch_index_error_message", stop - position, position, end)
                    batch_index_error_message = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                record_errors_items.append(
                    new(BatchIndexAndErrorMessage, (batch_index, batch_index_error_message))
                )
            record_errors = tuple(record_errors_items)
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            error_message: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("error_message", stop - position, position, end)
                error_message = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            current_leader: LeaderIdAndEpoch = _DEFAULT_LeaderIdAndEpoch
            if tags:
                tags, position = tag_count(buffer, position - 1)
                for _ in range(tags):
                    tag_number, position, tag_end = tag_head(buffer, position)
                    if tag_number == 0:
                        leader_id, leader_epoch, tags = _unpack_iiB(buffer, position)
                        position += 9
                        if tags:
                            position = skip_tags(buffer, position - 1)
                        current_leader_2 = new(LeaderIdAndEpoch, (leader_id, leader_epoch))
                        current_leader = current_leader_2
                    else:
                        position = tag_end
                    if position != tag_end:
                        raise tag_of_another_size(tag_number, position, tag_end)
            partition_responses_items.append(
                new(
                    PartitionProduceResponse,
                    (
                        index,
                        error_code,
                        base_offset,
                        log_append_time_ms,
                        log_start_offset,
                        record_errors,
                        error_message,
                        current_leader,
                    ),
                )
            )
        partition_responses = tuple(partition_responses_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(TopicProduceResponse, ("", topic_id, partition_responses)))
    responses = tuple(responses_items)
    throttle_time_ms, tags = _unpack_iB(buffer, position)
    position += 5
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number_2, position, tag_end_2 = tag_head(buffer, position)
            if tag_number_2 == 0:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("node_endpoints")
                if count * 11 > end - position:
                    raise too_many("node_endpoints", count, position, end)
                node_endpoints_2_items: list[NodeEndpoint] = []
                for _ in range(count):
                    node_id, size = _unpack_iB(buffer, position)
                    position += 5
                    if size > 127:
                        size, position = long_string_length(buffer, position - 1)
                    if not size:
                        raise null_field("host")
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("host", stop - position, position, end)
                    host = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                    port, size = _unpack_iB(buffer, position)
                    position += 5
                    if size > 127:
                        size, position = long_string_length(buffer, position - 1)
                    rack: str | None = None
                    if size:
                        stop = position + size - 1
                        if stop > end:
                            raise too_long("rack", stop - position, position, end)
                        rack = str(buffer[position:stop], "utf-8", "replace")
                        position = stop
                    tags = buffer[position]
                    position += 1
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    node_endpoints_2_items.append(new(NodeEndpoint, (node_id, host, port, rack)))
                node_endpoints_2 = tuple(node_endpoints_2_items)
                node_endpoints = node_endpoints_2
            else:
                position = tag_end_2
            if position != tag_end_2:
                raise tag_of_another_size(tag_number_2, position, tag_end_2)
    return new(ProduceResponse, (responses, throttle_time_ms, node_endpoints))


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    responses, throttle_time_ms, _ = value
    out += _pack_i(len(responses))
    for name, _, partition_responses in responses:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partition_responses))
        for index, error_code, base_offset, log_append_time_ms, _, _, _, _ in partition_responses:
            out += _pack_ihqq(index, error_code, base_offset, log_append_time_ms)
    out += _pack_i(throttle_time_ms)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    responses, throttle_time_ms, _ = value
    out += _pack_i(len(responses))
    for name, _, partition_responses in responses:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partition_responses))
        for (
            index,
            error_code,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            _,
            _,
            _,
        ) in partition_responses:
            out += _pack_ihqqq(index, error_code, base_offset, log_append_time_ms, log_start_offset)
    out += _pack_i(throttle_time_ms)
    return out


def _encode_response_v8(value: Any) -> bytearray:
    out = bytearray()
    responses, throttle_time_ms, _ = value
    out += _pack_i(len(responses))
    for name, _, partition_responses in responses:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partition_responses))
        for (
            index,
            error_code,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            record_errors,
            error_message,
            _,
        ) in partition_responses:
            out += _pack_ihqqqi(
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                log_start_offset,
                len(record_errors),
            )
            for batch_index, batch_index_error_message in record_errors:
                raw = (
                    b"" if batch_index_error_message is None else batch_index_error_message.encode()
                )
                out += _pack_ih(batch_index, -1 if batch_index_error_message is None else len(raw))
                out += raw
            raw = b"" if error_message is None else error_message.encode()
            out += _pack_h(-1 if error_message is None else len(raw))
            out += raw
    out += _pack_i(throttle_time_ms)
    return out


def _encode_response_v9(value: Any) -> bytearray:
    out = bytearray()
    responses, throttle_time_ms, _ = value
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, _, partition_responses in responses:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(partition_responses) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            index,
            error_code,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            record_errors,
            error_message,
            _,
        ) in partition_responses:
            out += _pack_ihqqq(index, error_code, base_offset, log_append_time_ms, log_start_offset)
            size = len(record_errors) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for batch_index, batch_index_error_message in record_errors:
                out += _pack_i(batch_index)
                if batch_index_error_message is None:
                    out.append(0)
                else:
                    raw = batch_index_error_message.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("batch_index_error_message", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out.append(0)
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
            out.append(0)
        out.append(0)
    out += _pack_ix(throttle_time_ms)
    return out


def _encode_response_v10(value: Any) -> bytearray:
    out = bytearray()
    responses, throttle_time_ms, node_endpoints = value
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, _, partition_responses in responses:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(partition_responses) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            index,
            error_code,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            record_errors,
            error_message,
            current_leader,
        ) in partition_responses:
            out += _pack_ihqqq(index, error_code, base_offset, log_append_time_ms, log_start_offset)
            size = len(record_errors) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for batch_index, batch_index_error_message in record_errors:
                out += _pack_i(batch_index)
                if batch_index_error_message is None:
                    out.append(0)
                else:
                    raw = batch_index_error_message.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("batch_index_error_message", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out.append(0)
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
            if (
                current_leader is not _DEFAULT_LeaderIdAndEpoch
                and current_leader != _DEFAULT_LeaderIdAndEpoch
            ):
                out.append(1)
                if (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                ):
                    tagged = bytearray()
                    leader_id, leader_epoch = current_leader
                    tagged += _pack_iix(leader_id, leader_epoch)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
            else:
                out.append(0)
        out.append(0)
    out += _pack_i(throttle_time_ms)
    if len(node_endpoints) > 0:
        out.append(1)
        if len(node_endpoints) > 0:
            tagged_2 = bytearray()
            size = len(node_endpoints) + 1
            if size < 128:
                tagged_2.append(size)
            else:
                tagged_2 += varint(size)
            for node_id, host, port, rack in node_endpoints:
                tagged_2 += _pack_i(node_id)
                raw = host.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("host", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged_2.append(size)
                else:
                    tagged_2 += varint(size)
                tagged_2 += raw
                tagged_2 += _pack_i(port)
                if rack is None:
                    tagged_2.append(0)
                else:
                    raw = rack.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("rack", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        tagged_2.append(size)
                    else:
                        tagged_2 += varint(size)
                    tagged_2 += raw
                tagged_2.append(0)
            out += varint(0)
            out += varint(len(tagged_2))
            out += tagged_2
    else:
        out.append(0)
    return out


def _encode_response_v13(value: Any) -> bytearray:
    out = bytearray()
    responses, throttle_time_ms, node_endpoints = value
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for _, topic_id, partition_responses in responses:
        out += _pack_u(topic_id)
        size = len(partition_responses) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            index,
            error_code,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            record_errors,
            error_message,
            current_leader,
        ) in partition_responses:
            out += _pack_ihqqq(index, error_code, base_offset, log_append_time_ms, log_start_offset)
            size = len(record_errors) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for batch_index, batch_index_error_message in record_errors:
                out += _pack_i(batch_index)
                if batch_index_error_message is None:
                    out.append(0)
                else:
                    raw = batch_index_error_message.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("batch_index_error_message", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out.append(0)
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
            if (
                current_leader is not _DEFAULT_LeaderIdAndEpoch
                and current_leader != _DEFAULT_LeaderIdAndEpoch
            ):
                out.append(1)
                if (
                    current_leader is not _DEFAULT_LeaderIdAndEpoch
                    and current_leader != _DEFAULT_LeaderIdAndEpoch
                ):
                    tagged = bytearray()
                    leader_id, leader_epoch = current_leader
                    tagged += _pack_iix(leader_id, leader_epoch)
                    out += varint(0)
                    out += varint(len(tagged))
                    out += tagged
            else:
                out.append(0)
        out.append(0)
    out += _pack_i(throttle_time_ms)
    if len(node_endpoints) > 0:
        out.append(1)
        if len(node_endpoints) > 0:
            tagged_2 = bytearray()
            size = len(node_endpoints) + 1
            if size < 128:
                tagged_2.append(size)
            else:
                tagged_2 += varint(size)
            for node_id, host, port, rack in node_endpoints:
                tagged_2 += _pack_i(node_id)
                raw = host.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("host", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged_2.append(size)
                else:
                    tagged_2 += varint(size)
                tagged_2 += raw
                tagged_2 += _pack_i(port)
                if rack is None:
                    tagged_2.append(0)
                else:
                    raw = rack.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("rack", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        tagged_2.append(size)
                    else:
                        tagged_2 += varint(size)
                    tagged_2 += raw
                tagged_2.append(0)
            out += varint(0)
            out += varint(len(tagged_2))
            out += tagged_2
    else:
        out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[memoryview, int], ProduceRequest]] = {
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
    6: _decode_request_v3,
    7: _decode_request_v3,
    8: _decode_request_v3,
    9: _decode_request_v9,
    10: _decode_request_v9,
    11: _decode_request_v9,
    12: _decode_request_v9,
    13: _decode_request_v13,
}

ENCODE_REQUEST: dict[int, Callable[[ProduceRequest], list[Sized]]] = {
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
    6: _encode_request_v3,
    7: _encode_request_v3,
    8: _encode_request_v3,
    9: _encode_request_v9,
    10: _encode_request_v9,
    11: _encode_request_v9,
    12: _encode_request_v9,
    13: _encode_request_v13,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], ProduceResponse]] = {
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v5,
    8: _decode_response_v8,
    9: _decode_response_v9,
    10: _decode_response_v10,
    11: _decode_response_v10,
    12: _decode_response_v10,
    13: _decode_response_v13,
}

ENCODE_RESPONSE: dict[int, Callable[[ProduceResponse], bytearray]] = {
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v5,
    8: _encode_response_v8,
    9: _encode_response_v9,
    10: _encode_response_v10,
    11: _encode_response_v10,
    12: _encode_response_v10,
    13: _encode_response_v13,
}
