"""JoinGroup (key 11), versions 0 to 9.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class JoinGroupRequestProtocol(NamedTuple):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(NamedTuple):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()
    reason: str | None = None


class JoinGroupResponseMember(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()


_LAYOUT_JoinGroupRequestProtocol: Layout = (
    JoinGroupRequestProtocol,
    ("string", 0, 9, -1, -1),
    ("bytes", 0, 9, -1, -1),
)

REQUEST: Layout = (
    JoinGroupRequest,
    ("string", 0, 9, -1, -1),
    ("int32", 0, 9, -1, -1),
    ("int32", 1, 9, -1, -1),
    ("string", 0, 9, -1, -1),
    ("string", 5, 9, 5, -1),
    ("string", 0, 9, -1, -1),
    ("[]struct", 0, 9, -1, -1, _LAYOUT_JoinGroupRequestProtocol),
    ("string", 8, 9, 8, -1),
)

_LAYOUT_JoinGroupResponseMember: Layout = (
    JoinGroupResponseMember,
    ("string", 0, 9, -1, -1),
    ("string", 5, 9, 5, -1),
    ("bytes", 0, 9, -1, -1),
)

RESPONSE: Layout = (
    JoinGroupResponse,
    ("int32", 2, 9, -1, -1),
    ("int16", 0, 9, -1, -1),
    ("int32", 0, 9, -1, -1),
    ("string", 7, 9, 7, -1),
    ("string", 0, 9, 7, -1),
    ("string", 0, 9, -1, -1),
    ("bool", 9, 9, -1, -1),
    ("string", 0, 9, -1, -1),
    ("[]struct", 0, 9, -1, -1, _LAYOUT_JoinGroupResponseMember),
)
