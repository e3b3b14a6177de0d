"""A disk of a broker fails: who waits for it is told at once, and the other directory goes on."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acknowledged_disk import LockedFiles, new_disk
from acknowledged_wire import (
    WAIT_SECONDS,
    WireClient,
    batch_of,
    fetch,
    produce_request,
    produced_answer,
    split,
)

from stratalog.broker.server import Broker
from stratalog.config import BrokerConfig
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM
from stratalog.storage.layout import TopicPartition
from stratalog.testing import SimulatedFileSystem
from stratalog.testing.faults import Operation

TOPIC = "t"
PARTITIONS = 6
# So many in each directory that they are flushed by one sync of its file system.
MANY = 2 * SYNC_FILE_SYSTEM_FROM + 2
# What is told is told long before a request would have waited for its time.
SOON_SECONDS = WAIT_SECONDS / 2

Place = tuple[str, int]


class FailingBroker:
    """A broker on two directories of a disk that fails as it is told to."""

    def __init__(self, broker: Broker, disk: SimulatedFileSystem, directories: list[Path]) -> None:
        self.broker = broker
        self.disk = disk
        self.directories = [str(each) for each in directories]

    def places(self, directory: str) -> list[Place]:
        """The partitions in that directory."""
        logs = [each.log for each in self.broker.services.replicas]
        return [log.topic_partition for log in logs if log.directory.startswith(directory + "/")]

    def is_online(self, directory: str) -> bool:
        (found,) = [
            each for each in self.broker.services.logs.directories if each.path == directory
        ]
        return found.is_online

    async def produce(self, place: Place, *, acks: int = -1) -> ErrorCode:
        async with WireClient.connect(self.broker.endpoint.port) as client:
            client.send(ApiKey.PRODUCE, 9, produce_request(place, batch_of(0, 2), acks))
            async with asyncio.timeout(SOON_SECONDS):
                answer = await client.receive(ApiKey.PRODUCE, 9)
        return ErrorCode(produced_answer(answer).error_code)

    async def produce_together(self, places: list[Place]) -> set[ErrorCode]:
        """To all of them in one request."""
        data = [PartitionProduceData(index=each, records=batch_of(0, 2)) for _, each in places]
        topic = TopicProduceData(name=TOPIC, partition_data=data)
        request = ProduceRequest(acks=-1, timeout_ms=WAIT_SECONDS * 1000, topic_data=[topic])
        async with (
            WireClient.connect(self.broker.endpoint.port) as client,
            asyncio.timeout(SOON_SECONDS),
        ):
            answer = await client.ask(ApiKey.PRODUCE, 9, request)
        (answered,) = answer.responses
        return {ErrorCode(each.error_code) for each in answered.partition_responses}

    async def read(self, place: Place) -> tuple[ErrorCode, int]:
        """The error, and how many batches there are to read."""
        async with WireClient.connect(self.broker.endpoint.port) as client:
            answer = await fetch(client, place, 0)
        return ErrorCode(answer.error_code), len(split(answer.records))


@asynccontextmanager
async def failing_broker(
    path: Path, segment_bytes: str, partitions: int
) -> AsyncIterator[FailingBroker]:
    directories = [path / "a", path / "b"]
    disk = new_disk(*directories)
    properties = {
        "log.dirs": ",".join(map(str, directories)),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "admin.listener": "",
        "log.dir.reserve.bytes": "0",
        "log.index.size.max.bytes": "240",
    }
    broker = Broker(BrokerConfig.from_properties(properties), files=LockedFiles(disk))
    await broker.start()
    try:
        async with WireClient.connect(broker.endpoint.port) as client:
            topic = CreatableTopic(
                name=TOPIC,
                num_partitions=partitions,
                replication_factor=1,
                configs=[CreatableTopicConfig("internal.segment.bytes", segment_bytes)],
            )
            answer = await client.ask(
                ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
            )
            assert answer.topics[0].error_code == ErrorCode.NONE
        yield FailingBroker(broker, disk, directories)
    finally:
        await broker.stop()


def run(
    path: Path,
    scenario: Callable[[FailingBroker], Any],
    *,
    segment_bytes: str = "100000",
    partitions: int = PARTITIONS,
) -> None:
    async def whole() -> None:
        async with failing_broker(path, segment_bytes, partitions) as failing:
            await scenario(failing)

    asyncio.run(whole())


def of(kind: str, place: str) -> Callable[[Operation], bool]:
    """Operations of that kind on files whose path has ``place`` in it."""
    return lambda operation: operation.kind == kind and place in operation.path


def log_of(failing: FailingBroker, place: Place) -> str:
    log = failing.broker.services.replicas.get(TopicPartition(*place)).log
    return f"{log.directory}/"


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_sync_fails_all_who_wait_for_that_directory_and_nobody_else(
    tmp_path: Path, error: int
) -> None:
    async def scenario(failing: FailingBroker) -> None:
        bad, good = failing.directories
        before = {place: await failing.produce(place) for place in failing.places(bad)}
        assert set(before.values()) == {ErrorCode.NONE}
        first = failing.places(bad)[0]
        failing.disk.fail(of("sync", log_of(failing, first)), error)
        # Together, and so in one flush: what an earlier one has made durable is answered.
        async with asyncio.TaskGroup() as group:
            in_bad = group.create_task(failing.produce_together(failing.places(bad)))
            in_good = group.create_task(failing.produce_together(failing.places(good)))
        assert in_bad.result() == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert in_good.result() == {ErrorCode.NONE}
        await check_offline(failing, bad, good)

    run(tmp_path, scenario)


def test_a_failed_sync_of_a_file_system_fails_all_who_wait_for_it(tmp_path: Path) -> None:
    async def scenario(failing: FailingBroker) -> None:
        bad, good = failing.directories
        assert len(failing.places(bad)) > SYNC_FILE_SYSTEM_FROM
        assert await failing.produce_together(failing.places(bad)) == {ErrorCode.NONE}
        failing.disk.fail(of("sync_file_system", bad))
        answers = await failing.produce_together(failing.places(bad))
        assert answers == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert await failing.produce_together(failing.places(good)) == {ErrorCode.NONE}
        await check_offline(failing, bad, good)

    run(tmp_path, scenario, partitions=MANY)


async def check_offline(failing: FailingBroker, bad: str, good: str) -> None:
    """``bad`` takes nothing any more, and shows no more than was flushed; ``good`` goes on."""
    assert not failing.is_online(bad)
    assert failing.is_online(good)
    for place in failing.places(bad):
        assert await failing.produce(place) is ErrorCode.KAFKA_STORAGE_ERROR
        assert await failing.produce(place, acks=1) is ErrorCode.KAFKA_STORAGE_ERROR
        error, batches = await failing.read(place)
        assert error is ErrorCode.KAFKA_STORAGE_ERROR or batches == 1, "what was flushed"
    for place in failing.places(good):
        before = await failing.read(place)
        assert await failing.produce(place) is ErrorCode.NONE
        assert await failing.read(place) == (ErrorCode.NONE, before[1] + 1)


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
@pytest.mark.parametrize("acks", [1, -1])
def test_a_failed_write_takes_its_directory_offline_and_fails_who_waits_for_it(
    tmp_path: Path, error: int, acks: int
) -> None:
    async def scenario(failing: FailingBroker) -> None:
        bad, good = failing.directories
        for place in failing.places(bad):
            assert await failing.produce(place) is ErrorCode.NONE
        first, *rest = failing.places(bad)
        failing.disk.fail(of("write", log_of(failing, first)), error)
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(failing.produce(place)) for place in rest]
            failed = group.create_task(failing.produce(first, acks=acks))
        assert failed.result() is ErrorCode.KAFKA_STORAGE_ERROR
        # They were flushed before, or they are told that they are not.
        told = {each.result() for each in waiting}
        assert told <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        for place in failing.places(bad):
            assert await failing.produce(place) is ErrorCode.KAFKA_STORAGE_ERROR
        assert not failing.is_online(bad)
        assert failing.is_online(good)
        for place in failing.places(good):
            assert await failing.produce(place) is ErrorCode.NONE

    run(tmp_path, scenario)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("kind", ["write", "truncate", "create", "rename"])
def test_a_full_disk_refuses_what_it_cannot_take_and_takes_it_when_there_is_room(
    tmp_path: Path, error: int, kind: str
) -> None:
    """With segments so small that every append makes a new one, and all its files."""

    async def scenario(failing: FailingBroker) -> None:
        bad, good = failing.directories
        places = failing.places(bad)
        for place in (*places, *failing.places(good)):
            assert await failing.produce(place) is ErrorCode.NONE
        failing.disk.fail(of(kind, f"{bad}/{TOPIC}-"), error, times=10_000)
        answers = {await failing.produce(place) for place in places for _ in range(3)}
        assert answers <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        if kind in ("write", "create"):  # an append needs no other
            assert ErrorCode.KAFKA_STORAGE_ERROR in answers
        for place in places:
            assert (await failing.read(place))[0] is ErrorCode.NONE
        for place in failing.places(good):
            assert await failing.produce(place) is ErrorCode.NONE
        failing.disk.heal()
        assert failing.is_online(bad), "a full disk is a state, and has passed"
        for place in places:
            assert await failing.produce(place) is ErrorCode.NONE

    run(tmp_path, scenario, segment_bytes="200")
