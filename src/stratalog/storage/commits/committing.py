"""Commits: staged files become part of the logs of one log directory, all of them, once.

``LogCommits.plan`` says whether a manifest can be committed, and gives a ``Commit``, whose steps
are described in ``work``. The record in the journal is the commit. If anything fails before it,
``abandon`` leaves everything as it was; if anything fails behind it, the logs take no more appends,
and the next start brings about what the record says. While a commit is under way its logs and its
staging are its own: another one is refused, and may be tried again.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from stratalog.config import BrokerConfig
from stratalog.errors import DiskError, OutOfResourcesError, StratalogError
from stratalog.storage.checkpoint import format_id
from stratalog.storage.cleaning.cleaner import LogCleaner
from stratalog.storage.commits.appending_work import AppendWork
from stratalog.storage.commits.errors import CommitBusyError, CommitRefusedError
from stratalog.storage.commits.journal import CommitJournal, Committed, PendingCommit
from stratalog.storage.commits.manifest import (
    AppVersion,
    CommitKind,
    Manifest,
    PartitionManifest,
)
from stratalog.storage.commits.one_commit import COMMITTED, Commit, CommitResult
from stratalog.storage.commits.replacing import make_replacement
from stratalog.storage.commits.restoring import RestoreWork
from stratalog.storage.commits.rolling_forward import roll_forward
from stratalog.storage.commits.staging import release_staging, sweep_staging
from stratalog.storage.commits.unfinished import UnfinishedCommit
from stratalog.storage.commits.work import PartitionWork, topic_id_of
from stratalog.storage.directory import LogDirectory
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.topic_names import KAFKAS_OWN_TOPICS

__all__ = [
    "ALREADY_COMMITTED",
    "COMMITTED",
    "MAKERS",
    "SWEEP_MS",
    "Commit",
    "CommitResult",
    "LogCommits",
]

if TYPE_CHECKING:
    from stratalog.storage.manager import LogManager

SWEEP_MS = 30_000
ALREADY_COMMITTED = "already committed"

MakeWork = Callable[["LogCommits", LogDirectory, Log, Manifest, PartitionManifest], PartitionWork]

MAKERS: dict[CommitKind, MakeWork] = {
    CommitKind.APPEND: AppendWork,
    CommitKind.REPLACE: make_replacement,
    CommitKind.RESTORE: RestoreWork,
}


class StagingInUse:
    """The staging that commits need, and the staging that is being swept: each is out of bounds
    for the other. Any thread may ask."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._used: set[str] = set()
        self._swept: set[str] = set()

    def take(self, staging_id: str) -> None:
        with self._guard:
            if staging_id in self._used:
                raise CommitBusyError(f"staging {staging_id} is being committed; try again")
            if staging_id in self._swept:
                raise CommitRefusedError(
                    f"staging {staging_id} was not held any longer, and is being swept away"
                )
            self._used.add(staging_id)

    def keep(self, staging_id: str) -> None:
        """Of a commit that is made, whoever has taken it."""
        with self._guard:
            self._used.add(staging_id)

    def release(self, staging_id: str) -> None:
        with self._guard:
            self._used.discard(staging_id)

    def is_used(self, staging_id: str) -> bool:
        with self._guard:
            return staging_id in self._used

    def __contains__(self, staging_id: object) -> bool:
        """Asked by a sweep, which goes on to remove it if the answer is no."""
        with self._guard:
            if staging_id in self._used:
                return True
            self._swept.add(str(staging_id))
            return False

    def end_sweep(self) -> None:
        with self._guard:
            self._swept.clear()


class Gate:
    """Open while the directories are this process's own: who lets go of them waits for whatever is
    being written, and from then on nothing is. Any thread may pass."""

    def __init__(self) -> None:
        self.is_closed = False
        self._changed = threading.Condition()
        self._inside = 0

    @contextmanager
    def passed(self) -> Iterator[None]:
        with self._changed:
            if self.is_closed:
                raise CommitRefusedError("the log directories are being closed; commit again later")
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.is_closed = True
            self._changed.wait_for(lambda: not self._inside)


class LogCommits:
    """The commits of a log manager. On the owner's thread, unless it is said otherwise."""

    def __init__(self, manager: "LogManager", janitor: Janitor) -> None:
        self.manager = manager
        # The epoch that committed batches get; who knows of leaders sets it.
        self.leader_epoch: Callable[[Log], int] = lambda log: max(log.epochs.latest_epoch, 0)
        # Without replicas, what is durable is what may be read; who knows of some does it himself.
        self.moves_high_watermark = True
        # A broker keeps in memory what its own topics say: it does not look into them again.
        self.keeps_internal = False
        # How many threads may work at what is much, and what they do now and then, so that who has
        # other things to do gets to them.
        self.work_threads = 1
        self.pause: Callable[[], bool] = lambda: False
        self._janitor = janitor
        self._journals: dict[str, CommitJournal] = {}
        self._under_way: dict[TopicPartition, Commit | UnfinishedCommit] = {}
        self._unfinished: list[UnfinishedCommit] = []
        self._staging = StagingInUse()
        self.gate = Gate()
        self._is_stopping = False

    @property
    def config(self) -> BrokerConfig:
        return self.manager.config

    @property
    def cleaner(self) -> LogCleaner | None:
        return self.manager.cleaner

    def _forget_before_ms(self) -> int:
        return self.manager.clock.now_ms() - self.config.log_commit_id_retention_ms

    # --- starting and stopping ----------------------------------------------------------------

    def open(self, directory: LogDirectory) -> set[TopicPartition]:
        """Before the logs of ``directory`` are opened: bring about what its journal says. Returns
        the logs that have to be read again."""
        files = self.manager.files
        journal = CommitJournal(files, directory.path)
        journal.load()
        self._journals[directory.path] = journal
        changed = roll_forward(
            files,
            directory.path,
            journal,
            other_log_dirs=[
                each.path for each in self.manager.directories if each is not directory
            ],
            forget_before_ms=self._forget_before_ms(),
        )
        for record in journal.pending.values():
            self.leave_unfinished(directory, journal, record)
        return changed

    def close(self) -> None:
        """Before the directories are let go of: nothing more is written. What is under way is
        rolled forward by the next start, or was not committed."""
        self.gate.close()

    def stop_checks(self) -> None:
        """Any thread: what is being checked is given up, and nothing more is checked. For who is
        about to stop, and does not want to wait for it."""
        self._is_stopping = True

    def go_on(self) -> bool:
        """Asked now and then by what takes long; whether somebody else wants to use the machine."""
        if self._is_stopping or self.gate.is_closed:
            raise CommitRefusedError("the log directories are being closed; commit again later")
        return self.pause()

    # --- committing ---------------------------------------------------------------------------

    def status(
        self, manifest_id: str, app: AppVersion | None = None, *, log_dir: str | None = None
    ) -> CommitResult | None:
        """The commit of that id, or of that version or a later one in ``log_dir``, else in any of
        the directories; None if there is none."""
        place = "" if log_dir is None else os.path.realpath(log_dir)
        here = [path for path in self._journals if os.path.realpath(path) == place]
        for path, journal in self._journals.items():
            found = journal.find(manifest_id, app if path in here or not here else None)
            if found is not None:
                return _already(manifest_id, found)
        return None

    def status_of(self, manifest: Manifest) -> CommitResult | None:
        """An application may write one version to a topic in each of several directories."""
        keys = (part.topic_partition for part in manifest)
        known = next((key for key in keys if key in self.manager), None)
        log_dir = None if known is None else os.path.dirname(self.manager.get(known).directory)
        return self.status(manifest.manifest_id, manifest.app, log_dir=log_dir)

    def plan(self, manifest: Manifest) -> "Commit | CommitResult":
        """The commit to be made, or what was committed already; or ``CommitRefusedError``."""
        found = self.status_of(manifest)
        if found is not None:
            self._drop_staging(manifest)
            return found
        self._refuse_busy(manifest)
        make = MAKERS.get(manifest.kind)
        if make is None:
            raise CommitRefusedError(f"nobody here can commit a manifest of kind {manifest.kind}")
        logs = [(part, *self._find(manifest, part)) for part in manifest]
        directory = logs[0][1]
        for part, other, _ in logs:
            if other is not directory:
                raise CommitRefusedError(
                    f"{part.topic_partition} is in {other.path} and "
                    f"{manifest.partitions[0].topic_partition} in {directory.path}: a commit is "
                    "within one log directory; produce to the broker instead"
                )
        self._check_directory(directory, manifest)
        self._staging.take(manifest.staging_id)
        try:
            works = [make(self, directory, log, manifest, part) for part, _, log in logs]
        except BaseException:
            self._staging.release(manifest.staging_id)
            raise
        commit = Commit(self, directory, self._journals[directory.path], manifest, works)
        self._under_way.update((part.topic_partition, commit) for part in manifest)
        return commit

    def _drop_staging(self, manifest: Manifest) -> None:
        """What was staged again for a commit that is made is of no use to anybody; unless it is
        the very staging of that commit, which may not be finished."""
        if self._staging.is_used(manifest.staging_id):
            return
        partitions = [part.topic_partition for part in manifest]
        for directory in self.manager.directories:
            if directory.is_online:
                drop = partial(
                    release_staging,
                    self.manager.files,
                    directory.path,
                    manifest.staging_id,
                    partitions=partitions,
                )
                self._janitor.write(drop, _ignore)

    def _refuse_busy(self, manifest: Manifest) -> None:
        for commit in self._under_way.values():
            if commit.manifest_id == manifest.manifest_id:
                raise CommitBusyError(f"commit {manifest.manifest_id} is under way; try again")
            app = commit.app
            if app is not None and manifest.app is not None and app.name == manifest.app.name:
                # Whichever came second could be the lower version, and would never be made.
                raise CommitBusyError(
                    f"version {app.version} of {app.name} is being committed; try again"
                )
        for part in manifest:
            if part.topic_partition in self._under_way:
                other = self._under_way[part.topic_partition]
                raise CommitBusyError(
                    f"{part.topic_partition} is part of commit {other.manifest_id}, which is under "
                    "way; try again"
                )

    def _find(self, manifest: Manifest, part: PartitionManifest) -> tuple[LogDirectory, Log]:
        key = part.topic_partition
        if part.topic in KAFKAS_OWN_TOPICS and manifest.kind is not CommitKind.RESTORE:
            raise CommitRefusedError(f"{part.topic} is internal: only its coordinator changes it")
        if part.topic in KAFKAS_OWN_TOPICS and self.keeps_internal:
            raise CommitRefusedError(
                f"{part.topic} is kept in memory by the broker that runs: restore it while that is "
                "stopped"
            )
        for directory in self.manager.directories:
            log = directory.logs.get(key)
            if log is not None:
                self.check_usable(directory, log)
                found = topic_id_of(log)
                if part.topic_id and part.topic_id != found:
                    raise CommitRefusedError(
                        f"{key} has topic id {found or '(none)'}, and the files were staged for "
                        f"{part.topic_id}: the topic was deleted since, and made anew"
                    )
                return directory, log
            if key in directory.offline_logs:
                raise CommitRefusedError(
                    f"{key} could not be opened: {directory.offline_logs[key]}"
                )
        for directory in self.manager.directories:
            if not directory.is_online:
                # Its journal may know of this very commit.
                raise CommitBusyError(
                    f"{key} may be in {directory.path}, which is offline: "
                    f"{directory.state.reason}; try again when it is back"
                )
        raise CommitRefusedError(
            f"there is no {key} in "
            f"{', '.join(directory.path for directory in self.manager.directories)}"
        )

    def check_usable(self, directory: LogDirectory, log: Log) -> None:
        key = log.topic_partition
        if not directory.is_online:
            raise CommitRefusedError(f"{directory.path} is offline: {directory.state.reason}")
        if log.is_held:
            raise CommitRefusedError(
                f"the settings of {key.topic} are not known, so nobody can say what it takes; say "
                "by which it is kept with 'stratalog topic adopt'"
            )
        try:
            log.check_appendable()
        except StratalogError as error:
            raise CommitRefusedError(f"{key} takes no records: {error}") from error

    def _check_directory(self, directory: LogDirectory, manifest: Manifest) -> None:
        journal = self._journals.get(directory.path)
        is_closed = journal is None or self.gate.is_closed
        if journal is None or is_closed or journal.failure is not None:
            reason = "it is not open" if journal is None or is_closed else journal.failure
            raise CommitRefusedError(f"nothing can be committed in {directory.path}: {reason}")
        if manifest.directory_id:
            identity = directory.identity()
            found = "" if identity is None else format_id(identity.directory_id)
            if found != manifest.directory_id:
                raise CommitRefusedError(
                    f"{directory.path} has the id {found or '(none)'}, and the files were staged "
                    f"in {manifest.directory_id}"
                )

    def run(self, manifest: Manifest) -> CommitResult:
        """All steps at once, for an owner that may wait."""
        commit = self.plan(manifest)
        if isinstance(commit, CommitResult):
            return commit
        return commit.run()

    def is_under_way(self, topic_partition: TopicPartition) -> bool:
        """Whether a commit may still have to be brought about again as it was recorded."""
        return topic_partition in self._under_way

    def is_to_be_done(self, topic_partition: TopicPartition) -> bool:
        """Whether the journal has a commit that the next start would bring about again: segments
        that it has put records into must not be cleaned before it is done."""
        commit = self._under_way.get(topic_partition)
        return commit is not None and commit.is_decided

    def ended(self, commit: "Commit | UnfinishedCommit") -> None:
        for key in [key for key, each in self._under_way.items() if each is commit]:
            del self._under_way[key]
        self._staging.release(commit.staging_id)

    def leave_unfinished(
        self, directory: LogDirectory, journal: CommitJournal, record: PendingCommit
    ) -> None:
        """All is done but for telling the journal: for the next sweep."""
        unfinished = UnfinishedCommit(self, directory, journal, record)
        self._unfinished.append(unfinished)
        self._under_way.update(dict.fromkeys(unfinished.keys, unfinished))
        self._staging.keep(unfinished.staging_id)

    # --- periodic work ------------------------------------------------------------------------

    def sweep(self, now_ms: int) -> None:
        """Let the janitor remove what was staged and is not held any longer."""
        unfinished, self._unfinished = self._unfinished, []
        for commit in unfinished:
            commit.close()
            if commit.is_done:
                self.ended(commit)
            else:
                self._unfinished.append(commit)
        for directory in self.manager.directories:
            if directory.is_online and directory.path in self._journals:
                self._janitor.write(partial(self._sweep, directory.path, now_ms), _ignore)

    def _sweep(self, log_dir: str, now_ms: int) -> None:
        try:
            sweep_staging(self.manager.files, log_dir, now_ms=now_ms, in_use=self._staging)
        finally:
            self._staging.end_sweep()

    def finish_record(self, journal: CommitJournal, commit: PendingCommit, log_dir: str) -> bool:
        """Any thread: nothing of a commit is left to be done. Whether that could be written."""
        try:
            journal.done(commit.manifest_id, forget_before_ms=self._forget_before_ms())
        except OutOfResourcesError:
            # Another time: the record stays, and says nothing wrong.
            if journal.failure is not None:
                raise
            return False
        with suppress(DiskError):  # what is left is swept
            release_staging(self.manager.files, log_dir, commit.staging_id)
        return True


def _already(manifest_id: str, found: Committed) -> CommitResult:
    offsets: Mapping[TopicPartition, tuple[int, int]] = found.offsets
    return CommitResult(status=ALREADY_COMMITTED, manifest_id=manifest_id, partitions=offsets)


def _ignore(_error: DiskError) -> None:
    """What could not be removed now is found by the next sweep."""
