"""The admin port: HTTP for watching a broker, on loopback, inside the broker's own loop.

A listening socket is all there is until somebody connects. Then Starlette, uvicorn's HTTP protocol
and Prometheus' formatter are imported, on a thread of their own: 12 MB and a tenth of a second that
a broker nobody asks never pays. There is no timer: an idle port costs no CPU.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from stratalog.broker.admin_guard import AdminGuard
from stratalog.broker.event_log import log_event
from stratalog.broker.services import Endpoint, Services

if TYPE_CHECKING:
    from stratalog.broker.admin_http import AdminHttp

_BACKLOG = 32
_RETRY_SECONDS = 1


class AdminServer:
    """Made and used on the loop's thread. ``listen`` with port 0 takes a free one."""

    def __init__(
        self,
        services: Services,
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        token: str | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        shutdown: Callable[[], None] | None = None,
    ) -> None:
        self._services = services
        self._listen = listen
        self._guard = AdminGuard(listen[0], token)
        self._is_ready = is_ready
        self._shutdown = shutdown
        self._socket: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._http: AdminHttp | None = None

    async def start(self) -> Endpoint:
        """Listen; returns where. Raises OSError if that cannot be."""
        host, port = self._listen
        # As for clients. The loop's own way would ask a thread, and import tables of Unicode.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setblocking(False)
            listening.bind((host, port))
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            self._socket = None
            raise
        self._services.loop.add_reader(listening.fileno(), self._open)
        return Endpoint(host=host, port=listening.getsockname()[1])

    def _open(self) -> None:
        """The first one knocks; it stays in the backlog until somebody can answer."""
        assert self._socket is not None
        self._retry = None
        self._services.loop.remove_reader(self._socket.fileno())
        self._opening = self._services.loop.create_task(self._serve(self._socket))

    async def _serve(self, listening: socket.socket) -> None:
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="admin-import") as importer:
                make = await self._services.loop.run_in_executor(importer, _import_http)
            self._http = make(self._services, self._guard, self._is_ready, self._shutdown)
            await self._http.start(listening)
        except Exception as error:  # noqa: BLE001 - a broker serves its clients without this port
            log_event("admin_unavailable", reason=f"{type(error).__name__}: {error}")
            if isinstance(error, ModuleNotFoundError):
                listening.close()
                return
            # Descriptors, memory or threads have run out, most likely, and come back: whoever has
            # connected waits in the backlog.
            self._retry = self._services.loop.call_later(_RETRY_SECONDS, self._open)

    async def stop(self) -> None:
        """Nothing is answered any more when this returns."""
        if self._retry is not None:
            self._retry.cancel()
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._opening
        if self._http is not None:
            await self._http.stop()
        if self._socket is not None:
            if self._opening is None:
                self._services.loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None


def _import_http() -> "type[AdminHttp]":
    # uvicorn has a word for each request that is none; those who send them are not ours to serve.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    from stratalog.broker.admin_http import AdminHttp

    return AdminHttp
