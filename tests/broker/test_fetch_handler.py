"""Fetch, in every version: records, waiting, sessions, and whoever is refused."""

from pathlib import Path
from typing import Any

import pytest
from asking_later import Asking, Client, with_data
from broker_parts import append, create_topic

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from stratalog.records import (
    AppendOrigin,
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.storage.layout import TopicPartition

VERSIONS = range(SUPPORTED[ApiKey.FETCH].lowest, SUPPORTED[ApiKey.FETCH].highest + 1)
FIRST_WITH_TOPIC_IDS = 13
ORDERS = TopicPartition("orders", 0)
EVERYTHING = 1 << 20


def request(
    *offsets: int,
    topic: str = "orders",
    topic_id: bytes = bytes(16),
    max_wait_ms: int = 0,
    current_leader_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    """A fetch of the first partitions of a topic."""
    partitions = [
        FetchPartition(
            index,
            fetch_offset=offset,
            partition_max_bytes=EVERYTHING,
            current_leader_epoch=current_leader_epoch,
        )
        for index, offset in enumerate(offsets)
    ]
    topics = [FetchTopic(topic, topic_id, partitions)] if partitions else []
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics, **fields)


def partitions(response: FetchResponse) -> list[PartitionData]:
    return [each for topic in response.responses for each in topic.partitions]


def only(response: FetchResponse) -> PartitionData:
    (partition,) = partitions(response)
    return partition


def offsets(data: PartitionData) -> list[int]:
    return [header.base_offset for header in read_headers(bytes(data.records or b""))]


async def fetch(asking: Asking, body: FetchRequest, version: int = 12) -> FetchResponse:
    answer: FetchResponse = await asking.ask(ApiKey.FETCH, body, version)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_given_from_an_offset_on_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        for _ in range(3):
            append(asking.services, "orders", count=2)
        topic_id = asking.topic_id("orders") if version >= FIRST_WITH_TOPIC_IDS else bytes(16)

        data = only(await fetch(asking, request(2, topic_id=topic_id), version))

        assert data.error_code == 0
        assert offsets(data) == [2, 4]
        assert data.high_watermark == data.last_stable_offset == 6
        assert data.log_start_offset == (0 if version >= 5 else -1)

    with_data(tmp_path, scenario)


@pytest.mark.parametrize(
    ("fields", "version", "code"),
    [
        ({"topic": "nowhere"}, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": b"x" * 16}, 13, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"current_leader_epoch": 99}, 12, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_cannot_be_served_is_told_at_once_however_long_it_would_wait(
    tmp_path: Path, fields: dict[str, Any], version: int, code: ErrorCode
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        append(asking.services, "orders")

        data = only(await fetch(asking, request(1, max_wait_ms=10_000, **fields), version))

        assert data.error_code == code
        assert (data.high_watermark, bytes(data.records or b"")) == (-1, b"")

    with_data(tmp_path, scenario)


def test_an_offset_out_of_range_is_said_to_be_so(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")

        data = only(await fetch(asking, request(5, max_wait_ms=10_000)))

        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert data.aborted_transactions is None

    with_data(tmp_path, scenario)


def test_a_fetch_at_the_end_waits_for_records_or_for_its_time(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")

        served = await asking.begin(ApiKey.FETCH, request(0, max_wait_ms=500), 12)
        assert served.answers == []
        append(asking.services, "orders")
        assert offsets(only(served.answers[0])) == [0]

        late = await asking.begin(ApiKey.FETCH, request(1, max_wait_ms=500), 12)
        asking.pass_time(499)
        assert late.answers == []
        asking.pass_time(1)
        assert offsets(only(late.answers[0])) == []
        assert len(asking.services.replicas.fetch_purgatory) == 0

    with_data(tmp_path, scenario)


def test_a_fetch_whose_client_has_gone_does_not_wait(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        client = Client()
        body = request(0, max_wait_ms=2**31 - 1)
        asked = await asking.send(client, ApiKey.FETCH, body, 12)
        assert len(asking.services.replicas.fetch_purgatory) == 1

        asked.abandoned()
        append(asking.services, "orders")

        assert len(asking.services.replicas.fetch_purgatory) == 0
        assert client.answers == []

    with_data(tmp_path, scenario)


def test_a_fetch_of_a_topic_that_is_deleted_while_it_waits_is_told(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        waiting = await asking.begin(ApiKey.FETCH, request(0, max_wait_ms=10_000), 12)

        await asking.services.topics.delete([asking.services.store.image.topic("orders").topic_id])

        data = only(waiting.answers[0])
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_data(tmp_path, scenario)


def test_limits_of_bytes_are_kept_but_for_the_first_batch(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", 2)
        for partition in (0, 1):
            for _ in range(2):
                append(asking.services, "orders", partition)

        for limit, expected in ((1, [[0], []]), (EVERYTHING, [[0, 1], [0, 1]])):
            answer = await fetch(asking, request(0, 0, max_bytes=limit))
            assert [offsets(each) for each in partitions(answer)] == expected

    with_data(tmp_path, scenario)


def test_one_answer_takes_no_more_files_than_are_left_but_for_one(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        memory = asking.services.memory
        await create_topic(asking.services, "orders", 4)
        for partition in range(4):
            append(asking.services, "orders", partition)

        for held, expected in ((0, 3), (1, 2), (2, 1), (3, 1), (50, 1)):
            memory.files_max, memory.held_files = 3, held
            answer = await fetch(asking, request(0, 0, 0, 0))
            given = [offsets(each) for each in partitions(answer)]
            assert given == [[0]] * expected + [[]] * (4 - expected)
            assert {each.error_code for each in partitions(answer)} == {0}

    with_data(tmp_path, scenario)


def test_the_broker_has_a_limit_of_its_own(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        for _ in range(40):
            append(asking.services, "orders")

        data = only(await fetch(asking, request(0)))

        assert 0 < len(bytes(data.records or b"")) <= 1024

    with_data(tmp_path, scenario, fetch_max_bytes=1024)


def test_who_is_no_replica_may_not_fetch_as_one(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        topic_id = asking.topic_id("orders")
        for body, version in (
            (request(0, replica_id=99), 12),
            (request(0, topic_id=topic_id, replica_state=ReplicaState(99, 1)), 17),
        ):
            answer = await fetch(asking, body, version)
            assert only(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert not answer.node_endpoints

    with_data(tmp_path, scenario)


def test_a_follower_is_given_what_consumers_are_not_and_moves_the_high_watermark(
    tmp_path: Path,
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        node_id = asking.services.node_id
        asking.services.replicas.lead(
            ORDERS, leader_epoch=1, replicas=(node_id, 99), isr=(node_id, 99)
        )
        append(asking.services, "orders")

        assert offsets(only(await fetch(asking, request(0)))) == []
        assert offsets(only(await fetch(asking, request(0, replica_id=99)))) == [0]
        await fetch(asking, request(1, replica_id=99))
        assert offsets(only(await fetch(asking, request(0)))) == [0]

    with_data(tmp_path, scenario)


def test_a_consumer_of_a_node_that_does_not_lead_is_told_who_does(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        asking.services.replicas.follow(ORDERS, leader_id=42, leader_epoch=6, replicas=(42,))

        data = only(await fetch(asking, request(0)))

        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert tuple(data.current_leader) == (42, 6)

    with_data(tmp_path, scenario)


@pytest.mark.parametrize("version", [12, 13])
def test_a_session_is_told_only_news(tmp_path: Path, version: int) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", 2)
        topic_id = asking.topic_id("orders") if version >= FIRST_WITH_TOPIC_IDS else bytes(16)
        opening = request(0, 0, topic_id=topic_id, session_epoch=0)
        first = await fetch(asking, opening, version)
        assert first.session_id != 0
        assert len(partitions(first)) == 2

        def next_request(epoch: int) -> FetchRequest:
            return FetchRequest(session_id=first.session_id, session_epoch=epoch)

        assert partitions(await fetch(asking, next_request(1), version)) == []
        append(asking.services, "orders", 1)
        news = only(await fetch(asking, next_request(2), version))
        assert (news.partition_index, offsets(news)) == (1, [0])
        astray = await fetch(asking, next_request(9), version)
        assert astray.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert partitions(astray) == []

    with_data(tmp_path, scenario)


def test_a_session_that_nobody_knows_is_not_found(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await fetch(asking, FetchRequest(session_id=5, session_epoch=1))

        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    with_data(tmp_path, scenario)


def test_a_fetch_of_nothing_is_answered_at_once(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await fetch(asking, request(max_wait_ms=10_000))

        assert partitions(answer) == []

    with_data(tmp_path, scenario)


def test_a_topic_that_nobody_knows_is_told_while_others_would_wait(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        body = request(0, topic_id=asking.topic_id("orders"), max_wait_ms=10_000)
        unknown = FetchTopic(topic_id=b"x" * 16, partitions=[FetchPartition(0)])

        answer = await fetch(asking, body._replace(topics=[*body.topics, unknown]), 13)

        codes = [each.error_code for each in partitions(answer)]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]

    with_data(tmp_path, scenario)


def test_where_there_never_was_a_log_no_transaction_was_aborted(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        (known, unknown) = partitions(await fetch(asking, request(99, 0)))

        assert known.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert known.aborted_transactions is None
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert list(unknown.aborted_transactions) == []  # type: ignore[arg-type]

    with_data(tmp_path, scenario)


def test_a_reader_of_committed_data_is_told_what_was_aborted(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        log = asking.services.replicas.get(ORDERS).log
        records = [Record(b"k", b"v", (), 1_700_000_000_000)]
        producer = {"producer_id": 7, "producer_epoch": 0}
        begun = build_batch(records, base_sequence=0, transactional=True, **producer)  # type: ignore[arg-type]
        log.append_as_leader(begun, origin=AppendOrigin.COORDINATOR)
        marker = build_end_transaction_marker(
            commit=False, timestamp_ms=1_700_000_000_000, coordinator_epoch=0, **producer
        )
        log.append_as_leader(marker, origin=AppendOrigin.COORDINATOR)
        asking.services.replicas.committed([ORDERS])

        (all_of_it, committed) = [
            only(await fetch(asking, request(0, isolation_level=level))) for level in (0, 1)
        ]

        assert all_of_it.aborted_transactions is None
        assert [tuple(each) for each in committed.aborted_transactions or ()] == [(7, 0)]
        assert offsets(committed) == [0, 1]

    with_data(tmp_path, scenario, transaction_partition_verification_enable=False)


def test_who_has_another_history_is_told_where_it_parts_and_given_nothing(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        append(asking.services, "orders", count=3)
        replicas, node_id = asking.services.replicas, asking.services.node_id
        replicas.lead(ORDERS, leader_epoch=5, replicas=[node_id], isr=[node_id])
        append(asking.services, "orders", count=3)
        asked = FetchPartition(
            0, fetch_offset=5, partition_max_bytes=EVERYTHING, last_fetched_epoch=3
        )
        topics = [FetchTopic("orders", bytes(16), [asked])]

        data = only(await fetch(asking, FetchRequest(isolation_level=1, topics=topics)))

        assert (data.error_code, data.diverging_epoch) == (0, EpochEndOffset(0, 3))
        assert data.aborted_transactions is None
        assert bytes(data.records or b"") == b""

    with_data(tmp_path, scenario)


def test_each_partition_of_a_fetch_counts_once_and_a_refused_one_as_such(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders", 2)
        append(asking.services, "orders")

        data = partitions(await fetch(asking, request(0, 99, 0)))
        await fetch(asking, request(0, topic="nowhere"))

        metrics = asking.services.metrics.snapshot()
        counts, total = metrics.topics["orders"], metrics.total
        # That a partition is unknown does not make its topic so.
        assert (counts.fetch_requests, counts.fetch_failures) == (3, 2)
        assert counts.fetched_bytes == len(bytes(data[0].records or b"")) > 0
        assert (total.fetch_requests, total.fetch_failures) == (4, 3)
        assert list(metrics.topics) == ["orders"]

    with_data(tmp_path, scenario)
