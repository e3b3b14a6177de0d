"""Commits in a log directory that is to be backed up, where nobody owns it."""

from collections.abc import Collection

from stratalog.errors import LogDirectoryError
from stratalog.storage.commits.journal import CommitJournal
from stratalog.storage.files import FileSystem


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
