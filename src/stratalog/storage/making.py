"""Making new logs and taking deleted ones out of the way: the part of it that waits for a disk.

The owner decides (``LogManager.plan_create``, ``detach``), any one thread does what is here, and
the owner notes the result (``take_in``, ``complete_deletion``). A log that is being made is seen by
nobody else. One sync of a log directory serves all that was made or renamed in it, and one of the
whole file system all that was made, if that is many.
"""

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stratalog.errors import DiskError, LogDirectoryError, TopicNameError
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem, remove_tree
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    TopicPartition,
    parse_replica_directory,
    replica_directory,
    suffixed_directory,
)
from stratalog.storage.loading import LogLoader
from stratalog.storage.log import Log

# Something to be written to a directory, and what writes it.
DirectoryWrite = tuple[LogDirectory, Callable[[], None]]


@dataclass(slots=True, eq=False)
class NewLog:
    """A log to be made in the first of ``candidates`` that can hold it. ``leader_epoch``, if
    there is one, is that of the leader it begins with. ``failures`` say why it could not."""

    topic_partition: TopicPartition
    topic_id: uuid.UUID | None = None
    leader_epoch: int | None = None
    candidates: Sequence[LogDirectory] = ()
    directory: LogDirectory | None = None
    log: Log | None = None
    failures: list[str] = field(default_factory=list)

    def give_up(self, files: FileSystem, error: DiskError) -> None:
        """Take back what was made; what follows its directory among the candidates is left."""
        assert self.log is not None
        assert self.directory is not None
        unmake(files, self.directory, self.log.directory)
        self.failures.append(str(error))
        self.candidates = self.candidates[self.candidates.index(self.directory) + 1 :]
        self.directory = self.log = None


@dataclass(frozen=True, slots=True)
class DetachedLog:
    """A log that is held no more; its directory ``path`` is to be renamed to ``target``."""

    log: Log
    directory: LogDirectory
    path: str
    target: str


def refuse_collisions(held: set[str], wanted: Sequence[NewLog]) -> None:
    """Metrics are named after topics with ``.`` as ``_``: two topics must not share a name."""
    spelt = {name.replace(".", "_"): name for name in held}
    for topic in {new.topic_partition.topic for new in wanted} - held:
        other = spelt.get(topic.replace(".", "_"))
        if other is not None:
            raise TopicNameError(
                topic, f"it collides with {other!r}: '.' and '_' count as the same"
            )


def place(directories: Sequence[LogDirectory], wanted: Sequence[NewLog], path: str | None) -> None:
    """Say where each log goes first, and where next: to ``path``, or to where the fewest are."""
    online = [each for each in directories if each.is_online and path in (None, each.path)]
    if path is not None and not online:
        raise LogDirectoryError(f"{path} is not a log directory that is online here")
    counts = {each: len(each.logs) for each in online}
    offline = [_offline(each) for each in directories if path is None and not each.is_online]
    for new in wanted:
        new.candidates = sorted(online, key=counts.__getitem__)
        new.failures += offline
        if online:
            counts[new.candidates[0]] += 1


def _offline(directory: LogDirectory) -> str:
    return f"{directory.path} is offline: {directory.state.reason}"


def make_logs(files: FileSystem, loader: LogLoader, wanted: Sequence[NewLog]) -> None:
    """Make each of ``wanted``, durably; those that no directory could hold have no ``log``."""
    are_many = len(wanted) >= SYNC_FILE_SYSTEM_FROM
    left = list(wanted)
    while left:
        for new in left:
            for directory in new.candidates:
                if _make(files, loader, new, directory, is_synced=not are_many):
                    break
        made = [new for new in left if new.log is not None]
        _sync(made, files.sync_file_system if are_many else files.sync_directory, files)
        left = [new for new in made if new.log is None]


def _make(
    files: FileSystem,
    loader: LogLoader,
    new: NewLog,
    directory: LogDirectory,
    *,
    is_synced: bool,
) -> bool:
    if not directory.is_online:
        new.failures.append(_offline(directory))
        return False
    path = f"{directory.path}/{replica_directory(new.topic_partition)}"
    try:
        files.make_directory(path)
    except DiskError as error:
        new.failures.append(str(error))
        return False
    try:
        log = loader.create(directory, path, new.topic_partition.topic)
        if new.topic_id is not None:
            log.assign_topic_id(new.topic_id, is_synced=is_synced)
        if new.leader_epoch is not None:
            log.assign_leader_epoch(new.leader_epoch, is_synced=is_synced)
        if is_synced:
            files.sync_directory(path)
    except DiskError as error:
        new.failures.append(str(error))
        unmake(files, directory, path)
        return False
    new.directory, new.log = directory, log
    return True


def _sync(made: Sequence[NewLog], sync: Callable[[str], None], files: FileSystem) -> None:
    for directory in {new.directory for new in made if new.directory is not None}:
        try:
            sync(directory.path)
        except DiskError as error:
            for new in made:
                if new.directory is directory:
                    new.give_up(files, error)


def unmake(files: FileSystem, directory: LogDirectory, path: str) -> None:
    """Half a log would be found at the next start beside the one made elsewhere. Under another
    name it is not, and taking that needs no descriptors."""
    key = parse_replica_directory(os.path.basename(path)).topic_partition
    target = f"{directory.path}/{suffixed_directory(key, DELETE_DIRECTORY)}"
    try:
        files.rename(path, target)
        path = target
        remove_tree(files, path)
    except DiskError as error:
        if not error.is_passing:
            directory.fail(str(error))
        directory.half_made.append(path)


def rename_deleted(
    files: FileSystem, detached: Sequence[DetachedLog]
) -> dict[LogDirectory, DiskError]:
    """Rename to ``-delete`` what was detached, durably; the directories that could not."""
    failed: dict[LogDirectory, DiskError] = {}
    for each in detached:
        if each.directory not in failed:
            try:
                files.rename(each.path, each.target)
            except DiskError as error:
                failed[each.directory] = error
    for directory in {each.directory for each in detached} - set(failed):
        try:
            files.sync_directory(directory.path)
        except DiskError as error:
            failed[directory] = error
    return failed


def write_all(writes: Sequence[DirectoryWrite]) -> list[tuple[LogDirectory, DiskError]]:
    """Write what was planned; those that could not be written."""
    failed = []
    for directory, write in writes:
        try:
            write()
        except DiskError as error:
            failed.append((directory, error))
    return failed
