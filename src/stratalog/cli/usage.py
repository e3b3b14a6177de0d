"""``stratalog log usage``: what takes the disk, why it stays, and what to type to free it.

A directory is looked at, also while a broker owns it. A broker that is asked instead says where its
directories are: those on this host are looked at, of others only the segments are known.
"""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.client import DEFAULT_BOOTSTRAP_SERVER, CommandConfigOption, connection
from stratalog.cli.directories import DirArgument, NamedDirOption, directory_of
from stratalog.cli.failures import UsageError
from stratalog.cli.options import TopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    plural,
    write_json,
    write_line,
    write_table,
)
from stratalog.cli.progress import waiting
from stratalog.cli.table import Cells, Column, bytes_text

if TYPE_CHECKING:
    from stratalog.storage.leases import Lease
    from stratalog.storage.usage import Amount, Stay, Usage, UsageRow

_NO_TOPIC = "(none)"
_OWNERS = {
    "stratalog": "; stratalog owns it",
    "kafka": "; an Apache Kafka owns it",
    "none": "; nobody owns it",
    "unknown": "",
}
# What is left out first where the terminal is narrow.
_RANKS = {"index": 3, "preallocated": 4, "state": 5, "others": 1}


def usage(
    path: DirArgument = None,
    log_dir: NamedDirOption = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT,...",
            help="Without DIR: the brokers to ask for their log directories.",
            show_default=DEFAULT_BOOTSTRAP_SERVER,
        ),
    ] = None,
    command_config: CommandConfigOption = None,
    topics: TopicsOption = None,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say what takes the disk, and how to free it.

    Bytes by topic and kind: segments, indexes, what waits for deletion, what readers, loads and
    repairs keep. The directory may be in use; nothing is changed.

    \b
    Examples:
      stratalog log usage data
      stratalog log usage --bootstrap-server localhost:9092 --topic orders
    """
    is_asked = path is None and log_dir is None
    if not is_asked and bootstrap_server is not None:
        raise UsageError("Give a directory, or --bootstrap-server, and not both.")
    with waiting("looking"):
        if is_asked:
            from stratalog.cli.usage_source import ask_brokers

            brokers = connection(bootstrap_server or DEFAULT_BOOTSTRAP_SERVER, command_config)
            found = ask_brokers(brokers, look_at)
        else:
            found = [look_at(directory_of(path, log_dir))]
    chosen = None if not topics else frozenset(topics)
    if output is OutputFormat.JSON:
        write_json({"directories": [_json(each, chosen) for each in found]})
        return
    for slot, each in enumerate(found):
        if slot:
            write_line()
        _write(each, chosen, is_wide=wide)


def look_at(path: str) -> "Usage":
    """What takes the disk of the directory at ``path``, or of one partition in it."""
    from stratalog.directories.owners import find_owner
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.readonly import ReadOnlyFileSystem
    from stratalog.storage.usage import Owner
    from stratalog.storage.usage_listing import look_at_usage

    files = ReadOnlyFileSystem(OsFileSystem())
    found = find_replicas(files, path)
    below = "" if found.is_log_directory else found.replicas[0].rpartition("/")[2]
    owner, _ = find_owner(found.log_directory)
    return look_at_usage(
        files,
        found.log_directory,
        owner=Owner(owner.kind),
        owner_pid=owner.pid,
        now_ms=time.time_ns() // 1_000_000,
        leases=_asked_leases(found.log_directory),
        below=below,
    )


def _asked_leases(log_directory: str) -> "list[Lease] | None":
    """What a broker of ours says of its leases; None where none can be asked."""
    from stratalog.scans.leasing import ask_leases
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.usage_listing import left_leases

    told = ask_leases(log_directory)
    if told is None:
        return None
    # It tells how many partitions each holds; the files tell which.
    now = {str(each["id"]): int(each["until_ms"]) for each in told}
    return [
        lease.until(now[lease.lease_id])
        for lease in left_leases(OsFileSystem(), log_directory)
        if lease.lease_id in now
    ]


# --- telling ----------------------------------------------------------------------------------


def _json(found: "Usage", chosen: frozenset[str] | None) -> dict[str, Any]:
    told = found.to_json()
    if chosen is not None:
        told["usage"] = [row for row in told["usage"] if row["topic"] in chosen]
    return told


def _write(found: "Usage", chosen: frozenset[str] | None, *, is_wide: bool) -> None:
    from stratalog.storage.usage import UsageKind

    rows = [row for row in found.rows if chosen is None or row.topic in chosen]
    kinds = [kind for kind in UsageKind if any(row.kind is kind for row in rows)]
    sums: dict[str, dict[UsageKind, Amount]] = {}
    for row in rows:
        sums.setdefault(row.topic, {})[row.kind] = row.amount
    disk = {topic: sum(each.disk_bytes for each in by.values()) for topic, by in sums.items()}
    columns = [
        Column("topic"),
        Column("on disk", Cells.BYTES),
        *(Column(kind_text(kind.value), Cells.BYTES, _RANKS.get(kind.value, 2)) for kind in kinds),
    ]
    lines: list[list[object]] = [
        [topic or _NO_TOPIC, disk[topic], *(_shown(sums[topic].get(kind)) for kind in kinds)]
        for topic in sorted(sums, key=lambda topic: (-disk[topic], topic))
    ]
    write_line(f"{found.log_directory}: {_summary(found, rows)}")
    write_table(columns, lines, is_wide=is_wide)
    for stay in found.stays:
        _write_stay(stay)
    if found.note:
        write_line(found.note)


def _shown(amount: "Amount | None") -> int | None:
    """The bytes to show. A hole in a file takes no disk, so its size is shown instead."""
    return None if amount is None else max(amount.size_bytes, amount.disk_bytes)


def _summary(found: "Usage", rows: "list[UsageRow]") -> str:
    taken = bytes_text(sum(row.amount.disk_bytes for row in rows))
    files = plural(sum(row.amount.files for row in rows), "file")
    free = "" if found.free_bytes is None else f"; {bytes_text(found.free_bytes)} are free"
    return f"{taken} on disk in {files}{free}{_OWNERS[found.owner.value]}"


def _write_stay(stay: "Stay") -> None:
    place = f" {stay.place}" if stay.kind.value in ("others", "kept_aside") else ""
    taken = bytes_text(stay.amount.disk_bytes or stay.amount.size_bytes)
    write_line(f"{kind_text(stay.kind.value)}{place}, {taken}: {stay.why}")
    if stay.command:
        write_line(f"    {stay.command}")


def kind_text(kind: str) -> str:
    return "others'" if kind == "others" else kind.replace("_", " ")
