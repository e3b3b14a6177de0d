"""ConsumerGroupHeartbeat (key 68), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class TopicPartitions(NamedTuple):
    topic_id: bytes = NO_UUID
    partitions: Sequence[int] = ()


class ConsumerGroupHeartbeatRequest(NamedTuple):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Sequence[TopicPartitions] | None = ()


class Assignment(NamedTuple):
    topic_partitions: Sequence[TopicPartitions] = ()


class ConsumerGroupHeartbeatResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


_LAYOUT_TopicPartitions: Layout = (
    TopicPartitions,
    ("uuid", 0, 1, -1, -1),
    ("[]int32", 0, 1, -1, -1),
)

REQUEST: Layout = (
    ConsumerGroupHeartbeatRequest,
    ("string", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("int32", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("string", 0, 1, 0, -1),
    ("int32", 0, 1, -1, -1),
    ("[]string", 0, 1, 0, -1),
    ("string", 1, 1, 1, -1),
    ("string", 0, 1, 0, -1),
    ("[]struct", 0, 1, 0, -1, _LAYOUT_TopicPartitions),
)

_LAYOUT_Assignment: Layout = (
    Assignment,
    ("[]struct", 0, 1, -1, -1, _LAYOUT_TopicPartitions),
)

RESPONSE: Layout = (
    ConsumerGroupHeartbeatResponse,
    ("int32", 0, 1, -1, -1),
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("string", 0, 1, 0, -1),
    ("int32", 0, 1, -1, -1),
    ("int32", 0, 1, -1, -1),
    ("struct", 0, 1, 0, -1, _LAYOUT_Assignment),
)
