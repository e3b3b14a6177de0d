"""Checking one segment: every batch and record of its ``.log``, and every entry of its indexes.

Safe beside an owner that is writing. Files are read with ``pread``. Indexes are read before the
log: an owner writes a batch before the entry that points to it, so whatever an index said must be
in the log by now. The one exception is told by the markers: that an abort *has* its entry is seen
in a copy of the transaction index made after the log was read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import (
    BatchHeader,
    ControlRecord,
    SegmentScan,
    read_control_batch,
)
from stratalog.storage.check_indexes import (
    IndexContext,
    check_offset_index,
    check_time_index,
    read_aborted,
)
from stratalog.storage.check_producers import Piece
from stratalog.storage.files import File, FileSystem, read_file
from stratalog.storage.findings import Finding, Kind, error, warning
from stratalog.storage.inspection import SegmentFiles
from stratalog.storage.layout import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from stratalog.storage.resync import pass_over
from stratalog.storage.transactions import AbortedTransaction

_READ_BYTES = 4 << 20

# Every batch, also the first, gets an entry: the tables that index entries are looked up in.
_EVERY_BATCH = -1


Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class BadRange:
    """Bytes ``[start, end)`` that are no batches, and the offsets that may have been in them."""

    start: int
    end: int
    start_offset: int
    end_offset: int
    reason: str
    is_zeros: bool = False
    holds_batches: bool = False


@dataclass(slots=True)
class SegmentFacts:
    """What reading a whole segment has told."""

    files: SegmentFiles
    size_bytes: int = 0
    next_offset: int = 0
    batch_count: int = 0
    record_count: int = 0
    codec_mask: int = 0
    first_timestamp_ms: int = -1
    max_timestamp_ms: int = -1
    offset_entries: int = 0
    time_entries: int = 0
    bad: list[BadRange] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    aborted_after: list[AbortedTransaction] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_gone: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether every offset has its record: nothing was compacted away."""
        held = self.next_offset - self.files.base_offset
        return not self.bad and self.record_count == held


@dataclass(frozen=True, slots=True)
class _IndexBytes:
    """The index files as they were before the log was read; None for one that is not there."""

    offsets: bytes | None
    times: bytes | None
    aborted: bytes | None


class SegmentCheck:
    """One look at one segment."""

    def __init__(
        self,
        files: FileSystem,
        segment: SegmentFiles,
        *,
        is_last: bool,
        end_position: int | None = None,
        stops: Sequence[int] = (),
        check_records: bool = True,
        progress: Progress | None = None,
    ) -> None:
        """``end_position`` is where the owner says its batches end, if it is known; ``stops`` are
        offsets of snapshots at which the producers' state is wanted."""
        self._files = files
        self._segment = segment
        self._is_last = is_last
        self._end_position = end_position
        self._stops = sorted(set(stops))
        self._progress = progress or (lambda _bytes: None)
        self._scan = SegmentScan(segment.base_offset, _EVERY_BATCH, check_records)
        self.facts = SegmentFacts(segment, next_offset=segment.base_offset)

    def run(self) -> SegmentFacts:
        try:
            indexes = self._read_indexes()
            file = self._files.open(self._segment.log_path, writable=False)
        except DiskError as failure:
            return self._unreadable(failure)
        try:
            self._read_log(file)
        except DiskError as failure:
            return self._unreadable(failure)
        finally:
            file.close()
        self._take_facts()
        self._tell_bad_ranges()
        self._tell_misnumbered()
        self._check_indexes(indexes)
        return self.facts

    def _check_indexes(self, indexes: _IndexBytes) -> None:
        facts, segment = self.facts, self._segment
        about = IndexContext(
            segment.base_offset, self._is_last, facts.batch_count > 0, facts.max_timestamp_ms
        )
        offsets = check_offset_index(
            about, segment.path(OFFSET_INDEX_SUFFIX), indexes.offsets, self._scan.offset_entries
        )
        times = check_time_index(
            about, segment.path(TIME_INDEX_SUFFIX), indexes.times, self._scan.time_entries
        )
        path = segment.path(TRANSACTION_INDEX_SUFFIX)
        before = read_aborted(path, indexes.aborted)
        after = read_aborted(path, self._read_aborted_again(indexes.aborted))
        facts.offset_entries = offsets.entries
        facts.time_entries = times.entries
        facts.aborted, facts.aborted_after = before.transactions, after.transactions
        facts.findings += offsets.findings + times.findings + before.findings

    def _read_aborted_again(self, before: bytes | None) -> bytes | None:
        try:
            return self._read_optional(TRANSACTION_INDEX_SUFFIX)
        except DiskError as failure:
            self._unreadable(failure)
            return before

    def _unreadable(self, failure: DiskError) -> SegmentFacts:
        # A file may go at any moment: retention and cleaning rename and unlink.
        if not self._files.exists(self._segment.log_path):
            self.facts.is_gone = True
            return self.facts
        self._add(error(Kind.UNREADABLE, failure.path, f"cannot be read: {failure.reason}"))
        return self.facts

    def _add(self, finding: Finding) -> None:
        self.facts.findings.append(finding)

    def _read_optional(self, suffix: str) -> bytes | None:
        path = self._segment.path(suffix)
        if not self._files.exists(path):
            return None
        try:
            return read_file(self._files, path)
        except DiskError:
            if self._files.exists(path):
                raise
            return None

    def _read_indexes(self) -> _IndexBytes:
        return _IndexBytes(
            self._read_optional(OFFSET_INDEX_SUFFIX),
            self._read_optional(TIME_INDEX_SUFFIX),
            self._read_optional(TRANSACTION_INDEX_SUFFIX),
        )

    # --- the log -------------------------------------------------------------------------------

    def _read_log(self, file: File) -> None:
        scan = self._scan
        end = file.size_bytes() if self._end_position is None else self._end_position
        self.facts.size_bytes = end
        self._pieces = [Piece(self._segment.base_offset)]
        buffer = bytearray(min(_READ_BYTES, max(end, 1)))
        while scan.position < end:
            before = scan.position
            count = file.read_into(before, memoryview(buffer)[: end - before])
            view = memoryview(buffer)[:count]
            self._note(scan.feed(view), view, before)
            if scan.position > before:
                self._progress(scan.position - before)
            elif scan.fault is None and len(buffer) < scan.wanted_bytes <= end - before:
                buffer = bytearray(scan.wanted_bytes)
                continue
            if scan.fault is not None or scan.position == before:
                self._pass_over(file, end)
        self._pieces[-1].end_offset = scan.next_offset
        self.facts.pieces = self._pieces

    def _note(self, headers: list[BatchHeader], view: memoryview, start: int) -> None:
        """Keep what these batches tell of epochs and producers."""
        epochs = self.facts.epochs
        for header in headers:
            epoch = header.partition_leader_epoch
            if header.magic >= 2 and (not epochs or epochs[-1][0] != epoch):
                epochs.append((epoch, header.base_offset))
            if header.producer_id < 0:
                continue
            if self._stops and header.last_offset >= self._stops[0]:
                self._end_piece(header.last_offset)
            if header.is_control:
                at = header.position - start
                self._pieces[-1].add_marker(header, _control(view[at : at + header.size_bytes]))
            else:
                self._pieces[-1].add_data(header)

    def _end_piece(self, offset: int) -> None:
        while self._stops and offset >= self._stops[0]:
            self._pieces[-1].end_offset = self._stops.pop(0)
            self._pieces.append(Piece(offset))

    def _pass_over(self, file: File, end: int) -> None:
        """Note the bytes that are no batch, and go on at the next one that is."""
        start = self._scan.position
        gap = pass_over(file, self._scan, end=end)
        is_zeros = gap.end == end and _is_zeros(file, gap.start, end)
        self.facts.bad.append(
            BadRange(
                gap.start,
                gap.end,
                gap.start_offset,
                gap.end_offset,
                gap.reason,
                is_zeros,
                gap.holds_batches,
            )
        )
        self._progress(gap.end - start)

    def _take_facts(self) -> None:
        facts, scan = self.facts, self._scan
        facts.next_offset = scan.next_offset
        facts.batch_count = scan.batch_count
        facts.record_count = scan.record_count
        facts.codec_mask = scan.codec_mask
        facts.first_timestamp_ms = scan.first_timestamp_ms
        facts.max_timestamp_ms = scan.max_timestamp_ms

    def _tell_bad_ranges(self) -> None:
        path = self._segment.log_path
        for bad in self.facts.bad:
            size = bad.end - bad.start
            if bad.end < self.facts.size_bytes:
                self._add(
                    error(
                        Kind.BATCH,
                        path,
                        f"{bad.reason}; {size} bytes until the next valid batch, which begins at "
                        f"position {bad.end} with offset {bad.end_offset}",
                        position=bad.start,
                        offset=bad.start_offset,
                    )
                )
            elif self._is_last and not bad.holds_batches:
                what = "zeros" if bad.is_zeros else f"no whole batch: {bad.reason}"
                self._add(
                    warning(
                        Kind.TAIL,
                        path,
                        f"the last {size} bytes are {what}",
                        position=bad.start,
                        offset=bad.start_offset,
                    )
                )
            else:
                self._add(
                    error(
                        Kind.BATCH,
                        path,
                        f"{bad.reason}; no valid batch follows in the last {size} bytes",
                        position=bad.start,
                        offset=bad.start_offset,
                    )
                )

    def _tell_misnumbered(self) -> None:
        count, position = self._scan.misnumbered_count, self._scan.misnumbered_position
        if count:
            self._add(
                warning(
                    Kind.RECORD_OFFSETS,
                    self._segment.log_path,
                    f"{count} batches, the first of them here, have records whose offset deltas do "
                    "not grow within the batch: consumers may pass over such records; scans and "
                    "compaction count them in their order",
                    position=position,
                )
            )


def _control(data: memoryview) -> ControlRecord | None:
    try:
        return read_control_batch(data)
    except CorruptBatchError:
        return None


def _is_zeros(file: File, start: int, end: int) -> bool:
    return not any(piece.strip(b"\0") for piece in _pieces(file, start, end))


def _pieces(file: File, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = file.read_at(start, min(_READ_BYTES, end - start))
        if not piece:
            return
        yield piece
        start += len(piece)
