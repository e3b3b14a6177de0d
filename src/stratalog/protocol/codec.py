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

from collections.abc import Sized
from importlib import import_module
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from stratalog.errors import UnsupportedVersionError
from stratalog.protocol.api import FIRST_FLEXIBLE, ApiKey, is_supported
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.index import CODECS
from stratalog.records._kernels import MessageCodec, MessageCodecs, RequestHeaders

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


def decode_request_header(frame: Frame) -> tuple[RequestHeader, int]:
    """The header, and where the body begins.

    A version that is not supported is no error here, since a broker has to answer an ApiVersions
    request of any version; of such a request only the header up to the client id is read.
    """
    return _headers.decode(frame)


def decode_request(api_key: int, version: int, frame: Frame, position: int = 0) -> Any:
    """The body of a request, which starts at ``position``; bytes after it are passed over."""
    return _requests.decode(api_key, version, frame, position)


def encode_response(api_key: int, version: int, correlation_id: int, response: Any) -> Buffers:
    """A response as a frame, its size included."""
    return _responses.encode_response(api_key, version, correlation_id, response)


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
