"""A wire between client and broker that cuts the line instead of handing over some answers.

The broker has done what it was asked; the client does not know. That is when retries, sequence
numbers and generations earn their keep.
"""

import asyncio
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

PRODUCE, FETCH, METADATA, OFFSET_COMMIT, HEARTBEAT = 0, 1, 3, 8, 12
# With OffsetFetch, FindCoordinator, JoinGroup, LeaveGroup and SyncGroup.
OF_RECORDS_AND_GROUPS = (PRODUCE, FETCH, OFFSET_COMMIT, 9, 10, 11, HEARTBEAT, 13, 14)

_REQUEST = struct.Struct(">hhi")  # api key, version, correlation id
_CORRELATION = struct.Struct(">i")


class LossyProxy:
    """Listens on a port of its own; ``target`` is where the broker is, ``loses`` what to lose."""

    def __init__(self) -> None:
        self.target = ""
        self.lost = 0
        self._loses: Callable[[int], bool] = lambda api_key: False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="lossy-proxy")
        self._is_listening = threading.Event()
        self._stop = asyncio.Event()
        self.port = 0

    def lose_every(self, count: int, *api_keys: int) -> None:
        """From now on lose every ``count``-th answer of these APIs."""
        answers = dict.fromkeys(api_keys, 0)

        def loses(api_key: int) -> bool:
            if api_key not in answers:
                return False
            answers[api_key] += 1
            return answers[api_key] % count == 0

        self.lost = 0
        self._loses = loses

    def lose_next(self, count: int, *api_keys: int) -> None:
        """Lose the next ``count`` answers of these APIs, and none after them."""
        self.lost = 0
        self._loses = lambda api_key: api_key in api_keys and self.lost < count

    def lose_nothing(self) -> None:
        self._loses = lambda api_key: False

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._is_listening.wait(60)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        links: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            links.add(task)
            try:
                await self._link(reader, writer)
            finally:
                links.discard(task)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        await self._stop.wait()
        server.close()
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)
        await server.wait_closed()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self.target.rsplit(":", 1)
        try:
            from_broker, to_broker = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        asked: dict[int, int] = {}
        pumps = [
            asyncio.create_task(self._requests(reader, to_broker, asked)),
            asyncio.create_task(self._answers(from_broker, writer, asked)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for each in (writer, to_broker):
                each.close()
                with suppress(OSError):
                    await each.wait_closed()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        while True:
            frame = await _read_frame(reader)
            api_key, _, correlation_id = _REQUEST.unpack_from(frame, 4)
            asked[correlation_id] = api_key
            writer.write(frame)
            await writer.drain()

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        while True:
            frame = await _read_frame(reader)
            (correlation_id,) = _CORRELATION.unpack_from(frame, 4)
            if self._loses(asked.pop(correlation_id)):
                self.lost += 1
                return
            writer.write(frame)
            await writer.drain()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length, "big"))
