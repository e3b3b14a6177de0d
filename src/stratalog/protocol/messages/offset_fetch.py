"""OffsetFetch (key 9), versions 1 to 10.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class OffsetFetchRequestTopic(NamedTuple):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestTopics(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestGroup(NamedTuple):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = ()


class OffsetFetchRequest(NamedTuple):
    group_id: str = ""
    topics: Sequence[OffsetFetchRequestTopic] | None = ()
    groups: Sequence[OffsetFetchRequestGroup] = ()
    require_stable: bool = False


class OffsetFetchResponsePartition(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[OffsetFetchResponsePartition] = ()


class OffsetFetchResponsePartitions(NamedTuple):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopics(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[OffsetFetchResponsePartitions] = ()


class OffsetFetchResponseGroup(NamedTuple):
    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: int = 0


class OffsetFetchResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[OffsetFetchResponseTopic] = ()
    error_code: int = 0
    groups: Sequence[OffsetFetchResponseGroup] = ()


_LAYOUT_OffsetFetchRequestTopic: Layout = (
    OffsetFetchRequestTopic,
    ("string", 1, 7, -1, -1),
    ("[]int32", 1, 7, -1, -1),
)

_LAYOUT_OffsetFetchRequestTopics: Layout = (
    OffsetFetchRequestTopics,
    ("string", 8, 9, -1, -1),
    ("uuid", 10, 10, -1, -1),
    ("[]int32", 8, 10, -1, -1),
)

_LAYOUT_OffsetFetchRequestGroup: Layout = (
    OffsetFetchRequestGroup,
    ("string", 8, 10, -1, -1),
    ("string", 9, 10, 9, -1),
    ("int32", 9, 10, -1, -1),
    ("[]struct", 8, 10, 8, -1, _LAYOUT_OffsetFetchRequestTopics),
)

REQUEST: Layout = (
    OffsetFetchRequest,
    ("string", 1, 7, -1, -1),
    ("[]struct", 1, 7, 2, -1, _LAYOUT_OffsetFetchRequestTopic),
    ("[]struct", 8, 10, -1, -1, _LAYOUT_OffsetFetchRequestGroup),
    ("bool", 7, 10, -1, -1),
)

_LAYOUT_OffsetFetchResponsePartition: Layout = (
    OffsetFetchResponsePartition,
    ("int32", 1, 7, -1, -1),
    ("int64", 1, 7, -1, -1),
    ("int32", 5, 7, -1, -1),
    ("string", 1, 7, 1, -1),
    ("int16", 1, 7, -1, -1),
)

_LAYOUT_OffsetFetchResponseTopic: Layout = (
    OffsetFetchResponseTopic,
    ("string", 1, 7, -1, -1),
    ("[]struct", 1, 7, -1, -1, _LAYOUT_OffsetFetchResponsePartition),
)

_LAYOUT_OffsetFetchResponsePartitions: Layout = (
    OffsetFetchResponsePartitions,
    ("int32", 8, 10, -1, -1),
    ("int64", 8, 10, -1, -1),
    ("int32", 8, 10, -1, -1),
    ("string", 8, 10, 8, -1),
    ("int16", 8, 10, -1, -1),
)

_LAYOUT_OffsetFetchResponseTopics: Layout = (
    OffsetFetchResponseTopics,
    ("string", 8, 9, -1, -1),
    ("uuid", 10, 10, -1, -1),
    ("[]struct", 8, 10, -1, -1, _LAYOUT_OffsetFetchResponsePartitions),
)

_LAYOUT_OffsetFetchResponseGroup: Layout = (
    OffsetFetchResponseGroup,
    ("string", 8, 10, -1, -1),
    ("[]struct", 8, 10, -1, -1, _LAYOUT_OffsetFetchResponseTopics),
    ("int16", 8, 10, -1, -1),
)

RESPONSE: Layout = (
    OffsetFetchResponse,
    ("int32", 3, 10, -1, -1),
    ("[]struct", 1, 7, -1, -1, _LAYOUT_OffsetFetchResponseTopic),
    ("int16", 2, 7, -1, -1),
    ("[]struct", 8, 10, -1, -1, _LAYOUT_OffsetFetchResponseGroup),
)
