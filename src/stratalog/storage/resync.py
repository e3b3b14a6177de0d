"""Where a scan can go on when the bytes before it are no batch that belongs there.

Two things look alike and are not. Bytes that hold no batch at all, at the end of a file, are what
an interrupted write leaves. A batch with a right CRC, in the wrong place, was written on purpose:
its base offset lies outside the CRC, so a flipped bit can make one batch claim offsets far ahead,
and all the sound ones behind it then seem to go backwards. It is the odd one that is at fault.
"""

from dataclasses import dataclass

from stratalog.errors import CorruptBatchError
from stratalog.records import BatchHeader, SegmentScan, check_crc, find_valid_batch, read_header
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import File
from stratalog.storage.index import RELATIVE_OFFSET_MAX

CONTRADICTED = "its offset contradicts the batches around it"

_HEADER_BYTES = 61
_OFFSET_ENTRY_BYTES = 8
# Read at a time while searching; batches of up to the overlap are found wherever windows meet.
_WINDOW_BYTES = 64 << 20
_OVERLAP_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes ``[start, end)`` passed over, and the offsets that may have been in them.

    ``holds_batches``: some of the bytes are batches with a right CRC.
    """

    start: int
    end: int
    start_offset: int
    end_offset: int
    reason: str
    holds_batches: bool


def pass_over(file: File, scan: SegmentScan, *, end: int) -> Gap:
    """Leave the fault that ``scan`` has stopped at behind; it goes on at the gap's end."""
    gap = _odd_one_before(file, scan, end) or _until_next(file, scan, end)
    scan.resume(gap.end, gap.end_offset if gap.end == end else gap.start_offset)
    return gap


def _odd_one_before(file: File, scan: SegmentScan, end: int) -> Gap | None:
    """The batch before the fault, if the one at the fault would follow had that one begun where
    the log then ended."""
    if not scan.is_order_fault or scan.last_position < 0:
        return None
    odd = _batch_at(file, scan.last_position, scan.position)
    header = _batch_at(file, scan.position, end)
    if odd is None or header is None:
        return None
    if _first_offset(header) <= scan.offset_before_last + odd.last_offset_delta:
        return None
    if scan.offset_entries[-4:] == scan.last_position.to_bytes(4, "big"):
        del scan.offset_entries[-_OFFSET_ENTRY_BYTES:]
    return Gap(
        scan.last_position,
        scan.position,
        scan.offset_before_last,
        _first_offset(header),
        CONTRADICTED,
        holds_batches=True,
    )


def _until_next(file: File, scan: SegmentScan, end: int) -> Gap:
    reason = scan.fault or CUT_SHORT
    here = _batch_at(file, scan.position, end)
    # What lies inside a batch with a right CRC are its own contents, not batches of the log.
    start = scan.position + (1 if here is None else here.size_bytes)
    found = _find(file, start, end, scan.next_offset, scan.base_offset)
    if found is not None:
        return Gap(
            scan.position,
            found.position,
            scan.next_offset,
            _first_offset(found),
            reason,
            holds_batches=True,
        )
    stray = here or _find(file, start, end, scan.base_offset, scan.base_offset)
    return Gap(
        scan.position, end, scan.next_offset, scan.next_offset, reason, holds_batches=bool(stray)
    )


def _find(file: File, start: int, end: int, lowest: int, base_offset: int) -> BatchHeader | None:
    """The next valid batch from ``start`` on with an offset that a batch there may have."""
    highest = base_offset + RELATIVE_OFFSET_MAX
    position = start
    while position < end:
        window = file.read_at(position, min(_WINDOW_BYTES, end - position))
        at = find_valid_batch(window, 0, position, lowest, highest)
        if at >= 0:
            return read_header(window, at, position + at)
        if position + len(window) >= end or not window:
            return None
        position += max(1, len(window) - _OVERLAP_BYTES)
    return None


def has_batches(file: File, size_bytes: int, base_offset: int) -> bool:
    return _find(file, 0, size_bytes, base_offset, base_offset) is not None


def _batch_at(file: File, position: int, end: int) -> BatchHeader | None:
    """The batch at ``position``, if it is whole and its CRC is right."""
    try:
        header = read_header(file.read_at(position, _HEADER_BYTES), 0, position)
    except CorruptBatchError:
        return None
    if header is None or position + header.size_bytes > end:
        return None
    return header if check_crc(file.read_at(position, header.size_bytes)) else None


def _first_offset(header: BatchHeader) -> int:
    return header.base_offset if header.base_offset >= 0 else header.last_offset
