"""ElectLeaders (key 43), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class TopicPartitions(NamedTuple):
    topic: str = ""
    partitions: Sequence[int] = ()


class ElectLeadersRequest(NamedTuple):
    election_type: int = 0
    topic_partitions: Sequence[TopicPartitions] | None = ()
    timeout_ms: int = 60000


class PartitionResult(NamedTuple):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReplicaElectionResult(NamedTuple):
    topic: str = ""
    partition_result: Sequence[PartitionResult] = ()


class ElectLeadersResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: Sequence[ReplicaElectionResult] = ()


_LAYOUT_TopicPartitions: Layout = (
    TopicPartitions,
    ("string", 0, 2, -1, -1),
    ("[]int32", 0, 2, -1, -1),
)

REQUEST: Layout = (
    ElectLeadersRequest,
    ("int8", 1, 2, -1, -1),
    ("[]struct", 0, 2, 0, -1, _LAYOUT_TopicPartitions),
    ("int32", 0, 2, -1, -1),
)

_LAYOUT_PartitionResult: Layout = (
    PartitionResult,
    ("int32", 0, 2, -1, -1),
    ("int16", 0, 2, -1, -1),
    ("string", 0, 2, 0, -1),
)

_LAYOUT_ReplicaElectionResult: Layout = (
    ReplicaElectionResult,
    ("string", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_PartitionResult),
)

RESPONSE: Layout = (
    ElectLeadersResponse,
    ("int32", 0, 2, -1, -1),
    ("int16", 1, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_ReplicaElectionResult),
)
