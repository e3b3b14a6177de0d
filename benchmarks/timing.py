"""How long a piece of work takes: by the clock on the wall, and on the cores of this process."""

import time
from collections.abc import Callable


def wall_s(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cpu_s(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
