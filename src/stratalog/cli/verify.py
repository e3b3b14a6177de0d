"""``stratalog log verify``: is everything in these directories what it should be?

Reads every byte of every log and says what is wrong where. Directories may be in use, by a broker
of ours or by Apache Kafka. Exit code 1 if anything is wrong, 3 if nothing could be looked at.

``--write-time-ranges`` also writes what a scan prunes by, where nobody owns the directory.
"""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.directories import DirsArgument, NamedDirsOption, directories_of
from stratalog.cli.failures import CommandError, failures_are_no_findings
from stratalog.cli.options import JobsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    plural,
    write_json,
    write_line,
    write_told,
)
from stratalog.cli.progress import bytes_bar, log_bytes
from stratalog.cli.table import Mood

if TYPE_CHECKING:
    from stratalog.storage.check import DirectoryReport
    from stratalog.storage.time_range_filling import FilledRanges


def verify(
    directories: DirsArgument = None,
    log_dir: NamedDirsOption = None,
    jobs: JobsOption = 0,
    write_time_ranges: Annotated[
        bool,
        typer.Option(
            "--write-time-ranges",
            help="Then write the time ranges that are missing; nobody may own the directories.",
        ),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check every CRC, record, index, snapshot and checkpoint.

    Directories may be in use, by stratalog or by Apache Kafka. Exit code 1 if anything is wrong,
    3 if nothing could be checked.

    \b
    Examples:
      stratalog log verify data
      stratalog log verify --jobs 4 data/orders-0 data/orders-1
    """
    from concurrent.futures import ThreadPoolExecutor

    from stratalog.directories.known_directory import not_compacted_topics
    from stratalog.storage.check import CheckRun
    from stratalog.storage.check_looks import LOOK_AGAIN_AFTER_S
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.time_range_filling import fill_time_ranges

    places = directories_of(directories, log_dir)
    files = OsFileSystem()
    started = time.monotonic()
    with (
        failures_are_no_findings(),
        bytes_bar("verify", lambda: _log_bytes(places)) as progress,
        ThreadPoolExecutor(jobs or os.cpu_count()) as pool,
    ):
        if write_time_ranges:
            _refuse_owned(places)
        run = CheckRun(
            files,
            submit=pool.submit,
            progress=progress,
            wait=lambda: time.sleep(LOOK_AGAIN_AFTER_S),
            read_metadata=not_compacted_topics,
        )
        reports = run.check_each(places)
        seconds = time.monotonic() - started
        filled = None
        if write_time_ranges:
            filled = [fill_time_ranges(files, each, each=pool.map) for each in places]
    if output is OutputFormat.JSON:
        _write_json(reports, filled)
    else:
        _write_text(reports, seconds)
        _write_filled(filled)
    has_failed = any(each.failures for each in filled or ())
    if has_failed or any(report.findings for report in reports):
        raise typer.Exit(1)


def _refuse_owned(directories: list[str]) -> None:
    """Before hours are spent on reading."""
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.layout import LOCK_FILE
    from stratalog.storage.readonly import lock_owner

    for directory in directories:
        root = find_replicas(OsFileSystem(), directory).log_directory
        owner = lock_owner(f"{root}/{LOCK_FILE}")
        if owner is not None:
            raise CommandError(
                f"{root} is owned by process {owner}, which may be writing to it. A stratalog "
                "broker writes time ranges itself; stop any other, or verify without "
                "--write-time-ranges."
            )


def _log_bytes(directories: list[str]) -> int:
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas

    total = 0
    for directory in directories:
        try:
            total += log_bytes(find_replicas(OsFileSystem(), directory).replicas)
        except StratalogError:
            continue  # the check says what is the matter with it
    return total


def _write_text(reports: list["DirectoryReport"], seconds: float) -> None:
    errors = warnings = 0
    for report in reports:
        for finding in report.findings:
            write_told(str(finding))
            errors += finding.severity == "error"
            warnings += finding.severity == "warning"
    replicas = [replica for report in reports for replica in report.replicas]
    for replica in replicas:
        if replica.tiered is not None:
            start, end, *_ = replica.tiered
            write_line(
                f"note: {replica.directory}: offsets {start} to {end - 1} are tiered, and were "
                "not checked"
            )
        for cut in replica.recovery_cuts:
            write_line(f"note: {replica.directory}: at offset {cut.start_offset} {cut.sentence}")
    segments = sum(len(replica.segments) for replica in replicas)
    size_bytes = sum(replica.size_bytes for replica in replicas)
    speed = f"{size_bytes / max(seconds, 1e-9) / 1e6:.0f} MB/s"
    trouble = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    mood = Mood.BAD if errors else Mood.WARNING if warnings else Mood.GOOD
    write_told(
        f"{plural(len(replicas), 'replica')}, {plural(segments, 'segment')}, "
        f"{plural(size_bytes, 'byte')} read at {speed}: "
        + (trouble if errors or warnings else "nothing wrong"),
        mood,
    )


def _write_filled(filled: list["FilledRanges"] | None) -> None:
    if filled is None:
        return
    for each in filled:
        for failure in each.failures:
            write_told(f"error: no time ranges: {failure}")
    written = sum(each.written for each in filled)
    present = sum(each.present for each in filled)
    write_line(f"time ranges: {plural(written, 'segment')} written, {present} had them")


def _write_json(
    reports: list["DirectoryReport"], filled: list["FilledRanges"] | None = None
) -> None:
    from dataclasses import asdict

    ranges = {} if filled is None else {"time_ranges": [asdict(each) for each in filled]}
    write_json(
        ranges
        | {
            "directories": [
                {
                    "path": report.path,
                    "is_live": report.is_live,
                    "replicas": len(report.replicas),
                    "segments": sum(len(replica.segments) for replica in report.replicas),
                    "size_bytes": sum(replica.size_bytes for replica in report.replicas),
                    "records": {
                        Path(replica.directory).name: replica.record_count
                        for replica in report.replicas
                    },
                    "tiered": {
                        Path(replica.directory).name: replica.tiered[:2]
                        for replica in report.replicas
                        if replica.tiered is not None
                    },
                    "recovery_cuts": {
                        Path(replica.directory).name: [asdict(cut) for cut in replica.recovery_cuts]
                        for replica in report.replicas
                        if replica.recovery_cuts
                    },
                    "findings": [asdict(finding) for finding in report.findings],
                }
                for report in reports
            ]
        }
    )
