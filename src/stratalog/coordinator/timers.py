"""Deadlines by name: what has to happen later, unless it is put off or called off before.

Heartbeats put deadlines off all the time, so that must cost next to nothing: an entry in the heap
is left where it is, and moved to its real deadline only when its turn has come.
"""

from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count

Action = Callable[[], None]


class _Timer:
    __slots__ = ("action", "deadline_ms", "queued_ms")

    def __init__(self, action: Action, deadline_ms: int) -> None:
        self.action = action
        self.deadline_ms = deadline_ms
        self.queued_ms = deadline_ms


class Timers:
    """``wake`` is told of a deadline that is earlier than all the others."""

    def __init__(self, wake: Callable[[int], None]) -> None:
        self._wake = wake
        self._timers: dict[Hashable, _Timer] = {}
        self._queue: list[tuple[int, int, Hashable, _Timer]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def schedule(self, key: Hashable, deadline_ms: int, action: Action) -> None:
        """In the place of what was scheduled under this key, if anything was."""
        timer = self._timers.get(key)
        if timer is not None and timer.queued_ms <= deadline_ms:
            timer.deadline_ms = deadline_ms
            timer.action = action
            return
        self._enqueue(key, _Timer(action, deadline_ms))

    def cancel(self, key: Hashable) -> None:
        self._timers.pop(key, None)
        if len(self._queue) > 64 and len(self._queue) > 4 * len(self._timers):
            self._compact()

    def next_deadline_ms(self) -> int | None:
        """When ``run_due`` is to be called at the latest; it may find nothing to do then."""
        self._drop_cancelled()
        return self._queue[0][0] if self._queue else None

    def run_due(self, now_ms: int) -> None:
        """Do what is due, in order; what is scheduled meanwhile has its turn next time. One that
        fails keeps no other from its turn: the first failure is raised when all have had theirs."""
        failure: Exception | None = None
        for action in self._due(now_ms):
            try:
                action()
            except Exception as error:  # noqa: BLE001 - one group's trouble is not the others'
                failure = failure or error
        if failure is not None:
            raise failure

    def _due(self, now_ms: int) -> Iterator[Action]:
        first_new = next(self._numbers)
        while self._queue and self._queue[0][0] <= now_ms and self._queue[0][1] < first_new:
            _, _, key, timer = heappop(self._queue)
            if self._timers.get(key) is not timer:
                continue
            if timer.deadline_ms > now_ms:
                timer.queued_ms = timer.deadline_ms
                heappush(self._queue, (timer.deadline_ms, next(self._numbers), key, timer))
            else:
                del self._timers[key]
                yield timer.action

    def _enqueue(self, key: Hashable, timer: _Timer) -> None:
        is_earliest = not self._queue or timer.deadline_ms < self._queue[0][0]
        self._timers[key] = timer
        heappush(self._queue, (timer.deadline_ms, next(self._numbers), key, timer))
        if is_earliest:
            self._wake(timer.deadline_ms)

    def _drop_cancelled(self) -> None:
        while self._queue and self._timers.get(self._queue[0][2]) is not self._queue[0][3]:
            heappop(self._queue)

    def _compact(self) -> None:
        self._queue = [each for each in self._queue if self._timers.get(each[2]) is each[3]]
        heapify(self._queue)
