"""One client's connection: frames in, answers out, in the order of the requests.

    4 bytes size   header and body of a request          size is at most socket.request.max.bytes

Requests that arrive whole are handed on as views of a buffer that all connections share; only what
is left over is kept in a buffer of its own. An answer is a list of parts: bytes, and slices of
files that go to the socket with ``sendfile``.

While a request waits for its answer, or an answer for a slow reader, nothing more is read: the
kernel's buffers fill up and the client has to wait. Produce requests are the exception: while
some wait to become durable, the next few are taken, so that one flush serves them all.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from typing_extensions import Buffer

from stratalog.broker.memory import RequestMemory
from stratalog.storage.segment import FileSlice

SIZE_BYTES = 4
SCRATCH_BYTES = 128 << 10
_FIRST_STEP_BYTES = 1 << 20
_PARTS_AT_ONCE = 64
# One connection keeps the loop no longer than this much takes.
_SEND_BYTES_A_TURN = 1 << 20
_WARM_BYTES = 1 << 20
_WARM_STEP_BYTES = 128 << 10
_PIPELINED_MAX = 16
_HELD_MAX = 16
_PRODUCE = b"\0\0"

Part = Buffer | FileSlice


class Ticket(Protocol):
    """A request that waits for its answer."""

    parts: "Sequence[Part] | None"
    is_pipelined: bool


class FrameHandler(Protocol):
    """Whoever answers requests."""

    def check(self, api_key: int, size_bytes: int) -> None:
        """Raise if a request of this size is not to be read at all."""

    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """``expect`` a ticket and ``answer`` it, at once or later. ``frame`` is good until this
        returns. Raising closes the connection."""

    def closed(self, connection: "Connection") -> None: ...

    def failed(self, connection: "Connection", error: Exception) -> None: ...


@dataclass(slots=True)
class Shared:
    """What all connections of a broker have in common."""

    loop: asyncio.AbstractEventLoop
    executor: Executor
    memory: RequestMemory
    scratch: memoryview
    handler: FrameHandler


class Connection:
    def __init__(self, shared: Shared, sock: socket.socket, now_ms: Callable[[], int]) -> None:
        self.peer: Any = sock.getpeername()
        self.is_closed = False
        # When it last did something, for who looks after idle ones; and what its owner keeps here.
        self.active_ms = now_ms()
        self.session: Any = None
        self.on_close: Callable[[], None] = lambda: None
        self._now_ms = now_ms
        self._shared = shared
        self._loop = shared.loop
        self._socket = sock
        self._descriptor = sock.fileno()
        self._own: bytearray | None = None
        self._filled = 0
        self._out: deque[Part] = deque()
        self._pending: deque[Ticket] = deque()
        self._is_taking = False
        self._is_holding = False
        self._is_reading = True
        self._is_writing = False
        self._is_warming = False
        self._warm_until = 0
        self._is_waiting_for_memory = False
        self._muted_until: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._descriptor, self._on_readable)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self._pending)} pending"
        return f"<Connection {self.peer} {state}>"

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for this side: for an answer, or for leave to go on."""
        return bool(self._pending or self._is_warming or self._is_waiting_for_memory)

    @property
    def is_in_frame(self) -> bool:
        """Whether part of a request has arrived, and the rest is awaited."""
        return self._own is not None and not self._pending and not self._out

    # --- reading ------------------------------------------------------------------------------

    def _may_take(self, buffer: Buffer, start: int) -> bool:
        """Whether the frame that starts there may be handed on now."""
        if (self._out and not self._is_holding) or self._muted_until is not None:
            return False
        pending = self._pending
        if not pending:
            return True
        if len(pending) >= _PIPELINED_MAX or not pending[-1].is_pipelined:
            return False
        return bytes(memoryview(buffer)[start + SIZE_BYTES : start + 6]) == _PRODUCE

    def _is_blocked(self) -> bool:
        """Whether reading would only fill memory."""
        if self._out or self._muted_until is not None:
            return True
        pending = self._pending
        return bool(pending) and (len(pending) >= _PIPELINED_MAX or not pending[-1].is_pipelined)

    def _on_readable(self) -> None:
        if self._is_blocked():
            self._stop_reading()
            return
        memory = self._shared.memory
        own = self._own
        target: Buffer = self._shared.scratch
        if own is not None:
            target = memoryview(own)[self._filled :]
        elif memory.is_exhausted:
            self._wait_for_memory()
            return
        try:
            count = self._socket.recv_into(target)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self.close()
            return
        self.active_ms = self._now_ms()
        if own is not None:
            self._filled += count
            self._take_own()
            return
        used = self._take_frames(self._shared.scratch, count)
        if used < count and not self.is_closed:
            self._keep(self._shared.scratch[used:count])

    def _take_frames(self, buffer: memoryview, filled: int) -> int:
        """Hand on the requests that are there wholly, until one has to wait; returns how many
        bytes they took."""
        start = 0
        handle = self._shared.handler.handle
        self._is_taking = True
        try:
            while not self.is_closed and filled - start >= SIZE_BYTES:
                end = start + SIZE_BYTES + int.from_bytes(buffer[start : start + SIZE_BYTES], "big")
                if end > filled:
                    self._check_size(buffer, start, filled)
                    break
                if not self._may_take(buffer, start):
                    break
                self._check_size(buffer, start, filled)
                handle(self, buffer[start + SIZE_BYTES : end])
                start = end
        except Exception as error:  # noqa: BLE001 - one client's trouble is not the others'
            self._shared.handler.failed(self, error)
            self.close()
        finally:
            self._is_taking = False
        if self._is_holding:
            self._is_holding = False
            self._send()
        return start

    def _check_size(self, buffer: memoryview, start: int, filled: int) -> None:
        size = int.from_bytes(buffer[start : start + SIZE_BYTES], "big", signed=True)
        known = filled - start >= SIZE_BYTES + 2
        api_key = int.from_bytes(buffer[start + 4 : start + 6], "big", signed=True) if known else -1
        self._shared.handler.check(api_key, size)

    def _take_own(self) -> None:
        own = self._own
        assert own is not None, "there is something left over"
        used = self._take_frames(memoryview(own), self._filled)
        if self.is_closed:
            return
        left = self._filled - used
        if left == 0:
            self._let_go()
            return
        if used:
            own[:left] = own[used : self._filled]
            self._filled = left
        wanted = self._wanted_bytes(memoryview(own))
        if left == len(own) or (wanted > len(own) and left >= SIZE_BYTES):
            self._grow(wanted)

    def _keep(self, rest: memoryview) -> None:
        """Put aside what is left over in the shared buffer."""
        wanted = self._wanted_bytes(rest) if len(rest) >= SIZE_BYTES else SIZE_BYTES
        size_bytes = max(min(wanted, _FIRST_STEP_BYTES), len(rest))
        self._own = self._shared.memory.take(size_bytes)
        self._own[: len(rest)] = rest
        self._filled = len(rest)

    def _wanted_bytes(self, buffer: memoryview) -> int:
        return SIZE_BYTES + int.from_bytes(buffer[:SIZE_BYTES], "big")

    def _grow(self, wanted: int) -> None:
        """By steps, as bytes arrive: a size that is only claimed costs nothing."""
        own = self._own
        assert own is not None, "only what is there can grow"
        if self._filled < len(own) or self._is_blocked():
            return
        memory = self._shared.memory
        if memory.is_exhausted and len(own) > SCRATCH_BYTES and memory.used_bytes > len(own):
            self._wait_for_memory()
            return
        larger = memory.take(min(max(wanted, SIZE_BYTES), 2 * len(own)))
        larger[: self._filled] = memoryview(own)[: self._filled]
        self._own = larger
        memory.give_back(own)

    def _let_go(self) -> None:
        own, self._own = self._own, None
        self._filled = 0
        if own is not None:
            self._shared.memory.give_back(own)

    def _wait_for_memory(self) -> None:
        self._stop_reading()
        if not self._is_waiting_for_memory:
            self._is_waiting_for_memory = True
            self._shared.memory.wait(self._got_memory)

    def _got_memory(self) -> None:
        self._is_waiting_for_memory = False
        if not self.is_closed:
            self._loop.call_soon(self._resume)

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._loop.remove_reader(self._descriptor)
            self._is_reading = False

    def _resume(self) -> None:
        """Something that stood in the way is gone: take what is there already, then read on."""
        if self.is_closed or self._is_taking:
            return
        if self._own is not None:
            self._take_own()
        if not (self.is_closed or self._is_reading or self._is_blocked()):
            self._loop.add_reader(self._descriptor, self._on_readable)
            self._is_reading = True

    # --- answering ----------------------------------------------------------------------------

    def expect(self, ticket: Ticket) -> None:
        """A request has been taken; its answer comes in its turn."""
        self._pending.append(ticket)

    def answer(self, ticket: Ticket, parts: Sequence[Part]) -> None:
        """Send the answer to a request, empty if it has none, after those of earlier ones."""
        if self.is_closed:
            return
        ticket.parts = parts
        pending = self._pending
        if pending[0] is not ticket:
            return
        while pending and (ready := pending[0].parts) is not None:
            self._out.extend(ready)
            pending.popleft()
        # What answers several requests of one read goes out in one piece.
        if self._is_taking and len(self._out) < _HELD_MAX and len(parts) <= 1:
            self._is_holding = True
        else:
            self._is_holding = False
            self._send()

    def mute(self, for_ms: int) -> None:
        """Read nothing for a while: the client was told to keep still."""
        if self._muted_until is None and not self.is_closed:
            self._muted_until = self._loop.call_later(for_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted_until = None
        self._resume()

    def _send(self) -> None:
        budget = _SEND_BYTES_A_TURN
        try:
            while self._out and budget > 0 and not self._is_warming:
                first = self._out[0]
                if isinstance(first, FileSlice):
                    budget -= self._send_file(first, budget)
                else:
                    budget -= self._send_buffers()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
            return
        if self._out:
            self._write_later()
            return
        if self._is_writing:
            self._loop.remove_writer(self._descriptor)
            self._is_writing = False
        self.active_ms = self._now_ms()
        if not self._is_taking and (self._own is not None or not self._is_reading):
            self._loop.call_soon(self._resume)

    def _write_later(self) -> None:
        if self._is_warming:
            if self._is_writing:
                self._loop.remove_writer(self._descriptor)
                self._is_writing = False
        elif not self._is_writing:
            self._loop.add_writer(self._descriptor, self._send)
            self._is_writing = True

    def _send_file(self, part: FileSlice, budget: int) -> int:
        size_bytes = min(part.size_bytes, budget)
        if part.position >= self._warm_until and not is_cached(
            part.fileno(), part.position, size_bytes
        ):
            self._warm(part, min(size_bytes, _WARM_BYTES))
            return 0
        count = os.sendfile(self._descriptor, part.fileno(), part.position, size_bytes)
        if count == 0:
            raise OSError(f"{part.file.path} ends before byte {part.position + part.size_bytes}")
        self._out.popleft()
        if count < part.size_bytes:
            rest = FileSlice(part.file, part.position + count, part.size_bytes - count)
            self._out.appendleft(rest)
        else:
            self._warm_until = 0
        return count

    def _warm(self, part: FileSlice, size_bytes: int) -> None:
        """Let a worker wait for the disk, so that the loop does not."""
        self._is_warming = True
        job = self._loop.run_in_executor(self._shared.executor, warm, part, size_bytes)
        job.add_done_callback(self._warmed)

    def _warmed(self, job: "asyncio.Future[int]") -> None:
        self._is_warming = False
        if job.cancelled() or self.is_closed:
            return
        if job.exception() is not None:
            self.close()  # the disk cannot be read, and the answer has been begun
            return
        # Not asked about again: under pressure the cache may have lost some of it already.
        self._warm_until = job.result()
        self._send()

    def _send_buffers(self) -> int:
        buffers: list[Buffer] = []
        for part in self._out:
            if isinstance(part, FileSlice) or len(buffers) == _PARTS_AT_ONCE:
                break
            buffers.append(part)
        if len(buffers) == len(self._out) == 1:
            sent = count = self._socket.send(buffers[0])
        else:
            more = len(buffers) < len(self._out)
            sent = count = self._socket.sendmsg(buffers, (), socket.MSG_MORE if more else 0)
        for _ in range(len(buffers)):
            part = self._out.popleft()
            size_bytes = len(part)  # type: ignore[arg-type]
            if count < size_bytes:
                self._out.appendleft(memoryview(part)[count:])  # type: ignore[arg-type]
                break
            count -= size_bytes
        return sent

    # --- closing ------------------------------------------------------------------------------

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._stop_reading()
        if self._is_writing:
            self._loop.remove_writer(self._descriptor)
        if self._muted_until is not None:
            self._muted_until.cancel()
        self._out.clear()
        self._pending.clear()
        if not self._is_taking:
            self._let_go()
        else:
            self._loop.call_soon(self._let_go)
        self._socket.close()
        self._shared.handler.closed(self)
        self.on_close()


_PROBE = bytearray(1)


def warm(part: FileSlice, size_bytes: int) -> int:
    """Read the first bytes of a slice into the system's cache; returns where they end."""
    end = part.position + size_bytes
    for position in range(part.position, end, _WARM_STEP_BYTES):
        part.file.read_at(position, min(_WARM_STEP_BYTES, end - position))
    return end


def is_cached(descriptor: int, position: int, size_bytes: int) -> bool:
    """Whether reading would not wait for a disk, judged by the first and the last byte."""
    try:
        for at in (position, position + size_bytes - 1):
            os.preadv(descriptor, (_PROBE,), at, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system cannot tell
    return True
