"""ApiVersions (key 18), versions 0 to 4.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ApiVersionsRequest(NamedTuple):
    client_software_name: str = ""
    client_software_version: str = ""


class ApiVersion(NamedTuple):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(NamedTuple):
    name: str = ""
    min_version: int = 0
    max_version: int = 0


class FinalizedFeatureKey(NamedTuple):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class ApiVersionsResponse(NamedTuple):
    error_code: int = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: int = 0
    supported_features: Sequence[SupportedFeatureKey] = ()
    finalized_features_epoch: int = -1
    finalized_features: Sequence[FinalizedFeatureKey] = ()
    zk_migration_ready: bool = False


REQUEST: Layout = (
    ApiVersionsRequest,
    ("string", 3, 4, -1, -1),
    ("string", 3, 4, -1, -1),
)

_LAYOUT_ApiVersion: Layout = (
    ApiVersion,
    ("int16", 0, 4, -1, -1),
    ("int16", 0, 4, -1, -1),
    ("int16", 0, 4, -1, -1),
)

_LAYOUT_SupportedFeatureKey: Layout = (
    SupportedFeatureKey,
    ("string", 3, 4, -1, -1),
    ("int16", 3, 4, -1, -1),
    ("int16", 3, 4, -1, -1),
)

_LAYOUT_FinalizedFeatureKey: Layout = (
    FinalizedFeatureKey,
    ("string", 3, 4, -1, -1),
    ("int16", 3, 4, -1, -1),
    ("int16", 3, 4, -1, -1),
)

RESPONSE: Layout = (
    ApiVersionsResponse,
    ("int16", 0, 4, -1, -1),
    ("[]struct", 0, 4, -1, -1, _LAYOUT_ApiVersion),
    ("int32", 1, 4, -1, -1),
    ("[]struct", 3, 4, -1, 0, _LAYOUT_SupportedFeatureKey),
    ("int64", 3, 4, -1, 1),
    ("[]struct", 3, 4, -1, 2, _LAYOUT_FinalizedFeatureKey),
    ("bool", 3, 4, -1, 3),
)
