"""The broker's event loop: asyncio's own, but for how it looks for what is ready.

Two things make a small request quick. Who waits for a socket is called from the look itself, not by
way of asyncio's queue of handles, which took a tenth of such a request. And right after some work
the loop looks again for a moment before it sleeps, since a client that has been answered often asks
again at once, and to be woken takes longer than its request.

Sockets that were given to ``add_reader`` and ``add_writer`` are in an epoll of their own. asyncio's
is one of its members, so that one look sees both.
"""

import asyncio
import select
import selectors
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVarTuple

# How long the loop looks again before it sleeps. Measured with one record at a time: p50 140 µs
# without, 82 with, for the same CPU a request. Where it paid the last time it is worth more.
_LINGER_NS: Final = 50_000
_LINGER_AGAIN_NS: Final = 150_000
_EVENTS_MAX: Final = 512
# Room for each event is made anew by every look: of those that nobody may answer, for a few.
_EVENTS_AGAIN_MAX: Final = 16

# An error or a hang-up is told to whoever waits, for either.
_READABLE: Final = ~select.EPOLLOUT
_WRITABLE: Final = ~select.EPOLLIN

Callback = Callable[[], object]
_Ts = TypeVarTuple("_Ts")
Keys = list[tuple[selectors.SelectorKey, int]]


class BrokerSelector(selectors.EpollSelector):
    """``on_failure`` is told what a callback has raised."""

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        super().__init__()
        self._now_ns = now_ns
        self._on_turn: Callable[[int], None] | None = None
        self._woken_ns = 0
        self._was_busy = False
        self._is_resting = False
        self._linger_ns = _LINGER_NS
        self.on_failure: Callable[[BaseException], None] = _raise
        self._epoll = select.epoll()
        # With none ready in time, an empty list; a signal does not end it before.
        self._wait = self._epoll.poll
        self._inner = super().fileno()
        self._epoll.register(self._inner, select.EPOLLIN)
        self._readers: dict[int, Callback] = {}
        self._writers: dict[int, Callback] = {}

    def close(self) -> None:
        self._readers.clear()
        self._writers.clear()
        self._epoll.close()
        super().close()

    # --- who is called ------------------------------------------------------------------------

    def set_reader(self, descriptor: int, callback: Callback | None) -> bool:
        """From now on this one is called, or nobody; whether somebody was before."""
        return self._set(self._readers, descriptor, callback)

    def set_writer(self, descriptor: int, callback: Callback | None) -> bool:
        return self._set(self._writers, descriptor, callback)

    def _set(
        self, callbacks: dict[int, Callback], descriptor: int, callback: Callback | None
    ) -> bool:
        was_watched = descriptor in self._readers or descriptor in self._writers
        before = callbacks.pop(descriptor, None)
        if callback is not None:
            callbacks[descriptor] = callback
        events = (select.EPOLLIN if descriptor in self._readers else 0) | (
            select.EPOLLOUT if descriptor in self._writers else 0
        )
        if events:
            watch = self._epoll.modify if was_watched else self._epoll.register
            try:
                watch(descriptor, events)
            except (OSError, ValueError):
                self._forget(descriptor)
                raise
        elif was_watched:
            with suppress(OSError):  # it was closed before, and so is watched no more
                self._epoll.unregister(descriptor)
        return before is not None

    def _forget(self, descriptor: int) -> None:
        """It is not watched: whoever is given its number next is none of those."""
        self._readers.pop(descriptor, None)
        self._writers.pop(descriptor, None)

    # --- looking ------------------------------------------------------------------------------

    def watch(self, on_turn: Callable[[int], None] | None) -> None:
        """Tell how long each turn takes, from the next on: the one at hand is that of a start or a
        stop."""
        self._on_turn = on_turn
        self._woken_ns = 0

    def rest(self) -> None:
        """Somebody was sent much, and asks for more only after reading it: to look again meanwhile
        was a fifth of the CPU of a fetch of 1 MB."""
        self._was_busy = False
        self._is_resting = True

    def select(self, timeout: float | None = None) -> Keys:
        """Call who waits for what is ready, and return what asyncio itself waits for."""
        if self._on_turn is not None and self._woken_ns:
            self._on_turn(self._now_ns() - self._woken_ns)
        ready = self._look(timeout)
        self._woken_ns = self._now_ns()
        was_busy = is_inner_ready = self._is_resting = False
        readers, writers = self._readers, self._writers
        for descriptor, events in ready:
            if descriptor == self._inner:
                is_inner_ready = True
                continue
            try:
                if events & _READABLE and (callback := readers.get(descriptor)) is not None:
                    # Who only waits for a socket to take more has no reason to hurry.
                    was_busy = True
                    callback()
                if events & _WRITABLE and (callback := writers.get(descriptor)) is not None:
                    callback()
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the others go on
                self.on_failure(error)
        # What asyncio waits for is asked last: any of those may have changed it.
        keys = super().select(0) if is_inner_ready else []
        if any(wanted & selectors.EVENT_READ for _, wanted in keys):
            was_busy = True
        self._was_busy = was_busy and not self._is_resting
        return keys

    def _look(self, timeout: float | None) -> list[tuple[int, int]]:
        """Wait as asked, but right after some work look a few times more before going to sleep."""
        wait = self._wait
        if not self._was_busy or timeout == 0:
            return wait(timeout, _EVENTS_MAX)
        now_ns = self._now_ns
        give_up_ns = now_ns() + self._linger_ns
        while not (ready := wait(0, _EVENTS_AGAIN_MAX)) and now_ns() < give_up_ns:
            pass
        self._linger_ns = _LINGER_AGAIN_NS if ready else _LINGER_NS
        return ready or wait(timeout, _EVENTS_MAX)


class BrokerLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.turns = BrokerSelector()
        self.turns.on_failure = self._failed
        super().__init__(self.turns)

    def _failed(self, error: BaseException) -> None:
        context = {"message": "a callback of a socket has failed", "exception": error}
        self.call_exception_handler(context)

    def add_reader(self, fd: Any, callback: Callable[[*_Ts], Any], *args: *_Ts) -> None:
        self.turns.set_reader(_descriptor(fd), partial(callback, *args) if args else callback)

    def remove_reader(self, fd: Any) -> bool:
        # asyncio's own (sock_recv and the like) adds by another way, and removes by this one.
        return self.turns.set_reader(_descriptor(fd), None) or super().remove_reader(fd)

    def add_writer(self, fd: Any, callback: Callable[[*_Ts], Any], *args: *_Ts) -> None:
        self.turns.set_writer(_descriptor(fd), partial(callback, *args) if args else callback)

    def remove_writer(self, fd: Any) -> bool:
        return self.turns.set_writer(_descriptor(fd), None) or super().remove_writer(fd)


def _descriptor(fd: Any) -> int:
    return fd if isinstance(fd, int) else int(fd.fileno())


def _raise(error: BaseException) -> None:
    raise error
