"""Power is cut before every operation of a log manager's life: start, create, delete, stop.

After each crash a new manager is started on what is left, with nothing but the files to go by:
its checkpoints, its clean-shutdown marker and the replicas' directories.
"""

import uuid
from dataclasses import dataclass, field, replace

import pytest
from crash_scenario import CONFIG, START_MS, check_producers, readable_batches

from stratalog.config import BrokerConfig
from stratalog.errors import StratalogError
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.log_starts import LogStartTask
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

BROKER = BrokerConfig(
    transaction_partition_verification_enable=False,
    log_dirs=("/data",),
    log_dir_reserve_bytes=0,
    num_recovery_threads_per_data_dir=1,
)
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 1)


@dataclass(frozen=True)
class Expected:
    """What a manager owes: by partition, flushed batches and the log start asked for."""

    kept: dict[TopicPartition, tuple[bytes, ...]] = field(default_factory=dict)
    topic_ids: dict[TopicPartition, uuid.UUID] = field(default_factory=dict)
    log_start_offsets: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    deleted: frozenset[TopicPartition] = frozenset()
    needs_no_recovery: bool = False


def new_manager(files: SimulatedFileSystem, clock: ManualClock) -> LogManager:
    return LogManager(
        BROKER, files=files, clock=clock, topic_config=lambda _topic: CONFIG, is_threaded=False
    )


class Owner:
    """Runs a manager and keeps every moment, with what is owed then."""

    def __init__(self) -> None:
        self.files = SimulatedFileSystem()
        self.clock = ManualClock(START_MS)
        self.expected = Expected()
        self.batches: dict[TopicPartition, list[bytes]] = {}
        self.ever: set[bytes] = set()
        self.moments: list[tuple[str, SimulatedFileSystem, Expected]] = []
        self.step = "start"
        self.files.observer = lambda operation: self.keep(f"{self.step}: {operation.kind}")
        self.start()

    def keep(self, name: str) -> None:
        self.moments.append((name, self.files.clone(), self.expected))

    def expect(self, **changes: object) -> None:
        self.expected = replace(self.expected, **changes)  # type: ignore[arg-type]

    def start(self) -> None:
        self.step = "start"
        self.expect(needs_no_recovery=False)
        self.manager = new_manager(self.files, self.clock)
        self.manager.start()

    def create(self, key: TopicPartition) -> None:
        self.step = "create"
        topic_id = uuid.uuid5(uuid.NAMESPACE_URL, str(key))
        self.manager.create(key, topic_id=topic_id)
        self.batches[key] = []
        self.expect(
            kept=self.expected.kept | {key: ()},
            topic_ids=self.expected.topic_ids | {key: topic_id},
        )

    def append(self, key: TopicPartition, count: int = 2) -> None:
        self.step = "append"
        log = self.manager.get(key)
        offset = log.log_end_offset
        records = [
            Record(b"k", b"%s %d" % (str(key).encode(), offset + index), (), START_MS + offset)
            for index in range(count)
        ]
        stored = build_batch(records, base_offset=offset, leader_epoch=0)
        self.ever.add(stored)
        log.append_as_leader(build_batch(records), leader_epoch=0)
        self.batches[key].append(stored)

    def flush(self) -> None:
        self.step = "flush"
        self.manager.flush_appended()
        for log in self.manager:
            log.update_high_watermark(log.log_end_offset)
        self.expect(kept={key: tuple(batches) for key, batches in self.batches.items()})

    def checkpoint(self) -> None:
        self.step = "checkpoint"
        self.manager.checkpoint_recovery_points()
        self.manager.checkpoint_log_start_offsets()
        self.manager.checkpoint_high_watermarks()
        starts = {
            log.topic_partition: (log.log_start_offset, log.log_start_offset)
            for log in self.manager
        }
        self.expect(log_start_offsets=starts)

    def delete_records(self, key: TopicPartition, offset: int) -> None:
        self.step = "delete records"
        lowest = self.expected.log_start_offsets.get(key, (0, 0))[0]
        self.expect(log_start_offsets=self.expected.log_start_offsets | {key: (lowest, offset)})
        log = self.manager.get(key)
        log.delete_records(offset)
        (directory,) = self.manager.directories
        task = LogStartTask.plan(directory)
        task.run()
        task.complete()
        assert log.durable_start_offset == offset
        self.expect(log_start_offsets=self.expected.log_start_offsets | {key: (offset, offset)})
        kept = log.segments.from_floor(offset)
        log.delete_segments([segment for segment in log.segments if segment not in kept])
        self.clock.advance(100_000)
        self.manager.delete_due(self.clock.now_ms())

    def delete(self, key: TopicPartition) -> None:
        self.step = "delete"
        kept = {k: v for k, v in self.expected.kept.items() if k != key}
        self.expect(kept=kept)
        self.manager.delete(key)
        del self.batches[key]
        self.expect(deleted=self.expected.deleted | {key})
        self.clock.advance(100_000)
        self.manager.delete_due(self.clock.now_ms())

    def stop(self) -> None:
        self.step = "stop"
        self.manager.shutdown()
        self.expect(
            kept={key: tuple(batches) for key, batches in self.batches.items()},
            needs_no_recovery=True,
        )


def a_life() -> Owner:
    owner = Owner()
    owner.create(ORDERS)
    for _ in range(6):
        owner.append(ORDERS)
    owner.create(PAYMENTS)
    owner.append(PAYMENTS)
    owner.flush()
    owner.checkpoint()
    for _ in range(8):
        owner.append(ORDERS)
        owner.append(PAYMENTS, 1)
    owner.flush()
    owner.delete_records(ORDERS, 20)
    owner.append(ORDERS)
    owner.delete_records(PAYMENTS, 3)
    owner.checkpoint()
    owner.stop()
    owner.start()
    owner.delete_records(PAYMENTS, 5)
    owner.append(ORDERS)
    owner.flush()
    owner.delete(PAYMENTS)
    owner.append(ORDERS)
    owner.stop()
    owner.keep("stopped")
    return owner


def check_started(files: SimulatedFileSystem, expected: Expected, ever: set[bytes]) -> None:
    manager = new_manager(files, ManualClock(START_MS))
    manager.start()
    (directory,) = manager.directories
    assert directory.is_online, directory.state.reason
    assert not directory.offline_logs
    logs = {log.topic_partition: log for log in manager}
    assert not expected.deleted & set(logs), "deleted logs stay deleted"
    for key, kept in expected.kept.items():
        assert key in logs, f"{key} is gone"
        assert logs[key].topic_id == expected.topic_ids[key]
        check_log(logs[key], kept, expected.log_start_offsets.get(key, (0, 0)), ever)
        if expected.needs_no_recovery:
            assert logs[key].recovery_report.scanned_bytes == 0
    for log in logs.values():
        log.append_as_leader(build_batch([Record(b"k", b"v", (), START_MS)]), leader_epoch=1)
    manager.flush_appended()
    manager.shutdown()


def check_log(log: Log, kept: tuple[bytes, ...], starts: tuple[int, int], ever: set[bytes]) -> None:
    assert starts[0] <= log.log_start_offset <= starts[1]
    wanted = [b for b in kept if read_headers(b)[0].next_offset > log.log_start_offset]
    found = readable_batches(log)
    assert set(found) <= ever
    offsets = [read_headers(batch)[0].base_offset for batch in found]
    ends = [read_headers(batch)[0].next_offset for batch in found]
    assert offsets[1:] == ends[:-1], "no gaps"
    assert found[: len(wanted)] == wanted, "what was flushed is there"
    assert log.high_watermark <= log.recovery_point, "nothing is seen that was not flushed"
    check_producers(log, found)


def test_a_manager_finds_all_it_promised_after_a_crash_at_any_operation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    owner = a_life()
    count = 0
    for index, (name, files, expected) in enumerate(owner.moments):
        for mode in CrashMode:
            count += 1
            try:
                check_started(files.after_crash(mode, index), expected, owner.ever)
            except (AssertionError, StratalogError) as error:
                error.add_note(f"at moment {index} ({name}), {mode}, seed {index}")
                raise
    with capsys.disabled():
        print(f" a manager's life: {count} crash points", end="")
    assert count > 1000


def test_a_stop_without_a_crash_leaves_nothing_to_recover() -> None:
    owner = a_life()
    check_started(owner.files.after_crash(CrashMode.LOSE_UNSYNCED), owner.expected, owner.ever)


def test_the_mark_of_a_clean_stop_does_not_outlive_the_next_start() -> None:
    owner = a_life()
    assert "data/.kafka_cleanshutdown" in owner.files.after_crash("lose_unsynced").tree()
    owner.start()
    for mode in CrashMode:
        assert "data/.kafka_cleanshutdown" not in owner.files.after_crash(mode).tree()


def test_two_managers_cannot_own_one_directory() -> None:
    files = SimulatedFileSystem()
    clock = ManualClock(START_MS)
    first = new_manager(files, clock)
    first.start()
    with pytest.raises(StratalogError, match="locked"):
        new_manager(files, clock).start()
    first.shutdown()
    new_manager(files, clock).start()
