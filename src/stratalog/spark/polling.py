"""A directory looked at again and again, and never more often than it can bear.

Spark asks an idle stream for its latest offset some 86 times a second; a directory is listed (or
its owner asked) at most ten times a second, and if that takes long at most half of the time. Who
has to know what is there now waits for the next look: a tenth of a second, seldom more.
"""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from stratalog.clock import Clock

LOOKS_PER_SECOND_MAX = 10
_INTERVAL_MS = 1000 // LOOKS_PER_SECOND_MAX
_INTERVAL_MS_MAX = 5000

View = TypeVar("View")
Sleep = Callable[[float], None]


class Poller(Generic[View]):
    """What ``look`` saw last, and a new look once the last one has aged."""

    def __init__(self, look: Callable[[], View], clock: Clock, sleep: Sleep = time.sleep) -> None:
        self._look = look
        self._clock = clock
        self._sleep = sleep
        self._view: View | None = None
        self._next_look_ms = 0
        self.looks = 0

    def latest(self) -> View:
        """What was there a moment ago, or is now."""
        started_ms = self._clock.now_ms()
        if self._view is None or started_ms >= self._next_look_ms:
            self._view = self._look()
            self.looks += 1
            took_ms = self._clock.now_ms() - started_ms
            rest_ms = min(max(_INTERVAL_MS, 2 * took_ms), _INTERVAL_MS_MAX)
            self._next_look_ms = started_ms + rest_ms
        return self._view

    def wait(self) -> None:
        """Until it is time for another look."""
        left_ms = self._next_look_ms - self._clock.now_ms()
        if left_ms > 0:
            self._sleep(left_ms / 1000)

    def forget(self) -> None:
        """What was seen is too old for what is asked next."""
        self._view = None
