"""A table as lines of text that fit the terminal: the one place that lays tables out.

A column says what its cells are, and how soon it may go. Where a terminal is narrower than the
table, long texts are folded first, then columns are left out, the highest rank first, and a line
says which. Nothing is left out where no terminal is: a file or a pipe has all columns.

Sizes are in units that people read, and exact with ``--wide``. Colour says good, warning and bad,
and nothing that the words do not say too.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TextIO

_GAP = 2
# A folded text narrower than this is not read any more.
_FOLDED_MIN = 24
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


class Mood(StrEnum):
    """What a cell says of what it tells; the value is its colour on a terminal."""

    PLAIN = ""
    GOOD = "32"
    WARNING = "33"
    BAD = "31"


class Cells(Enum):
    """What the cells of a column are."""

    VALUES = "to the right if all of them are numbers"
    BYTES = "sizes"
    TEXT = "sentences, which may be folded"


@dataclass(frozen=True, slots=True)
class Column:
    """``rank`` 0 always stays; the highest goes first."""

    name: str
    cells: Cells = Cells.VALUES
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """A cell with a mood."""

    value: object
    mood: Mood = Mood.PLAIN


@dataclass(frozen=True, slots=True)
class Screen:
    """``width`` None is no limit."""

    width: int | None = None
    has_colour: bool = False


def screen_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Screen:
    """Where ``stream`` is shown; a file has no width and no colour."""
    if not stream.isatty():
        return Screen()
    is_plain = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
    return Screen(shutil.get_terminal_size().columns, has_colour=not is_plain)


def coloured(text: str, mood: Mood, screen: Screen) -> str:
    """``text`` in the colour of ``mood``, where there is colour."""
    return f"\x1b[{mood}m{text}\x1b[0m" if screen.has_colour and mood and text else text


def bytes_text(size_bytes: int) -> str:
    """``1 B``, ``999 B``, ``1.0 kB``, ``12 MB``: two digits at least, in powers of 1000."""
    size, unit = float(abs(size_bytes)), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = 1 if unit and size < 9.95 else 0
    return f"{'-' if size_bytes < 0 else ''}{size:.{digits}f} {_UNITS[unit]}"


def table_lines(
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    screen: Screen,
    *,
    is_wide: bool = False,
) -> Iterator[str]:
    """The table, line by line; ``is_wide`` has every column, and every digit."""
    cells = [
        [_cell(column, value, is_wide) for column, value in zip(columns, row, strict=True)]
        for row in rows
    ]
    natural = [
        max(width_of(column.name), *(width_of(text) for text, _ in found))
        if found
        else width_of(column.name)
        for column, found in zip(columns, _turned(cells, len(columns)), strict=True)
    ]
    width = None if is_wide else screen.width
    shown = _shown(columns, natural, width)
    widths = {slot: natural[slot] for slot in shown}
    _fold(columns, widths, width)
    to_right = {slot for slot in shown if _is_numeric(columns[slot], cells, slot)}
    heads = [(columns[slot].name, Mood.PLAIN) for slot in shown]
    yield from _row(heads, shown, widths, to_right, screen)
    for row in cells:
        yield from _row([row[slot] for slot in shown], shown, widths, to_right, screen)
    left = [column.name for slot, column in enumerate(columns) if slot not in widths]
    if left:
        yield f"not shown, for want of width: {', '.join(left)} (--wide)"


def _turned(
    cells: Sequence[Sequence[tuple[str, Mood]]], count: int
) -> list[list[tuple[str, Mood]]]:
    return [[row[slot] for row in cells] for slot in range(count)]


def _cell(column: Column, value: object, is_wide: bool) -> tuple[str, Mood]:
    if isinstance(value, Told):
        return _cell(column, value.value, is_wide)[0], value.mood
    if column.cells is Cells.BYTES and isinstance(value, int) and not is_wide:
        return bytes_text(value), Mood.PLAIN
    return "" if value is None else str(value), Mood.PLAIN


def _is_numeric(column: Column, cells: Sequence[Sequence[tuple[str, Mood]]], slot: int) -> bool:
    if column.cells is not Cells.VALUES:
        return column.cells is Cells.BYTES
    return all(row[slot][0].lstrip("-").isdigit() for row in cells if row[slot][0])


def _shown(columns: Sequence[Column], natural: Sequence[int], width: int | None) -> list[int]:
    """The columns that there is room for, once texts are folded."""
    shown = list(range(len(columns)))
    if width is None:
        return shown

    def least(slot: int) -> int:
        is_folded = columns[slot].cells is Cells.TEXT
        return min(natural[slot], _FOLDED_MIN) if is_folded else natural[slot]

    while sum(map(least, shown)) + _GAP * (len(shown) - 1) > width:
        goes = max(shown, key=lambda slot: (columns[slot].rank, slot))
        if not columns[goes].rank:
            break  # what is left says too much to go: the terminal wraps it
        shown.remove(goes)
    return shown


def _fold(columns: Sequence[Column], widths: dict[int, int], width: int | None) -> None:
    """Give texts the room that the other columns leave, the widest less of it first."""
    texts = [slot for slot in widths if columns[slot].cells is Cells.TEXT]
    while width is not None and texts:
        excess = sum(widths.values()) + _GAP * (len(widths) - 1) - width
        widest = max(texts, key=lambda slot: widths[slot])
        if excess <= 0 or widths[widest] <= _FOLDED_MIN:
            return
        others = [widths[slot] for slot in texts if widths[slot] < widths[widest]]
        least = max([_FOLDED_MIN, *others])
        widths[widest] = max(widths[widest] - excess, min(least, widths[widest] - 1))


def _row(
    cells: Sequence[tuple[str, Mood]],
    slots: Sequence[int],
    widths: Mapping[int, int],
    to_right: set[int],
    screen: Screen,
) -> Iterator[str]:
    folded = [_folded(text, widths[slot]) for (text, _), slot in zip(cells, slots, strict=True)]
    for number in range(max(map(len, folded), default=0)):
        parts = []
        for pieces, (_, mood), slot in zip(folded, cells, slots, strict=True):
            text = pieces[number] if number < len(pieces) else ""
            space = " " * (widths[slot] - width_of(text))
            shown = coloured(text, mood, screen)
            parts.append(space + shown if slot in to_right else shown + space)
        yield (" " * _GAP).join(parts).rstrip()


def _folded(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width``, between words where that is possible."""
    if width_of(text) <= width:
        return [text]
    found, line = [], ""
    for word in text.split(" "):
        together = f"{line} {word}" if line else word
        if width_of(together) <= width:
            line = together
            continue
        if line:
            found.append(line)
        while width_of(word) > width:
            cut = _fitting(word, width)
            found.append(word[:cut])
            word = word[cut:]
        line = word
    return [*found, line]


def _fitting(text: str, width: int) -> int:
    """How many characters of ``text`` fit; one at least."""
    count = 1
    while count < len(text) and width_of(text[: count + 1]) <= width:
        count += 1
    return count


def width_of(text: str) -> int:
    """How many places it takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
