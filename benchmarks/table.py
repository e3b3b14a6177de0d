"""How rows look on a terminal, and the words that tables here and in the docs share."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Bar, Better, Figure, Measurement, short
from benchmarks.results import slower_first


def spread(figure: Figure) -> str:
    if figure.repeats == 1:
        return short(figure.median)
    return f"{short(figure.median)} ({short(figure.low)} to {short(figure.high)})"


def with_unit(figure: Figure, unit: str) -> str:
    return f"{short(figure.median)} {unit}"


def ratio(row: Measurement) -> str:
    return "" if row.ratio is None else f"{row.ratio:.2f} ×"


def bar(wanted: Bar, better: Better, unit: str) -> str:
    sign = "≥" if better is Better.HIGHER else "≤"
    parts = []
    if wanted.value is not None:
        parts.append(f"{sign} {short(wanted.value)} {unit}")
    if wanted.ratio is not None:
        parts.append(f"{sign} {wanted.ratio:g} ×")
    return (" or " if wanted.either else ", ").join(parts)


def verdict(row: Measurement) -> str:
    if row.is_met is None:
        return ""
    return "yes" if row.is_met else "**missed**"


def print_rows(rows: Sequence[tuple[str, Measurement]], console: Console) -> None:
    table = Table("what", "unit", "stratalog", "peer", "ratio", "bar", "met", title=None)
    for _, row in slower_first(rows):
        theirs = "" if row.theirs is None or row.peer is None else spread(row.theirs)
        peer = f"{theirs} {row.peer.name}" if theirs and row.peer else ""
        style = "yellow" if row.is_slower else "red" if row.is_met is False else None
        table.add_row(
            row.what,
            row.unit,
            spread(row.ours),
            peer,
            ratio(row),
            bar(row.bar, row.better, row.unit),
            verdict(row).strip("*"),
            style=style,
        )
    console.print(table)
