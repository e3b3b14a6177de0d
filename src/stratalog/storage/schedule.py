"""Things to do again and again, by a clock that is an argument."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class PeriodicTask:
    """``run`` is called with the time whenever ``period_ms`` has passed since it was last due."""

    name: str
    period_ms: int
    due_ms: int
    run: Callable[[int], None]


class Schedule:
    def __init__(self) -> None:
        self.tasks: list[PeriodicTask] = []

    def add(self, name: str, run: Callable[[int], None], *, first_ms: int, period_ms: int) -> None:
        self.tasks.append(PeriodicTask(name, period_ms, first_ms, run))

    def change_period(self, name: str, period_ms: int, now_ms: int) -> None:
        """The new period counts from now on."""
        for task in self.tasks:
            if task.name == name:
                task.period_ms = period_ms
                task.due_ms = min(task.due_ms, now_ms + period_ms)

    def next_due_ms(self) -> int | None:
        return min((task.due_ms for task in self.tasks), default=None)

    def run_due(self, now_ms: int) -> list[str]:
        """Run what is due, the longest waiting first; returns the names of what ran."""
        ran = []
        for task in sorted(self.tasks, key=lambda task: task.due_ms):
            if task.due_ms <= now_ms:
                # From now, not from when it was due: after a long pause it runs once.
                task.due_ms = now_ms + task.period_ms
                task.run(now_ms)
                ran.append(task.name)
        return ran
