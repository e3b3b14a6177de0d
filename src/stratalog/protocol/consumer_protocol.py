"""What consumers say to each other through a group: which topics they want, and which they get.

The bytes travel in JoinGroup as a member's metadata and in SyncGroup as its assignment, for groups
whose protocol type is ``consumer``:

    version int16 | fields of that version | whatever a newer client appends

A version above the newest known is read as that one, since versions only append fields.
"""

from struct import Struct
from typing import Any, Final

from stratalog.errors import ProtocolError
from stratalog.protocol.messages import consumer_protocol_assignment as assignment
from stratalog.protocol.messages import consumer_protocol_subscription as subscription
from stratalog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from stratalog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from stratalog.records._kernels import MessageCodec

_NEWEST: Final = 3
_version = Struct(">h")

_SUBSCRIPTION: Final = "consumer subscription"
_ASSIGNMENT: Final = "consumer assignment"
_codecs: Final = {
    name: [MessageCodec(name, layout, version) for version in range(_NEWEST + 1)]
    for name, layout in (
        (_SUBSCRIPTION, subscription.DATA),
        (_ASSIGNMENT, assignment.DATA),
    )
}


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    found: ConsumerProtocolSubscription = _decode(_SUBSCRIPTION, data)
    return found


def encode_subscription(version: int, value: ConsumerProtocolSubscription) -> bytes:
    return _version.pack(version) + _codecs[_SUBSCRIPTION][version].encode(value)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    found: ConsumerProtocolAssignment = _decode(_ASSIGNMENT, data)
    return found


def encode_assignment(version: int, value: ConsumerProtocolAssignment) -> bytes:
    return _version.pack(version) + _codecs[_ASSIGNMENT][version].encode(value)


def _decode(name: str, data: bytes) -> Any:
    if len(data) < _version.size:
        raise ProtocolError(name, -1, 0, "it ends in the middle of its version")
    (version,) = _version.unpack_from(data, 0)
    if version < 0:
        raise ProtocolError(name, version, 0, "there is no such version")
    return _codecs[name][min(version, _NEWEST)].decode(data, _version.size)
