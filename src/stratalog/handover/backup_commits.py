"""Commits in a log directory that is backed up: those that are not ended, and what is known of
applications, each of whose versions is committed once.
"""

from collections.abc import Collection, Mapping, Sequence

from stratalog.errors import CorruptFileError, LogDirectoryError
from stratalog.storage.backup.manifest import StoredAppVersion, TopicBackup
from stratalog.storage.commits.journal import CommitJournal, Committed
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition


def refuse_open_commits(files: FileSystem, log_dir: str, topics: Collection[str]) -> None:
    """Refuse a directory whose owner was killed between a commit's decision and its end, if it is
    one into ``topics``, or any if there are none: some logs have their part of it, others not."""
    journal = CommitJournal(files, log_dir)
    journal.read()
    for pending in journal.pending.values():
        keys = sorted(pending.committed.offsets)
        if not topics or any(each.topic in topics for each in keys):
            names = ", ".join(map(str, keys[:3])) + (", …" if len(keys) > 3 else "")
            raise LogDirectoryError(
                f"{log_dir} holds commit {pending.manifest_id} into {names}, which was interrupted "
                "between its decision and its end, and a part of it would be backed up; let the "
                "owner open the directory once, which ends it"
            )


def last_versions(files: FileSystem, log_dir: str) -> dict[str, Committed]:
    """What applications have committed last; nothing if the journal of an owner cannot be read."""
    journal = CommitJournal(files, log_dir)
    try:
        journal.read()
    except CorruptFileError:
        return {}
    return {each.app.name: each for each in journal.last_of_apps if each.app is not None}


def stored_versions(
    before: Mapping[str, Committed], after: Mapping[str, Committed], topics: Sequence[TopicBackup]
) -> tuple[StoredAppVersion, ...]:
    """``before`` the logs were looked at, and ``after`` they were copied to ``topics``, which are
    all that lay there."""
    logs = {
        TopicPartition(topic.name, each.partition): each
        for topic in topics
        for each in topic.partitions
    }
    # Earlier versions may have written elsewhere than the last.
    has_all = bool(topics) and all(each.end_offset >= each.log_end_offset for each in logs.values())

    def has(made: Committed) -> bool:
        # A log that is not there was deleted since, and its topic with it.
        return has_all and all(
            end_offset <= logs[key].end_offset if key in logs else key.topic not in names
            for key, (_, end_offset) in made.offsets.items()
        )

    names = {topic.name for topic in topics}
    found = []
    for name, made in sorted(after.items()):
        known = before.get(name)
        assert made.app is not None
        found.append(
            StoredAppVersion(
                name=name,
                version=made.app.version,
                commit_id=made.manifest_id,
                at_ms=made.at_ms,
                # Of one that was committed meanwhile, some logs were copied before it.
                is_whole=known is not None and known.app == made.app and has(made),
                offsets=tuple((*key, *made.offsets[key]) for key in sorted(made.offsets)),
            )
        )
    return tuple(found)
