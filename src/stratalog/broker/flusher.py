"""Makes appends durable: one group of logs after the other, for each log directory.

With ``log.flush.on.ack`` every append asks for a flush. While one runs on a worker, what is
appended meanwhile waits for the next, which serves all of it at once. Without it, this flushes
only what has been rolled, so that a segment of a gigabyte is not written while the loop waits.
Log starts that DeleteRecords has raised become durable in the same rounds, all with one write.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from stratalog.errors import DiskError, OutOfResourcesError
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem
from stratalog.storage.flushing import FlushTask, is_synced_at_once, sync_all
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.log_starts import LogStartTask

_RETRY_SECONDS = 0.1

Told = Callable[[Sequence[TopicPartition]], None]

T = TypeVar("T")


class Worker(Protocol):
    """Does one job after the other beside the loop, and calls ``done`` on the loop."""

    def submit(self, job: Callable[[], T], done: Callable[[T], None]) -> None: ...


class Flusher:
    """Of one log directory. Confined to the loop, but for what its worker does."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        worker: "Worker",
        files: FileSystem,
        directory: LogDirectory,
        *,
        flushed: Told,
        failed: Told,
    ) -> None:
        self._loop = loop
        self._worker = worker
        self._files = files
        self._directory = directory
        self._flushed = flushed
        self._failed = failed
        self._dirty: dict[TopicPartition, Log] = {}
        self._raised: set[TopicPartition] = set()
        self._is_running = False

    def ask(self, log: Log) -> None:
        """Something was appended to ``log``."""
        self._dirty[log.topic_partition] = log
        self._begin_soon()

    def ask_for_start(self, log: Log) -> None:
        """The log start was raised."""
        self._raised.add(log.topic_partition)
        self._begin_soon()

    def _begin_soon(self) -> None:
        if not self._is_running:
            self._is_running = True
            # Not at once: what else has arrived in this turn of the loop goes along.
            self._loop.call_soon(self._begin)

    @property
    def is_idle(self) -> bool:
        return not self._is_running

    def _begin(self) -> None:
        dirty, self._dirty = self._dirty, {}
        raised, self._raised = self._raised, set()
        try:
            self._begin_round(dirty, raised)
        except MemoryError:
            # Memory comes back, and who waits for the flush waits on.
            self._is_running = False
            self._dirty, self._raised = {**dirty, **self._dirty}, raised | self._raised
            self._loop.call_later(_RETRY_SECONDS, self._begin_soon)

    def _begin_round(self, dirty: dict[TopicPartition, Log], raised: set[TopicPartition]) -> None:
        keys = list(dict.fromkeys((*dirty, *raised)))
        tasks = self._plan(dirty) if self._directory.is_online else []
        starts = self._plan_starts(raised) if raised and self._directory.is_online else None
        if not self._directory.is_online:
            self._is_running = False
            self._failed(keys)
            return
        if not tasks and starts is None:
            self._is_running = False
            self._flushed(keys)
            return
        round_ = _Round(keys, tasks, starts, raised)
        self._worker.submit(partial(self._run, round_), partial(self._end, round_))

    def _plan(self, dirty: dict[TopicPartition, Log]) -> list[tuple[Log, FlushTask]]:
        """What is to be synced. Planning writes the last index entries, and so may fail itself."""
        tasks = []
        for log in dirty.values():
            # A roll may have flushed it meanwhile.
            if not log.needs_flush or log.is_closed:
                continue
            try:
                task = log.plan_flush(indexes_may_lag=True)
            except OutOfResourcesError:
                self._ask_later(log)
                continue
            except DiskError as error:
                self._give_up(log, error)
                continue
            if task is not None:
                tasks.append((log, task))
        return tasks

    def _plan_starts(self, raised: set[TopicPartition]) -> LogStartTask | None:
        """None if that failed: what the file says of logs that could not be opened is read."""
        try:
            return LogStartTask.plan(self._directory)
        except DiskError as error:
            self._starts_failed(error, raised)
            return None

    def _run(self, round_: "_Round") -> "_Errors":
        """On the worker: why each of the tasks failed, if it did, and why the log starts did."""
        starts = round_.starts
        starts_error = None if starts is None else _attempt(starts.run)
        tasks = round_.tasks
        if is_synced_at_once(self._files, len(tasks)):
            directory = self._directory
            error = _attempt(lambda: sync_all(self._files, directory.path, directory.state.syncs))
            return [error] * len(tasks), starts_error
        return [_attempt(task.run) for _, task in tasks], starts_error

    def _end(self, round_: "_Round", found: "_Errors") -> None:
        self._is_running = False
        errors, starts_error = found
        for (log, task), error in zip(round_.tasks, errors, strict=True):
            if error is None:
                log.complete_flush(task)
            elif _is_passing(error):
                log.plan_again(task)
                self._ask_later(log)
            elif not log.is_closed:  # of one that was deleted meanwhile nothing is missed
                self._give_up(log, error)
        if round_.starts is not None:
            self._end_starts(round_.starts, round_.raised, starts_error)
        try:
            if self._directory.is_online:
                self._flushed(round_.keys)
            else:
                self._failed(round_.keys)
        finally:
            # One whom nothing can be told keeps nobody else waiting.
            if (self._dirty or self._raised) and not self._is_running:
                self._is_running = True
                self._begin()

    def _end_starts(
        self, starts: LogStartTask, raised: set[TopicPartition], error: Exception | None
    ) -> None:
        if error is None:
            starts.complete()
        else:
            self._starts_failed(error, raised)

    def _starts_failed(self, error: Exception, raised: set[TopicPartition]) -> None:
        if isinstance(error, OutOfResourcesError | MemoryError):
            # The old file stands, and what the system has run out of comes back.
            self._loop.call_later(_RETRY_SECONDS, self._retry_starts, raised)
        else:
            self._directory.fail(str(error))

    def _retry_starts(self, raised: set[TopicPartition]) -> None:
        self._raised |= raised
        self._begin_soon()

    def _ask_later(self, log: Log) -> None:
        """What the system has run out of comes back, and who waits for the flush waits on."""
        self._loop.call_later(_RETRY_SECONDS, self.ask, log)

    def _give_up(self, log: Log, error: Exception) -> None:
        """A sync that failed proves nothing about what it covered, nor would another."""
        if not isinstance(error, DiskError):
            error = DiskError("fsync", log.directory, 0, str(error))
        self._directory.fail(str(error))
        log.fail(error)


@dataclass(frozen=True, slots=True)
class _Round:
    """What one turn of the worker makes durable, and for whom."""

    keys: list[TopicPartition]
    tasks: list[tuple[Log, FlushTask]]
    starts: LogStartTask | None
    raised: set[TopicPartition]


_Errors = tuple[list[Exception | None], Exception | None]


def _is_passing(error: Exception) -> bool:
    """Whether the flush can be tried again. Memory that ran out is never the failure of a sync:
    files turn that into one of the disk."""
    return isinstance(error, MemoryError) or (isinstance(error, DiskError) and error.is_passing)


def _attempt(action: Callable[[], None]) -> Exception | None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - whatever it is, what was to be synced is in doubt
        return error
    return None
