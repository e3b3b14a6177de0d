"""AddOffsetsToTxn (key 25), versions 0 to 4.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import NamedTuple

from stratalog.protocol.wire import Layout


class AddOffsetsToTxnRequest(NamedTuple):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0


REQUEST: Layout = (
    AddOffsetsToTxnRequest,
    ("string", 0, 4, -1, -1),
    ("int64", 0, 4, -1, -1),
    ("int16", 0, 4, -1, -1),
    ("string", 0, 4, -1, -1),
)

RESPONSE: Layout = (
    AddOffsetsToTxnResponse,
    ("int32", 0, 4, -1, -1),
    ("int16", 0, 4, -1, -1),
)
