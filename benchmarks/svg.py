"""Plots as SVG, written by hand: the same figures give the same bytes.

A plot is panels beside each other on a card that has colours of its own, so that it can be read on
a light page and on a dark one. Panels are lines over an axis that may be logarithmic, or bars that
share a scale. Either is drawn with the least and the most that was measured: a thin line across a
point or the end of a bar, or a band along a line of many points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from benchmarks.measurement import Better, Figure, short

PANEL_WIDTH, PANEL_HEIGHT = 420, 290
LEFT, RIGHT, TOP, BOTTOM = 58, 34, 76, 44
HEAD = 40  # of the plot's own title
BAR_HEIGHT, BAR_GAP, LABEL_HEIGHT = 16, 5, 22
BAR_LEFT, BAR_WIDTH = 124, 150  # the rest of a panel is for what a bar says
DOTS_MAX = 8  # a line of more points is not of single measurements

STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de; }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  text { fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .name { font-weight: 600; }
  .soft { fill: #59636e; font-size: 11px; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .line { fill: none; stroke-width: 2; }
  .spread { stroke-width: 1.5; opacity: 0.6; }
  .band { stroke: none; opacity: 0.18; }
  .whisker { stroke: #1f2328; stroke-width: 1.5; }
  .s0 { stroke: #0969da; } .f0 { fill: #0969da; }
  .s1 { stroke: #bc4c00; } .f1 { fill: #bc4c00; }
  .s2 { stroke: #54aeff; } .f2 { fill: #54aeff; }
  .s3 { stroke: #8250df; } .f3 { fill: #8250df; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .soft { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .whisker { stroke: #f0f6fc; }
    .s0 { stroke: #4493f8; } .f0 { fill: #4493f8; }
    .s1 { stroke: #f0883e; } .f1 { fill: #f0883e; }
    .s2 { stroke: #a5d6ff; } .f2 { fill: #a5d6ff; }
    .s3 { stroke: #ab7df8; } .f3 { fill: #ab7df8; }
  }
"""


@dataclass(frozen=True, slots=True)
class Line:
    """``points`` are (x, y) or (x, y, low, high), by x."""

    name: str
    colour: int
    points: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """``place`` maps a value to where it is drawn, ``ticks`` are (value, text)."""

    label: str
    ticks: Sequence[tuple[float, str]]
    place: Callable[[float], float] = float

    @property
    def span(self) -> tuple[float, float]:
        return self.place(self.ticks[0][0]), self.place(self.ticks[-1][0])

    def share(self, value: float) -> float:
        low, high = self.span
        return (self.place(value) - low) / (high - low or 1)


@dataclass(frozen=True, slots=True)
class LinePanel:
    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]

    @property
    def height(self) -> int:
        return PANEL_HEIGHT

    def draw(self, left: int, top: int) -> list[str]:
        width, height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM
        x0, y0 = left + LEFT, top + TOP

        def at(x: float, y: float) -> tuple[float, float]:
            return x0 + self.x.share(x) * width, y0 + (1 - self.y.share(y)) * height

        parts = [text(left + 16, top + 18, self.title, "name"), *self._legend(left + 16, top + 38)]
        for value, label in self.y.ticks:
            _, y = at(self.x.ticks[0][0], value)
            parts.append(rule(x0, y, x0 + width, y, "grid"))
            parts.append(text(x0 - 6, y + 4, label, "soft", "end"))
        for value, label in self.x.ticks:
            x, _ = at(value, self.y.ticks[0][0])
            parts.append(text(x, y0 + height + 16, label, "soft", "middle"))
        parts.append(text(x0 + width / 2, y0 + height + 34, self.x.label, "soft", "middle"))
        parts.append(text(left + 16, top + TOP - 10, self.y.label, "soft"))
        for line in self.lines:
            parts += self._line(line, at)
        return parts

    def _legend(self, left: float, top: float) -> list[str]:
        parts = []
        for line in self.lines:
            parts.append(
                f'<rect class="f{line.colour}" x="{left:.1f}" y="{top - 8:.1f}" '
                'width="9" height="9"/>'
            )
            parts.append(text(left + 13, top, line.name, "soft"))
            left += 28 + 5.6 * len(line.name)
        return parts

    def _line(self, line: Line, at: Callable[[float, float], tuple[float, float]]) -> list[str]:
        places = [at(point[0], point[1]) for point in line.points]
        drawn = f'<polyline class="line s{line.colour}" points="{path(places)}"/>'
        measured = [point for point in line.points if len(point) == 4]
        lows = [at(point[0], point[2]) for point in measured]
        highs = [at(point[0], point[3]) for point in measured]
        if len(places) > DOTS_MAX:
            around = path([*lows, *reversed(highs)])
            band = f'<polygon class="band f{line.colour}" points="{around}"/>'
            return [band, drawn] if around else [drawn]
        spreads = [
            rule(x, y_low, x, y_high, f"spread s{line.colour}")
            for (x, y_low), (_, y_high) in zip(lows, highs, strict=True)
        ]
        dots = [
            f'<circle class="f{line.colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places
        ]
        return [drawn, *spreads, *dots]


@dataclass(frozen=True, slots=True)
class Bars:
    """What is compared: bars of one unit, each (name, colour, figure)."""

    label: str
    unit: str
    better: Better
    bars: Sequence[tuple[str, int, Figure]]

    @property
    def title(self) -> str:
        return f"{self.label} ({'more' if self.better is Better.HIGHER else 'less'} is better)"


@dataclass(frozen=True, slots=True)
class BarPanel:
    title: str
    groups: Sequence[Bars]

    @property
    def height(self) -> int:
        return 34 + sum(
            LABEL_HEIGHT + len(group.bars) * (BAR_HEIGHT + BAR_GAP) + 10 for group in self.groups
        )

    def draw(self, left: int, top: int) -> list[str]:
        parts = [text(left + 16, top + 18, self.title, "name")]
        y = top + 34
        for group in self.groups:
            parts.append(text(left + 16, y + 12, group.title, "soft"))
            y += LABEL_HEIGHT
            scale = BAR_WIDTH / (max(figure.high for _, _, figure in group.bars) or 1)
            for name, colour, figure in group.bars:
                parts.append(text(left + 16, y + 12, name))
                parts += self._bar(left + 16 + BAR_LEFT, y, colour, figure, scale, group.unit)
                y += BAR_HEIGHT + BAR_GAP
            y += 10
        return parts

    def _bar(
        self, left: int, top: int, colour: int, figure: Figure, scale: float, unit: str
    ) -> list[str]:
        """With what it says behind it."""
        width = max(figure.median * scale, 1)
        parts = [
            f'<rect class="f{colour}" x="{left}" y="{top}" width="{width:.1f}" '
            f'height="{BAR_HEIGHT}" rx="2"/>',
        ]
        if figure.repeats > 1:
            low, high, y = left + figure.low * scale, left + figure.high * scale, top + 8
            parts.append(rule(low, y, high, y, "whisker"))
            parts += [rule(x, y - 3, x, y + 3, "whisker") for x in (low, high)]
        says = f"{short(figure.median)} {unit}"
        behind = left + max(width, figure.high * scale) + 6
        return [*parts, text(behind, top + 12, says, "soft")]


Panel = LinePanel | BarPanel


@dataclass(frozen=True, slots=True)
class Plot:
    """``caption`` says what was done, for who cannot see it too."""

    name: str
    title: str
    caption: str
    panels: Sequence[Panel] = field(default_factory=list)

    def draw(self) -> str:
        width = PANEL_WIDTH * len(self.panels)
        height = HEAD + max(panel.height for panel in self.panels) + 8
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{escape(self.title)}">',
            f"<title>{escape(self.title)}</title>",
            f"<desc>{escape(self.caption)}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>',
            text(16, 26, self.title, "title"),
        ]
        for number, panel in enumerate(self.panels):
            parts += panel.draw(number * PANEL_WIDTH, HEAD)
        return "\n".join([*parts, "</svg>"]) + "\n"


# --- axes ---------------------------------------------------------------------------------------


def powers(label: str, values: Sequence[float]) -> Axis:
    """Logarithmic, from the power of ten below the least to the one above the most."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high = max(high, low + 1)
    ticks = [(10.0**power, digits(10.0**power)) for power in range(low, high + 1)]
    return Axis(label, ticks, lambda value: log10(max(value, 10.0**low)))


def fine_powers(label: str, values: Sequence[float]) -> Axis:
    """Logarithmic too, by 1, 2 and 5: where one power of ten is most of what there is to see."""
    steps = [times * 10.0**power for power in range(-6, 13) for times in (1, 2, 5)]
    low = max(step for step in steps if step <= min(values))
    high = min(step for step in steps if step >= max(values) and step > low)
    ticks = [(step, digits(step)) for step in steps if low <= step <= high]
    return Axis(label, ticks, lambda value: log10(max(value, low)))


def even(label: str, values: Sequence[float]) -> Axis:
    """From 0, in some five round steps."""
    most = max(values)
    rough = most / 5
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= rough)
    count = ceil(most / step - 1e-9)
    return Axis(label, [(step * number, digits(step * number)) for number in range(count + 1)])


def tail(label: str) -> Axis:
    """Of quantiles: each further nine takes as much room."""
    ticks = [(0.0, "0"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")]
    return Axis(label, ticks, lambda share: -log10(1 - min(share, 0.9999)))


def digits(value: float) -> str:
    """All of them: a tick is a round number."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:g}"


# --- marks --------------------------------------------------------------------------------------


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{style} x="{x:.1f}" y="{y:.1f}"{side}>{escape(words)}</text>'


def path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
