"""ConsumerGroupDescribe (key 69), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class ConsumerGroupDescribeRequest(NamedTuple):
    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


class TopicPartitions(NamedTuple):
    topic_id: bytes = NO_UUID
    topic_name: str = ""
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    topic_partitions: Sequence[TopicPartitions] = ()


class Member(NamedTuple):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: int = -1


class DescribedGroup(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[Member] = ()
    authorized_operations: int = -2147483648


class ConsumerGroupDescribeResponse(NamedTuple):
    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


REQUEST: Layout = (
    ConsumerGroupDescribeRequest,
    ("[]string", 0, 1, -1, -1),
    ("bool", 0, 1, -1, -1),
)

_LAYOUT_TopicPartitions: Layout = (
    TopicPartitions,
    ("uuid", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("[]int32", 0, 1, -1, -1),
)

_LAYOUT_Assignment: Layout = (
    Assignment,
    ("[]struct", 0, 1, -1, -1, _LAYOUT_TopicPartitions),
)

_LAYOUT_Member: Layout = (
    Member,
    ("string", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("string", 0, 1, 0, -1),
    ("int32", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("[]string", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("struct", 0, 1, -1, -1, _LAYOUT_Assignment),
    ("struct", 0, 1, -1, -1, _LAYOUT_Assignment),
    ("int8", 1, 1, -1, -1),
)

_LAYOUT_DescribedGroup: Layout = (
    DescribedGroup,
    ("int16", 0, 1, -1, -1),
    ("string", 0, 1, 0, -1),
    ("string", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("int32", 0, 1, -1, -1),
    ("int32", 0, 1, -1, -1),
    ("string", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_Member),
    ("int32", 0, 1, -1, -1),
)

RESPONSE: Layout = (
    ConsumerGroupDescribeResponse,
    ("int32", 0, 1, -1, -1),
    ("[]struct", 0, 1, -1, -1, _LAYOUT_DescribedGroup),
)
