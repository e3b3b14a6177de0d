"""DescribeCluster (key 60), versions 0 to 2.

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


class DescribeClusterRequest(NamedTuple):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(NamedTuple):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    cluster_authorized_operations: int = -2147483648


_pack_tbtx = Struct(">?b?x").pack
_pack_tbx = Struct(">?bx").pack
_pack_tx = Struct(">?x").pack
_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ix = Struct(">ix").pack
_unpack_tB = Struct(">?B").unpack_from
_unpack_tbtB = Struct(">?b?B").unpack_from
_unpack_tbB = Struct(">?bB").unpack_from
_unpack_bB = Struct(">bB").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> DescribeClusterRequest:
    include_cluster_authorized_operations, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(DescribeClusterRequest, (include_cluster_authorized_operations, 1, False))


def _decode_request_v1(buffer: bytes, position: int) -> DescribeClusterRequest:
    include_cluster_authorized_operations, endpoint_type, tags = _unpack_tbB(buffer, position)
    position += 3
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        DescribeClusterRequest, (include_cluster_authorized_operations, endpoint_type, False)
    )


def _decode_request_v2(buffer: bytes, position: int) -> DescribeClusterRequest:
    include_cluster_authorized_operations, endpoint_type, include_fenced_brokers, tags = (
        _unpack_tbtB(buffer, position)
    )
    position += 4
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        DescribeClusterRequest,
        (include_cluster_authorized_operations, endpoint_type, include_fenced_brokers),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    include_cluster_authorized_operations, _, _ = value
    out += _pack_tx(include_cluster_authorized_operations)
    return out


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    include_cluster_authorized_operations, endpoint_type, _ = value
    out += _pack_tbx(include_cluster_authorized_operations, endpoint_type)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    include_cluster_authorized_operations, endpoint_type, include_fenced_brokers = value
    out += _pack_tbtx(include_cluster_authorized_operations, endpoint_type, include_fenced_brokers)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> DescribeClusterResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihB(buffer, position)
    position += 7
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    error_message: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("cluster_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("cluster_id", stop - position, position, end)
    cluster_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    controller_id, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[DescribeClusterBroker] = []
    for _ in range(count):
        broker_id, size = _unpack_iB(buffer, position)
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
        brokers_items.append(new(DescribeClusterBroker, (broker_id, host, port, rack, False)))
    brokers = tuple(brokers_items)
    cluster_authorized_operations, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        DescribeClusterResponse,
        (
            throttle_time_ms,
            error_code,
            error_message,
            1,
            cluster_id,
            controller_id,
            brokers,
            cluster_authorized_operations,
        ),
    )


def _decode_response_v1(buffer: bytes, position: int) -> DescribeClusterResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihB(buffer, position)
    position += 7
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    error_message: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    endpoint_type, size = _unpack_bB(buffer, position)
    position += 2
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("cluster_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("cluster_id", stop - position, position, end)
    cluster_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    controller_id, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[DescribeClusterBroker] = []
    for _ in range(count):
        broker_id, size = _unpack_iB(buffer, position)
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
        brokers_items.append(new(DescribeClusterBroker, (broker_id, host, port, rack, False)))
    brokers = tuple(brokers_items)
    cluster_authorized_operations, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        DescribeClusterResponse,
        (
            throttle_time_ms,
            error_code,
            error_message,
            endpoint_type,
            cluster_id,
            controller_id,
            brokers,
            cluster_authorized_operations,
        ),
    )


def _decode_response_v2(buffer: bytes, position: int) -> DescribeClusterResponse:
    end = len(buffer)
    throttle_time_ms, error_code, size = _unpack_ihB(buffer, position)
    position += 7
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    error_message: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    endpoint_type, size = _unpack_bB(buffer, position)
    position += 2
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("cluster_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("cluster_id", stop - position, position, end)
    cluster_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    controller_id, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[DescribeClusterBroker] = []
    for _ in range(count):
        broker_id, size = _unpack_iB(buffer, position)
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
        is_fenced, tags = _unpack_tB(buffer, position)
        position += 2
        if tags:
            position = skip_tags(buffer, position - 1)
        brokers_items.append(new(DescribeClusterBroker, (broker_id, host, port, rack, is_fenced)))
    brokers = tuple(brokers_items)
    cluster_authorized_operations, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        DescribeClusterResponse,
        (
            throttle_time_ms,
            error_code,
            error_message,
            endpoint_type,
            cluster_id,
            controller_id,
            brokers,
            cluster_authorized_operations,
        ),
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        error_code,
        error_message,
        _,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    ) = value
    out += _pack_ih(throttle_time_ms, error_code)
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
    raw = cluster_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("cluster_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(controller_id)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for broker_id, host, port, rack, _ in brokers:
        out += _pack_i(broker_id)
        raw = host.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("host", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_i(port)
        if rack is None:
            out.append(0)
        else:
            raw = rack.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("rack", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out.append(0)
    out += _pack_ix(cluster_authorized_operations)
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        error_code,
        error_message,
        endpoint_type,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    ) = value
    out += _pack_ih(throttle_time_ms, error_code)
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
    out += _pack_b(endpoint_type)
    raw = cluster_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("cluster_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(controller_id)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for broker_id, host, port, rack, _ in brokers:
        out += _pack_i(broker_id)
        raw = host.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("host", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_i(port)
        if rack is None:
            out.append(0)
        else:
            raw = rack.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("rack", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out.append(0)
    out += _pack_ix(cluster_authorized_operations)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        error_code,
        error_message,
        endpoint_type,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    ) = value
    out += _pack_ih(throttle_time_ms, error_code)
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
    out += _pack_b(endpoint_type)
    raw = cluster_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("cluster_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(controller_id)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for broker_id, host, port, rack, is_fenced in brokers:
        out += _pack_i(broker_id)
        raw = host.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("host", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_i(port)
        if rack is None:
            out.append(0)
        else:
            raw = rack.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("rack", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out += _pack_tx(is_fenced)
    out += _pack_ix(cluster_authorized_operations)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], DescribeClusterRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[DescribeClusterRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], DescribeClusterResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[DescribeClusterResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
}
