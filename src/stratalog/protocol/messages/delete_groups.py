"""DeleteGroups (key 42), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DeleteGroupsRequest(NamedTuple):
    groups_names: Sequence[str] = ()


class DeletableGroupResult(NamedTuple):
    group_id: str = ""
    error_code: int = 0


class DeleteGroupsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[DeletableGroupResult] = ()


REQUEST: Layout = (
    DeleteGroupsRequest,
    ("[]string", 0, 2, -1, -1),
)

_LAYOUT_DeletableGroupResult: Layout = (
    DeletableGroupResult,
    ("string", 0, 2, -1, -1),
    ("int16", 0, 2, -1, -1),
)

RESPONSE: Layout = (
    DeleteGroupsResponse,
    ("int32", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_DeletableGroupResult),
)
