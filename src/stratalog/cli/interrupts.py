"""Ctrl-C at a time when two steps must both be done, or neither: it waits for the second."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """A KeyboardInterrupt comes at the end of this, not within; the second one does not wait.

    A handler, and not a blocked signal: which of a process's threads a signal goes to is the
    system's choice. Nothing changes where somebody else handles it, or outside the main thread.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    is_waiting = False

    def note(_number: int, _frame: object) -> None:
        nonlocal is_waiting
        if is_waiting:  # what is to be done first may itself wait for something
            raise KeyboardInterrupt
        is_waiting = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if is_waiting:
            raise KeyboardInterrupt
