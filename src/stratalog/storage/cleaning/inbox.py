"""What workers ask the owner's thread to do for them.

A log is changed on its owner's thread alone. A worker that has something for it calls ``call`` and
waits; the owner runs what has arrived with ``run_all``, when it is told to (``notify``) or when it
comes by. A worker's wait always ends: with what came of it, or when the inbox is closed.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from stratalog.errors import CleaningAbortedError

T = TypeVar("T")

_NOBODY_LISTENS = "the owner has stopped listening"


class OwnerInbox:
    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        self.notify = notify  # called on the worker's thread
        self._guard = threading.Lock()
        self._arrived = threading.Condition(self._guard)
        self._waiting: deque[tuple[Callable[[], Any], Future[Any] | None]] = deque()
        self._is_closed = False

    def post(self, action: Callable[[], object]) -> None:
        """From a worker: have the owner run ``action``; what it raises, the owner gets to see."""
        self._put(action, None)

    def call(self, action: Callable[[], T]) -> T:
        """From a worker: have the owner run ``action``, and wait for what it returns or raises."""
        future: Future[T] = Future()
        self._put(action, future)
        try:
            return future.result()
        finally:
            # What is raised holds this frame: were that to hold the future, nothing that the
            # action was about would be let go of.
            del future

    def _put(self, action: Callable[[], Any], future: Future[Any] | None) -> None:
        with self._guard:
            if self._is_closed:
                raise CleaningAbortedError(_NOBODY_LISTENS)
            self._waiting.append((action, future))
            self._arrived.notify_all()
        # An owner that cannot be told comes by sooner or later. To raise would be to take the
        # action back, and it may be running already.
        with suppress(Exception):
            self.notify()

    def run_all(self) -> int:
        """On the owner's thread: run what has arrived; returns how much that was."""
        count = 0
        while self._run_next():
            count += 1
        return count

    def _run_next(self) -> bool:
        with self._guard:
            if not self._waiting:
                return False
            action, future = self._waiting.popleft()
        if future is None:
            action()
            return True
        try:
            future.set_result(action())
        except Exception as error:  # noqa: BLE001 - it is the caller's, who waits for it
            future.set_exception(error)
        except BaseException:
            # The owner is being stopped. It will wait for the worker, who must not wait for it.
            future.set_exception(CleaningAbortedError(_NOBODY_LISTENS))
            raise
        finally:
            del action, future  # as in ``call``
        return True

    def wait(self, timeout_s: float) -> int:
        """On the owner's thread: wait until something arrives, then run it."""
        with self._guard:
            if not self._waiting:
                self._arrived.wait(timeout_s)
        return self.run_all()

    def close(self) -> None:
        """Nobody is listened to any more; whoever waits is told."""
        with self._guard:
            self._is_closed = True
            waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if future is not None:
                future.set_exception(CleaningAbortedError(_NOBODY_LISTENS))
