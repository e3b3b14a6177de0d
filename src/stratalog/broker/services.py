"""What handlers stand on: the parts of one broker, made by ``Broker`` and handed to all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stratalog.broker.client_notices import ClientNotices
from stratalog.broker.memory import RequestMemory
from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.metadata.sqlite_store import SqliteMetadataStore
from stratalog.replication.replica_manager import ReplicaManager
from stratalog.storage.cleaning.outside import OutsideRounds
from stratalog.storage.manager import LogManager

if TYPE_CHECKING:
    from stratalog.broker.committing import CommitRunner
    from stratalog.broker.metrics import Metrics
    from stratalog.broker.topics import TopicChanges
    from stratalog.coordinator.coordinator import GroupCoordinator


class RunBlocking(Protocol):
    """Runs a function that waits for a disk on the broker's one worker for metadata, in order."""

    def __call__(self, function: Callable[[], Any]) -> Awaitable[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where clients are told to connect."""

    host: str
    port: int


@dataclass(slots=True, kw_only=True)
class Services:
    clock: Clock
    # For deadlines: it is never set.
    steady_clock: Clock
    loop: asyncio.AbstractEventLoop
    store: SqliteMetadataStore
    logs: LogManager
    replicas: ReplicaManager
    topics: "TopicChanges"
    groups: "GroupCoordinator"
    commits: "CommitRunner"
    metrics: "Metrics"
    endpoint: Endpoint
    run_blocking: RunBlocking
    memory: RequestMemory
    # Where what takes long and waits for nothing is worked out, beside the loop.
    workers: Executor

    # What others compact, and the broker's own cleaner leaves alone meanwhile.
    outside_rounds: OutsideRounds = field(init=False)
    notices: ClientNotices = field(init=False)

    def __post_init__(self) -> None:
        logs = self.logs
        self.notices = ClientNotices(self.steady_clock)
        self.outside_rounds = OutsideRounds(
            lambda: logs.config, logs.directories, lambda: logs.cleaner
        )

    @property
    def config(self) -> BrokerConfig:
        """With the dynamic settings over those it was started with."""
        return self.store.broker

    @property
    def node_id(self) -> int:
        return self.store.image.node_id
