"""Work that can wait: where cores are few, its thread leaves them to whoever serves clients."""

import os
import threading
from contextlib import suppress

_NICENESS = 10


def yield_to_others() -> None:
    """Of the thread that calls, for as long as it lives."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
