"""Log managers over a simulated disk with one or more log directories."""

from typing import Any

from small_logs import START_MS, produced

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.directory import Identity
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)

# A clock's time is that of the records, so that no append is too far from it.
TOPIC = TopicConfig(internal_segment_bytes=400, segment_index_bytes=96, index_interval_bytes=50)


def manager(
    files: SimulatedFileSystem,
    *directories: str,
    clock: ManualClock | None = None,
    topic: TopicConfig = TOPIC,
    identity: Identity | None = None,
    **settings: Any,
) -> LogManager:
    """Not started yet. One thread a directory, since the simulated disk is not for several."""
    settings = {"log_flush_on_ack": False, "log_dir_reserve_bytes": 0} | settings
    return LogManager(
        BrokerConfig(
            log_dirs=directories or ("/data",), num_recovery_threads_per_data_dir=1, **settings
        ),
        files=files,
        clock=clock or ManualClock(START_MS),
        topic_config=lambda _topic: topic,
        identity=identity,
        is_threaded=False,
    )


def started(files: SimulatedFileSystem, *directories: str, **settings: Any) -> LogManager:
    made = manager(files, *directories, **settings)
    made.start()
    return made


def fill(log: Log, batches: int = 5) -> Log:
    for _ in range(batches):
        log.append_as_leader(produced("some"))
    log.update_high_watermark(log.log_end_offset)
    return log


def steps(files: SimulatedFileSystem, start: int, *kinds: str) -> list[tuple[str, str]]:
    """What was done since ``start``: kind, and path below the root."""
    found = [(each.kind, each.path) for each in files.trace[start:]]
    return [each for each in found if not kinds or each[0] in kinds]
