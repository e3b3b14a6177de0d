"""IncrementalAlterConfigs (key 44), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class AlterableConfig(NamedTuple):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""


class AlterConfigsResource(NamedTuple):
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class IncrementalAlterConfigsRequest(NamedTuple):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponse(NamedTuple):
    throttle_time_ms: int = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()


_LAYOUT_AlterableConfig: Layout = (
    AlterableConfig,
    ("string", 0, 1, -1, -1),
    ("int8", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
)

_LAYOUT_AlterConfigsResource: Layout = (
    AlterConfigsResource,
    ("int8", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_AlterableConfig),
)

REQUEST: Layout = (
    IncrementalAlterConfigsRequest,
    ("[]struct", 0, 1, -1, -1, _LAYOUT_AlterConfigsResource),
    ("bool", 0, 1, -1, -1),
)

_LAYOUT_AlterConfigsResourceResponse: Layout = (
    AlterConfigsResourceResponse,
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("int8", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
)

RESPONSE: Layout = (
    IncrementalAlterConfigsResponse,
    ("int32", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_AlterConfigsResourceResponse),
)
