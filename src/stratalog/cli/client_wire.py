"""Requests of our own over a plain socket, for the few things that librdkafka cannot ask.

It cannot tell quickly that nobody answers, and of a config it keeps one synonym a name only.
One request at a time; what answers may be anything, so its lengths are not believed.
"""

import socket
from typing import Any, Self

WAIT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
_ANSWER_BYTES_MAX = 64 << 20
_NO_KAFKA = "what answers there does not speak Kafka's protocol"


class Wire:
    """A connection to one broker that has answered at least once. Failures are OSErrors."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    @classmethod
    def open(cls, host: str, port: int, wait_seconds: float | None = None) -> Self:
        from stratalog.protocol.api import ApiKey
        from stratalog.protocol.messages.api_versions import ApiVersionsRequest

        wire = cls(
            socket.create_connection(
                (host, port), timeout=WAIT_SECONDS if wait_seconds is None else wait_seconds
            )
        )
        try:
            wire.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            wire._channel.settimeout(_ANSWER_SECONDS)
        except BaseException:
            wire.close()
            raise
        return wire

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    @property
    def is_local(self) -> bool:
        """Whether the broker is on this host."""
        return bool(self._channel.getsockname()[0] == self._channel.getpeername()[0])

    def ask(self, api_key: int, version: int, request: Any) -> Any:
        """The body of the answer to one request."""
        from stratalog.errors import ProtocolError
        from stratalog.protocol.codec import decode_response, encode_request

        for part in encode_request(api_key, version, 1, "stratalog", request):
            self._channel.sendall(part)  # type: ignore[arg-type]
        size_bytes = int.from_bytes(self._receive(4))
        if size_bytes > _ANSWER_BYTES_MAX:
            raise OSError(0, _NO_KAFKA)
        try:
            _, answer = decode_response(api_key, version, self._receive(size_bytes))
        except ProtocolError as error:
            raise OSError(0, _NO_KAFKA) from error
        return answer

    def _receive(self, size_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < size_bytes:
            try:
                chunk = self._channel.recv(min(size_bytes - len(received), 1 << 20))
            except TimeoutError:
                seconds = self._channel.gettimeout() or 0
                raise OSError(0, f"no answer within {seconds:g} s") from None
            if not chunk:
                raise OSError(0, "the connection was closed without an answer")
            received += chunk
        return bytes(received)
