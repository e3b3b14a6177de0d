"""A broker is killed again and again while clients work; what it has acknowledged stays.

Nothing acknowledged with acks=all is lost, nothing that was deleted comes back, nothing of an
idempotent producer is there twice or out of order, nothing that a consumer was given becomes
something else, commits do not go back, and what was changed of topics stays changed.
"""

import random
from pathlib import Path

import pytest
from acknowledged import (
    GROUP,
    NOISE,
    ORDERS,
    PARTITIONS,
    SECONDS,
    TABLE,
    TRIMMED,
    Acknowledged,
    Administrating,
    CarelessProducing,
    Client,
    Consuming,
    IdempotentProducing,
    Trimming,
    altered,
)
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from killing import KilledBroker

SETTINGS = {
    "log_dir_reserve_bytes": "0",
    "group_initial_rebalance_delay_ms": "0",
    "offsets_topic_num_partitions": "2",
    "log_cleaner_backoff_ms": "100",
    "log_cleaner_dedupe_buffer_size": "10000000",
    "log_flush_offset_checkpoint_interval_ms": "200",
    "log_initial_task_delay_ms": "100",
    "log_retention_check_interval_ms": "200",
    "replica_high_watermark_checkpoint_interval_ms": "200",
    "log_segment_delete_delay_ms": "200",
    "admin_listener": "",
}
TOPICS = {
    ORDERS: {"internal.segment.bytes": "20000"},
    TABLE: {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "6000",
        "min.cleanable.dirty.ratio": "0.01",
        "file.delete.delay.ms": "100",
    },
    NOISE: {"internal.segment.bytes": "20000", "retention.bytes": "40000"},
    TRIMMED: {"internal.segment.bytes": "20000"},
}


Place = tuple[str, int]
Found = tuple[int, bytes, bytes]  # offset, key, value


def make_topics(bootstrap_server: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    new = [NewTopic(name, PARTITIONS, 1, config=configs) for name, configs in TOPICS.items()]
    for future in admin.create_topics(new).values():
        future.result(SECONDS)


def make_commits_roll(bootstrap_server: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    for name, value in (("internal.segment.bytes", "5000"), ("min.cleanable.dirty.ratio", "0.01")):
        resource = altered("__consumer_offsets", name, value)
        admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def kill_some_time(broker: KilledBroker, model: Acknowledged, chance: random.Random) -> None:
    """Kill a broker that is starting or has started, at a moment of any kind."""
    kind = chance.choice(("records", "seen", "commits", "starts", "topics", "ready", "starting"))
    if kind == "starting":
        assert broker.lives_for(chance.uniform(0, 0.5)), broker.errors.read_text()
    else:
        broker.wait_until_ready()
    if kind in ("records", "seen"):
        model.wait_for_more(kind, chance.randint(1, 600))
    elif kind in ("commits", "starts", "topics"):
        model.wait_for_more(kind, chance.randint(1, 4))
    broker.kill()
    broker.start()


def run_kills(path: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    broker = KilledBroker(path / "logs", **SETTINGS)
    model = Acknowledged()
    clients: list[Client] = []
    try:
        broker.start()
        broker.wait_until_ready()
        make_topics(broker.bootstrap_server)
        orders = IdempotentProducing(broker.bootstrap_server, model, ORDERS)
        table = IdempotentProducing(broker.bootstrap_server, model, TABLE, key_count=20)
        others = [CarelessProducing, Administrating, Trimming, Consuming, Consuming]
        clients += [orders, table, *(kind(broker.bootstrap_server, model) for kind in others)]
        for client in clients:
            client.start()
        model.wait_for_more("commits", 1)
        make_commits_roll(broker.bootstrap_server)
        broker.kill()
        broker.start()
        for _ in range(kills - 1):
            kill_some_time(broker, model, chance)
        broker.wait_until_ready()
        model.wait_for_more("commits", 1)
        for client in (orders, table):
            client.stop()
        model.wait_until_seen()
        for client in clients[2:]:
            client.stop()
        check_promises(broker.bootstrap_server, model, orders, table)
        broker.stop()
        assert not model.failures, model.failures
        said = broker.errors.read_text()
        assert "Traceback" not in said, said
        assert "failed" not in said, said
    finally:
        for client in clients:
            client.is_stopping.set()
        broker.make_sure_it_is_gone()


def check_promises(
    bootstrap_server: str,
    model: Acknowledged,
    orders: IdempotentProducing,
    table: IdempotentProducing,
) -> None:
    found = read(bootstrap_server, *TOPICS)
    for partition in range(PARTITIONS):
        check_orders(found[ORDERS, partition], model, partition, orders.produced[partition])
        check_table(found[TABLE, partition], model, partition, table.produced[partition])
    reader = Consumer({"bootstrap.servers": bootstrap_server, "group.id": "none"})
    for partition, start in model.starts.items():
        low, _ = reader.get_watermark_offsets(TopicPartition(TRIMMED, partition), SECONDS)
        assert low >= start, f"deleted records of {TRIMMED}-{partition} are back"
    reader.close()
    check_group(bootstrap_server, model)
    check_topics(bootstrap_server, model)


def check_orders(found: list[Found], model: Acknowledged, partition: int, produced: int) -> None:
    by_offset = {offset: value for offset, _, value in found}
    for told in (model.records[ORDERS, partition], model.seen[ORDERS, partition]):
        lost = {offset: value for offset, value in told.items() if by_offset.get(offset) != value}
        assert not lost, f"{ORDERS}-{partition}: {lost}"
    sequences = [number_of(value) for _, _, value in found]
    assert sequences == list(range(produced)), "each record once, and in order"


def check_table(found: list[Found], model: Acknowledged, partition: int, produced: int) -> None:
    numbers = [number_of(value) for _, _, value in found]
    assert numbers == sorted(set(numbers)), "each record once at most, and in order"
    last = {key: number_of(value) for _, key, value in found}
    for number in range(max(0, produced - 20), produced):
        assert last[b"%d" % (number % 20)] == number
    told = model.records[TABLE, partition]
    for offset, _, value in found:
        assert told.get(offset) == value


def check_group(bootstrap_server: str, model: Acknowledged) -> None:
    """Who comes next in the group goes on where it was acknowledged, or behind."""
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": GROUP})
    partitions = [TopicPartition(ORDERS, each) for each in range(PARTITIONS)]
    committed = {each.partition: each.offset for each in consumer.committed(partitions, SECONDS)}
    for partition in range(PARTITIONS):
        assert committed[partition] >= model.commits[ORDERS, partition]
    consumer.close()


def check_topics(bootstrap_server: str, model: Acknowledged) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    there = set(admin.list_topics(timeout=SECONDS).topics)
    certain = {name: held for name, held in model.topics.items() if name not in model.in_doubt}
    assert certain.keys() <= there
    assert not model.deleted_topics & there
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in certain]
    for resource, future in admin.describe_configs(resources).items() if resources else ():
        assert future.result(SECONDS)["retention.ms"].value == certain[resource.name]


def read(bootstrap_server: str, *topics: str) -> dict[Place, list[Found]]:
    """All that is in the partitions of topics."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_server,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    found: dict[Place, list[Found]] = {
        (topic, partition): []
        for topic in topics
        for partition in consumer.list_topics(topic, SECONDS).topics[topic].partitions
    }
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in found])
    reading = set(found)
    while reading:
        message = consumer.poll(SECONDS)
        assert message is not None, f"{reading} do not end"
        place = (message.topic(), message.partition())
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            reading.discard(place)
        else:
            found[place].append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


def number_of(value: bytes) -> int:
    return int(value.partition(b":")[0])


def test_what_was_acknowledged_before_a_kill_is_there_though_nothing_is_written_since(
    tmp_path: Path,
) -> None:
    broker = KilledBroker(tmp_path / "logs", **SETTINGS)
    try:
        broker.start()
        broker.wait_until_ready()
        produce_and_commit(broker.bootstrap_server)
        for _ in range(2):
            broker.kill()
            broker.start()
            broker.wait_until_ready()
            (found,) = read(broker.bootstrap_server, ORDERS).values()
            assert [value for _, _, value in found] == [b"v"] * 5
            reader = Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": GROUP})
            (committed,) = reader.committed([TopicPartition(ORDERS, 0)], SECONDS)
            assert committed.offset == 3
            reader.close()
    finally:
        broker.make_sure_it_is_gone()


def produce_and_commit(bootstrap_server: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_server, "acks": "all"})
    for _ in range(5):
        producer.produce(ORDERS, b"v", partition=0)
    assert producer.flush(SECONDS) == 0
    committer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": GROUP})
    committer.commit(offsets=[TopicPartition(ORDERS, 0, 3)], asynchronous=False)
    committer.close()


def test_nothing_acknowledged_is_lost_when_a_broker_is_killed_ten_times(tmp_path: Path) -> None:
    run_kills(tmp_path, 10, seed=1)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_nothing_acknowledged_is_lost_in_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    run_kills(tmp_path, 50, seed=seed)
