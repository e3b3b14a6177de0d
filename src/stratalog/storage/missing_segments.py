"""Whether offsets that a replica's files leave out behind one segment were once there.

Compaction leaves offsets out, and it takes whole segments too. A segment that somebody removed
leaves the same hole, and other evidence:

    an index of a segment that begins in the hole, without its .log     it was there
    a copy in .stratalog/cut of what was there                          a person has dropped it
    an entry in cleaner-offset-checkpoint                               compaction took it
    a topic that is known not to be compacted, no offset missing
    in the segment before the hole                                      it was there

Everything else is taken for compaction: a follower copies the holes of its leader's log.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stratalog.errors import CorruptFileError, DiskError
from stratalog.records import BatchHeader
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import (
    CLEANER_CHECKPOINT,
    CUT_DIRECTORY,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TopicPartition,
    parse_segment_file,
)

# <base offset>.log.<position>.<when>, see ``repairing``
_DROPPED = re.compile(r"([0-9]{20})\.log\.([0-9]+)\.[0-9TZ.]+")
_INDEXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


@dataclass(frozen=True, slots=True)
class SegmentTraces:
    """What names in a replica's directory tell of bytes that are in no ``.log`` of it.

    ``indexed`` are base offsets that have an index and no ``.log``; ``dropped`` are the base
    offset and the position of each copy of what a person has dropped.
    """

    indexed: tuple[int, ...]
    dropped: frozenset[tuple[int, int]]

    def indexed_in(self, start_offset: int, end_offset: int) -> int | None:
        """The base offset of a segment that began in ``[start_offset, end_offset)``."""
        found = [base for base in self.indexed if start_offset <= base < end_offset]
        return min(found, default=None)

    def is_dropped(
        self, base_offset: int, size_bytes: int, start_offset: int, end_offset: int
    ) -> bool:
        """Whether a person dropped the end of the segment at ``base_offset``, which now has
        ``size_bytes``, or a segment of ``[start_offset, end_offset)``."""
        is_cut = (base_offset, size_bytes) in self.dropped
        return is_cut or self.is_dropped_in(start_offset, end_offset)

    def is_dropped_in(self, start_offset: int, end_offset: int) -> bool:
        """Whether a person dropped a segment of ``[start_offset, end_offset)``."""
        return any(
            start_offset <= base < end_offset and position == 0 for base, position in self.dropped
        )


def find_traces(files: FileSystem, directory: str) -> SegmentTraces:
    parsed = [
        found
        for name in _names(files, directory)
        if (found := parse_segment_file(name)) is not None
    ]
    logs = {
        each.offset
        for each in parsed
        if each.kind == LOG_SUFFIX and each.state in ("", DELETED_SUFFIX)
    }
    indexed = {each.offset for each in parsed if each.kind in _INDEXES and not each.state}
    cut = _names(files, f"{directory}/{CUT_DIRECTORY}")
    dropped = (_DROPPED.fullmatch(name) for name in cut)
    return SegmentTraces(
        tuple(sorted(indexed - logs)),
        frozenset((int(each[1]), int(each[2])) for each in dropped if each is not None),
    )


def _names(files: FileSystem, directory: str) -> list[str]:
    try:
        return [entry.name for entry in files.list(directory)] if files.exists(directory) else []
    except DiskError:
        return []


def was_cleaned(files: FileSystem, log_directory: str, topic_partition: TopicPartition) -> bool:
    """Whether a cleaner has been through the log; so too where its checkpoint cannot be read."""
    try:
        path = f"{log_directory}/{CLEANER_CHECKPOINT}"
        return topic_partition in read_offsets(files, path)
    except (CorruptFileError, DiskError):
        return True


def is_dense(base_offset: int, batches: Iterable[BatchHeader]) -> bool:
    """Whether the batches of a segment leave out no offset from ``base_offset`` to their end."""
    expected = base_offset
    for batch in batches:
        # The first offset of old compressed messages is not in their header.
        if batch.base_offset >= 0 and batch.base_offset != expected:
            return False
        expected = batch.next_offset
    return True
