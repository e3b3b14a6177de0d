"""SaslAuthenticate (key 36), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import NamedTuple

from stratalog.protocol.wire import Layout


class SaslAuthenticateRequest(NamedTuple):
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


REQUEST: Layout = (
    SaslAuthenticateRequest,
    ("bytes", 0, 2, -1, -1),
)

RESPONSE: Layout = (
    SaslAuthenticateResponse,
    ("int16", 0, 2, -1, -1),
    ("string", 0, 2, 0, -1),
    ("bytes", 0, 2, -1, -1),
    ("int64", 1, 2, -1, -1),
)
