"""What a person sees of the demo: scenes, sentences, tables, and progress while something runs.

In colour and moving on a terminal; plain lines where the output goes to a file, where ``NO_COLOR``
is set or the terminal can do no more. Nothing here knows what is shown.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 100
# Where nothing moves, whoever waits hears from us this often.
PLAIN_EVERY_SECONDS = 2.0
_SEGMENT_STYLES = ("cyan", "green", "blue", "magenta")
_INDENT = " " * 4
_ACTIVE_STYLE = "bold yellow"

# How much is done, and of how much if that is known.
Update = Callable[[int, int | None], None]


def _terminal_width(file: TextIO) -> int:
    """Of this one: by itself rich asks the standard descriptors, which may be elsewhere."""
    try:
        return os.get_terminal_size(file.fileno()).columns
    except (OSError, ValueError):
        return 0


class Screen:
    """Writes to ``file``; ``scenes`` is how many there will be. ``look_up`` is called where a scene
    begins, or says something, or tells how far it is, and may end it by what it raises."""

    def __init__(
        self,
        file: TextIO,
        *,
        scenes: int = 0,
        look_up: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = Console(file=file, highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal:
            self.console = Console(
                file=file, highlight=False, markup=False, emoji=False, width=PLAIN_WIDTH
            )
        elif width := _terminal_width(file):
            self.console.width = width
        self.is_moving = self.console.is_terminal and not self.console.is_dumb_terminal
        self._scenes = scenes
        self._scene = 0
        self.look_up = look_up
        self._now = now

    def title(self, text: str, below: str) -> None:
        self.console.print(Text(text, style="bold"))
        self.console.print(Text(below, style="dim"))

    def scene(self, title: str) -> None:
        self.look_up()
        self._scene += 1
        head = Text.assemble(
            (f"{self._scene}/{self._scenes} ", "dim"), (title, "bold cyan"), overflow="fold"
        )
        self.console.print()
        self.console.print(head)

    def say(self, text: str | Text, style: str = "") -> None:
        self.look_up()
        shown = Text(text, style=style) if isinstance(text, str) else text
        # Not by Padding, which fills lines up with blanks: they are in the way of who copies.
        for line in shown.wrap(self.console, max(self.console.width - len(_INDENT), 20)):
            line.rstrip()
            self.console.print(Text.assemble(_INDENT, line), soft_wrap=True)

    def command(self, line: str) -> None:
        """A command that somebody may type; never broken, so that it can be copied."""
        self.console.print(Text(f"    {line}", style="bold"), soft_wrap=True)

    def show(self, what: RenderableType) -> None:
        self.console.print(Padding(what, (0, 0, 0, 4), expand=False))

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: str = ""
    ) -> None:
        """``right`` has the places of columns of numbers: "13" are the second and the fourth."""
        table = Table(box=None, pad_edge=False, header_style="dim")
        for slot, name in enumerate(columns):
            is_number = str(slot) in right
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*row)
        self.show(table)

    @contextmanager
    def progress(
        self,
        what: str,
        total: int | None = None,
        picture: Callable[[], RenderableType] | None = None,
    ) -> Iterator[Update]:
        """While the block runs; ``picture`` is drawn above the bar, again and again."""
        if not self.is_moving:
            yield _PlainProgress(self, what, total, self._now).update
            return
        bar = Progress(
            TextColumn("   "), SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30),
            TextColumn("{task.fields[counted]}"), TimeElapsedColumn(), console=self.console,
        )  # fmt: skip
        task = bar.add_task(what, total=total, counted="")

        def draw() -> RenderableType:
            return bar if picture is None else Group(Padding(picture(), (0, 0, 0, 4)), bar)

        def update(done: int, known: int | None = None) -> None:
            self.look_up()
            of = known if known is not None else total
            counted = f"{done:,}" if of is None else f"{done:,} of {of:,}"
            bar.update(task, completed=done, total=of, counted=counted)

        with Live(get_renderable=draw, console=self.console, transient=True, refresh_per_second=8):
            yield update


class _PlainProgress:
    """A line now and then, the first when it has taken a while."""

    def __init__(
        self, screen: Screen, what: str, total: int | None, now: Callable[[], float]
    ) -> None:
        self._screen = screen
        self._what = what
        self._total = total
        self._now = now
        self._told = now()

    def update(self, done: int, known: int | None = None) -> None:
        self._screen.look_up()
        if self._now() - self._told < PLAIN_EVERY_SECONDS:
            return
        self._told = self._now()
        of = known if known is not None else self._total
        self._screen.say(f"… {self._what}: {done:,}" + ("" if of is None else f" of {of:,}"))


# --- a picture of a log ---------------------------------------------------------------------------


def segments_picture(logs: dict[str, list[int]], segment_bytes: int, encoding: str) -> Table:
    """A line for each log: its segments as blocks, the one that is appended to as high as it is
    full. ``logs`` are sizes in bytes by name, oldest segment first."""
    is_plain = not encoding.lower().startswith("utf")
    blocks = ".:#" if is_plain else "▁▂▃▄▅▆▇█"
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for name, sizes in logs.items():
        drawn = Text()
        for number in range(len(sizes) - 1):
            drawn.append(blocks[-1], _SEGMENT_STYLES[number % len(_SEGMENT_STYLES)])
        if sizes:
            fill = min(sizes[-1] * len(blocks) // segment_bytes, len(blocks) - 1)
            drawn.append(blocks[fill], _ACTIVE_STYLE)
        count = f"{len(sizes)} segment{'s' * (len(sizes) != 1)}"
        table.add_row(name, drawn, count, size_text(sum(sizes)))
    return table


def size_text(size_bytes: float) -> str:
    """``17.3 MB``; powers of ten, as disks and networks count."""
    for unit in ("bytes", "kB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:,.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} GB"


def rate_text(count: float, seconds: float, unit: str) -> str:
    return f"{count / max(seconds, 1e-9):,.0f} {unit}/s"
