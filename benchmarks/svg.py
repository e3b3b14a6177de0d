"""Plots as SVG, written by hand: the same figures give the same bytes.

A plot is panels beside each other on a card that has colours of its own, so that it can be read on
a light page and on a dark one. Panels are lines over an axis that may be logarithmic, with the
spread of each point, or bars that share a scale.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from benchmarks.measurement import short

PANEL_WIDTH, PANEL_HEIGHT = 380, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 28, 66, 44
HEAD = 40  # of the plot's own title
BAR_HEIGHT, BAR_GAP, LABEL_HEIGHT = 16, 5, 22
COLOURS = 4

STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de; }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  text { fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .name { font-weight: 600; }
  .soft { fill: #59636e; font-size: 11px; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .line { fill: none; stroke-width: 2; }
  .spread { stroke-width: 1; opacity: 0.6; }
  .s0 { stroke: #0969da; } .f0 { fill: #0969da; }
  .s1 { stroke: #bc4c00; } .f1 { fill: #bc4c00; }
  .s2 { stroke: #54aeff; } .f2 { fill: #54aeff; }
  .s3 { stroke: #8250df; } .f3 { fill: #8250df; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .soft { fill: #9198a1; }
    .grid { stroke: #3d444d; }
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
            left += 26 + 6.1 * len(line.name)
        return parts

    def _line(self, line: Line, at: Callable[[float, float], tuple[float, float]]) -> list[str]:
        places = [at(point[0], point[1]) for point in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts = [f'<polyline class="line s{line.colour}" points="{path}"/>']
        for point in line.points:
            if len(point) == 4:
                (x, y_low), (_, y_high) = at(point[0], point[2]), at(point[0], point[3])
                parts.append(rule(x, y_low, x, y_high, f"spread s{line.colour}"))
        if len(places) <= 8:
            parts += [
                f'<circle class="f{line.colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
                for x, y in places
            ]
        return parts


@dataclass(frozen=True, slots=True)
class Bars:
    """What is compared: bars of one unit, each (name, colour, value)."""

    label: str
    unit: str
    bars: Sequence[tuple[str, int, float]]


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
            parts.append(text(left + 16, y + 12, group.label, "soft"))
            y += LABEL_HEIGHT
            most = max(value for _, _, value in group.bars) or 1
            for name, colour, value in group.bars:
                parts += self._bar(left + 16, y, name, colour, value / most)
                label = f"{short(value)} {group.unit}"
                width = value / most * (PANEL_WIDTH - 240)
                parts.append(text(left + 134 + max(width, 1) + 6, y + 12, label, "soft"))
                y += BAR_HEIGHT + BAR_GAP
            y += 10
        return parts

    def _bar(self, left: int, top: int, name: str, colour: int, share: float) -> list[str]:
        width = max(share * (PANEL_WIDTH - 240), 1)
        return [
            text(left, top + 12, name),
            f'<rect class="f{colour}" x="{left + 118}" y="{top}" width="{width:.1f}" '
            f'height="{BAR_HEIGHT}" rx="2"/>',
        ]


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
    ticks = [(10.0**power, thousands(10.0**power)) for power in range(low, high + 1)]
    return Axis(label, ticks, lambda value: log10(max(value, 10.0**low)))


def even(label: str, values: Sequence[float]) -> Axis:
    """From 0, in some four or five round steps."""
    most = max(values)
    rough = most / 4
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= rough)
    count = ceil(most / step - 1e-9)
    return Axis(label, [(step * number, thousands(step * number)) for number in range(count + 1)])


def tail(label: str) -> Axis:
    """Of quantiles: each further nine takes as much room."""
    ticks = [(0.0, "0"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")]
    return Axis(label, ticks, lambda share: -log10(1 - min(share, 0.9999)))


def thousands(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if value >= 1_000 else f"{value:g}"


# --- marks --------------------------------------------------------------------------------------


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{style} x="{x:.1f}" y="{y:.1f}"{side}>{escape(words)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
