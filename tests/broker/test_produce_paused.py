"""Produce requests for a log that a commit has stand still: kept, counted, appended afterwards."""

import asyncio
from pathlib import Path

import pytest
from asking_later import Asking, with_data
from broker_parts import create_topic

from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import Codec, Record, build_batch
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation

ORDERS = TopicPartition("orders", 0)
SMALL = [Record(b"k", b"v" * 100, (), 1_700_000_000_000)]
LARGE = [Record(b"k", b"v" * 900_000, (), 1_700_000_000_000)]
BATCHES = {
    "as it came": build_batch(SMALL),
    "checked before": build_batch(SMALL, codec=Codec.GZIP),
    "checked beside the loop": build_batch(LARGE, codec=Codec.GZIP),
}


def request(records: bytes, acks: int, timeout_ms: int = 1_000) -> ProduceRequest:
    data = PartitionProduceData(0, records)  # type: ignore[arg-type]
    topic = TopicProduceData("orders", bytes(16), [data])
    return ProduceRequest(None, acks, timeout_ms, [topic])


def go_on(asking: Asking, log: Log) -> None:
    log.resume_appends()
    asking.services.replicas.committed([ORDERS])


async def until_one_waits(asking: Asking) -> None:
    while not len(asking.services.replicas.append_purgatory):  # noqa: ASYNC110 - soon
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("records", BATCHES.values(), ids=BATCHES)
def test_records_wait_and_are_appended_as_they_were(
    tmp_path: Path, records: bytes, acks: int
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        log = asking.services.replicas.get(ORDERS).log
        log.pause_appends("a test")
        client = await asking.begin(ApiKey.PRODUCE, request(records, acks), 9)
        await until_one_waits(asking)
        assert (client.answers, client.silent, log.log_end_offset) == ([], 0, 0)
        assert asking.services.memory.used_bytes == len(records)

        go_on(asking, log)

        assert (len(client.answers), client.silent) == ((0, 1) if acks == 0 else (1, 0))
        assert asking.services.memory.used_bytes == 0
        found = log.read(0, max_bytes=1 << 20, isolation=Isolation.LOG_END).whole_batches()
        assert found.content[16:] == records[16:]

    with_data(tmp_path, scenario)


def test_a_request_that_waits_keeps_the_next_one_of_its_connection_out(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        log = asking.services.replicas.get(ORDERS).log
        client = await asking.begin(ApiKey.PRODUCE, request(build_batch(SMALL), 1), 9)
        sent = await asking.send(client, ApiKey.PRODUCE, request(build_batch(SMALL), 1), 9)
        log.pause_appends("a test")

        waiting = await asking.send(client, ApiKey.PRODUCE, request(build_batch(SMALL), 1), 9)

        assert (sent.is_pipelined, waiting.is_pipelined) == (True, False)
        go_on(asking, log)

    with_data(tmp_path, scenario)


def test_who_has_waited_too_long_is_told_and_what_it_sent_is_let_go(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        log = asking.services.replicas.get(ORDERS).log
        log.pause_appends("a test")
        client = await asking.begin(ApiKey.PRODUCE, request(build_batch(SMALL), -1), 9)
        asking.pass_time(1_000)

        (answer,) = client.answers
        (partition,) = answer.responses[0].partition_responses
        assert (partition.error_code, partition.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert asking.services.memory.used_bytes == 0
        go_on(asking, log)
        assert log.log_end_offset == 0

    with_data(tmp_path, scenario)
