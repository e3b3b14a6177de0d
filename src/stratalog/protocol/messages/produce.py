"""Produce (key 0), versions 3 to 13.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout, Records


class PartitionProduceData(NamedTuple):
    index: int = 0  # type: ignore[assignment]
    records: Records | None = None


class TopicProduceData(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partition_data: Sequence[PartitionProduceData] = ()


class ProduceRequest(NamedTuple):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: Sequence[TopicProduceData] = ()


class BatchIndexAndErrorMessage(NamedTuple):
    batch_index: int = 0
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


class PartitionProduceResponse(NamedTuple):
    index: int = 0  # type: ignore[assignment]
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class TopicProduceResponse(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partition_responses: Sequence[PartitionProduceResponse] = ()


class NodeEndpoint(NamedTuple):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ProduceResponse(NamedTuple):
    responses: Sequence[TopicProduceResponse] = ()
    throttle_time_ms: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()


_LAYOUT_PartitionProduceData: Layout = (
    PartitionProduceData,
    ("int32", 3, 13, -1, -1),
    ("records", 3, 13, 3, -1),
)

_LAYOUT_TopicProduceData: Layout = (
    TopicProduceData,
    ("string", 3, 12, -1, -1),
    ("uuid", 13, 13, -1, -1),
    ("[]struct", 3, 13, -1, -1, _LAYOUT_PartitionProduceData),
)

REQUEST: Layout = (
    ProduceRequest,
    ("string", 3, 13, 3, -1),
    ("int16", 3, 13, -1, -1),
    ("int32", 3, 13, -1, -1),
    ("[]struct", 3, 13, -1, -1, _LAYOUT_TopicProduceData),
)

_LAYOUT_BatchIndexAndErrorMessage: Layout = (
    BatchIndexAndErrorMessage,
    ("int32", 8, 13, -1, -1),
    ("string", 8, 13, 8, -1),
)

_LAYOUT_LeaderIdAndEpoch: Layout = (
    LeaderIdAndEpoch,
    ("int32", 10, 13, -1, -1),
    ("int32", 10, 13, -1, -1),
)

_LAYOUT_PartitionProduceResponse: Layout = (
    PartitionProduceResponse,
    ("int32", 3, 13, -1, -1),
    ("int16", 3, 13, -1, -1),
    ("int64", 3, 13, -1, -1),
    ("int64", 3, 13, -1, -1),
    ("int64", 5, 13, -1, -1),
    ("[]struct", 8, 13, -1, -1, _LAYOUT_BatchIndexAndErrorMessage),
    ("string", 8, 13, 8, -1),
    ("struct", 10, 13, -1, 0, _LAYOUT_LeaderIdAndEpoch),
)

_LAYOUT_TopicProduceResponse: Layout = (
    TopicProduceResponse,
    ("string", 3, 12, -1, -1),
    ("uuid", 13, 13, -1, -1),
    ("[]struct", 3, 13, -1, -1, _LAYOUT_PartitionProduceResponse),
)

_LAYOUT_NodeEndpoint: Layout = (
    NodeEndpoint,
    ("int32", 10, 13, -1, -1),
    ("string", 10, 13, -1, -1),
    ("int32", 10, 13, -1, -1),
    ("string", 10, 13, 10, -1),
)

RESPONSE: Layout = (
    ProduceResponse,
    ("[]struct", 3, 13, -1, -1, _LAYOUT_TopicProduceResponse),
    ("int32", 3, 13, -1, -1),
    ("[]struct", 10, 13, -1, 0, _LAYOUT_NodeEndpoint),
)
