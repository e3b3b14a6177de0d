"""DescribeAcls (key 29), versions 1 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DescribeAclsRequest(NamedTuple):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class AclDescription(NamedTuple):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DescribeAclsResource(NamedTuple):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: Sequence[AclDescription] = ()


class DescribeAclsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: Sequence[DescribeAclsResource] = ()


REQUEST: Layout = (
    DescribeAclsRequest,
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("string", 1, 3, 1, -1),
    ("int8", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
)

_LAYOUT_AclDescription: Layout = (
    AclDescription,
    ("string", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
)

_LAYOUT_DescribeAclsResource: Layout = (
    DescribeAclsResource,
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
    ("[]struct", 1, 3, -1, -1, _LAYOUT_AclDescription),
)

RESPONSE: Layout = (
    DescribeAclsResponse,
    ("int32", 1, 3, -1, -1),
    ("int16", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("[]struct", 1, 3, -1, -1, _LAYOUT_DescribeAclsResource),
)
