"""AlterConfigs (key 33), versions 0 to 2.

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


class AlterableConfig(NamedTuple):
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(NamedTuple):
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class AlterConfigsRequest(NamedTuple):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponse(NamedTuple):
    throttle_time_ms: int = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()


_pack_t = Struct(">?").pack
_pack_tx = Struct(">?x").pack
_pack_b = Struct(">b").pack
_pack_bh = Struct(">bh").pack
_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_unpack_t = Struct(">?").unpack_from
_unpack_tB = Struct(">?B").unpack_from
_unpack_bB = Struct(">bB").unpack_from
_unpack_bh = Struct(">bh").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> AlterConfigsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("resources")
    if count * 7 > end - position:
        raise too_many("resources", count, position, end)
    resources_items: list[AlterConfigsResource] = []
    for _ in range(count):
        resource_type, size = _unpack_bh(buffer, position)
        position += 3
        if size < 0:
            raise null_field("resource_name")
        stop = position + size
        if stop > end:
            raise too_long("resource_name", stop - position, position, end)
        resource_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("configs")
        if count * 4 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[AlterableConfig] = []
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
            (size,) = _unpack_h(buffer, position)
            position += 2
            value_2: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("value", stop - position, position, end)
                value_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            configs_items.append(new(AlterableConfig, (name, value_2)))
        configs = tuple(configs_items)
        resources_items.append(new(AlterConfigsResource, (resource_type, resource_name, configs)))
    resources = tuple(resources_items)
    (validate_only,) = _unpack_t(buffer, position)
    position += 1
    return new(AlterConfigsRequest, (resources, validate_only))


def _decode_request_v2(buffer: bytes, position: int) -> AlterConfigsRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("resources")
    if count * 4 > end - position:
        raise too_many("resources", count, position, end)
    resources_items: list[AlterConfigsResource] = []
    for _ in range(count):
        resource_type, size = _unpack_bB(buffer, position)
        position += 2
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("resource_name")
        stop = position + size - 1
        if stop > end:
            raise too_long("resource_name", stop - position, position, end)
        resource_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("configs")
        if count * 3 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[AlterableConfig] = []
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
            size = buffer[position]
            position += 1
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            value_2: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("value", stop - position, position, end)
                value_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            configs_items.append(new(AlterableConfig, (name, value_2)))
        configs = tuple(configs_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        resources_items.append(new(AlterConfigsResource, (resource_type, resource_name, configs)))
    resources = tuple(resources_items)
    validate_only, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(AlterConfigsRequest, (resources, validate_only))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    resources, validate_only = value
    out += _pack_i(len(resources))
    for resource_type, resource_name, configs in resources:
        raw = resource_name.encode()
        out += _pack_bh(resource_type, len(raw))
        out += raw
        out += _pack_i(len(configs))
        for name, value_2 in configs:
            raw = name.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = b"" if value_2 is None else value_2.encode()
            out += _pack_h(-1 if value_2 is None else len(raw))
            out += raw
    out += _pack_t(validate_only)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    resources, validate_only = value
    size = len(resources) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for resource_type, resource_name, configs in resources:
        out += _pack_b(resource_type)
        raw = resource_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("resource_name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(configs) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, value_2 in configs:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            if value_2 is None:
                out.append(0)
            else:
                raw = value_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("value", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            out.append(0)
        out.append(0)
    out += _pack_tx(validate_only)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> AlterConfigsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("responses")
    if count * 7 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("error_message", stop - position, position, end)
            error_message = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        resource_type, size = _unpack_bh(buffer, position)
        position += 3
        if size < 0:
            raise null_field("resource_name")
        stop = position + size
        if stop > end:
            raise too_long("resource_name", stop - position, position, end)
        resource_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        responses_items.append(
            new(
                AlterConfigsResourceResponse,
                (error_code, error_message, resource_type, resource_name),
            )
        )
    responses = tuple(responses_items)
    return new(AlterConfigsResponse, (throttle_time_ms, responses))


def _decode_response_v2(buffer: bytes, position: int) -> AlterConfigsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("responses")
    if count * 6 > end - position:
        raise too_many("responses", count, position, end)
    responses_items: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
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
        resource_type, size = _unpack_bB(buffer, position)
        position += 2
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("resource_name")
        stop = position + size - 1
        if stop > end:
            raise too_long("resource_name", stop - position, position, end)
        resource_name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        responses_items.append(
            new(
                AlterConfigsResourceResponse,
                (error_code, error_message, resource_type, resource_name),
            )
        )
    responses = tuple(responses_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(AlterConfigsResponse, (throttle_time_ms, responses))


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, responses = value
    out += _pack_ii(throttle_time_ms, len(responses))
    for error_code, error_message, resource_type, resource_name in responses:
        raw = b"" if error_message is None else error_message.encode()
        out += _pack_hh(error_code, -1 if error_message is None else len(raw))
        out += raw
        raw = resource_name.encode()
        out += _pack_bh(resource_type, len(raw))
        out += raw
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, responses = value
    out += _pack_i(throttle_time_ms)
    size = len(responses) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, error_message, resource_type, resource_name in responses:
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
        out += _pack_b(resource_type)
        raw = resource_name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("resource_name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], AlterConfigsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[AlterConfigsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], AlterConfigsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[AlterConfigsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
}
