"""Reading a segment to the end and checking every batch: what recovery does with bytes that are
not known to have been flushed, and what rebuilds an index.

Where the batches end before the file does, somebody has to decide. What was not known to be flushed
is cut off; everything else is *damage*, stays where it is and is remembered.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError, SegmentOffsetOverflowError
from stratalog.records import BatchHeader, SegmentScan, check_crc, read_header
from stratalog.storage.damage import Damage
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.index import TimestampOffset
from stratalog.storage.kept_cuts import KeptCut
from stratalog.storage.resync import CONTRADICTED, Gap, has_batches, pass_over
from stratalog.storage.segment import Segment

_SCAN_BYTES = 4 << 20
_HEADER_BYTES = 61

_NO_TIMESTAMP = TimestampOffset(-1, -1)

Progress = Callable[[int], None]


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log had to do."""

    segments: int = 0
    scanned_segments: int = 0
    scanned_bytes: int = 0
    truncated_bytes: int = 0
    rebuilt: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, int, str]] = field(default_factory=list)
    split: dict[int, list[int]] = field(default_factory=dict)
    damage: dict[int, list[Damage]] = field(default_factory=dict)
    cut: KeptCut | None = None
    """What was cut off although valid batches followed, if anything was."""


@dataclass(frozen=True, slots=True)
class EndCut:
    """Where a segment has to end, and with it the log: before the first bytes that are no batch.
    ``has_batches``: valid ones are cut off too."""

    position: int
    end: int
    offset: int
    reason: str
    has_batches: bool


@dataclass(frozen=True, slots=True)
class TrustedPrefix:
    """The beginning of a segment that need not be read: flushed, and its indexes are good."""

    position: int = 0
    next_offset: int = 0
    offset_entries: bytes = b""
    time_entries: bytes = b""
    indexed_position: int = 0
    max_timestamp: TimestampOffset = _NO_TIMESTAMP
    indexed_timestamp_ms: int = -1


class SegmentScanner:
    """Scans segments one after the other, and keeps what it learns on the way."""

    def __init__(
        self, config: TopicConfig, epochs: LeaderEpochs, report: RecoveryReport, progress: Progress
    ) -> None:
        self._config = config
        self._epochs = epochs
        self._report = report
        self._progress = progress
        self.scanned: list[Segment] = []
        # Whether offsets too far from a segment's base are how it was written; else it is damage.
        self.is_splittable: Callable[[Segment], bool] = lambda _segment: False
        # Where the log has to be cut; whoever called ``scan`` does so.
        self.cut: EndCut | None = None
        # Damage at a log's end hides where it ended; what was flushed ended here at least.
        self.flushed_end_offset = 0

    def scan(
        self,
        segment: Segment,
        settle: Callable[[Segment, SegmentScan, int], bool],
        prefix: TrustedPrefix | None = None,
    ) -> None:
        """Read ``segment`` behind ``prefix`` and take over what is found.

        ``settle`` is asked what to do where batches end before the file does: it resumes the
        scan and returns True, or returns False and the scan is over.
        """
        prefix = prefix or TrustedPrefix(next_offset=segment.base_offset)
        scan = SegmentScan(segment.base_offset, self._config.index_interval_bytes)
        scan.start(
            prefix.position,
            prefix.next_offset,
            prefix.indexed_position,
            *prefix.max_timestamp,
            prefix.indexed_timestamp_ms,
        )
        end = segment.size_bytes
        self._run(segment, scan, end, settle)
        self.scanned.append(segment)
        self._report.scanned_segments += 1
        self._report.scanned_bytes += scan.position - prefix.position
        self._install(segment, scan, prefix)

    def _run(
        self,
        segment: Segment,
        scan: SegmentScan,
        end: int,
        settle: Callable[[Segment, SegmentScan, int], bool],
    ) -> None:
        file = segment.file()
        buffer = bytearray(min(_SCAN_BYTES, max(end - scan.position, 1)))
        while scan.position < end:
            before = scan.position
            count = file.read_into(before, memoryview(buffer)[: end - before])
            self._take_epochs(scan.feed(memoryview(buffer)[:count]))
            if scan.overflow and self.is_splittable(segment):
                header = read_header(file.read_at(scan.position, _HEADER_BYTES), 0, scan.position)
                offset = scan.next_offset if header is None else header.last_offset
                raise SegmentOffsetOverflowError(segment.path, segment.base_offset, offset)
            if scan.is_contents_fault:
                # A right CRC is no interrupted write: it is what was appended, by a leader that
                # did not look into it. Recovery is not the time to refuse it.
                self._report.unreadable.append((segment.path, scan.position, scan.fault or ""))
                scan.accept()
            if scan.position > before:
                self._progress(scan.position - before)
            elif scan.fault is None and len(buffer) < scan.wanted_bytes <= end - before:
                buffer = bytearray(scan.wanted_bytes)
                continue
            stuck = scan.fault is not None or scan.position == before
            if stuck and not settle(segment, scan, end):
                break

    def _take_epochs(self, headers: Iterable[BatchHeader]) -> None:
        for header in headers:
            if header.partition_leader_epoch > self._epochs.latest_epoch:
                self._epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _install(self, segment: Segment, scan: SegmentScan, prefix: TrustedPrefix) -> None:
        """Take over what a scan found; write only the indexes that say something else."""
        scan.finish()
        if segment.missing:
            segment.offset_index.create()
            segment.time_index.create()
        segment.adopt(
            size_bytes=scan.position,
            max_timestamp=TimestampOffset(
                scan.max_timestamp_ms,
                scan.offset_of_max_timestamp if scan.max_timestamp_ms >= 0 else segment.base_offset,
            ),
        )
        times = prefix.time_entries + scan.time_entries
        is_cut_odd = self.cut is not None and self.cut.reason == CONTRADICTED
        if is_cut_odd or any(each.reason == CONTRADICTED for each in segment.damage.ranges):
            # Its timestamp counted before its offset was found to be wrong.
            times = b""
            segment.forget_max_timestamp()
        for index, entries in (
            (segment.offset_index, prefix.offset_entries + scan.offset_entries),
            (segment.time_index, times),
        ):
            # A log that was closed and opened counts its intervals anew, so that rebuilding can
            # want more entries than there is room for. They are hints: the last are left out.
            wanted = entries[: index.entries_max * index.entry_size]
            content = index.content()
            if content == wanted:
                index.trim()
            else:
                index.rebuild(wanted)
                self._report.rebuilt.append(index.path)

    # --- where batches end before the file does -----------------------------------------------

    def settle_unflushed(
        self,
        segment: Segment,
        scan: SegmentScan,
        end: int,
        *,
        recovery_point: int,
        later: list[Segment],
        may_cut: bool,
    ) -> bool:
        """Cut at the fault if nothing from there on was known to be flushed. Without ``may_cut``
        only what an interrupted write leaves is cut: nothing valid follows it."""
        gap = pass_over(segment.file(), scan, end=end)
        holders = [] if gap.end < end else _holders(later)
        has_batches = gap.holds_batches or bool(holders)
        is_interrupted_write = not has_batches and gap.start_offset >= recovery_point
        may_cut = may_cut and not self._report.damage
        if not is_interrupted_write and not (may_cut and _is_behind(segment, gap, recovery_point)):
            if gap.end < end:
                self._add_damage(segment, gap, gap.end_offset)
                return True
            end_offset = holders[0].base_offset if holders else recovery_point
            self._add_damage(segment, gap, max(end_offset, gap.start_offset + 1))
            return False
        self.cut = EndCut(gap.start, end, gap.start_offset, gap.reason, has_batches)
        scan.resume(gap.start, gap.start_offset)
        return False

    def keep_damage(
        self, segment: Segment, scan: SegmentScan, end: int, *, next_base_offset: int | None
    ) -> bool:
        """For what was flushed: nothing of it is ever cut."""
        gap = pass_over(segment.file(), scan, end=end)
        if gap.end < end:
            self._add_damage(segment, gap, gap.end_offset)
            return True
        if next_base_offset is None:
            next_base_offset = max(gap.start_offset + 1, self.flushed_end_offset)
        self._add_damage(segment, gap, next_base_offset)
        return False

    def _add_damage(self, segment: Segment, gap: Gap, end_offset: int) -> None:
        damage = Damage(gap.start, gap.end, gap.start_offset, end_offset, gap.reason)
        segment.damage.add(damage)
        self._report.damage.setdefault(segment.base_offset, []).append(damage)


def _holders(segments: Iterable[Segment]) -> list[Segment]:
    return [
        each for each in segments if has_batches(each.file(), each.size_bytes, each.base_offset)
    ]


def _is_behind(segment: Segment, gap: Gap, recovery_point: int) -> bool:
    """Whether a gap lies at or above the recovery point for certain. Its offset is what the batches
    before it say, and one of them may lie: so a batch must end or begin just there."""
    if recovery_point <= segment.base_offset:
        return True
    if gap.start_offset < recovery_point:
        return False
    try:
        before = segment.headers(0, gap.start)
        return any(recovery_point in (each.base_offset, each.next_offset) for each in before)
    except CorruptSegmentError:
        return False


def trusted_prefix(segment: Segment, recovery_point: int) -> TrustedPrefix:
    """What of ``segment`` need not be read again: all below the recovery point, if its indexes
    are whole up to there."""
    nothing = TrustedPrefix(next_offset=segment.base_offset)
    if recovery_point <= segment.base_offset or segment.missing or segment.damage:
        return nothing
    try:
        return _prefix_below(segment, recovery_point) or nothing
    except CorruptSegmentError:
        return nothing


def _prefix_below(segment: Segment, recovery_point: int) -> TrustedPrefix | None:
    offsets, times = segment.offset_index, segment.time_index
    kept = offsets.slot(recovery_point - 1) + 1
    kept_times = times.slot_by_offset(recovery_point - 1) + 1
    if not offsets.is_ordered(kept) or not times.is_ordered(kept_times):
        return None
    indexed = offsets.entry(kept - 1).position if kept else 0
    timed, timed_position = _NO_TIMESTAMP, indexed
    if kept_times:
        timed, timed_position = segment.trusted_time_entry(times.entry(kept_times - 1))
        if timed.timestamp_ms < 0:
            return None
    found, position, next_offset = timed, 0, segment.base_offset
    last: BatchHeader | None = None
    for header in segment.headers(min(indexed, timed_position)):
        if header.last_offset >= recovery_point:
            break
        if header.last_offset < next_offset:
            return None  # offsets that go backwards: somebody has to look at every batch
        last = header
        position, next_offset = header.position + header.size_bytes, header.next_offset
        if header.max_timestamp_ms > found.timestamp_ms:
            found = TimestampOffset(header.max_timestamp_ms, header.last_offset)
    if position <= indexed:
        return None  # the index points somewhere else than into the flushed part
    # Its size tells where the rest begins: it must be right.
    if last is not None and not check_crc(segment.read_batch(last)):
        return None
    return TrustedPrefix(
        position,
        next_offset,
        offsets.content()[: kept * offsets.entry_size],
        times.content()[: kept_times * times.entry_size],
        indexed,
        found,
        timed.timestamp_ms,
    )
