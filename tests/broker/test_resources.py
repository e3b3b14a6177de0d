"""Memory, watched sockets and buffers of the kernel run out while one client is served: that client
is let go, the others are served, and so is whoever connects next."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_connections import MIB, End, World, framed, other, produce, with_connections

from stratalog.storage.batch_file import FileSlice
from stratalog.storage.files import OsFileSystem


class Refusing:
    """Passes everything on to ``inner``, but for one call of ``name``, which raises."""

    def __init__(self, inner: Any, name: str, error: Exception) -> None:
        self._inner = inner
        self._name = name
        self.error: Exception | None = error

    def __getattr__(self, name: str) -> Any:
        return self._raise if name == self._name and self.error else getattr(self._inner, name)

    def _raise(self, *_: Any) -> Any:
        error, self.error = self.error, None
        assert error is not None
        raise error


async def check_served(world: World, *ends: End) -> None:
    """These clients, and one that comes now."""
    world.handler.is_echoing = True
    for end in (*ends, world.connect()):
        await end.send(framed(other(b"again")))
        assert await end.read_frame() == other(b"again")


def run_with_one_let_go(fail: Callable[[World, End], Any], *, is_echoing: bool = True) -> None:
    """``fail`` makes something run out under one of two clients."""

    async def scenario(world: World) -> None:
        neighbour, end = world.connect(), world.connect(receive_bytes=4096, send_bytes=4096)
        await fail(world, end)
        await world.until(lambda: end.connection.is_closed)
        assert not neighbour.connection.is_closed
        await check_served(world, neighbour)

    with_connections(scenario, is_echoing=is_echoing)


def test_without_memory_for_a_request_its_client_is_let_go() -> None:
    async def fail(world: World, end: End) -> None:
        world.memory._allocate = Refusing(world.memory, "x", MemoryError())._raise
        await end.send(framed(produce(bytes(MIB)))[: MIB // 2])
        await world.until(lambda: world.handler.errors)

    run_with_one_let_go(fail)


def test_without_memory_for_the_rest_of_a_request_its_client_is_let_go() -> None:
    async def fail(world: World, end: End) -> None:
        request = framed(produce(bytes(5 * MIB)))
        await end.send(request[: MIB // 2])
        await world.settled()
        world.memory._allocate = Refusing(world.memory, "x", MemoryError())._raise
        for position in range(MIB // 2, 3 * MIB, MIB // 4):
            if not end.connection.is_closed:
                end.send_some(request[position : position + MIB // 4])
                await world.turn(5)

    run_with_one_let_go(fail)


def test_a_client_whose_socket_cannot_be_watched_for_room_is_let_go() -> None:
    async def fail(world: World, end: End) -> None:
        await end.send(framed(produce()))
        await world.until(lambda: world.handler.tickets)
        error = OSError(errno.ENOMEM, "Cannot allocate memory")
        end.connection._outbox._loop = Refusing(world.shared.loop, "add_writer", error)  # type: ignore[assignment]
        # The caller serves others too, and is not to be told.
        end.connection.answer(world.handler.tickets[0], [framed(bytes(8 * MIB))])

    run_with_one_let_go(fail, is_echoing=False)


def test_a_client_whose_socket_cannot_be_watched_for_requests_is_let_go() -> None:
    async def fail(world: World, end: End) -> None:
        await end.send(framed(other(b"1")) + framed(other(b"2")))
        await world.settled()
        error = OSError(errno.ENOSPC, "No space left on device")
        end.connection._loop = Refusing(world.shared.loop, "add_reader", error)  # type: ignore[assignment]
        for number in range(2):
            await world.until(lambda number=number: len(world.handler.tickets) > number)
            end.connection.answer(world.handler.tickets[number], [])

    run_with_one_let_go(fail, is_echoing=False)


@pytest.mark.parametrize("number", [errno.ENOBUFS, errno.ENOMEM])
@pytest.mark.parametrize("call", ["send", "sendmsg"])
def test_without_a_buffer_of_the_kernel_a_client_is_let_go(number: int, call: str) -> None:
    async def fail(world: World, end: End) -> None:
        await end.send(framed(produce()))
        await world.until(lambda: world.handler.tickets)
        error = OSError(number, os.strerror(number))
        end.connection._outbox._socket = Refusing(end.connection._socket, call, error)  # type: ignore[assignment]
        parts = [b"head"] if call == "send" else [b"head", b"tail"]
        end.connection.answer(world.handler.tickets[0], parts)

    run_with_one_let_go(fail, is_echoing=False)


def test_without_memory_to_send_a_file_its_client_is_let_go_and_the_file_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFileSystem().open(str(tmp_path / "file"), create=True)
    file.write_at(0, [bytes(MIB)])

    async def fail(world: World, end: End) -> None:
        await end.send(framed(produce()))
        await world.until(lambda: world.handler.tickets)
        error = OSError(errno.ENOMEM, "Cannot allocate memory")
        with monkeypatch.context() as patched:
            patched.setattr(os, "sendfile", Refusing(os, "sendfile", error)._raise)
            end.connection.answer(world.handler.tickets[0], [FileSlice(file, 0, MIB)])
        assert not end.connection._outbox.parts

    run_with_one_let_go(fail, is_echoing=False)


def test_a_client_that_cannot_be_read_for_want_of_memory_is_let_go() -> None:
    async def fail(world: World, end: End) -> None:
        refusing = Refusing(end.connection._socket, "recv_into", OSError(errno.ENOBUFS, "none"))
        end.connection._socket = refusing  # type: ignore[assignment]
        await end.send(framed(other()))

    run_with_one_let_go(fail)


def test_what_could_not_be_allocated_is_not_counted() -> None:
    async def scenario(world: World) -> None:
        world.memory._allocate = Refusing(world.memory, "x", MemoryError())._raise
        with pytest.raises(MemoryError):
            world.memory.take(MIB)
        assert world.memory.used_bytes == 0
        await asyncio.sleep(0)

    with_connections(scenario)


def test_descriptors_of_connections_that_were_let_go_are_closed() -> None:
    theirs: list[socket.socket] = []

    async def fail(world: World, end: End) -> None:
        theirs.append(end.connection._socket)
        end.connection._outbox._socket = Refusing(theirs[0], "send", OSError(errno.ENOBUFS, ""))  # type: ignore[assignment]
        await end.send(framed(other()))

    run_with_one_let_go(fail)
    assert theirs[0].fileno() == -1
