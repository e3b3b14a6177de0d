"""OffsetCommit (key 8), versions 2 to 10.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class OffsetCommitRequestPartition(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[OffsetCommitRequestPartition] = ()


class OffsetCommitRequest(NamedTuple):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    group_instance_id: str | None = None
    topics: Sequence[OffsetCommitRequestTopic] = ()


class OffsetCommitResponsePartition(NamedTuple):
    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[OffsetCommitResponsePartition] = ()


class OffsetCommitResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[OffsetCommitResponseTopic] = ()


_LAYOUT_OffsetCommitRequestPartition: Layout = (
    OffsetCommitRequestPartition,
    ("int32", 2, 10, -1, -1),
    ("int64", 2, 10, -1, -1),
    ("int32", 6, 10, -1, -1),
    ("string", 2, 10, 2, -1),
)

_LAYOUT_OffsetCommitRequestTopic: Layout = (
    OffsetCommitRequestTopic,
    ("string", 2, 9, -1, -1),
    ("uuid", 10, 10, -1, -1),
    ("[]struct", 2, 10, -1, -1, _LAYOUT_OffsetCommitRequestPartition),
)

REQUEST: Layout = (
    OffsetCommitRequest,
    ("string", 2, 10, -1, -1),
    ("int32", 2, 10, -1, -1),
    ("string", 2, 10, -1, -1),
    ("int64", 2, 4, -1, -1),
    ("string", 7, 10, 7, -1),
    ("[]struct", 2, 10, -1, -1, _LAYOUT_OffsetCommitRequestTopic),
)

_LAYOUT_OffsetCommitResponsePartition: Layout = (
    OffsetCommitResponsePartition,
    ("int32", 2, 10, -1, -1),
    ("int16", 2, 10, -1, -1),
)

_LAYOUT_OffsetCommitResponseTopic: Layout = (
    OffsetCommitResponseTopic,
    ("string", 2, 9, -1, -1),
    ("uuid", 10, 10, -1, -1),
    ("[]struct", 2, 10, -1, -1, _LAYOUT_OffsetCommitResponsePartition),
)

RESPONSE: Layout = (
    OffsetCommitResponse,
    ("int32", 3, 10, -1, -1),
    ("[]struct", 2, 10, -1, -1, _LAYOUT_OffsetCommitResponseTopic),
)
