"""The admin calls of each client library, the good ones and those that must be refused."""

from collections.abc import Callable
from typing import Any

import pytest
from client_api import Record, RefusedError, TopicPartition, TopicSpec
from group_members import Group
from reading import read_all, wait_for_topic, wait_until

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
INVALID_REQUEST = 42
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69

DYNAMIC_TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5


def test_topics_are_created_listed_described_and_deleted(
    admin: Any, fresh_name: Callable[[], str]
) -> None:
    names = [fresh_name(), fresh_name()]
    asked = {names[0]: TopicSpec(3), names[1]: TopicSpec(1)}

    assert admin.create_topics(asked) == dict.fromkeys(names, 0)
    for name, spec in asked.items():
        wait_for_topic(admin, name, spec.partitions)
    assert set(names) <= admin.topics()
    (broker_id,) = admin.describe_cluster().brokers
    told = admin.describe_topic(names[0])
    assert sorted(told) == [0, 1, 2]
    assert {each.leader for each in told.values()} == {broker_id}
    assert {each.replicas for each in told.values()} == {(broker_id,)}
    assert {each.isr for each in told.values()} == {(broker_id,)}

    assert admin.delete_topics(names) == dict.fromkeys(names, 0)
    wait_until(admin.topics, lambda topics: not topics & set(names))


def test_a_topic_created_again_is_another_topic(
    client: Any, admin: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    client.producer().send(topic, [Record(b"old", partition=0)])
    assert admin.delete_topics([topic]) == {topic: 0}
    wait_until(admin.topics, lambda topics: topic not in topics)

    assert (
        wait_until(
            lambda: admin.create_topics({topic: TopicSpec(1)})[topic],
            lambda code: code != TOPIC_ALREADY_EXISTS,
        )
        == 0
    )

    client.producer().send(topic, [Record(b"new", partition=0)])
    (received,) = read_all(client, topic, 1, 1)
    assert (received.offset, received.value) == (0, b"new")


@pytest.mark.needs("topic ids")
def test_a_topic_has_an_id_that_no_other_has(admin: Any, make_topic: Callable[..., str]) -> None:
    first, second = make_topic(), make_topic()

    assert admin.topic_id(first) == admin.topic_id(first)
    assert admin.topic_id(first) != admin.topic_id(second)


@pytest.mark.parametrize(
    ("name", "spec", "code"),
    [
        (".", TopicSpec(1), INVALID_TOPIC),
        ("a" * 250, TopicSpec(1), INVALID_TOPIC),
        ("with space", TopicSpec(1), INVALID_TOPIC),
        ("two-replicas", TopicSpec(1, 2), INVALID_REPLICATION_FACTOR),
        ("bad-value", TopicSpec(1, configs={"retention.ms": "soon"}), INVALID_CONFIG),
        ("bad-name", TopicSpec(1, configs={"no.such.config": "1"}), INVALID_CONFIG),
        ("bad-policy", TopicSpec(1, configs={"cleanup.policy": "keep"}), INVALID_CONFIG),
        ("below-bound", TopicSpec(1, configs={"segment.bytes": "3"}), INVALID_CONFIG),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_topic_that_cannot_be_is_refused(
    admin: Any, client: Any, name: str, spec: TopicSpec, code: int
) -> None:
    assert admin.create_topics({name: spec}) == {name: code}
    assert name not in admin.topics()


@pytest.mark.needs("topics that the library does not check itself")
def test_a_topic_without_name_or_partitions_is_refused(admin: Any) -> None:
    asked = {"": TopicSpec(1), "zero-partitions": TopicSpec(0)}

    answered = admin.create_topics(asked)

    assert answered == {"": INVALID_TOPIC, "zero-partitions": INVALID_PARTITIONS}


def test_a_topic_that_exists_is_not_created_again(admin: Any, topic: str) -> None:
    assert admin.create_topics({topic: TopicSpec(2)}) == {topic: TOPIC_ALREADY_EXISTS}
    assert len(admin.describe_topic(topic)) == 1


def test_one_bad_topic_does_not_hold_up_the_others(
    admin: Any, fresh_name: Callable[[], str]
) -> None:
    good, bad = fresh_name(), fresh_name() + "!"

    assert admin.create_topics({good: TopicSpec(1), bad: TopicSpec(1)}) == {
        good: 0,
        bad: INVALID_TOPIC,
    }
    wait_for_topic(admin, good, 1)


def test_a_topic_that_is_only_validated_is_not_created(
    admin: Any, topic: str, fresh_name: Callable[[], str]
) -> None:
    name = fresh_name()

    assert admin.create_topics({name: TopicSpec(1)}, validate_only=True) == {name: 0}
    assert admin.create_topics({topic: TopicSpec(1)}, validate_only=True) == {
        topic: TOPIC_ALREADY_EXISTS
    }
    assert name not in admin.topics()


def test_an_unknown_topic_cannot_be_deleted_or_grown(
    admin: Any, fresh_name: Callable[[], str]
) -> None:
    name = fresh_name()

    assert admin.delete_topics([name]) == {name: UNKNOWN_TOPIC_OR_PARTITION}
    assert admin.create_partitions(name, 2) == UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_are_added_and_never_taken_away(client: Any, admin: Any, topic: str) -> None:
    assert admin.create_partitions(topic, 4, validate_only=True) == 0
    assert len(admin.describe_topic(topic)) == 1

    assert admin.create_partitions(topic, 3) == 0

    wait_for_topic(admin, topic, 3)
    assert admin.create_partitions(topic, 3) == INVALID_PARTITIONS
    assert admin.create_partitions(topic, 2) == INVALID_PARTITIONS
    sent = [Record(b"%d" % index, partition=index) for index in range(3)]
    client.producer().send(topic, sent)
    assert [each.value for each in read_all(client, topic, 3, 3)] == [b"0", b"1", b"2"]


def test_configs_of_a_topic_are_told_with_their_source(
    admin: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(retention_ms="86400000")

    configs = admin.describe_configs("topic", topic)

    assert configs["retention.ms"].value == "86400000"
    assert configs["retention.ms"].source == DYNAMIC_TOPIC_CONFIG
    assert configs["segment.bytes"].value == "1073741824"
    assert configs["segment.bytes"].source == DEFAULT_CONFIG
    assert configs["cleanup.policy"].value == "delete"
    assert not configs["cleanup.policy"].is_read_only


def test_configs_of_a_broker_are_told(admin: Any) -> None:
    (broker_id,) = admin.describe_cluster().brokers

    configs = admin.describe_configs("broker", str(broker_id))

    assert configs["num.partitions"].value == "2"
    assert configs["num.partitions"].source == STATIC_BROKER_CONFIG
    assert configs["log.segment.bytes"].value == "1073741824"
    assert configs["log.segment.bytes"].source == DEFAULT_CONFIG
    assert configs["log.dirs"].is_read_only
    assert not configs["log.cleaner.threads"].is_read_only


def test_replacing_configs_takes_effect_and_forgets_what_is_not_named(
    client: Any, admin: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(retention_ms="86400000")

    assert admin.replace_configs("topic", topic, {"max.message.bytes": "200"}) == 0

    configs = wait_until(
        lambda: admin.describe_configs("topic", topic),
        lambda it: it["max.message.bytes"].value == "200",
    )
    assert configs["retention.ms"].source != DYNAMIC_TOPIC_CONFIG
    producer = client.producer()
    with pytest.raises(RefusedError):
        producer.send(topic, [Record(bytes(500), partition=0)])
    producer.send(topic, [Record(b"small", partition=0)])


def test_a_config_that_cannot_be_is_refused_and_changes_nothing(
    admin: Any, make_topic: Callable[..., str], fresh_name: Callable[[], str]
) -> None:
    topic = make_topic(retention_ms="86400000")

    assert admin.replace_configs("topic", topic, {"retention.ms": "soon"}) == INVALID_CONFIG
    assert admin.replace_configs("topic", topic, {"no.such.config": "1"}) == INVALID_CONFIG
    unknown = admin.replace_configs("topic", fresh_name(), {"retention.ms": "1000"})

    assert unknown == UNKNOWN_TOPIC_OR_PARTITION
    assert admin.describe_configs("topic", topic)["retention.ms"].value == "86400000"


@pytest.mark.needs("incremental configs")
def test_single_configs_are_set_appended_subtracted_and_removed(
    admin: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(retention_ms="86400000")

    def change(name: str, operation: str, value: str | None = None) -> int:
        return admin.alter_configs("topic", topic, {name: (operation, value)})

    def told(name: str, value: str) -> Any:
        return wait_until(
            lambda: admin.describe_configs("topic", topic)[name], lambda it: it.value == value
        )

    assert change("segment.bytes", "set", "2000000") == 0
    told("segment.bytes", "2000000")
    assert change("cleanup.policy", "append", "compact") == 0
    told("cleanup.policy", "delete,compact")
    assert change("cleanup.policy", "subtract", "delete") == 0
    told("cleanup.policy", "compact")
    assert change("segment.bytes", "delete") == 0
    assert told("segment.bytes", "1073741824").source == DEFAULT_CONFIG
    assert told("retention.ms", "86400000").source == DYNAMIC_TOPIC_CONFIG
    assert change("retention.ms", "append", "1") == INVALID_CONFIG
    assert change("retention.ms", "set", "soon") == INVALID_CONFIG
    assert change("no.such.config", "set", "1") == INVALID_CONFIG


@pytest.mark.needs("incremental configs")
def test_a_change_of_configs_that_is_only_validated_changes_nothing(admin: Any, topic: str) -> None:
    changes = {"retention.ms": ("set", "5000")}

    assert admin.alter_configs("topic", topic, changes, validate_only=True) == 0
    assert admin.describe_configs("topic", topic)["retention.ms"].source != DYNAMIC_TOPIC_CONFIG


@pytest.mark.needs("incremental configs")
def test_a_broker_config_is_changed_while_it_runs(admin: Any) -> None:
    (broker_id,) = admin.describe_cluster().brokers
    name, key = str(broker_id), "log.retention.bytes"

    assert admin.alter_configs("broker", name, {key: ("set", "123456789")}) == 0
    changed = wait_until(
        lambda: admin.describe_configs("broker", name)[key],
        lambda it: it.value == "123456789",
    )
    assert admin.alter_configs("broker", name, {key: ("delete", None)}) == 0
    wait_until(lambda: admin.describe_configs("broker", name)[key], lambda it: it.value == "-1")

    assert changed.source == DYNAMIC_BROKER_CONFIG
    refused = admin.alter_configs("broker", name, {"log.dirs": ("set", "/elsewhere")})
    assert refused in (INVALID_REQUEST, INVALID_CONFIG)


def test_records_are_deleted_up_to_an_offset(
    client: Any, admin: Any, partition: TopicPartition
) -> None:
    client.producer().send(partition.topic, [Record(b"%d" % n, partition=0) for n in range(10)])

    assert admin.delete_records({partition: 4}) == {partition: 4}
    assert client.consumer().bounds(partition) == (4, 10)
    consumer = client.consumer()
    consumer.assign({partition: "beginning"})
    assert consumer.poll(5)[0].offset == 4
    assert admin.delete_records({partition: 4}) == {partition: 4}
    assert admin.delete_records({partition: 2}) == {partition: 4}
    with pytest.raises(RefusedError) as refused:
        admin.delete_records({partition: 11})
    assert refused.value.code == OFFSET_OUT_OF_RANGE
    assert admin.delete_records({partition: -1}) == {partition: 10}
    assert client.consumer().bounds(partition) == (10, 10)


def test_the_cluster_is_described(broker: Any, admin: Any) -> None:
    told = admin.describe_cluster()

    host, port = broker.bootstrap_server.rsplit(":", 1)
    assert list(told.brokers.values()) == [(host, int(port))]
    assert told.controller in told.brokers
    assert len(told.cluster_id) == 22


@pytest.mark.needs("describe log dirs")
def test_log_directories_tell_the_size_of_each_partition(
    client: Any, admin: Any, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    client.producer().send(topic, [Record(bytes(10_000), partition=0)])

    sizes = admin.log_dirs(topic)

    assert sorted(sizes) == [0, 1]
    assert 10_000 < sizes[0] < 11_000
    assert sizes[1] == 0


@pytest.fixture
def committed_group(client: Any, partition: TopicPartition, fresh_name: Callable[[], str]) -> str:
    """A group without members that has committed offset 5."""
    group = fresh_name()
    client.producer().send(partition.topic, [Record(b"v", partition=0)] * 10)
    consumer = client.consumer(group)
    consumer.assign({partition: "beginning"})
    consumer.commit({partition: 5})
    return group


def test_a_group_without_members_is_listed_described_and_deleted(
    admin: Any, partition: TopicPartition, committed_group: str
) -> None:
    assert committed_group in admin.groups()
    told = admin.describe_group(committed_group)
    assert (told.state, told.members) == ("empty", ())
    assert admin.group_offsets(committed_group) == {partition: 5}

    assert admin.delete_group(committed_group) == 0

    assert committed_group not in admin.groups()
    assert admin.group_offsets(committed_group) == {}
    assert admin.delete_group(committed_group) == GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted(
    client: Any, admin: Any, topic: str, fresh_name: Callable[[], str]
) -> None:
    with Group(client, fresh_name(), topic) as group:
        group.wait_shared([group.join()], 1)

        assert admin.delete_group(group.group_id) == NON_EMPTY_GROUP

    assert wait_until(
        lambda: admin.describe_group(group.group_id).state, lambda state: state == "empty"
    )
    assert admin.delete_group(group.group_id) == 0


@pytest.mark.needs("alter group offsets")
def test_offsets_of_a_group_are_altered_when_it_has_no_members(
    client: Any, admin: Any, partition: TopicPartition, committed_group: str
) -> None:
    assert admin.alter_group_offsets(committed_group, {partition: 2}) == 0

    assert admin.group_offsets(committed_group) == {partition: 2}
    consumer = client.consumer(committed_group)
    consumer.subscribe([partition.topic])
    assert wait_until(lambda: consumer.poll(0.1), bool)[0].offset == 2
    assert admin.alter_group_offsets(committed_group, {partition: 0}) != 0
    assert admin.group_offsets(committed_group) == {partition: 2}


@pytest.mark.needs("delete group offsets")
def test_offsets_of_a_group_are_deleted(
    admin: Any, partition: TopicPartition, committed_group: str
) -> None:
    assert admin.delete_group_offsets(committed_group, [partition]) == 0
    assert admin.group_offsets(committed_group) == {}
