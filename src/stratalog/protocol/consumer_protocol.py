"""What consumers say to each other through a group: which topics they want, and which they get.

The bytes travel in JoinGroup as a member's metadata and in SyncGroup as its assignment, for groups
whose protocol type is ``consumer``:

    version int16 | fields of that version | whatever a newer client appends

A version above the newest known is read as that one, since versions only append fields.
"""

from struct import Struct
from struct import error as StructError
from typing import Any

from stratalog.errors import ProtocolError
from stratalog.protocol.messages import consumer_protocol_assignment as assignment
from stratalog.protocol.messages import consumer_protocol_subscription as subscription
from stratalog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from stratalog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from stratalog.protocol.wire import Malformed

_version = Struct(">h")


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    found: ConsumerProtocolSubscription
    found = _decode(subscription.DECODE_DATA, "consumer subscription", data)
    return found


def encode_subscription(version: int, value: ConsumerProtocolSubscription) -> bytes:
    return _version.pack(version) + subscription.ENCODE_DATA[version](value)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    found: ConsumerProtocolAssignment
    found = _decode(assignment.DECODE_DATA, "consumer assignment", data)
    return found


def encode_assignment(version: int, value: ConsumerProtocolAssignment) -> bytes:
    return _version.pack(version) + assignment.ENCODE_DATA[version](value)


def _decode(decoders: dict[int, Any], name: str, data: bytes) -> Any:
    version = -1
    try:
        (version,) = _version.unpack_from(data, 0)
        if version < 0:
            raise ProtocolError(name, version, 0, "there is no such version")
        return decoders[min(version, max(decoders))](bytes(data), _version.size)
    except (Malformed, StructError, IndexError) as error:
        reason = str(error) if isinstance(error, Malformed) else "it ends in the middle"
        raise ProtocolError(name, version, -1, reason) from None
