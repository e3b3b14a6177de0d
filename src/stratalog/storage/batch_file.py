"""The batches of one ``.log`` file: found by offset, walked in order, handed out as slices.

Nothing here writes. What the offset index says is a hint: the batch that it points to is compared
with it, and if they disagree the file is walked from its start. Around bytes that are known to be
damaged it goes on; who asks for what they hide is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stratalog.config import TopicConfig
from stratalog.errors import CorruptBatchError, CorruptSegmentError
from stratalog.records import BatchHeader, check_crc, find_batch, read_header, read_headers
from stratalog.storage.damage import CUT_SHORT, Damage, DamageMap
from stratalog.storage.files import File, FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.index import RELATIVE_OFFSET_MAX, OffsetIndex
from stratalog.storage.layout import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, segment_file

# A lookup reads this much at a time: a little more than the default index interval, so that
# most searches between two index entries end in one read.
_LOOKUP_BYTES = 4096 + 64
_WALK_BYTES = 256 * 1024
_HEADER_BYTES = 61


@dataclass(slots=True)  # not frozen: that would make each three times as dear
class FileSlice:
    """Bytes of a file, fit for ``sendfile``: nothing has been read yet.

    Holding the slice keeps the file open, also when it is deleted or its segment closed meanwhile.
    """

    file: File
    position: int
    size_bytes: int

    def __len__(self) -> int:
        return self.size_bytes

    def fileno(self) -> int:
        return self.file.fileno()

    def read(self) -> bytes:
        return self.file.read_at(self.position, self.size_bytes)


class BatchFile:
    """What a segment is to its readers; ``Segment`` adds appending, times and transactions."""

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        config: TopicConfig,
        handles: HandleCache,
        *,
        size_bytes: int,
        offset_index_bytes: int,
    ) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.damage = DamageMap()
        # Once opening has settled how the file ends, it ends with a whole batch. Before that, and
        # in a file that somebody else is writing, the last one may be on its way.
        self.is_settled = False
        self.recently_used = False
        self._files = files
        self._directory = directory
        self._config = config
        self._handles = handles
        self._file: File | None = None
        self._has_large_batches = False  # so large that each has an index entry, as far as seen
        self.offset_index = OffsetIndex(
            files,
            self._path(OFFSET_INDEX_SUFFIX),
            base_offset,
            max_bytes=config.segment_index_bytes,
            size_bytes=offset_index_bytes,
        )

    def _path(self, suffix: str) -> str:
        return segment_file(self._directory, self.base_offset, suffix)

    @property
    def path(self) -> str:
        return self._path(LOG_SUFFIX)

    def file(self, *, create: bool = False) -> File:
        """The ``.log``, opened when needed. One that has vanished is an error, not empty."""
        self.recently_used = True
        file = self._file
        if file is None:
            file = self._file = self._files.open(self.path, create=create)
            self._handles.opened(self)
        return file

    def release(self) -> None:
        """Let go of what is open; it is opened again when needed."""
        self._file = None
        self.offset_index.release()

    # --- finding --------------------------------------------------------------------------------

    def find(self, offset: int) -> BatchHeader | None:
        """The first batch whose last offset is not below ``offset``."""
        if self._has_large_batches and not self.damage:
            header = self._find_indexed(offset)
            if header is not None:
                return header
        hidden = self.damage.holding(offset)
        if hidden is not None:
            raise self._corrupt(hidden)
        header = self._walk_to(self._start_position(offset), offset)
        if header is not None:
            self._has_large_batches = header.size_bytes > self._config.index_interval_bytes
            if header.base_offset > offset and header.position > 0:
                self._check_gap(header, offset)
        return header

    def _find_indexed(self, offset: int) -> BatchHeader | None:
        """The batch that holds ``offset``, if it has an index entry of its own and the log
        confirms it: one read instead of three for who reads large batches in a row."""
        entry = self.offset_index.at_or_after(offset)
        if entry is None or not 0 < entry.position < self.size_bytes:
            return None
        position = entry.position
        try:
            header = read_header(self.file().read_at(position, _HEADER_BYTES), 0, position)
        except CorruptBatchError:
            return None
        # Compressed messages of the old formats do not tell their first offset in their header: -1.
        if (
            header is None
            or not self.base_offset <= header.base_offset <= offset <= header.last_offset
            or header.last_offset != entry.offset
            or position + header.size_bytes > self.size_bytes
        ):
            return None
        return header

    def _check_gap(self, header: BatchHeader, offset: int) -> None:
        """Offsets are missing before ``header``. Compaction leaves such gaps, and so does a batch
        whose damaged header claims fewer offsets than it has."""
        before = None
        for batch in self.headers(self._start_position(offset), header.position):
            before = batch
        if before is not None and not self._is_intact(before):
            raise CorruptSegmentError(
                self.path, before.position, offset, "its CRC does not match its contents"
            )

    def position_of(self, offset: int) -> int:
        """Where the first batch that ends at ``offset`` or later begins, or the damage that hides
        it; the segment's end if there is none."""
        damage = self.damage.holding(offset)
        if damage is not None:
            return damage.start_position
        header = self.find(offset)
        return self.size_bytes if header is None else header.position

    def _start_position(self, offset: int) -> int:
        """Where to begin looking for ``offset``: what the index says, if the log confirms it."""
        hint = self.offset_index.lookup(offset)
        if hint.position == 0:
            return 0
        if not 0 < hint.position < self.size_bytes or self.damage.covers(hint.position):
            return 0
        try:
            header = read_header(
                self.file().read_at(hint.position, _HEADER_BYTES), 0, hint.position
            )
        except CorruptBatchError:
            return 0
        if header is None or header.position + header.size_bytes > self.size_bytes:
            return 0
        if header.last_offset == hint.offset:
            return hint.position
        # Older releases of Kafka indexed a whole append by its last offset, at its first batch.
        # Such an entry is as good if a real batch starts there and the offset is not before it.
        if self.base_offset <= header.base_offset <= offset and self._is_intact(header):
            return hint.position
        return 0

    def _is_intact(self, header: BatchHeader) -> bool:
        return check_crc(self.file().read_at(header.position, header.size_bytes))

    def _walk_to(self, position: int, offset: int) -> BatchHeader | None:
        while position < self.size_bytes:
            damage = self.damage.at(position)
            if damage is not None:
                if offset < damage.end_offset:
                    raise self._corrupt(damage)
                position = damage.end_position
                continue
            limit = self.damage.next_start(position, self.size_bytes)
            chunk = self.file().read_at(position, min(_LOOKUP_BYTES, limit - position))
            try:
                found = find_batch(chunk, position, offset, limit)
            except CorruptBatchError as error:
                raise CorruptSegmentError(
                    self.path, error.position, max(error.base_offset, -1), error.reason
                ) from error
            if isinstance(found, BatchHeader):
                if found.position + found.size_bytes <= limit:
                    return found
                self._cut_short(found.position, offset)
                return None
            if found == position or found > limit:
                self._cut_short(position, offset)
                return None
            position = found
        return None

    def _cut_short(self, position: int, offset: int) -> None:
        """What stands at ``position`` runs past the end: damage, or a batch on its way."""
        if self.is_settled:
            raise CorruptSegmentError(self.path, position, offset, CUT_SHORT)

    def _corrupt(self, damage: Damage) -> CorruptSegmentError:
        return CorruptSegmentError(
            self.path, damage.start_position, damage.start_offset, damage.reason
        )

    def offset_behind(self, position: int) -> int | None:
        """The last offset of some batch at or behind ``position``, if the index knows one."""
        entry = self.offset_index.upper_bound(position)
        if entry is None or not position <= entry.position < self.size_bytes:
            return None
        return entry.offset if self._start_position(entry.offset) == entry.position else None

    # --- walking --------------------------------------------------------------------------------

    def headers(self, position: int = 0, end_position: int | None = None) -> Iterator[BatchHeader]:
        """Every batch from ``position`` on, around known damage. CRCs are not checked."""
        end = self.size_bytes if end_position is None else end_position
        while position < end:
            damage = self.damage.at(position)
            if damage is not None:
                position = damage.end_position
                continue
            limit = self.damage.next_start(position, end)
            batches = self._read_headers(position, limit)
            if not batches:
                self._cut_short(position, -1)
                return
            yield from batches
            position = batches[-1].position + batches[-1].size_bytes

    def _read_headers(self, position: int, limit: int) -> list[BatchHeader]:
        try:
            chunk = self.file().read_at(position, min(_WALK_BYTES, limit - position))
            batches = read_headers(chunk, position, check_crc=False)
            if batches:
                return batches
            # The first batch alone is larger than a chunk, or is the partial tail.
            header = read_header(chunk, 0, position)
            if header is None or position + header.size_bytes > limit:
                return []
            return [header]
        except CorruptBatchError as error:
            raise CorruptSegmentError(
                self.path, error.position, error.base_offset, error.reason
            ) from error

    def read_batch(self, header: BatchHeader) -> bytes:
        return self.file().read_at(header.position, header.size_bytes)

    def last_header(self) -> BatchHeader | None:
        """The last batch; found from the last index entry on."""
        last = None
        for header in self.headers(self._start_position(RELATIVE_OFFSET_MAX + self.base_offset)):
            last = header
        return last

    def next_offset(self) -> int:
        last = self.last_header()
        return self.base_offset if last is None else last.next_offset

    def whole_size(self, first: BatchHeader, size_bytes: int) -> int:
        """``size_bytes`` from ``first`` on, less the part of a large batch that they end in the
        middle of, where the index knows its beginning: who reads the slice would drop it."""
        if size_bytes < first.size_bytes or not self._has_large_batches:
            return size_bytes
        entry = self.offset_index.lower_bound(first.position + size_bytes)
        cut = 0 if entry is None else entry.position - first.position
        return cut if first.size_bytes <= cut <= size_bytes else size_bytes

    def slice(self, position: int, size_bytes: int) -> FileSlice:
        return FileSlice(self.file(), position, size_bytes)
