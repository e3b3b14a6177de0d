"""ListTransactions (key 66), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class ListTransactionsRequest(NamedTuple):
    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[int] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class TransactionState(NamedTuple):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


class ListTransactionsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[TransactionState] = ()


REQUEST: Layout = (
    ListTransactionsRequest,
    ("[]string", 0, 2, -1, -1),
    ("[]int64", 0, 2, -1, -1),
    ("int64", 1, 2, -1, -1),
    ("string", 2, 2, 2, -1),
)

_LAYOUT_TransactionState: Layout = (
    TransactionState,
    ("string", 0, 2, -1, -1),
    ("int64", 0, 2, -1, -1),
    ("string", 0, 2, -1, -1),
)

RESPONSE: Layout = (
    ListTransactionsResponse,
    ("int32", 0, 2, -1, -1),
    ("int16", 0, 2, -1, -1),
    ("[]string", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_TransactionState),
)
