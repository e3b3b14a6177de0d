"""The driver's side of a write: where its topics lie, and the commit of what tasks have staged.

Order is Spark's partition, then row: the files of a partition stand in the manifest by the task
that wrote them, then by their number. What was refused is removed at once; what may have been
committed is left to the end of its lease, and to its owner.
"""

import hashlib
import json
import logging
import socket
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql.datasource import WriterCommitMessage

from stratalog.clock import SystemClock
from stratalog.config.properties import parse_properties
from stratalog.errors import ConfigError, DiskError, TopicNameError
from stratalog.handover import Handover, open_handover
from stratalog.handover.errors import CommitUnknownError, HandoverError
from stratalog.handover.facts import TopicFacts
from stratalog.records.encoding import NO_LIMIT_MS
from stratalog.scans.errors import ScanOptionError
from stratalog.scans.snapshot import read_directory_id
from stratalog.spark.sink_errors import SinkError
from stratalog.spark.sink_options import SinkOptions
from stratalog.spark.sink_plan import SinkPlan, SinkTopic, StagedRows
from stratalog.storage.commits.committing import CommitResult
from stratalog.storage.commits.errors import CommitBusyError, CommitError
from stratalog.storage.commits.manifest import (
    TEXT_CHARACTERS_MAX,
    AppVersion,
    CommitKind,
    Manifest,
    PartitionManifest,
    StagedFile,
)
from stratalog.storage.commits.staging import STAGING_MS_MAX, open_staging, release_staging
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition, staging_file

_log = logging.getLogger(__name__)


def _handover(options: SinkOptions) -> Handover:
    name = "brokerConfig"
    if not options.broker_config_file:
        return open_handover(options.path)
    try:
        settings = parse_properties(Path(options.broker_config_file).read_bytes())
        return open_handover(options.path, config=settings)
    except (OSError, ConfigError) as error:
        raise ScanOptionError(name, options.broker_config_file, str(error)) from error


# --- before ------------------------------------------------------------------------------------


def check_sink(options: SinkOptions) -> None:
    """Refuse what no task could write to."""
    _topics_to_write(options)


def _topics_to_write(options: SinkOptions) -> tuple[dict[str, TopicFacts], dict[str, str]]:
    """The topics that rows may be for, and of those that nobody writes to why not."""
    wanted = None if options.topic is None else [options.topic]
    found = _find_topics(options, wanted)
    if options.topic is not None and options.topic not in found:
        raise SinkError(
            f"there is no topic {options.topic!r} in {options.path}; create it first, as with "
            f"stratalog topic create {options.topic}"
        )
    refused = {name: why for name, facts in found.items() if (why := _why_refused(facts))}
    if options.topic is not None:
        if options.topic in refused:
            raise SinkError(refused[options.topic])
        _check_complete(found[options.topic], options.path)
    return found, refused


def plan_sink(
    options: SinkOptions, columns: tuple[str, ...], *, opens_staging: bool = False
) -> SinkPlan:
    """Everything that tasks need to know; what no task could write to is refused now.

    ``opens_staging``: by whoever knows of the write's end. Its tasks may begin much later.
    """
    found, refused = _topics_to_write(options)
    holder = f"spark on {socket.gethostname()}"
    staging_id = uuid.uuid4().hex
    if opens_staging:
        open_staging(
            OsFileSystem(),
            options.path,
            holder=holder,
            seconds=STAGING_MS_MAX / 1000,
            clock=SystemClock(),
            staging_id=staging_id,
        )
    return SinkPlan.of(
        options,
        columns,
        {name: _sink_topic(facts) for name, facts in found.items() if name not in refused},
        refused=refused,
        directory_id=read_directory_id(OsFileSystem(), options.path),
        staging_id=staging_id,
        is_opened=opens_staging,
        holder=holder,
    )


def _find_topics(options: SinkOptions, wanted: list[str] | None) -> dict[str, TopicFacts]:
    """Of a broker with several log directories, only what lies in this one: it holds the lease of
    what is staged, and what has none where it lies is swept."""
    try:
        found = _handover(options).topics(wanted, seconds=options.commit_seconds)
    except TopicNameError as error:
        raise SinkError(
            f"{options.path} has directories that are no partitions ({error}): name a log "
            "directory, which holds nothing else"
        ) from error
    return {name: facts.within(options.path) for name, facts in found.items()}


def _why_refused(facts: TopicFacts) -> str:
    if facts.is_internal:
        return f"{facts.name} is a topic of the broker's own; nobody else writes to it"
    if facts.is_held:
        return (
            f"the settings of {facts.name} are not known, so nobody can say what it takes; say by "
            "which it is kept with 'stratalog topic adopt'"
        )
    return ""


def _check_complete(facts: TopicFacts, path: str) -> None:
    missing = sorted(set(range(facts.partition_count)) - set(facts.partitions))
    if missing:
        raise SinkError(
            f"{len(missing)} of the {facts.partition_count} partitions of {facts.name} are not in "
            f"{path} or are offline, first of them {missing[0]}. A commit is within one log "
            "directory: write over the wire, with kafka.bootstrap.servers"
        )


def _sink_topic(facts: TopicFacts) -> SinkTopic:
    rules = facts.rules
    return SinkTopic(
        name=facts.name,
        topic_id=facts.topic_id,
        partition_count=facts.partition_count,
        directories=dict(facts.partitions),
        max_message_bytes=facts.max_message_bytes,
        segment_bytes=facts.segment_bytes,
        is_compacted=facts.is_compacted,
        # Where the owner stamps the records, what rows say counts for nothing.
        before_max_ms=NO_LIMIT_MS if rules.log_append_time else rules.before_max_ms,
        after_max_ms=NO_LIMIT_MS if rules.log_append_time else rules.after_max_ms,
    )


# --- the commit --------------------------------------------------------------------------------


def batch_app(options: SinkOptions) -> AppVersion | None:
    """A version is one of an application's writes to a topic: one that writes two topics, each
    with a write of its own, gives both the same version."""
    if options.app_id is None:
        return None
    # A separator within the id is doubled, so that no two of id and topic share a name.
    name = options.app_id.replace("/", "//")
    if options.topic is not None:
        name = f"{name}/{options.topic}"
    if len(name) > TEXT_CHARACTERS_MAX:
        name = hashlib.sha256(name.encode()).hexdigest()
    return AppVersion(name=name, version=options.app_version)


def commit_staged(
    options: SinkOptions, staged: Sequence[StagedRows], manifest_id: str, app: AppVersion | None
) -> CommitResult | None:
    """All of it becomes part of the logs, once; None if there is nothing."""
    manifest = make_manifest(staged, manifest_id, app)
    if manifest is None:
        return None
    try:
        result = _handover(options).commit(manifest, seconds=options.commit_seconds)
    except (CommitUnknownError, CommitBusyError):
        raise  # it may be this very staging that is being committed: its lease will end
    except (CommitError, HandoverError):
        release(options.path, [manifest.staging_id])
        raise
    if result.status != "committed":
        _log.warning("%s was committed before: its rows are not written again", manifest_id)
        end_lease(options.path, manifest.staging_id)
    return result


def tell_result(options: SinkOptions, result: CommitResult | None) -> None:
    """To whoever runs the job, which is another process on this host: Spark passes nothing on."""
    if not options.result_file:
        return
    told: dict[str, object] = {"status": "nothing to write", "partitions": []}
    if result is not None:
        rows = [[*key, *ends] for key, ends in sorted(result.partitions.items())]
        told = {"status": result.status, "partitions": rows}
    with suppress(OSError):  # the commit stands, whoever hears of it
        Path(options.result_file).write_text(json.dumps(told))


def make_manifest(
    staged: Iterable[StagedRows], manifest_id: str, app: AppVersion | None
) -> Manifest | None:
    files: dict[TopicPartition, list[StagedFile]] = defaultdict(list)
    topic_ids: dict[str, str] = {}
    staging_ids = set()
    for each in sorted(staged, key=lambda each: each.place.task):
        topic_ids.update(each.topic_ids)
        for key, written in each.files.items():
            files[key].extend(written)
            staging_ids.add(each.staging_id)
    if not files:
        return None
    assert len(staging_ids) == 1, "a write stages under one id"
    return Manifest(
        manifest_id=manifest_id,
        kind=CommitKind.APPEND,
        staging_id=staging_ids.pop(),
        partitions=tuple(
            PartitionManifest(
                topic=key.topic,
                partition=key.partition,
                topic_id=topic_ids[key.topic],
                files=tuple(files[key]),
            )
            for key in sorted(files)
        ),
        app=app,
        holder=f"spark on {socket.gethostname()}",
    )


def staged_rows(messages: Iterable[WriterCommitMessage | None]) -> list[StagedRows]:
    """What tasks of an aborted write told; one that told nothing has failed, or was not asked."""
    return [each for each in messages if isinstance(each, StagedRows)]


def end_lease(path: str, staging_id: str) -> None:
    """What was committed before may be this very staging, and not yet all in place: its owner
    knows, and removes what nobody needs."""
    with suppress(DiskError):
        OsFileSystem().set_modified(staging_file(path, staging_id), SystemClock().now_ms())


def release(path: str, staging_ids: Iterable[str]) -> None:
    for staging_id in staging_ids:
        release_staging(OsFileSystem(), path, staging_id)
