"""``stratalog scan explain``: what a scan would read of a log directory, and why not the rest."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.directories import DirArgument, NamedDirOption, directory_of
from stratalog.cli.failures import UsageError, refused_as_usage
from stratalog.cli.options import TopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    write_json,
    write_line,
    write_table,
)
from stratalog.cli.progress import waiting
from stratalog.cli.table import Cells, Column, bytes_text

if TYPE_CHECKING:
    from stratalog.scans.api import Place
    from stratalog.scans.explain import ScanExplanation


def explain(
    path: DirArgument = None,
    log_dir: NamedDirOption = None,
    topics: TopicsOption = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="SQL",
            help="A condition in Spark's SQL on offset, timestamp, partition, topic and key.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="PLACE", help="An offset, an ISO time with zone, or earliest."
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--end", metavar="PLACE", help="The same, or latest; not read itself."),
    ] = None,
    isolation: Annotated[
        str, typer.Option("--isolation", help="read_uncommitted or read_committed.")
    ] = "read_uncommitted",
    key: Annotated[
        str | None,
        typer.Option(
            "--key", help="Records of this key, put where Kafka's default partitioner puts them."
        ),
    ] = None,
    max_lateness_ms: Annotated[
        int | None,
        typer.Option(
            "--max-lateness-ms",
            min=0,
            help="You know that no record is older than one before it by more than this.",
        ),
    ] = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", help="The one that local times in --where are of.")
    ] = "UTC",
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say what a scan would read, and why not the rest.

    Segments, bytes and tasks. The directory may be in use; only a few headers are read.

    \b
    Examples:
      stratalog scan explain --log-dir data --topic orders --where "timestamp >= '2026-01-31'"
      stratalog scan explain --log-dir data --start 1000 --end 2026-01-31T12:00:00+00:00
    """
    from stratalog.scans.api import plan
    from stratalog.scans.condition_check import check_condition
    from stratalog.scans.errors import ScanOptionError
    from stratalog.scans.explain import explain_plan
    from stratalog.scans.where import parse_where

    directory = directory_of(path, log_dir)
    with waiting("planning"), refused_as_usage(ScanOptionError):
        parsed = None
        if where is not None:
            check_condition(where)
            # What a scan cannot decide, whoever filters its rows does; it prunes nothing.
            parsed = parse_where(where, time_zone)
        found = explain_plan(
            plan(
                directory,
                topics or None,
                start=_place("--start", start),
                end=_place("--end", end),
                isolation=isolation,
                where=None if parsed is None else parsed.where,
                key=None if key is None else key.encode(),
                max_lateness=(
                    None if max_lateness_ms is None else timedelta(milliseconds=max_lateness_ms)
                ),
            )
        )
    left = () if parsed is None else parsed.left
    if output is OutputFormat.JSON:
        write_json({"log_dir": directory, **found.to_json(), "left_to_filter": list(left)})
    else:
        _write(found, left, is_wide=wide)


def _place(option: str, text: str | None) -> "Place | None":
    if text is None or text in ("earliest", "latest"):
        return text
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text}: give an offset, earliest, latest, or a time such as "
            "2026-01-31T12:00:00+00:00."
        ) from None


def _write(found: "ScanExplanation", left: tuple[str, ...], *, is_wide: bool) -> None:
    columns = (
        *(Column("partition"), Column("from", rank=2), Column("to", rank=2)),
        *(Column("segments", rank=4), Column("of", rank=4)),
        *(Column("bytes", Cells.BYTES), Column("of", Cells.BYTES, rank=1)),
        Column("not read because", Cells.TEXT, rank=3),
    )
    rows = []
    for each in found.rows:
        reasons = (
            f"{reason.value} ({bytes_text(size)})"
            for reason, size in each.tally.skipped_bytes.items()
        )
        rows.append(
            (
                each.topic_partition,
                each.start_offset,
                each.end_offset,
                each.segments_kept,
                each.segments,
                each.bytes_kept,
                each.bytes_total,
                "; ".join(reasons),
            )
        )
    write_table(columns, rows, is_wide=is_wide)
    for line in found.lines():
        write_line(line)
    for condition in left:
        write_line(f"left to a filter of rows: {condition}")
