"""ListGroups (key 16), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ListGroupsRequest(NamedTuple):
    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


class ListedGroup(NamedTuple):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: Sequence[ListedGroup] = ()


REQUEST: Layout = (
    ListGroupsRequest,
    ("[]string", 4, 5, -1, -1),
    ("[]string", 5, 5, -1, -1),
)

_LAYOUT_ListedGroup: Layout = (
    ListedGroup,
    ("string", 0, 5, -1, -1),
    ("string", 0, 5, -1, -1),
    ("string", 4, 5, -1, -1),
    ("string", 5, 5, -1, -1),
)

RESPONSE: Layout = (
    ListGroupsResponse,
    ("int32", 1, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("[]struct", 0, 5, -1, -1, _LAYOUT_ListedGroup),
)
