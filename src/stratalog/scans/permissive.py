"""Reading past damage: which bytes of a slice are sound, found before the first row is returned.

A batch can be in the wrong place with a right CRC, its offset lying outside of that, and it is the
batch behind it that then seems to be wrong. So the slice is checked as a whole first, by the rules
of recovery, and only what is left is read: twice the reading, and no row twice or at an offset that
is not its own.
"""

from dataclasses import dataclass

from stratalog.records import SegmentScan
from stratalog.records._kernels import uninitialized
from stratalog.scans.slices import ScanSlice
from stratalog.storage.files import File
from stratalog.storage.resync import pass_over

_PIECE_BYTES = 4 << 20
# Larger than any segment: no index is made here.
_NO_INDEX = 1 << 62


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to be read; none, if damage comes first."""

    start_position: int
    end_position: int
    is_followed_by_damage: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """``is_cut``: the file ends before the slice does."""

    pieces: tuple[Piece, ...]
    bytes_read: int
    bytes_damaged: int
    is_cut: bool = False


def whole_slice(planned: ScanSlice) -> Survey:
    """For who stops at damage: it will be met."""
    return Survey((Piece(planned.start_position, planned.end_position),), 0, 0)


def survey_slice(file: File, planned: ScanSlice) -> Survey:
    """The sound pieces of the slice. A file that is shorter than planned is surveyed to its end."""
    end = min(planned.end_position, file.size_bytes())
    scan = SegmentScan(planned.base_offset, _NO_INDEX, check_records=False, no_headers=True)
    scan.start(planned.start_position, planned.base_offset, planned.start_position, -1, -1, -1)
    buffer = memoryview(uninitialized(min(_PIECE_BYTES, max(end - planned.start_position, 1))))
    pieces: list[Piece] = []
    start = planned.start_position
    bytes_read = bytes_damaged = 0
    while scan.position < end:
        before = scan.position
        count = file.read_into(before, buffer[: end - before])
        bytes_read += count
        scan.feed(buffer[:count])
        if scan.fault is None and scan.position == before:
            if len(buffer) < scan.wanted_bytes <= end - before:
                buffer = memoryview(uninitialized(scan.wanted_bytes))
                continue
        elif scan.fault is None:
            continue
        gap = pass_over(file, scan, end=end)
        pieces.append(Piece(start, gap.start, is_followed_by_damage=True))
        bytes_damaged += gap.end - gap.start
        start = gap.end
    if start < end:
        pieces.append(Piece(start, end))
    return Survey(tuple(pieces), bytes_read, bytes_damaged, end < planned.end_position)
