"""What groups leave in ``__consumer_offsets``: the same records from Apache Kafka and from us, and
each goes on with what the other has left."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_fixture import running_broker
from stratalog.coordinator.record_schemas import GROUP_KEYS, GROUP_METADATA_TYPE, GROUP_VALUES
from stratalog.records.columns import StoredRecord, decode_records
from stratalog.records.messages import decode_message

pytestmark = pytest.mark.interop

OFFSETS = "__consumer_offsets"
SECONDS = 60.0
# What differs from run to run: ids that are made up, and times.
MADE_UP = ("memberId", "leader", "commitTimestamp", "currentStateTimestamp", "topicId")


def consumer(bootstrap: str, group_id: str, **more: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "client.id": "me",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


def use_groups(bootstrap: str) -> None:
    """A dynamic member, a static one, a consumer that is in no group, and an administrator."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for topic in admin.create_topics([NewTopic("t", 2, 1), NewTopic("gone", 1, 1)]).values():
        topic.result(SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap})
    for name in ("t", "gone"):
        producer.produce(name, b"value", partition=0)
    producer.flush(SECONDS)
    for group_id, more in (("dynamic", {}), ("static", {"group_instance_id": "i"})):
        member = consumer(bootstrap, group_id, **more)
        member.subscribe(["t"])
        assert member.poll(SECONDS) is not None
        member.commit(offsets=[TopicPartition("t", 0, 1, "mine")], asynchronous=False)
        member.close()
    alone = consumer(bootstrap, "alone")
    wanted = [TopicPartition("t", 1, 7), TopicPartition("gone", 0, 1)]
    alone.commit(offsets=wanted, asynchronous=False)
    alone.close()
    admin.delete_consumer_groups(["dynamic"])["dynamic"].result(SECONDS)
    admin.delete_topics(["gone"])["gone"].result(SECONDS)


def committed(bootstrap: str, group_id: str) -> dict[int, tuple[int, str]]:
    asking = consumer(bootstrap, group_id)
    found = asking.committed([TopicPartition("t", number) for number in range(2)], SECONDS)
    asking.close()
    return {each.partition: (each.offset, each.metadata or "") for each in found}


def records_in(log_dir: Path) -> list[StoredRecord]:
    (segment,) = sorted((log_dir / f"{OFFSETS}-0").glob("*.log"))
    return decode_records(segment.read_bytes())


def shown(record: StoredRecord) -> dict[str, Any]:
    """Type, version and fields of a record, without what is made up."""
    assert record.key is not None
    kind = int.from_bytes(record.key[:2], "big")
    key = decode_message(GROUP_KEYS[kind], record.key, 2, 0)
    if record.value is None:
        return {"type": kind, **key, "value": None}
    version = int.from_bytes(record.value[:2], "big")
    value = decode_message(GROUP_VALUES[kind], record.value, 2, version)
    _forget_what_is_made_up(value)
    if kind == GROUP_METADATA_TYPE:
        for member in value["members"]:
            _forget_what_is_made_up(member)
    return {"type": kind, "version": version, **key, **value}


def _forget_what_is_made_up(fields: dict[str, Any]) -> None:
    for name in MADE_UP:
        if fields.get(name) is not None:
            fields[name] = "..."


def by_group(records: list[StoredRecord]) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in map(shown, records):
        found.setdefault(record["group"], []).append(record)
    return found


@pytest.fixture(scope="module")
def kafkas(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> KafkaBroker:
    """A stopped broker whose groups have been used."""
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("kafka"))
    with broker:
        use_groups(broker.bootstrap_server)
    return broker


OURS = {"offsets_topic_num_partitions": "1", "auto_create_topics_enable": "false"}


def test_groups_leave_the_same_records(kafkas: KafkaBroker, tmp_path: Path) -> None:
    with running_broker(tmp_path, **OURS) as broker:
        use_groups(broker.bootstrap_server)

    ours, theirs = by_group(records_in(tmp_path)), by_group(records_in(kafkas.log_dir))

    assert ours.keys() == theirs.keys() == {"dynamic", "static", "alone"}
    for group_id, records in theirs.items():
        assert ours[group_id] == records, group_id


def test_offsets_that_kafka_has_kept_are_ours(kafkas: KafkaBroker, tmp_path: Path) -> None:
    copy = tmp_path / "logs"
    shutil.copytree(kafkas.log_dir, copy)

    with running_broker(copy, **OURS) as broker:
        assert committed(broker.bootstrap_server, "static") == {0: (1, "mine"), 1: (-1001, "")}
        assert committed(broker.bootstrap_server, "alone") == {0: (-1001, ""), 1: (7, "")}
        assert committed(broker.bootstrap_server, "dynamic") == {0: (-1001, ""), 1: (-1001, "")}


def test_offsets_that_we_have_kept_are_kafkas(kafka: KafkaDistribution, tmp_path: Path) -> None:
    broker = KafkaBroker(kafka, tmp_path)
    with broker:  # so that there is a directory that Kafka knows
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(SECONDS)
        alone = consumer(broker.bootstrap_server, "before")
        alone.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
        alone.close()
    with running_broker(broker.log_dir, **OURS) as ours:
        member = consumer(ours.bootstrap_server, "ours", group_instance_id="i")
        member.subscribe(["t"])
        producer = Producer({"bootstrap.servers": ours.bootstrap_server})
        producer.produce("t", b"value", partition=0)
        producer.flush(SECONDS)
        assert member.poll(SECONDS) is not None
        member.commit(offsets=[TopicPartition("t", 0, 1, "mine")], asynchronous=False)
        member.close()

    with broker:
        assert committed(broker.bootstrap_server, "before")[0] == (3, "")
        assert committed(broker.bootstrap_server, "ours")[0] == (1, "mine")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
        described = admin.describe_consumer_groups(["ours"])["ours"].result(SECONDS)
        assert [member.group_instance_id for member in described.members] == ["i"]
