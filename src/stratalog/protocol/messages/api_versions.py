"""ApiVersions (key 18), versions 0 to 4.

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
    tag_count,
    tag_head,
    tag_of_another_size,
    too_long,
    too_many,
    varint,
)

new = tuple.__new__


class ApiVersionsRequest(NamedTuple):
    client_software_name: str = ""
    client_software_version: str = ""


class ApiVersion(NamedTuple):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(NamedTuple):
    name: str = ""
    min_version: int = 0
    max_version: int = 0


class FinalizedFeatureKey(NamedTuple):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class ApiVersionsResponse(NamedTuple):
    error_code: int = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: int = 0
    supported_features: Sequence[SupportedFeatureKey] = ()
    finalized_features_epoch: int = -1
    finalized_features: Sequence[FinalizedFeatureKey] = ()
    zk_migration_ready: bool = False


_pack_t = Struct(">?").pack
_pack_h = Struct(">h").pack
_pack_hhh = Struct(">hhh").pack
_pack_hhhx = Struct(">hhhx").pack
_pack_hhx = Struct(">hhx").pack
_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_t = Struct(">?").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hhB = Struct(">hhB").unpack_from
_unpack_hhh = Struct(">hhh").unpack_from
_unpack_hhhB = Struct(">hhhB").unpack_from
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_q = Struct(">q").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> ApiVersionsRequest:
    return new(ApiVersionsRequest, ("", ""))


def _decode_request_v3(buffer: bytes, position: int) -> ApiVersionsRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("client_software_name")
    stop = position + size - 1
    if stop > end:
        raise too_long("client_software_name", stop - position, position, end)
    client_software_name = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("client_software_version")
    stop = position + size - 1
    if stop > end:
        raise too_long("client_software_version", stop - position, position, end)
    client_software_version = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(ApiVersionsRequest, (client_software_name, client_software_version))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    _, _ = value
    return out


def _encode_request_v3(value: Any) -> bytearray:
    out = bytearray()
    client_software_name, client_software_version = value
    raw = client_software_name.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("client_software_name", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    raw = client_software_version.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("client_software_version", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> ApiVersionsResponse:
    end = len(buffer)
    error_code, count = _unpack_hi(buffer, position)
    position += 6
    if count < 0:
        raise null_field("api_keys")
    if count * 6 > end - position:
        raise too_many("api_keys", count, position, end)
    api_keys_items: list[ApiVersion] = []
    for _ in range(count):
        api_key, min_version, max_version = _unpack_hhh(buffer, position)
        position += 6
        api_keys_items.append(new(ApiVersion, (api_key, min_version, max_version)))
    api_keys = tuple(api_keys_items)
    return new(ApiVersionsResponse, (error_code, api_keys, 0, (), -1, (), False))


def _decode_response_v1(buffer: bytes, position: int) -> ApiVersionsResponse:
    end = len(buffer)
    error_code, count = _unpack_hi(buffer, position)
    position += 6
    if count < 0:
        raise null_field("api_keys")
    if count * 6 > end - position:
        raise too_many("api_keys", count, position, end)
    api_keys_items: list[ApiVersion] = []
    for _ in range(count):
        api_key, min_version, max_version = _unpack_hhh(buffer, position)
        position += 6
        api_keys_items.append(new(ApiVersion, (api_key, min_version, max_version)))
    api_keys = tuple(api_keys_items)
    (throttle_time_ms,) = _unpack_i(buffer, position)
    position += 4
    return new(ApiVersionsResponse, (error_code, api_keys, throttle_time_ms, (), -1, (), False))


def _decode_response_v3(buffer: bytes, position: int) -> ApiVersionsResponse:
    end = len(buffer)
    error_code, count = _unpack_hB(buffer, position)
    position += 3
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("api_keys")
    if count * 7 > end - position:
        raise too_many("api_keys", count, position, end)
    api_keys_items: list[ApiVersion] = []
    for _ in range(count):
        api_key, min_version, max_version, tags = _unpack_hhhB(buffer, position)
        position += 7
        if tags:
            position = skip_tags(buffer, position - 1)
        api_keys_items.append(new(ApiVersion, (api_key, min_version, max_version)))
    api_keys = tuple(api_keys_items)
    throttle_time_ms, tags = _unpack_iB(buffer, position)
    position += 5
    supported_features: tuple[SupportedFeatureKey, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()
    zk_migration_ready: bool = False
    if tags:
        tags, position = tag_count(buffer, position - 1)
        for _ in range(tags):
            tag_number, position, tag_end = tag_head(buffer, position)
            if tag_number == 0:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("supported_features")
                if count * 6 > end - position:
                    raise too_many("supported_features", count, position, end)
                supported_features_2_items: list[SupportedFeatureKey] = []
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
                    min_version_2, max_version_2, tags = _unpack_hhB(buffer, position)
                    position += 5
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    supported_features_2_items.append(
                        new(SupportedFeatureKey, (name, min_version_2, max_version_2))
                    )
                supported_features_2 = tuple(supported_features_2_items)
                supported_features = supported_features_2
            elif tag_number == 1:
                (finalized_features_epoch_2,) = _unpack_q(buffer, position)
                position += 8
                finalized_features_epoch = finalized_features_epoch_2
            elif tag_number == 2:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("finalized_features")
                if count * 6 > end - position:
                    raise too_many("finalized_features", count, position, end)
                finalized_features_2_items: list[FinalizedFeatureKey] = []
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
                    max_version_level, min_version_level, tags = _unpack_hhB(buffer, position)
                    position += 5
                    if tags:
                        position = skip_tags(buffer, position - 1)
                    finalized_features_2_items.append(
                        new(FinalizedFeatureKey, (name_2, max_version_level, min_version_level))
                    )
                finalized_features_2 = tuple(finalized_features_2_items)
                finalized_features = finalized_features_2
            elif tag_number == 3:
                (zk_migration_ready_2,) = _unpack_t(buffer, position)
                position += 1
                zk_migration_ready = zk_migration_ready_2
            else:
                position = tag_end
            if position != tag_end:
                raise tag_of_another_size(tag_number, position, tag_end)
    return new(
        ApiVersionsResponse,
        (
            error_code,
            api_keys,
            throttle_time_ms,
            supported_features,
            finalized_features_epoch,
            finalized_features,
            zk_migration_ready,
        ),
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    error_code, api_keys, _, _, _, _, _ = value
    out += _pack_hi(error_code, len(api_keys))
    for api_key, min_version, max_version in api_keys:
        out += _pack_hhh(api_key, min_version, max_version)
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    error_code, api_keys, throttle_time_ms, _, _, _, _ = value
    out += _pack_hi(error_code, len(api_keys))
    for api_key, min_version, max_version in api_keys:
        out += _pack_hhh(api_key, min_version, max_version)
    out += _pack_i(throttle_time_ms)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    (
        error_code,
        api_keys,
        throttle_time_ms,
        supported_features,
        finalized_features_epoch,
        finalized_features,
        zk_migration_ready,
    ) = value
    out += _pack_h(error_code)
    size = len(api_keys) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for api_key, min_version, max_version in api_keys:
        out += _pack_hhhx(api_key, min_version, max_version)
    out += _pack_i(throttle_time_ms)
    if (
        len(supported_features) > 0
        or finalized_features_epoch != -1
        or len(finalized_features) > 0
        or zk_migration_ready is not False
    ):
        out.append(
            (len(supported_features) > 0)
            + (finalized_features_epoch != -1)
            + (len(finalized_features) > 0)
            + (zk_migration_ready is not False)
        )
        if len(supported_features) > 0:
            tagged = bytearray()
            size = len(supported_features) + 1
            if size < 128:
                tagged.append(size)
            else:
                tagged += varint(size)
            for name, min_version_2, max_version_2 in supported_features:
                raw = name.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged.append(size)
                else:
                    tagged += varint(size)
                tagged += raw
                tagged += _pack_hhx(min_version_2, max_version_2)
            out += varint(0)
            out += varint(len(tagged))
            out += tagged
        if finalized_features_epoch != -1:
            tagged_2 = bytearray()
            tagged_2 += _pack_q(finalized_features_epoch)
            out += varint(1)
            out += varint(len(tagged_2))
            out += tagged_2
        if len(finalized_features) > 0:
            tagged_3 = bytearray()
            size = len(finalized_features) + 1
            if size < 128:
                tagged_3.append(size)
            else:
                tagged_3 += varint(size)
            for name_2, max_version_level, min_version_level in finalized_features:
                raw = name_2.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    tagged_3.append(size)
                else:
                    tagged_3 += varint(size)
                tagged_3 += raw
                tagged_3 += _pack_hhx(max_version_level, min_version_level)
            out += varint(2)
            out += varint(len(tagged_3))
            out += tagged_3
        if zk_migration_ready is not False:
            tagged_4 = bytearray()
            tagged_4 += _pack_t(zk_migration_ready)
            out += varint(3)
            out += varint(len(tagged_4))
            out += tagged_4
    else:
        out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], ApiVersionsRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
}

ENCODE_REQUEST: dict[int, Callable[[ApiVersionsRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], ApiVersionsResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v3,
}

ENCODE_RESPONSE: dict[int, Callable[[ApiVersionsResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v3,
}
