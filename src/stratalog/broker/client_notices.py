"""What an operator is told of clients that cannot be served: once a minute for each address.

Such clients try again and again, so that without a bound the log would tell of nothing else.
"""

from stratalog.broker.event_log import log_event
from stratalog.clock import Clock

INTERVAL_MS = 60_000
_ADDRESSES_MAX = 1_000


class ClientNotices:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_ms: dict[tuple[str, str, str], int] = {}

    def say(self, event: str, host: str, *, advice: str, **fields: object) -> None:
        """Tell of a client at ``host``, unless this was told of it within the last minute."""
        host = host.removeprefix("/")
        told = (event, host, advice)
        now_ms = self._clock.now_ms()
        told_ms = self._told_ms.get(told)
        if told_ms is not None and now_ms - told_ms < INTERVAL_MS:
            return
        if len(self._told_ms) >= _ADDRESSES_MAX:
            self._told_ms.clear()
        self._told_ms[told] = now_ms
        log_event(event, client=host, **fields, advice=advice)
