"""OffsetForLeaderEpoch (key 23), versions 2 to 4.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class OffsetForLeaderPartition(NamedTuple):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(NamedTuple):
    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(NamedTuple):
    replica_id: int = -2
    topics: Sequence[OffsetForLeaderTopic] = ()


class EpochEndOffset(NamedTuple):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(NamedTuple):
    topic: str = ""
    partitions: Sequence[EpochEndOffset] = ()


class OffsetForLeaderEpochResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()


_LAYOUT_OffsetForLeaderPartition: Layout = (
    OffsetForLeaderPartition,
    ("int32", 2, 4, -1, -1),
    ("int32", 2, 4, -1, -1),
    ("int32", 2, 4, -1, -1),
)

_LAYOUT_OffsetForLeaderTopic: Layout = (
    OffsetForLeaderTopic,
    ("string", 2, 4, -1, -1),
    ("[]struct", 2, 4, -1, -1, _LAYOUT_OffsetForLeaderPartition),
)

REQUEST: Layout = (
    OffsetForLeaderEpochRequest,
    ("int32", 3, 4, -1, -1),
    ("[]struct", 2, 4, -1, -1, _LAYOUT_OffsetForLeaderTopic),
)

_LAYOUT_EpochEndOffset: Layout = (
    EpochEndOffset,
    ("int16", 2, 4, -1, -1),
    ("int32", 2, 4, -1, -1),
    ("int32", 2, 4, -1, -1),
    ("int64", 2, 4, -1, -1),
)

_LAYOUT_OffsetForLeaderTopicResult: Layout = (
    OffsetForLeaderTopicResult,
    ("string", 2, 4, -1, -1),
    ("[]struct", 2, 4, -1, -1, _LAYOUT_EpochEndOffset),
)

RESPONSE: Layout = (
    OffsetForLeaderEpochResponse,
    ("int32", 2, 4, -1, -1),
    ("[]struct", 2, 4, -1, -1, _LAYOUT_OffsetForLeaderTopicResult),
)
