"""``stratalog retention``: when will each segment go, and why; and letting them go, offline.

``explain`` only looks, also at a directory that a broker owns. ``run`` owns the directory while it
works, and removes nothing that the topics' known configs keep unless it is told to.
"""

import time
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.directories import DirArgument, NamedDirOption, directory_of
from stratalog.cli.options import TopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    WideOption,
    plural,
    write_error,
    write_json,
    write_line,
    write_table,
    write_told,
)
from stratalog.cli.progress import logs_bars
from stratalog.cli.table import Cells, Column, Mood, Told, bytes_text
from stratalog.cli.topic_configs import (
    BeyondOption,
    BrokerConfigOption,
    Chosen,
    ConfigOption,
    HighWatermarkOption,
    by_default_warnings,
    choose,
    choose_to_change,
    why_unknown,
)

if TYPE_CHECKING:
    from stratalog.storage.fates import RetentionReport, SegmentFate
    from stratalog.storage.retention import RetentionPlan
    from stratalog.storage.segment import Segment
    from stratalog.storage.views import LogView

    Plan = RetentionPlan[Segment]

_HELD = "held: configs unknown"


# --- explain ---------------------------------------------------------------------------------


def explain(
    path: DirArgument = None,
    log_dir: NamedDirOption = None,
    topics: TopicsOption = None,
    configs: ConfigOption = None,
    broker_config: BrokerConfigOption = None,
    high_watermark_is_end: HighWatermarkOption = False,
    wide: WideOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say of every segment when it will go, by which rule, and why.

    The configs are those that the directory's broker has, or has left there. The directory may be
    in use; nothing is changed.

    \b
    Examples:
      stratalog retention explain data
      stratalog retention explain data --topic orders --config retention.ms=604800000
    """
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem

    files = OsFileSystem()
    place = directory_of(path, log_dir)
    chosen = choose(
        files,
        place,
        topics=topics,
        configs=configs,
        broker_config=broker_config,
        is_end_replicated=high_watermark_is_end,
    )
    now_ms = time.time_ns() // 1_000_000
    told, failed = [], False
    for slot, directory in enumerate(chosen.replicas):
        try:
            view, report = _look(chosen, directory, now_ms)
        except StratalogError as error:
            failed = True
            told.append({"directory": directory, "error": str(error)})
            if output is OutputFormat.TABLE:
                write_error(f"{directory}: {error}")
            continue
        topic = view.topic_partition.topic
        held = None if chosen.topic_config(topic) is not None else why_unknown(chosen, topic)
        warnings = [*_about(view), *by_default_warnings(chosen, topic), *report.warnings]
        told.append(_as_json(view, report, held=held, warnings=warnings))
        if output is OutputFormat.TABLE:
            if slot:
                write_line()
            _write_report(view, report, held=held, warnings=warnings, now_ms=now_ms, is_wide=wide)
    totals = _totals(chosen, told)
    if output is OutputFormat.JSON:
        write_json(
            {
                "path": place,
                "now_ms": now_ms,
                "configs_from": chosen.known.how,
                "partitions": told,
                "warnings": totals,
            }
        )
    else:
        for warning in totals:
            write_told(f"warning: {warning}")
    if failed:
        raise typer.Exit(1)


def _totals(chosen: Chosen, told: list[dict[str, Any]]) -> list[str]:
    """What a limit comes to that many take for the topic's."""
    counts = Counter(row["topic"] for row in told if "topic" in row and row["held"] is None)
    found = []
    for topic, count in sorted(counts.items()):
        config = chosen.resolved(topic).config
        limit = config.retention_bytes
        if count > 1 and limit >= 0 and config.delete:
            found.append(
                f"retention.bytes={limit} is for each partition: the {count} of {topic} here may "
                f"keep {count * limit} bytes"
            )
    return found


def _look(chosen: Chosen, directory: str, now_ms: int) -> "tuple[LogView, RetentionReport]":
    from stratalog.storage.fates import explain_retention
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import topic_partition_of

    config = chosen.resolved(topic_partition_of(directory).topic).config

    def ask(view: "LogView") -> "tuple[LogView, RetentionReport]":
        return view, explain_retention(
            view.segments,
            config=config,
            log_start_offset=view.log_start_offset,
            high_watermark=view.high_watermark,
            log_end_offset=view.log_end_offset,
            now_ms=now_ms,
            is_cleaner_enabled=chosen.broker.log_cleaner_enable,
        )

    return chosen.look_at(OsFileSystem(), directory, config, ask)


def _about(view: "LogView") -> list[str]:
    if view.is_high_watermark_known:
        return []
    return [
        "replication-offset-checkpoint does not name this log: its high watermark counts as "
        f"{view.high_watermark}, its start (--high-watermark-is-end)"
    ]


def _as_json(
    view: "LogView", report: "RetentionReport", *, held: str | None, warnings: list[str]
) -> dict[str, Any]:
    return {
        "topic": view.topic_partition.topic,
        "partition": view.topic_partition.partition,
        "directory": view.directory,
        "log_start_offset": view.log_start_offset,
        "high_watermark": view.high_watermark,
        "log_end_offset": view.log_end_offset,
        "size_bytes": view.size_bytes,
        "checked_by": report.checked_by,
        "held": None if held is None else f"{_HELD}: {held}",
        "warnings": warnings,
        "segments": [_fate_as_json(fate, held=held is not None) for fate in report.fates],
    }


def _fate_as_json(fate: "SegmentFate", *, held: bool) -> dict[str, Any]:
    row = asdict(fate)
    row["breach"] = None if fate.breach is None else fate.breach.value
    row["holds"] = [hold.value for hold in fate.holds]
    # Nothing goes from a held log. What the defaults would do has a name of its own.
    row["would_go_at_ms"] = fate.goes_at_ms
    if held:
        row["goes_at_ms"] = row["breach"] = None
        row["holds"].insert(0, "unknown configs")
    return row


def _write_report(
    view: "LogView",
    report: "RetentionReport",
    *,
    held: str | None,
    warnings: list[str],
    now_ms: int,
    is_wide: bool,
) -> None:
    title = (
        f"{view.topic_partition}: offsets [{view.log_start_offset}, {view.log_end_offset}), high "
        f"watermark {view.high_watermark}, {plural(len(view.segments), 'segment')}, "
        f"{bytes_text(view.size_bytes)}; checked by {report.checked_by}"
    )
    write_line(title)
    if held is not None:
        write_told(f"{_HELD}: {held}. Nothing goes until they are known. By what is known:")
    goes = "goes" if held is None else "would go"
    columns = (
        *(Column("base"), Column("end", rank=2), Column("bytes", Cells.BYTES)),
        *(Column("newest", rank=3), Column(goes), Column("by", rank=4)),
        Column("why", Cells.TEXT, rank=1),
    )
    write_table(columns, [_cells(fate, now_ms) for fate in report.fates], is_wide=is_wide)
    for warning in warnings:
        write_told(f"warning: {warning}")


def _cells(fate: "SegmentFate", now_ms: int) -> list[object]:
    from stratalog.storage.moments import moment_text

    newest, goes = "", "held"
    mood = Mood.PLAIN
    if fate.largest_timestamp_ms is not None:
        newest = moment_text(fate.largest_timestamp_ms)
    if fate.goes_at_ms is not None:
        is_due = fate.goes_at_ms <= now_ms
        goes = "now" if is_due else moment_text(fate.goes_at_ms)
        mood = Mood.WARNING if is_due else Mood.PLAIN
    elif fate.breach is not None:
        goes = f"after {bytes_text(fate.bytes_until_size or 0)}"
    breach = "" if fate.breach is None else fate.breach.value
    return [
        fate.base_offset,
        fate.end_offset,
        fate.size_bytes,
        newest,
        Told(goes, mood),
        breach,
        fate.explanation,
    ]


# --- run -------------------------------------------------------------------------------------


def run(
    path: DirArgument = None,
    log_dir: NamedDirOption = None,
    topics: TopicsOption = None,
    configs: ConfigOption = None,
    broker_config: BrokerConfigOption = None,
    beyond_known_configs: BeyondOption = False,
    high_watermark_is_end: HighWatermarkOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete what retention lets go, in a directory nobody owns.

    By the configs that the directory's broker has left there; topics whose configs are unknown are
    passed over.

    \b
    Examples:
      stratalog retention run data --dry-run
      stratalog retention run data --topic orders --config retention.bytes=-1
    """
    place = directory_of(path, log_dir)
    chosen = choose_to_change(
        place,
        topics=topics,
        configs=configs,
        broker_config=broker_config,
        policy="delete",
        is_beyond=beyond_known_configs,
        is_end_replicated=high_watermark_is_end,
    )
    told = _Told(output, dry_run=dry_run)
    told.held(chosen)
    if dry_run:
        _plan_all(chosen, told)
    else:
        _run_all(chosen, told)
    told.finish()
    if told.failed:
        raise typer.Exit(1)


class _Told:
    """What was done to each log; told at the end, when no bar is drawn any more."""

    def __init__(self, output: OutputFormat, *, dry_run: bool) -> None:
        self.failed = False
        self._is_text = output is OutputFormat.TABLE
        self._is_dry_run = dry_run
        self._logs: list[dict[str, Any]] = []
        self._held: list[dict[str, str]] = []
        self._lines: list[str] = []

    def log(self, name: str, plan: "Plan") -> None:
        deleted = [
            {
                "base_offset": each.segment.base_offset,
                "size_bytes": each.segment.size_bytes,
                "breach": each.breach.value,
                "explanation": each.explanation,
            }
            for each in plan.doomed
        ]
        row = {
            "log": name,
            "deleted": deleted,
            "freed_bytes": plan.freed_bytes,
            "log_start_offset": plan.log_start_offset,
            "held": None if plan.held is None else plan.held.explanation,
        }
        self._logs.append(row)
        verb = "would delete" if self._is_dry_run else "deleted"
        for each in deleted:
            self._lines.append(
                f"{name}: {verb} segment {each['base_offset']} of {each['size_bytes']} bytes, by "
                f"{each['breach']}: {each['explanation']}"
            )
        if plan.held is not None:
            base_offset = plan.held.segment.base_offset
            self._lines.append(f"{name}: segment {base_offset} stays: {plan.held.explanation}")

    def held(self, chosen: Chosen) -> None:
        """Say which topics are passed over."""
        for topic in sorted(chosen.topics):
            if chosen.topic_config(topic) is None:
                why = why_unknown(chosen, topic)
                self._held.append({"topic": topic, "held": why})
                self._lines.append(f"{topic}: passed over, its configs are unknown: {why}")

    def failure(self, name: str, error: str) -> None:
        self.failed = True
        self._logs.append({"log": name, "error": error})
        self._lines.append(f"{name}: failed: {error}")

    def finish(self) -> None:
        if not self._is_text:
            row = {"dry_run": self._is_dry_run, "logs": self._logs, "held": self._held}
            write_json(row)
            return
        for line in self._lines:
            write_line(line)
        count = sum(len(row.get("deleted", ())) for row in self._logs)
        size_bytes = sum(row.get("freed_bytes", 0) for row in self._logs)
        verb = "would be deleted" if self._is_dry_run else "deleted"
        write_line(
            f"{plural(count, 'segment')} with {plural(size_bytes, 'byte')} {verb}, in "
            f"{plural(len(self._logs), 'log')}"
        )


def _plan_all(chosen: Chosen, told: _Told) -> None:
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import topic_partition_of
    from stratalog.storage.retention import plan_retention

    now_ms = time.time_ns() // 1_000_000

    def ask(view: "LogView") -> "tuple[LogView, Plan]":
        return view, plan_retention(
            view.segments,
            config=chosen.resolved(view.topic_partition.topic).config,
            log_start_offset=view.log_start_offset,
            high_watermark=view.high_watermark,
            log_end_offset=view.log_end_offset,
            now_ms=now_ms,
        )

    for directory in chosen.replicas:
        config = chosen.topic_config(topic_partition_of(directory).topic)
        if config is None:
            continue
        try:
            view, plan = chosen.look_at(OsFileSystem(), directory, config, ask)
        except StratalogError as error:
            told.failure(directory, str(error))
            continue
        told.log(str(view.topic_partition), plan)


def _run_all(chosen: Chosen, told: _Told) -> None:
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.offline import owned_logs

    # Deleting is all that was asked for: no cleaner beside it.
    broker = replace(chosen.broker, log_cleaner_enable=False)
    with (
        logs_bars("retention") as (show_opening, show_done),
        owned_logs(
            broker,
            topic_config=chosen.topic_config,
            show_progress=show_opening,
            is_end_replicated=chosen.is_end_replicated,
        ) as logs,
    ):
        chosen.check_unchanged(OsFileSystem())
        for directory in logs.directories:
            for key, reason in directory.offline_logs.items():
                if key.topic in chosen.topics:
                    told.failure(str(key), reason)
        due = [log for log in logs if not log.is_held]
        for log in sorted(due, key=lambda each: each.topic_partition):
            plan = logs.check_retention(log, logs.clock.now_ms())
            if plan is None:
                told.failure(str(log.topic_partition), logs.retention_failures[log.topic_partition])
            else:
                told.log(str(log.topic_partition), plan)
            show_done(len(due))
        # Nobody is left to come back for the files after their delay.
        logs.delete_due(logs.clock.now_ms(), is_last=True)
