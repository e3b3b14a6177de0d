"""Asks handlers that answer when they can: a client that collects what it is told, every request
and every answer through its codec."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from broker_parts import broker_parts

from stratalog.broker.handlers.fetch import FetchHandlers
from stratalog.broker.handlers.offsets import OffsetHandlers
from stratalog.broker.handlers.produce import ProduceHandlers
from stratalog.broker.handlers.producer_ids import ProducerIdHandlers
from stratalog.broker.requests import Request
from stratalog.broker.services import Services
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from stratalog.storage.batch_file import FileSlice

_FAMILIES = (ProduceHandlers, FetchHandlers, OffsetHandlers, ProducerIdHandlers)


class Client:
    """What a connection is to a request. Of each request one thing may become."""

    host = "/127.0.0.1"

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.silent = 0
        self.closed: list[str] = []

    def answer(self, request: Request, response: Any) -> None:
        self.answers.append(_through_codec(request, response))

    def answer_nothing(self, request: Request) -> None:
        self.silent += 1

    def close_for(self, request: Request, reason: str) -> None:
        self.closed.append(reason)


def _through_codec(request: Request, response: Any) -> Any:
    parts = encode_response(request.api_key, request.api_version, request.correlation_id, response)
    # A slice of a file goes to the socket by itself.
    content = b"".join(
        part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts
    )
    assert int.from_bytes(content[:4], "big") == len(content) - 4, "its length is right"
    return decode_response(request.api_key, request.api_version, content[4:])[1]


class Asking:
    """A broker's data handlers, asked without a socket."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.fetches = FetchHandlers(services)
        self._handlers = {
            key: handler
            for family in _FAMILIES
            for key, handler in family(services).table().items()
        }

    async def begin(self, key: ApiKey, body: Any, version: int | None = None) -> Client:
        """The client that has asked; its answer may come later."""
        client = Client()
        await self.send(client, key, body, version)
        return client

    async def send(
        self, client: Client, key: ApiKey, body: Any, version: int | None = None
    ) -> Request:
        if version is None:
            version = SUPPORTED[key].highest
        frame = b"".join(bytes(part) for part in encode_request(key, version, 7, "me", body))[4:]
        header, position = decode_request_header(frame)
        seen = decode_request(key, version, memoryview(frame), position)
        # As a dispatcher makes it: behind a produce request the next one may be taken.
        is_produce = key is ApiKey.PRODUCE
        request = Request(
            key, version, header.correlation_id, "me", seen, client, is_pipelined=is_produce
        )
        result = self._handlers[key](request)
        if asyncio.iscoroutine(result):
            result = await result
        if result is not None:
            client.answer(request, result)
        return request

    async def ask(self, key: ApiKey, body: Any, version: int | None = None) -> Any:
        """The one answer to ``body``, which has to come at once."""
        client = await self.begin(key, body, version)
        (answer,) = client.answers
        return answer

    def topic_id(self, name: str) -> bytes:
        return self.services.store.image.topic(name).topic_id.bytes

    def pass_time(self, ms: int) -> None:
        clock: Any = self.services.clock
        clock.advance(ms)
        self.services.replicas.expire(clock.now_ms())


def with_data(path: Path, scenario: Callable[[Asking], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with broker_parts(path, **settings) as services:
            await scenario(Asking(services))

    asyncio.run(run())
