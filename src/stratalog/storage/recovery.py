"""Opening a replica's directory, whatever happened to it before.

1. finish or undo an interrupted swap (``sweep``)
2. open the segments; rebuild a missing or corrupt index of any of them
3. after an unclean stop: read everything from the recovery point on, check every batch, rebuild
   the indexes that differ, and cut off what was being written
4. find the log end; bring leader epochs and producer state up to it

**What is cut.** At or above the recovery point all from the first bytes that are no batch on, with
the segments behind: nobody was promised any of it, and the log goes on there. A power loss may keep
a later page and lose an earlier one, so valid batches may follow; then what is cut is kept aside.

**What is never cut.** Anything below the recovery point, or where nobody knows one. It is damage,
and stays where it is: reads around it go on, reads inside it say so, and appends are refused until
a person has decided (``stratalog log repair``). In a log that has damage already, only what an
interrupted write leaves is cut.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from stratalog.config import TopicConfig
from stratalog.errors import (
    CorruptFileError,
    CorruptSegmentError,
    OutOfResourcesError,
    SegmentOffsetOverflowError,
)
from stratalog.records import BatchHeader, SegmentScan, check_crc
from stratalog.storage.context import LogContext
from stratalog.storage.damage import Damage
from stratalog.storage.damaged_end import DamagedEnd, remove_segment
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.files import Entry, FileSystem, make_way
from stratalog.storage.kept_cuts import KeptCuts
from stratalog.storage.layout import (
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    OWN_DIRECTORY,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    base_offset_of,
    parse_replica_directory,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.log import Log
from stratalog.storage.log_state import LoadedLog
from stratalog.storage.ours import KnownDamage, OwnFiles
from stratalog.storage.producers import ProducerStates
from stratalog.storage.scanning import Progress, RecoveryReport, SegmentScanner, trusted_prefix
from stratalog.storage.segment import Segment, SegmentSizes
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import Snapshots
from stratalog.storage.splitting import is_splittable, split_segment
from stratalog.storage.state_recovery import (
    ProducerRecovery,
    epochs_agree,
    epochs_of,
    has_sane_aborts,
)
from stratalog.storage.sweep import sweep
from stratalog.storage.time_range_writing import sweep_time_ranges

Result = TypeVar("Result")


def open_log(
    directory: str,
    config: TopicConfig,
    context: LogContext,
    *,
    clean: bool = False,
    recovery_point: int | None = None,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    progress: Progress | None = None,
) -> Log:
    """Open the log in ``directory``, which must exist; the offsets are the checkpointed ones.

    Without a ``recovery_point`` all is read again, and nothing is known to be unflushed: damage
    stays, whatever it is.
    """
    loading = _Loading(directory, config, context, progress or (lambda _bytes: None))
    loaded = loading.run(
        clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset
    )
    log = Log(directory, config, context, loaded)
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
        self.entries = self._sweep()
        files = {entry.name for entry in self.entries if entry.is_file}
        own_exists = any(each.name == OWN_DIRECTORY and each.is_directory for each in self.entries)
        self.own = OwnFiles(context.files, directory, exists=own_exists)
        self.cuts = KeptCuts(context.files, directory)
        self.known_damage: KnownDamage | None = None
        self.may_cut = False
        self.log_start_offset = 0
        self.report = RecoveryReport()
        self.now_ms = context.clock.now_ms()
        self.epochs = self._load_epochs(LEADER_EPOCH_CHECKPOINT in files)
        self.scanner = SegmentScanner(config, self.epochs, self.report, progress)

    def _sweep(self) -> list[Entry]:
        leases = self.context.leases
        if leases is None:
            return sweep(self.files, self.directory)
        key = parse_replica_directory(os.path.basename(self.directory)).topic_partition
        return sweep(self.files, self.directory, partial(leases.keep, key, self.directory))

    def run(self, *, clean: bool, recovery_point: int | None, log_start_offset: int) -> LoadedLog:
        self.known_damage = self.own.known_damage()
        self.may_cut = recovery_point is not None and self.known_damage is None
        recovery_point = recovery_point or 0
        self.log_start_offset = log_start_offset
        if self.known_damage is not None:
            # What was found damaged is read again, every time, until somebody has mended it;
            # what counted as flushed then counts as flushed now.
            clean = False
            recovery_point = max(recovery_point, self.known_damage.recovery_point)
        self.scanner.flushed_end_offset = recovery_point
        segments = self._settle_segments(clean, recovery_point)
        if not len(segments):
            segments.add(self._create(log_start_offset))
        last = segments.active.last_header()
        self._note_lost_end(segments.active, last, recovery_point)
        log_end_offset = self._log_end_offset(segments.active, last)
        mirrored_start = self.own.log_start()
        if log_start_offset < mirrored_start <= log_end_offset:
            log_start_offset = mirrored_start
        if log_end_offset < log_start_offset:
            raise CorruptFileError(
                f"{os.path.dirname(self.directory)}/{LOG_START_CHECKPOINT}",
                f"says that {os.path.basename(self.directory)} starts at {log_start_offset}, but "
                f"it ends at {log_end_offset}; nothing was deleted",
            )
        start_offset = max(log_start_offset, segments.first.base_offset)
        for segment in segments:
            segment.is_settled = True
        if not epochs_agree(self.epochs, segments, last, start_offset, clean=clean):
            self.epochs.replace(self._around_damage(segments, lambda: epochs_of(segments)))
            self.report.rebuilt.append(f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}")
            self.epochs.flush()
        # Written with whatever epoch comes next: until then each start finds the same.
        self.epochs.truncate_from_end(log_end_offset)
        self.epochs.truncate_from_start(start_offset)
        snapshots, producers = self._around_damage(
            segments, lambda: self._load_producers(segments, start_offset, log_end_offset)
        )
        segments.active.become_active(has_own_files=self.own.exists)
        if self.own.exists:
            sweep_time_ranges(self.files, self.directory, set(segments.base_offsets))
        self._note_damage(log_end_offset if clean else recovery_point)
        return LoadedLog(
            segments,
            self.epochs,
            producers,
            snapshots,
            start_offset,
            log_end_offset,
            max(start_offset, log_end_offset if clean else min(recovery_point, log_end_offset)),
            is_damaged=bool(self.report.damage),
            own=self.own,
            mirrored_start=mirrored_start,
            report=self.report,
            # A cut may have made the first file of our own.
            recovery_cuts=self.cuts.settled() if self.own.exists or self.report.cut else (),
        )

    def _settle_segments(self, clean: bool, recovery_point: int) -> Segments:
        """Open the segments and make them fit for use; begin again if one had to be split."""
        while True:
            segments = self._open_segments()
            self.scanner.is_splittable = partial(self._is_splittable, segments)
            try:
                if clean:
                    self._rebuild_missing_indexes(segments, list(segments))
                    self._check_tail(segments)
                elif len(segments):
                    read = set(segments.from_floor(self._scan_from(recovery_point)))
                    unread = [segment for segment in segments if segment not in read]
                    self._rebuild_missing_indexes(segments, unread)
                    self._recover(segments, recovery_point)
            except SegmentOffsetOverflowError as overflow:
                self._split(segments.at(overflow.base_offset))
            else:
                return segments

    def _is_splittable(self, segments: Segments, segment: Segment) -> bool:
        # Merging segments far apart is how old cleaners came to write one that has to be split.
        return self.config.compact and is_splittable(segment, segments.higher(segment))

    def _split(self, segment: Segment) -> None:
        bases = split_segment(self.files, self.directory, segment)
        assert bases != [segment.base_offset], f"{segment} was split into nothing smaller"
        self.report.split[segment.base_offset] = bases
        self.entries = self._sweep()
        self.scanner.scanned.clear()
        self.report.damage.clear()

    def _check_tail(self, segments: Segments) -> None:
        """A clean start trusts what was flushed, but finds the log end from the last batch, and
        goes on from the last index entries. If one of them is not right, the segment is read to
        see what is wrong with it."""
        if not len(segments):
            return
        active = segments.active
        try:
            if self._ends_well(active) and active.confirms_indexes():
                return
        except CorruptSegmentError:
            pass
        if active not in self.scanner.scanned:
            self._scan_flushed(segments, active)

    def _ends_well(self, active: Segment) -> bool:
        """Whether the file ends with a whole batch that is where the log was known to end."""
        last = active.last_header()
        if last is None:
            return active.size_bytes == 0
        return (
            last.position + last.size_bytes == active.size_bytes
            and last.next_offset >= self.scanner.flushed_end_offset
            and check_crc(active.read_batch(last))
        )

    # --- segments -----------------------------------------------------------------------------

    def _open_segments(self) -> Segments:
        sizes: dict[int, dict[str, tuple[int, int]]] = {}
        for entry in self.entries:
            known = parse_segment_file(entry.name)
            if known is None or known.state or known.kind not in SEGMENT_SUFFIXES:
                continue
            if entry.is_file:
                found = sizes.setdefault(known.offset, {})
                found[known.kind] = (entry.size_bytes, entry.modified_ms)
            elif known.kind != LOG_SUFFIX:
                # What has an index's name would stand in the way of the index. A ``.log`` that is
                # no file is passed over, as Kafka does, until a segment needs its name.
                make_way(self.files, f"{self.directory}/{entry.name}")
        opened = []
        for base_offset, found in sizes.items():
            if LOG_SUFFIX in found:
                opened.append(self._open_segment(base_offset, found))
            else:
                for kind in found:
                    self.files.unlink(segment_file(self.directory, base_offset, kind))
        self.report.segments = len(opened)
        segments = Segments(opened)
        self._remove_leftover(segments)
        return segments

    def _remove_leftover(self, segments: Segments) -> None:
        """An empty last segment inside the offsets of the one before it was given up while it was
        being made, and the log went on in the old one."""
        if len(segments) < 2 or segments.active.size_bytes:
            return
        last = segments.active
        before = segments.floor(last.base_offset - 1)
        try:
            if before is not None and before.next_offset() > last.base_offset:
                remove_segment(self.files, self.directory, segments, last)
        except CorruptSegmentError:
            return  # whoever reads that segment will say what is wrong with it

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

    def _rebuild_missing_indexes(self, segments: Segments, unread: Sequence[Segment]) -> None:
        """Of segments that are not read anyway: index what has lost its index."""
        with_aborts = self.own.aborts()
        for segment in unread:
            lost_aborts = segment.base_offset in with_aborts and not segment.has_aborts()
            if segment.missing or lost_aborts or not has_sane_aborts(segment):
                self._scan_flushed(segments, segment)

    def _scan_flushed(self, segments: Segments, segment: Segment) -> None:
        """Read a segment of which nothing may be cut."""
        following = segments.higher(segment)
        next_base_offset = None if following is None else following.base_offset

        def settle(segment: Segment, scan: SegmentScan, end: int) -> bool:
            return self.scanner.keep_damage(segment, scan, end, next_base_offset=next_base_offset)

        self.scanner.scan(segment, settle)

    # --- what was not known to be flushed -----------------------------------------------------

    def _recover(self, segments: Segments, recovery_point: int) -> None:
        for segment in segments.from_floor(self._scan_from(recovery_point)):
            later = segments.above(segment.base_offset)
            self._scan_unflushed(segment, recovery_point, later)
            cut = self.scanner.cut
            if cut is None:
                continue
            end = DamagedEnd(self.files, self.directory, segments, segment, later, cut)
            try:
                kept = end.prepare(self.cuts, self.now_ms)
            except OutOfResourcesError:
                # Without room to keep what would be cut, it stays where it is, as damage.
                self.scanner.cut, self.may_cut = None, False
                segment.size_bytes = cut.end
                self._scan_unflushed(segment, recovery_point, later)
                continue
            end.cut_off(self.cuts, kept)
            self.report.cut = kept
            self.report.truncated_bytes += cut.end - cut.position
            return

    def _scan_unflushed(self, segment: Segment, recovery_point: int, later: list[Segment]) -> None:
        settle = partial(
            self.scanner.settle_unflushed,
            # A log's start is not raised before everything below it is flushed.
            recovery_point=max(recovery_point, self.log_start_offset),
            later=later,
            may_cut=self.may_cut,
        )
        prefix = None
        if not self._was_damaged(segment):
            prefix = trusted_prefix(segment, recovery_point)
        self.scanner.scan(segment, settle, prefix)

    def _note_lost_end(
        self, active: Segment, last: BatchHeader | None, recovery_point: int
    ) -> None:
        """What was flushed reached further than the batches do: their offsets must not be given
        out again."""
        end_offset = self._log_end_offset(active, last)
        if end_offset < recovery_point:
            lost = Damage(
                active.size_bytes,
                active.size_bytes,
                end_offset,
                recovery_point,
                "what was flushed here is gone",
            )
            active.damage.add(lost)
            self.report.damage.setdefault(active.base_offset, []).append(lost)

    def _scan_from(self, recovery_point: int) -> int:
        known = self.known_damage
        return recovery_point if known is None else min([recovery_point, *known.base_offsets])

    def _was_damaged(self, segment: Segment) -> bool:
        known = self.known_damage
        return known is not None and segment.base_offset in known.base_offsets

    def _note_damage(self, recovery_point: int) -> None:
        if self.report.damage:
            self.own.note_damage(recovery_point, self.report.damage)
        elif self.known_damage is not None:
            self.own.forget_damage()

    # --- what belongs to the whole log --------------------------------------------------------

    def _log_end_offset(self, active: Segment, last: BatchHeader | None) -> int:
        if active.damage and active.damage.ranges[-1].end_position >= active.size_bytes:
            return active.damage.ranges[-1].end_offset
        return active.base_offset if last is None else last.next_offset

    def _load_epochs(self, exists: bool) -> LeaderEpochs:
        path = f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}"
        if not exists:
            make_way(self.files, path)
            self.files.open(path, create=True).close()
        try:
            return LeaderEpochs.load(self.files, path)
        except CorruptFileError:
            self.report.rebuilt.append(path)
            return LeaderEpochs(self.files, path, [])

    def _around_damage(self, segments: Segments, step: Callable[[], Result]) -> Result:
        """Do what reads the log, around damage: it may be the first to meet it, in a segment that
        was trusted because it had been flushed. Each such segment is read once to map it."""
        mapped: set[int] = set()
        while True:
            try:
                return step()
            except CorruptSegmentError as damage:
                base_offset = base_offset_of(damage.path)
                if base_offset in mapped:
                    raise
                mapped.add(base_offset)
                segment = segments.at(base_offset)
                # It may have been read from the recovery point on; now from its first byte.
                segment.damage.cut(0)
                self.report.damage.pop(base_offset, None)
                self._scan_flushed(segments, segment)
                self.entries = self.files.list(self.directory)

    def _load_producers(
        self, segments: Segments, log_start_offset: int, log_end_offset: int
    ) -> tuple[Snapshots, ProducerStates]:
        recovery = ProducerRecovery(
            segments,
            Snapshots.load(self.files, self.directory, self.entries),
            ProducerStates(expiration_ms=self.context.producer_expiration_ms),
            self.scanner.scanned,
            self.now_ms,
        )
        self.report.rebuilt += recovery.run(log_start_offset, log_end_offset)
        if self.scanner.scanned:
            self.own.keep_aborts(segments)
        return recovery.snapshots, recovery.producers
