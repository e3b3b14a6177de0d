"""``stratalog log backup`` and ``stratalog log restore``: logs with the same bytes and offsets."""

import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.client import (
    REQUEST_SECONDS,
    CommandConfigOption,
    answer_of,
    connection,
    told,
)
from stratalog.cli.failures import UsageError
from stratalog.cli.options import JobsOption, TopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    plural,
    write_error,
    write_json,
    write_line,
    write_table,
)
from stratalog.cli.progress import bytes_bar, waiting
from stratalog.cli.table import Cells, Column
from stratalog.cli.values import parse_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka.admin import AdminClient

    from stratalog.handover.backing_up import BackupResult
    from stratalog.metadata.topics import NewTopic
    from stratalog.storage.backup.checking import BackupCheck
    from stratalog.storage.backup.manifest import BackupManifest
    from stratalog.storage.backup.restore_plan import RestorePlan

_COLUMNS = ("backup_id", "created", "source", "topics", "partitions", "segments", "size_bytes")
_SHOWN = {
    "size_bytes": Column("size", Cells.BYTES),
    "source": Column("source", rank=1),
    "topics": Column("topics", rank=4),
    "partitions": Column("partitions", rank=3),
    "segments": Column("segments", rank=2),
    "log_start_offset": Column("log_start_offset", rank=1),
}

TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="The directory that backups are kept in.")
]


def backup(
    target: TargetArgument,
    log_dir: Annotated[
        str | None, typer.Option("--log-dir", metavar="DIR", help="The log directory.")
    ] = None,
    topics: TopicsOption = None,
    include_internal: Annotated[
        bool,
        typer.Option(
            "--include-internal", help="Kafka's own topics too: the offsets of groups are there."
        ),
    ] = False,
    include_active: Annotated[
        bool | None,
        typer.Option(
            "--include-active/--closed-only",
            help="Also the last segment of each log, up to the high watermark. By default only "
            "if nobody owns the directory.",
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything back before the backup counts.")
    ] = False,
    list_backups: Annotated[
        bool, typer.Option("--list", help="Only list the backups in TARGET.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only read the backups in TARGET and check them.")
    ] = False,
    jobs: JobsOption = 0,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Copy logs to a backup; what an earlier one has is not copied.

    Copies closed segments and what belongs to them. The directory may be in use.

    \b
    Examples:
      stratalog log backup /backup --log-dir data
      stratalog log backup /backup --log-dir data --topic orders --include-active --verify
      stratalog log backup /backup --list
    """
    from stratalog.storage.backup.store import LocalBackupStore
    from stratalog.storage.files import OsFileSystem

    store = LocalBackupStore(OsFileSystem(), target)
    if list_backups or check:
        if log_dir is not None or (list_backups and check):
            raise UsageError("--list and --check are about TARGET alone.")
        _check(store, jobs, output) if check else _list(store, output, is_wide=wide)
        return
    if log_dir is None:
        raise UsageError("Name the log directory with --log-dir.")
    _refuse_inside(log_dir, target)
    from concurrent.futures import ThreadPoolExecutor

    from stratalog.handover.backing_up import BackupOptions, back_up

    options = BackupOptions(
        topics=tuple(topics or ()),
        include_internal=include_internal,
        include_active=include_active,
        verify=verify,
    )
    started = time.monotonic()
    with (
        bytes_bar("backup", lambda: None) as progress,
        ThreadPoolExecutor(jobs or os.cpu_count()) as pool,
    ):
        result = back_up(log_dir, store, options, each=pool.map, progress=progress)
    _show(result, time.monotonic() - started, output)
    if result.damaged:
        raise typer.Exit(1)


def _refuse_inside(log_dir: str, target: str) -> None:
    """Apache Kafka does not start on a log directory that holds a directory of others, and a store
    of backups sweeps what it does not know."""
    logs, backups = os.path.realpath(log_dir), os.path.realpath(target)
    common = os.path.commonpath([logs, backups])
    if common == logs:
        raise UsageError(f"{target} is inside {log_dir}; keep backups elsewhere, on another disk.")
    if common == backups:
        raise UsageError(f"{log_dir} is inside {target}; keep logs elsewhere, on another disk.")


def _show(result: "BackupResult", seconds: float, output: OutputFormat) -> None:
    manifest = result.manifest
    if output is OutputFormat.JSON:
        write_json(
            _manifest_json(manifest)
            | {
                "copied_files": result.copied_files,
                "copied_bytes": result.copied_bytes,
                "read_bytes": result.read_bytes,
                "damaged": result.damaged,
            }
        )
        return
    for note in manifest.notes:
        write_error(f"note: {note}")
    for damaged in result.damaged:
        write_error(f"error: {damaged}; it was copied as it is")
    facts = _manifest_json(manifest)
    speed = f"{result.read_bytes / max(seconds, 1e-9) / 1e6:.0f} MB/s"
    write_line(
        f"backup {manifest.backup_id}: {plural(facts['partitions'], 'partition')}, "
        f"{plural(facts['segments'], 'segment')}, {plural(facts['size_bytes'], 'byte')}; "
        f"{plural(result.copied_files, 'file')} with {plural(result.copied_bytes, 'byte')} new, "
        f"read at {speed}"
    )


def _manifest_json(manifest: "BackupManifest") -> dict[str, Any]:
    from datetime import UTC, datetime

    made = datetime.fromtimestamp(manifest.created_ms / 1000, UTC)
    partitions = [each for _, each in manifest.partitions]
    return {
        "backup_id": manifest.backup_id,
        "created": made.isoformat(timespec="milliseconds"),
        "source": manifest.source.path,
        "topics": [each.name for each in manifest.topics],
        "partitions": len(partitions),
        "segments": sum(len(each.segments) for each in partitions),
        "size_bytes": manifest.size_bytes,
        "left_out": list(manifest.topics_left_out),
        "notes": list(manifest.notes),
    }


def _list(store: Any, output: OutputFormat, *, is_wide: bool) -> None:
    """A manifest that cannot be read hides none of the others, and is no success."""
    from stratalog.storage.backup.choosing import read_backups

    found, damaged = read_backups(store, store.backup_ids())
    rows = [_manifest_json(each) for each in found]
    if output is OutputFormat.JSON:
        reasons = [{"backup_id": each, "reason": str(why)} for each, why in damaged.items()]
        write_json({"backups": rows, "damaged": reasons})
    else:
        counted = [row | {"topics": len(row["topics"])} for row in rows]
        shown = [_SHOWN.get(each, Column(each)) for each in _COLUMNS]
        write_table(shown, [[row[each] for each in _COLUMNS] for row in counted], is_wide=is_wide)
        for error in damaged.values():
            write_error(f"error: {error}")
    if damaged:
        raise typer.Exit(1)


def _check(store: Any, jobs: int, output: OutputFormat) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from stratalog.storage.backup.checking import check_store

    with waiting("checking"), ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        found: BackupCheck = check_store(store, each=pool.map)
    if output is OutputFormat.JSON:
        write_json(
            {
                "backups": found.backups,
                "files": found.files,
                "size_bytes": found.size_bytes,
                "unused_files": found.unused_files,
                "unused_bytes": found.unused_bytes,
                "findings": found.findings,
            }
        )
    else:
        for finding in found.findings:
            write_line(f"error: {finding}")
        trouble = plural(len(found.findings), "error") if found.findings else "nothing wrong"
        write_line(
            f"{plural(found.backups, 'backup')}, {plural(found.files, 'file')}, "
            f"{plural(found.size_bytes, 'byte')}: {trouble}"
        )
    if found.findings:
        raise typer.Exit(1)


# --- restore ----------------------------------------------------------------------------------


def restore(
    target: TargetArgument,
    log_dir: Annotated[
        str,
        typer.Option(
            "--log-dir",
            metavar="DIR",
            help="An empty or missing directory; or one with a broker's topics, which are empty.",
        ),
    ],
    topics: TopicsOption = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="BACKUP-ID", help="This backup; by default the newest."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIMESTAMP",
            help="Of each log, what precedes the first record later than this: milliseconds "
            "since 1970, or 2026-11-16T09:45:00Z.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="DIR",
            help="A backup of this log directory; by default of that of the newest backup.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be restored.")
    ] = False,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT,...",
            help="The broker that runs on DIR, to make topics that it lacks; it is asked itself "
            "if that is not given.",
        ),
    ] = None,
    command_config: CommandConfigOption = None,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Restore logs from a backup, to its end or to a moment.

    The same bytes and offsets. Into a directory that is empty or missing, as a log directory that
    brokers open. Or into the topics of one that a stratalog broker runs on, or has: they must be
    empty, or are made.

    \b
    Examples:
      stratalog log restore /backup --log-dir restored
      stratalog log restore /backup --log-dir restored --until 2026-01-31T12:00:00Z --dry-run
    """
    from stratalog.handover.backing_up import source_path
    from stratalog.handover.restoring import is_restored_whole, restore_directory
    from stratalog.handover.restoring_commit import restore_topics
    from stratalog.storage.backup.choosing import choose_backup
    from stratalog.storage.backup.restore_plan import plan_restore
    from stratalog.storage.backup.store import LocalBackupStore
    from stratalog.storage.files import OsFileSystem

    store = LocalBackupStore(OsFileSystem(), target)
    if at is not None and source is not None:
        raise UsageError("--at names a backup, which is of one directory: leave --source out.")
    store.check()
    _refuse_inside(log_dir, target)
    until_ms = None if until is None else parse_moment(until, "--until")
    with waiting("planning"):
        chosen = choose_backup(
            store,
            at=at,
            until_ms=until_ms,
            topics=topics or (),
            source=None if source is None else source_path(source),
        )
        plan = plan_restore(
            store, chosen.manifest, topics=topics or (), until_ms=until_ms, notes=chosen.notes
        )
    notes = plan.notes
    if not dry_run:
        with bytes_bar("restore", lambda: plan.size_bytes) as progress:
            if is_restored_whole(log_dir):
                notes = restore_directory(store, plan, log_dir, progress=progress).notes
            else:
                notes = restore_topics(
                    store,
                    plan,
                    log_dir,
                    make_topics=lambda wanted: _make_topics(
                        wanted,
                        bootstrap_server or _endpoint(log_dir),
                        command_config,
                        log_dir=log_dir,
                    ),
                    delete_topics=lambda names: _delete_topics(
                        names, bootstrap_server or _endpoint(log_dir), command_config
                    ),
                    progress=progress,
                ).notes
    _show_plan(plan, notes, log_dir, is_done=not dry_run, output=output, is_wide=wide)


def _endpoint(log_dir: str) -> str:
    """Where the broker that owns ``log_dir`` says its clients connect."""
    from stratalog.handover.asking import ask_endpoint
    from stratalog.storage.owner_file import read_owner

    endpoint = ask_endpoint(read_owner(log_dir))
    if not endpoint:
        raise UsageError(f"Name the broker that runs on {log_dir} with --bootstrap-server.")
    return endpoint


def _make_topics(
    wanted: "Sequence[NewTopic]",
    bootstrap_server: str,
    command_config: str | None,
    *,
    log_dir: str | None = None,
) -> None:
    """``log_dir`` is where they are to be."""
    from confluent_kafka import admin

    client = connection(bootstrap_server, command_config).admin()
    if log_dir is not None:
        _refuse_other_cluster(client, log_dir)
    asked = [
        admin.NewTopic(
            each.name,
            num_partitions=each.partition_count,
            replication_factor=each.replication_factor,
            config={name: value or "" for name, value in each.configs.items()},
        )
        for each in wanted
    ]
    with told("Creating topics"):
        futures = client.create_topics(asked, request_timeout=REQUEST_SECONDS)
    for name, future in futures.items():
        answer_of(future, f"Creating topic {name}")


def _refuse_other_cluster(client: "AdminClient", log_dir: str) -> None:
    """Topics that are made elsewhere would stay there, empty."""
    from stratalog.storage.directory import LogDirectory
    from stratalog.storage.files import OsFileSystem

    identity = LogDirectory(OsFileSystem(), log_dir).identity()
    with told("Asking for the cluster"):
        cluster_id = client.list_topics(timeout=REQUEST_SECONDS).cluster_id
    if identity is not None and cluster_id != identity.cluster_id:
        raise UsageError(
            f"{log_dir} is of cluster {identity.cluster_id}, and the broker that "
            f"--bootstrap-server names is of {cluster_id}: name the one that runs on {log_dir}."
        )


def _delete_topics(
    names: "Sequence[str]", bootstrap_server: str, command_config: str | None
) -> None:
    client = connection(bootstrap_server, command_config).admin()
    with told("Deleting topics"):
        futures = client.delete_topics(list(names), request_timeout=REQUEST_SECONDS)
    for name, future in futures.items():
        answer_of(future, f"Deleting topic {name}")


def _show_plan(
    plan: "RestorePlan",
    notes: "Sequence[str]",
    log_dir: str,
    *,
    is_done: bool,
    output: OutputFormat,
    is_wide: bool,
) -> None:
    rows = [
        {
            "topic": each.topic_partition.topic,
            "partition": each.topic_partition.partition,
            "log_start_offset": each.log_start_offset,
            "end_offset": each.end_offset,
            "segments": len(each.segments),
            "size_bytes": each.size_bytes,
        }
        for each in plan.partitions
    ]
    if output is OutputFormat.JSON:
        write_json(
            {
                "backup_id": plan.manifest.backup_id,
                "source": plan.manifest.source.path,
                "log_dir": log_dir,
                "until_ms": plan.until_ms,
                "is_restored": is_done,
                "size_bytes": plan.size_bytes,
                "partitions": rows,
                "notes": list(notes),
            }
        )
        return
    for note in notes:
        write_error(f"note: {note}")
    columns = ("topic", "partition", "log_start_offset", "end_offset", "segments", "size_bytes")
    shown = [_SHOWN.get(each, Column(each)) for each in columns]
    write_table(shown, [[row[each] for each in columns] for row in rows], is_wide=is_wide)
    verb = "restored" if is_done else "would be restored"
    write_line(
        f"backup {plan.manifest.backup_id} of {plan.manifest.source.path}: "
        f"{plural(len(rows), 'partition')} with "
        f"{plural(plan.size_bytes, 'byte')} {verb} to {log_dir}"
    )
