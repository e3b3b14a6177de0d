"""The parts of a broker without its listener: logs, metadata and topics in a real directory, in a
loop of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from stratalog.broker.committing import CommitRunner
from stratalog.broker.memory import RequestMemory
from stratalog.broker.metrics import Metrics
from stratalog.broker.services import Endpoint, Services
from stratalog.broker.startup import open_broker
from stratalog.broker.topics import TopicChanges
from stratalog.config import BrokerConfig
from stratalog.coordinator.coordinator import GroupCoordinator
from stratalog.coordinator.log_records import CommittedOffset, offset_key, offset_value
from stratalog.metadata.topics import NewTopic
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records import Record, build_batch
from stratalog.replication.parts import AppendResult
from stratalog.replication.replica_manager import ReplicaManager
from stratalog.storage.layout import TopicPartition
from stratalog.testing import ManualClock


@asynccontextmanager
async def broker_parts(
    directory: Path, *, commits: Mapping[str, Mapping[TopicPartition, int]] = {}, **settings: Any
) -> AsyncIterator[Services]:
    """``commits`` are offsets that groups have committed before: the coordinator loads them."""
    config = BrokerConfig(
        log_dirs=(str(directory),), log_flush_on_ack=False, log_dir_reserve_bytes=0, **settings
    )
    loop = asyncio.get_running_loop()
    clock = ManualClock()
    opened = open_broker(config, clock=clock, is_threaded=False)
    logs, store = opened.logs, opened.store
    stored = [build_batch(_commit_records(commits))] if commits else []
    replicas = ReplicaManager(logs, clock, node_id=store.image.node_id)
    run_blocking = partial(loop.run_in_executor, None)
    topics = TopicChanges(store=store, logs=logs, replicas=replicas, run_blocking=run_blocking)
    metrics = Metrics(is_topic=lambda name: name in store.image.topics)
    services = Services(
        clock=clock,
        steady_clock=clock,
        loop=loop,
        store=store,
        logs=logs,
        replicas=replicas,
        topics=topics,
        groups=GroupCoordinator(config, clock, append=_refuse, read=lambda _partition: stored),
        commits=None,  # type: ignore[arg-type]
        metrics=metrics,
        endpoint=Endpoint(host="127.0.0.1", port=9092),
        run_blocking=run_blocking,
        memory=RequestMemory(1 << 20),
        workers=ThreadPoolExecutor(1),
    )
    services.commits = CommitRunner(services, services.workers)
    topics.lead_all()
    services.groups.on_leading(0, 0)
    services.groups.run_due(clock.now_ms())
    try:
        yield services
    finally:
        await topics.finish()
        opened.close()


def _commit_records(commits: Mapping[str, Mapping[TopicPartition, int]]) -> Iterator[Record]:
    for group_id, offsets in commits.items():
        for key, offset in offsets.items():
            yield Record(
                offset_key(group_id, key.topic, key.partition),
                offset_value(CommittedOffset(offset)),
                timestamp_ms=1_700_000_000_000,
            )


def _refuse(_partition: int, _batch: bytes, respond: Callable[[int], None]) -> None:
    """Nothing is committed while a test runs."""
    respond(ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def create_topic(services: Services, name: str, partitions: int = 1, **configs: str) -> None:
    wanted = NewTopic(
        name=name,
        partition_count=partitions,
        replication_factor=1,
        configs={key.replace("_", "."): value for key, value in configs.items()},
    )
    for result in await services.topics.create([wanted]):
        if isinstance(result, Exception):
            raise result


def append(services: Services, topic: str, partition: int = 0, count: int = 1) -> AppendResult:
    records = [
        Record(b"k%d" % number, b"v", timestamp_ms=1_700_000_000_000) for number in range(count)
    ]
    key = TopicPartition(topic, partition)
    answered: list[AppendResult] = []
    services.replicas.append_records(
        {key: build_batch(records)},
        lambda results: answered.append(results[key]),
        required_acks=1,
        timeout_ms=0,
    )
    return answered[0]
