"""Staging a backup for a commit: files of a store become files beside the log they are for."""

from collections.abc import Callable
from contextlib import suppress

from stratalog.errors import DiskError
from stratalog.storage.backup.copying import BatchWalk, Progress, check_batches, read_checked
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import StoredSegment
from stratalog.storage.backup.restore_plan import RestoredPartition, RestoredSegment
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.commits.manifest import PartitionManifest, StagedFile
from stratalog.storage.commits.restoring import staged_name
from stratalog.storage.commits.staged_log import digest_of, make_staging_directory
from stratalog.storage.commits.staging import staging_directory
from stratalog.storage.files import FileSystem

_OFFSETS_MAX = 2**31 - 1  # of one segment: its indexes have them in 32 bits


def refuse_damaged(stored: StoredSegment) -> None:
    if stored.damage:
        raise BackupError(
            f"segment {stored.base_offset} was damaged when it was backed up, {stored.damage}: "
            "no broker takes it in. Restore the backup into an empty directory instead"
        )


class BackupStaging:
    """Stages partitions under one id. ``renew`` is called now and then, to keep that."""

    def __init__(
        self,
        files: FileSystem,
        store: BackupStore,
        staging_id: str,
        *,
        renew: Callable[[], None] = lambda: None,
        progress: Progress = lambda _bytes: None,
    ) -> None:
        self._files = files
        self._store = store
        self._staging_id = staging_id
        self._renew = renew
        self._progress = progress

    def stage(
        self, partition: RestoredPartition, directory: str, topic_id: str
    ) -> PartitionManifest:
        """Copy the segments of ``partition`` beside the log in ``directory``."""
        staging = staging_directory(directory, self._staging_id)
        make_staging_directory(self._files, staging)
        # A compaction leaves some empty, of which a commit takes none but at the end.
        kept = [each for each in partition.segments if each.size_bytes]
        bases = [each.stored.base_offset for each in kept]
        log_start_offset = partition.log_start_offset
        if not kept:
            log_start_offset = partition.end_offset
        elif log_start_offset < bases[0]:
            # What was empty lay before it: the log starts where it did in a segment that does.
            if kept[0].stored.next_offset - log_start_offset <= _OFFSETS_MAX:
                bases[0] = log_start_offset
            else:
                log_start_offset = bases[0]
        staged = [self._copy(staging, each, base) for each, base in zip(kept, bases, strict=True)]
        if partition.needs_end_segment:
            staged.append(self._end(staging, partition.end_offset))
        self._files.sync_directory(staging)
        return PartitionManifest(
            topic=partition.topic_partition.topic,
            partition=partition.topic_partition.partition,
            topic_id=topic_id,
            files=tuple(staged),
            log_start_offset=log_start_offset,
            epochs=partition.epochs,
        )

    def _end(self, staging: str, end_offset: int) -> StagedFile:
        name = staged_name(end_offset)
        self._files.open(f"{staging}/{name}", create=True).close()
        return StagedFile(
            name=name, size_bytes=0, record_count=0, digest=f"{0:08x}", base_offset=end_offset
        )

    def _copy(self, staging: str, segment: RestoredSegment, base_offset: int) -> StagedFile:
        stored = segment.stored
        refuse_damaged(stored)
        name = staged_name(base_offset)
        path = f"{staging}/{name}"
        self._files.unlink(path, missing_ok=True)
        file = self._files.open(path, create=True)
        walk, position, digest, records = BatchWalk(stored.base_offset, all_headers=True), 0, 0, 0

        def take(piece: memoryview) -> None:
            nonlocal position, digest, records
            kept = piece[: max(segment.size_bytes - position, 0)]
            if len(kept):
                file.write_at(position, [kept])
                headers = walk.feed(kept)
                digest = digest_of([header.crc for header in headers], digest)
                # A compressed message of the oldest formats does not say how many it holds.
                records += sum(max(header.record_count, 0) for header in headers)
            position += len(kept)
            self._progress(len(kept))
            self._renew()

        try:
            read_checked(self._store, stored.log, take)
            check_batches(self._store, stored, walk)
            file.sync()
        finally:
            with suppress(DiskError):
                file.close()
        return StagedFile(
            name=name,
            size_bytes=position,
            record_count=records,
            digest=f"{digest:08x}",
            base_offset=base_offset,
        )
