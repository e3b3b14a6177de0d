"""Produce, in every version: what is appended, what is refused, and how it is said."""

import asyncio
import weakref
from pathlib import Path
from typing import Any

import pytest
from asking_later import Asking, Client, with_data
from broker_parts import create_topic

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from stratalog.records import Codec, Record, build_batch
from stratalog.storage.layout import TopicPartition

VERSIONS = range(3, SUPPORTED[ApiKey.PRODUCE].highest + 1)
FIRST_WITH_TOPIC_IDS = 13
ORDERS = TopicPartition("orders", 0)


def batch(count: int = 2, **options: Any) -> bytes:
    rows = [Record(b"k%d" % each, b"v", (), 1_700_000_000_000) for each in range(count)]
    return build_batch(rows, **options)


def request(
    records: bytes | None,
    *,
    topic: str = "orders",
    topic_id: bytes = bytes(16),
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 1_000,
) -> ProduceRequest:
    data = PartitionProduceData(partition, records)  # type: ignore[arg-type]
    return ProduceRequest(None, acks, timeout_ms, [TopicProduceData(topic, topic_id, [data])])


def only(response: ProduceResponse) -> PartitionProduceResponse:
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    return partition


async def refused(asking: Asking, records: bytes | None, version: int = 9) -> int:
    """The code that ``records`` are refused with; nothing of them may be appended."""
    log = asking.services.replicas.get(ORDERS).log
    before = log.log_end_offset
    answer = only(await asking.ask(ApiKey.PRODUCE, request(records), version))
    assert answer.base_offset == -1
    assert log.log_end_offset == before
    return answer.error_code


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_appended_and_their_offset_told_in_every_version(
    tmp_path: Path, version: int
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        topic_id = asking.topic_id("orders") if version >= FIRST_WITH_TOPIC_IDS else bytes(16)
        for expected in (0, 2):
            body = request(batch(), topic_id=topic_id)
            answer = only(await asking.ask(ApiKey.PRODUCE, body, version))
            assert (answer.error_code, answer.base_offset) == (0, expected)
            assert answer.log_start_offset == (0 if version >= 5 else -1)

        assert asking.services.replicas.get(ORDERS).log.log_end_offset == 4

    with_data(tmp_path, scenario)


@pytest.mark.parametrize("producer", [{"producer_id": 5, "producer_epoch": 0}, {}])
def test_a_transaction_that_no_coordinator_began_is_refused(
    tmp_path: Path, producer: dict[str, int]
) -> None:
    """Nobody could end it: it would hold back ``read_committed`` readers for good."""
    records = batch(**producer, base_sequence=0 if producer else -1, transactional=True)

    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        assert await refused(asking, records) == ErrorCode.INVALID_TXN_STATE

        log = asking.services.replicas.get(ORDERS).log
        assert log.last_stable_offset == log.log_end_offset

    with_data(tmp_path, scenario)


def test_a_topic_or_partition_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        for body, version, code in (
            (request(batch(), topic="nowhere"), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (request(batch(), partition=7), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (request(batch(), topic_id=b"x" * 16), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        ):
            assert only(await asking.ask(ApiKey.PRODUCE, body, version)).error_code == code

    with_data(tmp_path, scenario)


def test_one_partitions_trouble_is_not_the_others(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", 3)
        rows = [
            PartitionProduceData(0, batch()),
            PartitionProduceData(1, b"garbage"),
            PartitionProduceData(2, batch()),
        ]
        body = ProduceRequest(None, -1, 1_000, [TopicProduceData("orders", bytes(16), rows)])  # type: ignore[arg-type]

        answer = await asking.ask(ApiKey.PRODUCE, body, 9)

        (topic,) = answer.responses
        assert [each.error_code for each in topic.partition_responses] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_RECORD,
            ErrorCode.NONE,
        ]

    with_data(tmp_path, scenario)


def test_a_partition_that_is_named_twice_gets_what_was_named_last_and_is_answered_once(
    tmp_path: Path,
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", 2)
        rows = [
            PartitionProduceData(0, batch(1)),
            PartitionProduceData(1, b"garbage"),
            PartitionProduceData(0, batch(3)),
        ]
        again = [PartitionProduceData(1, batch(1))]
        topics = [TopicProduceData("orders", bytes(16), each) for each in (rows, again)]
        body = ProduceRequest(None, -1, 1_000, topics)  # type: ignore[arg-type]

        answer = await asking.ask(ApiKey.PRODUCE, body, 9)

        told = [
            [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses]
            for topic in answer.responses
        ]
        assert told == [[(0, 0, 0), (1, 0, 0)], [(1, 0, 0)]]
        replicas = asking.services.replicas
        ends = [replicas.get(TopicPartition("orders", each)).log.log_end_offset for each in (0, 1)]
        assert ends == [3, 1]

    with_data(tmp_path, scenario)


@pytest.mark.parametrize(
    ("partitions", "told", "end_offset"),
    [
        ([(0, batch(1)), (0, b"garbage")], [(0, 0, 0)], 1),
        ([(0, b"garbage"), (0, batch(1))], [(0, 0, 0)], 1),
        ([(0, b"garbage"), (0, None)], [(0, ErrorCode.INVALID_RECORD, -1)], 0),
        (
            [(9, batch(1)), (0, batch(1)), (9, batch(1))],
            [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1), (0, 0, 0)],
            1,
        ),
    ],
)
def test_of_a_partition_that_is_named_twice_what_its_log_was_asked_counts(
    tmp_path: Path,
    partitions: list[tuple[int, bytes | None]],
    told: list[tuple[int, int, int]],
    end_offset: int,
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        rows = [PartitionProduceData(*each) for each in partitions]  # type: ignore[arg-type]
        body = ProduceRequest(None, -1, 1_000, [TopicProduceData("orders", bytes(16), rows)])

        (topic,) = (await asking.ask(ApiKey.PRODUCE, body, 9)).responses

        answers = topic.partition_responses
        assert [(each.index, each.error_code, each.base_offset) for each in answers] == told
        assert asking.services.replicas.get(ORDERS).log.log_end_offset == end_offset

    with_data(tmp_path, scenario)


def test_what_is_refused_is_not_kept_by_the_error(tmp_path: Path) -> None:
    class Kept(bytearray):
        pass

    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        records = Kept(batch()[:-1] + b"x")  # its CRC is another
        is_gone = weakref.ref(records)
        entries = {ORDERS: records}
        results: list[Any] = []
        asking.services.replicas.append_records(
            entries, results.append, required_acks=-1, timeout_ms=0
        )
        assert results[0][ORDERS].error is not None
        del entries, records
        assert is_gone() is None

    with_data(tmp_path, scenario)


def test_what_is_not_exactly_one_sound_batch_is_refused(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        whole = batch()
        flipped = bytearray(whole)
        flipped[-1] ^= 1
        magic_3 = bytearray(whole)
        magic_3[16] = 3
        magic_1 = bytearray(whole)
        magic_1[16] = 1
        short = bytearray(whole)
        short[8:12] = (13).to_bytes(4, "big")
        negative = bytearray(whole)
        negative[8:12] = b"\xff\xff\xff\xff"
        for records, code in (
            (None, ErrorCode.INVALID_RECORD),
            (b"", ErrorCode.INVALID_RECORD),
            (whole[:40], ErrorCode.INVALID_RECORD),
            (whole + whole, ErrorCode.INVALID_RECORD),
            (bytes(magic_1), ErrorCode.INVALID_RECORD),
            (bytes(flipped), ErrorCode.CORRUPT_MESSAGE),
            (bytes(magic_3), ErrorCode.CORRUPT_MESSAGE),
            (bytes(short), ErrorCode.CORRUPT_MESSAGE),
            (bytes(negative), ErrorCode.CORRUPT_MESSAGE),
        ):
            assert await refused(asking, records) == code

    with_data(tmp_path, scenario)


def test_bytes_behind_a_batch_that_are_too_few_for_another_are_not_appended(
    tmp_path: Path,
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")

        answer = only(await asking.ask(ApiKey.PRODUCE, request(batch() + b"abc"), 9))

        log = asking.services.replicas.get(ORDERS).log
        assert answer.error_code == 0
        assert log.size_bytes == len(batch())

    with_data(tmp_path, scenario)


def test_zstd_needs_a_client_that_knows_it(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        records = batch(codec=Codec.ZSTD)

        assert await refused(asking, records, 6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        answer = only(await asking.ask(ApiKey.PRODUCE, request(records), 7))
        assert answer.error_code == 0

    with_data(tmp_path, scenario)


def test_what_a_log_refuses_is_answered_with_where_it_starts_and_why(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", cleanup_policy="compact")
        records = build_batch([Record(None, b"v", (), 1_700_000_000_000)])

        answer = only(await asking.ask(ApiKey.PRODUCE, request(records), 9))

        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert answer.log_start_offset == 0
        assert answer.error_message
        assert [each.batch_index for each in answer.record_errors] == [0]

    with_data(tmp_path, scenario)


def test_an_internal_topic_is_not_a_clients_to_write(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "__consumer_offsets")
        body = request(batch(), topic="__consumer_offsets")

        answer = only(await asking.ask(ApiKey.PRODUCE, body, 9))

        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    with_data(tmp_path, scenario)


@pytest.mark.parametrize("acks", [2, -2])
def test_acks_that_mean_nothing_are_refused(tmp_path: Path, acks: int) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")

        answer = only(await asking.ask(ApiKey.PRODUCE, request(batch(), acks=acks), 9))

        assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS

    with_data(tmp_path, scenario)


def test_who_wants_no_answer_gets_none_or_loses_the_connection(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")

        well = await asking.begin(ApiKey.PRODUCE, request(batch(), acks=0), 9)
        badly = await asking.begin(ApiKey.PRODUCE, request(b"garbage", acks=0), 9)

        assert (well.answers, well.silent, well.closed) == ([], 1, [])
        assert (badly.answers, badly.silent, len(badly.closed)) == ([], 0, 1)

    with_data(tmp_path, scenario)


def test_acks_all_is_answered_when_followers_have_it_or_its_time_is_over(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        replicas, node_id = asking.services.replicas, asking.services.node_id
        replicas.lead(ORDERS, leader_epoch=1, replicas=(node_id, 99), isr=(node_id, 99))

        answered = await asking.begin(ApiKey.PRODUCE, request(batch()), 9)
        assert answered.answers == []
        partition = replicas.get(ORDERS)
        partition.follower_fetched(99, 2, asking.services.clock.now_ms())
        replicas.flushed([ORDERS])
        replicas.produce_purgatory.check(ORDERS)
        assert only(answered.answers[0]).base_offset == 0

        late = await asking.begin(ApiKey.PRODUCE, request(batch()), 9)
        asking.pass_time(1_000)
        answer = only(late.answers[0])
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert answer.base_offset == 2, "it was appended all the same"

    with_data(tmp_path, scenario)


def test_who_asks_a_node_that_does_not_lead_is_told_who_does(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        asking.services.replicas.follow(ORDERS, leader_id=42, leader_epoch=6, replicas=(42,))

        answer = await asking.ask(ApiKey.PRODUCE, request(batch()), 10)

        assert only(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert tuple(only(answer).current_leader) == (42, 6)

    with_data(tmp_path, scenario)


def test_an_idempotent_producer_that_repeats_itself_is_answered_as_before(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        records = batch(producer_id=5, producer_epoch=0, base_sequence=0)
        gap = batch(producer_id=5, producer_epoch=0, base_sequence=9)

        answers = [
            only(await asking.ask(ApiKey.PRODUCE, request(each), 9))
            for each in (records, records, gap)
        ]

        assert [(each.error_code, each.base_offset) for each in answers] == [
            (0, 0),
            (0, 0),
            (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        ]
        assert asking.services.replicas.get(ORDERS).log.log_end_offset == 2
        counts = asking.services.metrics.topics["orders"]
        assert (counts.produced_messages, counts.produced_bytes) == (2, len(records))
        assert (counts.produce_requests, counts.produce_failures) == (3, 1)

    with_data(tmp_path, scenario)


def test_a_topic_without_partitions_is_not_answered_for(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        topics = [TopicProduceData("orders", bytes(16), []), *request(batch()).topic_data]

        answer = await asking.ask(ApiKey.PRODUCE, ProduceRequest(None, 1, 1_000, topics), 9)

        assert only(answer).base_offset == 0

    with_data(tmp_path, scenario)


LARGE = [Record(b"k", b"v" * 600_000, (), 1_700_000_000_000)]


@pytest.mark.parametrize(
    ("topic", "batches"),
    [
        ("orders", [build_batch(LARGE, codec=Codec.GZIP)]),
        ("orders", [build_batch(LARGE, codec=Codec.GZIP), batch()]),
        ("orders", [batch(), build_batch(LARGE, codec=Codec.GZIP)]),
        ("compressed", [build_batch(LARGE)]),
    ],
    ids=["alone", "before a small one", "after a small one", "compressed by the topic"],
)
def test_what_takes_long_to_check_is_checked_beside_the_loop(
    tmp_path: Path, topic: str, batches: list[bytes]
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", 2)
        await create_topic(asking.services, "compressed", compression_type="gzip")
        rows = [PartitionProduceData(*each) for each in enumerate(batches)]  # type: ignore[arg-type]
        body = ProduceRequest(None, 1, 1_000, [TopicProduceData(topic, bytes(16), rows)])
        client = Client()

        sent = await asking.send(client, ApiKey.PRODUCE, body, 9)

        # Meanwhile its connection takes no other, so that their order stays.
        assert (client.answers, sent.is_pipelined) == ([], False)
        async with asyncio.timeout(60):
            while not client.answers:  # noqa: ASYNC110 - soon
                await asyncio.sleep(0.001)
        (answered,) = client.answers[0].responses
        assert [each.error_code for each in answered.partition_responses] == [0] * len(batches)

    with_data(tmp_path, scenario)
