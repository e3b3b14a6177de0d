"""FindCoordinator (key 10), versions 0 to 6.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class FindCoordinatorRequest(NamedTuple):
    key: str = ""
    key_type: int = 0
    coordinator_keys: Sequence[str] = ()


class Coordinator(NamedTuple):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


class FindCoordinatorResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: Sequence[Coordinator] = ()


REQUEST: Layout = (
    FindCoordinatorRequest,
    ("string", 0, 3, -1, -1),
    ("int8", 1, 6, -1, -1),
    ("[]string", 4, 6, -1, -1),
)

_LAYOUT_Coordinator: Layout = (
    Coordinator,
    ("string", 4, 6, -1, -1),
    ("int32", 4, 6, -1, -1),
    ("string", 4, 6, -1, -1),
    ("int32", 4, 6, -1, -1),
    ("int16", 4, 6, -1, -1),
    ("string", 4, 6, 4, -1),
)

RESPONSE: Layout = (
    FindCoordinatorResponse,
    ("int32", 1, 6, -1, -1),
    ("int16", 0, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("int32", 0, 3, -1, -1),
    ("string", 0, 3, -1, -1),
    ("int32", 0, 3, -1, -1),
    ("[]struct", 4, 6, -1, -1, _LAYOUT_Coordinator),
)
