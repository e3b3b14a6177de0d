"""DescribeQuorum (key 55), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class RequestPartitionData(NamedTuple):
    partition_index: int = 0


class RequestTopicData(NamedTuple):
    topic_name: str = ""
    partitions: Sequence[RequestPartitionData] = ()


class DescribeQuorumRequest(NamedTuple):
    topics: Sequence[RequestTopicData] = ()


class ReplicaState(NamedTuple):
    replica_id: int = 0
    replica_directory_id: bytes = NO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class ResponsePartitionData(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: Sequence[ReplicaState] = ()
    observers: Sequence[ReplicaState] = ()


class ResponseTopicData(NamedTuple):
    topic_name: str = ""
    partitions: Sequence[ResponsePartitionData] = ()


class Listener(NamedTuple):
    name: str = ""
    host: str = ""
    port: int = 0


class Node(NamedTuple):
    node_id: int = 0
    listeners: Sequence[Listener] = ()


class DescribeQuorumResponse(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    topics: Sequence[ResponseTopicData] = ()
    nodes: Sequence[Node] = ()


_LAYOUT_RequestPartitionData: Layout = (
    RequestPartitionData,
    ("int32", 0, 2, -1, -1),
)

_LAYOUT_RequestTopicData: Layout = (
    RequestTopicData,
    ("string", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_RequestPartitionData),
)

REQUEST: Layout = (
    DescribeQuorumRequest,
    ("[]struct", 0, 2, -1, -1, _LAYOUT_RequestTopicData),
)

_LAYOUT_ReplicaState: Layout = (
    ReplicaState,
    ("int32", 0, 2, -1, -1),
    ("uuid", 2, 2, -1, -1),
    ("int64", 0, 2, -1, -1),
    ("int64", 1, 2, -1, -1),
    ("int64", 1, 2, -1, -1),
)

_LAYOUT_ResponsePartitionData: Layout = (
    ResponsePartitionData,
    ("int32", 0, 2, -1, -1),
    ("int16", 0, 2, -1, -1),
    ("string", 2, 2, 2, -1),
    ("int32", 0, 2, -1, -1),
    ("int32", 0, 2, -1, -1),
    ("int64", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_ReplicaState),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_ReplicaState),
)

_LAYOUT_ResponseTopicData: Layout = (
    ResponseTopicData,
    ("string", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_ResponsePartitionData),
)

_LAYOUT_Listener: Layout = (
    Listener,
    ("string", 2, 2, -1, -1),
    ("string", 2, 2, -1, -1),
    ("uint16", 2, 2, -1, -1),
)

_LAYOUT_Node: Layout = (
    Node,
    ("int32", 2, 2, -1, -1),
    ("[]struct", 2, 2, -1, -1, _LAYOUT_Listener),
)

RESPONSE: Layout = (
    DescribeQuorumResponse,
    ("int16", 0, 2, -1, -1),
    ("string", 2, 2, 2, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_ResponseTopicData),
    ("[]struct", 2, 2, -1, -1, _LAYOUT_Node),
)
