"""Time is an argument: whoever needs it is given a clock, so that tests can turn its hands."""

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the epoch, as Kafka counts them."""

    def now_ms(self) -> int: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SteadyClock:
    """The time of day when it was made, and from then on what has passed: never set, so that
    nobody's time is over because a machine has been put right or asleep."""

    def __init__(self) -> None:
        self._ahead_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._ahead_ns) // 1_000_000
