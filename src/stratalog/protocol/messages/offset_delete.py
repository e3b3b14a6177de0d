"""OffsetDelete (key 47), versions 0 to 0.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class OffsetDeleteRequestPartition(NamedTuple):
    partition_index: int = 0


class OffsetDeleteRequestTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[OffsetDeleteRequestPartition] = ()


class OffsetDeleteRequest(NamedTuple):
    group_id: str = ""
    topics: Sequence[OffsetDeleteRequestTopic] = ()


class OffsetDeleteResponsePartition(NamedTuple):
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[OffsetDeleteResponsePartition] = ()


class OffsetDeleteResponse(NamedTuple):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: Sequence[OffsetDeleteResponseTopic] = ()


_LAYOUT_OffsetDeleteRequestPartition: Layout = (
    OffsetDeleteRequestPartition,
    ("int32", 0, 0, -1, -1),
)

_LAYOUT_OffsetDeleteRequestTopic: Layout = (
    OffsetDeleteRequestTopic,
    ("string", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_OffsetDeleteRequestPartition),
)

REQUEST: Layout = (
    OffsetDeleteRequest,
    ("string", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_OffsetDeleteRequestTopic),
)

_LAYOUT_OffsetDeleteResponsePartition: Layout = (
    OffsetDeleteResponsePartition,
    ("int32", 0, 0, -1, -1),
    ("int16", 0, 0, -1, -1),
)

_LAYOUT_OffsetDeleteResponseTopic: Layout = (
    OffsetDeleteResponseTopic,
    ("string", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_OffsetDeleteResponsePartition),
)

RESPONSE: Layout = (
    OffsetDeleteResponse,
    ("int16", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_OffsetDeleteResponseTopic),
)
