"""Time is an argument: whoever needs it is given a clock, so that tests can turn its hands."""

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the epoch, as Kafka counts them."""

    def now_ms(self) -> int: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
