"""Requests as handlers see them, and the table that leads from an API to its handler.

A handler takes a ``Request`` and returns its response, or None if it answers later with
``respond``. A coroutine function is a handler too: its task's result is the response. Handlers of
data never are; those that change topics or configs, and so wait for a disk, may be.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

Handler = Callable[["Request"], Any | Awaitable[Any] | None]


class Encoded(NamedTuple):
    """A response whose body was encoded before, by ``encode_response_body``, for this API and
    version: a handler may return it in place of the response."""

    body: bytes
    error_code: int = 0


class Answering(Protocol):
    """Where the answer to a request goes."""

    @property
    def host(self) -> str: ...

    def answer(self, request: "Request", response: Any) -> None: ...

    def answer_nothing(self, request: "Request") -> None: ...

    def close_for(self, request: "Request", reason: str) -> None: ...


@dataclass(slots=True, eq=False)
class Request:
    """One request of a client; ``body`` is one of the tuples in ``protocol.messages``."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body: Any
    client: Answering
    received_ns: int = 0
    # Of the connection: whether the next request may be taken while this one waits, and the answer
    # that waits for those of earlier requests.
    is_pipelined: bool = False
    parts: Sequence[Any] | None = None
    # For whoever waits on behalf of this request: called if its client goes before the answer.
    on_abandoned: Callable[[], None] | None = None

    @property
    def client_host(self) -> str:
        """The client's address, as it is kept with the members of groups."""
        return self.client.host

    def respond(self, response: Any) -> None:
        """Answer; once."""
        self.client.answer(self, response)

    def respond_nothing(self) -> None:
        """There is no answer: a produce with acks=0."""
        self.client.answer_nothing(self)

    def close(self, reason: str) -> None:
        """Close the connection, where the protocol has no other way to say no."""
        self.client.close_for(self, reason)

    def abandoned(self) -> None:
        """Its connection was closed before it was answered."""
        if self.on_abandoned is not None:
            self.on_abandoned()
