"""How long the event loop keeps everything waiting: measured, not sampled.

Between two looks for what is ready the loop runs all that was. ``BrokerLoop`` takes the time of
each such turn, for a third of a microsecond and without a timer that would wake an idle broker. In
a loop that is not ours a timer has to do, which sees only the stalls that it happens to fall into.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from stratalog.broker.broker_loop import BrokerLoop
from stratalog.broker.event_log import log_event
from stratalog.broker.metrics import Metrics

STALL_NS: Final = 100_000_000
_SAMPLE_SECONDS: Final = 1.0


def watch_loop(loop: asyncio.AbstractEventLoop, metrics: Metrics) -> Callable[[], None]:
    """Count the lags of ``loop``; what this returns ends it. On the loop's thread."""
    if isinstance(loop, BrokerLoop):
        turns = loop.turns
        turns.watch(lambda lag_ns: note_lag(metrics, lag_ns))
        return lambda: turns.watch(None)
    return _Sampler(loop, metrics).stop


def note_lag(metrics: Metrics, lag_ns: int) -> None:
    metrics.loop_lags.add(lag_ns)
    if lag_ns >= STALL_NS:
        log_event("loop_stalled", milliseconds=lag_ns // 1_000_000)


class _Sampler:
    """Asks to be called at a moment, and counts by how much it is called later."""

    def __init__(self, loop: asyncio.AbstractEventLoop, metrics: Metrics) -> None:
        self._loop = loop
        self._metrics = metrics
        self._due = loop.time() + _SAMPLE_SECONDS
        self._timer = loop.call_at(self._due, self._sample)

    def _sample(self) -> None:
        now = self._loop.time()
        note_lag(self._metrics, max(int((now - self._due) * 1e9), 0))
        self._due = now + _SAMPLE_SECONDS
        self._timer = self._loop.call_at(self._due, self._sample)

    def stop(self) -> None:
        self._timer.cancel()
