"""Commits that are brought about, and whose ``done`` a full disk keeps from being written.

The next start does again what their records say. So their logs and their staging stay their own, as
if they were under way: no cleaning begins there, nothing is cut off, and no other commit is made.
"""

from typing import TYPE_CHECKING

from stratalog.errors import DiskError
from stratalog.storage.commits.journal import CommitJournal, PendingCommit
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.directory import LogDirectory
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    from stratalog.storage.commits.committing import LogCommits


class UnfinishedCommit:
    """Of this life, or one that an earlier life has left and the start has rolled forward."""

    is_decided = True

    def __init__(
        self,
        commits: "LogCommits",
        directory: LogDirectory,
        journal: CommitJournal,
        record: PendingCommit,
    ) -> None:
        self.is_done = False
        self._commits = commits
        self._directory = directory
        self._journal = journal
        self._record = record

    @property
    def manifest_id(self) -> str:
        return self._record.manifest_id

    @property
    def app(self) -> AppVersion | None:
        return self._record.app

    @property
    def staging_id(self) -> str:
        return self._record.staging_id

    @property
    def keys(self) -> list[TopicPartition]:
        return list(self._record.committed.offsets)

    def close(self) -> None:
        """Tell the journal once more that nothing is left to be done. A disk that fails in another
        way than being full is not believed any more, as in ``Commit.complete``."""
        try:
            with self._commits.gate.passed():
                self._directory.state.syncs.refuse_any()
                self.is_done = self._commits.finish_record(
                    self._journal, self._record, self._directory.path
                )
        except DiskError as error:
            self._directory.fail(str(error))
            for key in self.keys:
                log = self._directory.logs.get(key)
                if log is not None:
                    log.fail(error)
