"""Where a log ends that nobody can be asked about, and where its committed part does.

A log without an owner ends behind its last complete valid batch: bytes at the end that hold no
batch are an interrupted write; damage with valid batches behind it is not the end, and is for the
reader to tell of, though recovery will cut there what was not known to be flushed. The last stable
offset is that of the oldest transaction without a marker: from the newest snapshot of the
producers, and the batches behind it.
"""

from collections.abc import Iterable, Iterator

from stratalog.errors import CorruptFileError, DiskError
from stratalog.records import BatchHeader, SegmentScan
from stratalog.scans.places import SegmentPlaces
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.inspection import SegmentTable
from stratalog.storage.layout import SNAPSHOT_SUFFIX, segment_file
from stratalog.storage.resync import pass_over
from stratalog.storage.snapshots import decode_snapshot

_SCAN_BYTES = 1 << 20
_INDEX_INTERVAL_BYTES = 1 << 30  # no entries are wanted


def find_log_end(files: FileSystem, directory: str, segments: SegmentTable) -> tuple[int, int]:
    """The log end offset, and where the last segment's valid bytes end."""
    if not len(segments):
        return 0, 0
    last = segments[len(segments) - 1]
    if last.size_bytes == 0:
        return last.base_offset, 0
    with SegmentPlaces(files, directory, last) as places:
        walk = ValidBatches(places, places.last_hint())
        for _headers in walk:
            pass
        return walk.next_offset, walk.end_position


class ValidBatches:
    """Walks the batches of a segment whose CRCs are right, around damage.

    Iterating gives, piece by piece, the headers of batches that have a producer. At the end,
    ``end_position`` and ``next_offset`` are those of the last valid batch.
    """

    def __init__(self, places: SegmentPlaces, position: int) -> None:
        self._places = places
        self._scan = SegmentScan(places.base_offset, _INDEX_INTERVAL_BYTES, check_records=False)
        self._scan.start(position, places.base_offset, 0, -1, -1, -1)
        self.end_position = position
        self.next_offset = places.base_offset

    def __iter__(self) -> Iterator[list[BatchHeader]]:
        scan, end, size = self._scan, self._places.size_bytes, _SCAN_BYTES
        while scan.position < end:
            before = scan.position
            yield scan.feed(self._places.file.read_at(before, min(size, end - before)))
            self.end_position = scan.position
            self.next_offset = max(scan.next_offset, self._places.base_offset)
            if scan.fault is None and scan.position > before:
                continue
            if scan.fault is None and size < scan.wanted_bytes <= end - before:
                size = scan.wanted_bytes
                continue
            if pass_over(self._places.file, scan, end=end).end >= end:
                return


def find_last_stable_offset(
    files: FileSystem,
    directory: str,
    segments: SegmentTable,
    *,
    snapshots: Iterable[int],
    start_offset: int,
    end_offset: int,
) -> int:
    """The first offset of the oldest transaction that is open at ``end_offset``; else that."""
    known_offset, ongoing = _newest_snapshot(files, directory, snapshots, end_offset)
    for place in range(max(segments.floor(known_offset), 0), len(segments)):
        each = segments[place]
        if each.base_offset >= end_offset:
            break
        with SegmentPlaces(files, directory, each) as places:
            position = places.hint_for(known_offset)
            for headers in ValidBatches(places, position):
                for header in headers:
                    if known_offset <= header.last_offset < end_offset:
                        _follow(ongoing, header)
    return max(min(ongoing.values(), default=end_offset), start_offset)


def _follow(ongoing: dict[int, int], header: BatchHeader) -> None:
    if not header.is_transactional:
        return
    if header.is_control:
        ongoing.pop(header.producer_id, None)
    else:
        ongoing.setdefault(header.producer_id, header.base_offset)


def _newest_snapshot(
    files: FileSystem, directory: str, snapshots: Iterable[int], at_most: int
) -> tuple[int, dict[int, int]]:
    """Its offset, and where the transactions began that were open there."""
    for offset in sorted((each for each in snapshots if 0 <= each <= at_most), reverse=True):
        path = segment_file(directory, offset, SNAPSHOT_SUFFIX)
        try:
            states = decode_snapshot(path, read_file(files, path))
        except (CorruptFileError, DiskError):
            continue
        return offset, {
            state.producer_id: state.transaction_first_offset
            for state in states
            if state.transaction_first_offset is not None
        }
    return 0, {}
