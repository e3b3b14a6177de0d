"""ListConfigResources (key 74), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ListConfigResourcesRequest(NamedTuple):
    resource_types: Sequence[int] = ()


class ConfigResource(NamedTuple):
    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: Sequence[ConfigResource] = ()


REQUEST: Layout = (
    ListConfigResourcesRequest,
    ("[]int8", 1, 1, -1, -1),
)

_LAYOUT_ConfigResource: Layout = (
    ConfigResource,
    ("string", 0, 1, -1, -1),
    ("int8", 1, 1, -1, -1),
)

RESPONSE: Layout = (
    ListConfigResourcesResponse,
    ("int32", 0, 1, -1, -1),
    ("int16", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ConfigResource),
)
