"""ConsumerProtocolAssignment, versions 0 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class TopicPartition(NamedTuple):
    topic: str = ""
    partitions: Sequence[int] = ()


class ConsumerProtocolAssignment(NamedTuple):
    assigned_partitions: Sequence[TopicPartition] = ()
    user_data: bytes | None = None


_LAYOUT_TopicPartition: Layout = (
    TopicPartition,
    ("string", 0, 3, -1, -1),
    ("[]int32", 0, 3, -1, -1),
)

DATA: Layout = (
    ConsumerProtocolAssignment,
    ("[]struct", 0, 3, -1, -1, _LAYOUT_TopicPartition),
    ("bytes", 0, 3, 0, -1),
)
