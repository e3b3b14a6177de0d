"""Rolling forward: what the journal says was committed is brought about, before logs are opened.

Each mode of a commit has a function that puts its files where they belong. It is called with the
journal's record and nothing else to go by, once for each start that finds the record without
``done`` behind it, and changes nothing where all is as it should be.

A log that is not there was deleted, and takes what was committed along; unless it lies in another
directory of the same owner, because a person has moved it there. It would be opened without those
records, and others get their offsets: so nothing is opened until it is back.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stratalog.errors import (
    CorruptFileError,
    DiskError,
    LogDirectoryError,
    OutOfResourcesError,
)
from stratalog.storage.checkpoint import format_id, read_topic_id
from stratalog.storage.commits import adopted, appended, replacing, restoring
from stratalog.storage.commits.journal import CommitJournal, PendingCommit
from stratalog.storage.commits.staging import release_staging
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import (
    PARTITION_METADATA,
    TopicPartition,
    replica_directory,
    staging_directory,
)

# Files, the partition's directory, its staging directory, the record of the work.
RollForward = Callable[[FileSystem, str, str, Mapping[str, Any]], None]

ROLL_FORWARD: dict[str, RollForward] = {
    adopted.MODE: adopted.place_adopted,
    appended.MODE: appended.place_appended,
    replacing.MODE: replacing.roll_replacement_forward,
    restoring.MODE: restoring.roll_restore_forward,
}


def roll_forward(
    files: FileSystem,
    log_dir: str,
    journal: CommitJournal,
    *,
    other_log_dirs: Sequence[str],
    forget_before_ms: int,
) -> set[TopicPartition]:
    """Finish every commit that is pending; returns the logs that have to be read again. Raises
    ``LogDirectoryError`` if one of them lies in another of the owner's directories now."""
    changed: set[TopicPartition] = set()
    for commit in list(journal.pending.values()):
        for work in commit.work:
            key = TopicPartition(work["topic"], work["partition"])
            if _place(files, log_dir, journal, commit, key, work):
                changed.add(key)
            else:
                _refuse_moved(files, log_dir, other_log_dirs, commit, key, work)
        try:
            journal.done(commit.manifest_id, forget_before_ms=forget_before_ms)
        except OutOfResourcesError:
            # Another time: the record stays, and says nothing wrong.
            if journal.failure is not None:
                raise
            continue
        with suppress(DiskError):  # what is left is swept
            release_staging(files, log_dir, commit.staging_id)
    return changed


def _place(
    files: FileSystem,
    log_dir: str,
    journal: CommitJournal,
    commit: PendingCommit,
    key: TopicPartition,
    work: Mapping[str, Any],
) -> bool:
    place = ROLL_FORWARD.get(work["mode"])
    if place is None:
        raise CorruptFileError(
            journal.path,
            f"commit {commit.manifest_id} of {key} is of mode {work['mode']!r}, which this version "
            "does not know; open the directory with the version that wrote it",
        )
    directory = f"{log_dir}/{replica_directory(key)}"
    if not _is_here(files, directory, work):
        return False  # deleted since, and perhaps made anew; or moved
    try:
        place(files, directory, staging_directory(directory, commit.staging_id), work)
    except KeyError as error:
        raise CorruptFileError(
            journal.path, f"commit {commit.manifest_id} of {key} lacks {error}"
        ) from error
    return True


def _refuse_moved(
    files: FileSystem,
    log_dir: str,
    other_log_dirs: Sequence[str],
    commit: PendingCommit,
    key: TopicPartition,
    work: Mapping[str, Any],
) -> None:
    name = replica_directory(key)
    for other in other_log_dirs:
        if _is_here(files, f"{other}/{name}", work):
            raise LogDirectoryError(
                f"commit {commit.manifest_id} of {key} was made in {log_dir} and is not brought "
                f"about yet, and the partition's directory was moved to {other}/{name} since; "
                f"without what was committed it cannot be opened. Move it back to "
                f"{log_dir}/{name}, start, stop in order, and then move it again"
            )


def _is_here(files: FileSystem, directory: str, work: Mapping[str, Any]) -> bool:
    if not files.exists(directory):
        return False
    wanted = work.get("topic_id")
    if not wanted:
        return True
    found = read_topic_id(files, f"{directory}/{PARTITION_METADATA}")
    return found is not None and format_id(found) == wanted
