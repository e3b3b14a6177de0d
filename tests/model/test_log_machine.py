"""A log against the simplest thing like it: a list of batches.

Hypothesis picks the steps: appends of every kind, rolls, flushes, reads, lookups by time, cuts at
both ends, restarts, kills and power losses. After each of them the log says what the list says.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from log_model import (
    ModelBatch,
    aborted_batches,
    first_not_older,
    last_stable_offset,
    open_transactions,
    transactions,
)
from machines import run_machine

from stratalog.config import TopicConfig
from stratalog.errors import (
    InvalidTransactionStateError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
)
from stratalog.records import (
    AppendOrigin,
    Codec,
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.storage.check import Finding, check
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.findings import Severity
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.lookup import list_offset
from stratalog.storage.reading import FetchedData, Isolation
from stratalog.storage.recovery import open_log
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem
from stratalog.testing.strategies import START_MS, codecs, records
from stratalog.testing.time_ranges import false_ranges

DIRECTORY = "/data/t-0"
CONFIG = TopicConfig(
    internal_segment_bytes=1500,
    segment_index_bytes=360,
    index_interval_bytes=200,
    file_delete_delay_ms=0,
)
near = st.integers(START_MS - 20, START_MS + 20)
rows = st.lists(
    st.builds(lambda record, at: record._replace(timestamp_ms=at), records(), near),
    min_size=1,
    max_size=6,
)
idempotent_ids = st.sampled_from((1, 2, 3))
transactional_ids = st.sampled_from((11, 12))


def errors(findings: list[Finding]) -> list[str]:
    """Warnings are left out: hints that a crash left behind cost time and no answer."""
    return [str(each) for each in findings if each.severity is Severity.ERROR]


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.files = SimulatedFileSystem()
        self.files.make_directory("/data")
        self.files.make_directory(DIRECTORY)
        self.files.sync_file_system("/")
        self.clock = ManualClock(START_MS)
        self.batches: list[ModelBatch] = []
        self.deleted: list[ModelBatch] = []
        self.ever: dict[bytes, ModelBatch] = {}
        self.cut: set[bytes] = set()
        self.gone: frozenset[bytes] = frozenset()
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.flushed_offset = 0
        self.high_watermark = 0
        self.checkpointed_recovery_point = 0
        self.leader_epoch = 0
        self.log: Log

    @initialize()
    def open_empty(self) -> None:
        self._open(self.files, clean=False)

    def _open(self, files: SimulatedFileSystem, *, clean: bool) -> None:
        self.files = files
        context = LogContext(
            files, self.clock, HandleCache(capacity=2), DirectoryState(), flush_on_ack=False
        )
        self.log = open_log(
            DIRECTORY,
            CONFIG,
            context,
            clean=clean,
            recovery_point=self.checkpointed_recovery_point,
            log_start_offset=self.log_start_offset,
        )

    # --- appending -----------------------------------------------------------------------------

    @rule(rows=rows, codec=codecs)
    def append(self, rows: list[Record], codec: Codec) -> None:
        self._append(rows, codec)

    @rule(rows=rows, codec=codecs, producer_id=idempotent_ids)
    def append_idempotent(self, rows: list[Record], codec: Codec, producer_id: int) -> None:
        self._append(rows, codec, producer_id=producer_id)

    @rule(rows=rows, codec=codecs, producer_id=transactional_ids)
    def append_in_a_transaction(self, rows: list[Record], codec: Codec, producer_id: int) -> None:
        self._append(rows, codec, producer_id=producer_id, transactional=True)

    def _append(
        self,
        rows: list[Record],
        codec: Codec,
        *,
        producer_id: int = -1,
        transactional: bool = False,
    ) -> None:
        batch = self._build(
            rows, codec, producer_id, transactional, self._next_sequence(producer_id)
        )
        try:
            info = self.log.append_as_leader(batch.produced, leader_epoch=self.leader_epoch)
        except OutOfOrderSequenceError:
            # A restart may forget the sequences of a producer whose batches are all deleted.
            assert not self._is_remembered(producer_id)
            batch = self._build(rows, codec, producer_id, transactional, 0)
            info = self.log.append_as_leader(batch.produced, leader_epoch=self.leader_epoch)
        assert (info.first_offset, info.last_offset) == (batch.base_offset, batch.next_offset - 1)
        assert not info.is_duplicate
        self.ever[batch.stored] = batch
        self._take(batch)

    def _build(
        self,
        rows: list[Record],
        codec: Codec,
        producer_id: int,
        transactional: bool,
        sequence: int,
    ) -> ModelBatch:
        offset = self.log_end_offset
        identity = {
            "codec": codec,
            "producer_id": producer_id,
            "producer_epoch": 0 if producer_id >= 0 else -1,
            "base_sequence": sequence,
            "transactional": transactional,
        }
        stored = build_batch(rows, base_offset=offset, leader_epoch=self.leader_epoch, **identity)
        produced = build_batch(rows, **identity)
        last_sequence = sequence + len(rows) - 1 if producer_id >= 0 else -1
        return ModelBatch(
            stored, produced, offset, tuple(rows), producer_id, last_sequence, transactional
        )

    def _take(self, batch: ModelBatch) -> None:
        self.batches.append(batch)
        self.log_end_offset = batch.next_offset

    def _next_sequence(self, producer_id: int) -> int:
        if producer_id < 0:
            return -1
        known = self._data_of(producer_id)
        return known[-1].last_sequence + 1 if known else 0

    def _data_of(self, producer_id: int) -> list[ModelBatch]:
        """What the producer wrote, deleted batches included: it counts on from there."""
        known = [*self.deleted, *self.batches]
        return [b for b in known if b.producer_id == producer_id and not b.is_control]

    def _is_remembered(self, producer_id: int) -> bool:
        """A restart may forget a producer all of whose batches are deleted."""
        known = self._data_of(producer_id)
        return bool(known) and known[-1].next_offset > self.log_start_offset

    @rule(producer_id=idempotent_ids)
    def send_a_batch_again(self, producer_id: int) -> None:
        # After a restart only the newest batch of a producer is sure to be remembered.
        if not self._is_remembered(producer_id):
            return
        again = self._data_of(producer_id)[-1]
        info = self.log.append_as_leader(again.produced, leader_epoch=self.leader_epoch)
        assert info.is_duplicate
        assert (info.first_offset, info.last_offset) == (again.base_offset, again.next_offset - 1)

    @rule(producer_id=idempotent_ids, skipped=st.integers(1, 5))
    def skip_a_sequence(self, producer_id: int, skipped: int) -> None:
        if not self._is_remembered(producer_id):
            return
        batch = build_batch(
            [Record(b"k", b"v", (), START_MS)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self._next_sequence(producer_id) + skipped,
        )
        with pytest.raises(OutOfOrderSequenceError):
            self.log.append_as_leader(batch, leader_epoch=self.leader_epoch)

    @rule(producer_id=transactional_ids)
    def send_outside_the_open_transaction(self, producer_id: int) -> None:
        if producer_id not in open_transactions(self.batches):
            return
        batch = build_batch(
            [Record(b"k", b"v", (), START_MS)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self._next_sequence(producer_id),
        )
        with pytest.raises(InvalidTransactionStateError):
            self.log.append_as_leader(batch, leader_epoch=self.leader_epoch)

    @rule(producer_id=transactional_ids, commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        if producer_id not in open_transactions(self.batches):
            return
        marker = {
            "commit": commit,
            "producer_id": producer_id,
            "producer_epoch": 0,
            "coordinator_epoch": 0,
            "timestamp_ms": START_MS,
        }
        offset = self.log_end_offset
        stored = build_end_transaction_marker(
            **marker, base_offset=offset, leader_epoch=self.leader_epoch
        )
        produced = build_end_transaction_marker(**marker)
        batch = ModelBatch(
            stored,
            produced,
            offset,
            (Record(b"", b"", (), START_MS),),
            producer_id,
            is_transactional=True,
            commits=commit,
        )
        self.ever[stored] = batch
        self.log.append_as_leader(
            produced,
            leader_epoch=self.leader_epoch,
            origin=AppendOrigin.COORDINATOR,
        )
        self._take(batch)

    @rule(step=st.integers(1, 3))
    def change_leader(self, step: int) -> None:
        self.leader_epoch += step

    # --- the life of files -----------------------------------------------------------------------

    @rule()
    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed_offset = self.log_end_offset
        self.gone = frozenset(self.cut)

    @rule(share=st.floats(0, 1))
    def move_high_watermark(self, share: float) -> None:
        # Followers fetch whole batches, so it never stands inside one.
        target = self.high_watermark + share * (self.log_end_offset - self.high_watermark)
        ends = [b.next_offset for b in self.batches if b.next_offset <= target]
        self.high_watermark = max([self.high_watermark, *ends])
        assert self.log.update_high_watermark(self.high_watermark) == self.high_watermark

    @precondition(lambda self: self.batches)
    @rule(share=st.floats(0.5, 1))
    def truncate(self, share: float) -> None:
        span = self.log_end_offset - self.log_start_offset
        target = self.log_start_offset + int(span * share)
        boundaries = [b.base_offset for b in self.batches] + [self.log_end_offset]
        offset = min((o for o in boundaries if o >= target), default=self.log_end_offset)
        self.checkpointed_recovery_point = min(self.checkpointed_recovery_point, offset)
        self.log.truncate_to(offset)
        self.cut |= {b.stored for b in self.batches if b.base_offset >= offset}
        self.batches = [b for b in self.batches if b.base_offset < offset]
        self.log_end_offset = min(self.log_end_offset, offset)
        self.flushed_offset = min(self.flushed_offset, offset)
        # A truncation forgets which finished transactions still lie above the high watermark:
        # whoever truncates has found out where the log is replicated up to.
        self._raise_high_watermark()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        span = self.high_watermark - self.log_start_offset
        offset = self.log_start_offset + int(span * share)
        # A transaction is not cut in two here: of its first half only hints would be left.
        for first_offset, end_offset in transactions(self.batches):
            if first_offset < offset < end_offset:
                offset = max(first_offset, self.log_start_offset)
        self.flush()  # so does whoever writes the checkpoint that a restart goes by
        self.log.delete_records(offset)
        kept = self.log.segments.from_floor(offset)
        self.log.delete_segments([s for s in self.log.segments if s not in kept])
        self.log.run_deletes(self.clock.now_ms())
        self.log_start_offset = max(self.log_start_offset, offset)
        self.flushed_offset = max(self.flushed_offset, self.log_start_offset)

    @rule()
    def checkpoint(self) -> None:
        self.checkpointed_recovery_point = self.log.recovery_point

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.flush_model()
        self._open(self.files, clean=True)
        assert self.log.recovery_report.scanned_bytes == 0
        self._raise_high_watermark()

    def flush_model(self) -> None:
        self.flushed_offset = self.log_end_offset
        self.checkpointed_recovery_point = self.log_end_offset
        self.gone = frozenset(self.cut)

    @rule(
        mode=st.sampled_from((CrashMode.KEEP_ALL, CrashMode.LOSE_UNSYNCED, CrashMode.TORN)),
        seed=st.integers(0, 99),
    )
    def crash(self, mode: CrashMode, seed: int) -> None:
        before = list(self.batches)
        self._open(self.files.after_crash(mode, seed), clean=False)
        assert not self.log.is_damaged
        found = []
        for segment in self.log.segments:
            data = segment.file().read_at(0, segment.size_bytes)
            for header in read_headers(data):
                found.append(data[header.position : header.position + header.size_bytes])
        survivors = [self.ever[stored] for stored in found]
        kept = [b for b in before if b.next_offset <= self.flushed_offset]
        lost = {b.stored for b in kept if b.next_offset > self.log_start_offset} - set(found)
        assert not lost, "flushed batches survive"
        again = {b.stored for b in before}  # a marker may be written anew, byte for byte
        assert not self.gone & set(found) - again, "what was cut before a flush stays away"
        if mode is CrashMode.KEEP_ALL:
            alive = [b for b in before if b.next_offset > self.log_start_offset]
            assert [b for b in survivors if b.next_offset > self.log_start_offset] == alive
        self.deleted += [b for b in before if b.next_offset <= self.log_start_offset]
        self.batches = survivors
        self.log_end_offset = self.log.log_end_offset
        assert self.log_end_offset >= self.flushed_offset
        assert self.log.log_start_offset == self.log_start_offset
        self._raise_high_watermark()

    def _raise_high_watermark(self) -> None:
        self.high_watermark = self.log_end_offset
        self.log.update_high_watermark(self.high_watermark)

    # --- reading -------------------------------------------------------------------------------

    @rule(
        share=st.floats(0, 1), max_bytes=st.integers(1, 3000), isolation=st.sampled_from(Isolation)
    )
    def read(self, share: float, max_bytes: int, isolation: Isolation) -> None:
        span = self.log_end_offset - self.log_start_offset
        offset = self.log_start_offset + int(span * share)
        fetched = self.log.read(offset, max_bytes=max_bytes, isolation=isolation)
        bound = self._bound(isolation)
        expected = [b for b in self.batches if b.next_offset > offset and b.base_offset < bound]
        if offset >= bound or not expected:
            assert fetched.records is None
            return
        assert fetched.records is not None
        data = fetched.records.read()
        assert len(data) <= max(max_bytes, len(expected[0].stored))
        wanted = b"".join(b.stored for b in expected)
        assert data.startswith(expected[0].stored), "the first batch is always whole"
        assert wanted.startswith(data), "then come the ones after it, as far as they fit"
        if isolation is Isolation.TXN_COMMITTED:
            self._check_committed(fetched, expected[: len(read_headers(data))])

    def _check_committed(self, fetched: FetchedData, batches: list[ModelBatch]) -> None:
        """A consumer drops what it is told to, and keeps exactly what was committed."""
        assert fetched.aborted is not None
        starts = sorted((a.first_offset, a.producer_id) for a in fetched.aborted)
        aborting: set[int] = set()
        delivered = []
        for batch in batches:
            while starts and starts[0][0] <= batch.base_offset:
                aborting.add(starts.pop(0)[1])
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborting):
                delivered.append(batch.base_offset)
        aborted = aborted_batches(self.batches)
        expected = [b.base_offset for b in batches if not b.is_control]
        assert delivered == [offset for offset in expected if offset not in aborted]

    def _bound(self, isolation: Isolation) -> int:
        if isolation is Isolation.LOG_END:
            return self.log_end_offset
        if isolation is Isolation.HIGH_WATERMARK:
            return self.high_watermark
        return self._stable_offset()

    def _stable_offset(self) -> int:
        return last_stable_offset(
            self.batches,
            high_watermark=self.high_watermark,
            log_start_offset=self.log_start_offset,
        )

    @rule(at=near, isolation=st.sampled_from(Isolation))
    def look_up_by_time(self, at: int, isolation: Isolation) -> None:
        bound = self._bound(isolation)
        found = first_not_older(self.batches, at, start_offset=self.log_start_offset)
        expected = found if found < bound else -1
        assert list_offset(self.log, at, isolation).offset == expected

    @rule(beyond=st.integers(1, 5))
    def read_outside(self, beyond: int) -> None:
        for offset in (self.log_start_offset - beyond, self.log_end_offset + beyond):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, max_bytes=100, isolation=Isolation.LOG_END)

    # --- always --------------------------------------------------------------------------------

    @invariant()
    def offsets_agree(self) -> None:
        log = self.log
        assert log.log_start_offset == self.log_start_offset
        assert log.log_end_offset == self.log_end_offset
        assert log.high_watermark == self.high_watermark
        assert log.last_stable_offset == self._stable_offset()
        assert log.log_start_offset <= log.recovery_point <= log.log_end_offset
        # Rolling flushes too; whatever the log calls flushed has to survive from now on.
        self.flushed_offset = max(self.flushed_offset, log.recovery_point)

    @invariant()
    def epochs_agree(self) -> None:
        for batch in self.batches[-3:]:
            if batch.base_offset >= self.log_start_offset:
                header = read_headers(batch.stored)[0]
                found = self.log.epochs.epoch_for_offset(batch.base_offset)
                assert found == header.partition_leader_epoch

    @invariant()
    def time_ranges_are_true(self) -> None:
        assert not false_ranges(self.files, DIRECTORY, is_active=True)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            found = errors(check(self.log))
            self.log.close()
            found += errors(check(DIRECTORY, self.files))
            found += false_ranges(self.files, DIRECTORY)
            assert not found, found


def test_a_log_says_what_a_list_of_batches_says() -> None:
    run_machine(LogMachine, examples=60, steps=50)


def test_the_batch_that_the_log_start_lies_in_still_counts_for_its_producer() -> None:
    machine = LogMachine()
    machine.open_empty()
    machine.append_idempotent([Record(b"k", b"v", (), START_MS)] * 2, Codec.NONE, 1)
    machine.move_high_watermark(1.0)
    machine.delete_records(0.5)
    assert machine.log_start_offset == 1
    machine.crash(CrashMode.KEEP_ALL, 0)
    machine.send_a_batch_again(1)
    machine.offsets_agree()


@pytest.mark.deep
def test_a_log_says_what_a_list_of_batches_says_for_ten_thousand_steps() -> None:
    run_machine(LogMachine, examples=200, steps=100)
