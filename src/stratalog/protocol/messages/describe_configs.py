"""DescribeConfigs (key 32), versions 1 to 4.

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


class DescribeConfigsResource(NamedTuple):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = ()


class DescribeConfigsRequest(NamedTuple):
    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(NamedTuple):
    name: str = ""
    value: str | None = ""
    source: int = 0


class DescribeConfigsResourceResult(NamedTuple):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: int = 0
    documentation: str | None = ""


class DescribeConfigsResult(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[DescribeConfigsResult] = ()


_pack_t = Struct(">?").pack
_pack_tt = Struct(">??").pack
_pack_ttx = Struct(">??x").pack
_pack_tbt = Struct(">?b?").pack
_pack_tbti = Struct(">?b?i").pack
_pack_b = Struct(">b").pack
_pack_bh = Struct(">bh").pack
_pack_bx = Struct(">bx").pack
_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_unpack_t = Struct(">?").unpack_from
_unpack_tt = Struct(">??").unpack_from
_unpack_ttB = Struct(">??B").unpack_from
_unpack_tbtB = Struct(">?b?B").unpack_from
_unpack_tbti = Struct(">?b?i").unpack_from
_unpack_b = Struct(">b").unpack_from
_unpack_bB = Struct(">bB").unpack_from
_unpack_bh = Struct(">bh").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v1(buffer: bytes, position: int) -> DescribeConfigsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("resources")
    if count * 7 > end - position:
        raise too_many("resources", count, position, end)
    resources_items: list[DescribeConfigsResource] = []
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
        configuration_keys: tuple[str, ...] | None = None
        if count >= 0:
            if count * 2 > end - position:
                raise too_many("configuration_keys", count, position, end)
            configuration_keys_items: list[str] = []
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
                configuration_keys_items.append(item)
            configuration_keys = tuple(configuration_keys_items)
        resources_items.append(
            new(DescribeConfigsResource, (resource_type, resource_name, configuration_keys))
        )
    resources = tuple(resources_items)
    (include_synonyms,) = _unpack_t(buffer, position)
    position += 1
    return new(DescribeConfigsRequest, (resources, include_synonyms, False))


def _decode_request_v3(buffer: bytes, position: int) -> DescribeConfigsRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("resources")
    if count * 7 > end - position:
        raise too_many("resources", count, position, end)
    resources_items: list[DescribeConfigsResource] = []
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
        configuration_keys: tuple[str, ...] | None = None
        if count >= 0:
            if count * 2 > end - position:
                raise too_many("configuration_keys", count, position, end)
            configuration_keys_items: list[str] = []
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
                configuration_keys_items.append(item)
            configuration_keys = tuple(configuration_keys_items)
        resources_items.append(
            new(DescribeConfigsResource, (resource_type, resource_name, configuration_keys))
        )
    resources = tuple(resources_items)
    include_synonyms, include_documentation = _unpack_tt(buffer, position)
    position += 2
    return new(DescribeConfigsRequest, (resources, include_synonyms, include_documentation))


def _decode_request_v4(buffer: bytes, position: int) -> DescribeConfigsRequest:
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
    resources_items: list[DescribeConfigsResource] = []
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
        configuration_keys: tuple[str, ...] | None = None
        if count >= 0:
            if count > end - position:
                raise too_many("configuration_keys", count, position, end)
            configuration_keys_items: list[str] = []
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
                configuration_keys_items.append(item)
            configuration_keys = tuple(configuration_keys_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        resources_items.append(
            new(DescribeConfigsResource, (resource_type, resource_name, configuration_keys))
        )
    resources = tuple(resources_items)
    include_synonyms, include_documentation, tags = _unpack_ttB(buffer, position)
    position += 3
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeConfigsRequest, (resources, include_synonyms, include_documentation))


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    resources, include_synonyms, _ = value
    out += _pack_i(len(resources))
    for resource_type, resource_name, configuration_keys in resources:
        raw = resource_name.encode()
        out += _pack_bh(resource_type, len(raw))
        out += raw
        out += _pack_i(-1 if configuration_keys is None else len(configuration_keys))
        for item in configuration_keys or ():
            raw = item.encode()
            out += _pack_h(len(raw))
            out += raw
    out += _pack_t(include_synonyms)
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    resources, include_synonyms, include_documentation = value
    out += _pack_i(len(resources))
    for resource_type, resource_name, configuration_keys in resources:
        raw = resource_name.encode()
        out += _pack_bh(resource_type, len(raw))
        out += raw
        out += _pack_i(-1 if configuration_keys is None else len(configuration_keys))
        for item in configuration_keys or ():
            raw = item.encode()
            out += _pack_h(len(raw))
            out += raw
    out += _pack_tt(include_synonyms, include_documentation)
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    resources, include_synonyms, include_documentation = value
    size = len(resources) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for resource_type, resource_name, configuration_keys in resources:
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
        if configuration_keys is None:
            out.append(0)
        else:
            size = len(configuration_keys) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for item in configuration_keys:
                raw = item.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("configuration_keys", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
        out.append(0)
    out += _pack_ttx(include_synonyms, include_documentation)
    return out


def _decode_response_v1(buffer: bytes, position: int) -> DescribeConfigsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("results")
    if count * 11 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeConfigsResult] = []
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
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("configs")
        if count * 11 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[DescribeConfigsResourceResult] = []
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
            read_only, config_source, is_sensitive, count = _unpack_tbti(buffer, position)
            position += 7
            if count < 0:
                raise null_field("synonyms")
            if count * 5 > end - position:
                raise too_many("synonyms", count, position, end)
            synonyms_items: list[DescribeConfigsSynonym] = []
            for _ in range(count):
                (size,) = _unpack_h(buffer, position)
                position += 2
                if size < 0:
                    raise null_field("name")
                stop = position + size
                if stop > end:
                    raise too_long("name", stop - position, position, end)
                name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                (size,) = _unpack_h(buffer, position)
                position += 2
                value_3: str | None = None
                if size >= 0:
                    stop = position + size
                    if stop > end:
                        raise too_long("value", stop - position, position, end)
                    value_3 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                (source,) = _unpack_b(buffer, position)
                position += 1
                synonyms_items.append(new(DescribeConfigsSynonym, (name_2, value_3, source)))
            synonyms = tuple(synonyms_items)
            configs_items.append(
                new(
                    DescribeConfigsResourceResult,
                    (name, value_2, read_only, config_source, is_sensitive, synonyms, 0, ""),
                )
            )
        configs = tuple(configs_items)
        results_items.append(
            new(
                DescribeConfigsResult,
                (error_code, error_message, resource_type, resource_name, configs),
            )
        )
    results = tuple(results_items)
    return new(DescribeConfigsResponse, (throttle_time_ms, results))


def _decode_response_v3(buffer: bytes, position: int) -> DescribeConfigsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("results")
    if count * 11 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeConfigsResult] = []
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
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("configs")
        if count * 14 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[DescribeConfigsResourceResult] = []
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
            read_only, config_source, is_sensitive, count = _unpack_tbti(buffer, position)
            position += 7
            if count < 0:
                raise null_field("synonyms")
            if count * 5 > end - position:
                raise too_many("synonyms", count, position, end)
            synonyms_items: list[DescribeConfigsSynonym] = []
            for _ in range(count):
                (size,) = _unpack_h(buffer, position)
                position += 2
                if size < 0:
                    raise null_field("name")
                stop = position + size
                if stop > end:
                    raise too_long("name", stop - position, position, end)
                name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                (size,) = _unpack_h(buffer, position)
                position += 2
                value_3: str | None = None
                if size >= 0:
                    stop = position + size
                    if stop > end:
                        raise too_long("value", stop - position, position, end)
                    value_3 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                (source,) = _unpack_b(buffer, position)
                position += 1
                synonyms_items.append(new(DescribeConfigsSynonym, (name_2, value_3, source)))
            synonyms = tuple(synonyms_items)
            config_type, size = _unpack_bh(buffer, position)
            position += 3
            documentation: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("documentation", stop - position, position, end)
                documentation = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            configs_items.append(
                new(
                    DescribeConfigsResourceResult,
                    (
                        name,
                        value_2,
                        read_only,
                        config_source,
                        is_sensitive,
                        synonyms,
                        config_type,
                        documentation,
                    ),
                )
            )
        configs = tuple(configs_items)
        results_items.append(
            new(
                DescribeConfigsResult,
                (error_code, error_message, resource_type, resource_name, configs),
            )
        )
    results = tuple(results_items)
    return new(DescribeConfigsResponse, (throttle_time_ms, results))


def _decode_response_v4(buffer: bytes, position: int) -> DescribeConfigsResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("results")
    if count * 7 > end - position:
        raise too_many("results", count, position, end)
    results_items: list[DescribeConfigsResult] = []
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
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("configs")
        if count * 9 > end - position:
            raise too_many("configs", count, position, end)
        configs_items: list[DescribeConfigsResourceResult] = []
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
            read_only, config_source, is_sensitive, count = _unpack_tbtB(buffer, position)
            position += 4
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("synonyms")
            if count * 4 > end - position:
                raise too_many("synonyms", count, position, end)
            synonyms_items: list[DescribeConfigsSynonym] = []
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
                name_2 = str(buffer[position:stop], "utf-8", "replace")
                position = stop
                size = buffer[position]
                position += 1
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                value_3: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("value", stop - position, position, end)
                    value_3 = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                source, tags = _unpack_bB(buffer, position)
                position += 2
                if tags:
                    position = skip_tags(buffer, position - 1)
                synonyms_items.append(new(DescribeConfigsSynonym, (name_2, value_3, source)))
            synonyms = tuple(synonyms_items)
            config_type, size = _unpack_bB(buffer, position)
            position += 2
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            documentation: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("documentation", stop - position, position, end)
                documentation = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            configs_items.append(
                new(
                    DescribeConfigsResourceResult,
                    (
                        name,
                        value_2,
                        read_only,
                        config_source,
                        is_sensitive,
                        synonyms,
                        config_type,
                        documentation,
                    ),
                )
            )
        configs = tuple(configs_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        results_items.append(
            new(
                DescribeConfigsResult,
                (error_code, error_message, resource_type, resource_name, configs),
            )
        )
    results = tuple(results_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeConfigsResponse, (throttle_time_ms, results))


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_ii(throttle_time_ms, len(results))
    for error_code, error_message, resource_type, resource_name, configs in results:
        raw = b"" if error_message is None else error_message.encode()
        out += _pack_hh(error_code, -1 if error_message is None else len(raw))
        out += raw
        raw = resource_name.encode()
        out += _pack_bh(resource_type, len(raw))
        out += raw
        out += _pack_i(len(configs))
        for name, value_2, read_only, config_source, is_sensitive, synonyms, _, _ in configs:
            raw = name.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = b"" if value_2 is None else value_2.encode()
            out += _pack_h(-1 if value_2 is None else len(raw))
            out += raw
            out += _pack_tbti(read_only, config_source, is_sensitive, len(synonyms))
            for name_2, value_3, source in synonyms:
                raw = name_2.encode()
                out += _pack_h(len(raw))
                out += raw
                raw = b"" if value_3 is None else value_3.encode()
                out += _pack_h(-1 if value_3 is None else len(raw))
                out += raw
                out += _pack_b(source)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_ii(throttle_time_ms, len(results))
    for error_code, error_message, resource_type, resource_name, configs in results:
        raw = b"" if error_message is None else error_message.encode()
        out += _pack_hh(error_code, -1 if error_message is None else len(raw))
        out += raw
        raw = resource_name.encode()
        out += _pack_bh(resource_type, len(raw))
        out += raw
        out += _pack_i(len(configs))
        for (
            name,
            value_2,
            read_only,
            config_source,
            is_sensitive,
            synonyms,
            config_type,
            documentation,
        ) in configs:
            raw = name.encode()
            out += _pack_h(len(raw))
            out += raw
            raw = b"" if value_2 is None else value_2.encode()
            out += _pack_h(-1 if value_2 is None else len(raw))
            out += raw
            out += _pack_tbti(read_only, config_source, is_sensitive, len(synonyms))
            for name_2, value_3, source in synonyms:
                raw = name_2.encode()
                out += _pack_h(len(raw))
                out += raw
                raw = b"" if value_3 is None else value_3.encode()
                out += _pack_h(-1 if value_3 is None else len(raw))
                out += raw
                out += _pack_b(source)
            raw = b"" if documentation is None else documentation.encode()
            out += _pack_bh(config_type, -1 if documentation is None else len(raw))
            out += raw
    return out


def _encode_response_v4(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, results = value
    out += _pack_i(throttle_time_ms)
    size = len(results) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, error_message, resource_type, resource_name, configs in results:
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
        size = len(configs) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            name,
            value_2,
            read_only,
            config_source,
            is_sensitive,
            synonyms,
            config_type,
            documentation,
        ) in configs:
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
            out += _pack_tbt(read_only, config_source, is_sensitive)
            size = len(synonyms) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for name_2, value_3, source in synonyms:
                raw = name_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                if value_3 is None:
                    out.append(0)
                else:
                    raw = value_3.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("value", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out += _pack_bx(source)
            out += _pack_b(config_type)
            if documentation is None:
                out.append(0)
            else:
                raw = documentation.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("documentation", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            out.append(0)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DescribeConfigsRequest]] = {
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v3,
    4: _decode_request_v4,
}

ENCODE_REQUEST: dict[int, Callable[[DescribeConfigsRequest], bytearray]] = {
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v3,
    4: _encode_request_v4,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DescribeConfigsResponse]] = {
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
}

ENCODE_RESPONSE: dict[int, Callable[[DescribeConfigsResponse], bytearray]] = {
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
}
