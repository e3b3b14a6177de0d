"""LeaveGroup (key 13), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class MemberIdentity(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(NamedTuple):
    group_id: str = ""
    member_id: str = ""
    members: Sequence[MemberIdentity] = ()


class MemberResponse(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


class LeaveGroupResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: Sequence[MemberResponse] = ()


_LAYOUT_MemberIdentity: Layout = (
    MemberIdentity,
    ("string", 3, 5, -1, -1),
    ("string", 3, 5, 3, -1),
    ("string", 5, 5, 5, -1),
)

REQUEST: Layout = (
    LeaveGroupRequest,
    ("string", 0, 5, -1, -1),
    ("string", 0, 2, -1, -1),
    ("[]struct", 3, 5, -1, -1, _LAYOUT_MemberIdentity),
)

_LAYOUT_MemberResponse: Layout = (
    MemberResponse,
    ("string", 3, 5, -1, -1),
    ("string", 3, 5, 3, -1),
    ("int16", 3, 5, -1, -1),
)

RESPONSE: Layout = (
    LeaveGroupResponse,
    ("int32", 1, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("[]struct", 3, 5, -1, -1, _LAYOUT_MemberResponse),
)
