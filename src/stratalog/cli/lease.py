"""``stratalog lease list`` and ``release``: what readers hold of a log directory's files.

A broker that runs is asked over its admin port; where none does, leases are files in the directory.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from stratalog.cli.directories import DirArgument, NamedDirOption, directory_of
from stratalog.cli.failures import UsageError
from stratalog.cli.options import LogDirOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    plural,
    write_json,
    write_line,
    write_table,
)
from stratalog.cli.table import Cells, Column
from stratalog.errors import LogDirectoryError, StorageError, StratalogError


class UnknownLeaseError(StratalogError):
    """There is no such lease."""


def list_leases(
    path: DirArgument = None,
    log_dir: NamedDirOption = None,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List who holds which files, and until when.

    And how many bytes that keeps from being deleted.

    \b
    Example:
      stratalog lease list --log-dir data
    """
    directory = directory_of(path, log_dir)
    rows = _leases(directory)
    if output is OutputFormat.JSON:
        write_json({"leases": rows})
        return
    from stratalog.storage.moments import moment_text

    if not rows:
        write_line(f"Nobody holds anything of {directory}.")
        return
    write_table(
        (
            *(Column("lease"), Column("holder", rank=1), Column("topics", Cells.TEXT, rank=2)),
            *(Column("partitions", rank=3), Column("since", rank=4), Column("until")),
            Column("held bytes", Cells.BYTES),
        ),
        (
            (
                each["id"],
                each["holder"],
                _topics_text(each["topics"]),
                sum(each["topics"].values()),
                moment_text(each["created_ms"]),
                moment_text(each["until_ms"]),
                each["held_bytes"],
            )
            for each in rows
        ),
        is_wide=wide,
    )


def release(
    log_dir: LogDirOption,
    lease_ids: Annotated[
        list[str] | None, typer.Argument(metavar="LEASE", help="The leases, by their ids.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All leases that there are.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """End leases now.

    Whoever still reads what they held may find it gone.

    \b
    Examples:
      stratalog lease release --log-dir data 5f0c
      stratalog lease release --log-dir data --all
    """
    from stratalog.scans.leasing import release as release_lease

    if bool(lease_ids) == every:
        raise UsageError("Which leases? Give their ids, or --all.")
    known = {str(each["id"]) for each in _leases(log_dir)}
    chosen = sorted(known) if every else list(dict.fromkeys(lease_ids or ()))
    unknown = [each for each in chosen if each not in known]
    if unknown:
        raise UnknownLeaseError(
            f"there is no lease {', '.join(unknown)} on {log_dir}; see 'stratalog lease list'"
        )
    if chosen and not release_lease(log_dir, chosen):
        raise LogDirectoryError(
            f"not every lease on {log_dir} could be released; see 'stratalog lease list'"
        )
    if output is OutputFormat.JSON:
        write_json({"released": chosen})
    else:
        write_line(f"{plural(len(chosen), 'lease')} released.")


def _topics_text(topics: dict[str, int]) -> str:
    shown = ",".join(sorted(topics)[:3])
    return shown if len(topics) <= 3 else f"{shown},… ({len(topics)} topics)"


def _leases(log_dir: str) -> list[dict[str, Any]]:
    from stratalog.scans.leasing import ask_leases

    if not Path(log_dir).is_dir():
        raise LogDirectoryError(f"{log_dir!r} is not a directory; --log-dir names a log directory")
    told = ask_leases(log_dir)
    return _left(log_dir) if told is None else told


def _left(log_dir: str) -> list[dict[str, Any]]:
    """Those that are there as files, of a directory that nobody can be asked about."""
    from stratalog.clock import SystemClock
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.held_files import held_on_disk
    from stratalog.storage.leases import list_lease_files, read_lease

    files, now_ms = OsFileSystem(), SystemClock().now_ms()
    found = []
    for lease_id, until_ms in list_lease_files(files, log_dir).items():
        try:
            lease = read_lease(files, log_dir, lease_id)
        except StorageError:
            continue  # it holds nothing
        if lease is not None and until_ms > now_ms:
            found.append(lease)
    return [
        {
            "id": lease.lease_id,
            "holder": lease.holder,
            "created_ms": lease.created_ms,
            "until_ms": lease.until_ms,
            "topics": lease.topics,
            "held_bytes": held_on_disk(files, log_dir, lease),
        }
        for lease in sorted(found, key=lambda each: each.created_ms)
    ]
