"""DescribeUserScramCredentials (key 50), versions 0 to 0.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class UserName(NamedTuple):
    name: str = ""


class DescribeUserScramCredentialsRequest(NamedTuple):
    users: Sequence[UserName] | None = ()


class CredentialInfo(NamedTuple):
    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(NamedTuple):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: Sequence[CredentialInfo] = ()


class DescribeUserScramCredentialsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: Sequence[DescribeUserScramCredentialsResult] = ()


_LAYOUT_UserName: Layout = (
    UserName,
    ("string", 0, 0, -1, -1),
)

REQUEST: Layout = (
    DescribeUserScramCredentialsRequest,
    ("[]struct", 0, 0, 0, -1, _LAYOUT_UserName),
)

_LAYOUT_CredentialInfo: Layout = (
    CredentialInfo,
    ("int8", 0, 0, -1, -1),
    ("int32", 0, 0, -1, -1),
)

_LAYOUT_DescribeUserScramCredentialsResult: Layout = (
    DescribeUserScramCredentialsResult,
    ("string", 0, 0, -1, -1),
    ("int16", 0, 0, -1, -1),
    ("string", 0, 0, 0, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_CredentialInfo),
)

RESPONSE: Layout = (
    DescribeUserScramCredentialsResponse,
    ("int32", 0, 0, -1, -1),
    ("int16", 0, 0, -1, -1),
    ("string", 0, 0, 0, -1),
    ("[]struct", 0, 0, -1, -1, _LAYOUT_DescribeUserScramCredentialsResult),
)
