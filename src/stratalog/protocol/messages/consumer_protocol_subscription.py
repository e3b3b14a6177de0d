"""ConsumerProtocolSubscription, versions 0 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class TopicPartition(NamedTuple):
    topic: str = ""
    partitions: Sequence[int] = ()


class ConsumerProtocolSubscription(NamedTuple):
    topics: Sequence[str] = ()
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    generation_id: int = -1
    rack_id: str | None = None


_LAYOUT_TopicPartition: Layout = (
    TopicPartition,
    ("string", 1, 3, -1, -1),
    ("[]int32", 1, 3, -1, -1),
)

DATA: Layout = (
    ConsumerProtocolSubscription,
    ("[]string", 0, 3, -1, -1),
    ("bytes", 0, 3, 0, -1),
    ("[]struct", 1, 3, -1, -1, _LAYOUT_TopicPartition),
    ("int32", 2, 3, -1, -1),
    ("string", 3, 3, 3, -1),
)
