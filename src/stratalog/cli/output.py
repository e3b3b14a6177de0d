"""What all commands share: where output goes, as a table or as JSON."""

import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from stratalog.cli.table import Column, Mood, coloured, screen_of, table_lines


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    OutputFormat,
    typer.Option(
        "--output", "-o", metavar="table|json", help="A table to read, or JSON to process."
    ),
]
WideOption = Annotated[
    bool, typer.Option("--wide", help="All columns of the table, and exact sizes.")
]


def write_line(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def write_told(text: str, mood: Mood | None = None) -> None:
    """A line that says good or bad: all of it if there is a ``mood``, else its first word does."""
    shown = screen_of(sys.stdout)
    if mood is not None:
        write_line(coloured(text, mood, shown))
        return
    word, colon, rest = text.partition(":")
    write_line(f"{coloured(word, _MOODS.get(word, Mood.PLAIN), shown)}{colon}{rest}")


_MOODS = {"error": Mood.BAD, "warning": Mood.WARNING, "held": Mood.WARNING}


def write_error(text: str) -> None:
    sys.stderr.write(text + "\n")


def write_json(value: Any) -> None:
    """One JSON value on one line."""
    write_line(json.dumps(value, ensure_ascii=False))


def is_watched() -> bool:
    """Whether a person sees stderr: only then are progress bars drawn there."""
    return sys.stderr.isatty()


def write_table(
    columns: Sequence[str | Column],
    rows: Iterable[Sequence[object]],
    title: str = "",
    *,
    is_wide: bool = False,
) -> None:
    """A table that fits the terminal; ``is_wide`` has every column, and every digit."""
    if title:
        write_line(title)
    named = [each if isinstance(each, Column) else Column(each) for each in columns]
    for line in table_lines(named, rows, screen_of(sys.stdout), is_wide=is_wide):
        write_line(line)


def plural(count: int, noun: str) -> str:
    """``1 segment``, ``2 segments``, ``3 batches``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}es" if noun.endswith(("ch", "x", "s")) else f"{count} {noun}s"
