"""What a group keeps in ``__consumer_offsets``, as bytes: Kafka's records, written as it does.

A key says what a record is about, and a value of None that there is no such thing any more.

    key 0, 1   i16 type | string group | string topic | i32 partition      a committed offset
    key 2      i16 type | string group                                     a group and its members

    offset, version 4  i16 4 | i64 offset | i32 leader epoch | compact string metadata
                       | i64 commit timestamp | tags: 0 = uuid topic id
    offset, version 1  i16 1 | i64 offset | string metadata | i64 commit timestamp
                       | i64 expire timestamp                              an explicit retention
    group, version 3   i16 3 | string protocol type | i32 generation | nullable string protocol
                       | nullable string leader | i64 time of the current state | members

All versions that were ever written are read. A string has an i16 for its length, bytes an i32.
Offsets are many and have codecs of their own; groups are few and are read by their schema.
"""

import base64
from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

from stratalog.errors import CorruptBatchError, RecordTooLargeError

OFFSET_TYPES: Final = (0, 1)
GROUP_TYPE: Final = 2

NO_TOPIC_ID: Final = bytes(16)
NO_LEADER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1

_OFFSET_TYPE = 1
_OFFSET_VERSION = 4
_OFFSET_VERSION_WITH_EXPIRY = 1
_GROUP_VERSION = 3
_STRING_BYTES_MAX = 0x7FFF

_pack_short = Struct(">h").pack
_pack_int = Struct(">i").pack
_short = Struct(">h")
_int = Struct(">i")
_offset_head = Struct(">hq")
_offset_and_epoch = Struct(">hqi")
_timestamp = Struct(">q")
_plain_offset = Struct(">hqiBq3x16s")
_TOPIC_ID_TAG = b"\x01\x00\x10"  # one tag, number 0, of 16 bytes
_TAGS_AT = 23
_timestamps = Struct(">qq")
_group_state = Struct(">qi")


class OffsetKey(NamedTuple):
    group_id: str
    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """Where a group will go on reading a partition."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: bytes = NO_TOPIC_ID


class StoredMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(NamedTuple):
    """A generation as it is kept: empty if nobody is in it."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: Sequence[StoredMember]


# --- writing -------------------------------------------------------------------------------------


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return b"".join(
        (_pack_short(_OFFSET_TYPE), _string(group_id), _string(topic), _pack_int(partition))
    )


def group_key(group_id: str) -> bytes:
    return _pack_short(GROUP_TYPE) + _string(group_id)


def offset_value(committed: CommittedOffset) -> bytes:
    offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id = committed
    if expire_ms != NO_TIMESTAMP:
        head = _offset_head.pack(_OFFSET_VERSION_WITH_EXPIRY, offset)
        return head + _string(metadata) + _timestamps.pack(commit_ms, expire_ms)
    text = metadata.encode()
    return b"".join(
        (
            _offset_and_epoch.pack(_OFFSET_VERSION, offset, leader_epoch),
            _unsigned(len(text) + 1),
            text,
            _timestamp.pack(commit_ms),
            b"\0" if topic_id == NO_TOPIC_ID else _TOPIC_ID_TAG + topic_id,
        )
    )


def group_value(group: StoredGroup) -> bytes:
    parts = [
        _pack_short(_GROUP_VERSION),
        _string(group.protocol_type),
        _pack_int(group.generation_id),
        _nullable(group.protocol_name),
        _nullable(group.leader_id),
        _group_state.pack(group.state_timestamp_ms, len(group.members)),
    ]
    for member in group.members:
        parts += (
            _string(member.member_id),
            _nullable(member.group_instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _pack_int(member.rebalance_timeout_ms),
            _pack_int(member.session_timeout_ms),
            _pack_int(len(member.subscription)),
            member.subscription,
            _pack_int(len(member.assignment)),
            member.assignment,
        )
    return b"".join(parts)


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > _STRING_BYTES_MAX:
        raise RecordTooLargeError("a string of a group's record", len(data), _STRING_BYTES_MAX)
    return _pack_short(len(data)) + data


def _nullable(text: str | None) -> bytes:
    return _pack_short(-1) if text is None else _string(text)


def _unsigned(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


# --- reading -------------------------------------------------------------------------------------


def record_type(key: bytes) -> int:
    if len(key) < _short.size:
        raise CorruptBatchError(f"a key of {len(key)} bytes has no type")
    return int(_short.unpack_from(key)[0])


def read_offset_key(key: bytes) -> OffsetKey:
    try:
        group_id, at = _take_string(key, 2)
        topic, at = _take_string(key, at)
        (partition,) = _int.unpack_from(key, at)
    except StructError as error:
        raise CorruptBatchError("the key of an offset ends too early") from error
    if at + _int.size != len(key):
        raise CorruptBatchError("the key of an offset goes on after its partition")
    return OffsetKey(group_id, topic, partition)


def read_group_key(key: bytes) -> str:
    try:
        return _take_string(key, 2)[0]
    except StructError as error:
        raise CorruptBatchError("the key of a group ends too early") from error


def read_offset_value(value: bytes) -> CommittedOffset:
    try:
        version, offset = _offset_head.unpack_from(value)
        if not 0 <= version <= _OFFSET_VERSION:
            raise CorruptBatchError(f"there is no version {version} of an offset")
        if version == _OFFSET_VERSION:
            return _read_newest_offset(value)
        at, leader_epoch, expire_ms = _offset_head.size, NO_LEADER_EPOCH, NO_TIMESTAMP
        if version >= 3:
            leader_epoch, at = _int.unpack_from(value, at)[0], at + _int.size
        metadata, at = _take_string(value, at)
        (commit_ms,) = _timestamp.unpack_from(value, at)
        if version == _OFFSET_VERSION_WITH_EXPIRY:
            commit_ms, expire_ms = _timestamps.unpack_from(value, at)
        return CommittedOffset(offset, leader_epoch, metadata, commit_ms, expire_ms)
    except (StructError, IndexError) as error:
        raise CorruptBatchError("the value of an offset ends too early") from error


def _read_newest_offset(value: bytes) -> CommittedOffset:
    if len(value) == _plain_offset.size and value[_TAGS_AT : _TAGS_AT + 3] == _TOPIC_ID_TAG:
        # As nearly all of them are: without metadata, and with the id of the topic.
        _, offset, leader_epoch, size, commit_ms, topic_id = _plain_offset.unpack(value)
        if size == 1:
            return CommittedOffset(offset, leader_epoch, "", commit_ms, NO_TIMESTAMP, topic_id)
    _, offset, leader_epoch = _offset_and_epoch.unpack_from(value)
    size, at = _take_unsigned(value, _offset_and_epoch.size)
    if size == 0:
        raise CorruptBatchError("the metadata of an offset is null")
    metadata, at = _take_text(value, at, size - 1)
    (commit_ms,) = _timestamp.unpack_from(value, at)
    topic_id = NO_TOPIC_ID
    at += _timestamp.size
    count, at = _take_unsigned(value, at)
    for _ in range(count):
        tag, at = _take_unsigned(value, at)
        size, at = _take_unsigned(value, at)
        if at + size > len(value):
            raise CorruptBatchError(f"a tag of {size} bytes where {len(value) - at} are left")
        if tag == 0 and size == len(NO_TOPIC_ID):
            topic_id = value[at : at + size]
        at += size
    return CommittedOffset(offset, leader_epoch, metadata, commit_ms, topic_id=topic_id)


def read_group_value(value: bytes) -> StoredGroup:
    # Here, since few processes ever read a group, and the schemas of all types come with it.
    from stratalog.coordinator.record_schemas import GROUP_METADATA_TYPE, GROUP_VALUES
    from stratalog.records.messages import decode_message

    schema = GROUP_VALUES[GROUP_METADATA_TYPE]
    version = record_type(value)
    if not 0 <= version <= schema.last_version:
        raise CorruptBatchError(f"there is no version {version} of a group")
    fields = decode_message(schema, value, _short.size, version)
    return StoredGroup(
        fields["protocolType"],
        fields["generation"],
        fields["protocol"],
        fields["leader"],
        fields.get("currentStateTimestamp", NO_TIMESTAMP),
        [_stored_member(member) for member in fields["members"]],
    )


def _stored_member(fields: dict[str, Any]) -> StoredMember:
    rebalance_timeout_ms = fields.get("rebalanceTimeout", -1)
    if rebalance_timeout_ms == -1:
        rebalance_timeout_ms = fields["sessionTimeout"]
    return StoredMember(
        fields["memberId"],
        fields.get("groupInstanceId"),
        fields["clientId"],
        fields["clientHost"],
        rebalance_timeout_ms,
        fields["sessionTimeout"],
        base64.b64decode(fields["subscription"]),
        base64.b64decode(fields["assignment"]),
    )


def _take_string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _short.unpack_from(data, at)
    return _take_text(data, at + _short.size, size)


def _take_text(data: bytes, at: int, size: int) -> tuple[str, int]:
    end = at + size
    if size < 0 or end > len(data):
        raise CorruptBatchError(f"a string of {size} bytes where {len(data) - at} are left")
    return data[at:end].decode(errors="replace"), end


def _take_unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise CorruptBatchError("a number of more than five bytes")


def chunks_of_records(
    records: Iterable[tuple[bytes, bytes | None]], limit_bytes: int
) -> Iterable[list[tuple[bytes, bytes | None]]]:
    """The same records in lists of about ``limit_bytes`` at most."""
    chunk: list[tuple[bytes, bytes | None]] = []
    size_bytes = 0
    for key, value in records:
        chunk.append((key, value))
        size_bytes += len(key) + len(value or b"") + 32
        if size_bytes >= limit_bytes:
            yield chunk
            chunk, size_bytes = [], 0
    if chunk:
        yield chunk
