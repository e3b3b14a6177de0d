"""All logs of a broker, or of a job that owns log directories: opened, made, deleted, kept.

A log is confined to its owner's thread; so is the manager. Only opening runs on several threads,
one log on one of them, before anybody else can see it.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
from stratalog.storage.clean_close import close_together
from stratalog.storage.cleaning.cleaner import LogCleaner
from stratalog.storage.commits.committing import LogCommits
from stratalog.storage.deleted_directories import DeletedDirectories, DeletedDirectory
from stratalog.storage.deletion import FOREVER_MS
from stratalog.storage.directory import (
    Checkpoint,
    Identity,
    LogDirectory,
    acquire_all,
    for_each_online,
)
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.flushing import flush_together
from stratalog.storage.handles import HandleCache
from stratalog.storage.held_logs import truncate_held, truncate_held_fully
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    TopicPartition,
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
from stratalog.storage.log_leases import LogLeases
from stratalog.storage.making import (
    DetachedLog,
    DirectoryWrite,
    NewLog,
    make_logs,
    place,
    refuse_collisions,
    rename_deleted,
    write_all,
)
from stratalog.storage.retention import RetentionPlan, delete_old_segments
from stratalog.storage.schedule import Schedule
from stratalog.storage.segment import Segment
from stratalog.storage.tasks import change_periods, schedule_tasks


class LogManager:
    """``topic_config`` gives what is known of a topic's configs. None means that nothing is: such
    a log is opened and served, and neither retention nor cleaning touches it; nor that of a topic
    that ``is_held``. With ``is_threaded=False`` logs are cleaned and files removed by ``run_due``
    itself."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: FileSystem | None = None,
        clock: Clock | None = None,
        topic_config: Callable[[str], TopicConfig | None] | None = None,
        is_held: Callable[[str], bool] = lambda _topic: False,
        identity: Identity | None = None,
        directories: Sequence[LogDirectory] | None = None,
        show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
        is_threaded: bool = True,
    ) -> None:
        self.config = config
        self.files = files or OsFileSystem()
        self.clock = clock or SystemClock()
        self.progress = LoadProgress(show_progress)
        self.schedule = Schedule()
        self.directories = (
            [LogDirectory(self.files, path) for path in config.log_directories]
            if directories is None
            else list(directories)
        )
        # Why the last check of a log's retention did not end; gone when one does.
        self.retention_failures: dict[TopicPartition, str] = {}
        # Set by an owner that tells what retention has deleted; on the owner's thread.
        self.tell_deleted: Callable[[Log, RetentionPlan[Segment]], None] = lambda _log, _plan: None
        # Set by an owner that flushes on another thread; see LogContext.
        self.flush_later: Callable[[Log], bool] = lambda _log: False
        self._identity = identity
        self._janitor = Janitor(self.files, is_threaded=is_threaded)
        self.leases = LogLeases(
            config, self.files, self.clock, directories=self.directories, janitor=self._janitor
        )
        self.commits = LogCommits(self, self._janitor)
        self._handles = HandleCache.within_limits()
        self._loader = LogLoader(
            config,
            self.files,
            self.clock,
            topic_config=topic_config,
            is_held=is_held,
            handles=self._handles,
            progress=self.progress,
            flush_later=lambda log: self.flush_later(log),
            leases=self.leases.book,
        )
        self._deleted = DeletedDirectories(self._janitor, self.leases.book)
        self._is_threaded = is_threaded
        self.cleaner: LogCleaner | None = None  # None before the start, or not enabled

    @property
    def is_threaded(self) -> bool:
        return self._is_threaded

    # --- starting -----------------------------------------------------------------------------

    def start(self) -> None:
        """Take the directories and open every log in them.

        A directory that cannot be used goes offline, a log that cannot be opened is set aside
        with the reason; only if no directory is left does this raise.
        """
        acquire_all(self.directories)
        replicas: list[ReplicaToOpen] = []
        try:
            for_each_online(self.directories, lambda each: each.belong_to(self._identity))
            for_each_online(self.directories, lambda each: replicas.extend(self._prepare(each)))
        except LogDirectoryError:
            self._release()
            raise
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
            self.cleaner.is_kept_back = self.commits.is_to_be_done
        self._checkpoint(LogDirectory.begin_recovery_points)
        self._watch_space()
        schedule_tasks(self)

    def _prepare(self, directory: LogDirectory) -> list[ReplicaToOpen]:
        changed = self.commits.open(directory)
        found = take_stock(directory)
        due_ms = self.clock.now_ms() + self.config.log_segment_delete_delay_ms
        self._deleted.add(
            DeletedDirectory(due_ms, directory, path, key) for path, key in found.to_delete
        )
        self.leases.load(directory, {each.path: each.topic_partition for each in found.to_open})
        return [
            replace(each, clean=False) if each.topic_partition in changed else each
            for each in found.to_open
        ]

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
        new = NewLog(topic_partition, topic_id)
        self.plan_create([new], directory=directory, is_new=is_new)
        while True:
            self.make([new])
            try:
                return self.take_in(new)
            except LogDirectoryError:
                if not new.candidates:
                    raise

    def plan_create(
        self, wanted: Sequence[NewLog], *, directory: str | None = None, is_new: bool = True
    ) -> None:
        """Say where new logs go: to the directory given, or to those with the fewest. Nothing is
        changed before ``make``, which any thread may call, and ``take_in``."""
        for key in (new.topic_partition for new in wanted):
            validate_topic_name(key.topic)
            if key.partition < 0:
                raise TopicNameError(str(key), "a partition's number is not negative")
            if key in self:
                raise LogExistsError(f"{key} exists already")
            if not is_new and not all(each.is_online for each in self.directories):
                raise LogDirectoryError(
                    f"{key} may be in a directory that is offline; it is not made anew"
                )
        refuse_collisions({log.topic_partition.topic for log in self}, wanted)
        place(self.directories, wanted, directory)

    def make(self, planned: Sequence[NewLog]) -> None:
        """Make the files of new logs, durably. Blocks; any thread may call it, one at a time."""
        make_logs(self.files, self._loader, planned)

    def take_in(self, made: NewLog) -> Log:
        """Hold a log that was made. If that fails, what is left of its candidates can be tried."""
        log, directory = made.log, made.directory
        if log is not None and directory is not None:
            try:
                directory.take_in(log)
                return log
            except DiskError as error:
                made.give_up(self.files, error)
        else:
            made.candidates = ()
        reasons = "; ".join(made.failures)
        raise LogDirectoryError(f"{made.topic_partition} could not be created: {reasons}")

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log away at once; its files go after ``file.delete.delay.ms``."""
        detached = [self.detach(topic_partition)]
        failed = rename_deleted(self.files, detached)
        for directory, error in write_all(self.complete_deletion(detached, failed)):
            directory.checkpoint_failed(error)
        for error in failed.values():
            raise error

    def detach(self, topic_partition: TopicPartition) -> DetachedLog:
        """Hold a log no more. Its directory is then to be renamed, by ``rename_deleted``, which
        any thread may call, and that to be noted by ``complete_deletion``."""
        log = self.get(topic_partition)
        directory = next(each for each in self.directories if topic_partition in each.logs)
        if self.cleaner is not None:
            self.cleaner.forget(topic_partition)
        del directory.logs[topic_partition]
        self.retention_failures.pop(topic_partition, None)
        log.abandon()
        target = f"{directory.path}/{suffixed_directory(topic_partition, DELETE_DIRECTORY)}"
        return DetachedLog(log, directory, log.directory, target)

    def complete_deletion(
        self, detached: Sequence[DetachedLog], failed: Mapping[LogDirectory, DiskError]
    ) -> list[DirectoryWrite]:
        """The directories of ``detached`` were renamed, but for those in ``failed``. What is
        returned has to be written before a log of the same name is made, by any thread."""
        for directory, error in failed.items():
            directory.fail(str(error))
        now_ms = self.clock.now_ms()
        writes: list[DirectoryWrite] = []
        for each in detached:
            if each.directory not in failed:
                due_ms = now_ms + max(each.log.config.file_delete_delay_ms, 1)
                key = each.log.topic_partition
                self._deleted.add([DeletedDirectory(due_ms, each.directory, each.target, key)])
                self.leases.book.forget_held(key, each.path)
        for directory in {each.directory for each in detached} - set(failed):
            writes.append((directory, directory.plan_cleaner_offsets()))
            writes.append((directory, directory.plan_recovery_points().write))
            writes.append((directory, directory.plan_log_start_offsets().write))
        return writes

    # --- changing -----------------------------------------------------------------------------

    def configure(self, topic: str, config: TopicConfig) -> None:
        """Take changed settings for all logs of a topic; they count from now on."""
        for log in self:
            if log.topic_partition.topic == topic:
                self.configure_log(log, config)

    def configure_log(self, log: Log, config: TopicConfig) -> None:
        log.configure(config)
        if self.cleaner is not None:
            self.cleaner.retry(log.topic_partition)
            if not config.compact:
                self.cleaner.forget(log.topic_partition)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take changed broker settings of the cleaner, of retention's checks and of transactions;
        they count from now on. What a topic inherits comes with ``configure``."""
        if self.cleaner is not None:
            self.cleaner.reconfigure(config)
        self._loader.reconfigure(config)
        for directory in self.directories:
            for log in directory.logs.values():
                log.context.verify_transactions = config.transaction_partition_verification_enable
        self.config = config
        change_periods(self, config)

    def truncate_to(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Cut a log; whether anything was cut. A cleaning that is under way is stopped."""
        return truncate_held(self, topic_partition, offset)

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        truncate_held_fully(self, topic_partition, offset)

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
        if log.is_paused:
            return None  # for a moment: the next check is soon enough
        self.retention_failures.pop(log.topic_partition, None)
        try:
            plan = delete_old_segments(log, now_ms)
            if plan.doomed:
                self.tell_deleted(log, plan)
            return plan
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
                flush_together(self.files, directory.path, dirty, directory.state.syncs)
            except DiskError as error:
                failure = error
                if error.is_passing:
                    continue
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
            if not error.is_passing:
                log.fail(error)

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(LogDirectory.checkpoint_recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        self._checkpoint(LogDirectory.checkpoint_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._checkpoint(LogDirectory.checkpoint_high_watermarks)

    def _checkpoint(self, write: Callable[[LogDirectory], None]) -> None:
        for directory in self.directories:
            if directory.is_online:
                try:
                    write(directory)
                except DiskError:
                    continue  # the directory has gone offline, and said why

    def checkpoint_later(self, plan: Callable[[LogDirectory], Checkpoint]) -> None:
        """Plan a checkpoint of each directory; the janitor writes it."""
        for directory in self.directories:
            if directory.is_online:
                self._janitor.write(plan(directory).write, directory.checkpoint_failed)

    def delete_due(self, now_ms: int, *, is_last: bool = False) -> None:
        """Unlink what was deleted long enough ago; with ``is_last`` all, but for what is leased."""
        self._janitor.report()
        self.leases.run(now_ms)
        self._deleted.remove_due(FOREVER_MS if is_last else now_ms)
        for directory in self.directories:
            directory.remove_due(self._janitor, now_ms, is_last=is_last)
            self._deleted.remove_half_made(directory)

    def expire_producers(self, now_ms: int) -> None:
        for log in self:
            log.producers.remove_expired(now_ms)

    def check_space(self, _now_ms: int = 0) -> None:
        """A full disk is a state: appends stop below the reserve and resume by themselves."""
        for directory in self.directories:
            self._check_space(directory)

    def _check_space(self, directory: LogDirectory) -> None:
        if directory.is_online:
            reserve_bytes = self.config.log_dir_reserve_bytes
            coming_bytes = self.leases.make_room(directory, reserve_bytes)
            directory.check_space(reserve_bytes, coming_bytes=coming_bytes)

    def _watch_space(self) -> None:
        """From now on, also between two regular checks."""
        for directory in self.directories:
            directory.state.check_space = partial(self._check_space, directory)
            reserve_bytes = self.config.log_dir_reserve_bytes
            directory.state.check_after_bytes = max(reserve_bytes // 4, 1 << 20)

    # --- stopping -----------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Close everything cleanly, so that the next start need not recover."""
        if self.cleaner is not None:
            self.cleaner.shutdown()
        self.commits.close()
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
        logs = list(directory.logs.values())
        close_together(self.files, directory.path, logs, directory.state.syncs)
        directory.checkpoint_recovery_points()
        directory.checkpoint_log_start_offsets()
        unsettled = any(log.needs_recovery for log in directory.logs.values())
        if not unsettled and not directory.offline_logs:
            directory.write_clean_marker()

    def _release(self) -> None:
        for directory in self.directories:
            directory.release()
