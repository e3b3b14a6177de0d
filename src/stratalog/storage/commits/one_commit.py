"""One commit, step by step: its works, its record in the journal, and what becomes of failures.

The steps are those of ``work``, for all logs together. After a step that raised, the next one is
``abandon``: before the record is written it takes everything back, behind it nothing more.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stratalog.errors import DiskError
from stratalog.storage.commits.appending_work import AppendWork
from stratalog.storage.commits.errors import CommitRefusedError
from stratalog.storage.commits.journal import CommitJournal, Offsets, PendingCommit
from stratalog.storage.commits.manifest import AppVersion, CommitKind, Manifest
from stratalog.storage.commits.restoring import RestoreWork
from stratalog.storage.commits.work import PartitionWork, WorkRecord, refuse_full
from stratalog.storage.directory import LogDirectory
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM, sync_all
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.sync_failures import is_failed_sync
from stratalog.storage.thread_pool import started_pool

if TYPE_CHECKING:
    from stratalog.storage.commits.committing import LogCommits

COMMITTED = "committed"
MUCH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """``partitions``: between which offsets the records are, as far as that is known."""

    status: str
    manifest_id: str
    partitions: Offsets = field(default_factory=dict)


class Commit:
    """One commit. After a step that raised, the next one is ``abandon``."""

    def __init__(
        self,
        commits: "LogCommits",
        directory: LogDirectory,
        journal: CommitJournal,
        manifest: Manifest,
        works: list[PartitionWork],
    ) -> None:
        self.manifest = manifest
        # The record was written, or may have been: from then on nothing goes back.
        self.is_decided = False
        self.is_done = False
        self._commits = commits
        self._directory = directory
        self._journal = journal
        self._works = works
        # Syncing many files one by one takes longer than one sync of the file system.
        self._is_synced_together = len(works) >= SYNC_FILE_SYSTEM_FROM
        self._appends = [work for work in works if isinstance(work, AppendWork)]
        for work in self._appends:
            work.is_synced_together = self._is_synced_together
        self._record: PendingCommit | None = None
        self._error: DiskError | None = None

    @property
    def manifest_id(self) -> str:
        return self.manifest.manifest_id

    @property
    def app(self) -> AppVersion | None:
        return self.manifest.app

    @property
    def staging_id(self) -> str:
        return self.manifest.staging_id

    @property
    def record(self) -> PendingCommit:
        assert self._record is not None, f"{self.manifest_id} was not settled"
        return self._record

    @property
    def logs(self) -> list[Log]:
        return [work.log for work in self._works]

    @property
    def leader_epochs(self) -> dict[TopicPartition, int]:
        """Behind ``check``: the latest epochs of what is restored, which has epochs of its own.
        Appends have to go on with later ones."""
        return {
            work.key: work.latest_epoch
            for work in self._works
            if isinstance(work, RestoreWork) and work.latest_epoch >= 0
        }

    # --- steps --------------------------------------------------------------------------------

    def run(self) -> CommitResult:
        """All of them, on one thread, for an owner that may wait."""
        try:
            self.check()
            self.stop()
            self.settle()
            self.apply()
            self.complete()
            return self.finish()
        except BaseException:
            self.abandon()
            raise

    def check(self) -> None:
        """Any thread; long."""
        with self._discarding(), self._noting():
            self._check_room(
                sum(work.copied_bytes for work in self._appends), "bytes are to be copied"
            )
            self._for_each_work(self._check_one)
            self._sync_together()
            self._check_room(
                sum(work.needed_bytes for work in self._works), "bytes are to be appended"
            )
        with self._writing(), self._discarding():
            self._journal.prepare()

    def _check_one(self, work: PartitionWork) -> None:
        self._commits.go_on()
        work.check()

    def _check_room(self, needed_bytes: int, what: str) -> None:
        """A disk that is full only once the commit is made would take the logs offline; and one
        that is full of copies takes no records of producers."""
        refuse_full(
            self._commits.manager.files,
            self._directory.path,
            needed_bytes,
            reserve_bytes=self._commits.config.log_dir_reserve_bytes,
            what=what,
        )

    def stop(self) -> None:
        """Owner's thread; from here on appends are paused."""
        for work in self._works:
            if self._directory.logs.get(work.key) is not work.log:
                raise CommitRefusedError(f"{work.key} was deleted while its files were checked")
            self._commits.check_usable(self._directory, work.log)
            work.stop()

    def settle(self) -> None:
        """Any thread; short. When it returns, the commit is made."""
        with self._writing():
            with self._discarding():
                records = self._settle_works()
            self._decide(records)
            for work in self._works:
                with self._unless_deleted(work):
                    work.place()

    def _settle_works(self) -> list[WorkRecord]:
        self._flush_together()
        records = [work.settle() for work in self._works]
        for work in self._works:
            if work.log.is_closed:
                raise CommitRefusedError(f"{work.key} was deleted just now")
        self._directory.state.syncs.refuse_any()
        return records

    def _decide(self, records: list[WorkRecord]) -> None:
        manifest = self.manifest
        self._record = PendingCommit(
            manifest_id=manifest.manifest_id,
            kind=manifest.kind,
            staging_id=manifest.staging_id,
            app=manifest.app,
            at_ms=self._commits.manager.clock.now_ms(),
            work=tuple(records),
        )
        try:
            self._journal.commit(self._record)
            self.is_decided = True
        except DiskError:
            self.is_decided = self._journal.failure is not None
            raise
        except BaseException:
            # Whoever is interrupted in there cannot say that it was not.
            self.is_decided = True
            raise

    def apply(self) -> None:
        """Owner's thread: the logs take in what was placed, and appends go on."""
        with self._noting():
            for work in self._works:
                if work.log.is_closed:
                    continue  # deleted since; or let go of, and then it is rolled forward
                work.apply()
                self._move_high_watermark(work.log)

    def complete(self) -> None:
        """Any thread: what was done is made durable, and the journal told so."""
        with self._writing():
            self._sync_together()
            self._for_each_work(self._complete_one)
            self._directory.state.syncs.refuse_any()
            self.is_done = self._commits.finish_record(
                self._journal, self.record, self._directory.path
            )

    def _complete_one(self, work: PartitionWork) -> None:
        with self._unless_deleted(work):
            work.complete()

    def finish(self) -> CommitResult:
        """Owner's thread."""
        for work in self._works:
            if not work.log.is_closed:
                work.finish()
                self._move_high_watermark(work.log)
        if self.is_done:
            self._commits.ended(self)
        else:
            self._commits.leave_unfinished(self._directory, self._journal, self.record)
        return CommitResult(
            status=COMMITTED,
            manifest_id=self.manifest_id,
            partitions=self.record.committed.offsets,
        )

    def abandon(self) -> None:
        """Owner's thread, after a step that raised. If the commit was not made, everything is as
        it was. If it was, the next start will bring it about, and until then the logs stay as
        they are."""
        error = self._error
        if self.is_decided and error is None:
            error = DiskError(
                "commit", self._directory.path, 0, "what was committed could not be put in place"
            )
        for work in self._works:
            if error is not None:
                work.log.fail(error)
            work.abandon()
        if not self.is_decided:
            # Else its staging is what the next start goes by.
            self._commits.ended(self)

    # --- what the steps share -----------------------------------------------------------------

    def _for_each_work(self, step: Callable[[PartitionWork], None]) -> None:
        """One after the other, or if there is much to append on a few threads: kernels and disks
        leave the interpreter to others. The first that fails keeps the rest from beginning."""
        threads = min(self._commits.work_threads, len(self._works))
        pool = _pool_of(threads) if threads > 1 and self._is_much else None
        if pool is None:
            for work in self._works:
                step(work)
            return
        with pool:
            steps = [pool.submit(step, work) for work in self._works]
            try:
                wait(steps, return_when=FIRST_EXCEPTION)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        errors = [each.exception() for each in steps if not each.cancelled()]
        failed = [error for error in errors if error is not None]
        if failed:
            # A disk that does not keep what it was given counts for more than anything else.
            raise min(failed, key=lambda error: not _is_failed_sync(error))

    @property
    def _is_much(self) -> bool:
        """So much that threads save more than they cost."""
        size_bytes = sum(part.size_bytes for part in self.manifest)
        return self.manifest.kind is CommitKind.APPEND and size_bytes >= MUCH_BYTES

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Nobody lets go of the directories meanwhile."""
        with self._commits.gate.passed(), self._noting():
            yield

    def _sync_together(self) -> None:
        """For works that leave their syncs to it: as ``flush_together`` does."""
        if self._is_synced_together:
            self._sync_all()

    def _sync_all(self) -> None:
        directory = self._directory
        sync_all(self._commits.manager.files, directory.path, directory.state.syncs)

    def _flush_together(self) -> None:
        """Appends are waiting: only if so many logs have something to flush."""
        due = [each for each in self._appends if each.is_flush_due]
        if len(due) >= SYNC_FILE_SYSTEM_FROM:
            self._sync_all()
            for work in due:
                work.is_flushed = True

    @contextmanager
    def _unless_deleted(self, work: PartitionWork) -> Iterator[None]:
        """A log that is deleted takes all with it, at any moment: that is no failure of a disk."""
        try:
            yield
        except DiskError:
            if not work.log.is_closed:
                raise

    @contextmanager
    def _discarding(self) -> Iterator[None]:
        """Before anything is decided: copies of what is refused take no room from anybody."""
        try:
            yield
        except BaseException:
            # Once the directories were let go of, the files may be somebody else's.
            with suppress(CommitRefusedError), self._commits.gate.passed():
                for work in self._appends:
                    work.discard_copies()
            raise

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except DiskError as error:
            if self.is_decided or is_failed_sync(error):
                self._error = self._error or error
            raise

    def _move_high_watermark(self, log: Log) -> None:
        if self._commits.moves_high_watermark:
            log.raise_high_watermark(log.log_end_offset)


def _pool_of(threads: int) -> ThreadPoolExecutor | None:
    """None where the system has no threads left: the work is then done without them."""
    try:
        return started_pool(threads)
    except RuntimeError:
        return None


def _is_failed_sync(error: BaseException) -> bool:
    return isinstance(error, DiskError) and is_failed_sync(error)
