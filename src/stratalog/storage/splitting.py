"""Splitting a segment whose offsets reach too far from its base for an index to hold.

Old releases of Kafka could write such a segment. It is copied, batch by batch, into as many as it
takes, by the same steps a cleaner uses to swap segments, so that a crash at any of them leaves the
old segment or all of the new ones.
"""

from stratalog.records import BatchHeader
from stratalog.storage.files import FileSystem
from stratalog.storage.index import RELATIVE_OFFSET_MAX
from stratalog.storage.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    segment_file,
)
from stratalog.storage.segment import Segment

_COPY_BYTES = 4 << 20


def split_segment(files: FileSystem, directory: str, segment: Segment) -> list[int]:
    """Replace ``segment`` by segments that can be indexed; returns their base offsets.

    The new ones have no indexes yet: opening them builds what is missing.
    """
    parts = _plan(segment)
    bases = [base_offset for base_offset, _, _ in parts]
    for base_offset, start, end in parts:
        _copy(files, segment, start, end, _name(directory, base_offset) + CLEANED_SUFFIX)
    for base_offset in reversed(bases):
        plain = _name(directory, base_offset)
        files.rename(plain + CLEANED_SUFFIX, plain + SWAP_SUFFIX)
    for path in segment.mark_deleted():
        assert path.endswith(DELETED_SUFFIX)
    for base_offset in bases:
        plain = _name(directory, base_offset)
        files.rename(plain + SWAP_SUFFIX, plain)
    files.sync_directory(directory)
    return bases


def is_splittable(segment: Segment, following: Segment | None) -> bool:
    """Whether the offsets of ``segment`` grow to its end, and up to the next segment's base. A
    damaged base offset, far too high, does not fit in."""
    if following is None:
        return False
    next_offset = segment.base_offset
    for batch in segment.headers():
        first_offset = batch.base_offset if batch.base_offset >= 0 else batch.last_offset
        if first_offset < next_offset:
            return False
        next_offset = batch.next_offset
    return next_offset <= following.base_offset


def _name(directory: str, base_offset: int) -> str:
    return segment_file(directory, base_offset, LOG_SUFFIX)


def _plan(segment: Segment) -> list[tuple[int, int, int]]:
    """Base offset, start and end position of each part."""
    parts: list[tuple[int, int, int]] = []
    base_offset, start, end = segment.base_offset, 0, 0
    for batch in segment.headers():
        if batch.last_offset - base_offset > RELATIVE_OFFSET_MAX:
            if batch.position > start:
                parts.append((base_offset, start, batch.position))
            base_offset, start = _first_offset(batch), batch.position
        end = batch.position + batch.size_bytes
    # What follows the last whole batch goes along: recovery decides about it.
    return [*parts, (base_offset, start, max(end, segment.size_bytes))]


def _first_offset(batch: BatchHeader) -> int:
    # Of an old compressed message only the last offset is known without decompressing it.
    if batch.base_offset >= 0:
        return batch.base_offset
    return max(batch.last_offset - RELATIVE_OFFSET_MAX, 0)


def _copy(files: FileSystem, segment: Segment, start: int, end: int, path: str) -> None:
    files.unlink(path, missing_ok=True)
    target = files.open(path, create=True)
    try:
        for position in range(start, end, _COPY_BYTES):
            data = segment.file().read_at(position, min(_COPY_BYTES, end - position))
            target.write_at(position - start, [data])
        target.sync()
    finally:
        target.close()
