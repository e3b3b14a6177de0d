"""Power is cut before every operation of an owner that keeps files for leases.

A lease is no promise to a disk: what a loss of power takes of it is taken from a reader that went
down too. But a process that is killed leaves all it has written, and so its successor keeps what
its predecessor kept. Whatever happened, the log itself is as if there were no leases, and when they
are over nothing of them is left.
"""

from crash_scenario import CONFIG, START_MS, stored_batches

from stratalog.config import BrokerConfig
from stratalog.records import Record, build_batch
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

ORDERS = TopicPartition("orders", 0)
LEASE_MS = 60_000
BROKER = BrokerConfig(
    log_dirs=("/data",),
    log_dir_reserve_bytes=0,
    log_initial_task_delay_ms=0,
    num_recovery_threads_per_data_dir=1,
)
Moment = tuple[str, SimulatedFileSystem, list[bytes], list[bytes]]


def new_manager(files: SimulatedFileSystem, clock: ManualClock) -> LogManager:
    manager = LogManager(
        BROKER, files=files, clock=clock, topic_config=lambda _topic: CONFIG, is_threaded=False
    )
    manager.start()
    return manager


def a_life() -> list[Moment]:
    """Every moment, with the files that are leased then and the batches that must be there."""
    clock = ManualClock(START_MS)
    files = SimulatedFileSystem(now_ms=clock.now_ms)
    moments: list[Moment] = []
    leased: list[bytes] = []
    batches: list[bytes] = []
    manager = new_manager(files, clock)
    log = manager.create(ORDERS)

    def append() -> None:
        for _ in range(12):
            rows = [Record(b"k", b"v%d" % log.log_end_offset, (), START_MS)]
            log.append_as_leader(build_batch(rows), leader_epoch=0)
        log.flush()
        log.update_high_watermark(log.log_end_offset)
        batches[:] = stored_batches(log)

    def grant() -> str:
        found = files.tree(log.directory)
        lease, writes = manager.leases.grant("a reader", LEASE_MS, {ORDERS: (0, 1 << 40)})
        for _, write in writes:
            write()
        manager.leases.note_written(lease, ["/data"])
        leased[:] = [data for path, data in found.items() if path.endswith(".log")]
        return lease.lease_id

    append()
    files.observer = lambda operation: moments.append(
        (operation.kind, files.clone(), list(leased), list(batches))
    )
    lease_id = grant()
    log.roll()
    log.delete_records(-1)
    batches.clear()
    manager.check_retention(log, clock.now_ms())
    append()
    clock.advance(1_000)
    manager.run_due()
    leased.clear()
    manager.leases.book.release(lease_id)
    manager.leases.run(clock.now_ms())
    grant()
    manager.delete(ORDERS)
    batches.clear()
    clock.advance(1_000)
    manager.run_due()
    return moments


def check_started(moment: Moment, mode: CrashMode, seed: int) -> None:
    _, files, leased, batches = moment
    clock = ManualClock(START_MS + 1_000)
    found = files.after_crash(mode, seed)
    found._now_ms = clock.now_ms
    manager = new_manager(found, clock)
    (directory,) = manager.directories
    assert directory.is_online, directory.state.reason
    assert not directory.offline_logs
    for log in manager:
        assert set(batches) <= set(stored_batches(log)), "the log is what it is without leases"
    if mode is CrashMode.KEEP_ALL:
        there = [data for path, data in found.tree("/data").items() if ".log" in path]
        assert all(any(now.startswith(then) for now in there) for then in leased)
    for _ in range(3):
        clock.advance(2 * LEASE_MS)
        manager.run_due()
    left = [path for path in found.tree("/data") if "lease" in path or "-delete" in path]
    assert [path for path in left if not path.endswith(".tmp")] == []
    manager.shutdown()


def test_a_log_is_whole_and_leases_leave_nothing_after_a_crash_at_any_operation() -> None:
    moments = a_life()
    for index, moment in enumerate(moments):
        for mode in CrashMode:
            try:
                check_started(moment, mode, index)
            except AssertionError as error:
                error.add_note(f"at moment {index} ({moment[0]}), {mode}, seed {index}")
                raise
    assert len(moments) > 60
