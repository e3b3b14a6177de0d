"""One client's connection: frames in, answers out, in the order of the requests.

Requests that arrive whole are handed on as views of a buffer that all connections share; only what
is left over is kept in a buffer of its own. Answers leave through an ``Outbox``.

While a request waits for its answer, or an answer for a slow reader, nothing more is read: the
kernel's buffers fill up and the client has to wait. Produce requests are the exception: while
some wait to become durable, the next few are taken, so that one flush serves them all.

What a client makes this side keep is counted by ``RequestMemory``. Where that is used up, requests
that arrive whole are still taken, since they need none of it.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from typing_extensions import Buffer

from stratalog.broker.burden import Burden
from stratalog.broker.framing import (
    SIZE_BYTES,
    FrameHandler,
    Part,
    Ticket,
    is_whole,
    unpack_size,
    wanted_bytes,
)
from stratalog.broker.memory import RequestMemory
from stratalog.broker.outbox import Outbox
from stratalog.errors import ForeignProtocolError

SCRATCH_BYTES = 128 << 10
# A little more than a megabyte, which is what most clients send at most.
_FIRST_STEP_BYTES = (1 << 20) + (64 << 10)
# Who was sent as much reads for a while before asking again.
_MUCH_BYTES = 64 << 10
_PIPELINED_MAX = 16
_HELD_MAX = 16
# Then it is the turn of other connections.
_FRAMES_A_TURN = 32
_PRODUCE = b"\0\0"
# A request that waits for its answer is kept decoded, which takes many times its bytes.
_LARGE_BYTES = 64 << 10
_DECODED_FACTOR = 16
# Of TCP_INFO's states, those in which the client has closed its end.
_GONE = frozenset((7, 8, 9, 11))


@dataclass(slots=True)
class Shared:
    """What all connections of a broker have in common."""

    loop: asyncio.AbstractEventLoop
    executor: Executor
    memory: RequestMemory
    scratch: memoryview
    handler: FrameHandler
    # Called when much was sent, to a client that will be busy with it for a while.
    rest: Callable[[], None] = lambda: None


class Connection:
    def __init__(self, shared: Shared, sock: socket.socket, now_ms: int) -> None:
        self.peer: Any = sock.getpeername()
        self.is_closed = False
        # For who looks after idle ones: when it was last seen to have done something, and whether
        # it has since. And what its owner keeps here.
        self.active_ms = now_ms
        self.was_active = False
        self.session: Any = None
        self.on_close: Callable[[], None] = lambda: None
        self._shared = shared
        self._loop = shared.loop
        self._socket = sock
        self._descriptor = sock.fileno()
        self._own: bytearray | None = None
        self._filled = 0
        # Whether a whole request is there that has to wait.
        self._is_stuck = False
        self._burden = Burden(shared.memory)
        self._outbox = Outbox(
            shared.loop,
            shared.executor,
            sock,
            self._burden,
            on_sent=self._sent,
            on_broken=self.close,
        )
        self._out = self._outbox.parts
        self._pending: deque[Ticket] = deque()
        self._is_retired = False
        self._is_last = False  # after what has been taken, it is closed
        self._is_taking = False
        self._has_more = False  # of what is being taken
        self._is_holding = False
        self._is_reading = True
        self._is_waiting_for_memory = False
        self._muted_until: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._descriptor, self._on_readable)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self._pending)} pending"
        return f"<Connection {self.peer} {state}>"

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for this side: for an answer, or for leave to go on."""
        return bool(self._pending or self._outbox.is_warming or self._is_waiting_for_memory)

    @property
    def kept_bytes(self) -> int:
        """What would be given back if it were closed."""
        return self._burden.held_bytes + (0 if self._own is None else len(self._own))

    @property
    def kept_files(self) -> int:
        """Files that are open for it alone."""
        return self._burden.held_files

    def is_stalled(self, now_ms: int) -> bool:
        """Whether it keeps memory or files and has hardly moved since this was first asked, though
        it was free to: it does not send the rest of a request, or does not read an answer, or asked
        for something large that does not come."""
        could_move = not (self._is_waiting_for_memory or self._outbox.is_warming)
        keeps = self.kept_bytes > 0 or self.kept_files > 0
        return self._burden.is_stalled(now_ms, could_move=could_move and keeps)

    def has_gone(self) -> bool:
        """Whether the client has closed its end: nobody reads while a request waits."""
        if self._is_reading or self._out:
            return False
        try:
            return self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _GONE
        except OSError:
            return False

    # --- reading ------------------------------------------------------------------------------

    def retire(self) -> None:
        """Take no more requests; what has been taken is still answered."""
        self._is_retired = True
        self._stop_reading()

    def _may_take(self, buffer: Buffer, start: int) -> bool:
        """Whether the frame that starts there may be handed on now."""
        is_still = self._is_retired or self._muted_until is not None
        if is_still or (self._out and not self._is_holding):
            return False
        pending = self._pending
        if not pending:
            return True
        if len(pending) >= _PIPELINED_MAX or not pending[-1].is_pipelined:
            return False
        return bytes(memoryview(buffer)[start + SIZE_BYTES : start + 6]) == _PRODUCE

    def _is_blocked(self) -> bool:
        """Whether reading would only fill memory."""
        if self._is_retired or self._out or self._is_stuck or self._is_waiting_for_memory:
            return True
        if self._muted_until is not None:
            return True
        pending = self._pending
        return bool(pending) and (len(pending) >= _PIPELINED_MAX or not pending[-1].is_pipelined)

    def _on_readable(self) -> None:
        try:
            self._read()
        except (MemoryError, OSError) as error:
            # What has been read may be lost: it is not known where the next request begins.
            self._fail(error)

    def _read(self) -> None:
        if self._is_blocked():
            self._stop_reading()
            return
        memory = self._shared.memory
        own = self._own
        if own is not None:
            count = self._receive(memoryview(own)[self._filled :])
            if count:
                self._burden.moved_bytes += count
                self._filled += count
                self._take_own()
            return
        if memory.is_exhausted and not memory.is_favoured(self):
            self._take_whole()
            return
        scratch = self._shared.scratch
        count = self._receive(scratch)
        if count:
            used = self._take_frames(scratch, count, not self._pending)
            if used < count and not self.is_closed:
                self._keep(scratch[used:count])
            elif memory.is_favoured(self):
                memory.settle(self)

    def _receive(self, target: memoryview, flags: int = 0) -> int:
        """How many bytes there were; 0 if none, or if the client has gone."""
        try:
            count = self._socket.recv_into(target, 0, flags)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self.close()
            return 0
        if count == 0:
            self._ended()
        self.was_active = True
        return count

    def _ended(self) -> None:
        """The client sends nothing more. It may still read what it has asked for."""
        if self._pending or self._out:
            self._is_last = True
            self.retire()
        else:
            self.close()

    def _take_whole(self) -> None:
        """With no memory left: what is there wholly needs none; the rest stays with the kernel."""
        scratch = self._shared.scratch
        count = self._receive(scratch, socket.MSG_PEEK)
        if not count:
            return
        used = self._take_frames(scratch, count)
        if used and not self.is_closed:
            self._receive(scratch[:used])
        if self.is_closed or used == count or self._is_blocked():
            return
        if is_whole(scratch[used:count]):
            if self._pending:
                self._stop_reading()  # until it is answered
        elif not self._shared.memory.may_take(self):
            self._wait_for_memory()

    def _take_frames(self, buffer: memoryview, filled: int, is_free: bool = False) -> int:
        """Hand on the requests that are there wholly, until one has to wait; returns how many
        bytes they took. ``is_free``: for the first of them that has been looked at."""
        start = taken = 0
        handle = self._shared.handler.handle
        self._is_taking = True
        try:
            while not self.is_closed and filled - start >= SIZE_BYTES:
                begin = start + SIZE_BYTES
                end = begin + unpack_size(buffer, start)[0]
                if end > filled:
                    self._check_size(buffer, start, filled)
                    break
                if not (is_free or self._may_take(buffer, start)):
                    break
                is_free = False
                if taken == _FRAMES_A_TURN:
                    self._loop.call_soon(self._resume)
                    break
                is_large = end - start > _LARGE_BYTES
                if is_large:
                    self._check_size(buffer, start, filled)
                self._has_more = end < filled
                handle(self, buffer[begin:end])
                if is_large:
                    self._hold_request(buffer[begin:end])
                taken += 1
                start = end
        except Exception as error:  # noqa: BLE001 - one client's trouble is not the others'
            self._fail(error)
        finally:
            self._is_taking = False
        if self._is_holding:
            self._send_held()
        return start

    def _fail(self, error: Exception) -> None:
        self._shared.handler.failed(self, error)
        if self._is_holding:
            self._send_held()
        if isinstance(error, ForeignProtocolError):
            with suppress(OSError):
                self._socket.send(error.farewell)
        self.close()

    def _send_held(self) -> None:
        self._is_holding = False
        self._outbox.send()

    def _check_size(self, buffer: memoryview, start: int, filled: int) -> None:
        size = int.from_bytes(buffer[start : start + SIZE_BYTES], "big", signed=True)
        known = filled - start >= SIZE_BYTES + 2
        api_key = int.from_bytes(buffer[start + 4 : start + 6], "big", signed=True) if known else -1
        self._shared.handler.check(api_key, size)

    def _take_own(self) -> None:
        own = self._own
        assert own is not None, "there is something left over"
        self._is_stuck = False
        used = self._take_frames(memoryview(own), self._filled)
        if self.is_closed:
            return
        left = self._filled - used
        if left == 0:
            self._let_go()
            return
        memory = self._shared.memory
        if used and memory.is_short:
            # What is left over begins another request, which may be small: a buffer as large as the
            # last one needed is not kept for it.
            memory.settle(self)
            self._keep(memoryview(own)[used : self._filled])
            memory.give_back(own)
            return
        if used:
            own[:left] = own[used : self._filled]
            self._filled = left
            memory.settle(self)
        if is_whole(memoryview(own)[:left]):
            self._is_stuck = True
            self._stop_reading()
        elif left == len(own):
            self._grow(wanted_bytes(own))

    def _keep(self, rest: memoryview) -> None:
        """Put aside what is left over in the shared buffer."""
        memory = self._shared.memory
        wanted = wanted_bytes(rest) if len(rest) >= SIZE_BYTES else SIZE_BYTES
        # Only what has arrived is believed where many claim more than they send.
        first_bytes = SIZE_BYTES if memory.is_short else _FIRST_STEP_BYTES
        self._own = memory.take(max(min(wanted, first_bytes), len(rest)))
        self._own[: len(rest)] = rest
        self._filled = len(rest)
        if is_whole(rest):
            self._is_stuck = True
            self._stop_reading()
        elif len(rest) == len(self._own):
            self._grow(wanted_bytes(rest))  # to receive into nothing would look like the end

    def _grow(self, wanted: int) -> None:
        """By steps, as bytes arrive: a size that is only claimed costs nothing."""
        own = self._own
        assert own is not None, "only what is there can grow"
        if self._is_blocked():
            return
        memory = self._shared.memory
        if not memory.may_take(self):
            self._wait_for_memory()
            return
        larger = memory.take(min(wanted, 2 * len(own)))
        larger[: self._filled] = memoryview(own)[: self._filled]
        self._own = larger
        memory.give_back(own)

    def _let_go(self) -> None:
        own, self._own = self._own, None
        self._filled = 0
        self._is_stuck = False
        if own is not None:
            self._shared.memory.give_back(own)
            self._shared.memory.settle(self)

    def _hold_request(self, frame: memoryview) -> None:
        """A large request has been handed on: while it waits, count what it takes. Of Produce only
        the records are large, and whoever keeps those counts them."""
        if self._pending and frame[:2] != _PRODUCE:
            self._burden.hold(len(frame) * _DECODED_FACTOR)

    def _wait_for_memory(self) -> None:
        self._stop_reading()
        if not self._is_waiting_for_memory:
            self._is_waiting_for_memory = True
            memory = self._shared.memory
            memory.wait(self, self._got_memory, is_holding=self._own is not None)

    def _got_memory(self) -> None:
        self._is_waiting_for_memory = False
        self._loop.call_soon(self._resume)

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._loop.remove_reader(self._descriptor)
            self._is_reading = False

    def _resume(self) -> None:
        """Something that stood in the way is gone: take what is there already, then read on."""
        if self.is_closed or self._is_taking:
            return
        try:
            if self._own is not None:
                self._take_own()
            if not (self.is_closed or self._is_reading or self._is_blocked()):
                self._loop.add_reader(self._descriptor, self._on_readable)
                self._is_reading = True
        except (MemoryError, OSError) as error:
            self._fail(error)

    # --- answering ----------------------------------------------------------------------------

    def expect(self, ticket: Ticket) -> None:
        """A request has been taken; its answer comes in its turn."""
        self._pending.append(ticket)

    def answer(self, ticket: Ticket, parts: Sequence[Part]) -> None:
        """Send the answer to a request, empty if it has none, after those of earlier ones."""
        if self.is_closed:
            return
        ticket.parts = parts
        pending, out = self._pending, self._out
        if pending[0] is not ticket:
            return
        while pending and (ready := pending[0].parts) is not None:
            out += ready
            pending.popleft()
        # What answers several requests of one read goes out in one piece.
        if self._has_more and self._is_taking and len(out) < _HELD_MAX and len(parts) <= 1:
            self._is_holding = True
        else:
            self._is_holding = False
            self._outbox.send()

    def mute(self, for_ms: int) -> None:
        """Read nothing for a while: the client was told to keep still."""
        if self._muted_until is None and not self.is_closed:
            self._muted_until = self._loop.call_later(for_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted_until = None
        self._resume()

    def _sent(self, size_bytes: int) -> None:
        """As much has just gone to the socket."""
        burden = self._burden
        if size_bytes > 0:
            burden.moved_bytes += size_bytes
            self.was_active = True
            if size_bytes >= _MUCH_BYTES:
                self._shared.rest()
        if self._out:
            return
        if not self._pending:
            burden.release()
            if self._is_last:
                self.close()
                return
        if not self._is_taking and (self._own is not None or not self._is_reading):
            self._loop.call_soon(self._resume)

    # --- closing ------------------------------------------------------------------------------

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._stop_reading()
        if self._muted_until is not None:
            self._muted_until.cancel()
        self._outbox.close()
        self._is_holding = False
        pending, self._pending = self._pending, deque()
        for ticket in pending:
            ticket.abandoned()
        self._burden.release()
        self._shared.memory.settle(self)
        if not self._is_taking:
            self._let_go()
        else:
            self._loop.call_soon(self._let_go)
        self._socket.close()
        self._shared.handler.closed(self)
        self.on_close()
