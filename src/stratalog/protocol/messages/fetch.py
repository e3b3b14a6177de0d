"""Fetch (key 1), versions 4 to 18.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout, Records


class FetchPartition(NamedTuple):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = NO_UUID
    high_watermark: int = 9223372036854775807


class FetchTopic(NamedTuple):
    topic: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[FetchPartition] = ()


class ReplicaState(NamedTuple):
    replica_id: int = -1
    replica_epoch: int = -1


class ForgottenTopic(NamedTuple):
    topic: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[int] = ()


class FetchRequest(NamedTuple):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()
    rack_id: str = ""


class AbortedTransaction(NamedTuple):
    producer_id: int = 0
    first_offset: int = 0


class EpochEndOffset(NamedTuple):
    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(NamedTuple):
    end_offset: int = -1
    epoch: int = -1


class PartitionData(NamedTuple):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: Sequence[AbortedTransaction] | None = ()
    preferred_read_replica: int = -1
    records: Records | None = None


class FetchableTopicResponse(NamedTuple):
    topic: str = ""
    topic_id: bytes = NO_UUID
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class FetchResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


_LAYOUT_FetchPartition: Layout = (
    FetchPartition,
    ("int32", 4, 18, -1, -1),
    ("int32", 9, 18, -1, -1),
    ("int64", 4, 18, -1, -1),
    ("int32", 12, 18, -1, -1),
    ("int64", 5, 18, -1, -1),
    ("int32", 4, 18, -1, -1),
    ("uuid", 17, 18, -1, 0),
    ("int64", 18, 18, -1, 1),
)

_LAYOUT_FetchTopic: Layout = (
    FetchTopic,
    ("string", 4, 12, -1, -1),
    ("uuid", 13, 18, -1, -1),
    ("[]struct", 4, 18, -1, -1, _LAYOUT_FetchPartition),
)

_LAYOUT_ReplicaState: Layout = (
    ReplicaState,
    ("int32", 15, 18, -1, -1),
    ("int64", 15, 18, -1, -1),
)

_LAYOUT_ForgottenTopic: Layout = (
    ForgottenTopic,
    ("string", 7, 12, -1, -1),
    ("uuid", 13, 18, -1, -1),
    ("[]int32", 7, 18, -1, -1),
)

REQUEST: Layout = (
    FetchRequest,
    ("string", 12, 18, 12, 0),
    ("int32", 4, 14, -1, -1),
    ("struct", 15, 18, -1, 1, _LAYOUT_ReplicaState),
    ("int32", 4, 18, -1, -1),
    ("int32", 4, 18, -1, -1),
    ("int32", 4, 18, -1, -1),
    ("int8", 4, 18, -1, -1),
    ("int32", 7, 18, -1, -1),
    ("int32", 7, 18, -1, -1),
    ("[]struct", 4, 18, -1, -1, _LAYOUT_FetchTopic),
    ("[]struct", 7, 18, -1, -1, _LAYOUT_ForgottenTopic),
    ("string", 11, 18, -1, -1),
)

_LAYOUT_AbortedTransaction: Layout = (
    AbortedTransaction,
    ("int64", 4, 18, -1, -1),
    ("int64", 4, 18, -1, -1),
)

_LAYOUT_EpochEndOffset: Layout = (
    EpochEndOffset,
    ("int32", 12, 18, -1, -1),
    ("int64", 12, 18, -1, -1),
)

_LAYOUT_LeaderIdAndEpoch: Layout = (
    LeaderIdAndEpoch,
    ("int32", 12, 18, -1, -1),
    ("int32", 12, 18, -1, -1),
)

_LAYOUT_SnapshotId: Layout = (
    SnapshotId,
    ("int64", 12, 18, -1, -1),
    ("int32", 12, 18, -1, -1),
)

_LAYOUT_PartitionData: Layout = (
    PartitionData,
    ("int32", 4, 18, -1, -1),
    ("int16", 4, 18, -1, -1),
    ("int64", 4, 18, -1, -1),
    ("int64", 4, 18, -1, -1),
    ("int64", 5, 18, -1, -1),
    ("struct", 12, 18, -1, 0, _LAYOUT_EpochEndOffset),
    ("struct", 12, 18, -1, 1, _LAYOUT_LeaderIdAndEpoch),
    ("struct", 12, 18, -1, 2, _LAYOUT_SnapshotId),
    ("[]struct", 4, 18, 4, -1, _LAYOUT_AbortedTransaction),
    ("int32", 11, 18, -1, -1),
    ("records", 4, 18, 4, -1),
)

_LAYOUT_FetchableTopicResponse: Layout = (
    FetchableTopicResponse,
    ("string", 4, 12, -1, -1),
    ("uuid", 13, 18, -1, -1),
    ("[]struct", 4, 18, -1, -1, _LAYOUT_PartitionData),
)

_LAYOUT_NodeEndpoint: Layout = (
    NodeEndpoint,
    ("int32", 16, 18, -1, -1),
    ("string", 16, 18, -1, -1),
    ("int32", 16, 18, -1, -1),
    ("string", 16, 18, 16, -1),
)

RESPONSE: Layout = (
    FetchResponse,
    ("int32", 4, 18, -1, -1),
    ("int16", 7, 18, -1, -1),
    ("int32", 7, 18, -1, -1),
    ("[]struct", 4, 18, -1, -1, _LAYOUT_FetchableTopicResponse),
    ("[]struct", 16, 18, -1, 0, _LAYOUT_NodeEndpoint),
)
