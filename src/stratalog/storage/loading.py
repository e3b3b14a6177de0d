"""Opening the logs that a directory holds: which there are, and a few threads to open them.

A log is opened on one thread, by itself, before anybody else can see it; from then on it is
confined to its owner's. A log that cannot be opened is set aside with the reason and keeps no
other from opening.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from stratalog.clock import Clock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import (
    DiskError,
    LogDirectoryError,
    NotARegularFileError,
    OutOfResourcesError,
    StratalogError,
)
from stratalog.storage.context import LogContext
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    FUTURE_DIRECTORY,
    STRAY_DIRECTORY,
    TopicPartition,
)
from stratalog.storage.lease_book import LeaseBook
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log


@dataclass(slots=True)
class LoadProgress:
    """How far opening has come. ``show`` is called at each step, on one thread at a time."""

    show: "Callable[[LoadProgress], None]" = lambda _progress: None
    logs_total: int = 0
    logs_done: int = 0
    bytes_scanned: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def scanned(self, size_bytes: int) -> None:
        with self._guard:
            self.bytes_scanned += size_bytes
            self.show(self)

    def opened(self) -> None:
        with self._guard:
            self.logs_done += 1
            self.show(self)


@dataclass(frozen=True, slots=True)
class ReplicaToOpen:
    """One replica's directory to be opened, with what its checkpoints say."""

    directory: LogDirectory
    path: str
    topic_partition: TopicPartition
    clean: bool
    recovery_point: int | None
    log_start_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class FoundReplicas:
    """What a log directory holds: replicas to be opened, and paths whose deletion was begun."""

    to_open: list[ReplicaToOpen]
    to_delete: list[tuple[str, TopicPartition]]


def take_stock(directory: LogDirectory) -> FoundReplicas:
    """What is to be done with each replica; the directory's clean-shutdown marker is taken."""
    replicas = directory.replicas()
    clean = directory.take_clean_marker()
    recovery_points = directory.recovery_points()
    log_start_offsets = directory.log_start_offsets()
    high_watermarks = directory.high_watermarks()
    found = FoundReplicas([], [])
    for path, name in replicas:
        key = name.topic_partition
        if name.state == DELETE_DIRECTORY:
            found.to_delete.append((path, key))
        elif name.state not in (FUTURE_DIRECTORY, STRAY_DIRECTORY):
            found.to_open.append(
                ReplicaToOpen(
                    directory,
                    path,
                    key,
                    clean,
                    None if recovery_points is None else recovery_points.get(key, 0),
                    log_start_offsets.get(key, 0),
                    high_watermarks.get(key, 0),
                )
            )
    return found


def refuse_duplicates(replicas: Iterable[ReplicaToOpen]) -> None:
    seen: dict[TopicPartition, str] = {}
    for replica in replicas:
        first = seen.setdefault(replica.topic_partition, replica.path)
        if first != replica.path:
            raise LogDirectoryError(
                f"{replica.topic_partition} is in two places, {first} and {replica.path}; "
                "move one of them away"
            )


class LogLoader:
    """Opens logs as their manager wants them.

    ``topic_config`` says what is known of a topic's configs. Where that is None, the log opens
    with the broker's defaults and is held: they may not be what the topic was kept by. So it is
    where ``is_held`` says that there may be more than is known.
    """

    def __init__(
        self,
        config: BrokerConfig,
        files: FileSystem,
        clock: Clock,
        *,
        topic_config: Callable[[str], TopicConfig | None] | None,
        is_held: Callable[[str], bool] = lambda _topic: False,
        handles: HandleCache,
        progress: LoadProgress,
        flush_later: Callable[[Log], bool],
        leases: LeaseBook | None = None,
    ) -> None:
        self._flush_later = flush_later
        self._leases = leases
        self._config = config
        self._files = files
        self._clock = clock
        self._default = TopicConfig.from_properties({}, broker=config)
        self._topic_config = topic_config or (lambda _topic: self._default)
        self._is_held = is_held
        self._handles = handles
        self._progress = progress

    def load(self, directories: Sequence[LogDirectory], replicas: Sequence[ReplicaToOpen]) -> None:
        """Open all, on a few threads for each directory: a slow disk does not hold up another."""
        self._progress.logs_total = len(replicas)
        pools = []
        starved: list[ReplicaToOpen] = []
        try:
            jobs: list[tuple[ReplicaToOpen, Future[Log]]] = []
            for directory in directories:
                own = [replica for replica in replicas if replica.directory is directory]
                pool = ThreadPoolExecutor(self._config.num_recovery_threads_per_data_dir)
                pools.append(pool)
                jobs.extend((replica, pool.submit(self._open, replica)) for replica in own)
            for replica, job in jobs:
                try:
                    replica.directory.logs[replica.topic_partition] = job.result()
                except OutOfResourcesError:
                    starved.append(replica)
                except NotARegularFileError as error:
                    replica.directory.offline_logs[replica.topic_partition] = str(error)
                except DiskError as error:
                    replica.directory.fail(str(error))
                except StratalogError as error:
                    replica.directory.offline_logs[replica.topic_partition] = str(error)
        finally:
            for pool in pools:
                pool.shutdown(wait=True, cancel_futures=True)
        for replica in starved:
            self._open_starved(replica)

    def _open_starved(self, replica: ReplicaToOpen) -> None:
        """Once more, by itself: descriptors, memory or space had run out beside others. If there
        are too few for one log, that is no failure of the disk and keeps no other from opening."""
        try:
            replica.directory.logs[replica.topic_partition] = self._open(replica)
        except StratalogError as error:
            replica.directory.offline_logs[replica.topic_partition] = str(error)

    def _open(self, replica: ReplicaToOpen) -> Log:
        # Descriptors are counted on one thread: while a log is opened on another, by itself.
        context = self._context(replica.directory)
        context.handles = HandleCache(16)
        topic = replica.topic_partition.topic
        known = self._topic_config(topic)
        log = open_log(
            replica.path,
            known or self._default,
            context,
            clean=replica.clean,
            recovery_point=replica.recovery_point,
            log_start_offset=replica.log_start_offset,
            high_watermark=replica.high_watermark,
            progress=self._progress.scanned,
        )
        log.is_held = known is None or self._is_held(topic)
        log.hand_over(self._handles)
        self._progress.opened()
        return log

    def reconfigure(self, config: BrokerConfig) -> None:
        """For the logs that are made from now on."""
        self._config = config

    def create(self, directory: LogDirectory, path: str, topic: str) -> Log:
        """A new log in an empty directory that has been made for it."""
        context = self._context(directory)
        context.handles = HandleCache(16)  # as above: it may be made on a thread of its own
        known = self._topic_config(topic)
        log = open_log(path, known or self._default, context, clean=True)
        log.is_held = known is None or self._is_held(topic)
        log.hand_over(self._handles)
        return log

    def _context(self, directory: LogDirectory) -> LogContext:
        return LogContext(
            self._files,
            self._clock,
            self._handles,
            directory.state,
            flush_on_ack=self._config.log_flush_on_ack,
            producer_expiration_ms=self._config.producer_id_expiration_ms,
            verify_transactions=self._config.transaction_partition_verification_enable,
            flush_later=self._flush_later,
            leases=self._leases,
            checkpoint_recovery_points=directory.checkpoint_recovery_points,
            checkpoint_log_start_offsets=directory.checkpoint_log_start_offsets,
        )
