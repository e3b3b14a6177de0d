"""SaslAuthenticate (key 36), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from stratalog.protocol.wire import (
    STRING_BYTES_MAX,
    long_length,
    long_string_length,
    null_field,
    skip_tags,
    string_too_long,
    too_long,
    varint,
)

new = tuple.__new__


class SaslAuthenticateRequest(NamedTuple):
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(NamedTuple):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_pack_qx = Struct(">qx").pack
_unpack_hB = Struct(">hB").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qB = Struct(">qB").unpack_from


def _decode_request_v0(buffer: bytes, position: int) -> SaslAuthenticateRequest:
    end = len(buffer)
    (size,) = _unpack_i(buffer, position)
    position += 4
    if size < 0:
        raise null_field("auth_bytes")
    stop = position + size
    if stop > end:
        raise too_long("auth_bytes", stop - position, position, end)
    auth_bytes = buffer[position:stop]
    position = stop
    return new(SaslAuthenticateRequest, (auth_bytes,))


def _decode_request_v2(buffer: bytes, position: int) -> SaslAuthenticateRequest:
    end = len(buffer)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_length(buffer, position - 1)
    if not size:
        raise null_field("auth_bytes")
    stop = position + size - 1
    if stop > end:
        raise too_long("auth_bytes", stop - position, position, end)
    auth_bytes = buffer[position:stop]
    position = stop
    tags = buffer[position]
    position += 1
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(SaslAuthenticateRequest, (auth_bytes,))


def _encode_request_v0(value: Any) -> bytearray:
    out = bytearray()
    (auth_bytes,) = value
    out += _pack_i(len(auth_bytes))
    out += auth_bytes
    return out


def _encode_request_v2(value: Any) -> bytearray:
    out = bytearray()
    (auth_bytes,) = value
    size = len(auth_bytes) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += auth_bytes
    out.append(0)
    return out


def _decode_response_v0(buffer: bytes, position: int) -> SaslAuthenticateResponse:
    end = len(buffer)
    error_code, size = _unpack_hh(buffer, position)
    position += 4
    error_message: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    (size,) = _unpack_i(buffer, position)
    position += 4
    if size < 0:
        raise null_field("auth_bytes")
    stop = position + size
    if stop > end:
        raise too_long("auth_bytes", stop - position, position, end)
    auth_bytes = buffer[position:stop]
    position = stop
    return new(SaslAuthenticateResponse, (error_code, error_message, auth_bytes, 0))


def _decode_response_v1(buffer: bytes, position: int) -> SaslAuthenticateResponse:
    end = len(buffer)
    error_code, size = _unpack_hh(buffer, position)
    position += 4
    error_message: str | None = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    (size,) = _unpack_i(buffer, position)
    position += 4
    if size < 0:
        raise null_field("auth_bytes")
    stop = position + size
    if stop > end:
        raise too_long("auth_bytes", stop - position, position, end)
    auth_bytes = buffer[position:stop]
    position = stop
    (session_lifetime_ms,) = _unpack_q(buffer, position)
    position += 8
    return new(
        SaslAuthenticateResponse, (error_code, error_message, auth_bytes, session_lifetime_ms)
    )


def _decode_response_v2(buffer: bytes, position: int) -> SaslAuthenticateResponse:
    end = len(buffer)
    error_code, size = _unpack_hB(buffer, position)
    position += 3
    if size > 127:
        size, position = long_string_length(buffer, position - 1)
    error_message: str | None = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise too_long("error_message", stop - position, position, end)
        error_message = str(buffer[position:stop], "utf-8", "replace")
        position = stop
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_length(buffer, position - 1)
    if not size:
        raise null_field("auth_bytes")
    stop = position + size - 1
    if stop > end:
        raise too_long("auth_bytes", stop - position, position, end)
    auth_bytes = buffer[position:stop]
    position = stop
    session_lifetime_ms, tags = _unpack_qB(buffer, position)
    position += 9
    if tags:
        position = skip_tags(buffer, position - 1)
    return new(
        SaslAuthenticateResponse, (error_code, error_message, auth_bytes, session_lifetime_ms)
    )


def _encode_response_v0(value: Any) -> bytearray:
    out = bytearray()
    error_code, error_message, auth_bytes, _ = value
    raw = b"" if error_message is None else error_message.encode()
    out += _pack_hh(error_code, -1 if error_message is None else len(raw))
    out += raw
    out += _pack_i(len(auth_bytes))
    out += auth_bytes
    return out


def _encode_response_v1(value: Any) -> bytearray:
    out = bytearray()
    error_code, error_message, auth_bytes, session_lifetime_ms = value
    raw = b"" if error_message is None else error_message.encode()
    out += _pack_hh(error_code, -1 if error_message is None else len(raw))
    out += raw
    out += _pack_i(len(auth_bytes))
    out += auth_bytes
    out += _pack_q(session_lifetime_ms)
    return out


def _encode_response_v2(value: Any) -> bytearray:
    out = bytearray()
    error_code, error_message, auth_bytes, session_lifetime_ms = value
    out += _pack_h(error_code)
    if error_message is None:
        out.append(0)
    else:
        raw = error_message.encode()
        if len(raw) > STRING_BYTES_MAX:
            raise string_too_long("error_message", len(raw))
        size = len(raw) + 1
        if size < 128:
            out.append(size)
        else:
            out += varint(size)
        out += raw
    size = len(auth_bytes) + 1
    if size < 128:
        out.append(size)
    else:
        out += varint(size)
    out += auth_bytes
    out += _pack_qx(session_lifetime_ms)
    return out


DECODE_REQUEST: dict[int, Callable[[bytes, int], SaslAuthenticateRequest]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}

ENCODE_REQUEST: dict[int, Callable[[SaslAuthenticateRequest], bytearray]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}

DECODE_RESPONSE: dict[int, Callable[[bytes, int], SaslAuthenticateResponse]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
}

ENCODE_RESPONSE: dict[int, Callable[[SaslAuthenticateResponse], bytearray]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
}
