"""Drive a log over a simulated disk and know, at every operation, what a crash may take away.

``Driver`` does what an owner of a log does, and keeps the **promises** that the calls made so far
amount to. ``Moment`` is a copy of the disk between two operations, with the promises of then.
``check_after`` opens what is left of it after a crash and holds the log to them.
"""

from dataclasses import dataclass, field, replace

from stratalog.config import TopicConfig
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
from stratalog.storage.reading import Isolation
from stratalog.storage.recovery import open_log
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem
from stratalog.testing.time_ranges import false_ranges

DIRECTORY = "/data/t-0"
START_MS = 1_700_000_000_000

CONFIG = TopicConfig(
    internal_segment_bytes=1000,
    segment_index_bytes=240,
    index_interval_bytes=150,
    file_delete_delay_ms=1000,
)


@dataclass(frozen=True)
class Promises:
    """What a log owes its owner."""

    kept: tuple[bytes, ...] = ()
    """Flushed batches, as they lie in the log."""
    gone: frozenset[bytes] = frozenset()
    """Batches cut away before the last flush: they do not come back."""
    log_start_offset: int = 0
    """The highest start that was asked for; a crash may undo it as far as ``checkpointed``."""
    recovery_point: int = 0
    """As checkpointed."""
    checkpointed_start_offset: int = 0
    clean: bool = False


@dataclass(frozen=True)
class Moment:
    name: str
    files: SimulatedFileSystem
    promises: Promises


@dataclass
class Producer:
    producer_id: int
    epoch: int = 0
    sequence: int = 0


def context(files: SimulatedFileSystem, clock: ManualClock | None = None) -> LogContext:
    return LogContext(
        files,
        clock or ManualClock(START_MS),
        HandleCache(),
        DirectoryState(),
        flush_on_ack=False,
    )


def new_disk() -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    for path in ("/data", DIRECTORY):
        files.make_directory(path)
        files.sync_directory(path.rpartition("/")[0] or "/")
    return files


def open_after(files: SimulatedFileSystem, promises: Promises, config: TopicConfig = CONFIG) -> Log:
    return open_log(
        DIRECTORY,
        config,
        context(files),
        clean=promises.clean,
        recovery_point=promises.recovery_point,
        log_start_offset=promises.checkpointed_start_offset,
    )


@dataclass
class Driver:
    """A log and its promises. ``ever`` holds every batch that was ever handed to it."""

    files: SimulatedFileSystem = field(default_factory=new_disk)
    config: TopicConfig = CONFIG
    promises: Promises = Promises()
    batches: list[bytes] = field(default_factory=list)
    ever: set[bytes] = field(default_factory=set)
    holes: set[int] = field(default_factory=set)
    """Log ends that a truncation put inside a batch: what follows begins there, behind a hole."""
    cut: set[bytes] = field(default_factory=set)
    moments: list[Moment] = field(default_factory=list)
    leader_epoch: int = 0
    timestamp_ms: int = START_MS
    step: str = "open"

    def __post_init__(self) -> None:
        self.log = open_after(self.files, self.promises, self.config)

    # --- observing -----------------------------------------------------------------------------

    def observe(self) -> None:
        """From now on, keep every moment."""
        self.files.observer = lambda operation: self.keep(f"{self.step}: {operation.kind}")

    def keep(self, name: str) -> None:
        self.moments.append(Moment(name, self.files.clone(), self.promises))

    def promise(self, **changes: object) -> None:
        self.promises = replace(self.promises, **changes)  # type: ignore[arg-type]

    # --- what an owner does ----------------------------------------------------------------------

    def append(
        self,
        count: int = 2,
        *,
        producer: Producer | None = None,
        transactional: bool = False,
        codec: Codec = Codec.NONE,
        size: int = 20,
    ) -> None:
        self.step = "append"
        offset = self.log.log_end_offset
        records = []
        for index in range(count):
            self.timestamp_ms += 7 if index % 3 else -2
            value = (b"%d " % (offset + index)) * (size // 4)
            records.append(Record(b"k%d" % (index % 3), value, (), self.timestamp_ms))
        identity: dict[str, int] = {}
        if producer is not None:
            identity = {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                "base_sequence": producer.sequence,
            }
            producer.sequence += count

        def build(base_offset: int, leader_epoch: int) -> bytes:
            return build_batch(
                records,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
                codec=codec,
                transactional=transactional,
                **identity,
            )

        self._append(build(0, -1), build(offset, self.leader_epoch), AppendOrigin.CLIENT)

    def end_transaction(self, producer: Producer, *, commit: bool) -> None:
        self.step = "commit" if commit else "abort"

        def build(base_offset: int, leader_epoch: int) -> bytes:
            return build_end_transaction_marker(
                commit=commit,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                coordinator_epoch=0,
                timestamp_ms=self.timestamp_ms,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
            )

        stored = build(self.log.log_end_offset, self.leader_epoch)
        self._append(build(0, -1), stored, AppendOrigin.COORDINATOR)

    def _append(self, produced: bytes, stored: bytes, origin: AppendOrigin) -> None:
        self.ever.add(stored)
        self.log.append_as_leader(produced, leader_epoch=self.leader_epoch, origin=origin)
        self.batches.append(stored)
        self.log.update_high_watermark(self.log.log_end_offset)

    def flush(self) -> None:
        self.step = "flush"
        self.log.flush()
        self.promise(kept=tuple(self.batches), gone=frozenset(self.cut))

    def roll(self) -> None:
        self.step = "roll"
        self.log.roll()

    def checkpoint(self) -> None:
        """What the manager writes from time to time."""
        self.promise(
            recovery_point=self.log.promised_recovery_point,
            checkpointed_start_offset=self.log.log_start_offset,
        )

    def truncate(self, offset: int) -> None:
        """A batch that holds ``offset`` goes as a whole, but the log end is ``offset`` then."""
        self.step = "truncate"
        left = [b for b in self.batches if read_headers(b)[0].last_offset < offset]
        kept = [b for b in self.promises.kept if read_headers(b)[0].last_offset < offset]
        self.promise(kept=tuple(kept))
        self.log.context.checkpoint_recovery_points = self._lower_recovery_point
        if left and read_headers(left[-1])[0].next_offset < offset < self.log.log_end_offset:
            self.holes.add(offset)
        self.log.truncate_to(offset)
        self.cut |= set(self.batches) - set(left)
        self.batches = left
        check_producers(self.log, self.batches)

    def _lower_recovery_point(self) -> None:
        """Whoever truncates does so before."""
        lowest = min(self.promises.recovery_point, self.log.promised_recovery_point)
        self.promise(recovery_point=lowest)

    def delete_to(self, offset: int) -> None:
        self.step = "delete"
        self.promise(log_start_offset=offset)
        self.log.raise_log_start_offset(offset)
        doomed = [
            segment
            for segment, following in zip(
                self.log.segments, list(self.log.segments)[1:], strict=False
            )
            if following.base_offset <= offset
        ]
        self.log.delete_segments(doomed)
        self.log.pending_deletes.run(2**62)

    def close(self) -> None:
        self.step = "close"
        self.log.close()
        self.promise(
            kept=tuple(self.batches),
            gone=frozenset(self.cut),
            recovery_point=self.log.promised_recovery_point,
            checkpointed_start_offset=self.log.log_start_offset,
        )

    def crash(self, mode: CrashMode, seed: int) -> None:
        """Lose what a crash takes, and go on with what recovery finds."""
        self.step = "recover"
        observer = self.files.observer
        self.files = self.files.after_crash(mode, seed)
        self.files.observer = observer
        self.log = open_after(self.files, self.promises, self.config)
        self.batches = stored_batches(self.log)

    def reopen(self, *, clean: bool) -> None:
        self.step = "reopen"
        self.promise(clean=clean)
        self.log = open_after(self.files, self.promises, self.config)
        self.promise(clean=False)


# --- after the crash -----------------------------------------------------------------------------


def stored_batches(log: Log) -> list[bytes]:
    """What lies in the segments, in order, as far as it is not known to be damaged."""
    found = []
    for segment in log.segments:
        data = segment.file().read_at(0, segment.size_bytes)
        for header in segment.headers():
            found.append(data[header.position : header.position + header.size_bytes])
    return found


def readable_batches(log: Log) -> list[bytes]:
    """Everything a follower would be sent, from the log start to the log end."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes=300, isolation=Isolation.LOG_END)
        if fetched.records is None:
            break
        data = fetched.records.read()
        headers = read_headers(data)  # checks the CRC
        assert headers, "a read returns at least one whole batch"
        found += [data[h.position : h.position + h.size_bytes] for h in headers]
        assert headers[-1].next_offset > offset, "reads move on"
        offset = headers[-1].next_offset
    return found


def check_after(
    moment: Moment,
    mode: CrashMode,
    seed: int,
    driver: Driver,
    *,
    files: SimulatedFileSystem | None = None,
) -> Log:
    """Open what ``mode`` left of ``moment`` and hold the log to its promises."""
    files = files or moment.files.after_crash(mode, seed)
    assert not false_ranges(files, DIRECTORY), "before the next start"
    log = open_after(files, moment.promises)
    assert not false_ranges(files, DIRECTORY, is_active=True), "after it"
    check_promises(log, moment.promises, driver)
    check_goes_on(log, files)
    return log


def check_promises(log: Log, promises: Promises, driver: Driver) -> None:
    assert not log.is_damaged, "a power loss damages nothing that was promised"
    lowest = promises.checkpointed_start_offset
    assert lowest <= log.log_start_offset <= max(promises.log_start_offset, lowest)
    assert log.log_start_offset <= log.recovery_point <= log.log_end_offset
    kept = {read_headers(batch)[0].base_offset: batch for batch in promises.kept}
    end_offset = 0
    if promises.kept:
        end_offset = read_headers(promises.kept[-1])[0].next_offset
    assert log.log_end_offset >= end_offset, "flushed batches are there"
    found = readable_batches(log)
    expected = log.log_start_offset
    served: dict[int, bytes] = {}
    for batch in found:
        header = read_headers(batch)[0]
        assert batch in driver.ever, f"{header} was never appended"
        assert batch not in promises.gone, f"{header} had been cut away"
        if header.base_offset not in driver.holes:
            assert header.base_offset <= expected, f"a gap after {expected} before {header}"
            assert header.base_offset == expected or expected == log.log_start_offset
        expected = header.next_offset
        served[header.base_offset] = batch
    assert max(expected, log.log_start_offset) == log.log_end_offset, "a gap at the end"
    for base_offset, batch in kept.items():
        if read_headers(batch)[0].next_offset > log.log_start_offset:
            assert served.get(base_offset) == batch, f"the flushed batch at {base_offset} is lost"
    check_producers(log, found)
    check_epochs(log, found)


@dataclass
class ReplayedProducer:
    epoch: int
    last_sequence: int
    last_offset: int
    transaction_first_offset: int | None


def check_producers(log: Log, batches: list[bytes]) -> None:
    """Producer state and aborted transactions are what the batches in the log say."""
    producers: dict[int, ReplayedProducer] = {}
    aborted = set()
    for batch in batches:
        header = read_headers(batch)[0]
        if header.producer_id < 0:
            continue
        known = producers.setdefault(header.producer_id, ReplayedProducer(-1, -1, -1, None))
        if header.is_control:
            if is_abort(batch) and known.transaction_first_offset is not None:
                aborted.add(
                    (header.producer_id, known.transaction_first_offset, header.last_offset)
                )
            known.transaction_first_offset = None
        else:
            known.last_sequence, known.last_offset = header.last_sequence, header.last_offset
            if header.is_transactional and known.transaction_first_offset is None:
                known.transaction_first_offset = header.base_offset
        known.epoch = header.producer_epoch
    for producer_id, expected in producers.items():
        state = log.producers.get(producer_id)
        assert state is not None, f"producer {producer_id} is forgotten"
        assert state.epoch == expected.epoch
        assert state.last_sequence == expected.last_sequence
        assert state.last_data_offset == expected.last_offset
        assert state.transaction_first_offset == expected.transaction_first_offset
    listed = {
        (each.producer_id, each.first_offset, each.last_offset)
        for segment in log.segments
        for each in segment.transaction_index
    }
    assert aborted <= listed, f"aborted transactions {aborted - listed} are not listed"
    start = log.log_start_offset
    assert {each for each in listed if each[1] >= start} <= aborted


def is_abort(batch: bytes) -> bool:
    from stratalog.records import ControlType, read_control_batch

    control = read_control_batch(batch)
    return control is not None and control.type is ControlType.ABORT


def check_epochs(log: Log, batches: list[bytes]) -> None:
    for batch in batches:
        header = read_headers(batch)[0]
        if header.base_offset >= log.log_start_offset:
            assert log.epochs.epoch_for_offset(header.base_offset) == header.partition_leader_epoch
    assert all(entry.start_offset <= log.log_end_offset for entry in log.epochs.entries)


def check_goes_on(log: Log, files: SimulatedFileSystem) -> None:
    """Appends continue at the log end, and a clean restart changes nothing."""
    before = readable_batches(log)
    check_clean(check(log))
    end_offset = log.log_end_offset
    batch = build_batch([Record(b"k", b"after the crash", (), START_MS)])
    info = log.append_as_leader(batch, leader_epoch=99)
    assert info.first_offset == end_offset
    log.close()
    again = open_log(
        DIRECTORY,
        log.config,
        context(files),
        clean=True,
        recovery_point=log.log_end_offset,
        log_start_offset=log.log_start_offset,
    )
    assert not again.is_damaged
    after = readable_batches(again)
    assert after[:-1] == before
    assert read_headers(after[-1])[0].base_offset == end_offset
    check_clean(check(again))
    again.abandon()


def check_clean(findings: list[Finding]) -> None:
    """No errors. Warnings are hints that a crash left behind; they cost time and no answer."""
    errors = [str(each) for each in findings if each.severity is Severity.ERROR]
    assert not errors
