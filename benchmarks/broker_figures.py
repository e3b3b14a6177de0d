"""How much is measured, and how figures of several sides in several rounds become rows.

A round measures every side once; the next one starts with another side, so that what else the
machine does meets all of them alike. A figure is the median of the rounds, and its spread is told
beside it: the least and the most.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from benchmarks.result import Result

OURS, SYNCED, KAFKA = "stratalog", "stratalog, flush on ack", "Apache Kafka"

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """``seconds`` of warm-up for each side; a measurement takes no longer either."""

    seconds: float = 30.0
    rounds: int = 5

    @property
    def size_bytes(self) -> int:
        """What one measurement moves at most: the page cache holds it, the disk need not."""
        return int(min(1e9, 100e6 * self.seconds))

    def turns(self, sides: Sequence[T]) -> Iterator[T]:
        for number in range(self.rounds):
            first = number % len(sides)
            yield from sides[first:]
            yield from sides[:first]


Figures = Mapping[str, Sequence[float]]  # of each side, by its name


def spread(figures: Iterable[float]) -> str:
    ordered = sorted(figures)
    if len(ordered) == 1:
        return _short(ordered[0])
    return f"{_short(median(ordered))} ({_short(ordered[0])} to {_short(ordered[-1])})"


def _short(figure: float) -> str:
    return f"{figure:,.3g}" if figure < 1000 else f"{figure:,.0f}"


def told(figures: Figures, unit: str) -> str:
    sides = (f"{name} {spread(found)}" for name, found in figures.items())
    return f"{unit}: {'; '.join(sides)}"


def compared(
    what: str, figures: Figures, unit: str, times_kafka: float | None, *, higher_is_better: bool
) -> Result:
    """Ours by Apache Kafka's, or ours alone where that could not run."""
    ours = median(figures[OURS])
    detail = told(figures, unit)
    if KAFKA not in figures:
        return Result(what, ours, unit, None, detail=detail)
    return Result(
        what,
        ours / median(figures[KAFKA]),
        "times Apache Kafka's",
        times_kafka,
        higher_is_better=higher_is_better,
        detail=detail,
    )
