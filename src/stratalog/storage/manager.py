"""All logs of a broker, or of a job that owns log directories: opened, made, deleted, kept.

A log is confined to its owner's thread; so is the manager. Only opening runs on several threads,
one log on one of them, before anybody else can see it.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from stratalog.clock import Clock, SystemClock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import (
    DiskError,
    LogDirectoryError,
    LogExistsError,
    OutOfResourcesError,
    StorageError,
    TopicNameError,
    UnknownLogError,
)
from stratalog.storage.cleaning.cleaner import LogCleaner
from stratalog.storage.directory import Identity, LogDirectory
from stratalog.storage.files import FileSystem, OsFileSystem, remove_tree
from stratalog.storage.flushing import flush_together
from stratalog.storage.handles import HandleCache
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    TopicPartition,
    replica_directory,
    suffixed_directory,
    validate_topic_name,
)
from stratalog.storage.loading import (
    LoadProgress,
    LogLoader,
    ReplicaToOpen,
    refuse_duplicates,
    take_stock,
)
from stratalog.storage.log import Log
from stratalog.storage.retention import RetentionPlan, delete_old_segments
from stratalog.storage.schedule import Schedule
from stratalog.storage.segment import Segment
from stratalog.storage.tasks import change_periods, schedule_tasks


class LogManager:
    """``topic_config`` gives what is known of a topic's configs. None means that nothing is: such
    a log is opened and served, and neither retention nor cleaning touches it. With
    ``is_threaded=False`` logs are cleaned and files removed by ``run_due`` itself."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: FileSystem | None = None,
        clock: Clock | None = None,
        topic_config: Callable[[str], TopicConfig | None] | None = None,
        identity: Identity | None = None,
        show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
        is_threaded: bool = True,
    ) -> None:
        self.config = config
        self.files = files or OsFileSystem()
        self.clock = clock or SystemClock()
        self.progress = LoadProgress(show_progress)
        self.schedule = Schedule()
        self.directories = [LogDirectory(self.files, path) for path in config.log_directories]
        # Why the last check of a log's retention did not end; gone when one does.
        self.retention_failures: dict[TopicPartition, str] = {}
        self._identity = identity
        self._handles = HandleCache.within_limits()
        self._loader = LogLoader(
            config,
            self.files,
            self.clock,
            topic_config=topic_config,
            handles=self._handles,
            progress=self.progress,
        )
        self._deleting: list[tuple[int, LogDirectory, str]] = []
        self._is_threaded = is_threaded
        self._janitor = Janitor(self.files, is_threaded=is_threaded)
        self.cleaner: LogCleaner | None = None  # None before the start, or not enabled

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
        replicas: list[ReplicaToOpen] = []
        self._for_each_online(lambda directory: replicas.extend(self._prepare(directory)))
        if not any(directory.is_online for directory in self.directories):
            self._release()
            reasons = "; ".join(directory.state.reason for directory in self.directories)
            raise LogDirectoryError(f"no log directory can be used: {reasons}")
        try:
            refuse_duplicates(replicas)
            self._loader.load(self.directories, replicas)
        except BaseException:
            self._release()
            raise
        if self.config.log_cleaner_enable:
            self.cleaner = LogCleaner(
                self.config,
                self.clock,
                self.directories,
                self.check_retention,
                is_threaded=self._is_threaded,
            )
        schedule_tasks(self)

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

    def _prepare(self, directory: LogDirectory) -> list[ReplicaToOpen]:
        found = take_stock(directory)
        due_ms = self.clock.now_ms() + self.config.log_segment_delete_delay_ms
        self._deleting.extend((due_ms, directory, path) for path in found.to_delete)
        return found.to_open

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
            log = self._loader.create(directory, path, key.topic)
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            self.files.sync_directory(path)
            self.files.sync_directory(directory.path)
            directory.take_in(log)
        except DiskError as error:
            # Half a log would be found at the next start beside the one made elsewhere.
            try:
                remove_tree(self.files, path)
            except DiskError:
                directory.fail(str(error))
            raise
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log away at once; its files go after ``file.delete.delay.ms``."""
        log = self.get(topic_partition)
        directory = next(each for each in self.directories if topic_partition in each.logs)
        if self.cleaner is not None:
            self.cleaner.forget(topic_partition)
        del directory.logs[topic_partition]
        self.retention_failures.pop(topic_partition, None)
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
        with suppress(DiskError):  # as for the checkpoints that follow
            directory.note_cleaner_offset(topic_partition, None)
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()

    # --- changing -----------------------------------------------------------------------------

    def configure(self, topic: str, config: TopicConfig) -> None:
        """Take changed settings for all logs of a topic; they count from now on."""
        for log in self:
            if log.topic_partition.topic == topic:
                log.configure(config)
                if self.cleaner is not None:
                    self.cleaner.retry(log.topic_partition)
                    if not config.compact:
                        self.cleaner.forget(log.topic_partition)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take changed broker settings of the cleaner and of retention's checks; they count from
        now on. What a topic inherits comes with ``configure``."""
        if self.cleaner is not None:
            self.cleaner.reconfigure(config)
        self.config = config
        change_periods(self, config)

    def truncate_to(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Cut a log; whether anything was cut. A cleaning that is under way is stopped."""
        log = self.get(topic_partition)
        if offset >= log.log_end_offset:
            return log.truncate_to(offset)
        with self._uncleaned(log):
            return log.truncate_to(offset)

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        log = self.get(topic_partition)
        with self._uncleaned(log):
            log.truncate_fully_and_start_at(offset)

    @contextmanager
    def _uncleaned(self, log: Log) -> Iterator[None]:
        """While a log is cut it is not cleaned; afterwards no more of it counts as cleaned than
        is there."""
        key, cleaner = log.topic_partition, self.cleaner
        if cleaner is not None:
            cleaner.abort_and_pause(key)
        try:
            yield
        finally:
            if cleaner is not None:
                cleaner.resume(key)
                cleaner.retry(key)
        directory = next(each for each in self.directories if key in each.logs)
        cleaned_to = directory.cleaner_offset(key)
        if cleaned_to is not None and cleaned_to > log.segments.active.base_offset:
            directory.note_cleaner_offset(key, log.segments.active.base_offset)

    # --- periodic work ------------------------------------------------------------------------

    def run_due(self) -> list[str]:
        """Run the periodic tasks that are due by the clock."""
        if self.cleaner is not None:
            self.cleaner.inbox.run_all()
        return self.schedule.run_due(self.clock.now_ms())

    def delete_old_segments(self, now_ms: int) -> None:
        """Retention of the logs without ``compact``: the others are the cleaner's to check, and
        nobody's where there is no cleaner."""
        for directory in self.directories:
            for log in list(directory.logs.values()) if directory.is_online else ():
                if not log.config.compact:
                    self.check_retention(log, now_ms)

    def check_retention(self, log: Log, now_ms: int) -> RetentionPlan[Segment] | None:
        """Take what is due out of one log; None if that failed. Trouble is the log's own, noted in
        ``retention_failures``: no other log's check stops."""
        self.retention_failures.pop(log.topic_partition, None)
        try:
            return delete_old_segments(log, now_ms)
        except StorageError as error:
            self.retention_failures[log.topic_partition] = str(error)
            # What the system has run out of comes back, and the next check tries again.
            if isinstance(error, DiskError) and not isinstance(error, OutOfResourcesError):
                log.fail(error)
            return None

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
        self._janitor.report()
        for log in self:
            self._janitor.unlink(log.pending_deletes.take_due(now_ms), log.fail)
        due = [each for each in self._deleting if each[0] <= now_ms]
        self._deleting = [each for each in self._deleting if each[0] > now_ms]
        for _, directory, path in due:
            if directory.is_online:
                self._janitor.remove_tree(path, lambda error, at=directory: at.fail(str(error)))  # type: ignore[misc]

    def expire_producers(self, now_ms: int) -> None:
        for log in self:
            log.producers.remove_expired(now_ms)

    def check_space(self, _now_ms: int = 0) -> None:
        """A full disk is a state: appends stop below the reserve and resume by themselves."""
        for directory in self.directories:
            if directory.is_online:
                directory.check_space(self.config.log_dir_reserve_bytes)

    # --- stopping -----------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Close everything cleanly, so that the next start need not recover."""
        if self.cleaner is not None:
            self.cleaner.shutdown()
        self._janitor.stop()
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
