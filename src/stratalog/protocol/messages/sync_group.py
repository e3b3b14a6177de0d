"""SyncGroup (key 14), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class SyncGroupRequestAssignment(NamedTuple):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(NamedTuple):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[SyncGroupRequestAssignment] = ()


class SyncGroupResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


_LAYOUT_SyncGroupRequestAssignment: Layout = (
    SyncGroupRequestAssignment,
    ("string", 0, 5, -1, -1),
    ("bytes", 0, 5, -1, -1),
)

REQUEST: Layout = (
    SyncGroupRequest,
    ("string", 0, 5, -1, -1),
    ("int32", 0, 5, -1, -1),
    ("string", 0, 5, -1, -1),
    ("string", 3, 5, 3, -1),
    ("string", 5, 5, 5, -1),
    ("string", 5, 5, 5, -1),
    ("[]struct", 0, 5, -1, -1, _LAYOUT_SyncGroupRequestAssignment),
)

RESPONSE: Layout = (
    SyncGroupResponse,
    ("int32", 1, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("string", 5, 5, 5, -1),
    ("string", 5, 5, 5, -1),
    ("bytes", 0, 5, -1, -1),
)
