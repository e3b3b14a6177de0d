"""How much is measured: how long, how often, and of what size.

``STRATALOG_BENCH_SCALE`` makes all data smaller, for trying things out: ``--quick`` sets it. It is
read from the environment because parts of a measurement run in processes of their own. Bars are
meant for 1.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

SCALE_VARIABLE = "STRATALOG_BENCH_SCALE"
SCALE = float(os.environ.get(SCALE_VARIABLE, "1"))

T = TypeVar("T")


def scaled(count: int, *, least: int = 1) -> int:
    return max(int(count * SCALE), min(least, count))


def repeats(count: int) -> int:
    """How often the same thing is measured: what is only tried out need not be sure."""
    return count if SCALE >= 1 else min(count, 2)


@dataclass(frozen=True)
class Effort:
    """``seconds`` of warm-up for each side; a measurement takes no longer either."""

    seconds: float = 30.0
    rounds: int = 5

    @property
    def size_bytes(self) -> int:
        """What one measurement moves at most: the page cache holds it, the disk need not."""
        return int(min(5e8, 100e6 * self.seconds))

    def at_most(self, *, seconds: float | None = None, rounds: int | None = None) -> "Effort":
        """Where the spread allows for less than others need."""
        return replace(
            self,
            seconds=min(self.seconds, self.seconds if seconds is None else seconds),
            rounds=min(self.rounds, self.rounds if rounds is None else rounds),
        )

    def turns(self, sides: Sequence[T]) -> Iterator[T]:
        """A round measures every side once; the next one starts with another side, so that what
        else the machine does meets all of them alike."""
        for number in range(self.rounds):
            first = number % len(sides)
            yield from sides[first:]
            yield from sides[:first]
