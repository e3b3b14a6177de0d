"""SaslHandshake (key 17), versions 0 to 1.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class SaslHandshakeRequest(NamedTuple):
    mechanism: str = ""


class SaslHandshakeResponse(NamedTuple):
    error_code: int = 0
    mechanisms: Sequence[str] = ()


REQUEST: Layout = (
    SaslHandshakeRequest,
    ("string", 0, 1, -1, -1),
)

RESPONSE: Layout = (
    SaslHandshakeResponse,
    ("int16", 0, 1, -1, -1),
    ("[]string", 0, 1, -1, -1),
)
