"""CreatePartitions (key 37), versions 0 to 3.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class CreatePartitionsAssignment(NamedTuple):
    broker_ids: Sequence[int] = ()


class CreatePartitionsTopic(NamedTuple):
    name: str = ""
    count: int = 0  # type: ignore[assignment]
    assignments: Sequence[CreatePartitionsAssignment] | None = ()


class CreatePartitionsRequest(NamedTuple):
    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(NamedTuple):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[CreatePartitionsTopicResult] = ()


_LAYOUT_CreatePartitionsAssignment: Layout = (
    CreatePartitionsAssignment,
    ("[]int32", 0, 3, -1, -1),
)

_LAYOUT_CreatePartitionsTopic: Layout = (
    CreatePartitionsTopic,
    ("string", 0, 3, -1, -1),
    ("int32", 0, 3, -1, -1),
    ("[]struct", 0, 3, 0, -1, _LAYOUT_CreatePartitionsAssignment),
)

REQUEST: Layout = (
    CreatePartitionsRequest,
    ("[]struct", 0, 3, -1, -1, _LAYOUT_CreatePartitionsTopic),
    ("int32", 0, 3, -1, -1),
    ("bool", 0, 3, -1, -1),
)

_LAYOUT_CreatePartitionsTopicResult: Layout = (
    CreatePartitionsTopicResult,
    ("string", 0, 3, -1, -1),
    ("int16", 0, 3, -1, -1),
    ("string", 0, 3, 0, -1),
)

RESPONSE: Layout = (
    CreatePartitionsResponse,
    ("int32", 0, 3, -1, -1),
    ("[]struct", 0, 3, -1, -1, _LAYOUT_CreatePartitionsTopicResult),
)
