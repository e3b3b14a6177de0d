"""TxnOffsetCommit (key 28), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class TxnOffsetCommitRequestPartition(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[TxnOffsetCommitRequestPartition] = ()


class TxnOffsetCommitRequest(NamedTuple):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: Sequence[TxnOffsetCommitRequestTopic] = ()


class TxnOffsetCommitResponsePartition(NamedTuple):
    partition_index: int = 0
    error_code: int = 0


class TxnOffsetCommitResponseTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[TxnOffsetCommitResponsePartition] = ()


class TxnOffsetCommitResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[TxnOffsetCommitResponseTopic] = ()


_LAYOUT_TxnOffsetCommitRequestPartition: Layout = (
    TxnOffsetCommitRequestPartition,
    ("int32", 0, 5, -1, -1),
    ("int64", 0, 5, -1, -1),
    ("int32", 2, 5, -1, -1),
    ("string", 0, 5, 0, -1),
)

_LAYOUT_TxnOffsetCommitRequestTopic: Layout = (
    TxnOffsetCommitRequestTopic,
    ("string", 0, 5, -1, -1),
    ("[]struct", 0, 5, -1, -1, _LAYOUT_TxnOffsetCommitRequestPartition),
)

REQUEST: Layout = (
    TxnOffsetCommitRequest,
    ("string", 0, 5, -1, -1),
    ("string", 0, 5, -1, -1),
    ("int64", 0, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("int32", 3, 5, -1, -1),
    ("string", 3, 5, -1, -1),
    ("string", 3, 5, 3, -1),
    ("[]struct", 0, 5, -1, -1, _LAYOUT_TxnOffsetCommitRequestTopic),
)

_LAYOUT_TxnOffsetCommitResponsePartition: Layout = (
    TxnOffsetCommitResponsePartition,
    ("int32", 0, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
)

_LAYOUT_TxnOffsetCommitResponseTopic: Layout = (
    TxnOffsetCommitResponseTopic,
    ("string", 0, 5, -1, -1),
    ("[]struct", 0, 5, -1, -1, _LAYOUT_TxnOffsetCommitResponsePartition),
)

RESPONSE: Layout = (
    TxnOffsetCommitResponse,
    ("int32", 0, 5, -1, -1),
    ("[]struct", 0, 5, -1, -1, _LAYOUT_TxnOffsetCommitResponseTopic),
)
