"""OffsetFetch (key 9), versions 1 to 10.

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


class OffsetFetchRequestTopic(NamedTuple):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestTopics(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestGroup(NamedTuple):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = ()


class OffsetFetchRequest(NamedTuple):
    group_id: str = ""
    topics: Sequence[OffsetFetchRequestTopic] | None = ()
    groups: Sequence[OffsetFetchRequestGroup] = ()
    require_stable: bool = False


class OffsetFetchResponsePartition(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[OffsetFetchResponsePartition] = ()


class OffsetFetchResponsePartitions(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopics(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[OffsetFetchResponsePartitions] = ()


class OffsetFetchResponseGroup(NamedTuple):
    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: int = 0


class OffsetFetchResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[OffsetFetchResponseTopic] = ()
    error_code: int = 0
    groups: Sequence[OffsetFetchResponseGroup] = ()


_pack_u = Struct(">16s").pack
_pack_tx = Struct(">?x").pack
_pack_h = Struct(">h").pack
_pack_hx = Struct(">hx").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_pack_iqh = Struct(">iqh").pack
_pack_iqi = Struct(">iqi").pack
_pack_iqih = Struct(">iqih").pack
_unpack_uB = Struct(">16sB").unpack_from
_unpack_tB = Struct(">?B").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_hB = Struct(">hB").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iqh = Struct(">iqh").unpack_from
_unpack_iqiB = Struct(">iqiB").unpack_from
_unpack_iqih = Struct(">iqih").unpack_from


def _decode_request_v1(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("group_id")
    stop = position + size
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetFetchRequestTopic] = []
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
            raise null_field("partition_indexes")
        if count * 4 > end - position:
            raise too_many("partition_indexes", count, position, end)
        if count < len(UNPACK_INT32S):
            partition_indexes = UNPACK_INT32S[count](buffer, position)
        else:
            partition_indexes = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        topics_items.append(new(OffsetFetchRequestTopic, (name, partition_indexes)))
    topics = tuple(topics_items)
    return new(OffsetFetchRequest, (group_id, topics, (), False))


def _decode_request_v2(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    (size,) = _unpack_h(buffer, position)
    position += 2
    if size < 0:
        raise null_field("group_id")
    stop = position + size
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None
    if count >= 0:
        if count * 6 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[OffsetFetchRequestTopic] = []
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
                raise null_field("partition_indexes")
            if count * 4 > end - position:
                raise too_many("partition_indexes", count, position, end)
            if count < len(UNPACK_INT32S):
                partition_indexes = UNPACK_INT32S[count](buffer, position)
            else:
                partition_indexes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            topics_items.append(new(OffsetFetchRequestTopic, (name, partition_indexes)))
        topics = tuple(topics_items)
    return new(OffsetFetchRequest, (group_id, topics, (), False))


def _decode_request_v6(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("group_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None
    if count >= 0:
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[OffsetFetchRequestTopic] = []
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
                raise null_field("partition_indexes")
            if count * 4 > end - position:
                raise too_many("partition_indexes", count, position, end)
            if count < len(UNPACK_INT32S):
                partition_indexes = UNPACK_INT32S[count](buffer, position)
            else:
                partition_indexes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(OffsetFetchRequestTopic, (name, partition_indexes)))
        topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchRequest, (group_id, topics, (), False))


def _decode_request_v7(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("group_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("group_id", stop - position, position, end)
    group_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None
    if count >= 0:
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[OffsetFetchRequestTopic] = []
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
                raise null_field("partition_indexes")
            if count * 4 > end - position:
                raise too_many("partition_indexes", count, position, end)
            if count < len(UNPACK_INT32S):
                partition_indexes = UNPACK_INT32S[count](buffer, position)
            else:
                partition_indexes = unpack_from(f">{count}i", buffer, position)
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(OffsetFetchRequestTopic, (name, partition_indexes)))
        topics = tuple(topics_items)
    require_stable, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchRequest, (group_id, topics, (), require_stable))


def _decode_request_v8(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 3 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[OffsetFetchRequestGroup] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        topics: tuple[OffsetFetchRequestTopics, ...] | None = None
        if count >= 0:
            if count * 3 > end - position:
                raise too_many("topics", count, position, end)
            topics_items: list[OffsetFetchRequestTopics] = []
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
                    raise null_field("partition_indexes")
                if count * 4 > end - position:
                    raise too_many("partition_indexes", count, position, end)
                if count < len(UNPACK_INT32S):
                    partition_indexes = UNPACK_INT32S[count](buffer, position)
                else:
                    partition_indexes = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topics_items.append(
                    new(OffsetFetchRequestTopics, (name, NO_UUID, partition_indexes))
                )
            topics = tuple(topics_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(new(OffsetFetchRequestGroup, (group_id, None, -1, topics)))
    groups = tuple(groups_items)
    require_stable, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchRequest, ("", (), groups, require_stable))


def _decode_request_v9(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 8 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[OffsetFetchRequestGroup] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        member_id: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("member_id", stop - position, position, end)
            member_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        member_epoch, count = _unpack_iB(buffer, position)
        position += 5
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        topics: tuple[OffsetFetchRequestTopics, ...] | None = None
        if count >= 0:
            if count * 3 > end - position:
                raise too_many("topics", count, position, end)
            topics_items: list[OffsetFetchRequestTopics] = []
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
                    raise null_field("partition_indexes")
                if count * 4 > end - position:
                    raise too_many("partition_indexes", count, position, end)
                if count < len(UNPACK_INT32S):
                    partition_indexes = UNPACK_INT32S[count](buffer, position)
                else:
                    partition_indexes = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topics_items.append(
                    new(OffsetFetchRequestTopics, (name, NO_UUID, partition_indexes))
                )
            topics = tuple(topics_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(
            new(OffsetFetchRequestGroup, (group_id, member_id, member_epoch, topics))
        )
    groups = tuple(groups_items)
    require_stable, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchRequest, ("", (), groups, require_stable))


def _decode_request_v10(buffer: bytes, position: int) -> OffsetFetchRequest:
    end = len(buffer)
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 8 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[OffsetFetchRequestGroup] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        member_id: str | None = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise too_long("member_id", stop - position, position, end)
            member_id = str(buffer[position:stop], "utf-8", "replace")
            position = stop
        member_epoch, count = _unpack_iB(buffer, position)
        position += 5
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        topics: tuple[OffsetFetchRequestTopics, ...] | None = None
        if count >= 0:
            if count * 18 > end - position:
                raise too_many("topics", count, position, end)
            topics_items: list[OffsetFetchRequestTopics] = []
            for _ in range(count):
                topic_id, count = _unpack_uB(buffer, position)
                position += 17
                if count > 127:
                    count, position = long_length(buffer, position - 1)
                count -= 1
                if count < 0:
                    raise null_field("partition_indexes")
                if count * 4 > end - position:
                    raise too_many("partition_indexes", count, position, end)
                if count < len(UNPACK_INT32S):
                    partition_indexes = UNPACK_INT32S[count](buffer, position)
                else:
                    partition_indexes = unpack_from(f">{count}i", buffer, position)
                position += count * 4
                tags = buffer[position]
                position += 1
                if tags:
                    position = skip_tags(buffer, position - 1)
                topics_items.append(
                    new(OffsetFetchRequestTopics, ("", topic_id, partition_indexes))
                )
            topics = tuple(topics_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(
            new(OffsetFetchRequestGroup, (group_id, member_id, member_epoch, topics))
        )
    groups = tuple(groups_items)
    require_stable, tags = _unpack_tB(buffer, position)
    position += 2
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchRequest, ("", (), groups, require_stable))


def _encode_request_v1(value: Any) -> bytearray:
    out = bytearray()
    group_id, topics, _, _ = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(len(topics))
    for name, partition_indexes in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partition_indexes))
        out += pack_int32s(partition_indexes)
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    group_id, topics, _, _ = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    out += _pack_i(-1 if topics is None else len(topics))
    for name, partition_indexes in topics or ():
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partition_indexes))
        out += pack_int32s(partition_indexes)
    return out


def _encode_request_v6(value: Any) -> bytearray:
    out = bytearray()
    group_id, topics, _, _ = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, partition_indexes in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partition_indexes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(partition_indexes)
            out.append(0)
    out.append(0)
    return out


def _encode_request_v7(value: Any) -> bytearray:
    out = bytearray()
    group_id, topics, _, require_stable = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, partition_indexes in topics:
            raw = name.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("name", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
            size = len(partition_indexes) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += pack_int32s(partition_indexes)
            out.append(0)
    out += _pack_tx(require_stable)
    return out


def _encode_request_v8(value: Any) -> bytearray:
    out = bytearray()
    _, _, groups, require_stable = value
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, _, _, topics in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for name, _, partition_indexes in topics:
                raw = name.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                size = len(partition_indexes) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partition_indexes)
                out.append(0)
        out.append(0)
    out += _pack_tx(require_stable)
    return out


def _encode_request_v9(value: Any) -> bytearray:
    out = bytearray()
    _, _, groups, require_stable = value
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, member_id, member_epoch, topics in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        if member_id is None:
            out.append(0)
        else:
            raw = member_id.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("member_id", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out += _pack_i(member_epoch)
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for name, _, partition_indexes in topics:
                raw = name.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("name", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
                size = len(partition_indexes) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partition_indexes)
                out.append(0)
        out.append(0)
    out += _pack_tx(require_stable)
    return out


def _encode_request_v10(value: Any) -> bytearray:
    out = bytearray()
    _, _, groups, require_stable = value
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, member_id, member_epoch, topics in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        if member_id is None:
            out.append(0)
        else:
            raw = member_id.encode()
            if len(raw) > STRING_BYTES_MAX:
                raise string_too_long("member_id", len(raw))
            size = len(raw) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            out += raw
        out += _pack_i(member_epoch)
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for _, topic_id, partition_indexes in topics:
                out += _pack_u(topic_id)
                size = len(partition_indexes) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += pack_int32s(partition_indexes)
                out.append(0)
        out.append(0)
    out += _pack_tx(require_stable)
    return out


def _decode_response_v1(buffer: bytes, position: int) -> OffsetFetchResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetFetchResponseTopic] = []
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
        partitions_items: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = _unpack_iqh(buffer, position)
            position += 14
            metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("metadata", stop - position, position, end)
                metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            (error_code,) = _unpack_h(buffer, position)
            position += 2
            partitions_items.append(
                new(
                    OffsetFetchResponsePartition,
                    (partition_index, committed_offset, -1, metadata, error_code),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetFetchResponseTopic, (name, partitions)))
    topics = tuple(topics_items)
    return new(OffsetFetchResponse, (0, topics, 0, ()))


def _decode_response_v2(buffer: bytes, position: int) -> OffsetFetchResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetFetchResponseTopic] = []
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
        partitions_items: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = _unpack_iqh(buffer, position)
            position += 14
            metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("metadata", stop - position, position, end)
                metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            (error_code,) = _unpack_h(buffer, position)
            position += 2
            partitions_items.append(
                new(
                    OffsetFetchResponsePartition,
                    (partition_index, committed_offset, -1, metadata, error_code),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetFetchResponseTopic, (name, partitions)))
    topics = tuple(topics_items)
    (error_code_2,) = _unpack_h(buffer, position)
    position += 2
    return new(OffsetFetchResponse, (0, topics, error_code_2, ()))


def _decode_response_v3(buffer: bytes, position: int) -> OffsetFetchResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetFetchResponseTopic] = []
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
        partitions_items: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = _unpack_iqh(buffer, position)
            position += 14
            metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("metadata", stop - position, position, end)
                metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            (error_code,) = _unpack_h(buffer, position)
            position += 2
            partitions_items.append(
                new(
                    OffsetFetchResponsePartition,
                    (partition_index, committed_offset, -1, metadata, error_code),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetFetchResponseTopic, (name, partitions)))
    topics = tuple(topics_items)
    (error_code_2,) = _unpack_h(buffer, position)
    position += 2
    return new(OffsetFetchResponse, (throttle_time_ms, topics, error_code_2, ()))


def _decode_response_v5(buffer: bytes, position: int) -> OffsetFetchResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetFetchResponseTopic] = []
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
        if count * 20 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqih(
                buffer, position
            )
            position += 18
            metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("metadata", stop - position, position, end)
                metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            (error_code,) = _unpack_h(buffer, position)
            position += 2
            partitions_items.append(
                new(
                    OffsetFetchResponsePartition,
                    (
                        partition_index,
                        committed_offset,
                        committed_leader_epoch,
                        metadata,
                        error_code,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetFetchResponseTopic, (name, partitions)))
    topics = tuple(topics_items)
    (error_code_2,) = _unpack_h(buffer, position)
    position += 2
    return new(OffsetFetchResponse, (throttle_time_ms, topics, error_code_2, ()))


def _decode_response_v6(buffer: bytes, position: int) -> OffsetFetchResponse:
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
    topics_items: list[OffsetFetchResponseTopic] = []
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
        if count * 20 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqiB(
                buffer, position
            )
            position += 17
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            metadata: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("metadata", stop - position, position, end)
                metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            error_code, tags = _unpack_hB(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    OffsetFetchResponsePartition,
                    (
                        partition_index,
                        committed_offset,
                        committed_leader_epoch,
                        metadata,
                        error_code,
                    ),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetFetchResponseTopic, (name, partitions)))
    topics = tuple(topics_items)
    error_code_2, tags = _unpack_hB(buffer, position)
    position += 3
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchResponse, (throttle_time_ms, topics, error_code_2, ()))


def _decode_response_v8(buffer: bytes, position: int) -> OffsetFetchResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 5 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[OffsetFetchResponseGroup] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topics")
        if count * 3 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[OffsetFetchResponseTopics] = []
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
            if count * 20 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[OffsetFetchResponsePartitions] = []
            for _ in range(count):
                partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqiB(
                    buffer, position
                )
                position += 17
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                metadata: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("metadata", stop - position, position, end)
                    metadata = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                error_code, tags = _unpack_hB(buffer, position)
                position += 3
                if tags:
                    position = skip_tags(buffer, position - 1)
                partitions_items.append(
                    new(
                        OffsetFetchResponsePartitions,
                        (
                            partition_index,
                            committed_offset,
                            committed_leader_epoch,
                            metadata,
                            error_code,
                        ),
                    )
                )
            partitions = tuple(partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(OffsetFetchResponseTopics, (name, NO_UUID, partitions)))
        topics = tuple(topics_items)
        error_code_2, tags = _unpack_hB(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(new(OffsetFetchResponseGroup, (group_id, topics, error_code_2)))
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchResponse, (throttle_time_ms, (), 0, groups))


def _decode_response_v10(buffer: bytes, position: int) -> OffsetFetchResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("groups")
    if count * 5 > end - position:
        raise too_many("groups", count, position, end)
    groups_items: list[OffsetFetchResponseGroup] = []
    for _ in range(count):
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = long_string_length(buffer, position - 1)
        if not size:
            raise null_field("group_id")
        stop = position + size - 1
        if stop > end:
            raise too_long("group_id", stop - position, position, end)
        group_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("topics")
        if count * 18 > end - position:
            raise too_many("topics", count, position, end)
        topics_items: list[OffsetFetchResponseTopics] = []
        for _ in range(count):
            topic_id, count = _unpack_uB(buffer, position)
            position += 17
            if count > 127:
                count, position = long_length(buffer, position - 1)
            count -= 1
            if count < 0:
                raise null_field("partitions")
            if count * 20 > end - position:
                raise too_many("partitions", count, position, end)
            partitions_items: list[OffsetFetchResponsePartitions] = []
            for _ in range(count):
                partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqiB(
                    buffer, position
                )
                position += 17
                if size > 127:
                    size, position = long_string_length(buffer, position - 1)
                metadata: str | None = None
                if size:
                    stop = position + size - 1
                    if stop > end:
                        raise too_long("metadata", stop - position, position, end)
                    metadata = str(buffer[position:stop], "utf-8", "replace")
                    position = stop
                error_code, tags = _unpack_hB(buffer, position)
                position += 3
                if tags:
                    position = skip_tags(buffer, position - 1)
                partitions_items.append(
                    new(
                        OffsetFetchResponsePartitions,
                        (
                            partition_index,
                            committed_offset,
                            committed_leader_epoch,
                            metadata,
                            error_code,
                        ),
                    )
                )
            partitions = tuple(partitions_items)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            topics_items.append(new(OffsetFetchResponseTopics, ("", topic_id, partitions)))
        topics = tuple(topics_items)
        error_code_2, tags = _unpack_hB(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position - 1)
        groups_items.append(new(OffsetFetchResponseGroup, (group_id, topics, error_code_2)))
    groups = tuple(groups_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetFetchResponse, (throttle_time_ms, (), 0, groups))


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    _, topics, _, _ = value
    out += _pack_i(len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, committed_offset, _, metadata, error_code in partitions:
            raw = b"" if metadata is None else metadata.encode()
            out += _pack_iqh(
                partition_index, committed_offset, -1 if metadata is None else len(raw)
            )
            out += raw
            out += _pack_h(error_code)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    _, topics, error_code, _ = value
    out += _pack_i(len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, committed_offset, _, metadata, error_code_2 in partitions:
            raw = b"" if metadata is None else metadata.encode()
            out += _pack_iqh(
                partition_index, committed_offset, -1 if metadata is None else len(raw)
            )
            out += raw
            out += _pack_h(error_code_2)
    out += _pack_h(error_code)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics, error_code, _ = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, committed_offset, _, metadata, error_code_2 in partitions:
            raw = b"" if metadata is None else metadata.encode()
            out += _pack_iqh(
                partition_index, committed_offset, -1 if metadata is None else len(raw)
            )
            out += raw
            out += _pack_h(error_code_2)
    out += _pack_h(error_code)
    return out


def _encode_response_v5(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics, error_code, _ = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata,
            error_code_2,
        ) in partitions:
            raw = b"" if metadata is None else metadata.encode()
            out += _pack_iqih(
                partition_index,
                committed_offset,
                committed_leader_epoch,
                -1 if metadata is None else len(raw),
            )
            out += raw
            out += _pack_h(error_code_2)
    out += _pack_h(error_code)
    return out


def _encode_response_v6(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics, error_code, _ = value
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
        for (
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata,
            error_code_2,
        ) in partitions:
            out += _pack_iqi(partition_index, committed_offset, committed_leader_epoch)
            if metadata is None:
                out.append(0)
            else:
                raw = metadata.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("metadata", len(raw))
                size = len(raw) + 1
                if size < 128:
                    out.append(size)
                else:
                    out += varint(size)
                out += raw
            out += _pack_hx(error_code_2)
        out.append(0)
    out += _pack_hx(error_code)
    return out


def _encode_response_v8(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, _, _, groups = value
    out += _pack_i(throttle_time_ms)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, topics, error_code in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for name, _, partitions in topics:
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
            for (
                partition_index,
                committed_offset,
                committed_leader_epoch,
                metadata,
                error_code_2,
            ) in partitions:
                out += _pack_iqi(partition_index, committed_offset, committed_leader_epoch)
                if metadata is None:
                    out.append(0)
                else:
                    raw = metadata.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("metadata", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out += _pack_hx(error_code_2)
            out.append(0)
        out += _pack_hx(error_code)
    out.append(0)
    return out


def _encode_response_v10(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, _, _, groups = value
    out += _pack_i(throttle_time_ms)
    size = len(groups) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    for group_id, topics, error_code in groups:
        raw = group_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_id", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
        size = len(topics) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        for _, topic_id, partitions in topics:
            out += _pack_u(topic_id)
            size = len(partitions) + 1
            if size < 128:
                out.append(size)
            else:
                out += varint(size)
            for (
                partition_index,
                committed_offset,
                committed_leader_epoch,
                metadata,
                error_code_2,
            ) in partitions:
                out += _pack_iqi(partition_index, committed_offset, committed_leader_epoch)
                if metadata is None:
                    out.append(0)
                else:
                    raw = metadata.encode()
                    if len(raw) > STRING_BYTES_MAX:
                        raise string_too_long("metadata", len(raw))
                    size = len(raw) + 1
                    if size < 128:
                        out.append(size)
                    else:
                        out += varint(size)
                    out += raw
                out += _pack_hx(error_code_2)
            out.append(0)
        out += _pack_hx(error_code)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], OffsetFetchRequest]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v2,
    6: _decode_request_v6,
    7: _decode_request_v7,
    8: _decode_request_v8,
    9: _decode_request_v9,
    10: _decode_request_v10,
}

ENCODE_REQUEST: dict[int, Callable[[OffsetFetchRequest], bytearray]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v2,
    6: _encode_request_v6,
    7: _encode_request_v7,
    8: _encode_request_v8,
    9: _encode_request_v9,
    10: _encode_request_v10,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], OffsetFetchResponse]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
    6: _decode_response_v6,
    7: _decode_response_v6,
    8: _decode_response_v8,
    9: _decode_response_v8,
    10: _decode_response_v10,
}

ENCODE_RESPONSE: dict[int, Callable[[OffsetFetchResponse], bytearray]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
    6: _encode_response_v6,
    7: _encode_response_v6,
    8: _encode_response_v8,
    9: _encode_response_v8,
    10: _encode_response_v10,
}
