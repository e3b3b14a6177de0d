"""ListPartitionReassignments (key 46), versions 0 to 0.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ListPartitionReassignmentsTopics(NamedTuple):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class ListPartitionReassignmentsRequest(NamedTuple):
    timeout_ms: int = 60000
    topics: Sequence[ListPartitionReassignmentsTopics] | None = ()


class OngoingPartitionReassignment(NamedTuple):
    partition_index: int = 0
    replicas: Sequence[int] = ()
    adding_replicas: Sequence[int] = ()
    removing_replicas: Sequence[int] = ()


class OngoingTopicReassignment(NamedTuple):
    name: str = ""
    partitions: Sequence[OngoingPartitionReassignment] = ()


class ListPartitionReassignmentsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: Sequence[OngoingTopicReassignment] = ()


_LAYOUT_ListPartitionReassignmentsTopics: Layout = (
    ListPartitionReassignmentsTopics,
    ("string", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
)

REQUEST: Layout = (
    ListPartitionReassignmentsRequest,
    ("int32", 0, 0, -1, -1),
    ("[]struct", 0, 0, 0, -1, _LAYOUT_ListPartitionReassignmentsTopics),
)

_LAYOUT_OngoingPartitionReassignment: Layout = (
    OngoingPartitionReassignment,
    ("int32", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
)

_LAYOUT_OngoingTopicReassignment: Layout = (
    OngoingTopicReassignment,
    ("string", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_OngoingPartitionReassignment),
)

RESPONSE: Layout = (
    ListPartitionReassignmentsResponse,
    ("int32", 0, 0, -1, -1),
    ("int16", 0, 0, -1, -1),
    ("string", 0, 0, 0, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_OngoingTopicReassignment),
)
