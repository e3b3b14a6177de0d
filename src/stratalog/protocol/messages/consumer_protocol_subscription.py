"""ConsumerProtocolSubscription, versions 0 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable, Sequence
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from stratalog.protocol.wire import UNPACK_INT32S, null_field, pack_int32s, too_long, too_many

new = tuple.__new__


class TopicPartition(NamedTuple):
    topic: str = ""
    partitions: Sequence[int] = ()


class ConsumerProtocolSubscription(NamedTuple):
    topics: Sequence[str] = ()
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    generation_id: int = -1
    rack_id: str | None = None


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from


def _decode_data_v0(buffer: bytes, position: int) -> ConsumerProtocolSubscription:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 2 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[str] = []
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
        topics_items.append(item)
    topics = tuple(topics_items)
    (size,) = _unpack_i(buffer, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("user_data", stop - position, position, end)
        user_data = buffer[position:stop]
        position = stop
    return new(ConsumerProtocolSubscription, (topics, user_data, (), -1, None))


def _decode_data_v1(buffer: bytes, position: int) -> ConsumerProtocolSubscription:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 2 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[str] = []
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
        topics_items.append(item)
    topics = tuple(topics_items)
    (size,) = _unpack_i(buffer, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("user_data", stop - position, position, end)
        user_data = buffer[position:stop]
        position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("owned_partitions")
    if count * 6 > end - position:
        raise too_many("owned_partitions", count, position, end)
    owned_partitions_items: list[TopicPartition] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions = UNPACK_INT32S[count](buffer, position)
        else:
            partitions = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        owned_partitions_items.append(new(TopicPartition, (topic, partitions)))
    owned_partitions = tuple(owned_partitions_items)
    return new(ConsumerProtocolSubscription, (topics, user_data, owned_partitions, -1, None))


def _decode_data_v2(buffer: bytes, position: int) -> ConsumerProtocolSubscription:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 2 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[str] = []
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
        topics_items.append(item)
    topics = tuple(topics_items)
    (size,) = _unpack_i(buffer, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("user_data", stop - position, position, end)
        user_data = buffer[position:stop]
        position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("owned_partitions")
    if count * 6 > end - position:
        raise too_many("owned_partitions", count, position, end)
    owned_partitions_items: list[TopicPartition] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions = UNPACK_INT32S[count](buffer, position)
        else:
            partitions = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        owned_partitions_items.append(new(TopicPartition, (topic, partitions)))
    owned_partitions = tuple(owned_partitions_items)
    (generation_id,) = _unpack_i(buffer, position)
    position += 4
    return new(
        ConsumerProtocolSubscription, (topics, user_data, owned_partitions, generation_id, None)
    )


def _decode_data_v3(buffer: bytes, position: int) -> ConsumerProtocolSubscription:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("topics")
    if count * 2 > end - position:
        raise too_many("topics", count, position, end)
    topics_items: list[str] = []
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
        topics_items.append(item)
    topics = tuple(topics_items)
    (size,) = _unpack_i(buffer, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("user_data", stop - position, position, end)
        user_data = buffer[position:stop]
        position = stop
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("owned_partitions")
    if count * 6 > end - position:
        raise too_many("owned_partitions", count, position, end)
    owned_partitions_items: list[TopicPartition] = []
    for _ in range(count):
        (size,) = _unpack_h(buffer, position)
        position += 2
        if size < 0:
            raise null_field("topic")
        stop = position + size
        if stop > end:
            raise too_long("topic", stop - position, position, end)
        topic = str(buffer[position:stop], "utf-8", "replace")
        position = stop
        (count,) = _unpack_i(buffer, position)
        position += 4
        if count < 0:
            raise null_field("partitions")
        if count * 4 > end - position:
            raise too_many("partitions", count, position, end)
        if count < len(UNPACK_INT32S):
            partitions = UNPACK_INT32S[count](buffer, position)
        else:
            partitions = unpack_from(f">{count}i", buffer, position)
        position += count * 4
        owned_partitions_items.append(new(TopicPartition, (topic, partitions)))
    owned_partitions = tuple(owned_partitions_items)
    generation_id, size = _unpack_ih(buffer, position)
    position += 6
    rack_id: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("rack_id", stop - position, position, end)
        rack_id = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    return new(
        ConsumerProtocolSubscription, (topics, user_data, owned_partitions, generation_id, rack_id)
    )


def _encode_data_v0(value: Any) -> bytearray:
    out = bytearray()
    topics, user_data, _, _, _ = value
    out += _pack_i(len(topics))
    for item in topics:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_i(-1 if user_data is None else len(user_data))
    out += user_data or b""
    return out


def _encode_data_v1(value: Any) -> bytearray:
    out = bytearray()
    topics, user_data, owned_partitions, _, _ = value
    out += _pack_i(len(topics))
    for item in topics:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_i(-1 if user_data is None else len(user_data))
    out += user_data or b""
    out += _pack_i(len(owned_partitions))
    for topic, partitions in owned_partitions:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        out += pack_int32s(partitions)
    return out


def _encode_data_v2(value: Any) -> bytearray:
    out = bytearray()
    topics, user_data, owned_partitions, generation_id, _ = value
    out += _pack_i(len(topics))
    for item in topics:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_i(-1 if user_data is None else len(user_data))
    out += user_data or b""
    out += _pack_i(len(owned_partitions))
    for topic, partitions in owned_partitions:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        out += pack_int32s(partitions)
    out += _pack_i(generation_id)
    return out


def _encode_data_v3(value: Any) -> bytearray:
    out = bytearray()
    topics, user_data, owned_partitions, generation_id, rack_id = value
    out += _pack_i(len(topics))
    for item in topics:
        raw = item.encode()
        out += _pack_h(len(raw))
        out += raw
    out += _pack_i(-1 if user_data is None else len(user_data))
    out += user_data or b""
    out += _pack_i(len(owned_partitions))
    for topic, partitions in owned_partitions:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        out += pack_int32s(partitions)
    raw = b"" if rack_id is None else rack_id.encode()
    out += _pack_ih(generation_id, -1 if rack_id is None else len(raw))
    out += raw
    return out


DECODE_DATA: dict[int, Callable[[bytes, int], ConsumerProtocolSubscription]] = {
    0: _decode_data_v0,
    1: _decode_data_v1,
    2: _decode_data_v2,
    3: _decode_data_v3,
}

ENCODE_DATA: dict[int, Callable[[ConsumerProtocolSubscription], bytearray]] = {
    0: _encode_data_v0,
    1: _encode_data_v1,
    2: _encode_data_v2,
    3: _encode_data_v3,
}
