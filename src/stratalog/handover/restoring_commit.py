"""Restoring a backup into topics that are there, and empty: as a commit, in a broker that runs, or
in a directory that has had one.

A topic that is not there yet is made first, with the configs and partitions that it had; by the
broker if one runs. Its id is a new one. What can be refused at little cost is refused before that,
and a restore that fails takes the topics that it has made away again, while they are empty.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from stratalog.clock import Clock, SystemClock
from stratalog.directories.owners import find_owner
from stratalog.handover.errors import CommitUnknownError, HandoverError
from stratalog.handover.facts import TopicFacts
from stratalog.handover.handover import Handover, open_handover
from stratalog.handover.owning import owned, owner_config
from stratalog.handover.restoring import RestoreResult, forgotten_notes, retention_notes
from stratalog.metadata.topics import NewTopic
from stratalog.storage.backup.copying import Progress
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import TopicBackup
from stratalog.storage.backup.restore_plan import RestoredPartition, RestorePlan
from stratalog.storage.backup.staging import BackupStaging, refuse_damaged
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.commits.errors import CommitBusyError, CommitError
from stratalog.storage.commits.manifest import CommitKind, Manifest
from stratalog.storage.commits.staged_log import bytes_in_log
from stratalog.storage.commits.staging import open_staging, release_staging, renew_staging
from stratalog.storage.commits.work import log_sizes
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.topic_names import KAFKAS_OWN_TOPICS

SECONDS = 600.0

# Makes topics in the broker that runs, or deletes them; its address is known to whoever calls.
MakeTopics = Callable[[Sequence[NewTopic]], None]
DeleteTopics = Callable[[Sequence[str]], None]


def restore_topics(
    store: BackupStore,
    plan: RestorePlan,
    log_dir: str,
    *,
    make_topics: MakeTopics | None = None,
    delete_topics: DeleteTopics | None = None,
    files: FileSystem | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda _bytes: None,
) -> RestoreResult:
    """Restore ``plan`` into the topics of ``log_dir``, all of it or nothing."""
    files, clock = files or OsFileSystem(), clock or SystemClock()
    handover = open_handover(log_dir, files=files)
    _refuse_internal(handover.log_dir, plan)
    _check_store(store, plan)
    _check_room(handover.log_dir, files, plan)
    topics = _Topics(handover, files, plan, make_topics, delete_topics)
    staging_id, is_handed_over = uuid.uuid4().hex, False
    try:
        facts = topics.make_missing()
        if any(each.end_offset for each in plan.partitions):
            staging = _Staging(files, handover.log_dir, staging_id, plan, clock)
            manifest = staging.stage(store, facts, progress)
            is_handed_over = True
            handover.commit(manifest)
    except BaseException as error:
        # Whoever is interrupted while he waits has not been told that nothing was committed: what
        # he has staged may be what a record in the journal goes by. Its lease will end.
        if not is_handed_over or _is_refusal(error):
            release_staging(files, handover.log_dir, staging_id)
            topics.remove_made()
        raise
    configs = {name: each.config for name, each in facts.items()}
    notes = [*plan.notes, *topics.notes, *_left_notes(plan), *forgotten_notes(plan)]
    notes += retention_notes(plan, configs, clock.now_ms())
    return RestoreResult(plan=plan, log_dir=log_dir, notes=tuple(notes))


def _left_notes(plan: RestorePlan) -> list[str]:
    """What of the backup only a directory that is made from it takes over."""
    told = plan.manifest.broker_configs or {}
    names = sorted({name for configs in told.values() for name in configs})
    if not names:
        return []
    return [
        "the dynamic configs of brokers in the backup are not taken over by one that is there: "
        f"{', '.join(names)}; set what is wanted with 'stratalog config alter'"
    ]


def _is_refusal(error: BaseException) -> bool:
    """Whether it says that nothing was committed, and that nothing is being."""
    is_open = isinstance(error, CommitUnknownError | CommitBusyError)
    return isinstance(error, CommitError | HandoverError) and not is_open


class _Staging:
    """Stages what is restored, under a lease that is renewed as long as that takes."""

    def __init__(
        self, files: FileSystem, log_dir: str, staging_id: str, plan: RestorePlan, clock: Clock
    ) -> None:
        self._files = files
        self._log_dir = log_dir
        self._id = staging_id
        self._plan = plan
        self._clock = clock
        self._holder = f"restore of {plan.manifest.backup_id}"
        self._due = time.monotonic()

    def stage(
        self, store: BackupStore, facts: Mapping[str, TopicFacts], progress: Progress
    ) -> Manifest:
        open_staging(
            self._files,
            self._log_dir,
            holder=self._holder,
            seconds=SECONDS,
            clock=self._clock,
            staging_id=self._id,
        )
        self._due = time.monotonic() + SECONDS / 3
        staging = BackupStaging(self._files, store, self._id, renew=self._renew, progress=progress)
        partitions = [each for each in self._plan.partitions if each.end_offset > 0]
        return Manifest(
            manifest_id=f"restore-{uuid.uuid4().hex}",
            kind=CommitKind.RESTORE,
            staging_id=self._id,
            partitions=tuple(staging.stage(each, *_place(facts, each)) for each in partitions),
            holder=self._holder,
        )

    def _renew(self) -> None:
        if time.monotonic() > self._due:
            renew_staging(self._files, self._log_dir, self._id, SECONDS, self._clock)
            self._due = time.monotonic() + SECONDS / 3


# --- what is refused before anything is written -------------------------------------------------


def _refuse_internal(log_dir: str, plan: RestorePlan) -> None:
    ownership, _ = find_owner(log_dir)
    internal = sorted({each.name for each in plan.topics} & KAFKAS_OWN_TOPICS)
    if internal and ownership.kind != "none":
        raise BackupError(
            f"{internal[0]} is kept in memory by the broker that runs: stop it first, or leave the "
            "topic out with --topic"
        )


def _check_store(store: BackupStore, plan: RestorePlan) -> None:
    for partition in plan.partitions:
        for segment in partition.segments:
            refuse_damaged(segment.stored)
            if not store.has(segment.stored.log):
                store.open(segment.stored.log).close()  # which says what is wrong with it


def _check_room(log_dir: str, files: FileSystem, plan: RestorePlan) -> None:
    """A full disk would be felt by whoever appends there."""
    needed_bytes = bytes_in_log(plan.size_bytes)
    reserve_bytes = owner_config(log_dir, {}).broker.log_dir_reserve_bytes
    free_bytes = files.free_bytes(log_dir)
    if needed_bytes and free_bytes < needed_bytes + reserve_bytes:
        raise BackupError(
            f"{needed_bytes} bytes are to be restored into {log_dir}, where {free_bytes} are free "
            f"and log.dir.reserve.bytes={reserve_bytes} stay free: make room, or restore fewer "
            "topics with --topic"
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


# --- topics that are missing ------------------------------------------------------------------


class _Topics:
    """The topics of ``plan``; those that are not there are made."""

    def __init__(
        self,
        handover: Handover,
        files: FileSystem,
        plan: RestorePlan,
        make_topics: MakeTopics | None,
        delete_topics: DeleteTopics | None,
    ) -> None:
        self._handover = handover
        self._files = files
        self._plan = plan
        self._make_topics = make_topics
        self._delete_topics = delete_topics
        self._config = owner_config(handover.log_dir, {})
        # Including one that is just being made.
        self._made: list[str] = []

    @property
    def notes(self) -> list[str]:
        return [f"topic {name} was made, with an id of its own" for name in self._made]

    def _look(self) -> dict[str, TopicFacts]:
        """Those that are there; refused if they are not what they were."""
        facts = self._handover.topics([each.name for each in self._plan.topics])
        for each in self._plan.topics:
            found = facts.get(each.name)
            if found is not None and found.partition_count != each.partition_count:
                raise BackupError(
                    f"topic {each.name} has {found.partition_count} partitions, and had "
                    f"{each.partition_count} when it was backed up"
                )
        for partition in self._plan.partitions:
            if partition.topic_partition.topic not in facts:
                continue
            if partition.end_offset > 0:
                _place(facts, partition)
            else:
                self._refuse_filled(facts, partition.topic_partition)
        return facts

    def _refuse_filled(self, facts: Mapping[str, TopicFacts], key: TopicPartition) -> None:
        """A log that was empty has no part in the commit, which refuses the others."""
        directory = facts[key.topic].partitions.get(key.partition)
        if directory is not None and any(log_sizes(self._files, directory).values()):
            raise BackupError(
                f"{key} holds records, and was empty when it was backed up: a backup is restored "
                "into topics that are empty"
            )

    def make_missing(self) -> dict[str, TopicFacts]:
        facts = self._look()
        missing = [_new_topic(each) for each in self._plan.topics if each.name not in facts]
        if not missing:
            return facts
        ownership, _ = find_owner(self._handover.log_dir)
        if ownership.kind == "none":
            self._make_here(missing)
        elif self._make_topics is not None:
            make_topics = self._make_topics
            for each in missing:
                self._make(each, lambda wanted: make_topics([wanted]))
        else:
            raise BackupError(
                f"there is no topic {missing[0].name} in {self._handover.log_dir}: make it first, "
                "or name the broker with --bootstrap-server"
            )
        facts = self._look()
        for each in missing:
            if each.name not in facts:
                raise BackupError(f"topic {each.name} was made, and cannot be found now")
        return facts

    def _make(self, wanted: NewTopic, make: Callable[[NewTopic], object]) -> None:
        self._made.append(wanted.name)
        try:
            make(wanted)
        except Exception:
            self._made.remove(wanted.name)  # it was refused: one of that name is somebody else's
            raise

    def _make_here(self, missing: Sequence[NewTopic]) -> None:
        """The rows are enough: opening the directory makes the logs of topics that lack them."""
        with owned(self._config, is_remembered=True) as opened:
            for each in missing:
                self._make(each, opened.store.create_topic)
        with owned(self._config, is_remembered=True):
            pass

    def remove_made(self) -> None:
        """Take those that were made away again, unless somebody has put records into them."""
        with suppress(Exception):  # what has made the restore fail is what is to be told
            found = self._handover.topics(self._made)
            empty = [name for name in found if self._is_empty(found[name])]
            ownership, _ = find_owner(self._handover.log_dir)
            if empty and ownership.kind == "none":
                self._remove_here(empty)
            elif empty and self._delete_topics is not None:
                self._delete_topics(empty)

    def _is_empty(self, topic: TopicFacts) -> bool:
        return not any(
            size_bytes
            for directory in topic.partitions.values()
            for size_bytes in log_sizes(self._files, directory).values()
        )

    def _remove_here(self, names: Sequence[str]) -> None:
        """As for making them: opening the directory removes the logs."""
        with owned(self._config, is_remembered=True) as opened:
            topics = opened.store.image.topics
            opened.store.begin_delete(*(topics[name].topic_id for name in names))
        with owned(self._config, is_remembered=True):
            pass


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
