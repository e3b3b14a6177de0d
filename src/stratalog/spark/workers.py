"""What a Python worker of Spark's is told once, before it reads: how to keep house.

A worker serves many tasks, and after each it collects garbage among all the objects that imports
have left, which takes tens of milliseconds; and the memory of each record batch goes back to the
system, to be cleared and faulted in again for the next. Both cost a fifth of what a scan costs in
such a process, and both are settled here, in the worker alone.
"""

import ctypes
import gc
from functools import cache

from stratalog.spark.counting import let_workers_tell

# Of glibc's mallopt. Blocks below the first come from the heap, whose end is given back only when
# more than the second is free there.
_M_TRIM_THRESHOLD, _TRIM_BYTES = -1, 128 << 20
_M_MMAP_THRESHOLD, _MMAP_BYTES = -3, 32 << 20


@cache
def settle_in() -> None:
    """Once in a process: what is there stays, and memory that was used is used again."""
    let_workers_tell()
    gc.collect()
    gc.freeze()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # another C library has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
