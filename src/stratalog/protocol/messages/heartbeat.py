"""Heartbeat (key 12), versions 0 to 4.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import NamedTuple

from stratalog.protocol.wire import Layout


class HeartbeatRequest(NamedTuple):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


class HeartbeatResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0


REQUEST: Layout = (
    HeartbeatRequest,
    ("string", 0, 4, -1, -1),
    ("int32", 0, 4, -1, -1),
    ("string", 0, 4, -1, -1),
    ("string", 3, 4, 3, -1),
)

RESPONSE: Layout = (
    HeartbeatResponse,
    ("int32", 1, 4, -1, -1),
    ("int16", 0, 4, -1, -1),
)
