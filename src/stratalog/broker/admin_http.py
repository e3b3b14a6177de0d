"""uvicorn's HTTP protocol on a socket of ours, without uvicorn's server.

That server wakes up ten times a second and takes over signals; what the admin port needs of it is
the protocol alone. Connections are few and bounded. One that says nothing is closed after a while,
and at once if another one comes and there is no room: the one that is silent for longest.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from stratalog.broker.admin_app import AdminPages, admin_app
from stratalog.broker.admin_guard import AdminGuard
from stratalog.broker.services import Services

CONNECTIONS_MAX: Final = 64
SILENCE_SECONDS_MAX: Final = 10
HEADER_BYTES_MAX: Final = 16 << 10


class AdminHttp:
    def __init__(
        self,
        services: Services,
        guard: AdminGuard,
        is_ready: Callable[[], bool],
        shutdown: Callable[[], None] | None,
    ) -> None:
        self._loop = services.loop
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._silent: dict[_AdminProtocol, None] = {}
        pages = AdminPages(services=services, is_ready=is_ready, shutdown=shutdown)
        self._config = Config(
            admin_app(pages, guard),
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=SILENCE_SECONDS_MAX,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        self._config.load()

    async def start(self, listening: socket.socket) -> None:
        self._server = await self._loop.create_server(
            lambda: _AdminProtocol(self._config, self._state, {}, self._loop, silent=self._silent),
            sock=listening,
        )

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


class _AdminProtocol(H11Protocol):
    """Closes who does not get to the end of a request's head in time, or is one too many.

    ``silent`` has those of which a request is expected, the one that is silent for longest first.
    """

    _silence: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, silent: "dict[_AdminProtocol, None]") -> None:
        super().__init__(*given)
        self._all_silent = silent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX and not self._make_room():
            transport.abort()
        else:
            self._expect_request()

    def _make_room(self) -> bool:
        for each in self._all_silent:
            if each.is_silent:
                each.end()
                return True
        return False

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered; one that is has a time limit of its own."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        """Close, and count no more: the transport tells of it only in the loop's next turn."""
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def on_response_complete(self) -> None:
        self._expect_request()
        super().on_response_complete()

    def _expect_request(self) -> None:
        self._stop_waiting()
        self._all_silent[self] = None
        self._silence = self.loop.call_later(SILENCE_SECONDS_MAX, self._close_silent)

    def _close_silent(self) -> None:
        if self.is_silent:
            self.transport.abort()

    def _stop_waiting(self) -> None:
        self._all_silent.pop(self, None)
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
