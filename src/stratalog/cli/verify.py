"""``stratalog log verify``: is everything in these directories what it should be?

Reads every byte of every log and says what is wrong where. Directories may be in use, by a broker
of ours or by Apache Kafka. Exit code 1 if anything is wrong.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    UsageError,
    is_watched,
    plural,
    write_json,
    write_line,
)

if TYPE_CHECKING:
    from stratalog.storage.check import DirectoryReport

# Long enough for an owner to finish the write that was seen half done.
LOOK_AGAIN_AFTER_S = 0.1


def verify(
    directories: Annotated[
        list[str],
        typer.Argument(metavar="DIRECTORY...", help="Log directories, or topic-partitions."),
    ],
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Threads; by default one for each core.")
    ] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check every CRC, record, index, snapshot and checkpoint."""
    from concurrent.futures import ThreadPoolExecutor

    from stratalog.storage.check import CheckRun
    from stratalog.storage.files import OsFileSystem

    if jobs < 0:
        raise UsageError(f"--jobs {jobs} cannot be negative.")
    files = OsFileSystem()
    started = time.monotonic()
    with _progress(directories) as progress, ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        run = CheckRun(
            files,
            submit=pool.submit,
            progress=progress,
            wait=lambda: time.sleep(LOOK_AGAIN_AFTER_S),
        )
        reports = [run.check(directory) for directory in directories]
    if output is OutputFormat.JSON:
        _write_json(reports)
    else:
        _write_text(reports, time.monotonic() - started)
    if any(report.findings for report in reports):
        raise typer.Exit(1)


@contextmanager
def _progress(directories: list[str]) -> Iterator[Callable[[int], None]]:
    """Counts bytes; draws a bar on stderr if a person is watching."""
    if not is_watched():
        yield lambda _bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("verify", total=_log_bytes(directories))
        yield lambda count: bar.advance(task, count)


def _log_bytes(directories: list[str]) -> int:
    """How much there is to read, about: only for the bar."""
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas, list_replica

    files = OsFileSystem()
    total = 0
    for directory in directories:
        try:
            for path in find_replicas(files, directory).replicas:
                total += sum(segment.size_bytes for segment in list_replica(files, path).segments)
        except StratalogError:
            continue
    return total


def _write_text(reports: list["DirectoryReport"], seconds: float) -> None:
    errors = warnings = 0
    for report in reports:
        for finding in report.findings:
            write_line(str(finding))
            errors += finding.severity == "error"
            warnings += finding.severity == "warning"
    replicas = [replica for report in reports for replica in report.replicas]
    segments = sum(len(replica.segments) for replica in replicas)
    size_bytes = sum(replica.size_bytes for replica in replicas)
    speed = f"{size_bytes / max(seconds, 1e-9) / 1e6:.0f} MB/s"
    trouble = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    write_line(
        f"{plural(len(replicas), 'replica')}, {plural(segments, 'segment')}, "
        f"{plural(size_bytes, 'byte')} read at {speed}: "
        + (trouble if errors or warnings else "nothing wrong")
    )


def _write_json(reports: list["DirectoryReport"]) -> None:
    from dataclasses import asdict

    write_json(
        {
            "directories": [
                {
                    "path": report.path,
                    "is_live": report.is_live,
                    "replicas": len(report.replicas),
                    "segments": sum(len(replica.segments) for replica in report.replicas),
                    "size_bytes": sum(replica.size_bytes for replica in report.replicas),
                    "findings": [asdict(finding) for finding in report.findings],
                }
                for report in reports
            ]
        }
    )
