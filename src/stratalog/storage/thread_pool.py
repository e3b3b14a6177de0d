"""Thread pools whose threads all run before the first job is handed over.

``ThreadPoolExecutor`` starts a thread when a job comes, and if the system has none left it raises
with the job in its queue: the job is told to have failed, and is done later all the same.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier


def started_pool(
    threads: int, name: str = "", begin: Callable[[], None] = lambda: None
) -> ThreadPoolExecutor:
    """Raises RuntimeError if there are not so many threads to be had."""
    pool = ThreadPoolExecutor(threads, name, begin)
    gate = Barrier(threads + 1)
    try:
        for _ in range(threads):
            pool.submit(gate.wait)
        gate.wait()
    except RuntimeError:
        gate.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return pool
