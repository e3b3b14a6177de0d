"""Accepts connections, within the limits on their number, and lets go of idle ones."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter

from stratalog.broker.connection import Connection, Shared
from stratalog.broker.dispatcher import Dispatcher
from stratalog.broker.event_log import log_event
from stratalog.config import BrokerConfig
from stratalog.config.listeners import Listener, format_address
from stratalog.errors import ConfigError
from stratalog.storage.handles import open_files_max

SWEEP_MS = 5_000
_ACCEPTS_A_TURN = 64
_RETRY_SECONDS = 0.1
# Every Linux has it, and it lets whoever sends do so as fast as the reader takes it.
_UNPACED = b"reno"


def bind(listener: Listener) -> socket.socket:
    """A socket with the listener's address; a sentence if another has it. Until ``listen``, whoever
    connects is refused, and so knows at once that nobody answers yet."""
    host = listener.host or "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, listener.port))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise _not_listened_on(listener, error) from error
    return sock


def listen(sock: socket.socket, listener: Listener, backlog: int) -> None:
    """From now on clients connect."""
    try:
        sock.listen(backlog)
    except OSError as error:
        raise _not_listened_on(listener, error) from error


def _not_listened_on(listener: Listener, error: OSError) -> ConfigError:
    reason = f"cannot be listened on: {error.strerror or error}"
    return ConfigError("listeners", str(listener), reason)


class Acceptor:
    """Confined to the loop."""

    def __init__(
        self,
        shared: Shared,
        dispatcher: Dispatcher,
        sock: socket.socket,
        config: BrokerConfig,
        now_ms: Callable[[], int],
    ) -> None:
        self._shared = shared
        self._dispatcher = dispatcher
        self._socket = sock
        self._config = config
        self._now_ms = now_ms
        self._per_host: Counter[str] = Counter()
        self._retry: asyncio.TimerHandle | None = None
        # The other half is for logs: whoever only connects must not stop those who write.
        limit = open_files_max()
        self._descriptors_max = config.max_connections if limit is None else limit // 2
        shared.loop.add_reader(sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            try:
                sock, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except (OSError, MemoryError) as error:
                # Out of descriptors, most likely: the next ones wait until others have gone.
                self._shared.loop.remove_reader(self._socket.fileno())
                self._accept_later(error)
                return
            self._take(sock, peer[0])

    def _accept_later(self, error: OSError | MemoryError) -> None:
        log_event("accept_failed", reason=getattr(error, "strerror", None) or repr(error))
        self._retry = self._shared.loop.call_later(_RETRY_SECONDS, self._accept_again)

    def _accept_again(self) -> None:
        self._retry = None
        try:
            self._shared.loop.add_reader(self._socket.fileno(), self._accept)
        except OSError as error:
            self._accept_later(error)

    def _accept_no_more(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        with suppress(OSError, ValueError):
            self._shared.loop.remove_reader(self._socket.fileno())

    def _take(self, sock: socket.socket, host: str) -> None:
        config = self._config
        connections = self._dispatcher.connections
        if len(connections) >= config.max_connections:
            self._refuse(sock, host, f"max.connections={config.max_connections}")
            return
        if len(connections) >= self._descriptors_max:
            rule = f"{len(connections)} connections are half of the files this process may open"
            self._refuse(sock, host, rule)
            return
        if self._per_host[host] >= config.max_connections_per_ip:
            self._refuse(sock, host, f"max.connections.per.ip={config.max_connections_per_ip}")
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            do_not_pace_within(sock)
            connection = Connection(self._shared, sock, self._now_ms())
        except (OSError, MemoryError):
            sock.close()  # it has gone again already, or there is nothing left to serve it with
            return
        self._per_host[host] += 1
        connection.on_close = lambda: self._forget(host)
        self._dispatcher.opened(connection)

    def _refuse(self, sock: socket.socket, host: str, rule: str) -> None:
        sock.close()
        self._dispatcher.metrics.connections_refused += 1
        log_event("connection_refused", client=host, reason=rule)

    def _forget(self, host: str) -> None:
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    def sweep(self, now_ms: int) -> None:
        """Close who has gone, has been idle for too long, or keeps what others need."""
        idle_since_ms = now_ms - self._config.connections_max_idle_ms
        memory = self._shared.memory
        stalled = []
        for connection in list(self._dispatcher.connections):
            if connection.was_active:
                connection.was_active = False
                connection.active_ms = now_ms
            is_idle = connection.active_ms < idle_since_ms and not connection.is_waiting
            if is_idle or connection.has_gone():
                connection.close()
            elif memory.is_short and connection.is_stalled(now_ms):
                stalled.append(connection)
        kept = attrgetter("kept_files" if memory.are_files_short else "kept_bytes")
        for connection in sorted(stalled, key=kept, reverse=True):
            if memory.is_short:
                peer = format_address(*connection.peer[:2])
                keeps = f"{connection.kept_bytes} bytes and {connection.kept_files} files"
                reason = f"it keeps {keeps} and does not go on"
                log_event("client_disconnected", client=peer, reason=reason)
                connection.close()

    def retire(self) -> None:
        """Accept nobody, and take no more requests."""
        self._accept_no_more()
        for connection in list(self._dispatcher.connections):
            connection.retire()

    def stop(self) -> None:
        self._accept_no_more()
        self._socket.close()
        for connection in list(self._dispatcher.connections):
            connection.close()


def do_not_pace_within(sock: socket.socket) -> None:
    """Where both ends have one address, nothing leaves this machine and no network can be
    congested. Some machines are set to pace what they send (bbr): there a timer for every 64 KB was
    up to a third of the CPU of a fetch. Connections to elsewhere stay as the machine is set."""
    if sock.getsockname()[0] == sock.getpeername()[0]:
        with suppress(OSError):  # a kernel that lets nobody choose: it works all the same
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _UNPACED)


def run_later(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """From any thread: run ``function`` on the loop, if it still runs."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
