"""Frames to values and back, for any API and version.

A frame, without the four bytes of its size, is a header and a body:

    request   api key int16 | api version int16 | correlation id int32 | client id nullable string
              | tags, if the version is flexible
    response  correlation id int32 | tags, if the version is flexible and the API not ApiVersions

The client id is never compact. Encoders return a whole frame with its size, as a list of
buffers: one unless the message carries records, which are then in the list as they were given.
Decoders give records as views of the frame, so a frame that is a view of a receive buffer must
outlive them; everything else is copied out.

The work is done by the compiled module, which follows the layout of a message (``wire``); here is
which layout that is. An API's module is imported, and its layout made ready, when its first
message is seen: all of them take longer than a broker may take to start.
"""

from collections.abc import Callable, Sized
from importlib import import_module
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from stratalog.errors import UnsupportedVersionError
from stratalog.protocol.api import FIRST_FLEXIBLE, ApiKey, is_supported
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.index import CODECS
from stratalog.records._kernels import MessageCodec, MessageCodecs, RequestHeaders

# Topics, partitions, groups and so on that one request may name, in all its arrays together: each
# takes up to fifty times its bytes, and then some microseconds' work.
ELEMENTS_MAX: Final = 50_000

Frame: TypeAlias = bytes | bytearray | memoryview
Buffers: TypeAlias = list[Sized]


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def _load_request(api_key: int, version: int) -> MessageCodec:
    return _load("request", api_key, version)


def _load_response(api_key: int, version: int) -> MessageCodec:
    return _load("response", api_key, version)


def _load(side: str, api_key: int, version: int) -> MessageCodec:
    known = CODECS.get(api_key)
    name = f"{known.module if known else f'api key {api_key}'} {side}"
    if known is None or not is_supported(api_key, version):
        raise UnsupportedVersionError(name, version)
    module = import_module(f"stratalog.protocol.messages.{known.module}")
    is_flexible = version >= FIRST_FLEXIBLE[api_key]
    return MessageCodec(
        name,
        getattr(module, side.upper()),
        version,
        is_flexible=is_flexible,
        api_key=api_key,
        is_header_flexible=is_flexible and (side == "request" or _has_tags_in_header(api_key)),
        # Of the broker that one asked, any answer is taken: it has as many topics as it has.
        elements_max=ELEMENTS_MAX if side == "request" else None,
    )


def _has_tags_in_header(api_key: int) -> bool:
    # The header of ApiVersions stays the oldest: a client reads it before it knows any version.
    return api_key != ApiKey.API_VERSIONS


_headers: Final = RequestHeaders(
    RequestHeader,
    [
        (key, version)
        for key, codecs in CODECS.items()
        for version in range(codecs.lowest_version, codecs.highest_version + 1)
        if version >= FIRST_FLEXIBLE[key]
    ],
)
_requests: Final = MessageCodecs(_load_request)
_responses: Final = MessageCodecs(_load_response)

_unpack_error_code = Struct(">h").unpack_from
_pack_response = Struct(">ii").pack
_pack_flexible_response = Struct(">iix").pack


# --- what a broker needs ---------------------------------------------------------------------


# The compiled functions themselves, for a broker calls each of these once a request.

# The header of a frame, and where the body begins. A version that is not supported is no error
# here, since a broker has to answer an ApiVersions request of any version; of such a request only
# the header up to the client id is read.
decode_request_header: Final[Callable[[Frame], tuple[RequestHeader, int]]] = _headers.decode

# By API, version, frame and position: the body of a request that starts there; bytes after it are
# passed over. One with more than ELEMENTS_MAX elements is refused before those are made.
decode_request: Final[Callable[[int, int, Frame, int], Any]] = _requests.decode

# By API, version, correlation id and response: a frame, its size included.
encode_response: Final[Callable[[int, int, int, Any], Buffers]] = _responses.encode_response


def encode_response_body(api_key: int, version: int, response: Any) -> bytes:
    """The part of a response without records that is the same for whoever asks the same."""
    return _responses.encode(api_key, version, response)


def frame_response_body(api_key: int, version: int, correlation_id: int, body: bytes) -> Buffers:
    """A response as a frame, from a body that was encoded before."""
    if version >= FIRST_FLEXIBLE[api_key] and _has_tags_in_header(api_key):
        return [_pack_flexible_response(len(body) + 5, correlation_id), body]
    return [_pack_response(len(body) + 4, correlation_id), body]


# --- what a client needs ---------------------------------------------------------------------


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, request: Any
) -> Buffers:
    """A request as a frame, its size included."""
    return _requests.encode_request(api_key, version, correlation_id, client_id, request)


def decode_response(api_key: int, version: int, frame: Frame) -> tuple[int, Any]:
    """The correlation id and the body of a response to a request of that API and version."""
    if api_key == ApiKey.API_VERSIONS and len(frame) >= 6:
        # Whoever does not know the version asked for says so in version 0.
        is_too_new = _unpack_error_code(frame, 4)[0] == ErrorCode.UNSUPPORTED_VERSION
        version = 0 if is_too_new else version
    return _responses.decode_response(api_key, version, frame)
