"""One timer for everything in a broker that has a deadline.

Whoever has something to do at some time says so with ``at``; the loop then calls ``ring`` once,
no earlier than the earliest of those times, and ``ring`` says when it is next needed.
"""

import asyncio
from collections.abc import Callable

from stratalog.clock import Clock

# A clock that is set back would otherwise put off everything for as long.
_SLEEP_MAX_MS = 1_000


class Alarm:
    """``ring(now_ms)`` does what is due and returns when something is due next, None for never.
    ``failed`` is told why it could not."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        ring: Callable[[int], int | None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._failed = failed
        self._loop = loop
        self._clock = clock
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._is_stopped = False

    def at(self, due_ms: int) -> None:
        """Something is to be done at ``due_ms``, or a little later."""
        if self._is_stopped or (self._handle is not None and self._due_ms <= due_ms):
            return
        if self._handle is not None:
            self._handle.cancel()
        delay_ms = min(max(due_ms - self._clock.now_ms(), 0), _SLEEP_MAX_MS)
        self._due_ms = due_ms
        self._handle = self._loop.call_later(delay_ms / 1000, self._run)

    def stop(self) -> None:
        self._is_stopped = True
        if self._handle is not None:
            self._handle.cancel()

    def _run(self) -> None:
        self._handle = None
        try:
            next_ms = self._ring(self._clock.now_ms())
        except Exception as error:  # noqa: BLE001 - the next ring must come, whatever went wrong
            self._failed(error)
            next_ms = self._clock.now_ms() + _SLEEP_MAX_MS
        if next_ms is not None:
            self.at(next_ms)
