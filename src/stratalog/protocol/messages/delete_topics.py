"""DeleteTopics (key 20), versions 1 to 6.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import NO_UUID, Layout


class DeleteTopicState(NamedTuple):
    name: str | None = None
    topic_id: bytes = NO_UUID


class DeleteTopicsRequest(NamedTuple):
    topic_names: Sequence[str] = ()
    topics: Sequence[DeleteTopicState] = ()
    timeout_ms: int = 0


class DeletableTopicResult(NamedTuple):
    name: str | None = ""
    topic_id: bytes = NO_UUID
    error_code: int = 0
    error_message: str | None = None


class DeleteTopicsResponse(NamedTuple):
    throttle_time_ms: int = 0
    responses: Sequence[DeletableTopicResult] = ()


_LAYOUT_DeleteTopicState: Layout = (
    DeleteTopicState,
    ("string", 6, 6, 6, -1),
    ("uuid", 6, 6, -1, -1),
)

REQUEST: Layout = (
    DeleteTopicsRequest,
    ("[]string", 1, 5, -1, -1),
    ("[]struct", 6, 6, -1, -1, _LAYOUT_DeleteTopicState),
    ("int32", 1, 6, -1, -1),
)

_LAYOUT_DeletableTopicResult: Layout = (
    DeletableTopicResult,
    ("string", 1, 6, 6, -1),
    ("uuid", 6, 6, -1, -1),
    ("int16", 1, 6, -1, -1),
    ("string", 5, 6, 5, -1),
)

RESPONSE: Layout = (
    DeleteTopicsResponse,
    ("int32", 1, 6, -1, -1),
    ("[]struct", 1, 6, -1, -1, _LAYOUT_DeletableTopicResult),
)
