"""What one client is still to be sent, and the sending of it.

An answer is a list of parts: bytes, and slices of files that go to the socket with ``sendfile``.
What the socket does not take now goes when it can take more; what would have to wait for a disk is
read by a worker first, so that the loop does not wait.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor

from typing_extensions import Buffer

from stratalog.broker.burden import Burden
from stratalog.broker.framing import Part, unsent_bytes
from stratalog.broker.warming import WARM_BYTES, is_cached, warm
from stratalog.storage.batch_file import FileSlice

_PARTS_AT_ONCE = 64
# One connection keeps the loop no longer than this much takes.
_SEND_BYTES_A_TURN = 4 << 20


class Outbox:
    """``on_sent`` is told after each turn how many bytes went; ``parts`` is what is left then.
    ``on_broken``: nothing more can be sent."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        sock: socket.socket,
        burden: Burden,
        *,
        on_sent: Callable[[int], None],
        on_broken: Callable[[], None],
    ) -> None:
        self.parts: deque[Part] = deque()
        self.is_warming = False
        self._loop = loop
        self._executor = executor
        self._socket = sock
        self._descriptor = sock.fileno()
        self._burden = burden
        self._on_sent: Callable[[int], None] = on_sent
        self._on_broken: Callable[[], None] = on_broken
        self._is_closed = False
        self._is_writing = False
        self._warm_until = 0

    def send(self) -> None:
        """As much as can go now; the rest follows by itself."""
        budget = _SEND_BYTES_A_TURN
        parts = self.parts
        try:
            while parts and budget > 0 and not self.is_warming:
                first = parts[0]
                if isinstance(first, FileSlice):
                    budget -= self._send_file(first, budget)
                elif (is_last := len(parts) == 1) or isinstance(parts[1], FileSlice):
                    # Nearly always: one small answer, or the head of records.
                    sent = self._socket.send(first, 0 if is_last else socket.MSG_MORE)
                    budget -= sent
                    if sent == len(first):  # type: ignore[arg-type]
                        parts.popleft()
                    else:
                        parts[0] = memoryview(first)[sent:]
                else:
                    budget -= self._send_buffers()
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, MemoryError):
            self._on_broken()
            return
        if parts:
            try:
                self._send_later()
            except OSError:
                self._on_broken()  # its socket cannot be watched: that is no other client's trouble
                return
        elif self._is_writing:
            self._stop_writing()
        self._on_sent(_SEND_BYTES_A_TURN - budget)

    def close(self) -> None:
        """Nobody reads what is left."""
        self._is_closed = True
        # They lead back to the connection, which is to go with its last user, not with the garbage.
        self._on_sent, self._on_broken = _ignore, _ignore
        self.parts.clear()
        if self._is_writing:
            self._stop_writing()

    def _send_later(self) -> None:
        if self.is_warming:
            if self._is_writing:
                self._stop_writing()
            self._hold_parts()
        elif not self._is_writing:
            self._loop.add_writer(self._descriptor, self.send)
            self._is_writing = True
            self._hold_parts()

    def _hold_parts(self) -> None:
        """Of a request that waited, only its answer is left."""
        files = sum(isinstance(part, FileSlice) for part in self.parts)
        self._burden.hold(unsent_bytes(self.parts), files)

    def _stop_writing(self) -> None:
        self._loop.remove_writer(self._descriptor)
        self._is_writing = False

    # --- slices of files ----------------------------------------------------------------------

    def _send_file(self, part: FileSlice, budget: int) -> int:
        size_bytes = min(part.size_bytes, budget)
        descriptor = part.fileno()
        if part.position >= self._warm_until:
            if not is_cached(descriptor, part.position, size_bytes):
                self._warm(part, min(size_bytes, WARM_BYTES))
                return 0
            self._warm_until = part.position + size_bytes
        count = os.sendfile(self._descriptor, descriptor, part.position, size_bytes)
        if count == 0:
            raise OSError(f"{part.file.path} ends before byte {part.position + part.size_bytes}")
        self.parts.popleft()
        if count < part.size_bytes:
            rest = FileSlice(part.file, part.position + count, part.size_bytes - count)
            self.parts.appendleft(rest)
        else:
            self._warm_until = 0
        return count

    def _warm(self, part: FileSlice, size_bytes: int) -> None:
        """Let a worker wait for the disk, so that the loop does not."""
        self.is_warming = True
        job = self._loop.run_in_executor(self._executor, warm, part, size_bytes)
        job.add_done_callback(self._warmed)

    def _warmed(self, job: "asyncio.Future[int]") -> None:
        self.is_warming = False
        if job.cancelled() or self._is_closed:
            return
        if job.exception() is not None:
            self._on_broken()  # the disk cannot be read, and the answer has been begun
            return
        # Not asked about again: under pressure the cache may have lost some of it already.
        self._warm_until = job.result()
        self.send()

    # --- bytes --------------------------------------------------------------------------------

    def _send_buffers(self) -> int:
        parts = self.parts
        buffers: list[Buffer] = []
        for part in parts:
            if isinstance(part, FileSlice) or len(buffers) == _PARTS_AT_ONCE:
                break
            buffers.append(part)
        more = len(buffers) < len(parts)
        sent = count = self._socket.sendmsg(buffers, (), socket.MSG_MORE if more else 0)
        for _ in range(len(buffers)):
            part = parts.popleft()
            size_bytes = len(part)  # type: ignore[arg-type]
            if count < size_bytes:
                parts.appendleft(memoryview(part)[count:])  # type: ignore[arg-type]
                break
            count -= size_bytes
        return sent


def _ignore(*_: object) -> None:
    """Nobody wants to know any more."""
