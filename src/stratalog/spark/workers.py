"""What a Python worker of Spark's is told before it works: how to keep house.

A worker serves many tasks, and after each it collects garbage among all the objects that imports
have left, which takes tens of milliseconds; and the memory of each record batch goes back to the
system, to be cleared and faulted in again for the next. Both cost a fifth of what a scan costs in
such a process, and both are settled here, in the worker alone. The processes in which Spark plans
and commits collect their garbage in the same way, while tasks want the core.
"""

import ctypes
import gc
import sys
import traceback
from functools import cache
from itertools import count
from typing import Any

from stratalog.spark.counting import let_workers_tell

# Of glibc's mallopt. Blocks below the first come from the heap, whose end is given back only when
# more than the second is free there.
_M_TRIM_THRESHOLD, _TRIM_BYTES = -1, 128 << 20
_M_MMAP_THRESHOLD, _MMAP_BYTES = -3, 32 << 20

# At the first call there is what was imported to get here; at the second also what Spark itself
# imported when the first was over, pandas for one.
_CALLS_THAT_FREEZE = 2
_calls = count()

# What the processes run that Spark makes to plan and commit in.
_SPARK = "pyspark."


def settle_in() -> None:
    """Whenever a task begins: what is there stays, and memory that was used is used again."""
    _freeze()
    _keep_memory()
    end_quietly()


def freeze_imports() -> None:
    """Whenever Spark calls, not in a task. In somebody else's process it is not ours to say what
    garbage is."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is not None and main.name.startswith(_SPARK):
        _freeze()


def _freeze() -> None:
    """No collection looks at what was imported until now."""
    if next(_calls) < _CALLS_THAT_FREEZE:
        gc.collect()
        gc.freeze()


@cache
def _keep_memory() -> None:
    let_workers_tell()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # another C library has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


@cache
def end_quietly() -> None:
    """In a process that Spark's daemon has made: a closed pipe at its end is nobody's trouble.

    Spark closes the pipe of a task when a LIMIT has its rows, and that of a process that plans as
    soon as it has read the answer, which may be before the process has seen it off. The daemon
    prints a trace of each. All other traces are still printed.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == f"{_SPARK}daemon":
        main.traceback = _QuietTraces()  # type: ignore[attr-defined]


class _QuietTraces:
    """The module ``traceback``, but for what it prints of a closed pipe."""

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    def print_exc(self, *arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            traceback.print_exc(*arguments, **named)
