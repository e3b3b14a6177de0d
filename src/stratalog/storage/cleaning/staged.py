"""The work of a round where its output is staged: by whoever does not own the log.

The bytes are those of the local cleaner. What differs is where they go: to files of their own in a
staging directory, which a manifest then names with the segments that they are to replace. The
owner writes the indexes, since it reads every byte anyway.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import DiskError, StorageError
from stratalog.records import read_headers
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.marks import decide, sources_span
from stratalog.storage.cleaning.rewriting import RoundPlan, RoundWork, Source, Work
from stratalog.storage.commits.kept_digest import kept_digest
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.staged_log import make_staging_directory
from stratalog.storage.commits.staging import release_staging, staging_directory, staging_until_ms
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import CLEANED_SUFFIX, LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX


class StagingGoneError(StorageError):
    """What a task was staging is no longer held: its compaction has ended without it."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.directory = directory

    def __str__(self) -> str:
        return f"{self.directory} is no longer held: its compaction was given up, or is done"


def check_held(plan: RoundPlan, staging_id: str) -> None:
    """To be called when a file was made. Whoever gives up what is staged removes the lease and then
    the files, so one of the two sees the other."""
    log_dir = os.path.dirname(plan.directory)
    if staging_until_ms(plan.files, log_dir, staging_id) is None:
        with suppress(DiskError):  # of others that do the same
            release_staging(plan.files, log_dir, staging_id, partitions=[plan.topic_partition])
        raise StagingGoneError(staging_directory(plan.directory, staging_id))


class StagedSegment(CleanedSegment):
    """``stem`` is the name of its files: unique, so that two attempts do not meet."""

    def __init__(
        self,
        files: FileSystem,
        staging_directory: str,
        stem: str,
        base_offset: int,
        config: TopicConfig,
    ) -> None:
        self.stem = stem
        self._digest = 0
        self._record_count = 0
        super().__init__(files, staging_directory, base_offset, config)

    def path(self, suffix: str, state: str = CLEANED_SUFFIX) -> str:
        return f"{self._directory}/{self.stem}{suffix}"

    def _time_ranges_path(self, state: str = CLEANED_SUFFIX) -> str:
        return self.path(".timeranges", state)

    def append(self, batches: Buffer) -> None:
        super().append(batches)
        headers = read_headers(batches, 0, check_crc=False)
        self._digest = kept_digest(headers, self._digest)
        self._record_count += sum(header.record_count for header in headers)

    def finish(self, modified_ms: int) -> None:
        self._log.sync()
        if self.has_aborts:
            content = b"".join(each.encode() for each in self._aborted)
            self._write(TRANSACTION_INDEX_SUFFIX, content)
        self._log.close()

    @property
    def staged(self) -> StagedFile:
        return StagedFile(
            name=f"{self.stem}{LOG_SUFFIX}",
            size_bytes=self.size_bytes,
            record_count=self._record_count,
            digest=f"{self._digest:08x}",
            base_offset=self.base_offset,
            has_aborts=self.has_aborts,
        )


class StagedRound(RoundWork):
    """``attempt`` is a name of its own for each time that the work is tried."""

    def __init__(self, plan: RoundPlan, work: Work, *, staging_id: str, attempt: str) -> None:
        super().__init__(plan, work)
        self._staging_id = staging_id
        self._staging_directory = staging_directory(plan.directory, staging_id)
        self._attempt = attempt
        self._marks: tuple[str, ...] = ()
        make_staging_directory(plan.files, self._staging_directory)
        check_held(plan, staging_id)

    def _open_output(self, group: Sequence[Source]) -> StagedSegment:
        base_offset = group[0].base_offset
        stem = f"{base_offset:020d}-{self._attempt}"
        plan = self.plan
        opened = StagedSegment(plan.files, self._staging_directory, stem, base_offset, plan.config)
        try:
            check_held(plan, self._staging_id)
        except BaseException:
            opened.discard()
            raise
        return opened

    def use_marks(self, paths: Sequence[str]) -> None:
        """Instead of ``build_map``: others have found out what goes, and these files say it."""
        self._marks = tuple(paths)
        self.stats.end_offset = self.plan.upper_bound_offset

    def stage(self, group: Sequence[Source]) -> StagedFile:
        """``rewrite``, for a manifest."""
        if self._marks:
            decide(self.plan.files, self._marks, sources_span(self.plan, group), self._map)
            self._map.raise_latest_offset(self.plan.upper_bound_offset - 1)
        cleaned = self.rewrite(group)
        assert isinstance(cleaned, StagedSegment)
        return cleaned.staged

    def settle(self) -> None:
        """Make the names of what was staged durable."""
        self.plan.files.sync_directory(self._staging_directory)
