"""DeleteTopics (key 20), versions 1 to 6.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    NO_UUID,
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


class DeleteTopicState(NamedTuple):
    name: str | None = None
    topic_id: bytes = NO_UUID


class DeleteTopicsRequest(NamedTuple):
    topic_names: Sequence[str] = ()
    topics: Sequence[DeleteTopicState] = ()
    timeout_ms: int = 0


class DeletableTopicResult(NamedTuple):
    name: str | None = ""
    topic_id: bytes = NO_UUID
    error_code: int = 0
    error_message: str | None = None


class DeleteTopicsResponse(NamedTuple):
    throttle_time_ms: int = 0
    responses: Sequence[DeletableTopicResult] = ()


_pack_uh = Struct(">16sh").pack
_pack_ux = Struct(">16sx").pack
_pack_h = Struct(">h").pack
_pack_hx = Struct(">hx").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_pack_ix = Struct(">ix").pack
_unpack_uB = Struct(">16sB").unpack_from
_unpack_uhB = Struct(">16shB").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v1(buffer: bytes, position: int) -> DeleteTopicsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topic_names")
    if count * 2 > end - position:
        raise too_many("topic_names", count, position, end)
    topic_names_items: list[str] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("item")
        stop = position + size
        if stop > end:
            raise too_long("item", stop - position, position, end)
        item = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        topic_names_items.append(item)
    topic_names = tuple(topic_names_items)
    (timeout_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(DeleteTopicsRequest, (topic_names, (), timeout_ms))


def _decode_request_v4(buffer: bytes, position: int) -> DeleteTopicsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topic_names")
    if count > end - position:
        raise too_many("topic_names", count, position, end)
    topic_names_items: list[str] = []
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
        topic_names_items.append(item)
    topic_names = tuple(topic_names_items)
    timeout_ms, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteTopicsRequest, (topic_names, (), timeout_ms))


def _decode_request_v6(buffer: bytes, position: int) -> DeleteTopicsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 18 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[DeleteTopicState] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        name: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        topic_id, tags = _unpack_uB(buffer, position)
        position += 17
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(DeleteTopicState, (name, topic_id)))
    topics = tuple(topics_items)
    timeout_ms, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteTopicsRequest, ((), topics, timeout_ms))


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    topic_names, _, timeout_ms = value
    out += _pack_i(len(topic_names))
    for item in topic_names:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_i(timeout_ms)
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    topic_names, _, timeout_ms = value
    size = len(topic_names) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for item in topic_names:
        raw = item.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("topic_names", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    out += _pack_ix(timeout_ms)
    return out


def _encode_request_v6(value: Any) -> bytearray:
    out = bytearray()
    _, topics, timeout_ms = value
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, topic_id in topics:
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
        out += _pack_ux(topic_id)
    out += _pack_ix(timeout_ms)
    return out


def _decode_response_v1(buffer: bytes, position: int) -> DeleteTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("responses")
    if count * 4 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[DeletableTopicResult] = []
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
        (error_code,) = _unpack_h(buffer, position)
        position += 2
        responses_items.append(new(DeletableTopicResult, (name, NO_UUID, error_code, None)))
    responses = tuple(responses_items)
    return new(DeleteTopicsResponse, (throttle_time_ms, responses))


def _decode_response_v4(buffer: bytes, position: int) -> DeleteTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 4 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[DeletableTopicResult] = []
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
        error_code, tags = _unpack_hB(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(new(DeletableTopicResult, (name, NO_UUID, error_code, None)))
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteTopicsResponse, (throttle_time_ms, responses))


def _decode_response_v5(buffer: bytes, position: int) -> DeleteTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 5 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[DeletableTopicResult] = []
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
        responses_items.append(
            new(DeletableTopicResult, (name, NO_UUID, error_code, error_message))
        )
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteTopicsResponse, (throttle_time_ms, responses))


def _decode_response_v6(buffer: bytes, position: int) -> DeleteTopicsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 21 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[DeletableTopicResult] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        name: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        topic_id, error_code, size = _unpack_uhB(buffer, position)
        position += 19
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
        responses_items.append(
            new(DeletableTopicResult, (name, topic_id, error_code, error_message))
        )
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DeleteTopicsResponse, (throttle_time_ms, responses))


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, responses = value
    out += _pack_ii(throttle_time_ms, len(responses))
    for name, _, error_code, _ in responses:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_h(error_code)
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, responses = value
    out += _pack_i(throttle_time_ms)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, _, error_code, _ in responses:
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_hx(error_code)
    out.append(0)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, responses = value
    out += _pack_i(throttle_time_ms)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, _, error_code, error_message in responses:
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


def _encode_response_v6(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, responses = value
    out += _pack_i(throttle_time_ms)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for name, topic_id, error_code, error_message in responses:
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
        out += _pack_uh(topic_id, error_code)
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


DECODE_REQUEST: dict[int, Callable[[bytes, int], DeleteTopicsRequest]] = {
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v1,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v6,
}

ENCODE_REQUEST: dict[int, Callable[[DeleteTopicsRequest], bytearray]] = {
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v1,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v6,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DeleteTopicsResponse]] = {
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v1,
    4: _decode_response_v4,
    5: _decode_response_v5,
    6: _decode_response_v6,
}

ENCODE_RESPONSE: dict[int, Callable[[DeleteTopicsResponse], bytearray]] = {
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v1,
    4: _encode_response_v4,
    5: _encode_response_v5,
    6: _encode_response_v6,
}
