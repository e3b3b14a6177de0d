"""What is special about ApiVersions: a client asks it before it knows which versions there are.

Its response header never has tags, and a request of a version that is too new is answered all
the same: with a body of version 0, error UNSUPPORTED_VERSION and the range of ApiVersions alone,
after which the client asks again within that range. Closing the connection instead would look to
some clients like a broker that speaks TLS.
"""

from collections.abc import Iterable

from stratalog.protocol.api import ADVERTISED, ApiKey
from stratalog.protocol.codec import Buffers, encode_response
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse


def advertised(served: Iterable[ApiKey]) -> tuple[ApiVersion, ...]:
    """The entries of an ApiVersions response of a broker that serves these APIs, by key."""
    return tuple(
        ApiVersion(key, ADVERTISED[key].lowest, ADVERTISED[key].highest) for key in sorted(served)
    )


def encode_too_new(correlation_id: int) -> Buffers:
    """The answer to an ApiVersions request of a version that is not supported."""
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=advertised([ApiKey.API_VERSIONS])
    )
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, response)
