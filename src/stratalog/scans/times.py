"""Offsets by time and by bytes, of a partition as a snapshot shows it."""

from stratalog.scans.places import SegmentPlaces
from stratalog.scans.snapshot import PartitionSnapshot
from stratalog.storage.files import FileSystem, OsFileSystem


def offset_for_timestamp(
    partition: PartitionSnapshot, timestamp_ms: int, *, files: FileSystem | None = None
) -> int | None:
    """The offset of the first record, in offset order, that is not older; None if all are.

    Exact, whatever the order of timestamps. Where damage hides what would answer, the first
    offset that may be hidden: whoever reads from there is told of the damage.
    """
    files = files or OsFileSystem()
    segments, end_offset = partition.segments, partition.high_watermark
    for place in range(max(segments.floor(partition.start_offset), 0), len(segments)):
        each = segments[place]
        if each.base_offset >= end_offset:
            break
        with SegmentPlaces(files, partition.directory, each) as places:
            limit = each.size_bytes
            if place + 1 == len(segments):
                # Behind what is known to be whole, a batch may be on its way.
                limit = max(partition.end_position, 0)
            found = _in_segment(places, timestamp_ms, partition.start_offset, limit)
        if found is None:
            continue
        if found >= end_offset:
            return None
        # What is in remote storage comes first, and may do as well.
        return partition.first_offset if found <= partition.start_offset else found
    return None


def _in_segment(
    places: SegmentPlaces, timestamp_ms: int, start_offset: int, limit: int
) -> int | None:
    for batch in places.walk(places.skip_older(timestamp_ms, 0)):
        if batch.max_timestamp_ms >= timestamp_ms and batch.last_offset >= start_offset:
            found = places.record_at_time(batch, timestamp_ms, start_offset)
            if found is not None:
                return found
    if places.walked_to >= limit:
        return None
    next_offset = max(places.base_offset, start_offset)
    for batch in places.walk(0):
        next_offset = max(next_offset, batch.next_offset)
    return next_offset


def offset_within_bytes(
    partition: PartitionSnapshot,
    start_offset: int,
    end_offset: int,
    max_bytes: int,
    *,
    files: FileSystem | None = None,
) -> int:
    """How far a reader of ``max_bytes`` comes from ``start_offset``: to where a batch begins, one
    batch at least, and never past ``end_offset``."""
    files = files or OsFileSystem()
    segments = partition.segments
    for place in range(max(segments.floor(start_offset), 0), len(segments)):
        each = segments[place]
        if each.base_offset >= end_offset:
            break
        with SegmentPlaces(files, partition.directory, each) as places:
            is_inside = start_offset > each.base_offset
            begin = places.start_of(start_offset) if is_inside else 0
            max_bytes -= each.size_bytes - begin
            if max_bytes >= 0:
                continue
            target = each.size_bytes + max_bytes
            boundary = places.boundary_before(target) if target > begin else None
            if boundary is not None and boundary.offset > start_offset:
                return min(boundary.offset, end_offset)
            if not is_inside and each.base_offset > start_offset:
                return each.base_offset  # the segments before this one are what fits
            first = next(places.walk(begin), None)
            return end_offset if first is None else min(first.next_offset, end_offset)
    return end_offset


def bytes_between(
    partition: PartitionSnapshot,
    start_offset: int,
    end_offset: int,
    *,
    files: FileSystem | None = None,
) -> int:
    """The bytes of the batches that hold these offsets."""
    files = files or OsFileSystem()
    segments, total = partition.segments, 0
    for place in range(max(segments.floor(start_offset), 0), len(segments)):
        each = segments[place]
        if each.base_offset >= end_offset or start_offset >= end_offset:
            break
        is_last = place + 1 == len(segments)
        following = None if is_last else segments.base_offsets[place + 1]
        with SegmentPlaces(files, partition.directory, each) as places:
            begin = places.start_of(start_offset) if start_offset > each.base_offset else 0
            is_whole = following is not None and following <= end_offset
            finish = each.size_bytes if is_whole else places.end_of(end_offset)
        total += max(finish - begin, 0)
    return total
