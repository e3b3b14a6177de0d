"""AddPartitionsToTxn (key 24), versions 0 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class AddPartitionsToTxnTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[int] = ()


class AddPartitionsToTxnRequest(NamedTuple):
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnPartitionResult(NamedTuple):
    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(NamedTuple):
    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResponse(NamedTuple):
    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = ()


_LAYOUT_AddPartitionsToTxnTopic: Layout = (
    AddPartitionsToTxnTopic,
    ("string", 0, 3, -1, -1),
    ("[]int32", 0, 3, -1, -1),
)

REQUEST: Layout = (
    AddPartitionsToTxnRequest,
    ("string", 0, 3, -1, -1),
    ("int64", 0, 3, -1, -1),
    ("int16", 0, 3, -1, -1),
    ("[]struct", 0, 3, -1, -1, _LAYOUT_AddPartitionsToTxnTopic),
)

_LAYOUT_AddPartitionsToTxnPartitionResult: Layout = (
    AddPartitionsToTxnPartitionResult,
    ("int32", 0, 3, -1, -1),
    ("int16", 0, 3, -1, -1),
)

_LAYOUT_AddPartitionsToTxnTopicResult: Layout = (
    AddPartitionsToTxnTopicResult,
    ("string", 0, 3, -1, -1),
    ("[]struct", 0, 3, -1, -1, _LAYOUT_AddPartitionsToTxnPartitionResult),
)

RESPONSE: Layout = (
    AddPartitionsToTxnResponse,
    ("int32", 0, 3, -1, -1),
    ("[]struct", 0, 3, -1, -1, _LAYOUT_AddPartitionsToTxnTopicResult),
)
