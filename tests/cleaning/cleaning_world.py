"""A log on a simulated disk and the model of it, driven together through a history of steps.

What a step cannot do (end a transaction of a producer that is forgotten, say) it leaves out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest
from cleaning_batches import (
    Producer,
    legacy_batches,
    make_rows,
    marker_batch,
    produced_batch,
)
from cleaning_model import (
    AbortedEntry,
    Batch,
    Cleaned,
    LastRecord,
    Marker,
    Round,
    Row,
    SegmentFacts,
    Transaction,
    UncleanableError,
    check_same,
    clean,
    group,
)
from cleaning_reading import entry_fields, stored_batches
from cleaning_steps import (
    SLOTS,
    Append,
    Clean,
    DropFirst,
    End,
    Expire,
    RaiseStart,
    Reopen,
    Roll,
    Step,
)

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError
from stratalog.storage.check import check
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.findings import Kind, Severity
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.storage.segment import Segment
from stratalog.testing import ManualClock, SimulatedFileSystem
from stratalog.testing.time_ranges import false_ranges

DIRECTORY = "/data/t-0"
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000

CONFIG = TopicConfig(
    cleanup_policy=("compact",),
    internal_segment_bytes=1200,
    segment_index_bytes=240,
    index_interval_bytes=150,
    file_delete_delay_ms=0,
    delete_retention_ms=HOUR_MS,
)


# --- the world -----------------------------------------------------------------------------------


@dataclass
class World:
    config: TopicConfig = CONFIG
    clock: ManualClock = field(default_factory=lambda: ManualClock(START_MS))
    batches: list[Batch] = field(default_factory=list)
    producers: dict[int, Producer] = field(default_factory=dict)
    aborted: dict[Transaction, AbortedEntry] = field(default_factory=dict)
    first_dirty_offset: int = 0
    rounds: int = 0
    history: list[Batch] = field(default_factory=list)
    """Every batch as it was appended."""
    ever_aborted: set[Transaction] = field(default_factory=set)
    has_crashed: bool = False
    """Then producers are those that the log knows, and hints may be out of date."""
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.files = SimulatedFileSystem(now_ms=self.clock.now_ms)
        for path in ("/data", DIRECTORY):
            self.files.make_directory(path)
            self.files.sync_directory(path.rpartition("/")[0] or "/")
        self.log = self.open(self.files, is_clean=True)

    def open(
        self,
        files: SimulatedFileSystem,
        *,
        is_clean: bool,
        start_offset: int = 0,
        recovery_point: int = 0,
    ) -> Log:
        context = LogContext(files, self.clock, HandleCache(), DirectoryState(), flush_on_ack=False)
        log = open_log(
            DIRECTORY,
            self.config,
            context,
            clean=is_clean,
            log_start_offset=start_offset,
            recovery_point=recovery_point,
        )
        log.update_high_watermark(log.log_end_offset)
        return log

    def run(self, steps: Sequence[Step]) -> "World":
        for step in steps:
            self.do(step)
        return self

    def do(self, step: Step) -> None:
        match step:
            case Append():
                self.append(step)
            case End():
                self.end(step)
            case Roll():
                self.roll()
            case Clean():
                self.clock.advance(step.after_ms)
                self.clean(slots=step.slots)
            case Expire():
                self.expire()
            case Reopen():
                self.reopen(is_clean=step.is_clean)
            case RaiseStart():
                self.raise_start(step.part)
            case DropFirst():
                self.drop_first()

    # --- writing -------------------------------------------------------------------------------

    def append(self, step: Append) -> None:
        now_ms = self.clock.now_ms()
        base_offset = self.log.log_end_offset + step.gap
        rows = make_rows(step, base_offset, now_ms)
        if step.magic < 2:
            self._store(legacy_batches(step, rows, now_ms))
            return
        known = self._producer_for(step, base_offset)
        batch = produced_batch(step, rows, known, base_offset, now_ms)
        if known is not None:
            known.sequence += batch.last_offset - base_offset + 1
            known.data_offset = batch.last_offset
            known.last_timestamp_ms = batch.max_timestamp_ms
        self._store([batch])

    def _producer_for(self, step: Append, base_offset: int) -> Producer | None:
        if step.producer < 0:
            return None
        known = self.producers.setdefault(step.producer, Producer())
        # While a transaction is open its producer writes nothing outside it.
        if step.transactional and known.transaction is None:
            known.transaction = Transaction(next(self._numbers), step.producer)
            known.first_offset = base_offset
        return known

    def end(self, step: End) -> None:
        known = self.producers.get(step.producer)
        if known is None:
            return
        if step.raises_epoch:
            known.epoch += 1
            known.sequence = 0
            known.data_offset = None
        batch = marker_batch(step, known, self.log.log_end_offset, self.clock.now_ms())
        self._settle(known, batch)
        self._store([batch])

    def _settle(self, known: Producer, marker: Batch) -> None:
        known.last_timestamp_ms = marker.max_timestamp_ms
        done = known.transaction
        if done is None:
            return
        known.transaction = None
        if marker.marker is Marker.ABORT:
            still_open = [p.first_offset for p in self.producers.values() if p.transaction]
            stable = min(still_open, default=marker.next_offset)
            self.ever_aborted.add(done)
            self.aborted[done] = AbortedEntry(
                done.producer_id, known.first_offset, marker.last_offset, stable
            )

    def _store(self, batches: list[Batch]) -> None:
        for batch in batches:
            assert batch.stored is not None
            self.log.append_as_follower(batch.stored)
            self.batches.append(batch)
            self.history.append(batch)
        self.log.update_high_watermark(self.log.log_end_offset)

    # --- other steps ---------------------------------------------------------------------------

    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            self.log.roll()

    def expire(self) -> None:
        self.clock.advance(2 * 24 * HOUR_MS)
        now_ms = self.clock.now_ms()
        self.log.producers.remove_expired(now_ms)
        self._forget_expired()

    def _forget_expired(self) -> None:
        now_ms = self.clock.now_ms()
        self.producers = {
            producer_id: known
            for producer_id, known in self.producers.items()
            if known.transaction or now_ms - known.last_timestamp_ms < 24 * HOUR_MS
        }

    def reopen(self, *, is_clean: bool) -> None:
        self.log.flush()
        if is_clean:
            self.log.close()
        self.log.abandon()
        self.log = self.open(self.files, is_clean=is_clean, start_offset=self.log.log_start_offset)
        if is_clean:
            self._forget_expired()
        else:
            # What replaying brings back of an idle producer depends on where a snapshot lies.
            self.expire()
            self.take_rebuilt()
        self.check()

    def take_rebuilt(self) -> None:
        """Recovery makes transaction indexes anew, from the batches that are left: an abort that
        has lost all its data is not in them any more, one that lost some begins later."""
        listed = {entry.last_offset: entry for entry in self.listed()}
        for transaction, before in list(self.aborted.items()):
            data = [
                batch
                for batch in self.batches
                if not batch.is_control
                and batch.transaction == transaction
                and batch.base_offset >= self.log.log_start_offset
            ]
            entry = listed.get(before.last_offset)
            if entry is None:
                assert not data, f"the abort of {transaction} is forgotten"
                del self.aborted[transaction]
                continue
            assert entry.producer_id == before.producer_id
            assert before.first_offset <= entry.first_offset
            assert not data or entry.first_offset <= data[0].base_offset
            self.aborted[transaction] = entry

    def raise_start(self, part: int) -> None:
        start, end = self.log.log_start_offset, self.log.last_stable_offset
        self.log.raise_log_start_offset(start + (end - start) * part // 100)

    def drop_first(self) -> None:
        first, *others = self.log.segments
        if others and others[0].base_offset <= self.log.last_stable_offset:
            self.log.delete_segments([first])
            base_offset = others[0].base_offset
            self.batches = [b for b in self.batches if b.last_offset >= base_offset]
            self.aborted = {
                each: entry
                for each, entry in self.aborted.items()
                if entry.last_offset >= base_offset
            }

    # --- rounds --------------------------------------------------------------------------------

    def plan(self, *, slots: int = SLOTS) -> Round | None:
        """What the next round works on; None if nothing is dirty."""
        log = self.log
        bases = tuple(log.segments.base_offsets)
        first_dirty = self.first_dirty_offset
        if not log.log_start_offset <= first_dirty <= log.log_end_offset:
            first_dirty = log.log_start_offset
        bound = min(log.last_stable_offset, bases[-1])
        bound = max([base for base in bases if base <= bound], default=bases[0])
        if first_dirty >= bound:
            return None
        return Round(
            first_dirty,
            bound,
            self.clock.now_ms(),
            self.config.delete_retention_ms,
            slots,
            bases,
            {segment.base_offset: self.modified_ms(segment) for segment in log.segments},
            self.last_records(),
            dict(self.aborted),
            log.log_start_offset,
        )

    def last_records(self) -> dict[int, LastRecord]:
        if self.has_crashed:
            return {
                each.producer_id: LastRecord(
                    each.last_data_offset if each.batches else None, each.epoch
                )
                for each in self.log.producers
            }
        return {
            producer_id: LastRecord(known.data_offset, known.epoch)
            for producer_id, known in self.producers.items()
        }

    def clean(self, *, slots: int = SLOTS) -> Cleaned | None:
        """A round by the log and by the model, which have to agree."""
        plan = self.plan(slots=slots)
        if plan is None:
            return None
        try:
            expected = clean(self.batches, plan)
        except UncleanableError:
            self.check_uncleanable(plan)
            return None
        groups = self.groups(plan, expected.end_offset)
        result = clean_now(
            self.log,
            first_dirty_offset=plan.first_dirty_offset,
            now_ms=plan.now_ms,
            map_bytes=24 * slots,
        )
        assert result.end_offset == expected.end_offset
        self.batches = list(expected.batches)
        self.aborted = dict(expected.aborted)
        self.first_dirty_offset = expected.end_offset
        self.rounds += 1
        self.check_groups(plan, groups)
        self.check()
        return expected

    def check_uncleanable(self, plan: Round) -> None:
        """A copy of the log cannot be cleaned, and loses nothing but what earlier groups did."""
        self.log.flush()
        files = self.files.clone()
        log = self.open(files, is_clean=False, start_offset=self.log.log_start_offset)
        with pytest.raises(CorruptSegmentError):
            clean_now(
                log,
                first_dirty_offset=plan.first_dirty_offset,
                now_ms=plan.now_ms,
                map_bytes=24 * plan.slots,
            )
        assert not [name for name in files.tree(DIRECTORY) if name.endswith(".cleaned")]

    def groups(self, plan: Round, end_offset: int) -> list[list[int]]:
        facts = [
            SegmentFacts(
                segment.base_offset,
                segment.size_bytes,
                segment.offset_index.entries * 8,
                segment.time_index.entries * 12,
            )
            for segment in self.log.segments
            if segment.base_offset < end_offset
        ]
        return group(
            facts,
            segment_bytes=self.config.segment_size_bytes,
            index_bytes=self.config.segment_index_bytes,
            first_uncleanable_offset=plan.first_uncleanable_offset,
        )

    # --- looking -------------------------------------------------------------------------------

    def modified_ms(self, segment: Segment) -> int:
        entry = self.files.stat(segment.path)
        assert entry is not None
        return entry.modified_ms

    def check_groups(self, plan: Round, groups: list[list[int]]) -> None:
        """One segment in the place of each group, as old as the group's last."""
        cleaned = {members[0] for members in groups}
        gone = {base for members in groups for base in members} - cleaned
        assert set(self.log.segments.base_offsets) == set(plan.bases) - gone
        for members in groups:
            segment = self.log.segments.at(members[0])
            assert self.modified_ms(segment) == plan.modified_ms[members[-1]]

    def check(self) -> None:
        """The log is what the model says, in memory and on disk."""
        found = list(stored_batches(self.log))
        for (_, content), batch in zip(found, self.batches, strict=False):
            check_same(content, batch)
        assert len(found) == len(self.batches)
        bases = self.log.segments.base_offsets
        for (base_offset, _), batch in zip(found, self.batches, strict=True):
            assert base_offset == max(base for base in bases if base <= batch.last_offset)
        assert self.listed() == sorted(self.aborted.values(), key=lambda entry: entry.last_offset)
        # Messages of magic 0 and 1, and what compaction makes of them, have no leader epoch; and
        # a snapshot may lack a producer that had expired when it was written.
        hints = (Kind.LEADER_EPOCHS, Kind.SNAPSHOT)
        findings = [each for each in check(self.log) if each.kind not in hints]
        if self.has_crashed:
            findings = [each for each in findings if each.severity is Severity.ERROR]
        assert not findings, [str(each) for each in findings]
        files, directory = self.log.context.files, self.log.directory
        assert not false_ranges(files, directory, is_active=True)

    def listed(self) -> list[AbortedEntry]:
        """What the transaction indexes hold, in order."""
        indexes = [segment.transaction_index for segment in self.log.segments]
        return [AbortedEntry(*entry_fields(entry)) for index in indexes for entry in index]

    def committed(self) -> list[Row]:
        """Every record of data that was ever appended and that nobody has aborted."""
        return [
            row
            for batch in self.history
            if not batch.is_control and batch.transaction not in self.ever_aborted
            for row in batch.rows
        ]
