"""What an entry returns: rows, each a figure beside its peer's and its bar, and series for plots.

A figure is the median of all repeats with the least and the most of them. A ratio is ours by
theirs, in the row's own unit: where less is better one below 1 is in our favour, else one above.

A peer is a system that somebody would use instead (``is_rival``), or a yardstick: bare bytes, or
the same work with nothing beside it. Only against the first can we be *slower*.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any


class Better(StrEnum):
    LOWER = "lower"
    HIGHER = "higher"


class NotMeasuredError(Exception):
    """An entry cannot be measured here; the message says why."""


@dataclass(frozen=True, slots=True)
class Figure:
    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Figure":
        return cls(statistics.median(samples), min(samples), max(samples), len(samples))


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    is_rival: bool = True


KAFKA = Peer("Apache Kafka")
CONNECTOR = Peer("Spark's Kafka connector")
PARQUET = Peer("Spark's Parquet")


@dataclass(frozen=True, slots=True)
class Bar:
    """What must be reached: by the figure itself, by its ratio, by both, or by ``either``."""

    value: float | None = None
    ratio: float | None = None
    either: bool = False

    def is_met(self, better: Better, value: float, ratio: float | None) -> bool | None:
        """None where there is no bar, or nothing to hold against it."""
        checks = [
            reached >= wanted if better is Better.HIGHER else reached <= wanted
            for wanted, reached in ((self.value, value), (self.ratio, ratio))
            if wanted is not None and reached is not None
        ]
        if not checks:
            return None
        return any(checks) if self.either else all(checks)


NO_BAR = Bar()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row. ``id`` stays the same from run to run; ``is_headline`` puts it in the README."""

    id: str
    what: str
    unit: str
    better: Better
    ours: Figure
    theirs: Figure | None = None
    peer: Peer | None = None
    bar: Bar = NO_BAR
    note: str = ""
    is_headline: bool = False

    @property
    def ratio(self) -> float | None:
        if self.theirs is None or not self.theirs.median:
            return None
        return self.ours.median / self.theirs.median

    @property
    def is_met(self) -> bool | None:
        return self.bar.is_met(self.better, self.ours.median, self.ratio)

    @property
    def is_slower(self) -> bool:
        """Than a system that somebody would use instead."""
        return self.peer is not None and self.peer.is_rival and self.disadvantage > 1

    @property
    def disadvantage(self) -> float:
        """How many times worse than the peer: below 1 where we are better, 0 without a peer."""
        if self.theirs is None:
            return 0.0
        more, less = self.ours.median, self.theirs.median
        if self.better is Better.HIGHER:
            more, less = less, more
        if not less:
            return math.inf if more else 0.0
        return more / less


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a plot: ``points`` are (x, y), or (x, y, low, high)."""

    plot: str
    name: str
    points: list[list[float]] = field(default_factory=list)

    def add(self, x: float, samples: Sequence[float]) -> None:
        """Their median and spread; nothing where nothing was measured."""
        if samples:
            found = Figure.of(samples)
            values = (x, found.median, found.low, found.high)
            self.points.append([float(f"{value:.4g}") for value in values])


Outcome = Measurement | Series


def measured(
    id: str,  # noqa: A002 - as in the file
    what: str,
    unit: str,
    ours: Sequence[float],
    theirs: Sequence[float] | None = None,
    *,
    better: Better,
    **rest: Any,
) -> Measurement:
    """A row of all that was measured of either side."""
    return Measurement(
        id=id,
        what=what,
        unit=unit,
        better=better,
        ours=Figure.of(ours),
        theirs=Figure.of(theirs) if theirs else None,
        **rest,
    )


lower = partial(measured, better=Better.LOWER)
higher = partial(measured, better=Better.HIGHER)


def quantile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def short(figure: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{figure:,.3g}" if abs(figure) < 1000 else f"{figure:,.0f}"
