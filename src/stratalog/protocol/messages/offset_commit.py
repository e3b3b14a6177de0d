"""OffsetCommit (key 8), versions 2 to 10.

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


class OffsetCommitRequestPartition(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[OffsetCommitRequestPartition] = ()


class OffsetCommitRequest(NamedTuple):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    group_instance_id: str | None = None
    topics: Sequence[OffsetCommitRequestTopic] = ()


class OffsetCommitResponsePartition(NamedTuple):
    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[OffsetCommitResponsePartition] = ()


class OffsetCommitResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[OffsetCommitResponseTopic] = ()


_pack_u = Struct(">16s").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihx = Struct(">ihx").pack
_pack_ii = Struct(">ii").pack
_pack_iqh = Struct(">iqh").pack
_pack_iqi = Struct(">iqi").pack
_pack_iqih = Struct(">iqih").pack
_pack_qi = Struct(">qi").pack
_unpack_uB = Struct(">16sB").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iB = Struct(">iB").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihB = Struct(">ihB").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iqh = Struct(">iqh").unpack_from
_unpack_iqiB = Struct(">iqiB").unpack_from
_unpack_iqih = Struct(">iqih").unpack_from
_unpack_qi = Struct(">qi").unpack_from


def _decode_request_v2(buffer: bytes, position: int) -> OffsetCommitRequest:
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
    generation_id_or_member_epoch, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    retention_time_ms, count = _unpack_qi(buffer, position)
    position += 12
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitRequestTopic] = []
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
        if count * 14 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = _unpack_iqh(buffer, position)
            position += 14
            committed_metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("committed_metadata", stop - position, position, end)
                committed_metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            partitions_items.append(
                new(
                    OffsetCommitRequestPartition,
                    (partition_index, committed_offset, -1, committed_metadata),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetCommitRequestTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(
        OffsetCommitRequest,
        (group_id, generation_id_or_member_epoch, member_id, retention_time_ms, None, topics),
    )


def _decode_request_v5(buffer: bytes, position: int) -> OffsetCommitRequest:
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
    generation_id_or_member_epoch, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitRequestTopic] = []
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
        if count * 14 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = _unpack_iqh(buffer, position)
            position += 14
            committed_metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("committed_metadata", stop - position, position, end)
                committed_metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            partitions_items.append(
                new(
                    OffsetCommitRequestPartition,
                    (partition_index, committed_offset, -1, committed_metadata),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetCommitRequestTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(
        OffsetCommitRequest, (group_id, generation_id_or_member_epoch, member_id, -1, None, topics)
    )


def _decode_request_v6(buffer: bytes, position: int) -> OffsetCommitRequest:
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
    generation_id_or_member_epoch, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitRequestTopic] = []
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
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqih(
                buffer, position
            )
            position += 18
            committed_metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("committed_metadata", stop - position, position, end)
                committed_metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            partitions_items.append(
                new(
                    OffsetCommitRequestPartition,
                    (partition_index, committed_offset, committed_leader_epoch, committed_metadata),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetCommitRequestTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(
        OffsetCommitRequest, (group_id, generation_id_or_member_epoch, member_id, -1, None, topics)
    )


def _decode_request_v7(buffer: bytes, position: int) -> OffsetCommitRequest:
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
    generation_id_or_member_epoch, size = _unpack_ih(buffer, position)
    position += 6
    if size < 0:
        raise null_field("member_id")
    stop = position + size
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    (size,) = _unpack_h(buffer, position)
    position += 2
    group_instance_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("group_instance_id", stop - position, position, end)
        group_instance_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitRequestTopic] = []
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
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqih(
                buffer, position
            )
            position += 18
            committed_metadata: str | None = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise too_long("committed_metadata", stop - position, position, end)
                committed_metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            partitions_items.append(
                new(
                    OffsetCommitRequestPartition,
                    (partition_index, committed_offset, committed_leader_epoch, committed_metadata),
                )
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetCommitRequestTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(
        OffsetCommitRequest,
        (group_id, generation_id_or_member_epoch, member_id, -1, group_instance_id, topics),
    )


def _decode_request_v8(buffer: bytes, position: int) -> OffsetCommitRequest:
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
    generation_id_or_member_epoch, size = _unpack_iB(buffer, position)
    position += 5
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("member_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    group_instance_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("group_instance_id", stop - position, position, end)
        group_instance_id = str(buffer[position:stop], "utf-8", "replace")
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
    topics_items: list[OffsetCommitRequestTopic] = []
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
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqiB(
                buffer, position
            )
            position += 17
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            committed_metadata: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("committed_metadata", stop - position, position, end)
                committed_metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    OffsetCommitRequestPartition,
                    (partition_index, committed_offset, committed_leader_epoch, committed_metadata),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetCommitRequestTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        OffsetCommitRequest,
        (group_id, generation_id_or_member_epoch, member_id, -1, group_instance_id, topics),
    )


def _decode_request_v10(buffer: bytes, position: int) -> OffsetCommitRequest:
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
    generation_id_or_member_epoch, size = _unpack_iB(buffer, position)
    position += 5
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    if not size:
        raise null_field("member_id")
    stop = position + size - 1
    if stop > end:
        raise too_long("member_id", stop - position, position, end)
    member_id = str(buffer[position:stop], "utf-8", "replace")
    position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    group_instance_id: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("group_instance_id", stop - position, position, end)
        group_instance_id = str(buffer[position:stop], "utf-8", "replace")
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
    topics_items: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 18 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, committed_leader_epoch, size = _unpack_iqiB(
                buffer, position
            )
            position += 17
            if size > 127:
                size, position = long_string_length(buffer, position - 1)
            committed_metadata: str | None = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise too_long("committed_metadata", stop - position, position, end)
                committed_metadata = str(buffer[position:stop], "utf-8", "replace")
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(
                    OffsetCommitRequestPartition,
                    (partition_index, committed_offset, committed_leader_epoch, committed_metadata),
                )
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetCommitRequestTopic, ("", topic_id, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        OffsetCommitRequest,
        (group_id, generation_id_or_member_epoch, member_id, -1, group_instance_id, topics),
    )


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id_or_member_epoch, member_id, retention_time_ms, _, topics = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id_or_member_epoch, len(raw))
    out += raw
    out += _pack_qi(retention_time_ms, len(topics))
    for name, _, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, committed_offset, _, committed_metadata in partitions:
            raw = b"" if committed_metadata is None else committed_metadata.encode()
            out += _pack_iqh(
                partition_index, committed_offset, -1 if committed_metadata is None else len(raw)
            )
            out += raw
    return out


def _encode_request_v5(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id_or_member_epoch, member_id, _, _, topics = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id_or_member_epoch, len(raw))
    out += raw
    out += _pack_i(len(topics))
    for name, _, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, committed_offset, _, committed_metadata in partitions:
            raw = b"" if committed_metadata is None else committed_metadata.encode()
            out += _pack_iqh(
                partition_index, committed_offset, -1 if committed_metadata is None else len(raw)
            )
            out += raw
    return out


def _encode_request_v6(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id_or_member_epoch, member_id, _, _, topics = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id_or_member_epoch, len(raw))
    out += raw
    out += _pack_i(len(topics))
    for name, _, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            committed_offset,
            committed_leader_epoch,
            committed_metadata,
        ) in partitions:
            raw = b"" if committed_metadata is None else committed_metadata.encode()
            out += _pack_iqih(
                partition_index,
                committed_offset,
                committed_leader_epoch,
                -1 if committed_metadata is None else len(raw),
            )
            out += raw
    return out


def _encode_request_v7(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id_or_member_epoch, member_id, _, group_instance_id, topics = value
    raw = group_id.encode()
    out += _pack_h(len(raw))
    out += raw
    raw = member_id.encode()
    out += _pack_ih(generation_id_or_member_epoch, len(raw))
    out += raw
    raw = b"" if group_instance_id is None else group_instance_id.encode()
    out += _pack_h(-1 if group_instance_id is None else len(raw))
    out += raw
    out += _pack_i(len(topics))
    for name, _, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for (
            partition_index,
            committed_offset,
            committed_leader_epoch,
            committed_metadata,
        ) in partitions:
            raw = b"" if committed_metadata is None else committed_metadata.encode()
            out += _pack_iqih(
                partition_index,
                committed_offset,
                committed_leader_epoch,
                -1 if committed_metadata is None else len(raw),
            )
            out += raw
    return out


def _encode_request_v8(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id_or_member_epoch, member_id, _, group_instance_id, topics = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(generation_id_or_member_epoch)
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if group_instance_id is None:
        out.append(0)
    else:
        raw = group_instance_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_instance_id", len(raw))
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
            committed_metadata,
        ) in partitions:
            out += _pack_iqi(partition_index, committed_offset, committed_leader_epoch)
            if committed_metadata is None:
                out.append(0)
            else:
                raw = committed_metadata.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("committed_metadata", len(raw))
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


def _encode_request_v10(value: Any) -> bytearray:
    out = bytearray()
    group_id, generation_id_or_member_epoch, member_id, _, group_instance_id, topics = value
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("group_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    out += _pack_i(generation_id_or_member_epoch)
    raw = member_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise string_too_long("member_id", len(raw))
    size = len(raw) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += raw
    if group_instance_id is None:
        out.append(0)
    else:
        raw = group_instance_id.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("group_instance_id", len(raw))
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
            committed_metadata,
        ) in partitions:
            out += _pack_iqi(partition_index, committed_offset, committed_leader_epoch)
            if committed_metadata is None:
                out.append(0)
            else:
                raw = committed_metadata.encode()
                if len(raw) > STRING_BYTES_MAX:
                    raise string_too_long("committed_metadata", len(raw))
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


def _decode_response_v2(buffer: bytes, position: int) -> OffsetCommitResponse:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitResponseTopic] = []
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
        if count * 6 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code = _unpack_ih(buffer, position)
            position += 6
            partitions_items.append(
                new(OffsetCommitResponsePartition, (partition_index, error_code))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetCommitResponseTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(OffsetCommitResponse, (0, topics))


def _decode_response_v3(buffer: bytes, position: int) -> OffsetCommitResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_ii(buffer, position)
    position += 8
    if count < 0:
        raise null_field("topics")
    if count * 6 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitResponseTopic] = []
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
        if count * 6 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code = _unpack_ih(buffer, position)
            position += 6
            partitions_items.append(
                new(OffsetCommitResponsePartition, (partition_index, error_code))
            )
        partitions = tuple(partitions_items)
        topics_items.append(new(OffsetCommitResponseTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    return new(OffsetCommitResponse, (throttle_time_ms, topics))


def _decode_response_v8(buffer: bytes, position: int) -> OffsetCommitResponse:
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
    topics_items: list[OffsetCommitResponseTopic] = []
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
        if count * 7 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code, tags = _unpack_ihB(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(OffsetCommitResponsePartition, (partition_index, error_code))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetCommitResponseTopic, (name, NO_UUID, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetCommitResponse, (throttle_time_ms, topics))


def _decode_response_v10(buffer: bytes, position: int) -> OffsetCommitResponse:
    end = len(buffer)
    throttle_time_ms, count = _unpack_iB(buffer, position)
    position += 5
    if count > 127:
        count, position = long_length(buffer, position - 1)
    count -= 1
    if count < 0:
        raise null_field("topics")
    if count * 18 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        topic_id, count = _unpack_uB(buffer, position)
        position += 17
        if count > 127:
            count, position = long_length(buffer, position - 1)
        count -= 1
        if count < 0:
            raise null_field("partitions")
        if count * 7 > end - position:
            raise too_many("partitions", count, position, end)
        partitions_items: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code, tags = _unpack_ihB(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position - 1)
            partitions_items.append(
                new(OffsetCommitResponsePartition, (partition_index, error_code))
            )
        partitions = tuple(partitions_items)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position - 1)
        topics_items.append(new(OffsetCommitResponseTopic, ("", topic_id, partitions)))
    topics = tuple(topics_items)
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(OffsetCommitResponse, (throttle_time_ms, topics))


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    _, topics = value
    out += _pack_i(len(topics))
    for name, _, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, error_code in partitions:
            out += _pack_ih(partition_index, error_code)
    return out


def _encode_response_v3(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_ii(throttle_time_ms, len(topics))
    for name, _, partitions in topics:
        raw = name.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        for partition_index, error_code in partitions:
            out += _pack_ih(partition_index, error_code)
    return out


def _encode_response_v8(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_i(throttle_time_ms)
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
        for partition_index, error_code in partitions:
            out += _pack_ihx(partition_index, error_code)
        out.append(0)
    out.append(0)
    return out


def _encode_response_v10(value: Any) -> bytearray:
    out = bytearray()
    throttle_time_ms, topics = value
    out += _pack_i(throttle_time_ms)
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
        for partition_index, error_code in partitions:
            out += _pack_ihx(partition_index, error_code)
        out.append(0)
    out.append(0)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], OffsetCommitRequest]] = {
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v5,
    6: _decode_request_v6,
    7: _decode_request_v7,
    8: _decode_request_v8,
    9: _decode_request_v8,
    10: _decode_request_v10,
}

ENCODE_REQUEST: dict[int, Callable[[OffsetCommitRequest], bytearray]] = {
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v5,
    6: _encode_request_v6,
    7: _encode_request_v7,
    8: _encode_request_v8,
    9: _encode_request_v8,
    10: _encode_request_v10,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], OffsetCommitResponse]] = {
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v3,
    6: _decode_response_v3,
    7: _decode_response_v3,
    8: _decode_response_v8,
    9: _decode_response_v8,
    10: _decode_response_v10,
}

ENCODE_RESPONSE: dict[int, Callable[[OffsetCommitResponse], bytearray]] = {
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v3,
    6: _encode_response_v3,
    7: _encode_response_v3,
    8: _encode_response_v8,
    9: _encode_response_v8,
    10: _encode_response_v10,
}
