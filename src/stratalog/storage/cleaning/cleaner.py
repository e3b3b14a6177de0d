"""The log cleaner: which log is cleaned next, by which thread, and what became of it.

All decisions and all changes to logs are made on the owner's thread: ``run`` looks for work, and
whatever workers hand over (a finished segment, the end of a round) arrives through the inbox. The
workers read, filter and write, with the GIL released for nearly all of it.

A partition that cannot be cleaned is set aside with the reason and tried again later, each time
after a longer wait; the others go on. A disk that fails takes its directory offline.
"""

import errno
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Protocol, TypeVar

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.errors import (
    CleaningAbortedError,
    ConfigError,
    DiskError,
    OutOfMemoryError,
    OutOfResourcesError,
    StorageError,
    StratalogError,
)
from stratalog.records import OffsetMap
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.inbox import OwnerInbox
from stratalog.storage.cleaning.planning import CleaningPlan, choose_filthiest
from stratalog.storage.cleaning.rounds import (
    CleanerStats,
    CleaningRound,
    Source,
    Work,
    plan_log,
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
from stratalog.storage.niceness import yield_to_others

T = TypeVar("T")

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


class OnOwner(Protocol):
    """Runs something on the owner's thread, and waits for what it returns."""

    def __call__(self, action: Callable[[], T], /) -> T: ...


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
        # Logs of which no round begins for now.
        self.is_kept_back: Callable[[TopicPartition], bool] = lambda _key: False
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
        self._running: dict[TopicPartition, threading.Thread] = {}
        # Whose last round found too little of something that comes back, a full disk above all.
        self._starved: set[TopicPartition] = set()
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
        self._starved &= hosted
        for key in [each for each in self.last_runs if each not in hosted]:
            del self.last_runs[key]
        self._begin_rounds(now_ms)
        for _, log in self._candidates():
            if self._may_check_retention(log.topic_partition):
                self._check_retention(log, now_ms)

    def _may_check_retention(self, key: TopicPartition) -> bool:
        """Not while a log is cleaned, nor where something is wrong with it. A disk that is too
        full to clean is no such thing: retention is what makes room."""
        is_sound = self.uncleanable.get(key) is None or key in self._starved
        return is_sound and self.states.is_free(key)

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
                for idle in self._maps:
                    idle.release()
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
            if self._is_excluded(key.topic) or self.is_kept_back(key):
                continue
            plan = self._plan(directory, log, now_ms)
            if plan is not None and not plan.is_eligible and self.uncleanable.clear(key):
                log.own.forget_uncleanable()  # what stood in the way is not wanted any more
            if plan is not None and plan.total_bytes > 0 and key not in stuck:
                known[key] = (directory, log)
                plans[key] = plan
        self._max_dirty_ratio = max((each.cleanable_ratio for each in plans.values()), default=0)
        chosen = choose_filthiest(plans)
        return None if chosen is None else (*known[chosen], plans[chosen])

    def _is_excluded(self, topic: str) -> bool:
        """Whether somebody else compacts it."""
        patterns = self._config.log_cleaner_exclude_topics
        return any(fnmatchcase(topic, pattern) for pattern in patterns)

    def _plan(self, directory: LogDirectory, log: Log, now_ms: int) -> CleaningPlan | None:
        try:
            plan = plan_log(log, directory.cleaner_offset(log.topic_partition), now_ms)
            if plan.is_checkpoint_reset:
                directory.note_cleaner_offset(log.topic_partition, plan.first_dirty_offset)
            return plan
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this partition's alone
            self._fail(directory, log, error, now_ms)
            return None

    # --- one round ------------------------------------------------------------------------------

    def _begin(self, directory: LogDirectory, log: Log, plan: CleaningPlan, now_ms: int) -> None:
        key = log.topic_partition
        try:
            round_, end = self._make_round(directory, log, plan, now_ms)
            if self._is_threaded:
                self._start_thread(directory, log, round_, end)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this partition's alone
            self._fail(directory, log, error, now_ms)
            return
        self.states.begin(key)
        if not self._is_threaded:
            end(self._attempt(directory, log, round_, lambda action: action()))

    def _make_round(
        self, directory: LogDirectory, log: Log, plan: CleaningPlan, now_ms: int
    ) -> tuple[CleaningRound, Callable[[Exception | None], None]]:
        """A round, and what is to be called on the owner's thread when it is over."""
        round_plan = plan_round(log, plan, now_ms=now_ms)
        offset_map, generation = self._take_map(), self._generation
        threads = self._config.log_cleaner_threads
        work = Work(
            offset_map,
            max(self._config.log_cleaner_io_buffer_size // threads // 2, 1),
            lambda size_bytes: self._spend(directory, log.topic_partition, size_bytes),
            self._progress,
        )
        round_ = CleaningRound(round_plan, work)

        def end(error: Exception | None) -> None:
            if generation == self._generation:
                self._maps.append(offset_map)
            self._running.pop(log.topic_partition, None)
            self._end(directory, log, round_, error)

        return round_, end

    def _start_thread(
        self,
        directory: LogDirectory,
        log: Log,
        round_: CleaningRound,
        end: Callable[[Exception | None], None],
    ) -> None:
        """Each round has a thread of its own. As a daemon: a worker that waits for an owner who
        has left without a word must not keep the process from ending."""

        def work() -> None:
            yield_to_others()
            error = self._attempt(directory, log, round_, self.inbox.call)
            # Whoever closes the inbox does not want to hear of it any more.
            with suppress(CleaningAbortedError):
                self.inbox.post(lambda: end(error))

        name = f"kafka-log-cleaner-thread-{log.topic_partition}"
        thread = threading.Thread(target=work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            reason = str(error)
            raise OutOfMemoryError("clean", log.directory, errno.EAGAIN, reason) from error
        self._running[log.topic_partition] = thread

    def _attempt(
        self,
        directory: LogDirectory,
        log: Log,
        round_: CleaningRound,
        on_owner: OnOwner,
    ) -> Exception | None:
        try:
            self._work(directory, log, round_, on_owner)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this partition's alone
            return error
        return None

    def _work(
        self,
        directory: LogDirectory,
        log: Log,
        round_: CleaningRound,
        on_owner: OnOwner,
    ) -> None:
        round_.build_map()
        for group in round_.groups():
            cleaned = round_.rewrite(group)
            try:
                on_owner(partial(self._swap, directory, log, round_, cleaned, group))
            except Exception:
                round_.discard(log, cleaned)
                raise
            try:
                round_.settle()
            except DiskError as error:
                on_owner(partial(self._distrust, directory, log, error))
                raise
        written = on_owner(partial(self._plan_checkpoint, directory, log, round_))
        if written is not None:
            written()

    def _distrust(self, directory: LogDirectory, log: Log, error: DiskError) -> None:
        """A sync that failed proves nothing, and the log builds on what it was to prove. One that
        was deleted meanwhile is not to be found, and builds on nothing."""
        if not error.is_passing and directory.logs.get(log.topic_partition) is log:
            log.fail(error)

    def _plan_checkpoint(
        self, directory: LogDirectory, log: Log, round_: CleaningRound
    ) -> Callable[[], None] | None:
        """On the owner's thread: the log is clean up to the round's end. Writing that down can
        take long, and is for the worker to do."""
        key = log.topic_partition
        self._check(directory, key)
        if directory.logs.get(key) is not log:
            return None
        return directory.plan_cleaner_offset(key, round_.stats.end_offset)

    def _swap(
        self,
        directory: LogDirectory,
        log: Log,
        round_: CleaningRound,
        cleaned: CleanedSegment,
        group: list[Source],
    ) -> None:
        self._check(directory, log.topic_partition)
        round_.swap(log, cleaned, group)

    def _spend(self, directory: LogDirectory, key: TopicPartition, size_bytes: int) -> None:
        self._check(directory, key)
        self.throttle.spend(
            size_bytes, give_up=lambda: self._is_stopping or self.states.is_aborted(key)
        )

    def _check(self, directory: LogDirectory, key: TopicPartition) -> None:
        if self._is_stopping or self.states.is_aborted(key) or not directory.is_online:
            raise CleaningAbortedError(f"the cleaning of {key} was stopped")

    def _end(
        self, directory: LogDirectory, log: Log, round_: CleaningRound, error: Exception | None
    ) -> None:
        """On the owner's thread: a round is over, well or not."""
        key = log.topic_partition
        now_ms = self._clock.now_ms()
        # A round that was told to stop leaves no trace, whatever it met: its files may have been
        # renamed under it, and the log that has its name now may be another.
        if self.states.done(key) and directory.logs.get(key) is log:
            self._conclude(directory, log, round_, error, now_ms)
        if self._is_threaded:
            self._begin_rounds(now_ms)

    def _conclude(
        self,
        directory: LogDirectory,
        log: Log,
        round_: CleaningRound,
        error: Exception | None,
        now_ms: int,
    ) -> None:
        key = log.topic_partition
        if error is not None and directory.is_online:
            with suppress(StorageError):  # the error that counts is the first one
                directory.note_cleaner_offset(key, round_.plan.first_dirty_offset)
        if error is None:
            self.uncleanable.clear(key)
            self.last_runs[key] = round_.finish()
            log.own.note_cleaning({"at_ms": now_ms, **self.last_runs[key].as_dict()})
        elif not isinstance(error, CleaningAbortedError):
            self._fail(directory, log, error, now_ms)

    def _fail(self, directory: LogDirectory, log: Log, error: Exception, now_ms: int) -> None:
        if isinstance(error, DiskError) and not isinstance(error, OutOfResourcesError):
            if directory.is_online:
                log.fail(error)
            return
        reason = (
            str(error) if isinstance(error, StorageError) else f"{type(error).__name__}: {error}"
        )
        if isinstance(error, OutOfResourcesError | MemoryError):
            self._starved.add(log.topic_partition)
        else:
            self._starved.discard(log.topic_partition)
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

    def forget(self, topic_partition: TopicPartition) -> None:
        """A log is deleted, or not compacted any more: nothing counts that was known of it."""
        self.abort(topic_partition)
        self.uncleanable.clear(topic_partition)
        self.last_runs.pop(topic_partition, None)

    def retry(self, topic_partition: TopicPartition) -> None:
        """Something about the log has changed: try again at once if it could not be cleaned."""
        self.uncleanable.hasten(topic_partition, self._clock.now_ms())

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take changed settings: the throttle's at once, the others from the next round on."""
        before = self._config.log_cleaner_threads
        if not before // 2 <= config.log_cleaner_threads <= before * 2:
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
        deadline = time.monotonic() + timeout_s
        while self._running and (left_s := deadline - time.monotonic()) > 0:
            self.inbox.wait(left_s)
        return not self._running

    def shutdown(self) -> None:
        """Stop: what is under way is dropped, and nothing is changed any more."""
        self._is_stopping = True
        self.throttle.wake()
        self.inbox.close()
        for thread in self._running.values():
            thread.join()
        self._running.clear()
        self._maps.clear()


def _cleanable_bytes(directory: LogDirectory, log: Log, now_ms: int) -> int:
    try:
        return plan_log(log, directory.cleaner_offset(log.topic_partition), now_ms).cleanable_bytes
    except StratalogError:
        return log.size_bytes
