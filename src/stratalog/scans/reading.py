"""Reading a task: the bytes of its slices, as record batches.

Files are read with ``pread`` into one buffer that is used again, never mapped: their owner may cut
them. Memory is that buffer and the columns of one record batch, whatever the size of the slice.

Every batch that is read is held against its CRC, and against its place: within a segment offsets
grow. Indexes have no part in it; what was aborted is read off the log (see ``fates``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratalog.errors import (
    CorruptBatchError,
    CorruptSegmentError,
    RecordTooLargeError,
    StratalogError,
    UnsupportedCompressionError,
)
from stratalog.records import BatchHeader, read_header
from stratalog.records._kernels import ColumnDecoder
from stratalog.records.columns import AbortedTransaction, column_bits, take_arrays
from stratalog.scans.columns import ColumnAssembly
from stratalog.scans.errors import DataLostError
from stratalog.scans.fates import LOOK_AHEAD_BYTES, Fates
from stratalog.scans.gaps import GapRows
from stratalog.scans.holes import Holes
from stratalog.scans.leasing import LeaseRenewal
from stratalog.scans.merging import merge_small
from stratalog.scans.opening import check_directory, open_slice
from stratalog.scans.permissive import Piece, Survey, survey_slice, whole_slice
from stratalog.scans.slices import (
    ReadMode,
    ReadOptions,
    RowFilter,
    ScanIsolation,
    ScanSlice,
    ScanTask,
)
from stratalog.scans.window import Window
from stratalog.storage.absences import MISSING
from stratalog.storage.files import File, FileSystem, OsFileSystem
from stratalog.storage.layout import LOG_SUFFIX, segment_file

if TYPE_CHECKING:
    import pyarrow

# One batch may decompress to no more: 1 GiB of zeros is 32 KiB of zstd.
DECOMPRESSED_MAX_BYTES = 1 << 28
# Rows of a record batch, where they are so small that bytes would allow for many more.
TARGET_ROWS = 1 << 16
_CUT = "the file ends before the planned bytes do: it was truncated since the scan was planned"
_FAULTS = (CorruptBatchError, UnsupportedCompressionError, RecordTooLargeError)


@dataclass(slots=True)
class ScanReport:
    """What reading came to, counted as it happens. ``batches`` are those of the log;
    ``offsets_missing`` are of segments that are gone, passed over in mode ``permissive``."""

    bytes_read: int = 0
    bytes_damaged: int = 0
    offsets_missing: int = 0
    batches: int = 0
    rows: int = 0
    gaps: int = 0


def read_task(
    task: ScanTask,
    options: ReadOptions,
    *,
    files: FileSystem | None = None,
    report: ScanReport | None = None,
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of the task's slices in their order, or with ``options.gaps`` what they leave out.

    A slice that has a ``gap`` has no file.
    """
    files = OsFileSystem() if files is None else files
    report = ScanReport() if report is None else report
    reader = _TaskReader(files, options, report)
    renewal = LeaseRenewal(task.log_directory, task.lease_ids, task.lease_seconds)
    renewal.maybe_renew()
    for batch in reader.gaps(task) if options.gaps else merge_small(reader.rows(task)):
        if options.gaps:
            report.gaps += batch.num_rows
        else:
            report.rows += batch.num_rows
        yield batch
        renewal.maybe_renew()


@dataclass(slots=True)
class _Reading:
    """A slice that is being read; ``why_missing`` tells, in the end, if the offsets from
    ``next_offset`` on were there once."""

    planned: ScanSlice
    decoder: ColumnDecoder
    why_missing: str = ""

    @property
    def next_offset(self) -> int:
        """The first offset of the slice behind the last batch that was read."""
        return max(self.planned.start_offset, self.decoder.next_offset)

    @property
    def has_hole(self) -> bool:
        return self.next_offset < self.planned.end_offset


class _TaskReader:
    """Reads slices one after the other through one window."""

    def __init__(self, files: FileSystem, options: ReadOptions, report: ScanReport) -> None:
        self._files = files
        self._options = options
        self._report = report
        self._window = Window()
        self._holes = Holes(files)
        self._checked: set[tuple[str, str]] = set()

    def rows(self, task: ScanTask) -> Iterator[pyarrow.RecordBatch]:
        for planned in task.slices:
            if planned.gap:
                continue
            assembly = ColumnAssembly(
                self._options.columns,
                topic=planned.topic_partition.topic,
                partition=planned.topic_partition.partition,
                segment_file=segment_file(
                    str(planned.topic_partition), planned.base_offset, LOG_SUFFIX
                ),
            )
            decoder = self._decoder(planned, column_bits(assembly.decoded))
            reading = _Reading(planned, decoder)
            for _ in self._read(reading):
                if decoder.rows:
                    rows = decoder.rows
                    arrays = take_arrays(decoder, assembly.decoded, null_headers=True)
                    yield assembly.batch(rows, arrays)
            if reading.why_missing:
                self._tell_missing(reading)

    def gaps(self, task: ScanTask) -> Iterator[pyarrow.RecordBatch]:
        rows = GapRows()
        for planned in task.slices:
            key = planned.topic_partition
            if planned.gap:
                yield from rows.add(key, planned.start_offset, planned.end_offset, planned.gap)
                continue
            decoder = self._decoder(planned, 0)
            reading = _Reading(planned, decoder)
            for _ in self._read(reading):
                yield from rows.take(key, decoder)
            decoder.finish_gaps()
            if reading.why_missing:
                missing_from = reading.next_offset
                yield from rows.take(key, decoder, end_offset=missing_from)
                yield from rows.add(key, missing_from, planned.end_offset, MISSING)
            else:
                yield from rows.take(key, decoder)
        yield from rows.finish()

    def _tell_missing(self, reading: _Reading) -> None:
        planned = reading.planned
        if self._options.mode is ReadMode.PERMISSIVE:
            self._report.offsets_missing += planned.end_offset - reading.next_offset
            return
        raise DataLostError(
            planned.topic_partition, reading.next_offset, planned.end_offset, reading.why_missing
        )

    def _decoder(self, planned: ScanSlice, wanted: int) -> ColumnDecoder:
        options = self._options
        # Gaps are of the log, not of what a query makes of it.
        kept = (None if options.gaps else options.row_filter) or RowFilter()
        return ColumnDecoder(
            wanted,
            start_offset=planned.start_offset,
            end_offset=planned.end_offset,
            target_bytes=options.target_bytes,
            target_rows=TARGET_ROWS,
            aborted=None if options.isolation is ScanIsolation.READ_COMMITTED else (),
            segment_base_offset=planned.base_offset,
            in_microseconds=True,
            gaps=options.gaps,
            min_timestamp_ms=_within_range(kept.min_timestamp_ms),
            max_timestamp_ms=_within_range(kept.max_timestamp_ms),
            keys=kept.keys,
        )

    def _read(self, reading: _Reading) -> Iterator[None]:
        """Feed the slice to its decoder; pauses when what that holds should be taken."""
        planned, decoder = reading.planned, reading.decoder
        key = (planned.directory, planned.directory_id)
        if key not in self._checked:
            check_directory(self._files, planned)
            self._checked.add(key)
        file = open_slice(self._files, planned)
        read_before = self._window.bytes_read
        try:
            reader = _SliceReader(
                self._files, file, planned, decoder, self._window, self._options.mode, self._report
            )
            yield from reader.run()
            if reading.has_hole and not reader.ends_damaged:
                found = self._holes.why_missing(planned, file, reading.next_offset)
                reading.why_missing = found or ""
        finally:
            file.close()
            self._report.bytes_read += self._window.bytes_read - read_before
            self._report.batches += decoder.batches


class _SliceReader:
    """Feeds the bytes of one slice to a decoder."""

    def __init__(
        self,
        files: FileSystem,
        file: File,
        planned: ScanSlice,
        decoder: ColumnDecoder,
        window: Window,
        mode: ReadMode,
        report: ScanReport,
    ) -> None:
        self._files = files
        self._file = file
        self._planned = planned
        self._decoder = decoder
        self._window = window
        self._is_permissive = mode is ReadMode.PERMISSIVE
        self._report = report
        self._pieces: tuple[Piece, ...] = ()
        self._is_damaged_last = False

    def run(self) -> Iterator[None]:
        survey = self._survey()
        self._pieces = survey.pieces
        for piece in self._pieces:
            self._window.begin(self._file, piece.start_position, piece.end_position)
            if piece.start_position < piece.end_position:
                self._is_damaged_last = False
            yield from self._read_window()
            if piece.is_followed_by_damage:
                self._decoder.note_damage()
                self._is_damaged_last = True
        yield
        if (self._window.is_cut or survey.is_cut) and not self._has_all():
            raise self._lost()

    @property
    def ends_damaged(self) -> bool:
        """Whether damage was passed over behind the last batch."""
        return self._is_damaged_last

    def _survey(self) -> Survey:
        if not self._is_permissive:
            return whole_slice(self._planned)
        survey = survey_slice(self._file, self._planned)
        self._report.bytes_read += survey.bytes_read
        self._report.bytes_damaged += survey.bytes_damaged
        return survey

    def _read_window(self) -> Iterator[None]:
        window, decoder = self._window, self._decoder
        while not window.is_done:
            window.fill()
            try:
                taken = self._add()
                if taken == 0 and not decoder.full:
                    window.make_room()
            except _FAULTS as error:
                yield  # what came before it
                self._pass_over(error)
                continue
            window.take(taken)
            if decoder.full:
                yield

    def _add(self) -> int:
        """Whole batches of the window; returns how many bytes they are."""
        window, decoder = self._window, self._decoder
        taken = decoder.add(
            window.view,
            0,
            window.position,
            DECOMPRESSED_MAX_BYTES,
            window.remaining_bytes,
        )
        if decoder.is_undecided:
            decoder.decide(self._aborted(window.position + taken))
            return decoder.add(
                window.view,
                taken,
                window.position,
                DECOMPRESSED_MAX_BYTES,
                window.remaining_bytes - taken,
            )
        return taken

    def _aborted(self, position: int) -> list[AbortedTransaction]:
        """The aborted transactions of the slice from ``position`` on."""
        fates = Fates(
            self._files,
            self._file,
            self._planned,
            look_ahead_bytes=LOOK_AHEAD_BYTES,
            is_permissive=self._is_permissive,
        )
        pieces = [
            (max(piece.start_position, position), piece.end_position)
            for piece in self._pieces
            if piece.end_position > position
        ]
        try:
            return fates.find(pieces)
        except CorruptBatchError as error:
            raise CorruptSegmentError(
                self._file.path, error.position, error.base_offset, error.reason
            ) from error
        finally:
            self._report.bytes_read += fates.bytes_read

    # --- what is not as it should be -------------------------------------------------------------

    def _pass_over(self, error: StratalogError) -> None:
        """Leave out the batch that ``error`` is about, or raise."""
        window, decoder = self._window, self._decoder
        window.take(decoder.stopped_at)
        if window.is_cut and _is_cut_short(window):
            if self._has_all():
                window.take(window.remaining_bytes)
                return
            raise self._lost() from error
        header = _header_at(window)
        if not self._is_permissive or header is None:
            offset = decoder.next_offset if header is None else header.base_offset
            raise CorruptSegmentError(
                self._file.path, window.position, offset, _reason(error)
            ) from error
        decoder.skip_batch(header.base_offset, header.next_offset)
        self._report.bytes_damaged += header.size_bytes
        window.take(header.size_bytes)

    def _has_all(self) -> bool:
        """Whether what was cut off lies behind the offsets that were asked for."""
        return self._decoder.next_offset >= self._planned.end_offset

    def _lost(self) -> DataLostError:
        lost_from = max(self._planned.start_offset, self._decoder.next_offset)
        return DataLostError(
            self._planned.topic_partition, lost_from, self._planned.end_offset, _CUT
        )


def _within_range(timestamp_ms: int | None) -> int | None:
    """A condition may name any number; a record's timestamp has 64 bits."""
    return None if timestamp_ms is None else max(-(2**63), min(timestamp_ms, 2**63 - 1))


def _header_at(window: Window) -> BatchHeader | None:
    try:
        return read_header(window.view, 0, window.position)
    except CorruptBatchError:
        return None


def _is_cut_short(window: Window) -> bool:
    """Whether the batch at the start of the window runs past the end of the file."""
    header = _header_at(window)
    return header is None or header.size_bytes > window.remaining_bytes


def _reason(error: StratalogError) -> str:
    return error.reason if isinstance(error, CorruptBatchError) else str(error)
