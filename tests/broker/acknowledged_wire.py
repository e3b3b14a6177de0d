"""Clients that speak the protocol by hand, and the list of all that a broker has promised them.

The list only grows, so that how long it was at a moment says what had been promised by then. What
a producer sends follows from its sequence number alone: after a crash it sends again what was not
acknowledged, and nobody needs to remember it.
"""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import decode_response, encode_request
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from stratalog.protocol.messages.find_coordinator import FindCoordinatorRequest
from stratalog.protocol.messages.init_producer_id import InitProducerIdRequest
from stratalog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from stratalog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import BatchHeader, Record, build_batch, read_headers
from stratalog.records.columns import decode_records

WAIT_SECONDS = 120
GROUP = "workers"
# A producer whose records are old is soon forgotten, and its sequence numbers with it.
_NOW_MS = time.time_ns() // 1_000_000


class Produced(NamedTuple):
    """acks=all or 1: the records from ``sequence`` on have their place in the log."""

    place: tuple[str, int]
    base_offset: int
    sequence: int
    record_count: int


class Seen(NamedTuple):
    """A consumer was given this batch."""

    place: tuple[str, int]
    base_offset: int
    batch: bytes


class Watermark(NamedTuple):
    """A consumer was told that it may read up to here."""

    place: tuple[str, int]
    high_watermark: int


class Committed(NamedTuple):
    place: tuple[str, int]
    offset: int


class Trimmed(NamedTuple):
    """DeleteRecords: nothing below this is there any more."""

    place: tuple[str, int]
    log_start_offset: int


class GivenProducerId(NamedTuple):
    producer_id: int


class TopicIs(NamedTuple):
    """There is such a topic, or none any more; None while it is being deleted."""

    name: str
    is_there: bool | None


Promise = Produced | Seen | Watermark | Committed | Trimmed | GivenProducerId | TopicIs


class WireClient:
    """One connection. Requests are sent one after the other, or several before the first answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    @classmethod
    @asynccontextmanager
    async def connect(cls, port: int) -> "AsyncIterator[WireClient]":
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def send(self, key: ApiKey, version: int, body: Any) -> None:
        self._correlation_id += 1
        for part in encode_request(key, version, self._correlation_id, "wire", body):
            self._writer.write(bytes(part))  # type: ignore[call-overload]

    async def receive(self, key: ApiKey, version: int) -> Any:
        async with asyncio.timeout(WAIT_SECONDS):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return decode_response(key, version, await self._reader.readexactly(size))[1]

    async def ask(self, key: ApiKey, version: int, body: Any) -> Any:
        self.send(key, version, body)
        return await self.receive(key, version)


# --- what is asked ------------------------------------------------------------------------------


def produce_request(place: tuple[str, int], batch: bytes, acks: int) -> ProduceRequest:
    data = PartitionProduceData(index=place[1], records=batch)
    topic = TopicProduceData(name=place[0], partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=WAIT_SECONDS * 1000, topic_data=[topic])


def produced_answer(answer: Any) -> Any:
    ((partition,),) = ([*topic.partition_responses] for topic in answer.responses)
    return partition


async def fetch(
    client: WireClient, place: tuple[str, int], offset: int, *, max_wait_ms: int = 0
) -> Any:
    asked = FetchPartition(partition=place[1], fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic=place[0], partitions=[asked])],
    )
    answer = await client.ask(ApiKey.FETCH, 12, request)
    ((partition,),) = ([*topic.partitions] for topic in answer.responses)
    return partition


async def commit(client: WireClient, place: tuple[str, int], offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=place[1], committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=place[0], partitions=[partition])
    request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
    answer = await client.ask(ApiKey.OFFSET_COMMIT, 8, request)
    return int(answer.topics[0].partitions[0].error_code)


async def committed(client: WireClient, place: tuple[str, int]) -> int:
    """Asked until the coordinator has loaded what it needs for an answer."""
    await find_coordinator(client)
    topic = OffsetFetchRequestTopic(name=place[0], partition_indexes=[place[1]])
    request = OffsetFetchRequest(group_id=GROUP, topics=[topic])
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            answer = await client.ask(ApiKey.OFFSET_FETCH, 7, request)
            if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                break
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return int(answer.topics[0].partitions[0].committed_offset)


async def find_coordinator(client: WireClient) -> None:
    """Asked until there is one: its topic is made at first."""
    request = FindCoordinatorRequest(key=GROUP)
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            answer = await client.ask(ApiKey.FIND_COORDINATOR, 3, request)
            if answer.error_code == ErrorCode.NONE:
                return
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def new_producer_id(client: WireClient) -> int:
    request = InitProducerIdRequest(transactional_id=None)
    answer = await client.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return int(answer.producer_id)


# --- records ------------------------------------------------------------------------------------


def values_of(sequence: int, count: int) -> list[bytes]:
    numbers = range(sequence, sequence + count)
    return [b"%d:" % number + bytes(number * 37 % 90) for number in numbers]


def batch_of(sequence: int, count: int, *, producer_id: int = -1, key_count: int = 0) -> bytes:
    records = [
        Record(
            b"%d" % ((sequence + index) % key_count) if key_count else None,
            value,
            (),
            _NOW_MS,
        )
        for index, value in enumerate(values_of(sequence, count))
    ]
    if producer_id < 0:
        return build_batch(records)
    return build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


def split(data: Any) -> list[tuple[BatchHeader, bytes]]:
    """The whole batches in what a fetch returned."""
    buffer = bytes(data or b"")
    return [
        (header, buffer[header.position : header.position + header.size_bytes])
        for header in read_headers(buffer)
    ]


def numbers_in(batch: bytes) -> list[int]:
    return [number_of(record.value) for record in decode_records(batch)]


def number_of(value: bytes | None) -> int:
    assert value is not None, "every record here has a value"
    return int(value.partition(b":")[0])


def latest(promises: Sequence[Promise], kind: type, place: tuple[str, int]) -> Any:
    """The last promise of its kind about a partition."""
    found = [each for each in promises if isinstance(each, kind) and each.place == place]  # type: ignore[union-attr]
    return found[-1] if found else None
