"""Ctrl-C at times when a KeyboardInterrupt, wherever it happens to come, would be wrong.

Where two steps must both be done, or neither, it waits for the second. Where nothing has begun
yet, or all is done, the process is left at once.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stratalog.cli.failures import INTERRUPTED


def leave_at_once() -> None:
    """From now on Ctrl-C ends the process without another word."""
    if _is_ours():
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def leaves_at_once() -> Iterator[None]:
    """The same for a while, of imports: within one of compiled code a KeyboardInterrupt may be
    lost, or become another error."""
    if not _is_ours():
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


def _is_ours() -> bool:
    """Not if somebody else handles it, or has it ignored, or outside the main thread."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """A KeyboardInterrupt comes at the end of this, not within; the second one does not wait.

    A handler, and not a blocked signal: which of a process's threads a signal goes to is the
    system's choice. Nothing changes where somebody else handles it, or outside the main thread.
    """
    if not _is_ours():
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
