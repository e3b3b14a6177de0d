"""CreateTopics (key 19), versions 2 to 7.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class CreatableReplicaAssignment(NamedTuple):
    partition_index: int = 0
    broker_ids: Sequence[int] = ()


class CreatableTopicConfig(NamedTuple):
    name: str = ""
    value: str | None = ""


class CreatableTopic(NamedTuple):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


class CreateTopicsRequest(NamedTuple):
    topics: Sequence[CreatableTopic] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


class CreatableTopicConfigs(NamedTuple):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(NamedTuple):
    name: str = ""
    topic_id: bytes = NO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[CreatableTopicConfigs] | None = ()


class CreateTopicsResponse(NamedTuple):
    throttle_time_ms: int = 0
    topics: Sequence[CreatableTopicResult] = ()


_LAYOUT_CreatableReplicaAssignment: Layout = (
    CreatableReplicaAssignment,
    ("int32", 2, 7, -1, -1),
    ("[]int32", 2, 7, -1, -1),
)

_LAYOUT_CreatableTopicConfig: Layout = (
    CreatableTopicConfig,
    ("string", 2, 7, -1, -1),
    ("string", 2, 7, 2, -1),
)

_LAYOUT_CreatableTopic: Layout = (
    CreatableTopic,
    ("string", 2, 7, -1, -1),
    ("int32", 2, 7, -1, -1),
    ("int16", 2, 7, -1, -1),
    ("[]struct", 2, 7, -1, -1, _LAYOUT_CreatableReplicaAssignment),
    ("[]struct", 2, 7, -1, -1, _LAYOUT_CreatableTopicConfig),
)

REQUEST: Layout = (
    CreateTopicsRequest,
    ("[]struct", 2, 7, -1, -1, _LAYOUT_CreatableTopic),
    ("int32", 2, 7, -1, -1),
    ("bool", 2, 7, -1, -1),
)

_LAYOUT_CreatableTopicConfigs: Layout = (
    CreatableTopicConfigs,
    ("string", 5, 7, -1, -1),
    ("string", 5, 7, 5, -1),
    ("bool", 5, 7, -1, -1),
    ("int8", 5, 7, -1, -1),
    ("bool", 5, 7, -1, -1),
)

_LAYOUT_CreatableTopicResult: Layout = (
    CreatableTopicResult,
    ("string", 2, 7, -1, -1),
    ("uuid", 7, 7, -1, -1),
    ("int16", 2, 7, -1, -1),
    ("string", 2, 7, 2, -1),
    ("int16", 5, 7, -1, 0),
    ("int32", 5, 7, -1, -1),
    ("int16", 5, 7, -1, -1),
    ("[]struct", 5, 7, 5, -1, _LAYOUT_CreatableTopicConfigs),
)

RESPONSE: Layout = (
    CreateTopicsResponse,
    ("int32", 2, 7, -1, -1),
    ("[]struct", 2, 7, -1, -1, _LAYOUT_CreatableTopicResult),
)
