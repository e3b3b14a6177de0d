"""What all commands share: where output goes, as a table or as JSON.

Rich is imported only when there is something to draw with it.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="A table to read, or JSON to process.")
]


def write_line(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def write_error(text: str) -> None:
    sys.stderr.write(text + "\n")


def write_json(value: Any) -> None:
    """One JSON value on one line."""
    write_line(json.dumps(value, ensure_ascii=False))


def is_watched() -> bool:
    """Whether a person sees stderr: only then are progress bars drawn there."""
    return sys.stderr.isatty()


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A table; columns whose cells are all numbers are set to the right."""
    from rich.console import Console
    from rich.table import Table

    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for slot, name in enumerate(columns):
        numeric = all(row[slot].lstrip("-").isdigit() for row in cells if row[slot])
        table.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    # A table that is fitted to a narrow terminal loses numbers; the terminal can wrap it itself.
    Console(file=sys.stdout, width=100_000, markup=False, highlight=False).print(table)


def plural(count: int, noun: str) -> str:
    """``1 segment``, ``2 segments``, ``3 batches``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}es" if noun.endswith(("ch", "x", "s")) else f"{count} {noun}s"
