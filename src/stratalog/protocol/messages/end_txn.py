"""EndTxn (key 26), versions 0 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import NamedTuple

from stratalog.protocol.wire import Layout


class EndTxnRequest(NamedTuple):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


class EndTxnResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


REQUEST: Layout = (
    EndTxnRequest,
    ("string", 0, 5, -1, -1),
    ("int64", 0, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("bool", 0, 5, -1, -1),
)

RESPONSE: Layout = (
    EndTxnResponse,
    ("int32", 0, 5, -1, -1),
    ("int16", 0, 5, -1, -1),
    ("int64", 5, 5, -1, -1),
    ("int16", 5, 5, -1, -1),
)
