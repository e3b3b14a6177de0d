"""CreateTopics, DeleteTopics and CreatePartitions, in all their versions."""

from pathlib import Path
from typing import Any

import pytest
from asking import Asking, versions, with_broker
from broker_parts import create_topic

from stratalog.metadata.names import random_topic_id
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from stratalog.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

CREATE, DELETE, ADD = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    pairs = [CreatableTopicConfig(key.replace("_", "."), text) for key, text in configs.items()]
    return CreatableTopic(name, partitions, replicas, (), pairs)


def assigned(name: str, *replicas: tuple[int, list[int]], partitions: int = -1) -> Any:
    return CreatableTopic(name, partitions, -1, [CreatableReplicaAssignment(*r) for r in replicas])


async def codes(client: Asking, *topics: Any, **fields: Any) -> dict[str, int]:
    answer = await client.ask(CREATE, CreateTopicsRequest(topics, **fields))
    return {each.name: each.error_code for each in answer.topics}


# --- CreateTopics -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(CREATE))
def test_every_version_creates_topics_and_tells_what_it_knows_to_tell(
    tmp_path: Path, version: int
) -> None:
    async def scenario(client: Asking) -> None:
        body = CreateTopicsRequest((topic("orders", 3, retention_ms="5"), topic("no/name")))
        answer = await client.ask(CREATE, body, version)
        good, bad = answer.topics
        assert (good.name, good.error_code, good.error_message) == ("orders", 0, None)
        assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert bad.error_message
        stored = client.services.store.image.topic("orders")
        assert (len(stored.partitions), stored.configs) == (3, {"retention.ms": "5"})
        if version >= 5:
            assert (good.num_partitions, good.replication_factor) == (3, 1)
            assert (bad.num_partitions, bad.replication_factor) == (-1, -1)
            configs = {each.name: each for each in good.configs}
            assert [*configs] == sorted(configs)
            retention = configs["retention.ms"]
            assert (retention.value, retention.config_source) == ("5", 1)
            assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
                str(1 << 30),
                5,
            )
            assert "internal.segment.bytes" not in configs
            assert not any(each.read_only or each.is_sensitive for each in good.configs)
        if version >= 7:
            assert good.topic_id == stored.topic_id.bytes
            assert bad.topic_id == bytes(16)

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [4, 5, 7])
def test_minus_one_asks_for_the_brokers_defaults(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await client.ask(CREATE, CreateTopicsRequest((topic("orders", -1, -1),)), version)
        assert len(client.services.store.image.topic("orders").partitions) == 4

    with_broker(tmp_path, scenario, num_partitions=4)


def test_each_bad_topic_has_kafkas_error_and_the_good_one_is_created(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        here = client.services.node_id
        await create_topic(client.services, "there")
        await create_topic(client.services, "with.dot")
        expected = [
            (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
            (topic("no name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (topic("with_dot"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
            (topic("none", 0), ErrorCode.INVALID_PARTITIONS),
            (topic("fewer", -7), ErrorCode.INVALID_PARTITIONS),
            (topic("no-replicas", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
            (topic("replicas", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
            (topic("config", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
            (topic("unknown-config", no_such_config="1"), ErrorCode.INVALID_CONFIG),
            (topic("null-config", retention_ms=None), ErrorCode.INVALID_CONFIG),
            (assigned("both", (0, [here]), partitions=1), ErrorCode.INVALID_REQUEST),
            (assigned("hole", (1, [here])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (assigned("twice", (0, [here]), (0, [here])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (assigned("nobody", (0, [here + 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (assigned("empty", (0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (assigned("again", (0, [here, here])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (assigned("good", (0, [here]), (1, [here])), ErrorCode.NONE),
        ]
        wanted = {each.name: code for each, code in expected}
        assert await codes(client, *(each for each, _ in expected)) == wanted
        assert set(client.services.store.image.topics) == {"there", "with.dot", "good"}

    with_broker(tmp_path, scenario)


def test_a_topic_named_twice_is_refused_and_not_created(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        answer = await client.ask(
            CREATE, CreateTopicsRequest((topic("a"), topic("b"), topic("a", 2)))
        )
        assert {each.name: each.error_code for each in answer.topics} == {
            "a": ErrorCode.INVALID_REQUEST,
            "b": 0,
        }
        assert len(answer.topics) == 2
        assert [*client.services.store.image.topics] == ["b"]

    with_broker(tmp_path, scenario)


def test_what_is_validated_only_is_answered_but_not_created(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        assert await codes(client, topic("a"), topic("b", 0), validate_only=True) == {
            "a": 0,
            "b": ErrorCode.INVALID_PARTITIONS,
        }
        assert not client.services.store.image.topics

    with_broker(tmp_path, scenario)


def test_too_many_partitions_are_refused_for_every_topic_of_the_request(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        assert await codes(client, topic("a", 9_999), topic("b", 2)) == {
            "a": ErrorCode.POLICY_VIOLATION,
            "b": ErrorCode.POLICY_VIOLATION,
        }

    with_broker(tmp_path, scenario)


def test_what_a_new_topic_inherits_is_told_with_its_source(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await client.services.topics.replace_broker_configs(None, {"log.segment.bytes": "2000000"})
        await client.services.topics.replace_broker_configs(
            client.services.node_id, {"log.index.interval.bytes": "99"}
        )
        answer = await client.ask(CREATE, CreateTopicsRequest((topic("orders"),)))
        told = {each.name: (each.value, each.config_source) for each in answer.topics[0].configs}
        assert told["index.interval.bytes"] == ("99", 2)
        assert told["segment.bytes"] == ("2000000", 3)
        assert told["retention.ms"] == ("3600000", 4)
        assert told["max.message.bytes"] == ("1048588", 5)

    with_broker(tmp_path, scenario, log_retention_hours=1)


# --- DeleteTopics -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(DELETE))
def test_every_version_deletes_by_name(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        topic_id = client.services.store.image.topic("orders").topic_id.bytes
        names = ("orders", "unknown")
        body = DeleteTopicsRequest(topic_names=names)
        if version >= 6:
            body = DeleteTopicsRequest(topics=tuple(map(DeleteTopicState, names)))
        answer = await client.ask(DELETE, body, version)
        told = {each.name: each for each in answer.responses}
        assert told["orders"].error_code == 0
        assert told["unknown"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if version >= 5:
            assert told["orders"].error_message is None
            assert told["unknown"].error_message
        if version >= 6:
            assert told["orders"].topic_id == topic_id
        assert not client.services.store.image.topics

    with_broker(tmp_path, scenario)


def test_topics_are_deleted_by_id_and_each_mistake_is_told(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        ids = {}
        for name in ("a", "b", "c", "d", "e"):
            await create_topic(client.services, name)
            ids[name] = client.services.store.image.topic(name).topic_id.bytes
        unknown = random_topic_id().bytes
        states = [
            DeleteTopicState(None, ids["a"]),
            DeleteTopicState(None, unknown),
            DeleteTopicState(None, bytes(16)),
            DeleteTopicState("b", ids["b"]),
            DeleteTopicState("c"),
            DeleteTopicState("c"),
            DeleteTopicState(None, ids["d"]),
            DeleteTopicState("d"),
            DeleteTopicState(None, ids["e"]),
            DeleteTopicState(None, ids["e"]),
        ]
        answer = await client.ask(DELETE, DeleteTopicsRequest(topics=states))
        told = {(each.name, each.topic_id): each.error_code for each in answer.responses}
        assert told == {
            ("a", ids["a"]): 0,
            (None, unknown): ErrorCode.UNKNOWN_TOPIC_ID,
            (None, bytes(16)): ErrorCode.INVALID_REQUEST,
            ("b", ids["b"]): ErrorCode.INVALID_REQUEST,
            ("c", bytes(16)): ErrorCode.INVALID_REQUEST,
            ("d", ids["d"]): ErrorCode.INVALID_REQUEST,
            (None, ids["e"]): ErrorCode.INVALID_REQUEST,
        }
        assert set(client.services.store.image.topics) == {"b", "c", "d", "e"}

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(DELETE))
def test_nothing_is_deleted_where_that_is_disabled(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        body = DeleteTopicsRequest(topic_names=("orders",))
        if version >= 6:
            body = DeleteTopicsRequest(topics=(DeleteTopicState("orders"),))
        answer = await client.ask(DELETE, body, version)
        expected = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        assert [(each.name, each.error_code) for each in answer.responses] == [("orders", expected)]
        assert [*client.services.store.image.topics] == ["orders"]

    with_broker(tmp_path, scenario, delete_topic_enable=False)


# --- CreatePartitions -------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ADD))
def test_every_version_adds_partitions(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 2)
        body = CreatePartitionsRequest((CreatePartitionsTopic("orders", 5, None),), 1_000)
        (result,) = (await client.ask(ADD, body, version)).results
        assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
        assert len(client.services.replicas) == 5

    with_broker(tmp_path, scenario)


def test_partitions_that_cannot_be_added_have_kafkas_errors(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        here = client.services.node_id
        for name in ("a", "b", "c", "d", "e", "f"):
            await create_topic(client.services, name, 2)

        def to(name: str, count: int, *replicas: list[int]) -> CreatePartitionsTopic:
            given = [CreatePartitionsAssignment(each) for each in replicas] or None
            return CreatePartitionsTopic(name, count, given)

        body = CreatePartitionsRequest(
            (
                to("a", 2),
                to("b", 1),
                to("c", 3, [here], [here]),
                to("d", 3, [here + 1]),
                to("e", 3, [here]),
                to("f", 3),
                to("f", 4),
                to("unknown", 3),
            ),
            1_000,
        )
        answer = await client.ask(ADD, body)
        assert {each.name: each.error_code for each in answer.results} == {
            "a": ErrorCode.INVALID_PARTITIONS,
            "b": ErrorCode.INVALID_PARTITIONS,
            "c": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "d": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "e": 0,
            "f": ErrorCode.INVALID_REQUEST,
            "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert len(answer.results) == 7
        assert all(each.error_message for each in answer.results if each.error_code)
        assert len(client.services.replicas) == 13

    with_broker(tmp_path, scenario)


def test_partitions_that_are_validated_only_are_not_added(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 2)
        body = CreatePartitionsRequest((CreatePartitionsTopic("orders", 5, None),), 1_000, True)
        (result,) = (await client.ask(ADD, body)).results
        assert result.error_code == 0
        assert len(client.services.replicas) == 2

    with_broker(tmp_path, scenario)
