"""Ctrl-C, and what a closed terminal or a supervisor sends: they end the scene that plays.

An exception does so, raised wherever the demo happens to be. Compiled code may lose one that comes
within it, or make another error of it (a client's library says of a record's headers that they are
no text), so that who was asked to stop is also written down, and looked up.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked to stop; ``args`` has its number."""


class StopRequest:
    """Whether the demo was asked to stop."""

    def __init__(self) -> None:
        self._number: int | None = None

    def hear(self, number: int, _frame: FrameType | None) -> None:
        self._number = number
        raise Stopped(number)

    def look_up(self) -> None:
        """For who would go on: raises if a request was lost on its way."""
        if self._number is not None:
            raise Stopped(self._number)


@contextmanager
def stoppable() -> Iterator[StopRequest]:
    """Whatever ends the block after a signal, it was stopped by that. Not heard is what is ignored
    already, as ``nohup`` has it."""
    request = StopRequest()
    heard = [each for each in _NUMBERS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, request.hear) for number in heard}
    try:
        yield request
    except Exception:
        request.look_up()
        raise
    else:
        request.look_up()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
