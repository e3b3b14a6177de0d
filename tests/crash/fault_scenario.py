"""A manager of two directories on a simulated disk, and the work that faults are put into."""

from collections.abc import Callable
from dataclasses import dataclass, field

from crash_scenario import CONFIG, START_MS, check_epochs, check_producers, readable_batches

from stratalog.config import BrokerConfig
from stratalog.records import AppendOrigin, Record, build_batch, build_end_transaction_marker
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

BROKER = BrokerConfig(
    transaction_partition_verification_enable=False,
    log_dirs=("/data", "/other"),
    log_dir_reserve_bytes=0,
    num_recovery_threads_per_data_dir=1,
)
KEY = TopicPartition("t", 0)
ELSEWHERE = TopicPartition("u", 0)


def manager_on(files: SimulatedFileSystem) -> LogManager:
    manager = LogManager(
        BROKER,
        files=files,
        clock=ManualClock(START_MS),
        topic_config=lambda _topic: CONFIG,
        is_threaded=False,
    )
    manager.start()
    return manager


def ready() -> tuple[SimulatedFileSystem, LogManager]:
    """Two directories with a log in each, durable."""
    files = SimulatedFileSystem()
    manager = manager_on(files)
    manager.create(KEY, directory="/data")
    manager.create(ELSEWHERE, directory="/other")
    return files, manager


@dataclass
class Work:
    """Appends of all kinds, flushes and checkpoints, one after the other."""

    manager: LogManager
    batches: list[bytes] = field(default_factory=list)
    flushed: int = 0

    @property
    def log(self) -> Log:
        return self.manager.get(KEY)

    def steps(self) -> list[Callable[[], None]]:
        taken: list[Callable[[], None]] = []
        for number in range(12):
            taken.append(lambda number=number: self.append(number))
            if number % 3 == 2:
                taken.append(lambda number=number: self.abort(number))
            if number % 4 == 3:
                taken.append(self.flush)
                taken.append(self.manager.checkpoint_recovery_points)
        return taken

    def append(self, number: int) -> None:
        offset = self.log.log_end_offset
        epoch = number // 5
        records = [Record(b"k", b"%d" % index * 10, (), START_MS + number) for index in range(2)]
        identity = {"producer_id": 4, "producer_epoch": 0, "base_sequence": number * 2}
        self._append(
            build_batch(records, transactional=True, **identity),
            build_batch(
                records, base_offset=offset, leader_epoch=epoch, transactional=True, **identity
            ),
            epoch,
            AppendOrigin.CLIENT,
        )

    def abort(self, number: int) -> None:
        offset = self.log.log_end_offset
        epoch = number // 5
        marker = {
            "commit": False,
            "producer_id": 4,
            "producer_epoch": 0,
            "coordinator_epoch": 0,
            "timestamp_ms": START_MS + number,
        }
        self._append(
            build_end_transaction_marker(**marker),
            build_end_transaction_marker(**marker, base_offset=offset, leader_epoch=epoch),
            epoch,
            AppendOrigin.COORDINATOR,
        )

    def _append(self, produced: bytes, stored: bytes, epoch: int, origin: AppendOrigin) -> None:
        self.log.append_as_leader(produced, leader_epoch=epoch, origin=origin)
        self.batches.append(stored)

    def flush(self) -> None:
        self.manager.flush_appended()
        self.flushed = len(self.batches)

    def check_consistent(self) -> None:
        log = self.log
        assert readable_batches(log) == self.batches
        check_producers(log, self.batches)
        check_epochs(log, self.batches)
