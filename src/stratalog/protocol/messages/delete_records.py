"""DeleteRecords (key 21), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DeleteRecordsPartition(NamedTuple):
    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(NamedTuple):
    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(NamedTuple):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(NamedTuple):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()


_LAYOUT_DeleteRecordsPartition: Layout = (
    DeleteRecordsPartition,
    ("int32", 0, 2, -1, -1),
    ("int64", 0, 2, -1, -1),
)

_LAYOUT_DeleteRecordsTopic: Layout = (
    DeleteRecordsTopic,
    ("string", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_DeleteRecordsPartition),
)

REQUEST: Layout = (
    DeleteRecordsRequest,
    ("[]struct", 0, 2, -1, -1, _LAYOUT_DeleteRecordsTopic),
    ("int32", 0, 2, -1, -1),
)

_LAYOUT_DeleteRecordsPartitionResult: Layout = (
    DeleteRecordsPartitionResult,
    ("int32", 0, 2, -1, -1),
    ("int64", 0, 2, -1, -1),
    ("int16", 0, 2, -1, -1),
)

_LAYOUT_DeleteRecordsTopicResult: Layout = (
    DeleteRecordsTopicResult,
    ("string", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_DeleteRecordsPartitionResult),
)

RESPONSE: Layout = (
    DeleteRecordsResponse,
    ("int32", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_DeleteRecordsTopicResult),
)
