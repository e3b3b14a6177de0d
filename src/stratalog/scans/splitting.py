"""Cutting slices where batches begin, and packing small ones together.

A cut is a place where a batch begins whose first offset is known; the index says where one may be,
and the batch itself confirms it. Where there is none, a slice stays as large as it is.
"""

from collections.abc import Iterable, Iterator

from stratalog.errors import DiskError
from stratalog.scans.holes import Holes
from stratalog.scans.places import SegmentPlaces
from stratalog.scans.slices import ScanSlice, ScanTask, SliceEnd
from stratalog.storage.files import FileSystem
from stratalog.storage.inspection import ListedSegment

# What opening a file costs, in bytes that could have been read meanwhile: so that a task is not
# given thousands of tiny segments because they are small.
_OPEN_BYTES = 64 << 10


def split_by_bytes(
    files: FileSystem, slices: Iterable[ScanSlice], target_bytes: int
) -> Iterator[ScanSlice]:
    """The same bytes in slices of about ``target_bytes`` at most, even ones of each segment."""
    for each in slices:
        if each.size_bytes <= target_bytes:
            yield each
            continue
        parts = -(-each.size_bytes // target_bytes)
        step = -(-each.size_bytes // parts)
        try:
            with _places(files, each) as places:
                cuts = list(_cuts(places, each, step))
        except DiskError:
            cuts = []
        yield from _cut_at(each, cuts)


def _places(files: FileSystem, planned: ScanSlice) -> SegmentPlaces:
    identity = planned.identity
    listed = ListedSegment(
        planned.base_offset, identity.size_bytes, identity.inode, identity.modified_ms
    )
    return SegmentPlaces(files, planned.directory, listed)


def _cuts(places: SegmentPlaces, planned: ScanSlice, step: int) -> Iterator[tuple[int, int]]:
    """Offsets and positions to cut at, both growing, inside the slice."""
    offset, position = planned.start_offset, planned.start_position
    target, seen = position + step, position
    while target < planned.end_position:
        found = places.boundary_before(target)
        if found is not None and found.position > position and found.offset > offset:
            if found.position >= planned.end_position or found.offset >= planned.end_offset:
                return
            offset, position = found
            yield offset, position
        # A batch may be many steps long: there is nothing to be found inside it.
        seen = seen if found is None else max(seen, found.position)
        batch = places.batch_at(seen)
        behind = seen if batch is None else seen + batch.size_bytes
        target = max(target + step, behind)


def _cut_at(planned: ScanSlice, cuts: list[tuple[int, int]]) -> Iterator[ScanSlice]:
    offset, position = planned.start_offset, planned.start_position
    for cut_offset, cut_position in cuts:
        yield planned._replace(
            start_offset=offset,
            end_offset=cut_offset,
            start_position=position,
            end_position=cut_position,
            end=SliceEnd.UNKNOWN,
        )
        offset, position = cut_offset, cut_position
    yield planned._replace(start_offset=offset, start_position=position)


def split_by_records(
    files: FileSystem, slices: Iterable[ScanSlice], max_records: int, holes: Holes
) -> Iterator[ScanSlice]:
    """The same offsets in slices of ``max_records`` offsets at most. A cut may lie inside a
    batch: then two slices read it, and each gives its own records of it."""
    for each in slices:
        if each.end_offset - each.start_offset <= max_records or not each.size_bytes:
            yield each
            continue
        try:
            with _places(files, each) as places:
                # All before the first is given away: an error in between would give some twice.
                parts = list(_by_records(places, each, max_records, holes))
        except DiskError:
            parts = [
                _part(each, start, min(start + max_records, each.end_offset))
                for start in range(each.start_offset, each.end_offset, max_records)
            ]
        yield from parts


def _by_records(
    places: SegmentPlaces, planned: ScanSlice, max_records: int, holes: Holes
) -> Iterator[ScanSlice]:
    hole = _hole(places, planned)
    if hole is not None and not holes.may_be_missing(hole):
        hole = None
    last = planned.end_offset if hole is None else hole.start_offset
    for start in range(planned.start_offset, last, max_records):
        end = min(start + max_records, last)
        begin, finish = planned.start_position, planned.end_position
        if start > planned.start_offset:
            begin = min(max(places.start_of(start), begin), finish)
        if end < planned.end_offset:
            finish = max(min(places.end_of(end), finish), begin)
        if begin < finish:
            part = _part(planned, start, end)
            yield part._replace(start_position=begin, end_position=finish)
    if hole is not None:
        yield hole


def _hole(places: SegmentPlaces, planned: ScanSlice) -> ScanSlice | None:
    """The offsets at the end of the slice that no batch of the segment has."""
    next_offset = places.next_offset()
    if next_offset is None or next_offset >= planned.end_offset:
        return None
    start = max(next_offset, planned.start_offset)
    return planned._replace(start_offset=start, start_position=planned.end_position)


def _part(planned: ScanSlice, start_offset: int, end_offset: int) -> ScanSlice:
    is_last = end_offset == planned.end_offset
    return planned._replace(
        start_offset=start_offset,
        end_offset=end_offset,
        end=planned.end if is_last else SliceEnd.UNKNOWN,
    )


def pack(
    slices: Iterable[ScanSlice],
    target_bytes: int,
    *,
    max_records: int | None,
    is_even: bool,
    log_directory: str,
) -> list[ScanTask]:
    """Neighbours together, as long as a task does not grow over the target. ``is_even``: only
    bytes count, since so many tasks are wanted as the target makes."""
    tasks: list[ScanTask] = []
    held: list[ScanSlice] = []
    held_bytes = held_records = 0
    open_bytes = 0 if is_even else min(_OPEN_BYTES, target_bytes)
    for each in slices:
        size = each.size_bytes + open_bytes
        records = each.end_offset - each.start_offset
        is_full = held_bytes + size > target_bytes + open_bytes or (
            max_records is not None and held_records + records > max_records
        )
        if held and is_full:
            tasks.append(ScanTask(tuple(held), log_directory))
            held, held_bytes, held_records = [], 0, 0
        held.append(each)
        held_bytes += size
        held_records += records
    if held:
        tasks.append(ScanTask(tuple(held), log_directory))
    return tasks
