"""ConsumerProtocolAssignment, versions 0 to 3.

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


class ConsumerProtocolAssignment(NamedTuple):
    assigned_partitions: Sequence[TopicPartition] = ()
    user_data: bytes | None = None


_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from


def _decode_data_v0(buffer: bytes, position: int) -> ConsumerProtocolAssignment:
    end = len(buffer)
    (count,) = _unpack_i(buffer, position)
    position += 4
    if count < 0:
        raise null_field("assigned_partitions")
    if count * 6 > end - position:
        raise too_many("assigned_partitions", count, position, end)
    assigned_partitions_items: list[TopicPartition] = []
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
        assigned_partitions_items.append(new(TopicPartition, (topic, partitions)))
    assigned_partitions = tuple(assigned_partitions_items)
    (size,) = _unpack_i(buffer, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("user_data", stop - position, position, end)
        user_data = buffer[position:stop]
        position = stop
    return new(ConsumerProtocolAssignment, (assigned_partitions, user_data))


def _encode_data_v0(value: Any) -> bytearray:
    out = bytearray()
    assigned_partitions, user_data = value
    out += _pack_i(len(assigned_partitions))
    for topic, partitions in assigned_partitions:
        raw = topic.encode()
        out += _pack_h(len(raw))
        out += raw
        out += _pack_i(len(partitions))
        out += pack_int32s(partitions)
    out += _pack_i(-1 if user_data is None else len(user_data))
    out += user_data or b""
    return out


DECODE_DATA: dict[int, Callable[[bytes, int], ConsumerProtocolAssignment]] = {
    0: _decode_data_v0,
    1: _decode_data_v0,
    2: _decode_data_v0,
    3: _decode_data_v0,
}

ENCODE_DATA: dict[int, Callable[[ConsumerProtocolAssignment], bytearray]] = {
    0: _encode_data_v0,
    1: _encode_data_v0,
    2: _encode_data_v0,
    3: _encode_data_v0,
}
