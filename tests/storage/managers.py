"""Log managers over a simulated disk with one or more log directories, and what is leased there."""

from dataclasses import replace
from typing import Any

from small_logs import START_MS, produced

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.directory import Identity
from stratalog.storage.layout import TopicPartition
from stratalog.storage.lease_book import LeaseEnd
from stratalog.storage.leases import Lease, new_lease_id, write_lease
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


class LeaseWorld:
    """A manager with one log of several segments, on a disk and with a clock of its own."""

    def __init__(self, topic: TopicConfig = TOPIC, batches: int = 20, **settings: Any) -> None:
        self.clock = ManualClock(START_MS)
        self.files = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.topic = topic
        self.settings = settings
        self.logs = self.start()
        fill(self.logs.create(ORDERS), batches)

    def start(self, **changes: Any) -> LogManager:
        self.settings |= changes
        return started(
            self.files,
            clock=self.clock,
            topic=self.topic,
            log_initial_task_delay_ms=0,
            **self.settings,
        )

    def restart(self, **changes: Any) -> None:
        self.logs.shutdown()
        self.logs = self.start(**changes)
        for log in self.logs:
            log.update_high_watermark(log.log_end_offset)

    def restart_short_of(self, bytes_: int) -> None:
        self.restart()
        reserve_bytes = self.files.free_bytes("/data") + bytes_
        self.logs.config = replace(self.logs.config, log_dir_reserve_bytes=reserve_bytes)

    def lease(self, *ranges: tuple[TopicPartition, int, int], ms: int = 60_000) -> str:
        held = {key: (start, end) for key, start, end in ranges or ((ORDERS, 0, 1 << 40),)}
        lease, writes = self.logs.leases.grant("a reader", ms, held)
        for _, write in writes:
            write()
        self.logs.leases.note_written(lease, [log_dir for log_dir, _ in writes])
        return lease.lease_id

    def delete_all(self, key: TopicPartition = ORDERS) -> None:
        log = self.logs.get(key)
        log.roll()
        log.delete_records(-1)
        self.logs.check_retention(log, self.clock.now_ms())

    def later(self, milliseconds: int = 1_000) -> None:
        self.clock.advance(milliseconds)
        self.logs.run_due()

    def segments(self, key: TopicPartition = ORDERS) -> dict[str, bytes]:
        return {
            path: data
            for path, data in self.files.tree(f"/data/{key}").items()
            if path.endswith(".log") and "/" not in path
        }

    def kept(self) -> list[bytes]:
        return [
            data
            for path, data in sorted(self.files.tree("/data").items())
            if ".stratalog/leased/" in path and path.endswith(".log")
        ]

    @property
    def book(self):  # type: ignore[no-untyped-def]
        return self.logs.leases.book

    def lease_files(self) -> list[str]:
        return [path for path in self.files.tree("/data") if path.startswith(".stratalog-lease-")]

    def ends(self) -> list[LeaseEnd]:
        return [each.end for each in self.book.news]


def leave(world: LeaseWorld, *, until_ms: int = START_MS + 60_000, end: int = 1 << 40) -> str:
    """As a reader does where nobody owns the directory."""
    lease = Lease(
        lease_id=new_lease_id(),
        holder="a reader",
        created_ms=START_MS,
        until_ms=until_ms,
        ranges={ORDERS: (0, end)},
    )
    write_lease(world.files, "/data", lease)
    return lease.lease_id
