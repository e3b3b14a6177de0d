"""Opening a replica's directory, whatever happened to it before.

1. finish or undo an interrupted swap (``sweep``)
2. open the segments; rebuild a missing or corrupt index of any of them
3. after an unclean stop: read everything from the recovery point on, check every batch, rebuild
   the indexes that differ, and cut off what was being written
4. find the log end; bring leader epochs and producer state up to it

**What may be cut.** Only bytes at or above the recovery point, and only when no valid batch
follows them: that is what an interrupted write leaves. Anything else is damage. It stays where it
is, reads around it go on, reads inside it say so, and appends are refused until a person has
decided (``stratalog log repair``).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from stratalog.config import TopicConfig
from stratalog.errors import CorruptFileError, CorruptIndexError, SegmentOffsetOverflowError
from stratalog.records import BatchHeader, SegmentScan, check_crc, find_valid_batch, read_header
from stratalog.storage.checkpoint import EpochEntry
from stratalog.storage.damage import Damage
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.files import FileSystem
from stratalog.storage.index import TimestampOffset
from stratalog.storage.layout import (
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.log import LoadedLog, Log, LogContext
from stratalog.storage.ours import OwnFiles
from stratalog.storage.producers import CompletedTransaction, ProducerStates
from stratalog.storage.replay import replay, restore_newest
from stratalog.storage.segment import Segment, SegmentSizes
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import Snapshots
from stratalog.storage.sweep import sweep
from stratalog.storage.transactions import AbortedTransaction

_SCAN_BYTES = 4 << 20

Progress = Callable[[int], None]


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log had to do."""

    segments: int = 0
    scanned_segments: int = 0
    scanned_bytes: int = 0
    truncated_bytes: int = 0
    rebuilt: list[str] = field(default_factory=list)
    damage: dict[int, list[Damage]] = field(default_factory=dict)


def open_log(
    directory: str,
    config: TopicConfig,
    context: LogContext,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    progress: Progress | None = None,
) -> Log:
    """Open the log in ``directory``, which must exist; the offsets are the checkpointed ones."""
    loading = _Loading(directory, config, context, progress or (lambda _bytes: None))
    loaded = loading.run(
        clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset
    )
    log = Log(directory, config, context, loaded)
    log.recovery_report = loading.report
    log.update_high_watermark(high_watermark)
    return log


class _Loading:
    """The steps of one load, and what they know of each other."""

    def __init__(
        self, directory: str, config: TopicConfig, context: LogContext, progress: Progress
    ) -> None:
        self.directory = directory
        self.config = config
        self.context = context
        self.files: FileSystem = context.files
        self.progress = progress
        self.own = OwnFiles(context.files, directory)
        self.report = RecoveryReport()
        self.now_ms = context.clock.now_ms()
        # Segments read in full by this load: their transaction indexes are rebuilt from the log.
        self.scanned: list[Segment] = []

    def run(self, *, clean: bool, recovery_point: int, log_start_offset: int) -> LoadedLog:
        sweep(self.files, self.directory)
        segments = self._open_segments()
        damaged_at = self.own.damaged_recovery_point()
        if damaged_at is not None:
            clean, recovery_point = False, min(recovery_point, damaged_at)
        self.epochs = self._load_epochs()
        if clean:
            self._rebuild_missing_indexes(segments)
        else:
            self._rebuild_missing_indexes(segments, below=recovery_point)
            self._recover(segments, recovery_point)
        if not len(segments):
            segments.add(self._create(log_start_offset))
        log_end_offset = self._log_end_offset(segments)
        if log_end_offset < log_start_offset:
            raise CorruptFileError(
                f"{self.directory}/../{LOG_START_CHECKPOINT}",
                f"says that the log starts at {log_start_offset}, but it ends at "
                f"{log_end_offset}; nothing was deleted",
            )
        start_offset = max(log_start_offset, segments.first.base_offset)
        self._settle_epochs(segments, log_start_offset, log_end_offset)
        snapshots, producers = self._load_producers(segments, start_offset, log_end_offset)
        segments.active.become_active()
        self._note_damage(recovery_point)
        return LoadedLog(
            segments,
            self.epochs,
            producers,
            snapshots,
            start_offset,
            log_end_offset,
            max(start_offset, log_end_offset if clean else min(recovery_point, log_end_offset)),
            is_damaged=bool(self.report.damage),
        )

    # --- segments -----------------------------------------------------------------------------

    def _open_segments(self) -> Segments:
        sizes: dict[int, dict[str, tuple[int, int]]] = {}
        for entry in self.files.list(self.directory):
            known = parse_segment_file(entry.name)
            if known is not None and not known.state and known.kind in SEGMENT_SUFFIXES:
                found = sizes.setdefault(known.offset, {})
                found[known.kind] = (entry.size_bytes, entry.modified_ms)
        opened = []
        for base_offset, found in sizes.items():
            if LOG_SUFFIX in found:
                opened.append(self._open_segment(base_offset, found))
            else:
                for kind in found:
                    self.files.unlink(segment_file(self.directory, base_offset, kind))
        self.report.segments = len(opened)
        return Segments(opened)

    def _open_segment(self, base_offset: int, found: dict[str, tuple[int, int]]) -> Segment:
        segment = Segment(
            self.files,
            self.directory,
            base_offset,
            self.config,
            self.context.handles,
            created_ms=self.now_ms,
            sizes=SegmentSizes(
                log_bytes=found[LOG_SUFFIX][0],
                offset_index_bytes=found.get(OFFSET_INDEX_SUFFIX, (0, 0))[0],
                time_index_bytes=found.get(TIME_INDEX_SUFFIX, (0, 0))[0],
                has_transaction_index=TRANSACTION_INDEX_SUFFIX in found,
                modified_ms=found[LOG_SUFFIX][1],
            ),
        )
        segment.missing = [kind for kind in INDEX_SUFFIXES[:2] if kind not in found]
        return segment

    def _create(self, base_offset: int) -> Segment:
        return Segment.create(
            self.files,
            self.directory,
            base_offset,
            self.config,
            self.context.handles,
            now_ms=self.now_ms,
        )

    def _rebuild_missing_indexes(self, segments: Segments, below: int | None = None) -> None:
        """Of segments that recovery will not read anyway: index what has lost its index."""
        unread = list(segments)
        if below is not None:
            unread = [s for s in unread if s not in segments.from_floor(below)]
        for segment in unread:
            if segment.missing or not _is_sane(segment):
                scan = self._scan(segment, segments, settle=self._keep_damage)
                self._install(segment, scan)

    # --- reading a segment --------------------------------------------------------------------

    def _recover(self, segments: Segments, recovery_point: int) -> None:
        def settle(segment: Segment, scan: SegmentScan, end: int) -> bool:
            return self._settle_fault(segments, segment, scan, end, recovery_point)

        for segment in segments.from_floor(recovery_point) if len(segments) else []:
            if segment not in list(segments):
                break  # an earlier one was cut, and nothing behind the cut was worth keeping
            scan = self._scan(segment, segments, settle=settle)
            self._install(segment, scan)

    def _scan(
        self,
        segment: Segment,
        segments: Segments,
        *,
        settle: "Callable[[Segment, SegmentScan, int], bool]",
    ) -> SegmentScan:
        """Read a segment from its first byte to its last and check every batch.

        ``settle`` is asked what to do where the batches end before the file does: it resumes the
        scan and returns True, or returns False and the scan is over.
        """
        scan = SegmentScan(segment.base_offset, self.config.index_interval_bytes)
        file = segment.file()
        end = segment.size_bytes
        buffer = bytearray(min(_SCAN_BYTES, max(end, 1)))
        while True:
            before = scan.position
            count = file.read_into(before, memoryview(buffer)[: max(0, end - before)])
            self._take_epochs(scan.feed(memoryview(buffer)[:count]))
            if scan.overflow:
                raise SegmentOffsetOverflowError(
                    segment.path, segment.base_offset, scan.next_offset
                )
            if scan.position > before:
                self.progress(scan.position - before)
            elif scan.fault is None and len(buffer) < scan.wanted_bytes <= end - before:
                buffer = bytearray(scan.wanted_bytes)
                continue
            if scan.position >= end:
                break
            if (scan.fault or scan.position == before) and not settle(segment, scan, end):
                break
        self.scanned.append(segment)
        self.report.scanned_segments += 1
        self.report.scanned_bytes += scan.position
        return scan

    def _take_epochs(self, headers: list[BatchHeader]) -> None:
        for header in headers:
            if header.partition_leader_epoch > self.epochs.latest_epoch:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _settle_fault(
        self,
        segments: Segments,
        segment: Segment,
        scan: SegmentScan,
        end: int,
        recovery_point: int,
    ) -> bool:
        """An interrupted write is cut off; everything else is kept as damage."""
        if self._keep_damage_inside(segment, scan, end):
            return True
        later = [each for each in segments.above(segment.base_offset) if self._has_batches(each)]
        if later or scan.next_offset < recovery_point:
            end_offset = later[0].base_offset if later else recovery_point
            self._add_damage(segment, scan, end, end_offset)
            scan.resume(end, end_offset)
            return False
        self.report.truncated_bytes += end - scan.position
        segment.file().truncate(scan.position)
        for each in segments.above(segment.base_offset):
            self._remove(segments, each)
        return False

    def _keep_damage(self, segment: Segment, scan: SegmentScan, end: int) -> bool:
        """For segments that were flushed: nothing of them is ever cut."""
        if self._keep_damage_inside(segment, scan, end):
            return True
        self._add_damage(segment, scan, end, scan.next_offset + 1)
        scan.resume(end, scan.next_offset)
        return False

    def _keep_damage_inside(self, segment: Segment, scan: SegmentScan, end: int) -> bool:
        """Whether a valid batch follows the fault in this file; if so the scan goes on there."""
        position = self._position_of_next_batch(segment, scan, end)
        if position < 0:
            return False
        header = read_header(segment.file().read_at(position, 61), 0, position)
        assert header is not None, "a batch was found there"
        first_offset = header.base_offset if header.base_offset >= 0 else header.last_offset
        self._add_damage(segment, scan, position, first_offset)
        scan.resume(position, scan.next_offset)
        return True

    def _position_of_next_batch(self, segment: Segment, scan: SegmentScan, end: int) -> int:
        if self._is_whole(segment, scan, end):
            # Its CRC is right, so it is what was appended; its records are not. What follows it
            # begins where it ends.
            header = read_header(segment.file().read_at(scan.position, 61), 0, scan.position)
            assert header is not None, "it was whole"
            if scan.position + header.size_bytes < end:
                return scan.position + header.size_bytes
            return -1
        mapped = segment.file().map(end)
        # An offset beyond what a segment can hold is no batch of this one.
        highest = segment.base_offset + 2**31 - 1
        return find_valid_batch(mapped, scan.position + 1, 0, scan.next_offset, highest)

    def _is_whole(self, segment: Segment, scan: SegmentScan, end: int) -> bool:
        """Whether the faulty batch has a right CRC: then it was not torn, it was written so."""
        data = segment.file().read_at(scan.position, 61)
        try:
            header = read_header(data, 0, scan.position)
        except Exception:  # noqa: BLE001
            return False
        if header is None or scan.position + header.size_bytes > end:
            return False
        if header.last_offset < scan.next_offset:
            return False
        return check_crc(segment.read_batch(header))

    def _has_batches(self, segment: Segment) -> bool:
        if segment.size_bytes == 0:
            return False
        mapped = segment.file().map(segment.size_bytes)
        highest = segment.base_offset + 2**31 - 1
        return find_valid_batch(mapped, 0, 0, segment.base_offset, highest) >= 0

    def _add_damage(
        self, segment: Segment, scan: SegmentScan, end_position: int, end_offset: int
    ) -> None:
        damage = Damage(
            scan.position,
            end_position,
            scan.next_offset,
            end_offset,
            scan.fault or "the batch there is cut short",
        )
        segment.damage.add(damage)
        self.report.damage.setdefault(segment.base_offset, []).append(damage)

    def _note_damage(self, recovery_point: int) -> None:
        if self.report.damage:
            self.own.note_damage(recovery_point, self.report.damage)
        elif self.own.damaged_recovery_point() is not None:
            self.own.forget_damage()

    def _remove(self, segments: Segments, segment: Segment) -> None:
        segments.remove(segment)
        segment.discard()
        for suffix in SEGMENT_SUFFIXES:
            self.files.unlink(
                segment_file(self.directory, segment.base_offset, suffix), missing_ok=True
            )

    def _install(self, segment: Segment, scan: SegmentScan) -> None:
        """Take over what a scan found; write only the indexes that say something else."""
        scan.finish()
        segment.adopt(
            size_bytes=scan.position,
            max_timestamp=TimestampOffset(
                scan.max_timestamp_ms,
                scan.offset_of_max_timestamp if scan.max_timestamp_ms >= 0 else segment.base_offset,
            ),
            first_timestamp_ms=scan.first_timestamp_ms,
        )
        for index, entries in (
            (segment.offset_index, scan.offset_entries),
            (segment.time_index, scan.time_entries),
        ):
            # A log that was closed and opened counts its intervals anew, so that rebuilding can
            # want more entries than there is room for. They are hints: the last ones are left out.
            wanted = bytes(entries[: index.entries_max * index.entry_size])
            if index.content() != wanted:
                index.rebuild(wanted)
                self.report.rebuilt.append(index.path)
            index.trim()

    # --- what belongs to the whole log --------------------------------------------------------

    def _log_end_offset(self, segments: Segments) -> int:
        active = segments.active
        if active.damage and active.damage.ranges[-1].end_position >= active.size_bytes:
            return active.damage.ranges[-1].end_offset
        return active.next_offset()

    def _load_epochs(self) -> LeaderEpochs:
        path = f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}"
        if not self.files.exists(path):
            self.files.open(path, create=True).close()
        try:
            return LeaderEpochs.load(self.files, path)
        except CorruptFileError:
            self.report.rebuilt.append(path)
            return LeaderEpochs(self.files, path, [])

    def _settle_epochs(
        self, segments: Segments, log_start_offset: int, log_end_offset: int
    ) -> None:
        """Make the epochs agree with the log: the file is a hint, the batches are the truth."""
        if not self._epochs_agree(segments):
            self.epochs.replace(_epochs_of(segments))
            self.report.rebuilt.append(f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}")
        self.epochs.truncate_from_end(log_end_offset)
        self.epochs.truncate_from_start(log_start_offset)
        self.epochs.flush()

    def _epochs_agree(self, segments: Segments) -> bool:
        last = segments.active.last_header()
        if last is None or last.magic < 2 or last.partition_leader_epoch < 0:
            return True
        return self.epochs.epoch_for_offset(last.base_offset) == last.partition_leader_epoch

    def _load_producers(
        self, segments: Segments, log_start_offset: int, log_end_offset: int
    ) -> tuple[Snapshots, ProducerStates]:
        snapshots = Snapshots.load(self.files, self.directory)
        snapshots.remove_strays(segments.base_offsets)
        producers = ProducerStates(expiration_ms=self.context.producer_expiration_ms)
        # Behind the first segment that was read again, a snapshot may tell of batches that were
        # never flushed and are gone.
        trusted = self.scanned[0].base_offset if self.scanned else log_end_offset
        snapshots.remove_outside(log_start_offset, trusted)
        restore_newest(
            producers, snapshots, at_most=trusted, default=log_start_offset, now_ms=self.now_ms
        )
        aborted = self._replay(producers, segments, snapshots, log_end_offset)
        for segment in self.scanned:
            wanted = aborted.get(segment.base_offset, [])
            if segment in list(segments) and not _holds(segment, wanted):
                segment.transaction_index.rebuild(wanted)
                self.report.rebuilt.append(segment.transaction_index.path)
        return snapshots, producers

    def _replay(
        self,
        producers: ProducerStates,
        segments: Segments,
        snapshots: Snapshots,
        log_end_offset: int,
    ) -> dict[int, list[AbortedTransaction]]:
        aborted: dict[int, list[AbortedTransaction]] = {}

        def on_completed(segment: Segment, done: CompletedTransaction) -> None:
            if done.is_aborted:
                aborted.setdefault(segment.base_offset, []).append(
                    AbortedTransaction(
                        done.producer_id,
                        done.first_offset,
                        done.last_offset,
                        producers.last_stable_offset_after(done),
                    )
                )

        scanned = {segment.base_offset for segment in self.scanned}
        ends = [*segments.base_offsets[1:], log_end_offset]
        for base_offset, end_offset in zip(segments.base_offsets, ends, strict=True):
            if end_offset <= producers.map_end_offset:
                continue
            if base_offset in scanned:
                producers.remove_expired(self.now_ms)
            replay(producers, segments, end_offset=end_offset, on_completed=on_completed)
            if base_offset in scanned and end_offset > producers.last_snapshot_offset:
                snapshots.write(end_offset, producers, durable=True)
                producers.last_snapshot_offset = end_offset
        return aborted


def _is_sane(segment: Segment) -> bool:
    try:
        segment.transaction_index.sanity_check()
    except CorruptIndexError:
        return False
    return True


def _holds(segment: Segment, wanted: list[AbortedTransaction]) -> bool:
    try:
        return list(segment.transaction_index) == wanted
    except CorruptIndexError:
        return False


def _epochs_of(segments: Segments) -> list[EpochEntry]:
    """The epochs that the batches themselves tell of."""
    found: list[EpochEntry] = []
    for segment in segments:
        for header in segment.headers():
            epoch = header.partition_leader_epoch
            if header.magic >= 2 and epoch >= 0 and (not found or epoch > found[-1].epoch):
                found.append(EpochEntry(epoch, header.base_offset))
    return found
