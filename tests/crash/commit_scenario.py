"""Drive a log manager's commits over a simulated disk, and know what a crash may leave of them.

``Owner`` does one thing after the other: makes logs, produces, stages, commits. A ``Moment`` is a
copy of the disk before an operation, with what the logs hold before and after what was being done
then. ``check_started`` starts on what a crash left of it: every log is as it was before, or every
log is as it should be afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from crash_scenario import check_clean, readable_batches

from commit_harness import LOG_DIR, STAGED_SECONDS, START_MS, Values, batch, new_manager, stage
from stratalog.config import TopicConfig
from stratalog.records import read_headers
from stratalog.records.columns import decode_records
from stratalog.storage.check import check
from stratalog.storage.commits.committing import Commit
from stratalog.storage.commits.errors import CommitError
from stratalog.storage.commits.journal import CommitJournal
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.layout import TopicPartition, replica_directory, staging_directory
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem
from stratalog.testing.faults import Operation
from stratalog.testing.time_ranges import false_ranges

CONFIG = TopicConfig(
    internal_segment_bytes=2000,
    segment_index_bytes=1200,
    index_interval_bytes=150,
    file_delete_delay_ms=1000,
)
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 1)
EMPTY = TopicPartition("empty", 0)

# The values of all records of each log, in order, where offsets count from 0.
State = dict[TopicPartition, tuple[bytes, ...]]


@dataclass(frozen=True)
class Moment:
    name: str
    files: SimulatedFileSystem
    before: State
    after: State
    manifests: tuple[Manifest, ...]
    """Those that were staged so far, or were about to be committed."""
    returned: frozenset[str]
    """The ids of those whose commit was answered."""
    now_ms: int


@dataclass
class Owner:
    """``state`` is what has been promised; ``after`` is that, and what is being done."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(START_MS))
    moments: list[Moment] = field(default_factory=list)
    state: State = field(default_factory=dict)
    after: State = field(default_factory=dict)
    manifests: list[Manifest] = field(default_factory=list)
    returned: set[str] = field(default_factory=set)
    step: str = ""
    number: int = 0

    def __post_init__(self) -> None:
        self.files = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.start()

    def observe(self) -> None:
        """From now on every moment is kept."""
        self.files.observer = lambda operation: self.keep(f"{self.step}: {operation.kind}")

    def keep(self, name: str) -> None:
        self.moments.append(
            Moment(
                name,
                self.files.clone(),
                self.state,
                self.after,
                tuple(self.manifests),
                frozenset(self.returned),
                self.clock.now_ms(),
            )
        )

    def start(self) -> None:
        self.step = "start"
        self.manager = new_manager(self.files, self.clock, CONFIG)
        self.manager.start()

    def stop(self) -> None:
        self.step = "stop"
        self.manager.shutdown()

    def create(self, *keys: TopicPartition) -> None:
        self.step = "create"
        for key in keys:
            self.manager.create(key)
            self.state = self.after = {**self.state, key: ()}

    def values(self, count: int, size_bytes: int = 8) -> list[bytes]:
        self.number += count
        numbers = range(self.number - count, self.number)
        return [b"%d" % number + b"." * size_bytes for number in numbers]

    def produce(self, key: TopicPartition, count: int = 2) -> None:
        """Acknowledged when this returns."""
        self.step = "produce"
        values = self.values(count)
        self.after = {**self.state, key: (*self.state[key], *values)}
        log = self.manager.get(key)
        log.append_as_leader(batch(values), leader_epoch=max(log.epochs.latest_epoch, 0))
        log.flush()
        log.update_high_watermark(log.log_end_offset)
        self.state = self.after

    def stage(
        self,
        shape: Mapping[TopicPartition, list[list[int]]],
        *,
        manifest_id: str,
        size_bytes: int = 8,
        app: AppVersion | None = None,
    ) -> Manifest:
        """``shape``: of each partition the files, of each file the numbers of records of its
        batches."""
        self.step = "stage"
        values: dict[TopicPartition, Values] = {
            key: [[self.values(count, size_bytes) for count in file] for file in files]
            for key, files in shape.items()
        }
        manifest = stage(self.files, self.clock, values, manifest_id=manifest_id, app=app)
        self.coming = {
            key: tuple(value for file in files for each in file for value in each)
            for key, files in values.items()
        }
        self.manifests.append(manifest)
        return manifest

    def leave_unsynced(self, manifest: Manifest) -> None:
        """As if the tasks had not synced what they staged."""
        for part in manifest:
            directory = f"{LOG_DIR}/{replica_directory(part.topic_partition)}"
            staging = staging_directory(directory, manifest.staging_id)
            for staged in part.files:
                path = f"{staging}/{staged.name}"
                content = self.files.contents(path)
                self.files.unlink(path)
                file = self.files.open(path, create=True)
                file.write_at(0, [content])
                file.close()

    def begin(self, manifest: Manifest) -> Commit:
        self.step = "commit"
        self.after = {key: (*held, *self.coming.get(key, ())) for key, held in self.state.items()}
        commit = self.manager.commits.plan(manifest)
        assert isinstance(commit, Commit)
        return commit

    def commit(self, manifest: Manifest) -> None:
        self.step = "commit"
        self.after = {key: (*held, *self.coming.get(key, ())) for key, held in self.state.items()}
        self.manager.commits.run(manifest)
        self.returned.add(manifest.manifest_id)
        self.state = self.after


# --- after the crash --------------------------------------------------------------------------


@lru_cache(maxsize=10_000)
def _decoded(stored: bytes) -> tuple[int, tuple[bytes, ...]]:
    """A batch's base offset and values; the same ones are met after every crash."""
    records = decode_records(stored)
    assert [each.offset - records[0].offset for each in records] == list(range(len(records)))
    return records[0].offset, tuple(bytes(each.value or b"") for each in records)


def values_in(log: Log) -> tuple[bytes, ...]:
    """Every record, with its offset where it should be."""
    found: list[bytes] = []
    for stored in readable_batches(log):
        first_offset, values = _decoded(stored)
        assert first_offset == len(found), "offsets count from 0, without holes"
        found += values
    assert len(found) == log.log_end_offset
    return tuple(found)


def state_of(manager: LogManager) -> State:
    return {log.topic_partition: values_in(log) for log in manager}


def started(files: SimulatedFileSystem, clock: ManualClock) -> LogManager:
    files._now_ms = clock.now_ms
    manager = new_manager(files, clock, CONFIG)
    manager.start()
    (directory,) = manager.directories
    assert directory.is_online, directory.state.reason
    assert not directory.offline_logs
    for log in manager:
        assert not log.is_damaged, log.recovery_report
    return manager


def check_started(
    moment: Moment, files: SimulatedFileSystem, *, is_started_again: bool = True
) -> None:
    clock = ManualClock(moment.now_ms)
    manager = started(files, clock)
    found = state_of(manager)
    assert found in (moment.before, moment.after), "all of it, or nothing"
    check_logs(manager, files)
    for manifest in moment.manifests:
        found = check_again(manager, manifest, moment, found)
    check_goes_on(manager, found)
    check_swept(manager, files, clock)
    manager.shutdown()
    if not is_started_again:
        return
    again = started(files, clock)
    assert all(log.recovery_report.scanned_bytes == 0 for log in again), "a clean stop is clean"
    again.shutdown()


def check_logs(manager: LogManager, files: SimulatedFileSystem) -> None:
    for log in manager:
        check_clean(check(log))
        assert not false_ranges(files, log.directory, is_active=True)
        assert log.high_watermark <= log.recovery_point
        for stored in readable_batches(log):
            header = read_headers(stored)[0]
            epoch = log.epochs.epoch_for_offset(header.base_offset)
            assert epoch == header.partition_leader_epoch


def check_again(manager: LogManager, manifest: Manifest, moment: Moment, found: State) -> State:
    """The same manifest once more: it changes nothing if it was committed, and can be committed
    if it was not, as long as what was staged survived."""
    known = manager.commits.status(manifest.manifest_id, manifest.app)
    is_last = manifest is moment.manifests[-1] and manifest.manifest_id not in moment.returned
    is_there = not is_last or (found == moment.after != moment.before)
    assert (known is not None) == is_there, "the journal knows what was committed"
    try:
        result = manager.commits.run(manifest)
    except CommitError:
        assert known is None, "what was committed is not refused"
        assert state_of(manager) == found, "what is refused changes nothing"
        return found
    assert (result.status == "already committed") == is_there
    now = state_of(manager)
    if is_there:
        assert now == found, "at most once"
    for key, (first_offset, end_offset) in result.partitions.items():
        part = next(each for each in manifest if each.topic_partition == key)
        assert end_offset - first_offset == part.record_count
        assert found.get(key) is None or end_offset <= len(now[key])
    check_logs_of(manager, now)
    return now


def check_logs_of(manager: LogManager, now: State) -> None:
    for log in manager:
        assert log.log_end_offset == len(now[log.topic_partition])
        assert not log.is_paused


def check_goes_on(manager: LogManager, found: State) -> None:
    for log in manager:
        info = log.append_as_leader(batch([b"after"]), leader_epoch=max(log.epochs.latest_epoch, 0))
        assert info.first_offset == len(found[log.topic_partition])
    manager.flush_appended()
    assert state_of(manager) == {key: (*values, b"after") for key, values in found.items()}


def check_swept(manager: LogManager, files: SimulatedFileSystem, clock: ManualClock) -> None:
    """Once its lease is over nothing that was staged is left, nor anything that Apache Kafka
    would stumble over."""
    clock.advance(2 * STAGED_SECONDS * 1000)
    manager.run_due()
    paths = files.tree(LOG_DIR)
    # What was being written when the power went is nobody's for an hour.
    left = [path for path in paths if "staging" in path and not path.endswith(".tmp")]
    assert not left
    for entry in files.list(LOG_DIR):
        assert not entry.is_directory or "-" in entry.name


_ALTERNATING = (CrashMode.TORN, CrashMode.REORDER, CrashMode.LOST_ENTRY)


def modes_at(index: int) -> tuple[CrashMode, ...]:
    """What is cheap to try everywhere, and each of the others at every third moment."""
    return CrashMode.LOSE_UNSYNCED, CrashMode.MIXED, _ALTERNATING[index % 3]


def crash_everywhere(moments: list[Moment], *, all_modes: bool) -> int:
    count = 0
    for index, moment in enumerate(moments):
        for mode in CrashMode if all_modes else modes_at(index):
            count += 1
            try:
                files = moment.files.after_crash(mode, index)
                check_started(moment, files, is_started_again=count % 4 == 0)
            except Exception as error:
                error.add_note(f"at moment {index} ({moment.name}), {mode}, seed {index}")
                raise
    return count


def moments_of_start(moment: Moment, files: SimulatedFileSystem) -> list[Moment]:
    """Every moment of the start that follows a crash."""
    found: list[Moment] = []

    def keep(operation: Operation) -> None:
        name = f"{moment.name}, start: {operation.kind}"
        found.append(replace(moment, name=name, files=files.clone()))

    files.observer = keep
    manager = started(files, ManualClock(moment.now_ms))
    files.observer = None
    for log in manager:
        log.abandon()
    return found


def is_pending(files: SimulatedFileSystem) -> bool:
    """Whether the journal has something that the next start has to bring about."""
    journal = CommitJournal(files.clone(), LOG_DIR)
    journal.load()
    return bool(journal.pending)
