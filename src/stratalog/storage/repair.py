"""Repairing a replica that a check has found in trouble: a plan first, then the plan's steps.

``plan_repair`` is pure: it turns what a check found, and what a person has decided, into actions
with their reasons and numbers. What needs no decision is done without one: wrong hints are thrown
away and built again, the rest of an interrupted write is cut off. Records are only given up when
somebody says which: everything from an offset on, or the bytes that hold one.

Bytes are never lost: what is cut is first copied to ``<replica>/.stratalog/cut/`` and synced. The
steps are in an order in which a crash between any two leaves a log that opens: offsets that other
files promise are lowered first, hints go before the bytes they describe, data goes last.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stratalog.errors import OffsetOutOfRangeError
from stratalog.storage.check_replica import ReplicaReport
from stratalog.storage.check_segment import BadRange, SegmentFacts
from stratalog.storage.findings import Finding, Kind
from stratalog.storage.layout import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    base_offset_of,
    segment_file,
)

_INDEX_KINDS = (
    Kind.OFFSET_INDEX,
    Kind.TIME_INDEX,
    Kind.TRANSACTION_INDEX,
    Kind.MISSING_FILE,
)


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What a person has decided."""

    reindex: bool = False
    truncate_at: int | None = None
    drop_batch: int | None = None


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """A valid batch that somebody named by an offset in it."""

    base_offset: int
    first_offset: int
    next_offset: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LowerCheckpoint:
    """Write a smaller offset for this replica into a checkpoint file of the log directory."""

    name: str
    offset: int
    why: str

    def __str__(self) -> str:
        return f"lower {self.name} to {self.offset}: {self.why}"


@dataclass(frozen=True, slots=True)
class RemoveHint:
    """Remove a file that is built again from the log."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"remove {self.path}: {self.why}"


@dataclass(frozen=True, slots=True)
class Reindex:
    """Build the indexes of a segment again; -1 for what belongs to the whole log."""

    base_offset: int
    why: str

    def __str__(self) -> str:
        return f"rebuild the indexes of segment {self.base_offset}: {self.why}"


@dataclass(frozen=True, slots=True)
class SetAsideSegment:
    """Move a whole segment out of the log."""

    base_offset: int
    size_bytes: int
    why: str

    def __str__(self) -> str:
        return (
            f"set segment {self.base_offset} aside ({self.size_bytes} bytes from offset "
            f"{self.base_offset} on): {self.why}"
        )


@dataclass(frozen=True, slots=True)
class CutBytes:
    """Take bytes ``[start, end)`` out of a segment; copied aside first."""

    base_offset: int
    start: int
    end: int
    size_bytes: int
    why: str

    @property
    def is_tail(self) -> bool:
        return self.end >= self.size_bytes

    def __str__(self) -> str:
        return (
            f"cut bytes [{self.start}, {self.end}) out of segment {self.base_offset}, which has "
            f"{self.size_bytes}: {self.why}"
        )


Action = LowerCheckpoint | RemoveHint | SetAsideSegment | CutBytes | Reindex


@dataclass(slots=True)
class RepairPlan:
    """What to do, in order, and what only a person can decide."""

    directory: str
    actions: list[Action] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)

    @property
    def changed_from(self) -> int | None:
        """The lowest base offset of a segment that changes: the log is read again from there."""
        changed = [
            action.base_offset
            for action in self.actions
            if isinstance(action, CutBytes | SetAsideSegment | Reindex)
        ]
        return min(changed, default=None)


def plan_repair(
    report: ReplicaReport,
    request: RepairRequest,
    *,
    named: BatchPlace | None = None,
    recovery_point: int = 0,
    snapshots: Sequence[int] = (),
    offsets: dict[str, int] | None = None,
) -> RepairPlan:
    """What to do about the findings of ``report``.

    ``named`` is the batch that a decision's offset lies in, if a valid one does; ``recovery_point``
    what was known to be flushed; ``snapshots`` and ``offsets`` what else is there: snapshot files
    by offset, checkpointed offsets by file name.
    """
    return _Planning(report, request, named, recovery_point, snapshots, offsets or {}).run()


class _Planning:
    def __init__(
        self,
        report: ReplicaReport,
        request: RepairRequest,
        named: BatchPlace | None,
        recovery_point: int,
        snapshots: Sequence[int],
        offsets: dict[str, int],
    ) -> None:
        self._report = report
        self._request = request
        self._named = named
        self._recovery_point = recovery_point
        self._snapshots = snapshots
        self._offsets = offsets
        self._cuts: list[CutBytes] = []
        self._aside: list[SetAsideSegment] = []
        self._reindex: dict[int, str] = {}
        self._hints: dict[str, str] = {}
        self._decisions: list[str] = []

    def run(self) -> RepairPlan:
        request = self._request
        if request.truncate_at is not None:
            self._truncate(request.truncate_at)
        if request.drop_batch is not None:
            self._drop(request.drop_batch)
        for facts in self._report.segments:
            self._settle_bad_ranges(facts)
        self._settle_findings()
        if request.reindex:
            for facts in self._report.segments:
                self._reindex.setdefault(facts.files.base_offset, "asked for")
        return self._plan()

    # --- what a person decided -----------------------------------------------------------------

    def _truncate(self, offset: int) -> None:
        segments = self._report.segments
        start = segments[0].files.base_offset if segments else 0
        end = self._report.log_end_offset
        if segments and segments[-1].bad:
            end = max(end, segments[-1].bad[-1].start_offset + 1)  # damage at the very end
        if not start <= offset < end:
            raise OffsetOutOfRangeError(offset, start, end)
        owner = max((f for f in segments if f.files.base_offset <= offset), key=_base)
        why = f"everything from offset {offset} on was given up"
        for facts in segments:
            if facts.files.base_offset > owner.files.base_offset:
                self._aside.append(SetAsideSegment(facts.files.base_offset, facts.size_bytes, why))
        place = self._place(owner, offset)
        if place is not None and place.start < owner.size_bytes:
            self._cut(owner, place.start, owner.size_bytes, why)

    def _drop(self, offset: int) -> None:
        for facts in self._report.segments:
            place = self._place(facts, offset)
            if place is not None:
                lost = f"offsets [{place.first_offset}, {place.next_offset})"
                self._cut(facts, place.start, place.end, f"{lost} were given up")
                return
        start = self._report.segments[0].files.base_offset if self._report.segments else 0
        raise OffsetOutOfRangeError(offset, start, self._report.log_end_offset)

    def _place(self, facts: SegmentFacts, offset: int) -> BatchPlace | None:
        """The bytes that hold ``offset``: damaged ones, or those of a valid batch."""
        for bad in facts.bad:
            if bad.start_offset <= offset < max(bad.end_offset, bad.start_offset + 1):
                end_offset = max(bad.end_offset, bad.start_offset + 1)
                return BatchPlace(_base(facts), bad.start_offset, end_offset, bad.start, bad.end)
        if self._named is not None and self._named.base_offset == _base(facts):
            return self._named
        return None

    def _cut(self, facts: SegmentFacts, start: int, end: int, why: str) -> None:
        self._cuts.append(CutBytes(_base(facts), start, end, facts.size_bytes, why))

    # --- what needs no decision ----------------------------------------------------------------

    def _settle_bad_ranges(self, facts: SegmentFacts) -> None:
        if any(aside.base_offset == _base(facts) for aside in self._aside):
            return
        for bad in facts.bad:
            if any(c.base_offset == _base(facts) and _holds(c, bad) for c in self._cuts):
                continue
            if self._is_interrupted_write(facts, bad):
                what = "zeros" if bad.is_zeros else bad.reason
                why = f"no batch follows offset {bad.start_offset - 1}, only {what}"
                self._cut(facts, bad.start, bad.end, why)
            else:
                self._decisions.append(self._choices(facts, bad))

    def _is_interrupted_write(self, facts: SegmentFacts, bad: BadRange) -> bool:
        """Nothing valid follows, and nothing from there on was known to be flushed."""
        later = [each for each in self._report.segments if _base(each) > _base(facts)]
        aside = {each.base_offset for each in self._aside}
        follows = any(each.batch_count for each in later if _base(each) not in aside)
        at_end = bad.end >= facts.size_bytes
        found = follows or bad.holds_batches
        return at_end and not found and bad.start_offset >= self._recovery_point

    def _choices(self, facts: SegmentFacts, bad: BadRange) -> str:
        end_offset = max(bad.end_offset, bad.start_offset + 1)
        end = self._report.log_end_offset
        lost_after = max(end, end_offset) - bad.start_offset
        known = "" if bad.end < facts.size_bytes else " at least"
        return (
            f"{facts.files.log_path}: bytes [{bad.start}, {bad.end}) are damaged: {bad.reason}. "
            f"--drop-batch {bad.start_offset} gives up{known} offsets "
            f"[{bad.start_offset}, {end_offset}); --truncate-at {bad.start_offset} gives up all "
            f"{lost_after} offsets from there to the end"
        )

    def _settle_findings(self) -> None:
        aside = {each.base_offset for each in self._aside}
        for finding in self._report.findings:
            base_offset = base_offset_of(finding.path)
            if finding.kind in _INDEX_KINDS and base_offset not in aside:
                self._reindex[base_offset] = finding.sentence
            elif finding.kind in (Kind.SNAPSHOT, Kind.ORPHAN_FILE) or finding.path.endswith(
                LEADER_EPOCH_CHECKPOINT
            ):
                self._hints[finding.path] = finding.sentence
            elif finding.kind in (Kind.OVERLAP, Kind.METADATA, Kind.UNREADABLE, Kind.DIRECTORY):
                self._undecided(finding)

    def _undecided(self, finding: Finding) -> None:
        if finding.kind is Kind.OVERLAP and any(
            aside.base_offset == finding.offset for aside in self._aside
        ):
            return
        hint = f"; --truncate-at {finding.offset} would end it" if finding.offset >= 0 else ""
        self._decisions.append(f"{finding.path}: {finding.sentence}{hint}")

    # --- putting it together -------------------------------------------------------------------

    def _plan(self) -> RepairPlan:
        plan = RepairPlan(self._report.directory, decisions=self._decisions)
        end_offset = self._end_offset()
        plan.actions += self._lowered(plan, end_offset)
        plan.actions += self._removed()
        # From the last segment to the first: what a crash leaves is still without a hole.
        self._aside.sort(key=lambda each: -each.base_offset)
        plan.actions += self._aside
        # Of several cuts in one file the last goes first, so that positions stay true.
        self._cuts.sort(key=lambda each: (each.base_offset, -each.start))
        plan.actions += self._cuts
        for cut in self._cuts:
            self._reindex[cut.base_offset] = "its bytes change"
        for base_offset, why in sorted(self._reindex.items()):
            plan.actions.append(Reindex(base_offset, why))
        return plan

    def _end_offset(self) -> int:
        """Where the log will end."""
        if self._request.truncate_at is None:
            return self._report.log_end_offset
        kept = [
            cut
            for cut in self._cuts
            if cut.is_tail and all(aside.base_offset > cut.base_offset for aside in self._aside)
        ]
        if kept and self._named is not None and self._named.start == kept[0].start:
            return self._named.first_offset
        return self._request.truncate_at

    def _lowered(self, plan: RepairPlan, end_offset: int) -> Iterator[LowerCheckpoint]:
        for name, offset in sorted(self._offsets.items()):
            if 0 <= offset <= end_offset:
                continue
            if name == LOG_START_CHECKPOINT:
                plan.decisions.append(
                    f"{name} says that the log starts at {offset}, but it ends at {end_offset}: "
                    "correct the file if that is wrong"
                )
            else:
                yield LowerCheckpoint(name, end_offset, f"the log ends at {end_offset}")

    def _removed(self) -> Iterable[RemoveHint]:
        changed = [cut.base_offset for cut in self._cuts] + [a.base_offset for a in self._aside]
        if changed:
            for offset in self._snapshots:
                if offset > min(changed):
                    path = segment_file(self._report.directory, offset, SNAPSHOT_SUFFIX)
                    self._hints[path] = "it tells of batches that change"
        return [RemoveHint(path, why) for path, why in sorted(self._hints.items())]


def _base(facts: SegmentFacts) -> int:
    return facts.files.base_offset


def _holds(cut: CutBytes, bad: BadRange) -> bool:
    return cut.start <= bad.start and bad.end <= cut.end
