"""Checking one replica: its segments together, and the small files beside them.

Each segment is read by ``check_segment``; here is what only shows when they are put in a row:
offsets that overlap, leader epochs, producers and their transactions, checkpointed offsets.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, zip_longest
from typing import Protocol

from stratalog.errors import CorruptFileError, DiskError, LogDirectoryError
from stratalog.storage.absences import MISSING, Absence, absent_start
from stratalog.storage.check_order import (
    missing_findings,
    orphan_findings,
    overlap_findings,
)
from stratalog.storage.check_producers import Abort, Replay, disagreements
from stratalog.storage.check_segment import Progress, SegmentCheck, SegmentFacts
from stratalog.storage.checkpoint import EpochEntry, read_epochs, read_topic_id
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.findings import Finding, Kind, error, in_order, warning
from stratalog.storage.inspection import Replica, SegmentFiles, list_replica
from stratalog.storage.kept_cuts import KeptCut, KeptCuts
from stratalog.storage.layout import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
)
from stratalog.storage.producers import ProducerState
from stratalog.storage.snapshots import decode_snapshot


class Pending(Protocol):
    """A segment that is being checked, maybe by another thread."""

    def result(self) -> SegmentFacts: ...


Submit = Callable[[Callable[[], SegmentFacts]], Pending]


class Done:
    """What was checked at once, in this thread."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._facts = facts

    def result(self) -> SegmentFacts:
        return self._facts


def at_once(task: Callable[[], SegmentFacts]) -> Pending:
    return Done(task())


@dataclass(frozen=True, slots=True)
class KnownByOwner:
    """What a log in memory says, to be held against its files."""

    end_positions: dict[int, int]
    epochs: tuple[EpochEntry, ...]
    producers: tuple[ProducerState, ...]
    log_start_offset: int
    log_end_offset: int


@dataclass(slots=True)
class ReplicaReport:
    """All that was found, and what it was found in; ``tiered`` are offsets that are in remote
    storage, where they are not checked, and ``recovery_cuts`` is what recovery keeps aside."""

    directory: str
    segments: list[SegmentFacts] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    tiered: Absence | None = None
    recovery_cuts: tuple[KeptCut, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(facts.size_bytes for facts in self.segments)

    @property
    def record_count(self) -> int:
        return sum(facts.record_count for facts in self.segments)

    @property
    def log_end_offset(self) -> int:
        return self.segments[-1].next_offset if self.segments else 0


class ReplicaCheck:
    """One look at one replica: ``start`` hands out the segments, ``finish`` waits for them.

    ``kept`` are facts of an earlier look; a segment whose files have not changed and that was in
    order then is not read again. ``known`` are facts of this look, whatever they say.
    """

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        *,
        offsets: dict[str, int] | None = None,
        is_live: bool = False,
        owner: KnownByOwner | None = None,
        progress: Progress | None = None,
        kept: Iterable[SegmentFacts] = (),
        known: Iterable[SegmentFacts] = (),
        may_be_compacted: bool = True,
    ) -> None:
        """``offsets``: by name of its checkpoint file, what was checkpointed for this replica,
        read before; ``is_live`` if an owner may be writing now. ``may_be_compacted`` unless it is
        known that its topic is not."""
        self._files = files
        self._directory = directory
        self._offsets = offsets or {}
        self._is_live = is_live
        self._owner = owner
        self._progress = progress
        self._may_be_compacted = may_be_compacted
        self._kept = {
            _identity(facts.files): facts
            for facts in kept
            if not facts.findings and not facts.is_gone
        }
        self._known = {facts.files.base_offset: facts for facts in known}
        self._pending: list[Pending] = []
        self._findings: list[Finding] = []
        self._replica: Replica | None = None

    def start(self, submit: Submit = at_once) -> None:
        try:
            replica = self._replica = list_replica(self._files, self._directory)
        except LogDirectoryError as gone:
            # An owner may have deleted it; but what is there and cannot be listed is no such thing.
            if not self._is_live or self._files.exists(self._directory):
                self._add(error(Kind.DIRECTORY, self._directory, str(gone)))
            return
        ends = {} if self._owner is None else self._owner.end_positions
        plan = segment_checks(self._files, replica, end_positions=ends, progress=self._progress)
        for segment, check in plan:
            facts = self._facts_at_hand(segment, is_last=segment is replica.segments[-1])
            self._pending.append(submit(check().run) if facts is None else Done(facts))

    def _facts_at_hand(self, segment: SegmentFiles, *, is_last: bool) -> SegmentFacts | None:
        known = self._known.get(segment.base_offset)
        # The last one may have grown since: what was seen of it was one moment's truth.
        if known is not None and (is_last or _identity(known.files) == _identity(segment)):
            return known
        return None if is_last else self._kept.get(_identity(segment))

    def finish(self) -> ReplicaReport:
        segments = [pending.result() for pending in self._pending]
        for facts in segments:
            self._findings += self._told(facts)
        segments = [facts for facts in segments if not facts.is_gone]
        if self._replica is not None:
            self._findings += orphan_findings(self._replica, segments)
            self._findings += overlap_findings(segments)
            if not self._may_be_compacted and CLEANER_CHECKPOINT not in self._offsets:
                self._findings += missing_findings(self._files, self._directory, segments)
            self._check_epochs(segments)
            self._check_producers(self._replica, segments)
            self._check_offsets(segments)
            self._check_topic_id()
        tiered = self._check_start(segments)
        cuts = KeptCuts(self._files, self._directory).read()
        return ReplicaReport(self._directory, segments, in_order(self._findings), tiered, cuts)

    def _check_start(self, segments: Sequence[SegmentFacts]) -> Absence | None:
        """What lies before the first segment: returned if it is tiered, a finding if missing."""
        if not segments or self._owner is not None:
            return None
        first = segments[0].files
        absent = absent_start(
            self._files,
            self._directory,
            first.base_offset,
            checkpointed=self._offsets.get(LOG_START_CHECKPOINT),
            is_tiered=lambda: None,
        )
        if absent is not None and absent.kind == MISSING:
            self._add(error(Kind.GAP, first.log_path, absent.reason, offset=absent.start_offset))
            return None
        return absent

    def _add(self, finding: Finding) -> None:
        self._findings.append(finding)

    def _add_unreadable(self, path: str, failure: DiskError) -> None:
        """Unless it has gone since it was listed, as small files do."""
        if self._files.exists(path):
            self._add(error(Kind.UNREADABLE, path, f"cannot be read: {failure.reason}"))

    def _told(self, facts: SegmentFacts) -> Iterator[Finding]:
        # An owner that preallocates its active segment leaves zeros behind the last batch.
        preallocated = self._is_live and any(bad.is_zeros for bad in facts.bad)
        for finding in facts.findings:
            if not (preallocated and finding.kind is Kind.TAIL):
                yield finding

    # --- leader epochs -------------------------------------------------------------------------

    def _check_epochs(self, segments: Sequence[SegmentFacts]) -> None:
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        try:
            entries = self._epoch_entries(path)
        except CorruptFileError as corrupt:
            self._add(warning(Kind.LEADER_EPOCHS, path, corrupt.reason))
            return
        except DiskError as failure:
            self._add_unreadable(path, failure)
            return
        for earlier, later in pairwise(entries):
            if later.epoch <= earlier.epoch or later.start_offset <= earlier.start_offset:
                self._add(
                    warning(
                        Kind.LEADER_EPOCHS,
                        path,
                        f"epoch {later.epoch} from {later.start_offset} does not follow epoch "
                        f"{earlier.epoch} from {earlier.start_offset}",
                        offset=later.start_offset,
                    )
                )
                return
        changes = list(_epoch_changes(segments))
        for (_, earlier_epoch, _), (log_path, epoch, offset) in pairwise(changes):
            # An open log takes the epochs it is given; whoever gives them answers for them.
            if epoch < earlier_epoch and self._owner is None:
                sentence = f"the leader epoch goes back from {earlier_epoch} to {epoch}"
                self._add(warning(Kind.LEADER_EPOCHS, log_path, sentence, offset=offset))
        self._compare_epochs(path, entries, [change[1:] for change in changes], segments)

    def _epoch_entries(self, path: str) -> Sequence[EpochEntry]:
        if self._owner is not None:
            return self._owner.epochs
        return read_epochs(self._files, path)

    def _compare_epochs(
        self,
        path: str,
        entries: Sequence[EpochEntry],
        changes: Sequence[tuple[int, int]],
        segments: Sequence[SegmentFacts],
    ) -> None:
        if not entries:
            if any(epoch >= 0 for epoch, _ in changes):
                sentence = "holds no epoch, though the batches carry some"
                self._add(warning(Kind.LEADER_EPOCHS, path, sentence))
            return
        starts = [entry.start_offset for entry in entries]
        ends = [offset for _, offset in changes[1:]] + [segments[-1].next_offset if segments else 0]
        is_dense = _is_dense(segments)
        for (epoch, offset), end in zip(changes, ends, strict=False):
            slot = bisect_right(starts, offset) - 1
            # What lies below the first entry was cut off with the log's start.
            if epoch < 0 or slot < 0:
                continue
            if entries[slot].epoch != epoch:
                self._tell_epoch(path, entries[slot].epoch, epoch, offset)
            elif is_dense and slot + 1 < len(starts) and starts[slot + 1] < end:
                self._tell_epoch(path, entries[slot + 1].epoch, epoch, starts[slot + 1])

    def _tell_epoch(self, path: str, said: int, epoch: int, offset: int) -> None:
        self._add(
            warning(
                Kind.LEADER_EPOCHS,
                path,
                f"says epoch {said} for offset {offset}; the batch there has {epoch}",
                offset=offset,
            )
        )

    # --- producers and transactions ------------------------------------------------------------

    def _check_producers(self, replica: Replica, segments: Sequence[SegmentFacts]) -> None:
        starts_at_zero = bool(segments) and segments[0].files.base_offset == 0
        replay = Replay(is_complete=starts_at_zero)
        due = list(replica.snapshots)
        is_dense = True
        end_offset = 0
        for facts in segments:
            base_offset = facts.files.base_offset
            is_dense = is_dense and (end_offset == base_offset or facts is segments[0])
            for piece in facts.pieces:
                while due and due[0] <= base_offset:
                    self._check_snapshot(due.pop(0), replay, is_dense=is_dense)
                self._check_aborts(facts, replay.merge(piece), is_dense=is_dense)
                while due and due[0] <= piece.end_offset and piece is not facts.pieces[-1]:
                    self._check_snapshot(due.pop(0), replay, is_dense=is_dense)
            is_dense = is_dense and facts.is_dense
            end_offset = facts.next_offset
            self._check_markers(facts)
        end_offset = max([end_offset, *(f.files.base_offset for f in segments)])
        if self._owner is not None:
            # A log that was cut inside a batch ends where it was cut, behind its last batch.
            end_offset = max(end_offset, self._owner.log_end_offset)
        for offset in due:
            if offset > end_offset:
                path = segment_file(self._directory, offset, SNAPSHOT_SUFFIX)
                sentence = f"is of offset {offset}, but the log ends at {end_offset}"
                self._add(warning(Kind.SNAPSHOT, path, sentence, offset=offset))
            else:
                self._check_snapshot(offset, replay, is_dense=is_dense)
        if self._owner is not None:
            told = disagreements(
                self._owner.producers,
                replay,
                self._owner.log_end_offset,
                is_dense=is_dense,
                log_start_offset=self._log_start_offset(),
            )
            for producer_id, sentence in told:
                text = f"in memory, producer {producer_id} {sentence}"
                self._add(error(Kind.MEMORY, self._directory, text))

    def _log_start_offset(self) -> int:
        """What lies below it counts no more, though it may still be in the files."""
        if self._owner is not None:
            return self._owner.log_start_offset
        return self._offsets.get(LOG_START_CHECKPOINT, 0)

    def _check_snapshot(self, offset: int, replay: Replay, *, is_dense: bool) -> None:
        path = segment_file(self._directory, offset, SNAPSHOT_SUFFIX)
        try:
            states = decode_snapshot(path, read_file(self._files, path))
        except CorruptFileError as corrupt:
            self._add(warning(Kind.SNAPSHOT, path, corrupt.reason, offset=offset))
            return
        except DiskError as failure:
            self._add_unreadable(path, failure)
            return
        for producer_id, sentence in disagreements(
            states,
            replay,
            offset,
            is_dense=is_dense,
            log_start_offset=self._log_start_offset(),
        ):
            text = f"producer {producer_id} {sentence}"
            self._add(warning(Kind.SNAPSHOT, path, text, offset=offset))

    def _check_aborts(self, facts: SegmentFacts, aborts: list[Abort], *, is_dense: bool) -> None:
        """Every abort that ended something has its entry."""
        path = facts.files.path(TRANSACTION_INDEX_SUFFIX)
        known = {(each.producer_id, each.last_offset): each for each in facts.aborted_after}
        for abort in aborts:
            entry = known.get((abort.producer_id, abort.offset))
            if abort.first_offset is None or abort.first_offset < self._log_start_offset():
                continue
            if entry is None:
                sentence = (
                    f"has no entry for the transaction of producer {abort.producer_id} from "
                    f"offset {abort.first_offset}, which was aborted at {abort.offset}"
                )
            elif entry.first_offset > abort.first_offset or (
                is_dense
                and facts.is_dense
                and abort.is_exact
                and entry.first_offset != abort.first_offset
            ):
                sentence = (
                    f"says that the transaction aborted at {abort.offset} began at "
                    f"{entry.first_offset}; its first batch is at {abort.first_offset}"
                )
            elif entry.last_stable_offset > abort.offset + 1:
                sentence = (
                    f"says that {entry.last_stable_offset} was stable when the abort at "
                    f"{abort.offset} was written"
                )
            else:
                continue
            self._add(error(Kind.TRANSACTION_INDEX, path, sentence, offset=abort.offset))

    def _check_markers(self, facts: SegmentFacts) -> None:
        """Every entry has its abort."""
        path = facts.files.path(TRANSACTION_INDEX_SUFFIX)
        markers = {(a.producer_id, a.offset) for piece in facts.pieces for a in piece.aborts}
        for entry in facts.aborted:
            if (entry.producer_id, entry.last_offset) not in markers:
                sentence = (
                    f"has an entry of producer {entry.producer_id} for an abort at "
                    f"{entry.last_offset}; no such marker is there"
                )
                self._add(error(Kind.TRANSACTION_INDEX, path, sentence, offset=entry.last_offset))

    # --- small files ---------------------------------------------------------------------------

    def _check_offsets(self, segments: Sequence[SegmentFacts]) -> None:
        end_offset = segments[-1].next_offset if segments else 0
        log_directory = self._directory.rpartition("/")[0] or "."
        rules = (
            (RECOVERY_POINT_CHECKPOINT, error, "was flushed up to"),
            (LOG_START_CHECKPOINT, error, "starts at"),
            (HIGH_WATERMARK_CHECKPOINT, warning, "has the high watermark"),
            (CLEANER_CHECKPOINT, warning, "was cleaned up to"),
        )
        for name, tell, what in rules:
            offset = self._offsets.get(name)
            if offset is not None and not 0 <= offset <= end_offset:
                path = f"{log_directory}/{name}"
                sentence = (
                    f"says that {self._directory.rpartition('/')[2]} {what} {offset}, "
                    f"but it ends at {end_offset}"
                )
                self._add(tell(Kind.CHECKPOINT, path, sentence, offset=max(offset, -1)))

    def _check_topic_id(self) -> None:
        path = f"{self._directory}/{PARTITION_METADATA}"
        try:
            read_topic_id(self._files, path)
        except CorruptFileError as corrupt:
            self._add(error(Kind.METADATA, path, corrupt.reason))
        except DiskError as failure:
            self._add_unreadable(path, failure)


def segment_checks(
    files: FileSystem,
    replica: Replica,
    *,
    end_positions: Mapping[int, int] | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[SegmentFiles, Callable[[], SegmentCheck]]]:
    """Each segment, and the check that is to be run for it."""
    # None may be there: what a crash leaves that made the directory, and not yet its first log.
    bases = [segment.base_offset for segment in replica.segments]
    for segment, following in zip_longest(replica.segments, bases[1:]):
        stops = [
            offset
            for offset in replica.snapshots
            if segment.base_offset < offset and (following is None or offset < following)
        ]
        yield (
            segment,
            partial(
                SegmentCheck,
                files,
                segment,
                is_last=following is None,
                end_position=(end_positions or {}).get(segment.base_offset),
                stops=stops,
                progress=progress,
            ),
        )


def _identity(files: SegmentFiles) -> tuple[int, int, int]:
    return files.base_offset, files.modified_ms, files.size_bytes


def _is_dense(segments: Sequence[SegmentFacts]) -> bool:
    """Whether no offset is missing anywhere: then every batch is where the epochs say."""
    together = all(a.next_offset == b.files.base_offset for a, b in pairwise(segments))
    return together and all(facts.is_dense for facts in segments)


def _epoch_changes(segments: Sequence[SegmentFacts]) -> Iterator[tuple[str, int, int]]:
    """(path, epoch, first offset) wherever the epoch of the batches changes."""
    last = None
    for facts in segments:
        for epoch, offset in facts.epochs:
            if epoch != last:
                yield facts.files.log_path, epoch, offset
            last = epoch
