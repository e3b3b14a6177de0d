"""Asks handlers as clients do: every request and every answer goes through its codec, in the
version that the client speaks."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from broker_parts import broker_parts

from stratalog.broker.handlers.cluster import ClusterHandlers
from stratalog.broker.handlers.configs import ConfigHandlers
from stratalog.broker.handlers.listings import ListingHandlers
from stratalog.broker.handlers.metadata import MetadataHandlers
from stratalog.broker.handlers.replica_places import ReplicaPlaceHandlers
from stratalog.broker.handlers.topics import TopicHandlers
from stratalog.broker.handlers.unserved import UnservedHandlers
from stratalog.broker.requests import Encoded, Request
from stratalog.broker.services import Services
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    frame_response_body,
)

_FAMILIES = (
    MetadataHandlers,
    TopicHandlers,
    ConfigHandlers,
    ClusterHandlers,
    UnservedHandlers,
    ReplicaPlaceHandlers,
    ListingHandlers,
)


class NoClient:
    """Handlers of this kind answer by what they return."""

    host = "/127.0.0.1"

    def answer(self, request: Request, response: Any) -> None:
        raise AssertionError("the answer is what the handler returns")

    def answer_nothing(self, request: Request) -> None:
        raise AssertionError("there is an answer")

    def close_for(self, request: Request, reason: str) -> None:
        raise AssertionError(f"the connection was closed: {reason}")


class Asking:
    """A client of a broker without a socket."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._handlers = {
            key: handler
            for family in _FAMILIES
            for key, handler in family(services).table().items()
        }

    async def ask(self, key: ApiKey, body: Any, version: int | None = None) -> Any:
        """The answer to ``body``, in the highest version if no other is given."""
        if version is None:
            version = SUPPORTED[key].highest
        frame = b"".join(encode_request(key, version, 7, "me", body))[4:]  # type: ignore[arg-type]
        header, position = decode_request_header(frame)
        seen = decode_request(key, version, frame, position)
        request = Request(key, version, header.correlation_id, "me", seen, NoClient())
        answer = self._handlers[key](request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Encoded):
            parts = frame_response_body(key, version, 7, answer.body)
        else:
            parts = encode_response(key, version, 7, answer)
        return decode_response(key, version, b"".join(parts)[4:])[1]  # type: ignore[arg-type]


def with_broker(path: Path, scenario: Callable[[Asking], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with broker_parts(path, **settings) as services:
            await scenario(Asking(services))

    asyncio.run(run())


def versions(key: ApiKey) -> range:
    return range(SUPPORTED[key].lowest, SUPPORTED[key].highest + 1)
