"""Frames to values and back, for any API and version: the way into the generated codecs.

A frame, without the four bytes of its size, is a header and a body:

    request   api key int16 | api version int16 | correlation id int32 | client id nullable string
              | tags, if the version is flexible
    response  correlation id int32 | tags, if the version is flexible and the API not ApiVersions

The client id is never compact. Encoders return a whole frame with its size, as a list of
buffers: one unless the message carries records, which are then in the list as they were given.
Decoders give records as views of the frame, so a frame that is a view of a receive buffer must
outlive them; everything else is copied out.

An API's module is imported when its first message is seen: all of them take longer to import than
a broker may take to start.
"""

from collections.abc import Callable, Sized
from importlib import import_module
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple, TypeAlias, cast

from stratalog.errors import ProtocolError, UnsupportedVersionError
from stratalog.protocol.api import FIRST_FLEXIBLE, ApiKey, is_supported
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.index import CODECS
from stratalog.protocol.wire import Malformed, skip_tags

Frame: TypeAlias = bytes | bytearray | memoryview
Buffers: TypeAlias = list[Sized]


new = tuple.__new__


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class Decoder(NamedTuple):
    decode: Callable[[Any, int], Any]
    has_records: bool


class Encoder(NamedTuple):
    encode: Callable[[Any], Any]
    has_records: bool
    is_header_flexible: bool


_request_decoders: Final[dict[tuple[int, int], Decoder]] = {}
_request_encoders: Final[dict[tuple[int, int], Encoder]] = {}
_response_decoders: Final[dict[tuple[int, int], Decoder]] = {}
_response_encoders: Final[dict[tuple[int, int], Encoder]] = {}

_is_request_flexible: Final[dict[tuple[int, int], bool]] = {
    (key, version): version >= FIRST_FLEXIBLE[key]
    for key, codecs in CODECS.items()
    for version in range(codecs.lowest_version, codecs.highest_version + 1)
}

_unpack_request = Struct(">hhih").unpack_from
_unpack_response = Struct(">i").unpack_from
_pack_request = Struct(">ihhih").pack
_pack_response = Struct(">ii").pack
_pack_flexible_response = Struct(">iix").pack
_unpack_error_code = Struct(">h").unpack_from


# --- what a broker needs ---------------------------------------------------------------------


def decode_request_header(frame: Frame) -> tuple[RequestHeader, int]:
    """The header, and where the body begins.

    A version that is not supported is no error here, since a broker has to answer an ApiVersions
    request of any version; of such a request only the header up to the client id is read.
    """
    try:
        return _request_header(frame)
    except (Malformed, StructError, IndexError) as error:
        raise _refused(error, "request header", -1) from None


def _request_header(frame: Frame) -> tuple[RequestHeader, int]:
    api_key, version, correlation_id, size = _unpack_request(frame, 0)
    position = 10
    client_id = None
    if size >= 0:
        position += size
        if position > len(frame):
            raise Malformed(f"client_id claims {size} bytes where {len(frame) - 10} are left")
        client_id = str(frame[10:position], "utf-8", "replace")
    header = new(RequestHeader, (api_key, version, correlation_id, client_id))
    if _is_request_flexible.get((api_key, version)):
        tags = frame[position]
        position += 1
        if tags:
            position = skip_tags(memoryview(frame), position - 1)
    return header, position


def decode_request(api_key: int, version: int, frame: Frame, position: int = 0) -> Any:
    """The body of a request, which starts at ``position``; bytes after it are passed over."""
    found = _request_decoders.get((api_key, version))
    if found is None:
        found = _load_decoder("request", api_key, version)
    decode, has_records = found
    try:
        # Plain bytes are quicker to read; only what carries records is worth not copying.
        return decode(memoryview(frame) if has_records else bytes(frame), position)
    except (Malformed, StructError, IndexError) as error:
        raise _refused(error, _name("request", api_key), version) from None


def encode_response(api_key: int, version: int, correlation_id: int, response: Any) -> Buffers:
    """A response as a frame, its size included."""
    found = _response_encoders.get((api_key, version))
    if found is None:
        found = _load_encoder("response", api_key, version)
    encode, has_records, is_header_flexible = found
    try:
        body = encode(response)
    except (Malformed, StructError) as error:
        raise ProtocolError(_name("response", api_key), version, -1, str(error)) from None
    size = sum(map(len, body)) if has_records else len(body)
    if is_header_flexible:
        head = _pack_flexible_response(size + 5, correlation_id)
    else:
        head = _pack_response(size + 4, correlation_id)
    if not has_records:
        return [head + body]
    body[0] = head + body[0]
    if not body[-1]:
        body.pop()  # nothing follows the last records: no call to send it
    return cast(Buffers, body)


def encode_response_body(api_key: int, version: int, response: Any) -> bytes:
    """The part of a response without records that is the same for whoever asks the same."""
    head_bytes = 4 + (5 if _is_header_flexible("response", api_key, version) else 4)
    (frame,) = encode_response(api_key, version, 0, response)
    return bytes(cast(Any, frame)[head_bytes:])


def frame_response_body(api_key: int, version: int, correlation_id: int, body: bytes) -> Buffers:
    """A response as a frame, from a body that was encoded before."""
    is_flexible = _is_header_flexible("response", api_key, version)
    pack = _pack_flexible_response if is_flexible else _pack_response
    return [pack(len(body) + (5 if is_flexible else 4), correlation_id), body]


# --- what a client needs ---------------------------------------------------------------------


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, request: Any
) -> Buffers:
    """A request as a frame, its size included."""
    found = _request_encoders.get((api_key, version))
    if found is None:
        found = _load_encoder("request", api_key, version)
    encode, has_records, is_header_flexible = found
    raw = b"" if client_id is None else client_id.encode()
    tail = raw + b"\0" if is_header_flexible else raw
    try:
        body = encode(request) if has_records else [encode(request)]
        size = sum(map(len, body)) + len(tail) + 10
        id_size = -1 if client_id is None else len(raw)
        head = _pack_request(size, api_key, version, correlation_id, id_size)
    except (Malformed, StructError) as error:
        raise ProtocolError(_name("request", api_key), version, -1, str(error)) from None
    body[0] = head + tail + body[0]
    return cast(Buffers, body)


def decode_response(api_key: int, version: int, frame: Frame) -> tuple[int, Any]:
    """The correlation id and the body of a response to a request of that API and version."""
    try:
        (correlation_id,) = _unpack_response(frame, 0)
        position = 4
        if api_key == ApiKey.API_VERSIONS:
            # Whoever does not know the version asked for says so in version 0.
            is_too_new = _unpack_error_code(frame, position)[0] == ErrorCode.UNSUPPORTED_VERSION
            version = 0 if is_too_new else version
        elif _is_request_flexible.get((api_key, version)):
            position = skip_tags(memoryview(frame), position)
    except (Malformed, StructError, IndexError) as error:
        raise _refused(error, _name("response", api_key), version) from None
    found = _response_decoders.get((api_key, version))
    if found is None:
        found = _load_decoder("response", api_key, version)
    decode, has_records = found
    try:
        body = decode(memoryview(frame) if has_records else bytes(frame), position)
    except (Malformed, StructError, IndexError) as error:
        raise _refused(error, _name("response", api_key), version) from None
    return correlation_id, body


# --- both ------------------------------------------------------------------------------------


def _load_decoder(side: str, api_key: int, version: int) -> Decoder:
    module = _module(side, api_key, version)
    decode = getattr(module, f"DECODE_{side.upper()}")[version]
    found = Decoder(decode, decode.__annotations__["buffer"] is memoryview)
    known = _request_decoders if side == "request" else _response_decoders
    known[api_key, version] = found
    return found


def _load_encoder(side: str, api_key: int, version: int) -> Encoder:
    module = _module(side, api_key, version)
    encode = getattr(module, f"ENCODE_{side.upper()}")[version]
    is_flexible = _is_header_flexible(side, api_key, version)
    found = Encoder(encode, encode.__annotations__["return"] is not bytearray, is_flexible)
    known = _request_encoders if side == "request" else _response_encoders
    known[api_key, version] = found
    return found


def _is_header_flexible(side: str, api_key: int, version: int) -> bool:
    if side == "response" and api_key == ApiKey.API_VERSIONS:
        # Its header stays the oldest, since a client reads it before it knows any version.
        return False
    return version >= FIRST_FLEXIBLE[api_key]


def _module(side: str, api_key: int, version: int) -> Any:
    if not is_supported(api_key, version):
        raise UnsupportedVersionError(_name(side, api_key), version)
    return import_module(f"stratalog.protocol.messages.{CODECS[api_key].module}")


def _name(side: str, api_key: int) -> str:
    known = CODECS.get(api_key)
    return f"{known.module if known else f'api key {api_key}'} {side}"


def _refused(error: Exception, api: str, version: int) -> ProtocolError:
    reason = str(error) if isinstance(error, Malformed) else "it ends in the middle"
    position = _failed_position(error)
    # Whoever keeps the ProtocolError would otherwise keep all that was decoded before it.
    error.__traceback__ = None
    return ProtocolError(api, version, position, reason)


def _failed_position(error: Exception) -> int:
    """Where decoding stopped, from the frames that raised: so that success need not keep track."""
    position = -1
    assert error.__traceback__ is not None, "only errors that were raised come here"
    # The first frame is the one that caught it: asking it for its locals would tie it to them.
    traceback = error.__traceback__.tb_next
    while traceback is not None:
        position = traceback.tb_frame.f_locals.get("position", position)
        traceback = traceback.tb_next
    return position
