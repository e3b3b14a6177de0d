"""Records of Kafka's internal topics and of its metadata log: bytes to what its JSON shows.

A message is a struct of fields in a fixed order. A *flexible* version has compact lengths
(unsigned varint of length + 1) and ends every struct with tagged fields: a count, then tag, size
and bytes of each; a tagged field at its default is neither written nor shown. The field lists are
facts of the release named in the interop pom.
"""

import base64
from dataclasses import dataclass
from struct import Struct
from typing import Any

from stratalog.errors import CorruptBatchError

_EVERY_VERSION = 1 << 15
_NUMBERS = {
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: "str | Array | Message"
    since: int = 0
    until: int = _EVERY_VERSION
    nullable: bool = False
    tag: int | None = None
    default: Any = None


@dataclass(frozen=True, slots=True)
class Array:
    item: "str | Message"


@dataclass(frozen=True, slots=True)
class Message:
    """``flexible_since`` counts for a whole message; structs inside one follow it."""

    fields: tuple[Field, ...]
    last_version: int = 0
    flexible_since: int = _EVERY_VERSION


def decode_message(message: Message, data: bytes, at: int, version: int) -> dict[str, Any]:
    """The fields by name, as Kafka's JSON has them; ``CorruptBatchError`` if they do not fit."""
    reader = _Reader(data, at, version, is_flexible=version >= message.flexible_since)
    return reader.struct(message)


class _Reader:
    def __init__(self, data: bytes, at: int, version: int, *, is_flexible: bool) -> None:
        self._data = data
        self._at = at
        self._version = version
        self._is_flexible = is_flexible

    def struct(self, message: Message) -> dict[str, Any]:
        present = [f for f in message.fields if f.since <= self._version <= f.until]
        values = {f.name: self._value(f.kind, f.name) for f in present if f.tag is None}
        if self._is_flexible:
            values |= self._tagged({f.tag: f for f in present if f.tag is not None})
        return {f.name: values[f.name] for f in present if f.name in values}

    def _tagged(self, known: dict[int | None, Field]) -> dict[str, Any]:
        values = {}
        for _ in range(self._unsigned()):
            tag, size = self._unsigned(), self._unsigned()
            end = self._at + size
            found = known.get(tag)
            if found is not None:
                if isinstance(found.kind, Message):
                    self._at += 1  # says that the struct is there; it is, or it had no tag
                value = self._value(found.kind, found.name)
                if value != found.default:
                    values[found.name] = value
            self._at = end
        return values

    def _value(self, kind: "str | Array | Message", name: str) -> Any:
        if isinstance(kind, Message):
            return self.struct(kind)
        if isinstance(kind, Array):
            count = self._length(4)
            if count is None:
                return None
            self._check(count, name)  # no item has fewer bytes than one
            return [self._value(kind.item, name) for _ in range(count)]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == "uuid":
            return base64.urlsafe_b64encode(self._take(16, name)).rstrip(b"=").decode()
        size = self._length(2 if kind == "string" else 4)
        if size is None:
            return None
        data = self._take(size, name)
        return data.decode() if kind == "string" else base64.b64encode(data).decode()

    def _length(self, width: int) -> int | None:
        if self._is_flexible:
            size = self._unsigned() - 1
        else:
            size = self._number(_NUMBERS["int16" if width == 2 else "int32"])
        return None if size < 0 else size

    def _number(self, layout: Struct) -> int:
        (value,) = layout.unpack(self._take(layout.size, "a number"))
        return int(value)

    def _unsigned(self) -> int:
        value = shift = 0
        while shift < 35:
            byte = self._take(1, "a number")[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise CorruptBatchError("a number has more than 5 bytes")

    def _check(self, size: int, name: str) -> None:
        left = len(self._data) - self._at
        if size > left:
            raise CorruptBatchError(f"{name} needs {size} bytes, but there are only {left}")

    def _take(self, size: int, name: str) -> bytes:
        self._check(size, name)
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]


# --- __transaction_state -----------------------------------------------------------------------

_TRANSACTION_PARTITIONS = Message((Field("topic", "string"), Field("partitionIds", Array("int32"))))

TRANSACTION_KEYS = {0: Message((Field("transactionalId", "string"),))}
TRANSACTION_VALUES = {
    0: Message(
        (
            Field("producerId", "int64"),
            Field("previousProducerId", "int64", since=1, tag=0, default=-1),
            Field("nextProducerId", "int64", since=1, tag=1, default=-1),
            Field("producerEpoch", "int16"),
            Field("nextProducerEpoch", "int16", since=1, tag=3, default=-1),
            Field("transactionTimeoutMs", "int32"),
            Field("transactionStatus", "int8"),
            Field("transactionPartitions", Array(_TRANSACTION_PARTITIONS), nullable=True),
            Field("transactionLastUpdateTimestampMs", "int64"),
            Field("transactionStartTimestampMs", "int64"),
            Field("clientTransactionVersion", "int16", since=1, tag=2, default=0),
        ),
        last_version=1,
        flexible_since=1,
    )
}

# --- __consumer_offsets --------------------------------------------------------------------------

GROUP_METADATA_TYPE = 2

_OFFSET_KEY = Message(
    (Field("group", "string"), Field("topic", "string"), Field("partition", "int32"))
)
_GROUP_KEY = Message((Field("groupId", "string"),))
_MEMBER_KEY = Message((Field("groupId", "string"), Field("memberId", "string")))
_MEMBER = Message(
    (
        Field("memberId", "string"),
        Field("groupInstanceId", "string", since=3, nullable=True),
        Field("clientId", "string"),
        Field("clientHost", "string"),
        Field("rebalanceTimeout", "int32", since=1),
        Field("sessionTimeout", "int32"),
        Field("subscription", "bytes"),
        Field("assignment", "bytes"),
    )
)
_CLASSIC_PROTOCOL = Message((Field("name", "string"), Field("metadata", "bytes")))
_CLASSIC_MEMBER = Message(
    (Field("sessionTimeoutMs", "int32"), Field("supportedProtocols", Array(_CLASSIC_PROTOCOL)))
)
_ASSIGNED = Message((Field("topicId", "uuid"), Field("partitions", Array("int32"))))
_CURRENT = Message(
    (*_ASSIGNED.fields, Field("assignmentEpochs", Array("int32"), nullable=True, tag=0))
)
_TOPIC_METADATA = Message(
    (
        Field("topicId", "uuid"),
        Field("topicName", "string"),
        Field("numPartitions", "int32"),
        Field(
            "partitionMetadata",
            Array(Message((Field("partition", "int32"), Field("racks", Array("string"))))),
        ),
    )
)

GROUP_KEYS = {
    0: _OFFSET_KEY,
    1: _OFFSET_KEY,
    2: Message((Field("group", "string"),)),
    3: _GROUP_KEY,
    4: _GROUP_KEY,
    5: _MEMBER_KEY,
    6: _GROUP_KEY,
    7: _MEMBER_KEY,
    8: _MEMBER_KEY,
    16: Message((Field("groupId", "string"), Field("regularExpression", "string"))),
}
GROUP_VALUES = {
    0: Message(
        (Field("offset", "int64"), Field("metadata", "string"), Field("commitTimestamp", "int64"))
    ),
    1: Message(
        (
            Field("offset", "int64"),
            Field("leaderEpoch", "int32", since=3),
            Field("metadata", "string"),
            Field("commitTimestamp", "int64"),
            Field("expireTimestamp", "int64", since=1, until=1),
            Field("topicId", "uuid", since=4, tag=0, default="AAAAAAAAAAAAAAAAAAAAAA"),
        ),
        last_version=4,
        flexible_since=4,
    ),
    GROUP_METADATA_TYPE: Message(
        (
            Field("protocolType", "string"),
            Field("generation", "int32"),
            Field("protocol", "string", nullable=True),
            Field("leader", "string", nullable=True),
            Field("currentStateTimestamp", "int64", since=2),
            Field("members", Array(_MEMBER)),
        ),
        last_version=4,
        flexible_since=4,
    ),
    3: Message(
        (Field("epoch", "int32"), Field("metadataHash", "int64", tag=0, default=0)),
        flexible_since=0,
    ),
    4: Message((Field("topics", Array(_TOPIC_METADATA)),), flexible_since=0),
    5: Message(
        (
            Field("instanceId", "string", nullable=True),
            Field("rackId", "string", nullable=True),
            Field("clientId", "string"),
            Field("clientHost", "string"),
            Field("subscribedTopicNames", Array("string")),
            Field("subscribedTopicRegex", "string", nullable=True),
            Field("rebalanceTimeoutMs", "int32"),
            Field("serverAssignor", "string", nullable=True),
            Field("classicMemberMetadata", _CLASSIC_MEMBER, nullable=True, tag=0),
        ),
        flexible_since=0,
    ),
    6: Message(
        (
            Field("assignmentEpoch", "int32"),
            Field("assignmentTimestamp", "int64", tag=0, default=0),
        ),
        flexible_since=0,
    ),
    7: Message((Field("topicPartitions", Array(_ASSIGNED)),), flexible_since=0),
    8: Message(
        (
            Field("memberEpoch", "int32"),
            Field("previousMemberEpoch", "int32"),
            Field("state", "int8"),
            Field("assignedPartitions", Array(_CURRENT)),
            Field("partitionsPendingRevocation", Array(_CURRENT)),
        ),
        flexible_since=0,
    ),
    16: Message(
        (Field("topics", Array("string")), Field("version", "int64"), Field("timestamp", "int64")),
        flexible_since=0,
    ),
}

_OWNED = Message((Field("topic", "string"), Field("partitions", Array("int32"))))

CONSUMER_SUBSCRIPTION = Message(
    (
        Field("topics", Array("string")),
        Field("userData", "bytes", nullable=True),
        Field("ownedPartitions", Array(_OWNED), since=1),
        Field("generationId", "int32", since=2),
        Field("rackId", "string", since=3, nullable=True),
    ),
    last_version=3,
)
CONSUMER_ASSIGNMENT = Message(
    (Field("assignedPartitions", Array(_OWNED)), Field("userData", "bytes", nullable=True)),
    last_version=3,
)

# --- control records of the metadata log ---------------------------------------------------------

_VOTER = Message((Field("voterId", "int32"), Field("voterDirectoryId", "uuid", since=1)))
_ENDPOINT = Message((Field("name", "string"), Field("host", "string"), Field("port", "uint16")))
_VERSIONS = Message((Field("minSupportedVersion", "int16"), Field("maxSupportedVersion", "int16")))
_FULL_VOTER = Message(
    (
        Field("voterId", "int32"),
        Field("voterDirectoryId", "uuid"),
        Field("endpoints", Array(_ENDPOINT)),
        Field("kRaftVersionFeature", _VERSIONS),
    )
)

# By control type: how Kafka introduces the record, and what it holds.
QUORUM_RECORDS = {
    2: (
        "LeaderChange: ",
        Message(
            (
                Field("version", "int16"),
                Field("leaderId", "int32"),
                Field("voters", Array(_VOTER)),
                Field("grantingVoters", Array(_VOTER)),
            ),
            last_version=1,
            flexible_since=0,
        ),
    ),
    3: (
        "SnapshotHeader ",
        Message(
            (Field("version", "int16"), Field("lastContainedLogTimestamp", "int64")),
            flexible_since=0,
        ),
    ),
    4: ("SnapshotFooter ", Message((Field("version", "int16"),), flexible_since=0)),
    5: (
        "KRaftVersion ",
        Message((Field("version", "int16"), Field("kRaftVersion", "int16")), flexible_since=0),
    ),
    6: (
        "KRaftVoters ",
        Message((Field("version", "int16"), Field("voters", Array(_FULL_VOTER))), flexible_since=0),
    ),
}
