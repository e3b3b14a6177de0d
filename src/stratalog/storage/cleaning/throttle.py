"""Throttle: cleaning reads and writes no more bytes a second than it may, over all its threads.

Bytes are counted until a window of 300 ms is over. If they came faster than the rate allows, the
thread that noticed waits for as long as makes them fit, and the others queue behind it; then the
next window begins. This is the arithmetic of Apache Kafka, with two differences: a new rate counts
at once, also for a wait that has begun, and a wait can be given up.
"""

import math
import threading
import time
from collections.abc import Callable

WINDOW_S = 0.3
# Kafka rounds to milliseconds, and so does not wait for less than half of one.
_WAIT_S_MIN = 0.0005
# A rate of 0 waits until there is another one; a lock cannot wait for ever in one go.
_WAIT_S_MAX = 3600.0


def _never() -> bool:
    return False


class Throttle:
    """Any thread may call. ``monotonic`` and ``wait`` are for tests with a clock of their own."""

    def __init__(
        self,
        bytes_per_second: float = math.inf,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self._changed = threading.Condition()
        self._bytes_per_second = bytes_per_second
        self._monotonic = monotonic
        self._wait = wait or self._changed.wait
        self._started = monotonic()
        self._spent_bytes = 0
        self._is_somebody_waiting = False

    @property
    def bytes_per_second(self) -> float:
        return self._bytes_per_second

    @bytes_per_second.setter
    def bytes_per_second(self, bytes_per_second: float) -> None:
        with self._changed:
            self._bytes_per_second = bytes_per_second
            self._changed.notify_all()

    def wake(self) -> None:
        """Let those who wait ask again whether they should give up."""
        with self._changed:
            self._changed.notify_all()

    def spend(self, size_bytes: int, *, give_up: Callable[[], bool] = _never) -> None:
        """Count bytes that were read or written, and wait if they came too fast.

        A wait ends early when ``give_up`` says so, asked at each ``wake``; what is still owed is
        left to the next who spends.
        """
        with self._changed:
            while self._is_somebody_waiting and not give_up():
                self._changed.wait()
            self._spent_bytes += size_bytes
            if self._monotonic() - self._started <= WINDOW_S or self._spent_bytes <= 0:
                return
            if self._is_somebody_waiting:  # and this one has given up: the other will pay
                return
            self._is_somebody_waiting = True
            try:
                self._pay(give_up)
            finally:
                self._is_somebody_waiting = False
                self._changed.notify_all()

    def _pay(self, give_up: Callable[[], bool]) -> None:
        while (owed_s := self._owed_s()) >= _WAIT_S_MIN:
            if give_up():
                return
            self._wait(min(owed_s, _WAIT_S_MAX))
        self._started = self._monotonic()
        self._spent_bytes = 0

    def _owed_s(self) -> float:
        """How much longer the bytes of this window should have taken."""
        rate = self._bytes_per_second  # a negative one makes nobody wait, as in Kafka
        should_s = self._spent_bytes / rate if rate else math.inf
        return should_s - (self._monotonic() - self._started)
