"""CreatePartitions (key 37), versions 0 to 3.

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


class CreatePartitionsAssignment(NamedTuple):
    broker_ids: Sequence[int] = ()


class CreatePartitionsTopic(NamedTuple):
    name: str = ""
    count: int = 0  # type: ignore[assignment]
    assignments: Sequence[CreatePartitionsAssignment] | None = ()


class CreatePartitionsRequest(NamedTuple):
    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(NamedTuple):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[CreatePartitionsTopicResult] = ()


_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_it = Struct(">i?").pack
_pack_itx = Struct(">i?x").pack
_pack_ii = Struct(">ii").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_it = Struct(">i?").unpack_from
_unpack_itB = Struct(">i?B").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> CreatePartitionsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 10 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatePartitionsTopic] = []
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
        count_2, count = _unpack_ii(buffer, position)
        position += 8
        assignments: tuple[CreatePartitionsAssignment, ...] | None = None
        if count >= 0:
            if count * 4 > end - position:
                raise too_many("assignments", count, position, end)
            assignments_items: list[CreatePartitionsAssignment] = []
            for _ in range(count):
                (count,) = _unpack_i(buffer, position)
                position += 4
                if count < 0:
                    raise null_field("broker_ids")
                if count * 4 > end - position:
                    raise too_many("broker_ids", count, position, end)
                if count < len(UNPACK_INT32S):
                    broker_ids = UNPACK_INT32S[count](buffer, position)
                else:
                    broker_ids = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                assignments_items.append(new(CreatePartitionsAssignment, (broker_ids,)))
            assignments = tuple(assignments_items)
        topics_items.append(new(CreatePartitionsTopic, (name, count_2, assignments)))
    topics = tuple(topics_items)
    timeout_ms, validate_only = _unpack_it(buffer, position)
    position += 5
    return new(CreatePartitionsRequest, (topics, timeout_ms, validate_only))


def _decode_request_v2(buffer: bytes, position: int) -> CreatePartitionsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 7 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[CreatePartitionsTopic] = []
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
        count_2, count = _unpack_iB(buffer, position)
        position += 5
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        assignments: tuple[CreatePartitionsAssignment, ...] | None = None
        if count >= 0:
            if count * 2 > end - position:
                raise too_many("assignments", count, position, end)
            assignments_items: list[CreatePartitionsAssignment] = []
            for _ in range(count):
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("broker_ids")
                if count * 4 > end - position:
                    raise too_many("broker_ids", count, position, end)
                if count < len(UNPACK_INT32S):
                    broker_ids = UNPACK_INT32S[count](buffer, position)
                else:
                    broker_ids = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                assignments_items.append(new(CreatePartitionsAssignment, (broker_ids,)))
            assignments = tuple(assignments_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(CreatePartitionsTopic, (name, count_2, assignments)))
    topics = tuple(topics_items)
    timeout_ms, validate_only, tags = _unpack_itB(buffer, position)
    position += 6
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(CreatePartitionsRequest, (topics, timeout_ms, validate_only))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    topics, timeout_ms, validate_only = value
    out += _pack_i(len(topics))
    for name, count_2, assignments in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_ii(count_2, -1 if assignments is None else len(assignments))
        for (broker_ids,) in assignments or ():
            out += _pack_i(len(broker_ids))
            out += pack_int32s(broker_ids)
    out += _pack_it(timeout_ms, validate_only)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    topics, timeout_ms, validate_only = value
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, count_2, assignments in topics:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_i(count_2)
        if assignments is None:
            out.append(0)
        else:
            size = len(assignments) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for (broker_ids,) in assignments:
                size = len(broker_ids) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(broker_ids)
                out.append(0)
        out.append(0)
    out += _pack_itx(timeout_ms, validate_only)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> CreatePartitionsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("results")
    if count * 6 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[CreatePartitionsTopicResult] = []
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
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        results_items.append(new(CreatePartitionsTopicResult, (name, error_code, error_message)))
    results = tuple(results_items)
    return new(CreatePartitionsResponse, (throttle_time_ms, results))


def _decode_response_v2(buffer: bytes, position: int) -> CreatePartitionsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 5 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[CreatePartitionsTopicResult] = []
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
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(new(CreatePartitionsTopicResult, (name, error_code, error_message)))
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(CreatePartitionsResponse, (throttle_time_ms, results))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_ii(throttle_time_ms, len(results))
    for name, error_code, error_message in results:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        raw = b"" if error_message is None else error_message.encode()
        out += _pack_hh(error_code, -1 if error_message is None else len(raw))
        out += raw
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_i(throttle_time_ms)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, error_code, error_message in results:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
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
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], CreatePartitionsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
    3: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[CreatePartitionsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
    3: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], CreatePartitionsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
    3: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[CreatePartitionsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
    3: _encode_response_v2,
}
