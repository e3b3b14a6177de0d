"""A log on a simulated disk and the model of it, driven together through a history of steps.

Steps are plain values, so that hypothesis draws, shows and shrinks them. What a step cannot do
(end a transaction of a producer that is forgotten, say) it leaves out. Values of records name
their offset: no two are the same, and a record that moved would be noticed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
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

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError
from stratalog.records import (
    Codec,
    Record,
    TimestampType,
    build_batch,
    build_end_transaction_marker,
)
from stratalog.storage.check import check
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.findings import Kind, Severity
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation
from stratalog.storage.recovery import open_log
from stratalog.storage.segment import Segment
from stratalog.testing import ManualClock, SimulatedFileSystem
from stratalog.testing.legacy import legacy_message_set

DIRECTORY = "/data/t-0"
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SLOTS = 1000

CONFIG = TopicConfig(
    cleanup_policy=("compact",),
    internal_segment_bytes=1200,
    segment_index_bytes=240,
    index_interval_bytes=150,
    file_delete_delay_ms=0,
    delete_retention_ms=HOUR_MS,
)


# --- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowSpec:
    """A record to be written. ``key`` is None for none; ``gap`` offsets are left out before it."""

    key: int | None
    is_tombstone: bool = False
    age_ms: int = 0
    gap: int = 0
    value_bytes: int = 8
    has_headers: bool = False


@dataclass(frozen=True)
class Append:
    """Data. A ``producer`` below 0 is none, and one that is ``transactional`` opens a transaction
    if it has none. ``magic`` below 2 leaves out what those formats lack."""

    rows: tuple[RowSpec, ...]
    producer: int = -1
    transactional: bool = False
    codec: Codec = Codec.NONE
    magic: int = 2
    log_append_time: bool = False
    gap: int = 0


@dataclass(frozen=True)
class End:
    """The end of a transaction; a coordinator may raise the producer's epoch with it. A producer
    that has none open gets a marker that ends nothing."""

    producer: int
    commit: bool
    raises_epoch: bool = False


@dataclass(frozen=True)
class Roll:
    pass


@dataclass(frozen=True)
class Clean:
    """Some time later, a round."""

    after_ms: int = 0
    slots: int = SLOTS


@dataclass(frozen=True)
class Expire:
    """Much later: producers that have written nothing are forgotten."""


@dataclass(frozen=True)
class Reopen:
    is_clean: bool = True


@dataclass(frozen=True)
class RaiseStart:
    """DeleteRecords up to some part of the log, in hundredths."""

    part: int


@dataclass(frozen=True)
class DropFirst:
    """Retention takes the first segment away."""


Step = Append | End | Roll | Clean | Expire | Reopen | RaiseStart | DropFirst


@dataclass
class Producer:
    """What the model knows of a producer."""

    epoch: int = 0
    sequence: int = 0
    data_offset: int | None = None
    last_timestamp_ms: int = 0
    transaction: Transaction | None = None
    first_offset: int = -1


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
        context = LogContext(
            files, self.clock, HandleCache(), DirectoryState(), flush_on_ack=False
        )
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
        base_offset = self.log.log_end_offset + step.gap
        rows = self._rows(step, base_offset)
        if step.magic < 2:
            self._append_legacy(step, rows)
            return
        known = self._producer_for(step, base_offset)
        append_time_ms = self.clock.now_ms() if step.log_append_time else None
        fields = {} if known is None else self._identity(step.producer, known)
        stored = build_batch(
            [Record(row.key, row.value, row.headers, row.timestamp_ms) for row in rows],
            base_offset=base_offset,
            codec=step.codec,
            timestamp_type=TimestampType(step.log_append_time),
            log_append_time_ms=append_time_ms,
            transactional=known is not None and known.transaction is not None,
            leader_epoch=0,
            offset_deltas=[row.offset - base_offset for row in rows],
            **fields,
        )
        if append_time_ms is not None:
            rows = [row._replace(timestamp_ms=append_time_ms) for row in rows]
        batch = Batch(
            tuple(rows),
            base_offset,
            rows[-1].offset,
            max(row.timestamp_ms for row in rows),
            codec=step.codec,
            is_log_append_time=step.log_append_time,
            leader_epoch=0,
            is_transactional=known is not None and known.transaction is not None,
            transaction=None if known is None else known.transaction,
            stored=stored,
            **fields,
        )
        if known is not None:
            known.sequence += rows[-1].offset - base_offset + 1
            known.data_offset = batch.last_offset
            known.last_timestamp_ms = batch.max_timestamp_ms
        self._store([batch])

    def _rows(self, step: Append, base_offset: int) -> list[Row]:
        rows = []
        offset = base_offset
        for number, spec in enumerate(step.rows):
            offset += (spec.gap if step.magic == 2 or step.codec else 0) if number else 0
            value = None if spec.is_tombstone else b"%d" % offset + b"." * spec.value_bytes
            headers = (("at", b"%d" % offset), ("none", None)) if spec.has_headers else ()
            timestamp_ms = -1 if step.magic == 0 else self.clock.now_ms() - spec.age_ms
            rows.append(
                Row(
                    offset,
                    timestamp_ms,
                    None if spec.key is None else b"key %d" % spec.key,
                    value,
                    headers if step.magic == 2 else (),
                )
            )
            offset += 1
        return rows

    def _producer_for(self, step: Append, base_offset: int) -> Producer | None:
        if step.producer < 0:
            return None
        known = self.producers.setdefault(step.producer, Producer())
        # While a transaction is open its producer writes nothing outside it.
        if step.transactional and known.transaction is None:
            known.transaction = Transaction(next(self._numbers), step.producer)
            known.first_offset = base_offset
        return known

    def _identity(self, producer_id: int, known: Producer) -> dict[str, int]:
        return {
            "producer_id": producer_id,
            "producer_epoch": known.epoch,
            "base_sequence": known.sequence,
        }

    def _append_legacy(self, step: Append, rows: list[Row]) -> None:
        append_time_ms = self.clock.now_ms() if step.log_append_time and step.magic == 1 else None
        codec = Codec.GZIP if step.codec is Codec.ZSTD else step.codec
        runs = [rows] if codec is not Codec.NONE else [[row] for row in rows]
        batches = []
        for run in runs:
            stored = legacy_message_set(
                [(row.key, row.value, row.timestamp_ms) for row in run],
                magic=step.magic,
                base_offset=run[0].offset,
                codec=codec,
                offset_deltas=[row.offset - run[0].offset for row in run],
                log_append_time_ms=append_time_ms,
            )
            if append_time_ms is not None:
                run = [row._replace(timestamp_ms=append_time_ms) for row in run]  # noqa: PLW2901
            batches.append(
                Batch(
                    tuple(run),
                    run[0].offset,
                    run[-1].offset,
                    max(row.timestamp_ms for row in run),
                    magic=step.magic,
                    codec=codec,
                    is_log_append_time=append_time_ms is not None,
                    stored=stored,
                )
            )
        self._store(batches)

    def end(self, step: End) -> None:
        known = self.producers.get(step.producer)
        if known is None:
            return
        if step.raises_epoch:
            known.epoch += 1
            known.sequence = 0
            known.data_offset = None
        offset = self.log.log_end_offset
        stored = build_end_transaction_marker(
            commit=step.commit,
            producer_id=step.producer,
            producer_epoch=known.epoch,
            coordinator_epoch=0,
            timestamp_ms=self.clock.now_ms(),
            base_offset=offset,
            leader_epoch=0,
        )
        key = b"\0\0\0\1" if step.commit else b"\0\0\0\0"
        batch = Batch(
            (Row(offset, self.clock.now_ms(), key, bytes(6)),),
            offset,
            offset,
            self.clock.now_ms(),
            producer_id=step.producer,
            producer_epoch=known.epoch,
            leader_epoch=0,
            is_transactional=True,
            is_control=True,
            marker=Marker.COMMIT if step.commit else Marker.ABORT,
            transaction=known.transaction,
            stored=stored,
        )
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
        self.log = self.open(
            self.files, is_clean=is_clean, start_offset=self.log.log_start_offset
        )
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

    def listed(self) -> list[AbortedEntry]:
        """What the transaction indexes hold, in order."""
        indexes = [segment.transaction_index for segment in self.log.segments]
        return [AbortedEntry(*vars_of(entry)) for index in indexes for entry in index]

    def committed(self) -> list[Row]:
        """Every record of data that was ever appended and that nobody has aborted."""
        return [
            row
            for batch in self.history
            if not batch.is_control and batch.transaction not in self.ever_aborted
            for row in batch.rows
        ]


def vars_of(entry: object) -> tuple[int, ...]:
    return tuple(
        getattr(entry, name)
        for name in ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    )


def stored_batches(log: Log) -> Iterator[tuple[int, bytes]]:
    """(base offset of its segment, bytes) of every batch, in order."""
    for segment in log.segments:
        for header in segment.headers():
            yield segment.base_offset, segment.read_batch(header)


def read_batches(
    log: Log, start_offset: int, *, isolation: Isolation = Isolation.LOG_END, max_bytes: int = 300
) -> Iterator[tuple[bytes, tuple[AbortedEntry, ...]]]:
    """Whole batches as a consumer fetches them, with the aborted transactions it is told of."""
    offset = start_offset
    while True:
        fetched = log.read(offset, max_bytes=max_bytes, isolation=isolation)
        whole = fetched.whole_batches()
        if not whole.content:
            return
        assert whole.next_offset > offset, "reads move on"
        told = tuple(AbortedEntry(*vars_of(each)) for each in fetched.aborted or ())
        yield whole.content, told
        offset = whole.next_offset


def replaced(world: World, **changes: object) -> World:
    """The same world with other settings; they count from the next step on."""
    world.config = replace(world.config, **changes)  # type: ignore[arg-type]
    world.log.configure(world.config)
    return world
