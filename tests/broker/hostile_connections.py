"""Connections over real sockets with a handler that the test answers for, and a client's end that
sends and reads as slowly as it likes."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stratalog.broker.broker_loop import BrokerLoop
from stratalog.broker.connection import SCRATCH_BYTES, Connection, Shared
from stratalog.broker.framing import Part
from stratalog.broker.memory import RequestMemory
from stratalog.errors import ProtocolError

MIB = 1 << 20
MAX_FRAME_BYTES = 100 * MIB
MAX_OTHER_BYTES = 8 * MIB


class Ticket:
    def __init__(self, frame: bytes, *, is_pipelined: bool) -> None:
        self.frame = frame
        self.parts: Sequence[Part] | None = None
        self.is_pipelined = is_pipelined
        self.is_abandoned = False

    def abandoned(self) -> None:
        self.is_abandoned = True


class Handler:
    """Keeps what arrives; answers at once with the frame itself if ``is_echoing``."""

    def __init__(self, *, is_echoing: bool = True) -> None:
        self.is_echoing = is_echoing
        self.answer_bytes_max = MAX_FRAME_BYTES
        self.tickets: list[Ticket] = []
        self.closed_connections: list[Connection] = []
        self.errors: list[Exception] = []

    @property
    def frames(self) -> list[bytes]:
        return [ticket.frame for ticket in self.tickets]

    def check(self, api_key: int, size_bytes: int) -> None:
        limit = MAX_OTHER_BYTES if api_key > 0 else MAX_FRAME_BYTES
        if not 0 <= size_bytes <= limit:
            raise ProtocolError("request", -1, 0, f"{size_bytes} bytes")

    def handle(self, connection: Connection, frame: memoryview) -> None:
        if not frame:
            raise ProtocolError("request", -1, 0, "nothing")
        ticket = Ticket(bytes(frame), is_pipelined=frame[:2] == b"\0\0")
        self.tickets.append(ticket)
        connection.expect(ticket)
        if self.is_echoing:
            connection.answer(ticket, [framed(ticket.frame[: self.answer_bytes_max])])

    def closed(self, connection: Connection) -> None:
        self.closed_connections.append(connection)

    def failed(self, connection: Connection, error: Exception) -> None:
        self.errors.append(error)


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def produce(payload: bytes = b"") -> bytes:
    return b"\0\0" + payload


def other(payload: bytes = b"") -> bytes:
    return b"\0\1" + payload


class End:
    """The client's end of a connection."""

    def __init__(self, world: "World", connection: Connection, sock: socket.socket) -> None:
        self._world = world
        self.connection = connection
        self.socket = sock
        self.received = bytearray()

    def send_some(self, data: bytes) -> int:
        """As much as the kernel takes."""
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.send_some(bytes(view[: 1 << 20])) :]
            await self._world.turn()

    def read_some(self, size_bytes: int = 1 << 20) -> int:
        try:
            data = self.socket.recv(size_bytes)
        except BlockingIOError:
            return 0
        self.received += data
        return len(data)

    async def read(self, size_bytes: int) -> bytes:
        while len(self.received) < size_bytes:
            self.read_some()
            await self._world.turn()
        data = bytes(self.received[:size_bytes])
        del self.received[:size_bytes]
        return data

    async def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.read(4))
        return await self.read(size)


class World:
    """Connections that share a loop and their memory."""

    def __init__(self, handler: Handler, limit_bytes: int) -> None:
        self.handler = handler
        self.now_ms = 0
        self.memory = RequestMemory(limit_bytes)
        self.executor = ThreadPoolExecutor(1)
        self.turns = 0
        self.shared = Shared(
            asyncio.get_running_loop(),
            self.executor,
            self.memory,
            memoryview(bytearray(SCRATCH_BYTES)),
            handler,
        )
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.ends: list[End] = []

    def connect(self, *, receive_bytes: int | None = None, send_bytes: int | None = None) -> End:
        """``receive_bytes`` bounds what waits in the kernel for a client that does not read."""
        client = socket.socket()
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.connect(self._listener.getsockname())
        server, _ = self._listener.accept()
        client.setblocking(False)
        server.setblocking(False)
        if send_bytes is not None:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
        end = End(self, Connection(self.shared, server, self.now_ms), client)
        self.ends.append(end)
        return end

    async def turn(self, count: int = 1) -> None:
        for _ in range(count):
            self.turns += 1
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await self.turn()

    async def settled(self) -> None:
        """Until the kernel has handed over what was sent: loopback needs no time for it."""
        await self.turn(20)

    def close(self) -> None:
        for end in self.ends:
            end.socket.close()
            end.connection.close()
        self._listener.close()
        self.executor.shutdown()


def with_connections(
    scenario: Callable[[World], Awaitable[None]],
    *,
    is_echoing: bool = True,
    limit_bytes: int = 64 * MIB,
) -> World:
    """Runs ``scenario``; whatever it did, nothing may be left counted or reported afterwards."""

    async def run() -> World:
        loop = asyncio.get_running_loop()
        trouble: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _loop, context: trouble.append(context))
        world = World(Handler(is_echoing=is_echoing), limit_bytes)
        try:
            async with asyncio.timeout(120):
                await scenario(world)
        finally:
            world.close()
        await asyncio.sleep(0)
        assert world.memory.used_bytes == 0
        assert trouble == []
        return world

    # A broker's own loop; those in threads of tests have asyncio's.
    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        return runner.run(run())
