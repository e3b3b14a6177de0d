"""Makes appends durable: one group of logs after the other, for each log directory.

With ``log.flush.on.ack`` every append asks for a flush. While one runs on a worker, what is
appended meanwhile waits for the next, which serves all of it at once. Without it, this flushes
only what has been rolled, so that a segment of a gigabyte is not written while the loop waits.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from stratalog.errors import DiskError, OutOfResourcesError
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM, FlushTask, sync_all
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log

_RETRY_SECONDS = 0.1

Told = Callable[[Sequence[TopicPartition]], None]


class Flusher:
    """Of one log directory. Confined to the loop, but for what its worker does."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        files: FileSystem,
        directory: LogDirectory,
        *,
        flushed: Told,
        failed: Told,
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._files = files
        self._directory = directory
        self._flushed = flushed
        self._failed = failed
        self._dirty: dict[TopicPartition, Log] = {}
        self._is_running = False

    def ask(self, log: Log) -> None:
        """Something was appended to ``log``."""
        self._dirty[log.topic_partition] = log
        if not self._is_running:
            self._is_running = True
            # Not at once: what else has arrived in this turn of the loop goes along.
            self._loop.call_soon(self._begin)

    @property
    def is_idle(self) -> bool:
        return not self._is_running

    def _begin(self) -> None:
        dirty, self._dirty = self._dirty, {}
        keys = list(dirty)
        if not self._directory.is_online:
            self._is_running = False
            self._failed(keys)
            return
        tasks = self._plan(dirty)
        if not self._directory.is_online:
            self._is_running = False
            self._failed(keys)
            return
        if not tasks:
            self._is_running = False
            self._flushed(keys)
            return
        job = self._loop.run_in_executor(self._executor, self._run, [task for _, task in tasks])
        job.add_done_callback(lambda done: self._end(keys, tasks, done))

    def _plan(self, dirty: dict[TopicPartition, Log]) -> list[tuple[Log, FlushTask]]:
        """What is to be synced. Planning writes the last index entries, and so may fail itself."""
        tasks = []
        for log in dirty.values():
            # A roll may have flushed it meanwhile.
            if not log.needs_flush or log.is_closed:
                continue
            try:
                task = log.plan_flush()
            except OutOfResourcesError:
                # What the system has run out of comes back.
                self._loop.call_later(_RETRY_SECONDS, self.ask, log)
                continue
            except DiskError as error:
                self._give_up(log, error)
                continue
            if task is not None:
                tasks.append((log, task))
        return tasks

    def _run(self, tasks: list[FlushTask]) -> list[Exception | None]:
        """On the worker: why each of the tasks failed, if it did."""
        if len(tasks) >= SYNC_FILE_SYSTEM_FROM:
            directory = self._directory
            error = _attempt(lambda: sync_all(self._files, directory.path, directory.state.syncs))
            return [error] * len(tasks)
        return [_attempt(task.run) for task in tasks]

    def _end(
        self,
        keys: list[TopicPartition],
        tasks: list[tuple[Log, FlushTask]],
        done: "asyncio.Future[list[Exception | None]]",
    ) -> None:
        self._is_running = False
        if done.cancelled():
            return
        for (log, task), error in zip(tasks, done.result(), strict=True):
            if error is None:
                log.complete_flush(task)
            elif not log.is_closed:  # of one that was deleted meanwhile nothing is missed
                self._give_up(log, error)
        if self._directory.is_online:
            self._flushed(keys)
        else:
            self._failed(keys)
        if self._dirty and not self._is_running:
            self._is_running = True
            self._begin()

    def _give_up(self, log: Log, error: Exception) -> None:
        """A sync that failed proves nothing about what it covered, nor would another."""
        if not isinstance(error, DiskError):
            error = DiskError("fsync", log.directory, 0, str(error))
        self._directory.fail(str(error))
        log.fail(error)


def _attempt(action: Callable[[], None]) -> Exception | None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - whatever it is, what was to be synced is in doubt
        return error
    return None
