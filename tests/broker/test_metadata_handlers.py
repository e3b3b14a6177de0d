"""Metadata and DescribeTopicPartitions, in all their versions."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import Asking, NoClient, versions, with_broker
from broker_parts import create_topic

from stratalog.broker.handlers.metadata import MetadataHandlers
from stratalog.broker.requests import Encoded, Request
from stratalog.broker.topics import TopicChanges
from stratalog.errors import DiskError
from stratalog.metadata.image import TopicMetadata
from stratalog.metadata.names import random_topic_id
from stratalog.metadata.topics import NewTopic, PartitionChange
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.storage.layout import TopicPartition

NO_OPERATIONS = -(2**31)
METADATA = ApiKey.METADATA
DESCRIBE = ApiKey.DESCRIBE_TOPIC_PARTITIONS


def named(*names: str | None, **fields: Any) -> MetadataRequest:
    return MetadataRequest(tuple(MetadataRequestTopic(name=name) for name in names), **fields)


def by_id(*topic_ids: bytes, **fields: Any) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(topic_id, None) for topic_id in topic_ids)
    return MetadataRequest(topics, **fields)


async def settle(client: Asking) -> None:
    """Until what an answer has begun is done."""
    for _ in range(10):
        await asyncio.sleep(0)
        await client.services.topics.finish()


# --- what is told of a topic ------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(METADATA))
def test_every_version_tells_where_each_partition_is(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 3)
        image = client.services.store.image
        answer = await client.ask(METADATA, named("orders"), version)
        (broker,) = answer.brokers
        assert (broker.node_id, broker.host, broker.port) == (image.node_id, "127.0.0.1", 9092)
        if version >= 1:
            assert answer.controller_id == image.node_id
        if version >= 2:
            assert answer.cluster_id == image.cluster_id
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (0, "orders")
        if version >= 10:
            assert topic.topic_id == image.topic("orders").topic_id.bytes
        assert [each.partition_index for each in topic.partitions] == [0, 1, 2]
        for each in topic.partitions:
            assert (each.error_code, each.leader_id) == (0, image.node_id)
            assert [*each.replica_nodes] == [*each.isr_nodes] == [image.node_id]
            assert [*each.offline_replicas] == []
            if version >= 7:
                assert each.leader_epoch == 0
        assert answer.throttle_time_ms == 0
        assert answer.error_code == 0

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(METADATA))
def test_all_topics_are_asked_for_by_null_and_in_the_first_version_by_none(
    tmp_path: Path, version: int
) -> None:
    async def scenario(client: Asking) -> None:
        for name in ("orders", "payments"):
            await create_topic(client.services, name)
        everything = MetadataRequest(() if version == 0 else None)
        answer = await client.ask(METADATA, everything, version)
        assert {topic.name for topic in answer.topics} == {"orders", "payments"}
        if version:
            assert not (await client.ask(METADATA, named(), version)).topics
        assert not client.services.topics._changes

    with_broker(tmp_path, scenario)


def test_a_topic_asked_for_twice_is_told_once(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        answer = await client.ask(METADATA, named("orders", "orders"))
        assert [topic.name for topic in answer.topics] == ["orders"]

    with_broker(tmp_path, scenario)


def test_a_topic_can_be_asked_for_by_its_id(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        topic_id = client.services.store.image.topic("orders").topic_id.bytes
        unknown = random_topic_id().bytes
        answer = await client.ask(METADATA, by_id(topic_id, unknown))
        told = {topic.topic_id: (topic.error_code, topic.name) for topic in answer.topics}
        assert told == {
            topic_id: (0, "orders"),
            unknown: (ErrorCode.UNKNOWN_TOPIC_ID, None),
        }
        await client.services.topics.delete([client.services.store.image.topic("orders").topic_id])
        answer = await client.ask(METADATA, by_id(topic_id))
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_in_versions_that_carry_but_do_not_know_them(
    tmp_path: Path, version: int
) -> None:
    async def scenario(client: Asking) -> None:
        for body in (by_id(random_topic_id().bytes), named(None)):
            answer = await client.ask(METADATA, body, version)
            assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
            assert not answer.brokers

    with_broker(tmp_path, scenario)


def test_neither_name_nor_id_is_an_error_of_the_request(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        answer = await client.ask(METADATA, named(None))
        assert answer.error_code != 0

    with_broker(tmp_path, scenario)


def test_operations_are_told_to_who_asks_for_them(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        plain = await client.ask(METADATA, named("orders"), 10)
        assert plain.cluster_authorized_operations == NO_OPERATIONS
        assert plain.topics[0].topic_authorized_operations == NO_OPERATIONS
        asked = named(
            "orders",
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        for version in (8, 9, 10):
            answer = await client.ask(METADATA, asked, version)
            assert answer.cluster_authorized_operations == 8096
            assert answer.topics[0].topic_authorized_operations == 3576
        latest = named("orders", include_topic_authorized_operations=True)
        assert (await client.ask(METADATA, latest)).topics[0].topic_authorized_operations == 3576

    with_broker(tmp_path, scenario)


# --- topics that are not there ----------------------------------------------------------------


def test_a_topic_that_is_asked_for_is_created_and_found_the_next_time(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        for version in (0, 4, 13):
            name = f"new-{version}"
            answer = await client.ask(METADATA, named(name), version)
            (topic,) = answer.topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await settle(client)
            (topic,) = (await client.ask(METADATA, named(name), version)).topics
            assert (topic.error_code, len(topic.partitions)) == (0, 3)

    with_broker(tmp_path, scenario, num_partitions=3)


@pytest.mark.parametrize(
    ("is_enabled", "is_allowed"), [(False, True), (True, False), (False, False)]
)
def test_no_topic_is_created_unless_broker_and_client_want_it(
    tmp_path: Path, is_enabled: bool, is_allowed: bool
) -> None:
    async def scenario(client: Asking) -> None:
        body = named("orders", "no/name", allow_auto_topic_creation=is_allowed)
        answer = await client.ask(METADATA, body)
        assert [topic.error_code for topic in answer.topics] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ]
        await settle(client)
        assert not client.services.store.image.topics

    with_broker(tmp_path, scenario, auto_create_topics_enable=is_enabled)


def test_a_name_that_no_topic_may_have_is_refused_and_not_created(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        names = ("", ".", "..", "no name", "x" * 250, "fine")
        asked: list[str] = []
        real = client.services.topics.create

        async def noted(wanted: list[NewTopic], **options: Any) -> Any:
            asked.extend(each.name for each in wanted)
            return await real(wanted, **options)

        client.services.topics.create = noted  # type: ignore[assignment, method-assign]
        answer = await client.ask(METADATA, named(*names))
        codes = [topic.error_code for topic in answer.topics]
        assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 5 + [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
        await settle(client)
        assert asked == ["fine"]
        assert [*client.services.store.image.topics] == ["fine"]

    with_broker(tmp_path, scenario)


def test_internal_topics_are_created_by_their_own_settings(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        answer = await client.ask(METADATA, named("__consumer_offsets"))
        assert answer.topics[0].is_internal
        await settle(client)
        (topic,) = (await client.ask(METADATA, named("__consumer_offsets"))).topics
        assert topic.is_internal
        assert len(topic.partitions) == 5
        configs = client.services.store.image.topic("__consumer_offsets").configs
        assert configs["cleanup.policy"] == "compact"

    with_broker(tmp_path, scenario, offsets_topic_num_partitions=5)


def test_many_who_ask_at_once_create_a_topic_once(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        calls = 0
        real = client.services.topics.create

        async def counted(wanted: list[NewTopic], **options: Any) -> Any:
            nonlocal calls
            calls += 1
            return await real(wanted, **options)

        client.services.topics.create = counted  # type: ignore[assignment, method-assign]
        for _ in range(5):
            await client.ask(METADATA, named("orders"))
        await settle(client)
        assert calls == 1
        assert isinstance(client.services.store.image.topic("orders"), TopicMetadata)

    with_broker(tmp_path, scenario)


def test_a_topic_that_could_not_be_created_can_be_asked_for_again(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        (tmp_path / "orders-0").mkdir()
        await client.ask(METADATA, named("orders"))
        await settle(client)
        assert not client.services.store.image.topics
        (tmp_path / "orders-0").rmdir()
        await client.ask(METADATA, named("orders"))
        await settle(client)
        assert [*client.services.store.image.topics] == ["orders"]

    with_broker(tmp_path, scenario)


# --- partitions that cannot be served ---------------------------------------------------------


def test_partitions_on_a_disk_that_failed_have_no_leader(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 2)
        assert (await client.ask(METADATA, named("orders"))).topics[0].partitions[0].leader_id >= 0
        client.services.logs.directories[0].fail(str(DiskError("write", "/x", 5, "it is broken")))
        (topic,) = (await client.ask(METADATA, named("orders"))).topics
        assert topic.error_code == 0
        for each in topic.partitions:
            assert each.error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert each.leader_id == -1
            assert [*each.offline_replicas] == [client.services.node_id]
            assert [*each.replica_nodes] == [client.services.node_id]

    with_broker(tmp_path, scenario)


def test_a_partition_whose_log_is_not_there_has_no_leader_and_its_neighbours_have(
    tmp_path: Path,
) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 2)
        client.services.logs.detach(TopicPartition("orders", 1))
        (topic,) = (await client.ask(METADATA, named("orders"))).topics
        assert [each.leader_id for each in topic.partitions] == [client.services.node_id, -1]

    with_broker(tmp_path, scenario)


def test_a_partition_is_told_to_have_a_leader_from_when_it_has_one(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        async def leaders() -> list[int]:
            answer = await client.ask(METADATA, named("orders"))
            return [each.leader_id for each in answer.topics[0].partitions]

        told: list[list[int]] = []

        async def run_blocking(function: Callable[[], Any]) -> Any:
            told.append(await leaders() if told else [])
            if len(told) == 3:
                raise DiskError("write", "/x", 28, "it is full")
            return function()

        services = client.services
        services.topics = TopicChanges(
            store=services.store,
            logs=services.logs,
            replicas=services.replicas,
            run_blocking=run_blocking,
        )
        # Stored, made, and then not noted as made: the store does not change any more.
        await create_topic(services, "orders")
        assert told[1:] == [[], [services.node_id]]

    with_broker(tmp_path, scenario)


def test_no_client_ever_sees_a_new_partition_without_a_leader(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        services, told = client.services, set[tuple[int, ...]]()

        async def look() -> None:
            every = await client.ask(METADATA, MetadataRequest(None))
            one = await client.ask(METADATA, named("orders", allow_auto_topic_creation=False))
            described = await client.ask(DESCRIBE, describing("orders"))
            for topic in (*every.topics, *one.topics, *described.topics):
                told.add(tuple(each.leader_id for each in topic.partitions))

        async def run_blocking(function: Callable[[], Any]) -> Any:
            await look()
            result = function()
            await look()
            return result

        services.topics._run_blocking = run_blocking  # type: ignore[assignment]
        await create_topic(services, "orders", 2)
        await services.topics.create_partitions("orders", 3)
        await look()
        here = services.node_id
        assert told == {(), (here,) * 2, (here,) * 3}

    with_broker(tmp_path, scenario)


def test_a_topic_that_could_not_be_made_is_shown_to_nobody(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        (tmp_path / "orders-1").mkdir()
        for result in await client.services.topics.create(
            [NewTopic(name="orders", partition_count=2)]
        ):
            assert isinstance(result, Exception)
        assert not client.services.topics.coming
        answer = await client.ask(METADATA, MetadataRequest(None))
        assert not answer.topics

    with_broker(tmp_path, scenario)


def test_replicas_on_nodes_that_are_gone_are_offline_and_unknown_to_the_first_version(
    tmp_path: Path,
) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        here, gone = client.services.node_id, client.services.node_id + 1
        change = PartitionChange(
            name="orders", partition=0, replicas=(here, gone), isr=(here, gone)
        )
        client.services.store.change_partitions([change])
        (old,) = (await client.ask(METADATA, named("orders"), 0)).topics[0].partitions
        assert old.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
        assert ([*old.replica_nodes], [*old.isr_nodes]) == ([here], [here])
        (each,) = (await client.ask(METADATA, named("orders"))).topics[0].partitions
        assert (each.error_code, each.leader_id) == (0, here)
        assert [*each.replica_nodes] == [here, gone]
        assert [*each.offline_replicas] == [gone]
        client.services.store.change_partitions(
            [PartitionChange(name="orders", partition=0, leader=gone)]
        )
        (each,) = (await client.ask(METADATA, named("orders"))).topics[0].partitions
        assert (each.error_code, each.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)

    with_broker(tmp_path, scenario)


def test_what_is_told_follows_every_change(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        async def partitions() -> list[int]:
            answer = await client.ask(METADATA, named("orders", allow_auto_topic_creation=False))
            return [each.leader_id for each in answer.topics[0].partitions]

        here = client.services.node_id
        assert await partitions() == []
        await create_topic(client.services, "orders")
        assert await partitions() == [here]
        await client.services.topics.create_partitions("orders", 3)
        assert await partitions() == [here] * 3
        topic = client.services.store.image.topic("orders")
        await client.services.topics.delete([topic.topic_id])
        assert await partitions() == []
        await create_topic(client.services, "orders", 2)
        answer = await client.ask(METADATA, named("orders"))
        assert len(answer.topics[0].partitions) == 2
        assert answer.topics[0].topic_id != topic.topic_id.bytes

    with_broker(tmp_path, scenario)


# --- DescribeTopicPartitions ------------------------------------------------------------------


def describing(*names: str, limit: int = 2_000, cursor: Cursor | None = None) -> Any:
    return DescribeTopicPartitionsRequest(tuple(map(TopicRequest, names)), limit, cursor)


def test_described_topics_come_in_order_with_all_that_is_known(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        for name in ("b", "a"):
            await create_topic(client.services, name, 2)
        answer = await client.ask(DESCRIBE, describing())
        assert [topic.name for topic in answer.topics] == ["a", "b"]
        assert answer.next_cursor is None
        (first, _) = answer.topics
        assert first.topic_id == client.services.store.image.topic("a").topic_id.bytes
        assert first.topic_authorized_operations == 3576
        here = client.services.node_id
        for number, each in enumerate(first.partitions):
            assert (each.error_code, each.partition_index) == (0, number)
            assert (each.leader_id, each.leader_epoch) == (here, 0)
            assert each.eligible_leader_replicas == each.last_known_elr == ()

    with_broker(tmp_path, scenario)


def test_unknown_topics_are_described_as_such(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "a")
        answer = await client.ask(DESCRIBE, describing("zzz", "a", "no/name"))
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("a", 0),
            ("no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("zzz", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        await settle(client)
        assert [*client.services.store.image.topics] == ["a"]

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 100])
def test_pages_follow_each_other_without_gap_or_overlap(tmp_path: Path, limit: int) -> None:
    async def scenario(client: Asking) -> None:
        counts = {"a": 3, "b": 1, "c": 2}
        for name, count in counts.items():
            await create_topic(client.services, name, count)
        found: list[tuple[str, int]] = []
        cursor = None
        while True:
            answer = await client.ask(DESCRIBE, describing(limit=limit, cursor=cursor))
            page = [
                (topic.name, each.partition_index)
                for topic in answer.topics
                for each in topic.partitions
            ]
            assert len(page) <= limit
            found += page
            cursor = answer.next_cursor
            if cursor is None:
                break
        assert found == [(name, n) for name, count in counts.items() for n in range(count)]

    with_broker(tmp_path, scenario)


def test_a_cursor_that_points_nowhere_is_refused(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "a")
        for cursor in (Cursor("a", -1), Cursor("other", 0)):
            answer = await client.ask(DESCRIBE, describing("a", cursor=cursor))
            assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
        answer = await client.ask(DESCRIBE, describing("a", cursor=Cursor("a", 9)))
        assert [(topic.name, [*topic.partitions]) for topic in answer.topics] == [("a", [])]

    with_broker(tmp_path, scenario)


def test_no_page_is_larger_than_the_broker_allows(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "a", 3)
        for limit in (0, -5):
            answer = await client.ask(DESCRIBE, describing(limit=limit))
            assert len(answer.topics[0].partitions) == 1
            assert answer.next_cursor == Cursor("a", 1)

    with_broker(tmp_path, scenario)


# --- answers that are kept --------------------------------------------------------------------


def test_the_same_question_has_the_same_bytes_until_something_changes(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 2)
        handlers = MetadataHandlers(client.services)

        def answer(version: int, *names: str) -> Any:
            request = Request(METADATA, version, 1, "me", named(*names), NoClient())
            return handlers.metadata(request)

        first = answer(12, "orders")
        assert isinstance(first, Encoded)
        assert answer(12, "orders") is first
        assert answer(9, "orders") != first
        assert not isinstance(answer(12, "orders", "unknown"), Encoded)
        client.services.logs.directories[0].fail("it is broken")
        assert answer(12, "orders") != first

    with_broker(tmp_path, scenario)


def test_however_many_answers_there_are_few_are_kept(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        handlers = MetadataHandlers(client.services)
        for number in range(80):
            await create_topic(client.services, f"t{number}")
        for number in range(80):
            for version in (9, 12):
                body = named(f"t{number}")
                handlers.metadata(Request(METADATA, version, 1, "me", body, NoClient()))
        assert 0 < len(handlers._answers._kept) <= 64
        handlers._answers._clear()
        handlers.metadata(Request(METADATA, 12, 1, "me", named(*["t1"] * 101), NoClient()))
        assert not handlers._answers._kept

    with_broker(tmp_path, scenario)
