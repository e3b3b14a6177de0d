"""The log cleaner: which log is cleaned next, by which thread, and what became of it.

All decisions and all changes to logs are made on the owner's thread: ``run`` looks for work, and
whatever workers hand over (a finished segment, the end of a round) arrives through the inbox. The
workers read, filter and write, with the GIL released for nearly all of it.

A partition that cannot be cleaned is set aside with the reason and tried again later, each time
after a longer wait; the others go on. A disk that fails takes its directory offline.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.errors import (
    CleaningAbortedError,
    ConfigError,
    DiskError,
    OutOfResourcesError,
    StorageError,
)
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.inbox import OwnerInbox
from stratalog.storage.cleaning.planning import CleaningPlan, choose_filthiest, plan_cleaning
from stratalog.storage.cleaning.rounds import (
    CleanerStats,
    CleaningRound,
    Source,
    Work,
    plan_round,
)
from stratalog.storage.cleaning.states import (
    CleaningState,
    CleaningStates,
    Uncleanable,
    UncleanablePartitions,
)
from stratalog.storage.cleaning.throttle import Throttle
from stratalog.storage.directory import LogDirectory
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log

_MAP_BYTES_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CleanerStatus:
    """How cleaning stands, to be shown. Kafka's metrics are these numbers."""

    states: dict[TopicPartition, CleaningState]
    uncleanable: dict[TopicPartition, Uncleanable]
    last_runs: dict[TopicPartition, CleanerStats]
    uncleanable_bytes: int
    max_dirty_percent: int
    last_run_ms: int


class LogCleaner:
    """See the top of this file. ``is_threaded=False`` cleans on the caller's thread, in ``run``."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        directories: Iterable[LogDirectory],
        check_retention: Callable[[Log, int], object],
        *,
        is_threaded: bool = True,
        progress: Callable[[int], None] = lambda _size_bytes: None,
    ) -> None:
        self.states = CleaningStates()
        self.uncleanable = UncleanablePartitions(config.log_cleaner_backoff_ms)
        self.inbox = OwnerInbox()
        self.last_runs: dict[TopicPartition, CleanerStats] = {}
        self.throttle = Throttle(config.log_cleaner_io_max_bytes_per_second)
        self._config = config
        self._clock = clock
        self._directories = list(directories)
        self._check_retention = check_retention
        self._progress = progress
        self._is_threaded = is_threaded
        self._is_stopping = False
        # Maps that no round uses, all of the size that the settings of this generation ask for.
        self._maps: list[OffsetMap] = []
        self._generation = 0
        self._running: dict[TopicPartition, Future[None]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._max_dirty_ratio = 0.0
        self._last_run_ms = clock.now_ms()

    # --- looking for work -----------------------------------------------------------------------

    def run(self, now_ms: int) -> None:
        """One turn: begin what is due, then check the retention of the logs that are compacted.

        The owner calls this every ``log.cleaner.backoff.ms``; the end of a round looks for the
        next one by itself.
        """
        self.inbox.run_all()
        hosted = {key for directory in self._directories for key in directory.logs}
        self.uncleanable.forget(hosted)
        for key in [each for each in self.last_runs if each not in hosted]:
            del self.last_runs[key]
        self._begin_rounds(now_ms)
        for _, log in self._candidates():
            key = log.topic_partition
            if self.states.is_free(key) and self.uncleanable.get(key) is None:
                self._check_retention(log, now_ms)

    def _candidates(self) -> Iterable[tuple[LogDirectory, Log]]:
        for directory in self._directories:
            if directory.is_online:
                for log in list(directory.logs.values()):
                    if log.config.compact and not log.is_held and log.failure is None:
                        yield directory, log

    def _begin_rounds(self, now_ms: int) -> None:
        stuck: set[TopicPartition] = set()
        while not self._is_stopping and len(self._running) < self._config.log_cleaner_threads:
            found = self._filthiest(now_ms, stuck)
            if found is None:
                return
            directory, log, plan = found
            before = directory.cleaner_offset(log.topic_partition)
            self._begin(directory, log, plan, now_ms)
            if directory.cleaner_offset(log.topic_partition) == before:
                # A round on this thread that came to nothing would be chosen again at once.
                stuck.add(log.topic_partition)

    def _filthiest(
        self, now_ms: int, stuck: set[TopicPartition]
    ) -> tuple[LogDirectory, Log, CleaningPlan] | None:
        self._last_run_ms = now_ms
        known: dict[TopicPartition, tuple[LogDirectory, Log]] = {}
        plans: dict[TopicPartition, CleaningPlan] = {}
        for directory, log in self._candidates():
            key = log.topic_partition
            if not self.states.is_free(key) or not self.uncleanable.due(key, now_ms):
                continue
            plan = self._plan(directory, log, now_ms)
            if plan is not None and plan.total_bytes > 0 and key not in stuck:
                known[key] = (directory, log)
                plans[key] = plan
        self._max_dirty_ratio = max((each.cleanable_ratio for each in plans.values()), default=0)
        chosen = choose_filthiest(plans)
        return None if chosen is None else (*known[chosen], plans[chosen])

    def _plan(self, directory: LogDirectory, log: Log, now_ms: int) -> CleaningPlan | None:
        try:
            plan = plan_log(log, directory.cleaner_offset(log.topic_partition), now_ms)
            if plan.is_checkpoint_reset:
                directory.note_cleaner_offset(log.topic_partition, plan.first_dirty_offset)
            return plan
        except StorageError as error:
            self._fail(directory, log, error, now_ms)
            return None

    # --- one round ------------------------------------------------------------------------------

    def _begin(self, directory: LogDirectory, log: Log, plan: CleaningPlan, now_ms: int) -> None:
        key = log.topic_partition
        try:
            round_plan = plan_round(log, plan, now_ms=now_ms)
        except StorageError as error:
            self._fail(directory, log, error, now_ms)
            return
        self.states.begin(key)
        offset_map, generation = self._take_map(), self._generation
        work = Work(
            offset_map,
            max(
                self._config.log_cleaner_io_buffer_size // self._config.log_cleaner_threads // 2, 1
            ),
            lambda size_bytes: self._spend(key, size_bytes),
            self._progress,
        )
        round_ = CleaningRound(round_plan, work)

        def end(error: Exception | None) -> None:
            if generation == self._generation:
                self._maps.append(offset_map)
            self._running.pop(key, None)
            self._end(directory, log, round_, error)

        if not self._is_threaded:
            end(self._attempt(log, round_, lambda action: action()))
            return
        self._running[key] = self._workers().submit(self._work_on_thread, log, round_, end)

    def _work_on_thread(
        self, log: Log, round_: CleaningRound, end: Callable[[Exception | None], None]
    ) -> None:
        error = self._attempt(log, round_, self.inbox.call)
        # Whoever closes the inbox does not want to hear of it any more.
        if not self._is_stopping:
            self.inbox.post(lambda: end(error))

    def _attempt(
        self,
        log: Log,
        round_: CleaningRound,
        on_owner: Callable[[Callable[[], None]], None],
    ) -> Exception | None:
        try:
            self._work(log, round_, on_owner)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this partition's alone
            return error
        finally:
            round_.release()
        return None

    def _work(
        self,
        log: Log,
        round_: CleaningRound,
        on_owner: Callable[[Callable[[], None]], None],
    ) -> None:
        round_.build_map()
        for group in round_.groups():
            cleaned = round_.rewrite(group)
            try:
                on_owner(partial(self._swap, log, round_, cleaned, group))
            except BaseException:
                cleaned.discard()
                raise

    def _swap(
        self, log: Log, round_: CleaningRound, cleaned: CleanedSegment, group: list[Source]
    ) -> None:
        self._check(log.topic_partition)
        round_.swap(log, cleaned, group)

    def _spend(self, key: TopicPartition, size_bytes: int) -> None:
        self._check(key)
        self.throttle.spend(
            size_bytes, give_up=lambda: self._is_stopping or self.states.is_aborted(key)
        )

    def _check(self, key: TopicPartition) -> None:
        if self._is_stopping or self.states.is_aborted(key):
            raise CleaningAbortedError(f"the cleaning of {key} was stopped")

    def _end(
        self, directory: LogDirectory, log: Log, round_: CleaningRound, error: Exception | None
    ) -> None:
        """On the owner's thread: a round is over, well or not."""
        key = log.topic_partition
        now_ms = self._clock.now_ms()
        may_checkpoint = self.states.done(key) and directory.logs.get(key) is log
        if may_checkpoint and directory.is_online:
            end_offset = round_.stats.end_offset
            if error is not None:
                end_offset = round_.plan.first_dirty_offset
            try:
                directory.note_cleaner_offset(key, end_offset)
            except StorageError as raised:
                error = error or raised
        if error is None:
            self.uncleanable.clear(key)
            self.last_runs[key] = round_.finish()
            if may_checkpoint:
                log.own.note_cleaning({"at_ms": now_ms, **self.last_runs[key].as_dict()})
        elif not isinstance(error, CleaningAbortedError):
            self._fail(directory, log, error, now_ms)
        if self._is_threaded:
            self._begin_rounds(now_ms)

    def _fail(self, directory: LogDirectory, log: Log, error: Exception, now_ms: int) -> None:
        if isinstance(error, DiskError) and not isinstance(error, OutOfResourcesError):
            if directory.is_online:
                log.fail(error)
            return
        reason = (
            str(error) if isinstance(error, StorageError) else f"{type(error).__name__}: {error}"
        )
        marked = self.uncleanable.mark(log.topic_partition, reason, now_ms)
        log.own.note_uncleanable(asdict(marked))

    def _take_map(self) -> OffsetMap:
        config = self._config
        if self._maps:
            return self._maps.pop()
        memory_bytes = config.log_cleaner_dedupe_buffer_size // config.log_cleaner_threads
        return OffsetMap(
            min(memory_bytes, _MAP_BYTES_MAX),
            load_factor=config.log_cleaner_io_buffer_load_factor,
            hash_name=config.log_cleaner_hash,
        )

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self._config.log_cleaner_threads, thread_name_prefix="kafka-log-cleaner-thread"
            )
        return self._pool

    # --- what others ask for --------------------------------------------------------------------

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Stop cleaning a log, and do not begin again before ``resume``. Does not wait: what a
        round has under way is never swapped in."""
        self.states.abort_and_pause(topic_partition)
        self.throttle.wake()

    def resume(self, topic_partition: TopicPartition) -> None:
        self.states.resume(topic_partition)

    def abort(self, topic_partition: TopicPartition) -> None:
        """Stop the round that is under way, if there is one."""
        self.abort_and_pause(topic_partition)
        self.resume(topic_partition)

    def retry(self, topic_partition: TopicPartition) -> None:
        """Something about the log has changed: try again at once if it could not be cleaned."""
        self.uncleanable.hasten(topic_partition, self._clock.now_ms())

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take changed settings: the throttle's at once, the others from the next round on."""
        before = self._config.log_cleaner_threads
        if not before / 2 <= config.log_cleaner_threads <= before * 2:
            raise ConfigError(
                "log.cleaner.threads",
                config.log_cleaner_threads,
                f"must stay between half and twice the present {before}",
            )
        self._config = config
        self.uncleanable.backoff_ms = config.log_cleaner_backoff_ms
        self.throttle.bytes_per_second = config.log_cleaner_io_max_bytes_per_second
        self._maps.clear()
        self._generation += 1
        if self._pool is not None and config.log_cleaner_threads != before:
            self._pool.shutdown(wait=False)
            self._pool = None

    def status(self) -> CleanerStatus:
        marked = self.uncleanable.all()
        stuck_bytes = 0
        for directory, log in self._candidates():
            if log.topic_partition in marked:
                stuck_bytes += _cleanable_bytes(directory, log, self._clock.now_ms())
        return CleanerStatus(
            self.states.all(),
            marked,
            dict(self.last_runs),
            stuck_bytes,
            int(100 * self._max_dirty_ratio),
            self._last_run_ms,
        )

    def wait(self, timeout_s: float) -> bool:
        """On the owner's thread: help rounds along until none runs; whether none does."""
        if self._running:
            self.inbox.wait(timeout_s)
        return not self._running

    def shutdown(self) -> None:
        """Stop: what is under way is dropped, and nothing is changed any more."""
        self._is_stopping = True
        self.throttle.wake()
        self.inbox.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        self._maps.clear()


def plan_log(log: Log, checkpoint: int | None, now_ms: int) -> CleaningPlan:
    """What cleaning ``log`` would come to now, and why."""
    return plan_cleaning(
        list(log.segments),
        config=log.config,
        checkpoint=checkpoint,
        log_start_offset=log.log_start_offset,
        last_stable_offset=log.last_stable_offset,
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
    )


def _cleanable_bytes(directory: LogDirectory, log: Log, now_ms: int) -> int:
    try:
        return plan_log(log, directory.cleaner_offset(log.topic_partition), now_ms).cleanable_bytes
    except StorageError:
        return log.size_bytes
