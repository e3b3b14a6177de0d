"""Runs commits of staged segments in a broker: one after the other, beside what else it does. One
that finds a log busy lets others have their turn until it tries again.

    plan      loop     what it is about; refused here if the log cannot take it
    check     worker   long: every byte is read. Appends, deletions and settings go on
    stop      loop     appends to these logs wait from here on
    settle    worker   a moment: the log is flushed, the journal is written, files get their names
    apply     loop     the records are in the log, appends go on, readers are told
    complete  worker   what is left to be synced and tidied up
    finish    loop

From stop to finish no topic or setting changes. A commit is run to its end, also if whoever asked
for it has gone: asked again with the same id, it answers with the same. A broker that stops takes
no new one and finishes what has begun.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stratalog.broker.commit_answers import (
    RUNNING,
    UNDECIDED,
    UNKNOWN,
    Json,
    refusal_to_json,
    result_to_json,
)
from stratalog.broker.event_log import log_event
from stratalog.errors import StratalogError
from stratalog.storage.commits.committing import COMMITTED, Commit, CommitResult
from stratalog.storage.commits.errors import CommitBusyError
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    from stratalog.broker.services import Services

# So many refusals are remembered, for those who ask again because they missed the answer.
_REFUSED_MAX = 1_000
_BUSY_SECONDS = 0.05
_BUSY_TRIES = 200
_REST_SECONDS_MAX = 0.03
# How much longer a check rests than it works, while clients produce; and for how long after one of
# them has it still counts as such. Who waits for the disk each time is heard of less often than a
# check looks.
_RESTS = 2
_PRODUCING_SECONDS = 0.02
# How many work at a large commit where nobody produces.
_WORK_THREADS = 2
_PRODUCE = 0


class BrokerStoppingError(StratalogError):
    """The broker stops, and takes no commit any more: ask its successor."""


class _UndecidedError(StratalogError):
    """Nobody can say whether the commit was made before its journal has been read again."""


class Pace:
    """Lets checks rest between two steps while anybody produces: appends come first. ``produced``
    counts their requests. Several threads may check, and rest one after the other: so as long as
    somebody produces, no two of them work at the same time."""

    def __init__(
        self,
        produced: Callable[[], int],
        *,
        now: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._produced = produced
        self._now = now
        self._sleep = sleep
        self._own = threading.local()
        self._one = threading.Lock()

    def rest(self) -> bool:
        """Whether anybody produces, so that it has rested."""
        own, seen, now = self._own, self._produced(), self._now()
        if seen != getattr(own, "seen", seen):
            own.shared_until = now + _PRODUCING_SECONDS
        is_shared: bool = now < getattr(own, "shared_until", now)
        if is_shared:
            with self._one:
                self._sleep(min(_RESTS * (now - own.since), _REST_SECONDS_MAX))
        own.seen, own.since = seen, self._now()
        return is_shared


@dataclass(slots=True)
class CommitRunner:
    """Confined to the loop, but for what ``worker`` does. Answers are values for JSON."""

    services: "Services"
    worker: Executor
    is_stopping: bool = False
    _running: dict[str, "asyncio.Task[Json]"] = field(default_factory=dict)
    _refused: "OrderedDict[str, Json]" = field(default_factory=OrderedDict)
    _undecided: dict[str, Json] = field(default_factory=dict)
    # Those that have found a log busy, in the order in which they came.
    _waiting: dict[str, Manifest] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        commits, replicas = self.services.logs.commits, self.services.replicas
        # Partitions know what their replicas have, and who leads.
        commits.moves_high_watermark = False
        commits.keeps_internal = True
        commits.pause = Pace(self._produce_count).rest
        commits.work_threads = _WORK_THREADS
        commits.leader_epoch = lambda log: replicas.get(log.topic_partition).leader_epoch

    def _produce_count(self) -> int:
        counts = self.services.metrics.apis.get(_PRODUCE)
        return 0 if counts is None else counts.latency.count

    @property
    def running_count(self) -> int:
        return len(self._running)

    async def commit(self, manifest: Manifest, seconds: float) -> Json:
        """What became of it; that it runs, if it takes longer than ``seconds``."""
        manifest_id = manifest.manifest_id
        task = self._running.get(manifest_id)
        if task is None:
            if manifest_id in self._undecided:
                return self._undecided[manifest_id]
            if self.is_stopping:
                raise BrokerStoppingError("this broker stops and takes no commits any more")
            self._refused.pop(manifest_id, None)
            task = self.services.loop.create_task(self._run(manifest))
            self._running[manifest_id] = task
            task.add_done_callback(lambda done: self._ended(manifest_id, done))
        done, _ = await asyncio.wait([task], timeout=seconds)
        return task.result() if done else {"status": RUNNING}

    def _ended(self, manifest_id: str, task: "asyncio.Task[Json]") -> None:
        del self._running[manifest_id]
        if not task.cancelled():
            task.exception()  # whoever asked may have gone

    def status(self, manifest_id: str, app: AppVersion | None, log_dir: str | None) -> Json:
        if manifest_id in self._running:
            return {"status": RUNNING}
        if manifest_id in self._undecided:
            return self._undecided[manifest_id]
        found = self.services.logs.commits.status(manifest_id, app, log_dir=log_dir)
        if found is not None:
            return result_to_json(found)
        return self._refused.get(manifest_id, {"status": UNKNOWN})

    async def stop(self) -> None:
        """Returns when nothing is under way; what had not been begun is given up."""
        self.is_stopping = True
        self.services.logs.commits.stop_checks()
        while self._running:
            await asyncio.wait(list(self._running.values()))

    # --- one commit -----------------------------------------------------------------------------

    async def _run(self, manifest: Manifest) -> Json:
        """Raises nothing but BrokerStoppingError: whoever asks has to hear something definite."""
        started = time.perf_counter()
        try:
            result = await self._take_steps(manifest)
        except BrokerStoppingError:
            raise
        except _UndecidedError as error:
            log_event("commit_pending", id=manifest.manifest_id, reason=str(error))
            answer = {"status": UNDECIDED, "error": str(error)}
            self._undecided[manifest.manifest_id] = answer
            return answer
        except Exception as error:
            found = self.services.logs.commits.status_of(manifest)
            if found is not None:  # whatever has failed behind it, it was made
                log_event("commit_pending", id=manifest.manifest_id, reason=repr(error))
                return result_to_json(found)
            if self.is_stopping:
                raise BrokerStoppingError(str(error)) from error
            return self._refuse(manifest, error)
        finally:
            self._waiting.pop(manifest.manifest_id, None)
        self._count(manifest, result, time.perf_counter() - started)
        return result_to_json(result)

    async def _take_steps(self, manifest: Manifest) -> CommitResult:
        for tries_left in range(_BUSY_TRIES, -1, -1):
            async with self._turn:
                if self.is_stopping:
                    raise BrokerStoppingError("this broker stops and takes no commits any more")
                try:
                    self._refuse_overtaking(manifest)
                    planned = self.services.logs.commits.plan(manifest)
                    if isinstance(planned, CommitResult):
                        return planned
                    return await self._commit(planned)
                except CommitBusyError:
                    if not tries_left:
                        raise
            # Not in its turn: others want to commit to other logs.
            self._waiting.setdefault(manifest.manifest_id, manifest)
            await asyncio.sleep(_BUSY_SECONDS)
        raise AssertionError("the last try returns or raises")

    def _refuse_overtaking(self, manifest: Manifest) -> None:
        """A version that waits would be taken for committed once a later one is."""
        app = manifest.app
        for waiting in self._waiting.values():
            if waiting.manifest_id == manifest.manifest_id:
                break  # what follows came later
            if app is not None and waiting.app is not None and waiting.app.name == app.name:
                raise CommitBusyError(
                    f"version {waiting.app.version} of {app.name} waits to be committed; try again"
                )

    async def _commit(self, commit: Commit) -> CommitResult:
        try:
            await self._off_the_loop(commit.check)
        except BaseException:
            commit.abandon()
            raise
        return await self.services.topics.alone(lambda: self._put_in(commit))

    async def _put_in(self, commit: Commit) -> CommitResult:
        keys = [part.topic_partition for part in commit.manifest]
        since_ns = time.perf_counter_ns()
        try:
            await self.services.topics.lead_above(commit.leader_epochs)
            commit.stop()
            await self._off_the_loop(commit.settle)
            commit.apply()
            self._go_on(keys, since_ns)
            await self._off_the_loop(commit.complete)
            return commit.finish()
        except Exception as error:
            commit.abandon()
            if not commit.is_decided:
                raise
            return self._brought_about_later(commit, error)
        finally:
            self._go_on(keys)

    def _go_on(self, keys: list[TopicPartition], since_ns: int | None = None) -> None:
        """Appends and readers do; ``since_ns`` is when appends began to wait."""
        self.services.replicas.committed(keys)
        if since_ns is not None:
            self.services.metrics.commits.paused.add(time.perf_counter_ns() - since_ns)

    def _brought_about_later(self, commit: Commit, error: Exception) -> CommitResult:
        """The logs have failed behind the commit: the next start does what is left of it."""
        manifest = commit.manifest
        self.services.replicas.failed(part.topic_partition for part in manifest)
        found = self.services.logs.commits.status_of(manifest)
        if found is None:
            raise _UndecidedError(
                f"the journal may or may not have the commit: {error}; the next start will tell"
            ) from error
        log_event("commit_pending", id=manifest.manifest_id, reason=str(error))
        return replace(found, status=COMMITTED)

    async def _off_the_loop(self, step: Callable[[], None]) -> None:
        await self.services.loop.run_in_executor(self.worker, step)

    # --- what is told ---------------------------------------------------------------------------

    def _refuse(self, manifest: Manifest, error: Exception) -> Json:
        answer = refusal_to_json(error)
        self._refused[manifest.manifest_id] = answer
        if len(self._refused) > _REFUSED_MAX:
            self._refused.popitem(last=False)
        self.services.metrics.commits.refused += 1
        log_event(
            "commit_refused",
            id=manifest.manifest_id,
            holder=manifest.holder,
            kind=type(error).__name__,
            reason=answer["error"],
        )
        return answer

    def _count(self, manifest: Manifest, result: CommitResult, seconds: float) -> None:
        if result.status != COMMITTED:
            return
        counts = self.services.metrics.commits
        counts.committed += 1
        size_bytes = sum(each.size_bytes for each in manifest)
        counts.committed_bytes += size_bytes
        counts.duration.add(int(seconds * 1e9))
        log_event(
            "commit_applied",
            id=manifest.manifest_id,
            kind=manifest.kind.value,
            holder=manifest.holder,
            partitions=len(manifest.partitions),
            size_bytes=size_bytes,
            seconds=round(seconds, 3),
        )
