"""DescribeGroups (key 15), versions 0 to 6.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DescribeGroupsRequest(NamedTuple):
    groups: Sequence[str] = ()
    include_authorized_operations: bool = False


class DescribedGroupMember(NamedTuple):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: int = -2147483648


class DescribeGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


REQUEST: Layout = (
    DescribeGroupsRequest,
    ("[]string", 0, 6, -1, -1),
    ("bool", 3, 6, -1, -1),
)

_LAYOUT_DescribedGroupMember: Layout = (
    DescribedGroupMember,
    ("string", 0, 6, -1, -1),
    ("string", 4, 6, 4, -1),
    ("string", 0, 6, -1, -1),
    ("string", 0, 6, -1, -1),
    ("bytes", 0, 6, -1, -1),
    ("bytes", 0, 6, -1, -1),
)

_LAYOUT_DescribedGroup: Layout = (
    DescribedGroup,
    ("int16", 0, 6, -1, -1),
    ("string", 6, 6, 6, -1),
    ("string", 0, 6, -1, -1),
    ("string", 0, 6, -1, -1),
    ("string", 0, 6, -1, -1),
    ("string", 0, 6, -1, -1),
    ("[]struct", 0, 6, -1, -1, _LAYOUT_DescribedGroupMember),
    ("int32", 3, 6, -1, -1),
)

RESPONSE: Layout = (
    DescribeGroupsResponse,
    ("int32", 1, 6, -1, -1),
    ("[]struct", 0, 6, -1, -1, _LAYOUT_DescribedGroup),
)
