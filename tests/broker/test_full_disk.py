"""A disk that is really full: a small file system in memory, of which the last byte is used up.

Producers are refused with an error after which they try again; fetches, deletes and administration
go on; and producing goes on by itself when there is room.
"""

import asyncio
import itertools
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acknowledged_wire import (
    WAIT_SECONDS,
    WireClient,
    commit,
    committed,
    fetch,
    produce_request,
    produced_answer,
    split,
)
from confluent_kafka import Producer

from stratalog.broker.server import Broker
from stratalog.config import BrokerConfig
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from stratalog.records import Record, build_batch

SIZE_BYTES = 16 << 20
RESERVE_BYTES = 4 << 20
KEPT, BALLAST = ("kept", 0), ("ballast", 0)
TOPIC_RESOURCE = 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    where = tmp_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(where)]
    try:
        made = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if made.returncode:
        pytest.skip(f"nothing may be mounted here: {made.stderr.decode()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


@asynccontextmanager
async def broker_on(disk: Path, reserve_bytes: int) -> AsyncIterator[Broker]:
    properties = {
        "log.dirs": str(disk / "logs"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "admin.listener": "",
        "log.dir.reserve.bytes": str(reserve_bytes),
        "log.segment.delete.delay.ms": "10",
        "log.initial.task.delay.ms": "10",
        "offsets.topic.num.partitions": "1",
    }
    broker = Broker(BrokerConfig.from_properties(properties))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def create(client: WireClient, name: str) -> ErrorCode:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = await client.ask(ApiKey.CREATE_TOPICS, 7, request)
    return ErrorCode(answer.topics[0].error_code)


async def delete(client: WireClient, name: str) -> ErrorCode:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
    answer = await client.ask(ApiKey.DELETE_TOPICS, 5, request)
    return ErrorCode(answer.responses[0].error_code)


async def alter(client: WireClient, name: str) -> ErrorCode:
    configs = [AlterableConfig(name="retention.ms", config_operation=0, value="-1")]
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    return ErrorCode(answer.responses[0].error_code)


async def produce(client: WireClient, place: tuple[str, int], size_bytes: int) -> ErrorCode:
    now_ms = time.time_ns() // 1_000_000  # old records would be deleted
    batch = build_batch([Record(b"k", bytes(size_bytes), (), now_ms)])
    answer = await client.ask(ApiKey.PRODUCE, 9, produce_request(place, batch, -1))
    return ErrorCode(produced_answer(answer).error_code)


async def wait_until_refused(
    client: WireClient, place: tuple[str, int], size_bytes: int = 1
) -> int:
    """How many batches were taken until the broker has looked how much room there is."""
    async with asyncio.timeout(WAIT_SECONDS):
        for taken in itertools.count():
            error = await produce(client, place, size_bytes)
            if error is not ErrorCode.NONE:
                assert error is ErrorCode.KAFKA_STORAGE_ERROR
                return taken
    raise AssertionError("it was never refused")


async def count(client: WireClient, place: tuple[str, int]) -> int:
    found = offset = 0
    while True:
        answer = await fetch(client, place, offset)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        batches = split(answer.records)
        if not batches:
            return found
        found += len(batches)
        offset = batches[-1][0].next_offset


def careful_producer(broker: Broker) -> Producer:
    endpoint = broker.endpoint
    return Producer(
        {
            "bootstrap.servers": f"{endpoint.host}:{endpoint.port}",
            "enable.idempotence": True,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 200,
        }
    )


async def delivered(producer: Producer, results: list[Any]) -> None:
    left = await asyncio.to_thread(producer.flush, WAIT_SECONDS)
    assert left == 0
    assert results
    assert not any(results)


def test_below_the_reserve_only_producing_stops_and_a_deleted_topic_makes_it_go_on(
    small_disk: Path,
) -> None:
    async def scenario() -> None:
        async with (
            broker_on(small_disk, RESERVE_BYTES) as broker,
            WireClient.connect(broker.endpoint.port) as client,
        ):
            for place in (KEPT, BALLAST):
                assert await create(client, place[0]) is ErrorCode.NONE
                assert await produce(client, place, 500_000) is ErrorCode.NONE
            for _ in range(5):
                assert await produce(client, BALLAST, 500_000) is ErrorCode.NONE
            assert await committed(client, KEPT) == -1
            assert await commit(client, KEPT, 1) == ErrorCode.NONE
            free_bytes = shutil.disk_usage(small_disk).free
            (small_disk / "file").write_bytes(bytes(free_bytes - RESERVE_BYTES + 1_000_000))
            taken = await wait_until_refused(client, BALLAST)
            assert await produce(client, KEPT, 1) is ErrorCode.KAFKA_STORAGE_ERROR
            # Everything else goes on, off the reserve.
            assert await count(client, BALLAST) == taken + 6
            assert await committed(client, KEPT) == 1
            assert await alter(client, KEPT[0]) is ErrorCode.NONE
            assert await create(client, "more") is ErrorCode.NONE
            # Who tries again needs to do nothing else.
            producer, results = careful_producer(broker), []
            producer.produce(KEPT[0], b"v", on_delivery=lambda error, _: results.append(error))
            assert await delete(client, BALLAST[0]) is ErrorCode.NONE
            await delivered(producer, results)
            assert await count(client, KEPT) == 2
            assert await commit(client, KEPT, 2) == ErrorCode.NONE

    asyncio.run(scenario())


def test_a_producer_that_is_quick_does_not_use_up_the_reserve(small_disk: Path) -> None:
    async def scenario() -> None:
        async with (
            broker_on(small_disk, RESERVE_BYTES) as broker,
            WireClient.connect(broker.endpoint.port) as client,
        ):
            for place in (KEPT, BALLAST):
                assert await create(client, place[0]) is ErrorCode.NONE
            await wait_until_refused(client, BALLAST, 500_000)
            assert shutil.disk_usage(small_disk).free > RESERVE_BYTES // 2
            assert await produce(client, KEPT, 1) is ErrorCode.KAFKA_STORAGE_ERROR
            assert await delete(client, BALLAST[0]) is ErrorCode.NONE

    asyncio.run(scenario())


def test_when_nothing_is_left_producing_is_refused_and_goes_on_when_there_is_room(
    small_disk: Path,
) -> None:
    """Without a reserve not even metadata can be written; all is well again afterwards."""

    async def scenario() -> None:
        ballast = small_disk / "ballast"
        async with (
            broker_on(small_disk, 0) as broker,
            WireClient.connect(broker.endpoint.port) as client,
        ):
            assert await create(client, KEPT[0]) is ErrorCode.NONE
            assert await create(client, BALLAST[0]) is ErrorCode.NONE
            assert await produce(client, KEPT, 100) is ErrorCode.NONE
            assert await committed(client, KEPT) == -1
            assert await commit(client, KEPT, 1) == ErrorCode.NONE
            use_up(ballast)
            taken = 1
            while await produce(client, KEPT, 3000) is ErrorCode.NONE:
                taken += 1  # what was left of a page
            assert await produce(client, KEPT, 3000) is ErrorCode.KAFKA_STORAGE_ERROR
            assert await count(client, KEPT) == taken
            refused = {
                await create(client, "more"),
                await alter(client, KEPT[0]),
                await delete(client, BALLAST[0]),
            }
            assert refused == {ErrorCode.KAFKA_STORAGE_ERROR}
            producer, results = careful_producer(broker), []
            producer.produce(KEPT[0], bytes(3000), on_delivery=lambda e, _: results.append(e))
            ballast.unlink()
            await delivered(producer, results)
            assert await count(client, KEPT) == taken + 1
            assert await commit(client, KEPT, 2) == ErrorCode.NONE
            assert await create(client, "again") is ErrorCode.NONE
            assert await alter(client, KEPT[0]) is ErrorCode.NONE

    asyncio.run(scenario())


def use_up(ballast: Path) -> None:
    """Leave not one page."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
