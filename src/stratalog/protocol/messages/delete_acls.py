"""DeleteAcls (key 31), versions 1 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DeleteAclsFilter(NamedTuple):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequest(NamedTuple):
    filters: Sequence[DeleteAclsFilter] = ()


class DeleteAclsMatchingAcl(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: Sequence[DeleteAclsMatchingAcl] = ()


class DeleteAclsResponse(NamedTuple):
    throttle_time_ms: int = 0
    filter_results: Sequence[DeleteAclsFilterResult] = ()


_LAYOUT_DeleteAclsFilter: Layout = (
    DeleteAclsFilter,
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("string", 1, 3, 1, -1),
    ("int8", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
)

REQUEST: Layout = (
    DeleteAclsRequest,
    ("[]struct", 1, 3, -1, -1, _LAYOUT_DeleteAclsFilter),
)

_LAYOUT_DeleteAclsMatchingAcl: Layout = (
    DeleteAclsMatchingAcl,
    ("int16", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("string", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
    ("int8", 1, 3, -1, -1),
)

_LAYOUT_DeleteAclsFilterResult: Layout = (
    DeleteAclsFilterResult,
    ("int16", 1, 3, -1, -1),
    ("string", 1, 3, 1, -1),
    ("[]struct", 1, 3, -1, -1, _LAYOUT_DeleteAclsMatchingAcl),
)

RESPONSE: Layout = (
    DeleteAclsResponse,
    ("int32", 1, 3, -1, -1),
    ("[]struct", 1, 3, -1, -1, _LAYOUT_DeleteAclsFilterResult),
)
