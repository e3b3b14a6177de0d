"""InitProducerId (key 22), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import NamedTuple

from stratalog.protocol.wire import Layout


class InitProducerIdRequest(NamedTuple):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


class InitProducerIdResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0


REQUEST: Layout = (
    InitProducerIdRequest,
    ("string", 0, 5, 0, -1),
    ("int32", 0, 5, -1, -1),
    ("int64", 3, 5, -1, -1),
    ("int16", 3, 5, -1, -1),
)

RESPONSE: Layout = (
    InitProducerIdResponse,
    ("int32", 0, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("int64", 0, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
)
