"""DescribeProducers (key 61), versions 0 to 0.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class TopicRequest(NamedTuple):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class DescribeProducersRequest(NamedTuple):
    topics: Sequence[TopicRequest] = ()


class ProducerState(NamedTuple):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: Sequence[ProducerState] = ()


class TopicResponse(NamedTuple):
    name: str = ""
    partitions: Sequence[PartitionResponse] = ()


class DescribeProducersResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[TopicResponse] = ()


_LAYOUT_TopicRequest: Layout = (
    TopicRequest,
    ("string", 0, 0, -1, -1),
    ("[]int32", 0, 0, -1, -1),
)

REQUEST: Layout = (
    DescribeProducersRequest,
    ("[]struct", 0, 0, -1, -1, _LAYOUT_TopicRequest),
)

_LAYOUT_ProducerState: Layout = (
    ProducerState,
    ("int64", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("int64", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
    ("int64", 0, 0, -1, -1),
)

_LAYOUT_PartitionResponse: Layout = (
    PartitionResponse,
    ("int32", 0, 0, -1, -1),
    ("int16", 0, 0, -1, -1),
    ("string", 0, 0, 0, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_ProducerState),
)

_LAYOUT_TopicResponse: Layout = (
    TopicResponse,
    ("string", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_PartitionResponse),
)

RESPONSE: Layout = (
    DescribeProducersResponse,
    ("int32", 0, 0, -1, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_TopicResponse),
)
