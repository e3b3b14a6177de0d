"""ListOffsets (key 2), versions 1 to 11.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ListOffsetsPartition(NamedTuple):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


class ListOffsetsTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[ListOffsetsPartition] = ()


class ListOffsetsRequest(NamedTuple):
    replica_id: int = 0
    isolation_level: int = 0
    topics: Sequence[ListOffsetsTopic] = ()
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(NamedTuple):
    name: str = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[ListOffsetsTopicResponse] = ()


_LAYOUT_ListOffsetsPartition: Layout = (
    ListOffsetsPartition,
    ("int32", 1, 11, -1, -1),
    ("int32", 4, 11, -1, -1),
    ("int64", 1, 11, -1, -1),
)

_LAYOUT_ListOffsetsTopic: Layout = (
    ListOffsetsTopic,
    ("string", 1, 11, -1, -1),
    ("[]struct", 1, 11, -1, -1, _LAYOUT_ListOffsetsPartition),
)

REQUEST: Layout = (
    ListOffsetsRequest,
    ("int32", 1, 11, -1, -1),
    ("int8", 2, 11, -1, -1),
    ("[]struct", 1, 11, -1, -1, _LAYOUT_ListOffsetsTopic),
    ("int32", 10, 11, -1, -1),
)

_LAYOUT_ListOffsetsPartitionResponse: Layout = (
    ListOffsetsPartitionResponse,
    ("int32", 1, 11, -1, -1),
    ("int16", 1, 11, -1, -1),
    ("int64", 1, 11, -1, -1),
    ("int64", 1, 11, -1, -1),
    ("int32", 4, 11, -1, -1),
)

_LAYOUT_ListOffsetsTopicResponse: Layout = (
    ListOffsetsTopicResponse,
    ("string", 1, 11, -1, -1),
    ("[]struct", 1, 11, -1, -1, _LAYOUT_ListOffsetsPartitionResponse),
)

RESPONSE: Layout = (
    ListOffsetsResponse,
    ("int32", 2, 11, -1, -1),
    ("[]struct", 1, 11, -1, -1, _LAYOUT_ListOffsetsTopicResponse),
)
