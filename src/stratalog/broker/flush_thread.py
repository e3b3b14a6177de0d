"""A thread that makes things durable, with a short way there and back.

A record that is waited for costs little more than its sync, so that what hands the sync over
counts. A job goes there through a queue of C, whose other end sleeps in the kernel. Its result
comes back by a counter of the kernel (``eventfd``) that the loop watches as it watches sockets:
what is to be done then is called by the look itself. Futures and the queue of handles, twice in
each direction, took a quarter of what one record waited for.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
Job = Callable[[], Callable[[], None]]


class FlushThread:
    """Jobs are done one after the other. Confined to the loop, but for the jobs themselves."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._done: deque[Callable[[], None]] = deque()
        self._counter = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        loop.add_reader(self._counter, self._tell)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], done: Callable[[T], None]) -> None:
        """Let the thread do ``job``, and call ``done`` with its result on the loop. A job does not
        raise: what goes wrong is part of its result."""
        self._jobs.put(lambda: partial(done, job()))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.append(job())
            # Until the next one comes nothing of it is kept: deleted files would stay open.
            del job
            os.eventfd_write(self._counter, 1)

    def _tell(self) -> None:
        os.eventfd_read(self._counter)
        try:
            while self._done:
                self._done.popleft()()
        finally:
            if self._done:  # one has failed, and the others are told in the next turn
                os.eventfd_write(self._counter, 1)

    def stop(self) -> None:
        """Do what was submitted, and tell nobody any more."""
        self._jobs.put(None)
        self._thread.join()
        self._loop.remove_reader(self._counter)
        os.close(self._counter)
