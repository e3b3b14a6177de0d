"""How far a start has come: an event every few seconds, for whoever waits for a port that opens
when all logs have been opened."""

from collections.abc import Callable

from stratalog.broker.event_log import log_event
from stratalog.storage.loading import LoadProgress

EVENT_MS = 5_000


class OpeningProgress:
    """Called with each log that has been opened, and each piece of one that was read again."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._due_ms = now_ms() + EVENT_MS

    def __call__(self, progress: LoadProgress) -> None:
        now_ms = self._now_ms()
        if now_ms >= self._due_ms:
            self._due_ms = now_ms + EVENT_MS
            log_event(
                "opening_logs",
                opened=progress.logs_done,
                logs=progress.logs_total,
                read_again_bytes=progress.bytes_scanned,
            )
