"""From a frame to its handler, and from the handler's answer to the frame that goes back.

A request that cannot be answered, since its version or its bytes are unknown, closes its
connection, as in Apache Kafka; ApiVersions of any version is answered.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from stratalog.broker.connection import Connection
from stratalog.broker.foreign_protocols import foreign_protocol
from stratalog.broker.metrics import Metrics
from stratalog.broker.requests import Encoded, Handler, Request
from stratalog.errors import ProtocolError, StratalogError, UnsupportedVersionError
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.api_versions import encode_too_new
from stratalog.protocol.codec import (
    decode_request,
    decode_request_header,
    encode_response,
    frame_response_body,
)

# What is decoded takes up to fifty times the bytes of a request that was made for it, and time with
# the loop. None but Produce has a reason to be larger than this, and SyncGroup, in which a leader
# says everything to all members at once.
REQUEST_WITHOUT_RECORDS_MAX_BYTES = 2 << 20
SYNC_GROUP_MAX_BYTES = 8 << 20


class Quotas(Protocol):
    """How long a client has to keep still after a request, by what it has used."""

    def throttle_ms(self, request: Request, size_bytes: int) -> int: ...


class NoQuotas:
    def throttle_ms(self, request: Request, size_bytes: int) -> int:
        return 0


class Client:
    """The answering side of one connection."""

    __slots__ = ("_dispatcher", "_metrics", "_quotas", "connection", "host")

    def __init__(
        self, dispatcher: "Dispatcher", connection: Connection, quotas: Quotas | None
    ) -> None:
        self._dispatcher = dispatcher
        self._metrics = dispatcher.metrics
        self._quotas = quotas
        self.connection = connection
        self.host: str = f"/{connection.peer[0]}"

    def answer(self, request: Request, response: Any) -> None:
        """``None``: the request has no answer."""
        connection = self.connection
        if connection.is_closed:
            return
        if response is not None and self._quotas is not None:
            response = self._throttled(request, response)
        key, version = request.api_key, request.api_version
        try:
            if response is None:
                parts: Any = ()
            elif type(response) is Encoded:
                parts = frame_response_body(key, version, request.correlation_id, response.body)
            else:
                parts = encode_response(key, version, request.correlation_id, response)
        except StratalogError as error:
            self._dispatcher.failed(connection, error)
            connection.close()
            return
        duration_ns = time.perf_counter_ns() - request.received_ns
        connection.answer(request, parts)
        # After it is on its way: nobody waits for what is counted.
        self._metrics.request_done(key, duration_ns, getattr(response, "error_code", 0) != 0)

    def _throttled(self, request: Request, response: Any) -> Any:
        assert self._quotas is not None
        throttle_ms = self._quotas.throttle_ms(request, 0)
        if throttle_ms:
            if type(response) is not Encoded:
                response = response._replace(throttle_time_ms=throttle_ms)
            self.connection.mute(throttle_ms)
        return response

    def answer_nothing(self, request: Request) -> None:
        self.answer(request, None)

    def close_for(self, request: Request, reason: str) -> None:
        self._dispatcher.failed(self.connection, ProtocolError("request", -1, -1, reason))
        self.connection.close()


class Dispatcher:
    """The ``FrameHandler`` of all connections. ``report`` is told of what closes a connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handlers: Mapping[ApiKey, Handler],
        metrics: Metrics,
        *,
        max_frame_bytes: int,
        report: Callable[[str, Exception], None],
        quotas: Quotas | None = None,
    ) -> None:
        self._loop = loop
        # By API and version.
        self._handlers: dict[tuple[int, int], Handler] = {
            (int(key), version): each
            for key, each in handlers.items()
            for version in range(SUPPORTED[key].lowest, SUPPORTED[key].highest + 1)
        }
        self.metrics = metrics
        self._max_frame_bytes = max_frame_bytes
        self._report = report
        self._quotas = None if quotas is None or isinstance(quotas, NoQuotas) else quotas
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections: dict[Connection, None] = {}

    # --- connections --------------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        connection.session = Client(self, connection, self._quotas)
        self.connections[connection] = None
        self.metrics.connections += 1
        self.metrics.connections_opened += 1

    def closed(self, connection: Connection) -> None:
        if self.connections.pop(connection, self) is None:
            self.metrics.connections -= 1

    def failed(self, connection: Connection, error: Exception) -> None:
        self.metrics.protocol_errors += 1
        self._report(f"{connection.peer[0]}:{connection.peer[1]}", error)

    def check(self, api_key: int, size_bytes: int) -> None:
        if foreign := foreign_protocol(size_bytes):
            raise foreign
        limit = self._max_frame_bytes
        if api_key > ApiKey.PRODUCE:
            is_sync = api_key == ApiKey.SYNC_GROUP
            without = SYNC_GROUP_MAX_BYTES if is_sync else REQUEST_WITHOUT_RECORDS_MAX_BYTES
            limit = min(limit, without)
        if not 0 <= size_bytes <= limit:
            raise ProtocolError(
                "request", -1, 0, f"it claims {size_bytes} bytes; at most {limit} are read"
            )

    # --- requests -----------------------------------------------------------------------------

    def handle(self, connection: Connection, frame: memoryview) -> None:
        (key, version, correlation_id, client_id), position = decode_request_header(frame)
        request = Request(
            key,
            version,
            correlation_id,
            client_id or "",
            None,
            connection.session,
            time.perf_counter_ns(),
            key == 0,
        )
        connection.expect(request)
        handler = self._handlers.get((key, version))
        if handler is None:
            self._refuse_version(connection, request)
            return
        request.body = decode_request(key, version, frame, position)
        result = handler(request)
        if result is None:
            return
        if isinstance(result, Coroutine):
            task = self._loop.create_task(self._finish(connection, request, result))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            request.respond(result)

    def _refuse_version(self, connection: Connection, request: Request) -> None:
        if request.api_key == ApiKey.API_VERSIONS:
            self.metrics.request_done(request.api_key, 0, True)
            connection.answer(request, encode_too_new(request.correlation_id))  # type: ignore[arg-type]
            return
        raise UnsupportedVersionError(f"api key {request.api_key} request", request.api_version)

    async def _finish(
        self, connection: Connection, request: Request, work: Coroutine[Any, Any, Any]
    ) -> None:
        try:
            response = await work
        except Exception as error:  # noqa: BLE001 - one client's trouble is not the others'
            self.failed(connection, error)
            connection.close()
            return
        if response is not None:
            request.respond(response)
