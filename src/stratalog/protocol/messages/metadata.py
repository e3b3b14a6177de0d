"""Metadata (key 3), versions 0 to 13.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class MetadataRequestTopic(NamedTuple):
    topic_id: bytes = NO_UUID
    name: str | None = ""


class MetadataRequest(NamedTuple):
    topics: Sequence[MetadataRequestTopic] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class MetadataResponseBroker(NamedTuple):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(NamedTuple):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()


class MetadataResponseTopic(NamedTuple):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = NO_UUID
    is_internal: bool = False
    partitions: Sequence[MetadataResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class MetadataResponse(NamedTuple):
    throttle_time_ms: int = 0
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: Sequence[MetadataResponseTopic] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


_LAYOUT_MetadataRequestTopic: Layout = (
    MetadataRequestTopic,
    ("uuid", 10, 13, -1, -1),
    ("string", 0, 13, 10, -1),
)

REQUEST: Layout = (
    MetadataRequest,
    ("[]struct", 0, 13, 1, -1, _LAYOUT_MetadataRequestTopic),
    ("bool", 4, 13, -1, -1),
    ("bool", 8, 10, -1, -1),
    ("bool", 8, 13, -1, -1),
)

_LAYOUT_MetadataResponseBroker: Layout = (
    MetadataResponseBroker,
    ("int32", 0, 13, -1, -1),
    ("string", 0, 13, -1, -1),
    ("int32", 0, 13, -1, -1),
    ("string", 1, 13, 1, -1),
)

_LAYOUT_MetadataResponsePartition: Layout = (
    MetadataResponsePartition,
    ("int16", 0, 13, -1, -1),
    ("int32", 0, 13, -1, -1),
    ("int32", 0, 13, -1, -1),
    ("int32", 7, 13, -1, -1),
    ("[]int32", 0, 13, -1, -1),
    ("[]int32", 0, 13, -1, -1),
    ("[]int32", 5, 13, -1, -1),
)

_LAYOUT_MetadataResponseTopic: Layout = (
    MetadataResponseTopic,
    ("int16", 0, 13, -1, -1),
    ("string", 0, 13, 12, -1),
    ("uuid", 10, 13, -1, -1),
    ("bool", 1, 13, -1, -1),
    ("[]struct", 0, 13, -1, -1, _LAYOUT_MetadataResponsePartition),
    ("int32", 8, 13, -1, -1),
)

RESPONSE: Layout = (
    MetadataResponse,
    ("int32", 3, 13, -1, -1),
    ("[]struct", 0, 13, -1, -1, _LAYOUT_MetadataResponseBroker),
    ("string", 2, 13, 2, -1),
    ("int32", 1, 13, -1, -1),
    ("[]struct", 0, 13, -1, -1, _LAYOUT_MetadataResponseTopic),
    ("int32", 8, 10, -1, -1),
    ("int16", 13, 13, -1, -1),
)
