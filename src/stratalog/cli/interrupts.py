"""Ctrl-C at times when a KeyboardInterrupt, wherever it happens to come, would be wrong.

Where two steps must both be done, or neither, it waits for the second. Where nothing has begun
yet, or all is done, the process is left at once. Where compiled code is called, which may lose a
KeyboardInterrupt that comes within it or make another error of it, it is not forgotten.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
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
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


class _Remembering:
    """A handler that raises, and knows afterwards that it has."""

    def __init__(self) -> None:
        self._has_heard = False

    def __call__(self, _number: int, _frame: object) -> None:
        self._has_heard = True
        raise KeyboardInterrupt

    def look_up(self) -> None:
        if self._has_heard:
            raise KeyboardInterrupt


@contextmanager
def interrupts_stay() -> Iterator[Callable[[], None]]:
    """An error of the block after a Ctrl-C is a KeyboardInterrupt. What it yields is for those who
    go round and round: calling it raises one that was lost."""
    if not _is_ours():
        yield lambda: None
        return
    handler = _Remembering()
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield handler.look_up
    except Exception:
        handler.look_up()
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _is_ours() -> bool:
    """Not if somebody else handles it, or has it ignored, or outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or isinstance(handler, _Remembering)


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

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if is_waiting:
            raise KeyboardInterrupt
