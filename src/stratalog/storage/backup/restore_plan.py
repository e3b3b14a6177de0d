"""What of a backup is restored: decided before a byte is written.

A restore to a moment T takes of every log the batches before the first one that holds a record
later than T, by the timestamps that the records carry. What is kept is a beginning of the log: the
same bytes, the same offsets, none left out. A record with a timestamp far ahead ends it early;
batches behind that are left out though their own timestamps may be earlier than T.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from stratalog.storage.backup.copying import BatchWalk, read_checked
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import (
    BackupManifest,
    PartitionBackup,
    StoredAppVersion,
    StoredFile,
    StoredSegment,
    TopicBackup,
)
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.layout import TopicPartition
from stratalog.topic_names import KAFKAS_OWN_TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredSegment:
    """The first ``size_bytes`` of a segment, all of it if there are no more."""

    stored: StoredSegment
    size_bytes: int
    record_count: int

    @property
    def is_whole(self) -> bool:
        return self.size_bytes == self.stored.log.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredPartition:
    """A log as it is to be. Without segments it is empty, and begins at ``end_offset``."""

    topic_partition: TopicPartition
    log_start_offset: int
    end_offset: int
    epochs: tuple[tuple[int, int], ...]
    segments: tuple[RestoredSegment, ...]
    snapshots: dict[int, StoredFile]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.segments)

    @property
    def needs_end_segment(self) -> bool:
        """Whether offsets before ``end_offset`` would be given again but for an empty segment
        there: a log ends where its last batch does."""
        return not self.segments or self.segments[-1].stored.next_offset < self.end_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    manifest: BackupManifest
    topics: tuple[TopicBackup, ...]
    partitions: tuple[RestoredPartition, ...]
    until_ms: int | None
    notes: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.partitions)

    @property
    def is_all(self) -> bool:
        """Whether it is the whole backup, to its end."""
        return self.until_ms is None and len(self.topics) == len(self.manifest.topics)

    @property
    def restored_app_versions(self) -> tuple[StoredAppVersion, ...]:
        """Those that a directory made from it goes on to know."""
        found = self.manifest.app_versions if self.is_all else ()
        return tuple(each for each in found if each.is_whole)


def plan_restore(
    store: BackupStore,
    manifest: BackupManifest,
    *,
    topics: Collection[str] = (),
    until_ms: int | None = None,
    notes: Sequence[str] = (),
) -> RestorePlan:
    """What of ``manifest`` is restored: all its topics, or those named. ``notes`` are what there
    was to say about choosing it."""
    missing = set(topics) - {each.name for each in manifest.topics}
    if missing:
        raise BackupError(f"backup {manifest.backup_id} has no topic {min(missing)}")
    chosen = tuple(each for each in manifest.topics if not topics or each.name in topics)
    if not chosen:
        raise BackupError(f"backup {manifest.backup_id} holds no topic")
    partitions, told = [], list(notes)
    left_out = () if topics else set(manifest.topics_left_out) - KAFKAS_OWN_TOPICS
    if left_out:
        told.append(
            f"backup {manifest.backup_id} is not of all topics; left out were "
            f"{', '.join(sorted(left_out))}"
        )
    for topic in chosen:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition)
            told += [
                f"{key}: segment {segment.base_offset} was damaged when it was backed up, "
                f"{segment.damage}"
                for segment in each.segments
                if segment.damage
            ]
            partitions.append(_plan_partition(store, key, each, until_ms))
    return RestorePlan(
        manifest=manifest,
        topics=chosen,
        partitions=tuple(partitions),
        until_ms=until_ms,
        notes=tuple(told),
    )


def _plan_partition(
    store: BackupStore, key: TopicPartition, backup: PartitionBackup, until_ms: int | None
) -> RestoredPartition:
    segments: list[RestoredSegment] = []
    end_offset = backup.end_offset
    for each in backup.segments:
        whole = RestoredSegment(
            stored=each, size_bytes=each.log.size_bytes, record_count=each.record_count
        )
        if until_ms is None or (each.max_timestamp_ms <= until_ms and not each.damage):
            segments.append(whole)
            continue
        kept, end_offset = _cut(store, key, each, until_ms)
        if kept.size_bytes:
            segments.append(kept)
        break
    if end_offset <= backup.log_start_offset:
        # All that was before the moment had been deleted already.
        end_offset = backup.log_start_offset
        segments = []
    return RestoredPartition(
        topic_partition=key,
        log_start_offset=backup.log_start_offset if segments else end_offset,
        end_offset=end_offset,
        epochs=tuple(each for each in backup.epochs if each[1] < end_offset),
        segments=tuple(segments),
        snapshots={
            offset: file for offset, file in backup.snapshots.items() if offset <= end_offset
        },
    )


def _cut(
    store: BackupStore, key: TopicPartition, segment: StoredSegment, until_ms: int
) -> tuple[RestoredSegment, int]:
    """What lies before the first batch that is later, and the offset at which that begins."""
    if segment.damage:
        raise BackupError(
            f"{key}: its segment {segment.base_offset} was damaged when it was backed up, "
            f"{segment.damage}. Where a moment lies in it cannot be told: restore it whole"
        )
    cut = _Cut(segment, until_ms)
    read_checked(store, segment.log, cut.look)
    kept = replace(
        segment, next_offset=cut.next_offset, record_count=cut.record_count, max_timestamp_ms=-1
    )
    size_bytes, end_offset = cut.position, max(cut.end_offset, cut.next_offset)
    return (
        RestoredSegment(stored=kept, size_bytes=size_bytes, record_count=cut.record_count),
        end_offset,
    )


class _Cut:
    """Where the batches of a segment are, for the first time, later than a moment."""

    def __init__(self, segment: StoredSegment, until_ms: int) -> None:
        self._until_ms = until_ms
        self._walk = BatchWalk(segment.base_offset, all_headers=True)
        self._is_found = False
        self.position = 0
        self.record_count = 0
        self.next_offset = segment.base_offset
        self.end_offset = segment.base_offset

    def look(self, piece: memoryview) -> None:
        headers = [] if self._is_found else self._walk.feed(piece)
        for header in headers:
            if header.max_timestamp_ms > self._until_ms:
                # A compressed message of the oldest formats does not say where it begins.
                self.end_offset = max(header.base_offset, self.next_offset)
                self._is_found = True
                return
            self.position = header.position + header.size_bytes
            self.record_count += max(header.record_count, 0)
            self.next_offset = self.end_offset = header.next_offset
