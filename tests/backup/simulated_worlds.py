"""A log directory and a store of backups on simulated disks: quick, and with crashes."""

from collections.abc import Sequence

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.handover.backing_up import BackupOptions, BackupResult, back_up
from stratalog.records import Record, build_batch
from stratalog.storage.backup.choosing import choose_backup
from stratalog.storage.backup.laying_out import DirectoryRestore
from stratalog.storage.backup.restore_plan import plan_restore
from stratalog.storage.backup.staging import BackupStaging
from stratalog.storage.backup.store import LocalBackupStore
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.commits.manifest import CommitKind, Manifest
from stratalog.storage.commits.staging import open_staging
from stratalog.storage.layout import (
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    replica_directory,
)
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

START_MS = 1_700_000_000_000
LOG_DIR = "/data"
TARGET = "/backups"
ORDERS = TopicPartition("orders", 0)

CONFIG = TopicConfig(segment_index_bytes=240, index_interval_bytes=150)

# Seconds after START_MS, for each batch.
Times = Sequence[Sequence[int]]


def batches_of(times: Times, first: int = 0) -> list[list[Record]]:
    numbers = iter(range(first, 100_000))
    return [
        [Record(b"k", b"v%d" % next(numbers), (), START_MS + 1000 * each) for each in batch]
        for batch in times
    ]


def open_manager(files: SimulatedFileSystem, clock: ManualClock) -> LogManager:
    broker = BrokerConfig(
        log_dirs=(LOG_DIR,), log_dir_reserve_bytes=0, num_recovery_threads_per_data_dir=1
    )
    manager = LogManager(
        broker,
        files=files,
        clock=clock,
        topic_config=lambda _topic: CONFIG,
        is_threaded=False,
    )
    manager.start()
    return manager


def records_of(log: Log) -> list[bytes]:
    """The batches as they lie in the log."""
    found = []
    for segment in log.segments:
        found += [bytes(segment.read_batch(header)) for header in segment.headers(0)]
    return found


class World:
    """``files`` holds the log directory, ``disk`` the backups."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_MS)
        self.files = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.disk = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.store = LocalBackupStore(self.disk, TARGET)
        self._sequence = 0

    def append(self, batches: Sequence[Sequence[Record]], segment_batches: int = 3) -> None:
        manager = open_manager(self.files, self.clock)
        try:
            log = manager.get(ORDERS) if ORDERS in manager else manager.create(ORDERS)
            for number, batch in enumerate(batches, start=1):
                self.clock.advance(1000)
                log.append_as_leader(
                    build_batch(
                        batch, producer_id=7, producer_epoch=0, base_sequence=self._sequence
                    )
                )
                self._sequence += len(batch)
                if number % segment_batches == 0:
                    log.roll()
        finally:
            manager.shutdown()

    def back_up(self, **options: object) -> BackupResult:
        self.clock.advance(1000)
        chosen = BackupOptions(**options)  # type: ignore[arg-type]
        return back_up(LOG_DIR, self.store, chosen, files=self.files, clock=self.clock)

    def log(self, files: SimulatedFileSystem | None = None) -> bytes:
        return b"".join(
            content
            for path, content in sorted((files or self.files).tree(LOG_DIR).items())
            if path.endswith(".log")
        )

    def restore(self, *, at: str | None = None, until_ms: int | None = None) -> SimulatedFileSystem:
        """Into a new disk, which is what is returned."""
        disk = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.restoring(disk, at=at, until_ms=until_ms).run()
        return disk

    def restoring(
        self, disk: SimulatedFileSystem, *, at: str | None = None, until_ms: int | None = None
    ) -> DirectoryRestore:
        manifest = choose_backup(self.store, at=at, until_ms=until_ms).manifest
        plan = plan_restore(self.store, manifest, until_ms=until_ms)
        return DirectoryRestore(disk, LOG_DIR, self.store, plan)

    def opened(self, files: SimulatedFileSystem) -> tuple[list[bytes], int, int]:
        """Batches, log start and end of the log in ``files``, once it was opened."""
        points = read_offsets(files, f"{LOG_DIR}/{RECOVERY_POINT_CHECKPOINT}")
        manager = open_manager(files, self.clock)
        try:
            log = manager.get(ORDERS)
            assert not points or points[ORDERS] == log.log_end_offset
            return records_of(log), log.log_start_offset, log.log_end_offset
        finally:
            manager.shutdown()


def staged(world: World, disk: SimulatedFileSystem, *, until_ms: int | None = None) -> Manifest:
    """The newest backup, staged for ``orders-0``."""
    manifest = choose_backup(world.store, until_ms=until_ms).manifest
    plan = plan_restore(world.store, manifest, until_ms=until_ms)
    held = open_staging(disk, LOG_DIR, holder="a test", seconds=60, clock=world.clock)
    staging = BackupStaging(disk, world.store, held)
    directory = f"{LOG_DIR}/{replica_directory(ORDERS)}"
    parts = tuple(staging.stage(each, directory, "") for each in plan.partitions if each.end_offset)
    for path in [path for path in disk.tree(directory) if "staging/" in path]:
        file = disk.open(f"{directory}/{path}")  # as if whoever staged it had not synced it
        content = file.read_at(0, file.size_bytes())
        file.write_at(0, [bytes(len(content))])
        file.sync()
        file.write_at(0, [content])
        file.close()
    return Manifest(
        manifest_id="restore-1", kind=CommitKind.RESTORE, staging_id=held, partitions=parts
    )
