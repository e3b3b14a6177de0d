"""AlterPartitionReassignments (key 45), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ReassignablePartition(NamedTuple):
    partition_index: int = 0
    replicas: Sequence[int] | None = None


class ReassignableTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[ReassignablePartition] = ()


class AlterPartitionReassignmentsRequest(NamedTuple):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: Sequence[ReassignableTopic] = ()


class ReassignablePartitionResponse(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReassignableTopicResponse(NamedTuple):
    name: str = ""
    partitions: Sequence[ReassignablePartitionResponse] = ()


class AlterPartitionReassignmentsResponse(NamedTuple):
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: Sequence[ReassignableTopicResponse] = ()


_LAYOUT_ReassignablePartition: Layout = (
    ReassignablePartition,
    ("int32", 0, 1, -1, -1),
    ("[]int32", 0, 1, 0, -1),
)

_LAYOUT_ReassignableTopic: Layout = (
    ReassignableTopic,
    ("string", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ReassignablePartition),
)

REQUEST: Layout = (
    AlterPartitionReassignmentsRequest,
    ("int32", 0, 1, -1, -1),
    ("bool", 1, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ReassignableTopic),
)

_LAYOUT_ReassignablePartitionResponse: Layout = (
    ReassignablePartitionResponse,
    ("int32", 0, 1, -1, -1),
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
)

_LAYOUT_ReassignableTopicResponse: Layout = (
    ReassignableTopicResponse,
    ("string", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ReassignablePartitionResponse),
)

RESPONSE: Layout = (
    AlterPartitionReassignmentsResponse,
    ("int32", 0, 1, -1, -1),
    ("bool", 1, 1, -1, -1),
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_ReassignableTopicResponse),
)
