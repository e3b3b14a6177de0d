"""Requests that wait: for a high watermark, for bytes to read, or for their time to run out.

An operation waits under the keys of everything that could complete it. Whoever changes one of
those calls ``check``; the owner calls ``expire`` when the time of the first has come. An operation
completes exactly once, whichever comes first, whether or not its answer succeeds.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count


class DelayedOperation:
    """Something to be completed by what it waits for, or at ``deadline_ms``."""

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.is_done = False
        self.keys: tuple[Hashable, ...] = ()

    def is_ready(self) -> bool:
        """Whether what it waits for has come true."""
        raise NotImplementedError

    def is_ready_by(self, key: Hashable) -> bool:
        """The same, where only what lies behind ``key`` can have changed since it was last asked:
        so that who waits for a thousand partitions need not look at all of them."""
        return self.is_ready()

    def complete(self, *, is_expired: bool) -> None:
        """Answer; called once."""
        raise NotImplementedError


class Purgatory:
    """The operations of one kind that wait. Confined to the owner's thread."""

    def __init__(self, wake: Callable[[int], None] = lambda _deadline_ms: None) -> None:
        """``wake`` is told the deadline of each operation that begins to wait."""
        self._wake = wake
        # Insertion-ordered, so that who waits longest is asked first.
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._deadlines: list[tuple[int, int, DelayedOperation]] = []
        self._numbers = count()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def complete_or_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Complete ``operation`` if it is ready, else let it wait; whether it was completed."""
        if operation.is_ready():
            operation.is_done = True
            operation.complete(is_expired=False)
            return True
        operation.keys = tuple(keys)
        for key in operation.keys:
            self._watchers.setdefault(key, {})[operation] = None
        heapq.heappush(self._deadlines, (operation.deadline_ms, next(self._numbers), operation))
        self._waiting += 1
        self._wake(operation.deadline_ms)
        return False

    def check(self, key: Hashable) -> int:
        """What lies behind ``key`` has changed: complete who is ready now; returns how many."""
        watching = self._watchers.get(key)
        if not watching:
            return 0
        ready = [operation for operation in watching if operation.is_ready_by(key)]
        self._finish_all(ready, is_expired=False)
        return len(ready)

    def keys(self) -> list[Hashable]:
        """What anybody waits for."""
        return list(self._watchers)

    def cancel(self, operation: DelayedOperation) -> None:
        """Whoever asked has gone: forget the operation without an answer."""
        if not operation.is_done:
            operation.is_done = True
            self._forget(operation)

    def expire(self, now_ms: int) -> int:
        """Complete those whose time has come; returns how many."""
        expired = 0

        def late() -> Iterator[DelayedOperation]:
            nonlocal expired
            while self._deadlines and self._deadlines[0][0] <= now_ms:
                _, _, operation = heapq.heappop(self._deadlines)
                if not operation.is_done:
                    expired += 1
                    yield operation

        self._finish_all(late(), is_expired=True)
        return expired

    def next_deadline_ms(self) -> int | None:
        """When ``expire`` is next due."""
        while self._deadlines and self._deadlines[0][2].is_done:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _finish_all(self, operations: Iterable[DelayedOperation], *, is_expired: bool) -> None:
        """Who cannot be answered keeps nobody else from an answer: the first failure is raised
        when all have been completed."""
        failure: Exception | None = None
        for operation in operations:
            try:
                self._finish(operation, is_expired=is_expired)
            except Exception as error:  # noqa: BLE001 - one client's trouble is not the others'
                failure = failure or error
        if failure is not None:
            raise failure

    def _finish(self, operation: DelayedOperation, *, is_expired: bool) -> None:
        if operation.is_done:
            return
        operation.is_done = True
        self._forget(operation)
        operation.complete(is_expired=is_expired)

    def _forget(self, operation: DelayedOperation) -> None:
        self._waiting -= 1
        for key in operation.keys:
            watching = self._watchers.get(key)
            if watching is not None:
                watching.pop(operation, None)
                if not watching:
                    del self._watchers[key]
        # Completed operations stay in the heap until their time; many of them are swept out.
        if len(self._deadlines) > 1000 and len(self._deadlines) > 2 * self._waiting:
            self._deadlines = [each for each in self._deadlines if not each[2].is_done]
            heapq.heapify(self._deadlines)
