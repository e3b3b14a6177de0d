"""CreateAcls (key 30), versions 1 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class AclCreation(NamedTuple):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequest(NamedTuple):
    creations: Sequence[AclCreation] = ()


class AclCreationResult(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""


class CreateAclsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[AclCreationResult] = ()


_LAYOUT_AclCreation: Layout = (
    AclCreation,
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
)

REQUEST: Layout = (
    CreateAclsRequest,
    ("[]struct", 1, 3, -1, -1, _LAYOUT_AclCreation),
)

_LAYOUT_AclCreationResult: Layout = (
    AclCreationResult,
    ("int16", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
)

RESPONSE: Layout = (
    CreateAclsResponse,
    ("int32", 1, 3, -1, -1),
    ("[]struct", 1, 3, -1, -1, _LAYOUT_AclCreationResult),
)
