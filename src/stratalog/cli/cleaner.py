"""``stratalog cleaner``: what compaction would do with a log, and why; and doing it, offline.

``explain`` only looks, also at a directory that a broker owns. ``run`` owns the directory while it
works, and cleans nothing of a topic whose configs it was not given.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratalog.cli.options import LogDirArgument, TopicsOption
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
    BrokerConfigOption,
    Chosen,
    ConfigOption,
    PathArgument,
    choose,
    choose_to_change,
)

if TYPE_CHECKING:
    from stratalog.errors import StratalogError
    from stratalog.storage.cleaning.planning import CleaningPlan
    from stratalog.storage.cleaning.rounds import CleanerStats
    from stratalog.storage.cleaning.survey import CleaningSurvey

_FOREVER_MS = 2**63 - 1


# --- explain ---------------------------------------------------------------------------------


def explain(
    path: PathArgument,
    topics: TopicsOption = None,
    configs: ConfigOption = None,
    broker_config: BrokerConfigOption = None,
    count: Annotated[
        bool,
        typer.Option(help="Read the logs to count keys and tombstones; without, only headers."),
    ] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say of every compacted log how dirty it is, and what would go.

    The directory may be in use; nothing is changed.

    \b
    Example:
      stratalog cleaner explain data --topic customers --config cleanup.policy=compact
    """
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem

    chosen = choose(
        OsFileSystem(), path, topics=topics, configs=configs, broker_config=broker_config
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
            else found.as_dict()
            for directory, found in surveys
        ]
        write_json({"path": path, "now_ms": now_ms, "partitions": partitions})
    else:
        _write_surveys(surveys)
    if any(isinstance(found, StratalogError) for _, found in surveys):
        raise typer.Exit(1)


def _look(
    chosen: Chosen, directory: str, now_ms: int, *, count: bool, progress: Callable[[int], None]
) -> "CleaningSurvey":
    from stratalog.storage.cleaning.survey import survey
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import list_replica
    from stratalog.storage.readonly import ReadOnlyFileSystem
    from stratalog.storage.views import look_at

    files = ReadOnlyFileSystem(OsFileSystem())
    config = chosen.topic_config(list_replica(files, directory).topic_partition.topic)
    # What a held topic's policy is, nobody knows; compaction is what is asked about here.
    assumed = config or chosen.config.altered(cleanup_policy=("compact",))
    return look_at(
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


def _write_surveys(surveys: "list[tuple[str, CleaningSurvey | StratalogError]]") -> None:
    from stratalog.errors import StratalogError

    for slot, (directory, found) in enumerate(surveys):
        if isinstance(found, StratalogError):
            write_error(f"{directory}: {found}")
            continue
        if slot:
            write_line()
        _write_survey(found)


def _write_survey(found: "CleaningSurvey") -> None:
    from stratalog.storage.cleaning.survey import HELD

    plan = found.plan
    write_line(
        f"{found.topic_partition}: offsets [{plan.log_start_offset}, {plan.log_end_offset}), last "
        f"stable offset {found.last_stable_offset}, {plural(found.size_bytes, 'byte')}"
    )
    if found.is_held:
        write_line(
            f"  {HELD}. Nothing is cleaned until they are given (--config). By the defaults, with "
            "cleanup.policy=compact:"
        )
    for sentence in found.sentences:
        write_line(f"  {sentence}")
    for warning in found.warnings:
        write_line(f"  warning: {warning}")


# --- run -------------------------------------------------------------------------------------


def run(
    path: LogDirArgument,
    topics: TopicsOption = None,
    configs: ConfigOption = None,
    broker_config: BrokerConfigOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be cleaned.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Compact what is dirty enough, in a directory nobody owns.

    With --config min.cleanable.dirty.ratio=0 all that can be cleaned is.

    \b
    Example:
      stratalog cleaner run data --topic customers --config cleanup.policy=compact --dry-run
    """
    chosen = choose_to_change(
        path,
        topics=topics,
        configs=configs,
        broker_config=broker_config,
        what="cleaned",
        policy="compact",
    )
    told = _Told(output, dry_run=dry_run)
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
            write_json({"dry_run": self._is_dry_run, "logs": self._logs})
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
    from stratalog.storage.offline import owned_logs

    # Cleaning is all that was asked for, and it is done here: no cleaner beside it.
    broker = replace(chosen.broker, log_cleaner_enable=False)
    # A round goes over what is dirty to learn its keys, and over all of it to rewrite.
    due = [plan for plan in plans.values() if plan.is_eligible]
    total = sum(plan.cleanable_bytes + plan.total_bytes for plan in due)
    with ExitStack() as stack:
        with waiting("opening logs"):
            logs = stack.enter_context(owned_logs(broker, topic_config=chosen.topic_config))
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
        logs.delete_due(_FOREVER_MS)
