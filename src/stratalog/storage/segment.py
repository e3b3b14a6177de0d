"""A run of batches stored in one ``.log`` file, with the sparse indexes beside it.

Segments divide a log's offsets: this one owns all from ``base_offset`` up to its successor's, and
its first batch may start later, since compaction leaves gaps. Batches are stored exactly as they
travel on the wire, so a fetch can hand file bytes to the network untouched. How they are found is
in ``batch_file``; here they are appended, timed, confirmed and cut.

Only the last segment of a log accepts appends. The owner serializes writers. Readers need no lock:
they stay below the high watermark, where, unclean elections aside, bytes no longer change.
"""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import (
    CorruptIndexError,
    CorruptSegmentError,
    DiskError,
    IndexFullError,
    OutOfResourcesError,
    SegmentOffsetOverflowError,
)
from stratalog.records import (
    BatchHeader,
    find_record_by_timestamp,
)
from stratalog.storage.batch_file import BatchFile
from stratalog.storage.files import File, FileSystem, make_way
from stratalog.storage.handles import HandleCache
from stratalog.storage.index import (
    NO_TIMESTAMP,
    RELATIVE_OFFSET_MAX,
    TimeIndex,
    TimestampOffset,
)
from stratalog.storage.layout import (
    DELETED_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
)
from stratalog.storage.time_range_writing import TimeRangeWriter, remove_time_ranges
from stratalog.storage.time_ranges import EARLIEST_MS, range_bytes
from stratalog.storage.transactions import AbortedTransaction, TransactionIndex


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record found by its timestamp."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class SegmentSizes:
    """What a directory listing already knows of a segment's files."""

    log_bytes: int = 0
    offset_index_bytes: int = 0
    time_index_bytes: int = 0
    has_transaction_index: bool = False
    modified_ms: int = 0


# After a power loss a search may have to walk through as much of the log, which takes less than a
# millisecond. To sync both indexes with every record was a third of what its producer waited for.
INDEX_LAG_BYTES = 1 << 20


class Room(NamedTuple):
    """How far a segment can be appended to before ``plan_roll`` has to be asked again."""

    size_bytes: int
    last_offset: int
    max_timestamp_ms: int


NO_ROOM = Room(-1, -1, -1)  # or it is not known


class Segment(BatchFile):
    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        config: TopicConfig,
        handles: HandleCache,
        *,
        created_ms: int,
        sizes: SegmentSizes | None = None,
    ) -> None:
        sizes = sizes or SegmentSizes()
        super().__init__(
            files,
            directory,
            base_offset,
            config,
            handles,
            size_bytes=sizes.log_bytes,
            offset_index_bytes=sizes.offset_index_bytes,
        )
        self.created_ms = created_ms
        self._listed_ms = sizes.modified_ms or created_ms
        self.jitter_ms = _draw_jitter(config)
        self.room = NO_ROOM
        self.missing: list[str] = []  # kinds of index that were not there when it was opened
        # None: not looked up yet. A closed segment finds these when somebody asks.
        self._max_timestamp: TimestampOffset | None = None
        self._first_timestamp_ms: int | None = None
        self._unindexed_bytes = 0
        self._indexed_durably_bytes = 0
        self._time_ranges: TimeRangeWriter | None = None  # of the segment that is appended to
        self.time_index = TimeIndex(
            files,
            self._path(TIME_INDEX_SUFFIX),
            base_offset,
            max_bytes=config.segment_index_bytes,
            size_bytes=sizes.time_index_bytes,
        )
        self.transaction_index = TransactionIndex(
            files,
            self._path(TRANSACTION_INDEX_SUFFIX),
            base_offset,
            exists=sizes.has_transaction_index,
        )

    def __repr__(self) -> str:
        return f"<Segment {self.path} of {self.size_bytes} bytes>"

    # --- opening and closing ------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        files: FileSystem,
        directory: str,
        base_offset: int,
        config: TopicConfig,
        handles: HandleCache,
        *,
        now_ms: int,
    ) -> "Segment":
        """A new, empty segment; left-over files of its name are removed first."""
        for suffix in SEGMENT_SUFFIXES:
            make_way(files, segment_file(directory, base_offset, suffix))
        segment = cls(files, directory, base_offset, config, handles, created_ms=now_ms)
        segment.is_settled = True
        segment._max_timestamp = TimestampOffset(NO_TIMESTAMP, base_offset)
        try:
            file = segment.file(create=True)
            if config.preallocate:
                file.truncate(config.segment_size_bytes)
            segment.offset_index.create()
            segment.time_index.create()
            segment.become_active()
        except DiskError:
            # An empty segment left behind would be taken for the log's end at the next start,
            # and what went on being appended to the old one would be hidden by it.
            segment.discard()
            for suffix in SEGMENT_SUFFIXES:
                files.unlink(segment_file(directory, base_offset, suffix), missing_ok=True)
            raise
        return segment

    def hand_over(self, handles: HandleCache) -> None:
        """Let go of all files; from now on they are counted by ``handles``."""
        self._handles.closed(self)
        self.release()
        self._handles = handles

    def release(self) -> None:
        super().release()
        self.time_index.release()
        self.transaction_index.release()

    def finish_indexes(self) -> None:
        """Nothing is appended any more: the indexes have their last entries, and the next flush
        makes these durable with the batches that they tell of."""
        if self._max_timestamp is not None:
            self.time_index.maybe_append(
                self._max_timestamp.timestamp_ms, self._max_timestamp.offset, forced=True
            )
        self.offset_index.finish()
        self.time_index.finish()

    def close(self) -> None:
        """Let go of the files. The caller has finished the indexes and flushed."""
        self.offset_index.trim()
        self.time_index.trim()
        self._cut_preallocation()
        self._seal_time_ranges()
        self.discard()

    def discard(self) -> None:
        """Let go of the files as they are."""
        self._handles.closed(self)
        self._file = None  # closed when the last slice of it is gone
        self._time_ranges = None
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.release()

    def become_inactive(self) -> None:
        """What a roll does to the segment it leaves behind."""
        self.room = NO_ROOM  # it is still appended to if there is no room for a new one
        # Damage that nobody has met yet may keep the timestamp from being found: then the index
        # lacks its last entry, and whoever asks looks at the batches behind it.
        with suppress(CorruptSegmentError, OutOfResourcesError):
            found = self.max_timestamp()
            self.time_index.maybe_append(found.timestamp_ms, found.offset, forced=True)
        self.offset_index.trim()
        self.time_index.trim()
        self._cut_preallocation()
        self._seal_time_ranges()

    def _seal_time_ranges(self) -> None:
        ranges, self._time_ranges = self._time_ranges, None
        if ranges is not None:
            ranges.seal()

    def _cut_preallocation(self) -> None:
        file = self.file()
        if file.size_bytes() > self.size_bytes:
            # Durable at once: the zeros would be read as batches by whoever trusts that what is
            # flushed needs no recovery.
            file.truncate(self.size_bytes)
            file.sync()

    def become_active(self, *, has_own_files: bool = True) -> None:
        """The indexes are going to be appended to. Without files of our own beside the log, what
        there is to know of its times is looked for by the first append."""
        self.offset_index.grow()
        self.time_index.grow()
        if has_own_files:
            self._open_time_ranges()

    def prepare_append(self) -> None:
        """Look up what the next append goes on from, before its bytes are there."""
        self.max_timestamp()
        self._open_time_ranges()

    def _open_time_ranges(self) -> TimeRangeWriter:
        if self._time_ranges is None:
            self._time_ranges = TimeRangeWriter(
                self._files,
                self._directory,
                self.base_offset,
                self.size_bytes,
                range_bytes=range_bytes(self._config.index_interval_bytes),
            )
        return self._time_ranges

    def configure(self, config: TopicConfig) -> None:
        """A changed setting counts from the next append on."""
        self._config = config
        self.room = NO_ROOM

    def sync_targets(self, *, indexes_may_lag: bool = False) -> list[File]:
        """The files a flush has to sync: the log itself first. Offset and time index are hints:
        where they may lag, a flush leaves them out until enough was appended."""
        lag_bytes = self.size_bytes - self._indexed_durably_bytes
        opened: list[File | None] = []
        if not indexes_may_lag or lag_bytes >= INDEX_LAG_BYTES:
            opened += (self.offset_index.file_to_sync(), self.time_index.file_to_sync())
            self._indexed_durably_bytes = self.size_bytes
        opened.append(self.transaction_index.file_to_sync())
        return [self.file(), *(file for file in opened if file is not None)]

    # --- appending ----------------------------------------------------------------------------

    def append(
        self,
        batches: Sequence[BatchHeader],
        buffers: Sequence[Buffer],
        min_timestamp_ms: int = EARLIEST_MS,
    ) -> None:
        """Write whole batches at the end; durable only after ``sync``.

        ``buffers`` hold exactly the batches, ``min_timestamp_ms`` is the smallest timestamp in
        them, if it is known. Bytes first, counters after: a failed write leaves the segment as it
        was.
        """
        last_offset = batches[-1].last_offset
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            raise SegmentOffsetOverflowError(self.path, self.base_offset, last_offset)
        if self._max_timestamp is None or self._time_ranges is None:
            self.prepare_append()
        self.recently_used = True
        (self._file or self.file()).write_at(self.size_bytes, buffers)
        self.take_written(batches, min_timestamp_ms)

    def take_written(
        self, batches: Sequence[BatchHeader], min_timestamp_ms: int = EARLIEST_MS
    ) -> None:
        """Count batches whose bytes have been put behind the last one."""
        position = self.size_bytes
        found = self._max_timestamp or self.max_timestamp()
        interval = self._config.index_interval_bytes
        for batch in batches:
            timestamp_ms = batch.max_timestamp_ms
            if timestamp_ms > found.timestamp_ms:
                self._max_timestamp = found = TimestampOffset(timestamp_ms, batch.last_offset)
            # Kafka indexes a batch by its last offset and skips the first interval, so a lookup
            # that falls before every entry starts at byte 0.
            if self._unindexed_bytes > interval:
                self._index(batch.last_offset, position, found)
            if position == 0:
                self._first_timestamp_ms = timestamp_ms
            self._unindexed_bytes += batch.size_bytes
            position += batch.size_bytes
        self.size_bytes = position
        ranges = self._time_ranges
        if ranges is not None and ranges.add(position, batches, min_timestamp_ms):
            ranges.write()

    def _index(self, last_offset: int, position: int, found: TimestampOffset) -> None:
        # Several batches of one append may be more than the index has room for: the next append
        # rolls, and what is left out here was only a hint. Without space, descriptors or maps
        # it is left out as well.
        self.room = NO_ROOM
        with suppress(IndexFullError, OutOfResourcesError):
            self.offset_index.append(last_offset, position)
            self._unindexed_bytes = 0
            self.time_index.maybe_append(found.timestamp_ms, found.offset)

    # --- confirming hints ---------------------------------------------------------------------

    def confirms_indexes(self) -> bool:
        """Whether the last entries of the indexes are what the log says: appending goes on from
        them, so that a garbled one would stand in the way of every entry to come."""
        offsets, times = self.offset_index, self.time_index
        if offsets.entries and self._start_position(offsets.last.offset) != offsets.last.position:
            return False
        return not times.entries or self.trusted_time_entry(times.last)[0] == times.last

    def has_aborts(self) -> bool:
        """Whether the transaction index has an entry, sane or not."""
        try:
            return self.transaction_index.exists and any(True for _ in self.transaction_index)
        except CorruptIndexError:
            return True

    def confirms_aborted(self) -> bool:
        """Whether each entry of the transaction index names a marker of its producer."""
        for aborted in self.transaction_index:
            marker = self.find(aborted.last_offset)
            if marker is None or not marker.is_control or marker.last_offset != aborted.last_offset:
                return False
            if marker.producer_id != aborted.producer_id:
                return False
            if not self._confirms_beginning(aborted):
                return False
        return True

    def _confirms_beginning(self, aborted: AbortedTransaction) -> bool:
        """Whether a transaction begins where its entry says, as far as this segment can tell."""
        if aborted.first_offset < self.base_offset or self._config.compact:
            return True
        first = self.find(aborted.first_offset)
        return (
            first is not None
            and first.base_offset == aborted.first_offset
            and first.producer_id == aborted.producer_id
            and first.is_transactional
        )

    # --- time ---------------------------------------------------------------------------------

    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp and the last offset of the first batch that has it.

        The time index's last entry is the answer in a segment closed in order. It is checked
        against its batch, and the batches behind it are looked at too, so that an index which
        lost entries does not change the answer.
        """
        if self._max_timestamp is None:
            found, position = self.trusted_time_entry(self.time_index.last)
            for header in self.headers(position):
                if header.max_timestamp_ms > found.timestamp_ms:
                    found = TimestampOffset(header.max_timestamp_ms, header.last_offset)
            self._max_timestamp = found
        return self._max_timestamp

    def trusted_time_entry(self, hint: TimestampOffset) -> tuple[TimestampOffset, int]:
        """The entry and its batch's position, or the segment's start if they disagree."""
        nothing = TimestampOffset(NO_TIMESTAMP, self.base_offset), 0
        if hint.timestamp_ms == NO_TIMESTAMP or hint.offset < self.base_offset:
            return nothing
        try:
            header = self.find(hint.offset)
        except CorruptSegmentError:
            return nothing
        if header is None or header.max_timestamp_ms != hint.timestamp_ms:
            return nothing
        return hint, header.position

    def largest_timestamp_ms(self) -> int:
        """What retention goes by: the largest timestamp, or the file's age where none is known."""
        found = self.max_timestamp().timestamp_ms
        return found if found >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """When the file was last written, by the disk's own account."""
        entry = self._files.stat(self.path)
        return self._listed_ms if entry is None else entry.modified_ms

    def first_timestamp_ms(self) -> int:
        """The first batch's largest timestamp, -1 if there is none: time rolling counts from it."""
        if self._first_timestamp_ms is None:
            if self.size_bytes == 0:
                return NO_TIMESTAMP
            first = next(self.headers(), None)
            self._first_timestamp_ms = NO_TIMESTAMP if first is None else first.max_timestamp_ms
        return self._first_timestamp_ms

    def find_by_timestamp(self, timestamp_ms: int, *, start_offset: int) -> FoundRecord | None:
        """The first record at or after ``start_offset`` that is not older than the target."""
        _, position = self.trusted_time_entry(self.time_index.lookup(timestamp_ms))
        for header in self.headers(position):
            if header.max_timestamp_ms < timestamp_ms or header.last_offset < start_offset:
                continue
            record = find_record_by_timestamp(self.read_batch(header), timestamp_ms, start_offset)
            if record is not None:
                offset, found_ms = record
                return FoundRecord(offset, found_ms, header.partition_leader_epoch)
        return None

    # --- shrinking and removing ---------------------------------------------------------------

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Cut before the first batch that holds ``offset`` or anything later; damage that holds
        it goes too, since whoever cuts wants those offsets gone."""
        position = self.position_of(offset)
        self._open_time_ranges().cut(position)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if position < self.size_bytes:
            self.file().truncate(position)
            # Durable at once: bytes that come back after a crash, behind a batch written in their
            # place, would look like a valid batch behind a damaged one.
            self.file().sync()
            self.size_bytes = position
            self.damage.cut(position)
        if self.size_bytes == 0:
            self._first_timestamp_ms = None
            self.created_ms = now_ms
        self._max_timestamp = None
        self._unindexed_bytes = 0
        self._indexed_durably_bytes = min(self._indexed_durably_bytes, self.size_bytes)
        self.room = NO_ROOM

    def mark_deleted(self) -> list[str]:
        """Rename the files to ``.deleted``; returns the new names, for whoever unlinks them."""
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self._path(suffix)
            if self._files.exists(path):
                self._files.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        remove_time_ranges(self._files, self._directory, self.base_offset)
        self.discard()
        return renamed

    # --- rebuilding ---------------------------------------------------------------------------

    def forget_max_timestamp(self) -> None:
        """It is looked up again when somebody asks."""
        self._max_timestamp = None

    def adopt(self, *, size_bytes: int, max_timestamp: TimestampOffset) -> None:
        """Take over what a scan of the file has found."""
        self.size_bytes = size_bytes
        self.missing = []
        self._max_timestamp = max_timestamp
        self._first_timestamp_ms = None
        self._unindexed_bytes = 0
        self.room = NO_ROOM


def _draw_jitter(config: TopicConfig) -> int:
    limit = min(config.segment_jitter_ms, config.segment_ms)
    return random.randrange(limit) if limit > 0 else 0
