"""Ctrl-C is heard also by tests in the background of a shell, which has it ignored otherwise."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_heard() -> Iterator[None]:
    """As Python has it by itself; what is started here inherits that it is heard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
