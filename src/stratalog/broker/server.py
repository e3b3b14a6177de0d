"""A broker: its parts made, joined and run on one event loop, and taken down again.

The loop's thread owns logs, partitions and groups. Beside it: one worker for metadata and whatever
else changes directories, one for each log directory to flush it, one for commits of what others
have staged, two that wait for cold reads, and the cleaner's threads. They do the waiting and then
post; the loop changes.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stratalog.broker.admin import AdminServer
from stratalog.broker.alarm import Alarm
from stratalog.broker.broker_loop import BrokerLoop
from stratalog.broker.committing import CommitRunner
from stratalog.broker.connection import SCRATCH_BYTES, Shared
from stratalog.broker.dispatcher import Dispatcher
from stratalog.broker.event_log import log_event
from stratalog.broker.flush_thread import FlushThread
from stratalog.broker.flusher import Flusher
from stratalog.broker.handlers.api_versions import ApiVersionsHandlers
from stratalog.broker.handlers.cluster import ClusterHandlers
from stratalog.broker.handlers.configs import ConfigHandlers
from stratalog.broker.handlers.fetch import FetchHandlers
from stratalog.broker.handlers.groups import GroupHandlers, make_coordinator
from stratalog.broker.handlers.listings import ListingHandlers
from stratalog.broker.handlers.metadata import MetadataHandlers
from stratalog.broker.handlers.offsets import OffsetHandlers
from stratalog.broker.handlers.produce import ProduceHandlers
from stratalog.broker.handlers.producer_ids import ProducerIdHandlers
from stratalog.broker.handlers.replica_places import ReplicaPlaceHandlers
from stratalog.broker.handlers.topics import TopicHandlers
from stratalog.broker.handlers.unserved import UnservedHandlers
from stratalog.broker.listening import SWEEP_MS, Acceptor, bind, listen, run_later
from stratalog.broker.loop_lag import watch_loop
from stratalog.broker.memory import RequestMemory, answer_files_within
from stratalog.broker.metrics import Metrics
from stratalog.broker.opening_progress import OpeningProgress
from stratalog.broker.requests import Handler
from stratalog.broker.services import Endpoint, Services
from stratalog.broker.startup import OpenedBroker, is_held_for_a_moment, open_broker
from stratalog.broker.state_events import StateEvents
from stratalog.broker.topics import TopicChanges
from stratalog.clock import Clock, SteadyClock, SystemClock
from stratalog.config import BrokerConfig
from stratalog.config.broker_file import refused_security
from stratalog.config.listeners import (
    advertised,
    client_listener,
    format_address,
    parse_address,
)
from stratalog.config.settings import raise_together
from stratalog.errors import (
    ConfigError,
    DirectoryLockedError,
    DiskError,
    ForeignProtocolError,
    StratalogError,
)
from stratalog.protocol.api import ApiKey
from stratalog.replication.replica_manager import ReplicaManager
from stratalog.storage.files import FileSystem
from stratalog.storage.handles import open_files_max
from stratalog.storage.log import Log
from stratalog.storage.niceness import yield_to_others
from stratalog.storage.owner_file import Owner, new_token
from stratalog.storage.thread_pool import started_pool

_READERS = 2
_FINISH_SECONDS = 5.0
_FINISH_STEP_SECONDS = 0.005
_OPEN_TRIES, _OPEN_PAUSE_SECONDS = 200, 0.05
# Until a part of the broker that has failed at what was due is tried again.
_RETRY_MS = 100
# Of queued.max.request.bytes, which Kafka leaves unlimited by default.
REQUEST_MEMORY_BYTES = 256 << 20


class Broker:
    """``is_config_known``: ``config`` is what the directory was kept by before, not a guess."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: FileSystem | None = None,
        clock: Clock | None = None,
        is_config_known: bool = False,
    ) -> None:
        self._config = config
        self._files = files
        self._clock = clock or SystemClock()
        self._steady_clock = clock or SteadyClock()
        self._is_config_known = is_config_known
        self._is_ready = False
        self._cleanups: list[Callable[[], Any]] = []
        self.stop_asked = asyncio.Event()
        self.endpoint = Endpoint(host="", port=0)
        self.admin: Endpoint | None = None
        self.services: Services

    # --- starting -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Accepts when it returns. What was begun is undone if it raises."""
        try:
            raise_together(refused_security(self._config.to_properties()))
            self._listener = client_listener(self._config)
            self._socket = bind(self._listener)
            self._cleanups.append(self._socket.close)
            host, port = advertised(self._config, self._listener, self._socket.getsockname()[1])
            self.endpoint = Endpoint(host=host, port=port)
            opened = await self._open()
            self._cleanups.append(opened.close)
            self._assemble(opened)
            await self._serve(opened)
        except BaseException:
            await self.stop()
            raise

    async def _open(self) -> OpenedBroker:
        """A driver that commits where no broker runs has the directory for a moment only."""
        tries_left = _OPEN_TRIES
        while True:
            try:
                return open_broker(
                    self._config,
                    files=self._files,
                    clock=self._clock,
                    is_config_known=self._is_config_known,
                    show_progress=OpeningProgress(self._now_ms),
                )
            except DirectoryLockedError:
                tries_left -= 1
                if not any(map(is_held_for_a_moment, self._config.log_directories)):
                    tries_left = min(tries_left, 1)  # or it has just let go
                if tries_left <= 0:
                    raise
            await asyncio.sleep(_OPEN_PAUSE_SECONDS)

    def _assemble(self, opened: OpenedBroker) -> None:
        loop = asyncio.get_running_loop()
        logs, store = opened.logs, opened.store
        self._worker = self._executor(1, "stratalog-metadata")
        replicas = ReplicaManager(
            logs,
            self._steady_clock,
            node_id=store.image.node_id,
            appended=self._appended,
            deleted_from=self._deleted_from,
            wake=self._wake,
        )
        period_ms = max(self._config.replica_lag_time_max_ms // 2, 1)
        logs.schedule.add(
            "isr-expiration",
            lambda _now_ms: replicas.check_isr(self._now_ms()),
            first_ms=self._clock.now_ms() + period_ms,
            period_ms=period_ms,
        )
        topics = TopicChanges(
            store=store, logs=logs, replicas=replicas, run_blocking=self._run_blocking
        )
        self._flushers = {
            directory.path: Flusher(
                loop,
                self._flush_thread(loop),
                logs.files,
                directory,
                flushed=replicas.flushed,
                failed=replicas.failed,
            )
            for directory in logs.directories
        }
        self._is_flushing_on_ack = self._config.log_flush_on_ack
        logs.flush_later = self._flush_later
        limit = self._config.queued_max_request_bytes
        metrics = Metrics(lambda name: name in store.image.topics)
        services = self.services = Services(
            clock=self._clock,
            steady_clock=self._steady_clock,
            loop=loop,
            store=store,
            logs=logs,
            replicas=replicas,
            topics=topics,
            groups=None,  # type: ignore[arg-type]
            commits=None,  # type: ignore[arg-type]
            metrics=metrics,
            endpoint=self.endpoint,
            run_blocking=self._run_blocking,
            memory=RequestMemory(
                limit if limit > 0 else REQUEST_MEMORY_BYTES, answer_files_within(open_files_max())
            ),
            workers=self._executor(1, "stratalog-validate"),
        )
        services.groups = make_coordinator(services, self._wake)
        worker = self._executor(1, "stratalog-commit", yield_to_others)
        services.commits = CommitRunner(services, worker)
        self._alarm = Alarm(loop, self._steady_clock, self._ring, _task_failed)
        self._sweep_ms = 0

    def _flush_thread(self, loop: asyncio.AbstractEventLoop) -> FlushThread:
        thread = FlushThread(loop, "stratalog-flush")
        self._cleanups.append(thread.stop)
        return thread

    def _executor(
        self, threads: int, name: str, begin: Callable[[], None] = lambda: None
    ) -> ThreadPoolExecutor:
        executor = started_pool(threads, name, begin)
        self._cleanups.append(executor.shutdown)
        return executor

    async def _serve(self, opened: OpenedBroker) -> None:
        services = self.services
        loop = services.loop
        dispatcher = self._dispatcher = Dispatcher(
            loop,
            handler_table(services),
            services.metrics,
            max_frame_bytes=self._config.socket_request_max_bytes,
            report=self._disconnected,
        )
        # What recovery found becomes durable before anybody is told of it.
        with suppress(DiskError):  # that directory has gone offline; the others serve
            services.logs.flush_appended()
        services.topics.lead_all()
        memory = services.memory
        services.metrics.bytes_in_flight = lambda: memory.used_bytes
        scratch = memoryview(bytearray(SCRATCH_BYTES))
        readers = self._executor(_READERS, "stratalog-read")
        shared = Shared(loop, readers, memory, scratch, dispatcher)
        if isinstance(loop, BrokerLoop):
            shared.rest = loop.turns.rest
        cleaner = services.logs.cleaner
        if cleaner is not None:
            cleaner.inbox.notify = lambda: run_later(loop, cleaner.inbox.run_all)
        self._cleanups.append(watch_loop(loop, services.metrics))
        events = self._events = StateEvents(services)
        events.start()
        self._cleanups.append(events.stop)
        listen(self._socket, self._listener, self._config.socket_listen_backlog_size)
        self._acceptor = Acceptor(shared, dispatcher, self._socket, self._config, self._now_ms)
        self._cleanups.append(self._acceptor.stop)
        self._cleanups.append(self._alarm.stop)
        self._alarm.at(self._now_ms())
        self._is_ready = True
        await self._announce(opened)
        for note in opened.notes:
            log_event("note", text=note)
        log_event("ready", address=format_address(self.endpoint.host, self.endpoint.port))

    async def _announce(self, opened: OpenedBroker) -> None:
        """Open the admin port, and say in the log directories where it is."""
        owner = Owner(pid=os.getpid(), admin="", token=new_token())
        if self._config.admin_listener:
            listen = parse_address("admin.listener", self._config.admin_listener)
            server = AdminServer(
                self.services,
                listen=listen,
                token=owner.token,
                is_ready=lambda: self._is_ready,
                shutdown=self.stop_asked.set,
            )
            try:
                self.admin = await server.start()
            except OSError as error:
                reason = f"cannot be listened on: {error.strerror or error}"
                raise ConfigError("admin.listener", self._config.admin_listener, reason) from error
            self._cleanups.append(server.stop)
            address = format_address(self.admin.host, self.admin.port)
            owner = replace(owner, admin=f"http://{address}")
        opened.announce(owner)

    # --- running ------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return self._steady_clock.now_ms()

    def _wake(self, deadline_ms: int) -> None:
        self._alarm.at(deadline_ms)

    def _ring(self, now_ms: int) -> int | None:
        """Whatever is due in any part of the broker. A part that fails has its next turn a little
        later, and keeps no other from its own."""
        replicas, groups = self.services.replicas, self.services.groups
        earliest_ms = [
            self._give_turn(run_due, now_ms)
            for run_due in (replicas.expire, groups.run_due, self._run_logs, self._maybe_sweep)
        ]
        due_ms = (
            replicas.next_deadline_ms() or self._sweep_ms,
            groups.next_deadline_ms() or self._sweep_ms,
            self._due_in_logs(now_ms),
            self._sweep_ms,
        )
        return min(map(max, due_ms, earliest_ms))

    def _give_turn(self, run_due: Callable[[int], object], now_ms: int) -> int:
        """Before when it has no other turn: what fails all the time is not tried all the time."""
        try:
            run_due(now_ms)
        except Exception as error:  # noqa: BLE001 - one part's trouble is not the others'
            _task_failed(error)
            return now_ms + _RETRY_MS
        return now_ms

    def _run_logs(self, now_ms: int) -> None:
        if self._due_in_logs(now_ms) <= now_ms:
            try:
                self.services.logs.run_due()
            finally:
                self._events.look()

    def _maybe_sweep(self, now_ms: int) -> None:
        if self._sweep_ms <= now_ms:
            self._sweep_ms = now_ms + SWEEP_MS
            self._acceptor.sweep(now_ms)

    def _due_in_logs(self, now_ms: int) -> int:
        """When a task of the logs is due, which go by the time of day."""
        due_ms = self.services.logs.schedule.next_due_ms()
        return self._sweep_ms if due_ms is None else now_ms + due_ms - self._clock.now_ms()

    async def _in_worker(self, function: Callable[[], Any]) -> Any:
        return await self.services.loop.run_in_executor(self._worker, function)

    def _run_blocking(self, function: Callable[[], Any]) -> Awaitable[Any]:
        return self._in_worker(function)

    def _appended(self, log: Log) -> None:
        if self._is_flushing_on_ack:
            self._flusher_of(log).ask(log)

    def _deleted_from(self, log: Log) -> None:
        self._flusher_of(log).ask_for_start(log)

    def _flush_later(self, log: Log) -> bool:
        self._flusher_of(log).ask(log)
        return True

    def _flusher_of(self, log: Log) -> Flusher:
        return self._flushers[log.directory.rpartition("/")[0]]

    def _disconnected(self, client: str, error: Exception) -> None:
        if isinstance(error, ForeignProtocolError):
            host = client.rpartition(":")[0]
            self.services.notices.say(
                "foreign_protocol", host, protocol=error.protocol, advice=error.advice
            )
        else:
            log_event("client_disconnected", client=client, reason=str(error) or repr(error))

    # --- stopping -----------------------------------------------------------------------------

    async def stop(self) -> None:
        """Leave everything as a clean stop does; what a start left half done as well."""
        self._is_ready = False
        if hasattr(self, "services"):
            log_event("stopping")
            if self.services.commits is not None:
                await self.services.commits.stop()
            await self._finish_requests()
            await self.services.topics.stop()
        while self._cleanups:
            cleanup = self._cleanups.pop()
            with suppress(StratalogError):
                result = cleanup()
                if result is not None:
                    await result

    async def _finish_requests(self) -> None:
        """Take no request any more, and answer those that wait for the disk: a producer that was
        not told of what is in the log would send it again."""
        acceptor = getattr(self, "_acceptor", None)
        if acceptor is None:
            return
        acceptor.retire()
        replicas, loop = self.services.replicas, self.services.loop
        waiting = (replicas.produce_purgatory, replicas.delete_purgatory)
        give_up = loop.time() + _FINISH_SECONDS
        while any(map(len, waiting)) and loop.time() < give_up:  # noqa: ASYNC110 - flushes end soon
            await asyncio.sleep(_FINISH_STEP_SECONDS)
        acceptor.stop()


def handler_table(services: Services) -> dict[ApiKey, Handler]:
    """Everything that this broker answers."""
    table: dict[ApiKey, Handler] = {}
    for family in (
        ProduceHandlers(services),
        FetchHandlers(services),
        OffsetHandlers(services),
        ProducerIdHandlers(services),
        MetadataHandlers(services),
        TopicHandlers(services),
        ConfigHandlers(services),
        ClusterHandlers(services),
        GroupHandlers(services),
        ReplicaPlaceHandlers(services),
        ListingHandlers(services),
        UnservedHandlers(services),
    ):
        table.update(family.table())
    table.update(ApiVersionsHandlers(table).table())
    return table


def _task_failed(error: Exception) -> None:
    log_event("task_failed", reason=str(error) or repr(error))
