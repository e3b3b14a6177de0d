"""Frames, and what a connection asks of whoever answers them.

4 bytes size   header and body of a request
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from typing_extensions import Buffer

from stratalog.storage.batch_file import FileSlice

if TYPE_CHECKING:
    from stratalog.broker.connection import Connection

SIZE_BYTES = 4

Part = Buffer | FileSlice

unpack_size = Struct(">I").unpack_from


class Ticket(Protocol):
    """A request that waits for its answer."""

    parts: "Sequence[Part] | None"
    is_pipelined: bool

    def abandoned(self) -> None:
        """Nobody will be told the answer any more."""


class FrameHandler(Protocol):
    """Whoever answers requests."""

    def check(self, api_key: int, size_bytes: int) -> None:
        """Raise if a request of this size is not to be read at all."""

    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """``expect`` a ticket and ``answer`` it, at once or later. ``frame`` is good until this
        returns. Raising closes the connection."""

    def closed(self, connection: "Connection") -> None: ...

    def failed(self, connection: "Connection", error: Exception) -> None: ...


def wanted_bytes(buffer: memoryview | bytearray) -> int:
    """How long the frame is that starts there."""
    (size_bytes,) = unpack_size(buffer)
    return SIZE_BYTES + int(size_bytes)


def is_whole(buffer: memoryview) -> bool:
    """Whether a frame starts there that does not lack anything."""
    return len(buffer) >= SIZE_BYTES and wanted_bytes(buffer) <= len(buffer)


def unsent_bytes(parts: Iterable[Part]) -> int:
    """What an answer takes in memory."""
    return sum(len(part) for part in parts if not isinstance(part, FileSlice))  # type: ignore[arg-type,misc]
