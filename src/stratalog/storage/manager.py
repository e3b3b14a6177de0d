"""All logs of a broker, or of a job that owns log directories: opened, made, deleted, kept.

A log is confined to its owner's thread; so is the manager. Only opening runs on several threads,
one log on one of them, before anybody else can see it.
"""

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from stratalog.clock import Clock, SystemClock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import (
    DiskError,
    LogDirectoryError,
    LogExistsError,
    StorageError,
    StratalogError,
    TopicNameError,
    UnknownLogError,
)
from stratalog.storage.context import DiskState, LogContext
from stratalog.storage.directory import Identity, LogDirectory
from stratalog.storage.files import FileSystem, OsFileSystem, remove_tree
from stratalog.storage.flushing import flush_together
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    FUTURE_DIRECTORY,
    STRAY_DIRECTORY,
    TopicPartition,
    replica_directory,
    suffixed_directory,
    validate_topic_name,
)
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.storage.schedule import Schedule

_SPACE_CHECK_MS = 1_000


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
class _Replica:
    """One replica's directory to be opened, with what its checkpoints say."""

    directory: LogDirectory
    path: str
    topic_partition: TopicPartition
    clean: bool
    recovery_point: int
    log_start_offset: int
    high_watermark: int


class LogManager:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: FileSystem | None = None,
        clock: Clock | None = None,
        topic_config: Callable[[str], TopicConfig] | None = None,
        identity: Identity | None = None,
        show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
    ) -> None:
        self.config = config
        self.files = files or OsFileSystem()
        self.clock = clock or SystemClock()
        self.progress = LoadProgress(show_progress)
        self.schedule = Schedule()
        self.directories = [LogDirectory(self.files, path) for path in config.log_directories]
        self._topic_config = topic_config or self._default_topic_config
        self._identity = identity
        self._handles = HandleCache.within_limits()
        self._deleting: list[tuple[int, LogDirectory, str]] = []

    def _default_topic_config(self, _topic: str) -> TopicConfig:
        return TopicConfig.from_properties({}, broker=self.config)

    # --- starting -----------------------------------------------------------------------------

    def start(self) -> None:
        """Take the directories and open every log in them.

        A directory that cannot be used goes offline, a log that cannot be opened is set aside
        with the reason; only if no directory is left does this raise.
        """
        try:
            # Every directory before any of them is changed: a start that is refused leaves all
            # as they were.
            self._for_each_online(LogDirectory.acquire)
            self._for_each_online(self._check_identity)
        except LogDirectoryError:
            self._release()
            raise
        replicas: list[_Replica] = []
        self._for_each_online(lambda directory: replicas.extend(self._prepare(directory)))
        if not any(directory.is_online for directory in self.directories):
            self._release()
            reasons = "; ".join(directory.state.reason for directory in self.directories)
            raise LogDirectoryError(f"no log directory can be used: {reasons}")
        try:
            self._refuse_duplicates(replicas)
            self._load(replicas)
        except BaseException:
            self._release()
            raise
        self._schedule_tasks()

    def _for_each_online(self, step: Callable[[LogDirectory], None]) -> None:
        """A directory that is somebody else's stops the start; one that is broken goes offline."""
        for directory in self.directories:
            if directory.is_online:
                try:
                    step(directory)
                except LogDirectoryError:
                    raise
                except StorageError as error:
                    directory.fail(str(error))

    def _prepare(self, directory: LogDirectory) -> list[_Replica]:
        replicas = directory.replicas()
        clean = directory.take_clean_marker()
        recovery_points = directory.recovery_points()
        log_start_offsets = directory.log_start_offsets()
        high_watermarks = directory.high_watermarks()
        found = []
        for path, name in replicas:
            key = name.topic_partition
            if name.state == DELETE_DIRECTORY:
                self._deleting.append((self._delete_due_ms(), directory, path))
            elif name.state not in (FUTURE_DIRECTORY, STRAY_DIRECTORY):
                found.append(
                    _Replica(
                        directory,
                        path,
                        key,
                        clean,
                        recovery_points.get(key, 0),
                        log_start_offsets.get(key, 0),
                        high_watermarks.get(key, 0),
                    )
                )
        return found

    def _check_identity(self, directory: LogDirectory) -> None:
        wanted = self._identity
        if wanted is None:
            return
        found = directory.identity()
        if found is None:
            directory.assign_identity(Identity(wanted.cluster_id, wanted.node_id, uuid.uuid4()))
        elif (found.cluster_id, found.node_id) != (wanted.cluster_id, wanted.node_id):
            raise LogDirectoryError(
                f"{directory.path} belongs to node {found.node_id} of cluster "
                f"{found.cluster_id!r}, not to node {wanted.node_id} of {wanted.cluster_id!r}"
            )

    def _refuse_duplicates(self, replicas: Iterable[_Replica]) -> None:
        seen: dict[TopicPartition, str] = {}
        for replica in replicas:
            first = seen.setdefault(replica.topic_partition, replica.path)
            if first != replica.path:
                raise LogDirectoryError(
                    f"{replica.topic_partition} is in two places, {first} and {replica.path}; "
                    "move one of them away"
                )

    def _load(self, replicas: list[_Replica]) -> None:
        """Open all, on a few threads for each directory: a slow disk does not hold up another."""
        self.progress.logs_total = len(replicas)
        pools = []
        try:
            jobs: list[tuple[_Replica, Future[Log]]] = []
            for directory in self.directories:
                own = [replica for replica in replicas if replica.directory is directory]
                pool = ThreadPoolExecutor(self.config.num_recovery_threads_per_data_dir)
                pools.append(pool)
                jobs.extend((replica, pool.submit(self._open, replica)) for replica in own)
            for replica, job in jobs:
                try:
                    replica.directory.logs[replica.topic_partition] = job.result()
                except DiskError as error:
                    replica.directory.fail(str(error))
                except StratalogError as error:
                    replica.directory.offline_logs[replica.topic_partition] = str(error)
        finally:
            for pool in pools:
                pool.shutdown(wait=True, cancel_futures=True)

    def _open(self, replica: _Replica) -> Log:
        # Descriptors are counted on one thread: while a log is opened on another, by itself.
        context = self._context(replica.directory)
        context.handles = HandleCache(16)
        log = open_log(
            replica.path,
            self._topic_config(replica.topic_partition.topic),
            context,
            clean=replica.clean,
            recovery_point=replica.recovery_point,
            log_start_offset=replica.log_start_offset,
            high_watermark=replica.high_watermark,
            progress=self.progress.scanned,
        )
        log.hand_over(self._handles)
        self.progress.opened()
        return log

    def _context(self, directory: LogDirectory) -> LogContext:
        return LogContext(
            self.files,
            self.clock,
            self._handles,
            directory.state,
            flush_on_ack=self.config.log_flush_on_ack,
            producer_expiration_ms=self.config.producer_id_expiration_ms,
            checkpoint_recovery_points=directory.checkpoint_recovery_points,
            checkpoint_log_start_offsets=directory.checkpoint_log_start_offsets,
        )

    # --- finding, making, deleting ------------------------------------------------------------

    def __iter__(self) -> Iterator[Log]:
        for directory in self.directories:
            yield from list(directory.logs.values())

    def get(self, topic_partition: TopicPartition) -> Log:
        for directory in self.directories:
            log = directory.logs.get(topic_partition)
            if log is not None:
                return log
            reason = directory.offline_logs.get(topic_partition)
            if reason is not None:
                raise UnknownLogError(f"{topic_partition} could not be opened: {reason}")
        raise UnknownLogError(f"there is no {topic_partition} in {self._places()}")

    def _places(self) -> str:
        return ", ".join(directory.path for directory in self.directories)

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return any(
            topic_partition in directory.logs or topic_partition in directory.offline_logs
            for directory in self.directories
        )

    def create(
        self,
        topic_partition: TopicPartition,
        *,
        topic_id: uuid.UUID | None = None,
        directory: str | None = None,
        is_new: bool = True,
    ) -> Log:
        """A new, empty log, in the directory given or the one with the fewest."""
        validate_topic_name(topic_partition.topic)
        if topic_partition.partition < 0:
            raise TopicNameError(str(topic_partition), "a partition's number is not negative")
        if topic_partition in self:
            raise LogExistsError(f"{topic_partition} exists already")
        self._refuse_collision(topic_partition.topic)
        if not is_new and not all(each.is_online for each in self.directories):
            raise LogDirectoryError(
                f"{topic_partition} may be in a directory that is offline; it is not made anew"
            )
        failures = []
        for chosen in self._candidates(directory):
            try:
                return self._create_in(chosen, topic_partition, topic_id)
            except DiskError as error:
                failures.append(str(error))
        raise LogDirectoryError(f"{topic_partition} could not be created: {'; '.join(failures)}")

    def _refuse_collision(self, topic: str) -> None:
        """Metrics are named after topics with ``.`` as ``_``: two topics must not share a name."""
        shared = topic.replace(".", "_")
        for log in self:
            other = log.topic_partition.topic
            if other != topic and other.replace(".", "_") == shared:
                raise TopicNameError(
                    topic, f"it collides with {other!r}: '.' and '_' count as the same"
                )

    def _candidates(self, path: str | None) -> list[LogDirectory]:
        online = [directory for directory in self.directories if directory.is_online]
        if path is not None:
            online = [directory for directory in online if directory.path == path]
            if not online:
                raise LogDirectoryError(f"{path} is not a log directory that is online here")
        return sorted(online, key=lambda directory: len(directory.logs))

    def _create_in(
        self, directory: LogDirectory, key: TopicPartition, topic_id: uuid.UUID | None
    ) -> Log:
        path = f"{directory.path}/{replica_directory(key)}"
        self.files.make_directory(path)
        try:
            log = open_log(
                path, self._topic_config(key.topic), self._context(directory), clean=True
            )
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            self.files.sync_directory(path)
            self.files.sync_directory(directory.path)
        except DiskError as error:
            # Half a log would be found at the next start beside the one made elsewhere.
            try:
                remove_tree(self.files, path)
            except DiskError:
                directory.fail(str(error))
            raise
        directory.take_in(log)
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log away at once; its files go after ``file.delete.delay.ms``."""
        log = self.get(topic_partition)
        directory = next(each for each in self.directories if topic_partition in each.logs)
        del directory.logs[topic_partition]
        log.abandon()
        target = f"{directory.path}/{suffixed_directory(topic_partition, DELETE_DIRECTORY)}"
        try:
            self.files.rename(log.directory, target)
            self.files.sync_directory(directory.path)
        except DiskError as error:
            directory.fail(str(error))
            raise
        due_ms = self.clock.now_ms() + max(log.config.file_delete_delay_ms, 1)
        self._deleting.append((due_ms, directory, target))
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()

    def _delete_due_ms(self) -> int:
        return self.clock.now_ms() + self.config.log_segment_delete_delay_ms

    # --- periodic work ------------------------------------------------------------------------

    def _schedule_tasks(self) -> None:
        config = self.config
        now_ms = self.clock.now_ms()
        later_ms = now_ms + config.log_initial_task_delay_ms
        for name, run, first_ms, period_ms in (
            (
                "kafka-log-flusher",
                self.flush_due,
                later_ms,
                config.log_flush_scheduler_interval_ms,
            ),
            (
                "kafka-recovery-point-checkpoint",
                self.checkpoint_recovery_points,
                later_ms,
                config.log_flush_offset_checkpoint_interval_ms,
            ),
            (
                "kafka-log-start-offset-checkpoint",
                self.checkpoint_log_start_offsets,
                later_ms,
                config.log_flush_start_offset_checkpoint_interval_ms,
            ),
            (
                "highwatermark-checkpoint",
                self.checkpoint_high_watermarks,
                now_ms,
                config.replica_high_watermark_checkpoint_interval_ms,
            ),
            ("kafka-delete-logs", self.delete_due, later_ms, _SPACE_CHECK_MS),
            (
                "producer-expiration",
                self.expire_producers,
                now_ms + config.producer_id_expiration_check_interval_ms,
                config.producer_id_expiration_check_interval_ms,
            ),
            ("free-space-check", self.check_space, now_ms, _SPACE_CHECK_MS),
        ):
            self.schedule.add(name, run, first_ms=first_ms, period_ms=max(period_ms, 1))

    def run_due(self) -> list[str]:
        """Run the periodic tasks that are due by the clock."""
        return self.schedule.run_due(self.clock.now_ms())

    def flush_due(self, now_ms: int) -> None:
        for log in self:
            if log.is_flush_due(now_ms):
                self._guarded(log, log.flush)

    def flush_appended(self) -> None:
        """Make every append so far durable: what an acknowledgement waits for.

        One round for all logs of a directory: a commit shared by whoever waits for it.
        """
        failure: DiskError | None = None
        for directory in self.directories:
            if not directory.is_online:
                continue
            dirty = [log for log in directory.logs.values() if log.needs_flush]
            try:
                flush_together(self.files, directory.path, dirty)
            except DiskError as error:
                failure = error
                directory.fail(str(error))
                for log in dirty:
                    log.fail(error)
        if failure is not None:
            raise failure

    def _guarded(self, log: Log, action: Callable[[], None]) -> None:
        """A disk that fails takes its own directory offline and no other."""
        try:
            action()
        except DiskError as error:
            log.fail(error)

    def checkpoint_recovery_points(self, _now_ms: int = 0) -> None:
        self._checkpoint(LogDirectory.checkpoint_recovery_points)

    def checkpoint_log_start_offsets(self, _now_ms: int = 0) -> None:
        self._checkpoint(LogDirectory.checkpoint_log_start_offsets)

    def checkpoint_high_watermarks(self, _now_ms: int = 0) -> None:
        self._checkpoint(LogDirectory.checkpoint_high_watermarks)

    def _checkpoint(self, write: Callable[[LogDirectory], None]) -> None:
        for directory in self.directories:
            if directory.is_online:
                try:
                    write(directory)
                except DiskError:
                    continue  # the directory has gone offline, and said why

    def delete_due(self, now_ms: int) -> None:
        """Unlink what was deleted long enough ago."""
        for log in self:
            self._guarded(log, lambda log=log: log.run_deletes(now_ms))  # type: ignore[misc]
        waiting = []
        for due_ms, directory, path in self._deleting:
            if due_ms > now_ms:
                waiting.append((due_ms, directory, path))
            elif directory.is_online:
                try:
                    remove_tree(self.files, path)
                except DiskError as error:
                    directory.fail(str(error))
        self._deleting = waiting

    def expire_producers(self, now_ms: int) -> None:
        for log in self:
            log.producers.remove_expired(now_ms)

    def check_space(self, _now_ms: int = 0) -> None:
        """A full disk is a state: appends stop below the reserve and resume by themselves."""
        reserve = self.config.log_dir_reserve_bytes
        for directory in self.directories:
            if not directory.is_online:
                continue
            try:
                free = self.files.free_bytes(directory.path)
            except DiskError as error:
                directory.fail(str(error))
                continue
            if free < reserve:
                directory.state.state = DiskState.FULL
                directory.state.reason = (
                    f"{free} bytes are free, less than log.dir.reserve.bytes={reserve}; "
                    "appends resume when there is room"
                )
            else:
                directory.state.state = DiskState.ONLINE
                directory.state.reason = ""

    # --- stopping -----------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Close everything cleanly, so that the next start need not recover."""
        self.checkpoint_high_watermarks()
        try:
            for directory in self.directories:
                try:
                    self._shut(directory)
                except DiskError as error:
                    # Without the marker the next start recovers this directory. That is all.
                    directory.fail(str(error))
                for log in directory.logs.values():
                    log.abandon()
        finally:
            self._release()

    def _shut(self, directory: LogDirectory) -> None:
        if not directory.is_online:
            return
        for log in directory.logs.values():
            log.close()
        directory.checkpoint_recovery_points()
        directory.checkpoint_log_start_offsets()
        unsettled = any(log.needs_recovery for log in directory.logs.values())
        if not unsettled and not directory.offline_logs:
            directory.write_clean_marker()

    def _release(self) -> None:
        for directory in self.directories:
            directory.release()
