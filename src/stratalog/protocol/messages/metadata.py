"""Metadata (key 3), versions 0 to 13.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    NO_UUID,
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


class MetadataRequestTopic(NamedTuple):
    topic_id: bytes = NO_UUID
    name: str | None = ""


class MetadataRequest(NamedTuple):
    topics: Sequence[MetadataRequestTopic] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class MetadataResponseBroker(NamedTuple):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(NamedTuple):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()


class MetadataResponseTopic(NamedTuple):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = NO_UUID
    is_internal: bool = False
    partitions: Sequence[MetadataResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class MetadataResponse(NamedTuple):
    throttle_time_ms: int = 0
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: Sequence[MetadataResponseTopic] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


_pack_u = Struct(">16s").pack
_pack_ut = Struct(">16s?").pack
_pack_t = Struct(">?").pack
_pack_ttt = Struct(">???").pack
_pack_tttx = Struct(">???x").pack
_pack_ttx = Struct(">??x").pack
_pack_ti = Struct(">?i").pack
_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_hiii = Struct(">hiii").pack
_pack_hiiii = Struct(">hiiii").pack
_pack_hx = Struct(">hx").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_ix = Struct(">ix").pack
_unpack_utB = Struct(">16s?B").unpack_from
_unpack_uB = Struct(">16sB").unpack_from
_unpack_t = Struct(">?").unpack_from
_unpack_ttt = Struct(">???").unpack_from
_unpack_tttB = Struct(">???B").unpack_from
_unpack_ttB = Struct(">??B").unpack_from
_unpack_tB = Struct(">?B").unpack_from
_unpack_ti = Struct(">?i").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_hiii = Struct(">hiii").unpack_from
_unpack_hiiiB = Struct(">hiiiB").unpack_from
_unpack_hiiii = Struct(">hiiii").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 2 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataRequestTopic] = []
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
        topics_items.append(new(MetadataRequestTopic, (NO_UUID, name)))
    topics = tuple(topics_items)
    return new(MetadataRequest, (topics, True, False, False))


def _decode_request_v1(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    topics: tuple[MetadataRequestTopic, ...] | None = None
    if count >= 0:
        if count * 2 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[MetadataRequestTopic] = []
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
            topics_items.append(new(MetadataRequestTopic, (NO_UUID, name)))
        topics = tuple(topics_items)
    return new(MetadataRequest, (topics, True, False, False))


def _decode_request_v4(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    topics: tuple[MetadataRequestTopic, ...] | None = None
    if count >= 0:
        if count * 2 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[MetadataRequestTopic] = []
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
            topics_items.append(new(MetadataRequestTopic, (NO_UUID, name)))
        topics = tuple(topics_items)
    (allow_auto_topic_creation,) = _unpack_t(buffer, position)
    position += 1
    return new(MetadataRequest, (topics, allow_auto_topic_creation, False, False))


def _decode_request_v8(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    topics: tuple[MetadataRequestTopic, ...] | None = None
    if count >= 0:
        if count * 2 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[MetadataRequestTopic] = []
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
            topics_items.append(new(MetadataRequestTopic, (NO_UUID, name)))
        topics = tuple(topics_items)
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = _unpack_ttt(buffer, position)
    position += 3
    return new(
        MetadataRequest,
        (
            topics,
            allow_auto_topic_creation,
            include_cluster_authorized_operations,
            include_topic_authorized_operations,
        ),
    )


def _decode_request_v9(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topics: tuple[MetadataRequestTopic, ...] | None = None
    if count >= 0:
        if count * 2 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[MetadataRequestTopic] = []
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
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(MetadataRequestTopic, (NO_UUID, name)))
        topics = tuple(topics_items)
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
        tags,
    ) = _unpack_tttB(buffer, position)
    position += 4
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataRequest,
        (
            topics,
            allow_auto_topic_creation,
            include_cluster_authorized_operations,
            include_topic_authorized_operations,
        ),
    )


def _decode_request_v10(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topics: tuple[MetadataRequestTopic, ...] | None = None
    if count >= 0:
        if count * 18 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic_id, size = _unpack_uB(buffer, position)
            position += 17
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            name: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("name", stop - position, position, end)
                name = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(MetadataRequestTopic, (topic_id, name)))
        topics = tuple(topics_items)
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
        tags,
    ) = _unpack_tttB(buffer, position)
    position += 4
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataRequest,
        (
            topics,
            allow_auto_topic_creation,
            include_cluster_authorized_operations,
            include_topic_authorized_operations,
        ),
    )


def _decode_request_v11(buffer: bytes, position: int) -> MetadataRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topics: tuple[MetadataRequestTopic, ...] | None = None
    if count >= 0:
        if count * 18 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic_id, size = _unpack_uB(buffer, position)
            position += 17
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            name: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("name", stop - position, position, end)
                name = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(MetadataRequestTopic, (topic_id, name)))
        topics = tuple(topics_items)
    allow_auto_topic_creation, include_topic_authorized_operations, tags = _unpack_ttB(
        buffer, position
    )
    position += 3
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataRequest,
        (topics, allow_auto_topic_creation, False, include_topic_authorized_operations),
    )


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    topics, _, _, _ = value
    out += _pack_i(len(topics))
    for _, name in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    topics, _, _, _ = value
    out += _pack_i(-1 if topics is None else len(topics))
    for _, name in topics or ():
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
    return out


def _encode_request_v4(value: Any) -> bytearray:
    out = bytearray()
    topics, allow_auto_topic_creation, _, _ = value
    out += _pack_i(-1 if topics is None else len(topics))
    for _, name in topics or ():
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_t(allow_auto_topic_creation)
    return out


def _encode_request_v8(value: Any) -> bytearray:
    out = bytearray()
    (
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = value
    out += _pack_i(-1 if topics is None else len(topics))
    for _, name in topics or ():
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_ttt(
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )
    return out


def _encode_request_v9(value: Any) -> bytearray:
    out = bytearray()
    (
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = value
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for _, name in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            out.append(0)
    out += _pack_tttx(
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )
    return out


def _encode_request_v10(value: Any) -> bytearray:
    out = bytearray()
    (
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = value
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for topic_id, name in topics:
            out += _pack_u(topic_id)
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
            out.append(0)
    out += _pack_tttx(
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )
    return out


def _encode_request_v11(value: Any) -> bytearray:
    out = bytearray()
    topics, allow_auto_topic_creation, _, include_topic_authorized_operations = value
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for topic_id, name in topics:
            out += _pack_u(topic_id)
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
            out.append(0)
    out += _pack_ttx(allow_auto_topic_creation, include_topic_authorized_operations)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("brokers")
    if count * 10 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (port,) = _unpack_i(buffer, position)
        position += 4
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, None)))
    brokers = tuple(brokers_items)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 8 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
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
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, count = _unpack_hiii(buffer, position)
            position += 14
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (error_code_2, partition_index, leader_id, -1, replica_nodes, isr_nodes, ()),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(
            new(MetadataResponseTopic, (error_code, name, NO_UUID, False, partitions, -2147483648))
        )
    topics = tuple(topics_items)
    return new(MetadataResponse, (0, brokers, None, -1, topics, -2147483648, 0))


def _decode_response_v1(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, size = _unpack_ih(buffer, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("rack", stop - position, position, end)
            rack = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    controller_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 9 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_ti(buffer, position)
        position += 5
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, count = _unpack_hiii(buffer, position)
            position += 14
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (error_code_2, partition_index, leader_id, -1, replica_nodes, isr_nodes, ()),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, -2147483648),
            )
        )
    topics = tuple(topics_items)
    return new(MetadataResponse, (0, brokers, None, controller_id, topics, -2147483648, 0))


def _decode_response_v2(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, size = _unpack_ih(buffer, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("rack", stop - position, position, end)
            rack = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    (size,) = _unpack_h(buffer, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("cluster_id", stop - position, position, end)
        cluster_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    controller_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 9 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_ti(buffer, position)
        position += 5
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, count = _unpack_hiii(buffer, position)
            position += 14
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (error_code_2, partition_index, leader_id, -1, replica_nodes, isr_nodes, ()),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, -2147483648),
            )
        )
    topics = tuple(topics_items)
    return new(MetadataResponse, (0, brokers, cluster_id, controller_id, topics, -2147483648, 0))


def _decode_response_v3(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, size = _unpack_ih(buffer, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("rack", stop - position, position, end)
            rack = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    (size,) = _unpack_h(buffer, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("cluster_id", stop - position, position, end)
        cluster_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    controller_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 9 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_ti(buffer, position)
        position += 5
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, count = _unpack_hiii(buffer, position)
            position += 14
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (error_code_2, partition_index, leader_id, -1, replica_nodes, isr_nodes, ()),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, -2147483648),
            )
        )
    topics = tuple(topics_items)
    return new(
        MetadataResponse,
        (throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, 0),
    )


def _decode_response_v5(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, size = _unpack_ih(buffer, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("rack", stop - position, position, end)
            rack = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    (size,) = _unpack_h(buffer, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("cluster_id", stop - position, position, end)
        cluster_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    controller_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 9 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_ti(buffer, position)
        position += 5
        if count < 0:
            raise null_field("partitions")
        if count * 22 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, count = _unpack_hiii(buffer, position)
            position += 14
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        -1,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, -2147483648),
            )
        )
    topics = tuple(topics_items)
    return new(
        MetadataResponse,
        (throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, 0),
    )


def _decode_response_v7(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, size = _unpack_ih(buffer, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("rack", stop - position, position, end)
            rack = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    (size,) = _unpack_h(buffer, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("cluster_id", stop - position, position, end)
        cluster_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    controller_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 9 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_ti(buffer, position)
        position += 5
        if count < 0:
            raise null_field("partitions")
        if count * 26 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiii(
                buffer, position
            )
            position += 18
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, -2147483648),
            )
        )
    topics = tuple(topics_items)
    return new(
        MetadataResponse,
        (throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, 0),
    )


def _decode_response_v8(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("brokers")
    if count * 12 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = _unpack_ih(buffer, position)
        position += 6
        if size < 0:
            raise null_field("host")
        stop = position + size
        if stop > end:
            raise too_long("host", stop - position, position, end)
        host = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        port, size = _unpack_ih(buffer, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            stop = position + size
            if stop > end:
                raise too_long("rack", stop - position, position, end)
            rack = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    (size,) = _unpack_h(buffer, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("cluster_id", stop - position, position, end)
        cluster_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    controller_id, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 13 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hh(buffer, position)
        position += 4
        if size < 0:
            raise null_field("name")
        stop = position + size
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_ti(buffer, position)
        position += 5
        if count < 0:
            raise null_field("partitions")
        if count * 26 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiii(
                buffer, position
            )
            position += 18
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            (count,) = _unpack_i(buffer, position)
            position += 4
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        (topic_authorized_operations,) = _unpack_i(buffer, position)
        position += 4
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    (cluster_authorized_operations,) = _unpack_i(buffer, position)
    position += 4
    return new(
        MetadataResponse,
        (
            throttle_time_ms,
            brokers,
            cluster_id,
            controller_id,
            topics,
            cluster_authorized_operations,
            0,
        ),
    )


def _decode_response_v9(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
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
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    cluster_id: str | None = None
    if size:
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
        raise null_field("topics")
    if count * 10 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("name")
        stop = position + size - 1
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        is_internal, count = _unpack_tB(buffer, position)
        position += 2
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiiB(
                buffer, position
            )
            position += 15
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topic_authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, NO_UUID, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    cluster_authorized_operations, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataResponse,
        (
            throttle_time_ms,
            brokers,
            cluster_id,
            controller_id,
            topics,
            cluster_authorized_operations,
            0,
        ),
    )


def _decode_response_v10(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
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
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    cluster_id: str | None = None
    if size:
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
        raise null_field("topics")
    if count * 26 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("name")
        stop = position + size - 1
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        topic_id, is_internal, count = _unpack_utB(buffer, position)
        position += 18
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiiB(
                buffer, position
            )
            position += 15
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topic_authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, topic_id, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    cluster_authorized_operations, tags = _unpack_iB(buffer, position)
    position += 5
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataResponse,
        (
            throttle_time_ms,
            brokers,
            cluster_id,
            controller_id,
            topics,
            cluster_authorized_operations,
            0,
        ),
    )


def _decode_response_v11(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
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
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    cluster_id: str | None = None
    if size:
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
        raise null_field("topics")
    if count * 26 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("name")
        stop = position + size - 1
        if stop > end:
            raise too_long("name", stop - position, position, end)
        name = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        topic_id, is_internal, count = _unpack_utB(buffer, position)
        position += 18
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiiB(
                buffer, position
            )
            position += 15
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topic_authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, topic_id, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataResponse,
        (throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, 0),
    )


def _decode_response_v12(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
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
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    cluster_id: str | None = None
    if size:
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
        raise null_field("topics")
    if count * 26 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        name: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        topic_id, is_internal, count = _unpack_utB(buffer, position)
        position += 18
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiiB(
                buffer, position
            )
            position += 15
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topic_authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, topic_id, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataResponse,
        (throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, 0),
    )


def _decode_response_v13(buffer: bytes, position: int) -> MetadataResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("brokers")
    if count * 11 > end - position:
        raise too_many("brokers", count, position, end)
    brokers_items: list[MetadataResponseBroker] = []
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
        brokers_items.append(new(MetadataResponseBroker, (node_id, host, port, rack)))
    brokers = tuple(brokers_items)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    cluster_id: str | None = None
    if size:
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
        raise null_field("topics")
    if count * 26 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = _unpack_hB(buffer, position)
        position += 3
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        name: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("name", stop - position, position, end)
            name = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        topic_id, is_internal, count = _unpack_utB(buffer, position)
        position += 18
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[MetadataResponsePartition] = []
        for _ in range(count):
            error_code_2, partition_index, leader_id, leader_epoch, count = _unpack_hiiiB(
                buffer, position
            )
            position += 15
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("replica_nodes")
            if count * 4 > end - position:
                raise too_many("replica_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                replica_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                replica_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("isr_nodes")
            if count * 4 > end - position:
                raise too_many("isr_nodes", count, position, end)
            if count < len(UNPACK_INT32S):
                isr_nodes = UNPACK_INT32S[count](buffer, position)
            else:
                isr_nodes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("offline_replicas")
            if count * 4 > end - position:
                raise too_many("offline_replicas", count, position, end)
            if count < len(UNPACK_INT32S):
                offline_replicas = UNPACK_INT32S[count](buffer, position)
            else:
                offline_replicas = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    MetadataResponsePartition,
                    (
                        error_code_2,
                        partition_index,
                        leader_id,
                        leader_epoch,
                        replica_nodes,
                        isr_nodes,
                        offline_replicas,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topic_authorized_operations, tags = _unpack_iB(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(
            new(
                MetadataResponseTopic,
                (error_code, name, topic_id, is_internal, partitions, topic_authorized_operations),
            )
        )
    topics = tuple(topics_items)
    error_code_3, tags = _unpack_hB(buffer, position)
    position += 3
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        MetadataResponse,
        (throttle_time_ms, brokers, cluster_id, controller_id, topics, -2147483648, error_code_3),
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    _, brokers, _, _, topics, _, _ = value
    out += _pack_i(len(brokers))
    for node_id, host, port, _ in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        out += _pack_i(port)
    out += _pack_i(len(topics))
    for error_code, name, _, _, partitions, _ in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for error_code_2, partition_index, leader_id, _, replica_nodes, isr_nodes, _ in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, len(replica_nodes))
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    _, brokers, _, controller_id, topics, _, _ = value
    out += _pack_i(len(brokers))
    for node_id, host, port, rack in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        raw = b"" if rack is None else rack.encode()
        out += _pack_ih(port, -1 if rack is None else len(raw))
        out += raw
    out += _pack_ii(controller_id, len(topics))
    for error_code, name, _, is_internal, partitions, _ in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_ti(is_internal, len(partitions))
        for error_code_2, partition_index, leader_id, _, replica_nodes, isr_nodes, _ in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, len(replica_nodes))
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    _, brokers, cluster_id, controller_id, topics, _, _ = value
    out += _pack_i(len(brokers))
    for node_id, host, port, rack in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        raw = b"" if rack is None else rack.encode()
        out += _pack_ih(port, -1 if rack is None else len(raw))
        out += raw
    raw = b"" if cluster_id is None else cluster_id.encode()
    out += _pack_h(-1 if cluster_id is None else len(raw))
    out += raw
    out += _pack_ii(controller_id, len(topics))
    for error_code, name, _, is_internal, partitions, _ in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_ti(is_internal, len(partitions))
        for error_code_2, partition_index, leader_id, _, replica_nodes, isr_nodes, _ in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, len(replica_nodes))
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, brokers, cluster_id, controller_id, topics, _, _ = value
    out += _pack_ii(throttle_time_ms, len(brokers))
    for node_id, host, port, rack in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        raw = b"" if rack is None else rack.encode()
        out += _pack_ih(port, -1 if rack is None else len(raw))
        out += raw
    raw = b"" if cluster_id is None else cluster_id.encode()
    out += _pack_h(-1 if cluster_id is None else len(raw))
    out += raw
    out += _pack_ii(controller_id, len(topics))
    for error_code, name, _, is_internal, partitions, _ in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_ti(is_internal, len(partitions))
        for error_code_2, partition_index, leader_id, _, replica_nodes, isr_nodes, _ in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, len(replica_nodes))
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, brokers, cluster_id, controller_id, topics, _, _ = value
    out += _pack_ii(throttle_time_ms, len(brokers))
    for node_id, host, port, rack in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        raw = b"" if rack is None else rack.encode()
        out += _pack_ih(port, -1 if rack is None else len(raw))
        out += raw
    raw = b"" if cluster_id is None else cluster_id.encode()
    out += _pack_h(-1 if cluster_id is None else len(raw))
    out += raw
    out += _pack_ii(controller_id, len(topics))
    for error_code, name, _, is_internal, partitions, _ in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_ti(is_internal, len(partitions))
        for (
            error_code_2,
            partition_index,
            leader_id,
            _,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, len(replica_nodes))
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
            out += _pack_i(len(offline_replicas))
            out += pack_int32s(offline_replicas)
    return out


def _encode_response_v7(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, brokers, cluster_id, controller_id, topics, _, _ = value
    out += _pack_ii(throttle_time_ms, len(brokers))
    for node_id, host, port, rack in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        raw = b"" if rack is None else rack.encode()
        out += _pack_ih(port, -1 if rack is None else len(raw))
        out += raw
    raw = b"" if cluster_id is None else cluster_id.encode()
    out += _pack_h(-1 if cluster_id is None else len(raw))
    out += raw
    out += _pack_ii(controller_id, len(topics))
    for error_code, name, _, is_internal, partitions, _ in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_ti(is_internal, len(partitions))
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiiii(
                error_code_2, partition_index, leader_id, leader_epoch, len(replica_nodes)
            )
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
            out += _pack_i(len(offline_replicas))
            out += pack_int32s(offline_replicas)
    return out


def _encode_response_v8(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        _,
    ) = value
    out += _pack_ii(throttle_time_ms, len(brokers))
    for node_id, host, port, rack in brokers:
        raw = host.encode()
        out += _pack_ih(node_id, len(raw))
        out += raw
        raw = b"" if rack is None else rack.encode()
        out += _pack_ih(port, -1 if rack is None else len(raw))
        out += raw
    raw = b"" if cluster_id is None else cluster_id.encode()
    out += _pack_h(-1 if cluster_id is None else len(raw))
    out += raw
    out += _pack_ii(controller_id, len(topics))
    for error_code, name, _, is_internal, partitions, topic_authorized_operations in topics:
        raw = name.encode()
        out += _pack_hh(error_code, len(raw))
        out += raw
        out += _pack_ti(is_internal, len(partitions))
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiiii(
                error_code_2, partition_index, leader_id, leader_epoch, len(replica_nodes)
            )
            out += pack_int32s(replica_nodes)
            out += _pack_i(len(isr_nodes))
            out += pack_int32s(isr_nodes)
            out += _pack_i(len(offline_replicas))
            out += pack_int32s(offline_replicas)
        out += _pack_i(topic_authorized_operations)
    out += _pack_i(cluster_authorized_operations)
    return out


def _encode_response_v9(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        _,
    ) = value
    out += _pack_i(throttle_time_ms)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for node_id, host, port, rack in brokers:
        out += _pack_i(node_id)
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
    if cluster_id is None:
        out.append(0)
    else:
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
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, name, _, is_internal, partitions, topic_authorized_operations in topics:
        out += _pack_h(error_code)
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_t(is_internal)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, leader_epoch)
            size = len(replica_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(replica_nodes)
            size = len(isr_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(isr_nodes)
            size = len(offline_replicas) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(offline_replicas)
            out.append(0)
        out += _pack_ix(topic_authorized_operations)
    out += _pack_ix(cluster_authorized_operations)
    return out


def _encode_response_v10(value: Any) -> bytearray:
    out = bytearray()
    (
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        _,
    ) = value
    out += _pack_i(throttle_time_ms)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for node_id, host, port, rack in brokers:
        out += _pack_i(node_id)
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
    if cluster_id is None:
        out.append(0)
    else:
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
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, name, topic_id, is_internal, partitions, topic_authorized_operations in topics:
        out += _pack_h(error_code)
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_ut(topic_id, is_internal)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, leader_epoch)
            size = len(replica_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(replica_nodes)
            size = len(isr_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(isr_nodes)
            size = len(offline_replicas) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(offline_replicas)
            out.append(0)
        out += _pack_ix(topic_authorized_operations)
    out += _pack_ix(cluster_authorized_operations)
    return out


def _encode_response_v11(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, brokers, cluster_id, controller_id, topics, _, _ = value
    out += _pack_i(throttle_time_ms)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for node_id, host, port, rack in brokers:
        out += _pack_i(node_id)
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
    if cluster_id is None:
        out.append(0)
    else:
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
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, name, topic_id, is_internal, partitions, topic_authorized_operations in topics:
        out += _pack_h(error_code)
        raw = name.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("name", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        out += _pack_ut(topic_id, is_internal)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, leader_epoch)
            size = len(replica_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(replica_nodes)
            size = len(isr_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(isr_nodes)
            size = len(offline_replicas) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(offline_replicas)
            out.append(0)
        out += _pack_ix(topic_authorized_operations)
    out.append(0)
    return out


def _encode_response_v12(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, brokers, cluster_id, controller_id, topics, _, _ = value
    out += _pack_i(throttle_time_ms)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for node_id, host, port, rack in brokers:
        out += _pack_i(node_id)
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
    if cluster_id is None:
        out.append(0)
    else:
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
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for error_code, name, topic_id, is_internal, partitions, topic_authorized_operations in topics:
        out += _pack_h(error_code)
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
        out += _pack_ut(topic_id, is_internal)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            error_code_2,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_2, partition_index, leader_id, leader_epoch)
            size = len(replica_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(replica_nodes)
            size = len(isr_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(isr_nodes)
            size = len(offline_replicas) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(offline_replicas)
            out.append(0)
        out += _pack_ix(topic_authorized_operations)
    out.append(0)
    return out


def _encode_response_v13(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, brokers, cluster_id, controller_id, topics, _, error_code = value
    out += _pack_i(throttle_time_ms)
    size = len(brokers) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for node_id, host, port, rack in brokers:
        out += _pack_i(node_id)
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
    if cluster_id is None:
        out.append(0)
    else:
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
    size = len(topics) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for (
        error_code_2,
        name,
        topic_id,
        is_internal,
        partitions,
        topic_authorized_operations,
    ) in topics:
        out += _pack_h(error_code_2)
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
        out += _pack_ut(topic_id, is_internal)
        size = len(partitions) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for (
            error_code_3,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
        ) in partitions:
            out += _pack_hiii(error_code_3, partition_index, leader_id, leader_epoch)
            size = len(replica_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(replica_nodes)
            size = len(isr_nodes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(isr_nodes)
            size = len(offline_replicas) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(offline_replicas)
            out.append(0)
        out += _pack_ix(topic_authorized_operations)
    out += _pack_hx(error_code)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], MetadataRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v1,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v4,
    7: _decode_request_v4,
    8: _decode_request_v8,
    9: _decode_request_v9,
    10: _decode_request_v10,
    11: _decode_request_v11,
    12: _decode_request_v11,
    13: _decode_request_v11,
}

ENCODE_REQUEST: dict[int, Callable[[MetadataRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v1,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v4,
    7: _encode_request_v4,
    8: _encode_request_v8,
    9: _encode_request_v9,
    10: _encode_request_v10,
    11: _encode_request_v11,
    12: _encode_request_v11,
    13: _encode_request_v11,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], MetadataResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v7,
    8: _decode_response_v8,
    9: _decode_response_v9,
    10: _decode_response_v10,
    11: _decode_response_v11,
    12: _decode_response_v12,
    13: _decode_response_v13,
}

ENCODE_RESPONSE: dict[int, Callable[[MetadataResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v7,
    8: _encode_response_v8,
    9: _encode_response_v9,
    10: _encode_response_v10,
    11: _encode_response_v11,
    12: _encode_response_v12,
    13: _encode_response_v13,
}
