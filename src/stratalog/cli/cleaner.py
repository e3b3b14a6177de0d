"""``stratalog cleaner``: what compaction would do with a log, and why; and doing it, offline.

``explain`` only looks, also at a directory that a broker owns. ``run`` owns the directory while it
works, and removes nothing that the topics' known configs keep unless it is told to.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.directories import DirArgument, NamedDirOption, directory_of
from stratalog.cli.options import TopicsOption
from stratalog.cli.output import (
    OutputFormat,
    OutputOption,
    plural,
    write_error,
    write_json,
    write_line,
)
from stratalog.cli.progress import bytes_bar, log_bytes, waiting
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
    from stratalog.errors import StratalogError
    from stratalog.storage.cleaning.planning import CleaningPlan
    from stratalog.storage.cleaning.rounds import CleanerStats
    from stratalog.storage.cleaning.survey import CleaningSurvey


# --- explain ---------------------------------------------------------------------------------


def explain(
    path: DirArgument = None,
    log_dir: NamedDirOption = None,
    topics: TopicsOption = None,
    configs: ConfigOption = None,
    broker_config: BrokerConfigOption = None,
    high_watermark_is_end: HighWatermarkOption = False,
    count: Annotated[
        bool,
        typer.Option(help="Read the logs to count keys and tombstones; without, only headers."),
    ] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say of every compacted log how dirty it is, and what would go.

    The configs are those that the directory's broker has, or has left there. The directory may be
    in use; nothing is changed.

    \b
    Examples:
      stratalog cleaner explain data
      stratalog cleaner explain data --topic customers --config cleanup.policy=compact
    """
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem

    place = directory_of(path, log_dir)
    chosen = choose(
        OsFileSystem(),
        place,
        topics=topics,
        configs=configs,
        broker_config=broker_config,
        is_end_replicated=high_watermark_is_end,
    )
    now_ms = time.time_ns() // 1_000_000
    surveys: list[tuple[str, CleaningSurvey | StratalogError]] = []
    with bytes_bar("counting", lambda: log_bytes(chosen.replicas) if count else None) as progress:
        for directory in chosen.replicas:
            try:
                found = _look(chosen, directory, now_ms, count=count, progress=progress)
                surveys.append((directory, found))
            except StratalogError as error:
                surveys.append((directory, error))
    if output is OutputFormat.JSON:
        partitions = [
            {"directory": directory, "error": str(found)}
            if isinstance(found, StratalogError)
            else _as_json(chosen, found)
            for directory, found in surveys
        ]
        write_json(
            {
                "path": place,
                "now_ms": now_ms,
                "configs_from": chosen.known.how,
                "partitions": partitions,
            }
        )
    else:
        _write_surveys(chosen, surveys)
    if any(isinstance(found, StratalogError) for _, found in surveys):
        raise typer.Exit(1)


def _look(
    chosen: Chosen, directory: str, now_ms: int, *, count: bool, progress: Callable[[int], None]
) -> "CleaningSurvey":
    from stratalog.metadata.removal_limits import POLICY
    from stratalog.storage.cleaning.survey import survey
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import topic_partition_of
    from stratalog.storage.readonly import ReadOnlyFileSystem

    files = ReadOnlyFileSystem(OsFileSystem())
    topic = topic_partition_of(directory).topic
    config, found = chosen.topic_config(topic), chosen.resolved(topic)
    assumed = found.config
    if config is None and POLICY in found.unknown:
        # Compaction is what is asked about here.
        assumed = assumed.altered(cleanup_policy=("compact",))
    return chosen.look_at(
        files,
        directory,
        assumed,
        lambda view: survey(
            files,
            view,
            assumed,
            is_held=config is None,
            broker=chosen.broker,
            now_ms=now_ms,
            count=count,
            progress=progress,
        ),
    )


def _as_json(chosen: Chosen, found: "CleaningSurvey") -> dict[str, Any]:
    row = found.as_dict()
    topic = found.topic_partition.topic
    if found.is_held:
        row["held"] = f"{row['held']}: {why_unknown(chosen, topic)}"
    row["warnings"] += by_default_warnings(chosen, topic)
    return row


def _write_surveys(
    chosen: Chosen, surveys: "list[tuple[str, CleaningSurvey | StratalogError]]"
) -> None:
    from stratalog.errors import StratalogError

    for slot, (directory, found) in enumerate(surveys):
        if isinstance(found, StratalogError):
            write_error(f"{directory}: {found}")
            continue
        if slot:
            write_line()
        _write_survey(chosen, found)


def _write_survey(chosen: Chosen, found: "CleaningSurvey") -> None:
    from stratalog.storage.cleaning.survey import HELD

    plan = found.plan
    write_line(
        f"{found.topic_partition}: offsets [{plan.log_start_offset}, {plan.log_end_offset}), last "
        f"stable offset {found.last_stable_offset}, {plural(found.size_bytes, 'byte')}"
    )
    if found.is_held:
        write_line(
            f"  {HELD}: {why_unknown(chosen, found.topic_partition.topic)}. Nothing is cleaned "
            "until they are known. By what is known, with "
            f"cleanup.policy={','.join(plan.config.cleanup_policy)}:"
        )
    for sentence in found.sentences:
        write_line(f"  {sentence}")
    for warning in (*found.warnings, *by_default_warnings(chosen, found.topic_partition.topic)):
        write_line(f"  warning: {warning}")


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
        bool, typer.Option("--dry-run", help="Only say what would be cleaned.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Compact what is dirty enough, in a directory nobody owns.

    By the configs that the directory's broker has left there; topics whose configs are unknown are
    passed over. With --config min.cleanable.dirty.ratio=0 all that can be cleaned is.

    \b
    Examples:
      stratalog cleaner run data --dry-run
      stratalog cleaner run data --topic customers --config min.cleanable.dirty.ratio=0
    """
    place = directory_of(path, log_dir)
    chosen = choose_to_change(
        place,
        topics=topics,
        configs=configs,
        broker_config=broker_config,
        policy="compact",
        is_beyond=beyond_known_configs,
        is_end_replicated=high_watermark_is_end,
    )
    told = _Told(output, dry_run=dry_run)
    told.held(chosen)
    plans = _plan_all(chosen, told)
    if dry_run:
        for name, plan in plans.items():
            told.plan(name, plan)
    else:
        _clean_all(chosen, plans, told)
    told.finish()
    if told.failed:
        raise typer.Exit(1)


class _Told:
    """What was done to each log is told when it is done; JSON waits for the whole."""

    def __init__(self, output: OutputFormat, *, dry_run: bool) -> None:
        self.failed = False
        self._is_text = output is OutputFormat.TABLE
        self._is_dry_run = dry_run
        self._logs: list[dict[str, Any]] = []
        self._held: list[dict[str, str]] = []

    def held(self, chosen: Chosen) -> None:
        """Say which topics are passed over."""
        for topic in sorted(chosen.topics):
            if chosen.topic_config(topic) is None:
                why = why_unknown(chosen, topic)
                self._held.append({"topic": topic, "held": why})
                if self._is_text:
                    write_line(f"{topic}: passed over, its configs are unknown: {why}")

    def plan(self, name: str, plan: "CleaningPlan") -> None:
        """A log that is only looked at, or left as it is."""
        row = {
            "log": name,
            "is_eligible": plan.is_eligible,
            "first_dirty_offset": plan.first_dirty_offset,
            "first_uncleanable_offset": plan.first_uncleanable_offset,
            "clean_bytes": plan.clean_bytes,
            "cleanable_bytes": plan.cleanable_bytes,
            "cleanable_ratio": plan.cleanable_ratio,
            "reasons": list(plan.reasons),
        }
        self._logs.append(row)
        if not self._is_text:
            return
        if self._is_dry_run and plan.is_eligible:
            write_line(
                f"{name}: would clean {plan.cleanable_bytes} dirty bytes, from offset "
                f"{plan.first_dirty_offset} to {plan.first_uncleanable_offset}"
            )
        for reason in plan.reasons if self._is_dry_run else plan.reasons[-1:]:
            write_line(f"{name}: {reason}")

    def cleaned(self, name: str, stats: "CleanerStats", *, before: int, after: int) -> None:
        self._logs.append(
            {"log": name, "bytes_before": before, "bytes_after": after, **stats.as_dict()}
        )
        if not self._is_text:
            return
        speed = stats.bytes_read / max(stats.seconds, 1e-9) / 1e6
        write_line(
            f"{name}: cleaned up to offset {stats.end_offset}, {before} bytes became {after}; the "
            f"last round kept {stats.messages_kept} of {stats.messages_read} records at "
            f"{speed:.0f} MB/s, {stats.superseded} were superseded, "
            f"{stats.tombstones_expired} tombstones expired"
        )
        for warning in stats.warnings:
            write_line(f"{name}: warning: {warning}")

    def failure(self, name: str, error: str) -> None:
        self.failed = True
        self._logs.append({"log": name, "error": error})
        if self._is_text:
            write_error(f"{name}: {error}")

    def finish(self) -> None:
        if not self._is_text:
            row = {"dry_run": self._is_dry_run, "logs": self._logs, "held": self._held}
            write_json(row)
            return
        if self._is_dry_run:
            count = sum(bool(row.get("is_eligible")) for row in self._logs)
            write_line(f"{plural(count, 'log')} of {len(self._logs)} would be cleaned")
            return
        cleaned = [row for row in self._logs if "bytes_after" in row]
        freed = sum(row["bytes_before"] - row["bytes_after"] for row in cleaned)
        write_line(
            f"{plural(len(cleaned), 'log')} of {len(self._logs)} cleaned, "
            f"{plural(freed, 'byte')} freed"
        )


def _plan_all(chosen: Chosen, told: _Told) -> "dict[str, CleaningPlan]":
    """What is due, by what the files say; also how much the bar has before it."""
    from stratalog.errors import StratalogError

    now_ms = time.time_ns() // 1_000_000
    plans = {}
    for directory in chosen.replicas:
        try:
            found = _look(chosen, directory, now_ms, count=False, progress=lambda _bytes: None)
        except StratalogError as error:
            told.failure(directory, str(error))
            continue
        if not found.is_held:
            plans[str(found.topic_partition)] = found.plan
    return plans


def _clean_all(chosen: Chosen, plans: "dict[str, CleaningPlan]", told: _Told) -> None:
    from stratalog.storage.cleaning.cleaner import LogCleaner
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.offline import owned_logs

    # Cleaning is all that was asked for, and it is done here: no cleaner beside it.
    broker = replace(chosen.broker, log_cleaner_enable=False)
    # A round goes over what is dirty to learn its keys, and over all of it to rewrite.
    due = [plan for plan in plans.values() if plan.is_eligible]
    total = sum(plan.cleanable_bytes + plan.total_bytes for plan in due)
    with ExitStack() as stack:
        with waiting("opening logs"):
            logs = stack.enter_context(
                owned_logs(
                    broker,
                    topic_config=chosen.topic_config,
                    is_end_replicated=chosen.is_end_replicated,
                )
            )
        chosen.check_unchanged(OsFileSystem())
        for directory in logs.directories:
            for key, reason in directory.offline_logs.items():
                if key.topic in chosen.topics:
                    told.failure(str(key), reason)
        wanted = [log for log in logs if not log.is_held]
        before = {log.topic_partition: log.size_bytes for log in wanted}
        with bytes_bar("cleaning", lambda: total) as progress:
            cleaner = LogCleaner(
                chosen.broker,
                logs.clock,
                logs.directories,
                lambda _log, _now_ms: None,
                is_threaded=False,
                progress=progress,
            )
            cleaner.run(logs.clock.now_ms())
        for log in sorted(wanted, key=lambda each: each.topic_partition):
            key, name = log.topic_partition, str(log.topic_partition)
            marked = cleaner.uncleanable.get(key)
            if log.failure is not None:
                told.failure(name, str(log.failure))
            elif marked is not None:
                told.failure(name, marked.reason)
            elif key in cleaner.last_runs:
                stats = cleaner.last_runs[key]
                told.cleaned(name, stats, before=before[key], after=log.size_bytes)
            elif name in plans:
                told.plan(name, plans[name])
        # Nobody is left to come back for the files after their delay.
        logs.delete_due(logs.clock.now_ms(), is_last=True)
