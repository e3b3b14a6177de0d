"""A clock whose hands a test turns."""


class ManualClock:
    """Stands still until ``advance``; never goes back by itself, but ``set`` may."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        assert ms >= 0, "time does not go back; use set for that"
        self._now_ms += ms

    def set(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"ManualClock({self._now_ms})"
