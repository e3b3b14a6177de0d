"""Restoring a backup into topics that are there, and empty: as a commit, in a broker that runs, or
in a directory that has had one.

A topic that is not there yet is made first, with the configs and partitions that it had; by the
broker if one runs. Its id is a new one.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from stratalog.clock import SystemClock
from stratalog.handover.errors import CommitUnknownError
from stratalog.handover.facts import TopicFacts
from stratalog.handover.handover import Handover, open_handover
from stratalog.handover.owning import owned, owner_config
from stratalog.handover.restoring import RestoreResult
from stratalog.metadata.topics import NewTopic
from stratalog.scans.owners import find_owner
from stratalog.storage.backup.copying import Progress
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import TopicBackup
from stratalog.storage.backup.restore_plan import RestoredPartition, RestorePlan
from stratalog.storage.backup.staging import BackupStaging
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.commits.manifest import CommitKind, Manifest
from stratalog.storage.commits.staging import open_staging, release_staging, renew_staging
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.topic_names import KAFKAS_OWN_TOPICS

SECONDS = 600.0

# Makes topics in the broker that runs; its address is known to whoever calls.
MakeTopics = Callable[[Sequence[NewTopic]], None]


def restore_topics(
    store: BackupStore,
    plan: RestorePlan,
    log_dir: str,
    *,
    make_topics: MakeTopics | None = None,
    files: FileSystem | None = None,
    progress: Progress = lambda _bytes: None,
) -> RestoreResult:
    """Restore ``plan`` into the topics of ``log_dir``, all of it or nothing."""
    files = files or OsFileSystem()
    handover = open_handover(log_dir, files=files)
    partitions = [each for each in plan.partitions if each.end_offset > 0]
    _refuse_internal(handover.log_dir, plan)
    notes = list(plan.notes)
    facts = _make_missing(handover, plan, make_topics, notes)
    if not partitions:
        return RestoreResult(plan=plan, log_dir=log_dir, notes=tuple(notes))
    clock = SystemClock()
    staging_id = open_staging(
        files,
        handover.log_dir,
        holder=f"restore of {plan.manifest.backup_id}",
        seconds=SECONDS,
        clock=clock,
    )
    due = time.monotonic() + SECONDS / 3

    def renew() -> None:
        nonlocal due
        if time.monotonic() > due:
            renew_staging(files, handover.log_dir, staging_id, SECONDS, clock)
            due = time.monotonic() + SECONDS / 3

    try:
        staging = BackupStaging(files, store, staging_id, renew=renew, progress=progress)
        manifest = Manifest(
            manifest_id=f"restore-{uuid.uuid4().hex}",
            kind=CommitKind.RESTORE,
            staging_id=staging_id,
            partitions=tuple(staging.stage(each, *_place(facts, each)) for each in partitions),
            holder=f"restore of {plan.manifest.backup_id}",
        )
        handover.commit(manifest)
    except CommitUnknownError:
        raise  # what may be committed yet stays, until its lease is over
    except BaseException:
        release_staging(files, handover.log_dir, staging_id)
        raise
    return RestoreResult(plan=plan, log_dir=log_dir, notes=tuple(notes))


def _refuse_internal(log_dir: str, plan: RestorePlan) -> None:
    ownership, _ = find_owner(log_dir)
    internal = sorted({each.name for each in plan.topics} & KAFKAS_OWN_TOPICS)
    if internal and ownership.kind != "none":
        raise BackupError(
            f"{internal[0]} is kept in memory by the broker that runs: stop it first, or leave the "
            "topic out with --topic"
        )


def _place(facts: Mapping[str, TopicFacts], partition: RestoredPartition) -> tuple[str, str]:
    key = partition.topic_partition
    topic = facts[key.topic]
    directory = topic.partitions.get(key.partition)
    if directory is None:
        raise BackupError(
            f"{key} is in the backup, and the topic has {topic.partition_count} partitions, of "
            "which that one cannot be written to"
        )
    return directory, topic.topic_id


def _make_missing(
    handover: Handover, plan: RestorePlan, make_topics: MakeTopics | None, notes: list[str]
) -> dict[str, TopicFacts]:
    names = [each.name for each in plan.topics]
    facts = handover.topics(names)
    missing = [_new_topic(each) for each in plan.topics if each.name not in facts]
    if missing:
        ownership, _ = find_owner(handover.log_dir)
        if ownership.kind == "none":
            _make_here(handover, missing)
        elif make_topics is not None:
            make_topics(missing)
        else:
            raise BackupError(
                f"there is no topic {missing[0].name} in {handover.log_dir}: make it first, or "
                "name the broker with --bootstrap-server"
            )
        notes += [f"topic {each.name} was made, with an id of its own" for each in missing]
        facts = handover.topics(names)
    for each in plan.topics:
        if each.name not in facts:
            raise BackupError(f"topic {each.name} was made, and cannot be found now")
        if facts[each.name].partition_count != each.partition_count:
            raise BackupError(
                f"topic {each.name} has {facts[each.name].partition_count} partitions, and had "
                f"{each.partition_count} when it was backed up"
            )
    return facts


def _new_topic(topic: TopicBackup) -> NewTopic:
    if topic.configs is None:
        raise BackupError(
            f"there is no topic {topic.name}, and its configs were not known when it was backed "
            f"up: make it with {topic.partition_count} partitions and the configs it should have"
        )
    return NewTopic(
        name=topic.name,
        partition_count=topic.partition_count,
        replication_factor=1,
        configs=dict(topic.configs),
    )


def _make_here(handover: Handover, missing: Sequence[NewTopic]) -> None:
    """The rows are enough: opening the directory makes the logs of topics that lack them."""
    config = owner_config(handover.log_dir, {})
    with owned(config, is_remembered=True) as opened:
        for each in missing:
            opened.store.create_topic(each)
    with owned(config, is_remembered=True):
        pass
