"""A search in a log, told step by step: which segments, which index entries, which batches.

The steps are those of ``Segment``: an index only says where to begin, the log confirms it or the
search begins at the segment's start, and batches are walked from there. So the answer is exact
whatever the indexes say. Steps are yielded as they are made: what was found before damage is told.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from stratalog.config import TopicConfig
from stratalog.errors import CorruptBatchError, OffsetOutOfRangeError
from stratalog.records import BatchHeader, check_crc, find_record_by_timestamp, read_header
from stratalog.storage.files import FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.inspection import Replica
from stratalog.storage.layout import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from stratalog.storage.segment import Segment, SegmentSizes

_HEADER_BYTES = 61
# Batches told one by one in a walk; the rest of a long walk is one number.
_BATCHES_TOLD = 16


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a search did, in words and in values."""

    action: str
    sentence: str
    values: dict[str, int | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """Where a search ended: a batch, and the offset and timestamp of the record in it."""

    segment: Segment
    header: BatchHeader
    offset: int
    timestamp_ms: int | None = None


class Search:
    """One search; ``found`` is set when its steps have run out and something was found."""

    def __init__(self, files: FileSystem, replica: Replica, *, log_start_offset: int = 0) -> None:
        self._start_offset = log_start_offset
        handles = HandleCache()
        self.found: FoundBatch | None = None
        self._segments = [
            Segment(
                files,
                replica.directory,
                segment.base_offset,
                TopicConfig(),
                handles,
                created_ms=segment.modified_ms,
                sizes=SegmentSizes(
                    log_bytes=segment.size_bytes,
                    offset_index_bytes=segment.sizes.get(OFFSET_INDEX_SUFFIX, 0),
                    time_index_bytes=segment.sizes.get(TIME_INDEX_SUFFIX, 0),
                    has_transaction_index=TRANSACTION_INDEX_SUFFIX in segment,
                    modified_ms=segment.modified_ms,
                ),
            )
            for segment in replica.segments
        ]

    def owner(self, offset: int) -> Segment | None:
        """The segment that owns ``offset``."""
        owners = [segment for segment in self._segments if segment.base_offset <= offset]
        return owners[-1] if owners else None

    # --- by offset -----------------------------------------------------------------------------

    def by_offset(self, offset: int) -> Iterator[Step]:
        """The first record at ``offset`` or after it."""
        segments = self._segments
        start = max(self._start_offset, segments[0].base_offset if segments else 0)
        end = max([start, *(segment.next_offset() for segment in segments[-1:])])
        if not start <= offset < end:
            raise OffsetOutOfRangeError(offset, start, end)
        place = max(i for i, each in enumerate(segments) if each.base_offset <= offset)
        yield self._choice(place, f"owns offset {offset}")
        while place < len(segments):
            position = yield from self._look_up(segments[place], offset)
            header = yield from self._walk(
                segments[place], position, lambda each: each.last_offset >= offset
            )
            if header is not None:
                # A compressed message of an old format hides its first offset.
                first = header.base_offset if header.base_offset >= 0 else offset
                self.found = FoundBatch(segments[place], header, max(offset, first))
                return
            place += 1
            if place < len(segments):
                yield self._choice(place, f"is next: {offset} was compacted away before it")

    def _choice(self, place: int, why: str) -> Step:
        segment = self._segments[place]
        following = self._segments[place + 1 : place + 2]
        end = following[0].base_offset if following else None
        held = f"[{segment.base_offset}, {'end' if end is None else end})"
        return Step(
            "segment",
            f"segment {place + 1} of {len(self._segments)}, {segment.path}, with {held}: {why}",
            {"path": segment.path, "base_offset": segment.base_offset, "next_base_offset": end},
        )

    def _look_up(self, segment: Segment, offset: int) -> Generator[Step, None, int]:
        """Where to begin walking for ``offset``."""
        index = segment.offset_index
        slot = index.slot(offset)
        if slot < 0:
            yield Step(
                "index",
                f"{index.path}: none of {index.entries} entries is at or below {offset}; "
                "begin at position 0",
                {"path": index.path, "entries": index.entries, "slot": None, "position": 0},
            )
            return 0
        entry = index.entry(slot)
        values: dict[str, int | str | None] = {
            "path": index.path,
            "entries": index.entries,
            "slot": slot,
            "offset": entry.offset,
            "position": entry.position,
        }
        confirmed = _confirms(segment, entry.offset, entry.position, offset)
        told = "begin there" if confirmed else "no such batch is there, begin at position 0"
        yield Step(
            "index",
            f"{index.path}: slot {slot} of {index.entries} says that the batch with last offset "
            f"{entry.offset} begins at position {entry.position}; {told}",
            values,
        )
        return entry.position if confirmed else 0

    def _walk(
        self, segment: Segment, position: int, is_wanted: Callable[[BatchHeader], bool]
    ) -> Generator[Step, None, BatchHeader | None]:
        walked = 0
        for header in segment.headers(position):
            walked += 1
            wanted = is_wanted(header)
            if wanted or walked <= _BATCHES_TOLD:
                yield _batch_step(header, walked)
            if wanted:
                return header
        yield Step(
            "walk",
            f"{segment.path}: its batches end after {walked} were looked at from position "
            f"{position} on",
            {"path": segment.path, "position": position, "batches": walked},
        )
        return None

    # --- by time -------------------------------------------------------------------------------

    def by_timestamp(self, timestamp_ms: int) -> Iterator[Step]:
        """The first record, in the order of offsets, that is not older than ``timestamp_ms``."""
        for place, segment in enumerate(self._segments):
            following = self._segments[place + 1 : place + 2]
            if following and following[0].base_offset <= self._start_offset:
                yield self._choice(place, f"lies below the log's start, {self._start_offset}")
                continue
            largest = segment.max_timestamp()
            if largest.timestamp_ms < timestamp_ms:
                yield self._choice(
                    place, f"its largest timestamp, {largest.timestamp_ms}, is older"
                )
                continue
            yield self._choice(place, f"its largest timestamp is {largest.timestamp_ms}")
            position = yield from self._look_up_time(segment, timestamp_ms)
            self.found = yield from self._walk_time(segment, position, timestamp_ms)
            if self.found is not None:
                return

    def _look_up_time(self, segment: Segment, timestamp_ms: int) -> Generator[Step, None, int]:
        index = segment.time_index
        hint = index.lookup(timestamp_ms)
        trusted, position = segment.trusted_time_entry(hint)
        values: dict[str, int | str | None] = {
            "path": index.path,
            "entries": index.entries,
            "timestamp_ms": hint.timestamp_ms,
            "offset": hint.offset,
            "position": position,
        }
        if hint.timestamp_ms < 0:
            sentence = f"none of {index.entries} entries is at or below {timestamp_ms}"
        elif trusted.timestamp_ms < 0:
            sentence = (
                f"timestamp {hint.timestamp_ms} at offset {hint.offset} is not what the log says"
            )
        else:
            sentence = (
                f"timestamp {hint.timestamp_ms} is the largest up to offset {hint.offset}, whose "
                f"batch is at position {position}"
            )
        yield Step("time-index", f"{index.path}: {sentence}; begin at position {position}", values)
        return position

    def _walk_time(
        self, segment: Segment, position: int, timestamp_ms: int
    ) -> Generator[Step, None, FoundBatch | None]:
        def may_hold(header: BatchHeader) -> bool:
            is_late = header.max_timestamp_ms >= timestamp_ms
            return is_late and header.last_offset >= self._start_offset

        while True:
            header = yield from self._walk(segment, position, may_hold)
            if header is None:
                return None
            found = find_record_by_timestamp(
                segment.read_batch(header), timestamp_ms, self._start_offset
            )
            if found is not None:
                return FoundBatch(segment, header, *found)
            position = header.position + header.size_bytes


def _confirms(segment: Segment, last_offset: int, position: int, offset: int) -> bool:
    """Whether the log has the batch that an index entry points to."""
    if not 0 <= position < segment.size_bytes:
        return False
    try:
        header = read_header(segment.file().read_at(position, _HEADER_BYTES), 0, position)
    except CorruptBatchError:
        return False
    if header is None or position + header.size_bytes > segment.size_bytes:
        return False
    # A release before 4.0 may have written the last offset of a later batch of the same append.
    is_older_form = segment.base_offset <= header.base_offset <= offset
    return header.last_offset == last_offset or (
        is_older_form and check_crc(segment.read_batch(header))
    )


def _batch_step(header: BatchHeader, number: int) -> Step:
    values: dict[str, int | str | None] = {
        "position": header.position,
        "size_bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "max_timestamp_ms": header.max_timestamp_ms,
    }
    sentence = (
        f"batch {number} of the walk, at position {header.position}: {header.size_bytes} bytes, "
        f"offsets {header.base_offset} to {header.last_offset}, largest timestamp "
        f"{header.max_timestamp_ms}"
    )
    return Step("batch", sentence, values)
