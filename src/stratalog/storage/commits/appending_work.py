"""Commits of kind ``append``: staged batches are put at the end of a log.

Much becomes segments of its own (``adopted``), little is written into the active one
(``appended``); which of the two is known once the files have been looked at.
"""

from typing import TYPE_CHECKING

from stratalog.config import TopicConfig
from stratalog.storage.commits.adopted import AdoptedFiles, OffsetsAhead
from stratalog.storage.commits.appended import AppendedBatches
from stratalog.storage.commits.checking import CheckedFile, check_partition
from stratalog.storage.commits.errors import CommitBusyError
from stratalog.storage.commits.manifest import Manifest, PartitionManifest
from stratalog.storage.commits.merged_segments import discard_copies
from stratalog.storage.commits.merging import plan_files
from stratalog.storage.commits.staged_log import bytes_in_log
from stratalog.storage.commits.work import WorkRecord, refuse_full, topic_id_of
from stratalog.storage.directory import LogDirectory
from stratalog.storage.flushing import FlushTask
from stratalog.storage.layout import TopicPartition, staging_directory
from stratalog.storage.log import Log

if TYPE_CHECKING:
    from stratalog.storage.commits.committing import LogCommits


class AppendWork:
    """See ``work``."""

    def __init__(
        self,
        commits: "LogCommits",
        directory: LogDirectory,
        log: Log,
        manifest: Manifest,
        part: PartitionManifest,
    ) -> None:
        self.log = log
        # Whoever has many logs to commit to syncs the file system, once for all of them, after
        # ``check`` and before ``complete``: nothing is synced here then.
        self.is_synced_together = False
        self.is_flushed = False
        self._commits = commits
        self._log_dir = directory.path
        self._part = part
        self._staging_id = manifest.staging_id
        self._staging = staging_directory(log.directory, manifest.staging_id)
        self._config: TopicConfig = log.config
        self._ahead = OffsetsAhead(log, commits.leader_epoch(log), commits.go_on, commits.gate)
        self._first_offset = self._leader_epoch = -1
        self._flush: FlushTask | None = None
        self._checked: tuple[CheckedFile, ...] = ()
        self._way: AdoptedFiles | AppendedBatches | None = None

    @property
    def key(self) -> TopicPartition:
        return self.log.topic_partition

    @property
    def is_flush_due(self) -> bool:
        """Whether ``settle`` has to flush the log; not if ``is_flushed`` says that it was."""
        return self._flush is not None

    @property
    def needed_bytes(self) -> int:
        return self.way.needed_bytes

    @property
    def copied_bytes(self) -> int:
        """How much ``check`` writes at least, beside what was staged."""
        plan = plan_files(
            self._part.files,
            segment_bytes=self._config.segment_size_bytes,
            append_max_bytes=self._append_max_bytes,
        )
        is_changed = self._config.message_timestamp_type == "LogAppendTime"
        return bytes_in_log(plan.copied_bytes(is_changed=is_changed))

    @property
    def _append_max_bytes(self) -> int:
        return self._commits.config.log_commit_append_max_bytes

    @property
    def way(self) -> AdoptedFiles | AppendedBatches:
        assert self._way is not None, f"{self.key} was not checked"
        return self._way

    def check(self) -> None:
        checked = check_partition(
            self.log.context.files,
            self.log.directory,
            self._part,
            self._config,
            staging_id=self._staging_id,
            now_ms=self.log.context.clock.now_ms(),
            append_max_bytes=self._append_max_bytes,
            is_synced=not self.is_synced_together,
            progress=lambda _bytes: self._commits.go_on(),
            adopts=self._ahead.give,
            refuse_full=self._refuse_full,
        )
        self._checked = checked.files
        if checked.is_adopted:
            self._way = AdoptedFiles(self.log, checked.files, self._staging, self._ahead)
        else:
            self._way = AppendedBatches(self.log, checked.files[0], self._staging)
        if not self.is_synced_together:
            self._way.sync_staged(self._commits.go_on)

    def _refuse_full(self, copied_bytes: int) -> None:
        # What was staged tells little of how much it is in another codec: so this is asked while it
        # is written. Nor does it tell how long that takes.
        self._commits.go_on()
        refuse_full(
            self.log.context.files,
            self._log_dir,
            copied_bytes,
            reserve_bytes=self._commits.config.log_dir_reserve_bytes,
            what="more bytes are to be copied",
        )

    def discard_copies(self) -> None:
        """Any thread: the commit is not going to be made. What was staged stays."""
        discard_copies(self.log.context.files, self._checked)

    def stop(self) -> None:
        log = self.log
        if log.config is not self._config:
            raise CommitBusyError(
                f"the settings of {self.key} were changed while its files were checked; try again"
            )
        self.way.stop()
        log.pause_appends("a commit is about to put its records at the end")
        self._first_offset = log.log_end_offset
        self._leader_epoch = self._commits.leader_epoch(log)
        # Recovery must not end below where these records begin.
        self._flush = log.plan_flush()

    def settle(self) -> WorkRecord:
        if self._flush is not None and not self.is_flushed:
            self._flush.run()
        record = self.way.settle(self._first_offset, self._leader_epoch)
        return {
            "topic": self.key.topic,
            "partition": self.key.partition,
            "topic_id": topic_id_of(self.log),
            "first_offset": self._first_offset,
            "end_offset": self._first_offset + self.way.record_count,
            "leader_epoch": self._leader_epoch,
            **record,
        }

    def place(self) -> None:
        self.way.place()

    def apply(self) -> None:
        log = self.log
        if self._flush is not None:
            log.complete_flush(self._flush)
        log.resume_appends()
        log.epochs.assign(self._leader_epoch, self._first_offset)
        self.way.apply()

    def complete(self) -> None:
        if not self.is_synced_together:
            # Not ``go_on``: what was committed is brought to its end.
            self.way.sync_placed(self._commits.pause)
        self.way.complete()

    def finish(self) -> None:
        self.way.finish()

    def abandon(self) -> None:
        """What was staged stays: it may be tried again, or is swept when its lease is over."""
        self._ahead.give_up()
        self.log.resume_appends()
