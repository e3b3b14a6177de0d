"""What workers ask the owner's thread to do for them.

A log is changed on its owner's thread alone. A worker that has something for it calls ``call`` and
waits; the owner runs what has arrived with ``run_all``, when it is told to (``notify``) or when it
comes by. A worker's wait ends when the inbox is closed.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from stratalog.errors import CleaningAbortedError

T = TypeVar("T")


class OwnerInbox:
    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        self.notify = notify  # called on the worker's thread
        self._guard = threading.Lock()
        self._arrived = threading.Condition(self._guard)
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._is_closed = False

    def post(self, action: Callable[[], T]) -> "Future[T]":
        """From a worker: have the owner run ``action``."""
        future: Future[T] = Future()
        with self._guard:
            if self._is_closed:
                raise CleaningAbortedError("the owner has stopped listening")
            self._waiting.append((action, future))
            self._arrived.notify_all()
        self.notify()
        return future

    def call(self, action: Callable[[], T]) -> T:
        """From a worker: have the owner run ``action``, and wait for what it returns or raises."""
        return self.post(action).result()

    def run_all(self) -> int:
        """On the owner's thread: run what has arrived."""
        count = 0
        while True:
            with self._guard:
                if not self._waiting:
                    return count
                action, future = self._waiting.popleft()
            count += 1
            try:
                future.set_result(action())
            except Exception as error:  # noqa: BLE001 - it is the caller's, who waits for it
                future.set_exception(error)

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
            future.set_exception(CleaningAbortedError("the owner has stopped listening"))
