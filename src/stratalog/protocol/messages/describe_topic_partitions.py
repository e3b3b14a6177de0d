"""DescribeTopicPartitions (key 75), versions 0 to 0.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class TopicRequest(NamedTuple):
    name: str = ""


class Cursor(NamedTuple):
    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequest(NamedTuple):
    topics: Sequence[TopicRequest] = ()
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(NamedTuple):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] | None = None
    last_known_elr: Sequence[int] | None = None
    offline_replicas: Sequence[int] = ()


class DescribeTopicPartitionsResponseTopic(NamedTuple):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = NO_UUID
    is_internal: bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class DescribeTopicPartitionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None


_LAYOUT_TopicRequest: Layout = (
    TopicRequest,
    ("string", 0, 0, -1, -1),
)

_LAYOUT_Cursor: Layout = (
    Cursor,
    ("string", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
)

REQUEST: Layout = (
    DescribeTopicPartitionsRequest,
    ("[]struct", 0, 0, -1, -1, _LAYOUT_TopicRequest),
    ("int32", 0, 0, -1, -1),
    ("struct", 0, 0, 0, -1, _LAYOUT_Cursor),
)

_LAYOUT_DescribeTopicPartitionsResponsePartition: Layout = (
    DescribeTopicPartitionsResponsePartition,
    ("int16", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
    ("[]int32", 0, 0, 0, -1),
    ("[]int32", 0, 0, 0, -1),
    ("[]int32", 0, 0, -1, -1),
)

_LAYOUT_DescribeTopicPartitionsResponseTopic: Layout = (
    DescribeTopicPartitionsResponseTopic,
    ("int16", 0, 0, -1, -1),
    ("string", 0, 0, 0, -1),
    ("uuid", 0, 0, -1, -1),
    ("bool", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_DescribeTopicPartitionsResponsePartition),
    ("int32", 0, 0, -1, -1),
)

RESPONSE: Layout = (
    DescribeTopicPartitionsResponse,
    ("int32", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_DescribeTopicPartitionsResponseTopic),
    ("struct", 0, 0, 0, -1, _LAYOUT_Cursor),
)
