"""DescribeConfigs (key 32), versions 1 to 4.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DescribeConfigsResource(NamedTuple):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = ()


class DescribeConfigsRequest(NamedTuple):
    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(NamedTuple):
    name: str = ""
    value: str | None = ""
    source: int = 0


class DescribeConfigsResourceResult(NamedTuple):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: int = 0
    documentation: str | None = ""


class DescribeConfigsResult(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[DescribeConfigsResult] = ()


_LAYOUT_DescribeConfigsResource: Layout = (
    DescribeConfigsResource,
    ("int8", 1, 4, -1, -1),
    ("string", 1, 4, -1, -1),
    ("[]string", 1, 4, 1, -1),
)

REQUEST: Layout = (
    DescribeConfigsRequest,
    ("[]struct", 1, 4, -1, -1, _LAYOUT_DescribeConfigsResource),
    ("bool", 1, 4, -1, -1),
    ("bool", 3, 4, -1, -1),
)

_LAYOUT_DescribeConfigsSynonym: Layout = (
    DescribeConfigsSynonym,
    ("string", 1, 4, -1, -1),
    ("string", 1, 4, 1, -1),
    ("int8", 1, 4, -1, -1),
)

_LAYOUT_DescribeConfigsResourceResult: Layout = (
    DescribeConfigsResourceResult,
    ("string", 1, 4, -1, -1),
    ("string", 1, 4, 1, -1),
    ("bool", 1, 4, -1, -1),
    ("int8", 1, 4, -1, -1),
    ("bool", 1, 4, -1, -1),
    ("[]struct", 1, 4, -1, -1, _LAYOUT_DescribeConfigsSynonym),
    ("int8", 3, 4, -1, -1),
    ("string", 3, 4, 3, -1),
)

_LAYOUT_DescribeConfigsResult: Layout = (
    DescribeConfigsResult,
    ("int16", 1, 4, -1, -1),
    ("string", 1, 4, 1, -1),
    ("int8", 1, 4, -1, -1),
    ("string", 1, 4, -1, -1),
    ("[]struct", 1, 4, -1, -1, _LAYOUT_DescribeConfigsResourceResult),
)

RESPONSE: Layout = (
    DescribeConfigsResponse,
    ("int32", 1, 4, -1, -1),
    ("[]struct", 1, 4, -1, -1, _LAYOUT_DescribeConfigsResult),
)
