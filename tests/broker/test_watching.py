"""A running broker, seen by its clients and by whoever watches it."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from broker_fixture import RunningBroker, running_broker
from stratalog.storage.owner_file import read_owner

Ask = Callable[..., tuple[int, bytes]]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[RunningBroker, Ask]]:
    with running_broker(tmp_path, num_partitions="2") as broker:
        owner = read_owner(str(tmp_path))
        address = owner.admin.removeprefix("http://")

        def ask(path: str, method: str = "GET") -> tuple[int, bytes]:
            with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
                headers = {"Authorization": f"Bearer {owner.token}"}
                connection.request(method, path, headers=headers)
                response = connection.getresponse()
                return response.status, response.read()

        yield broker, ask


def produce(broker: RunningBroker, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_server})
    for _ in range(count):
        producer.produce(topic, b"value", partition=partition)
    assert producer.flush(60) == 0


def commit(broker: RunningBroker, group: str, **offsets: Any) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": group})
    wanted = [TopicPartition(topic, 0, offset) for topic, offset in offsets.items()]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def numbers(text: bytes) -> dict[str, float]:
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_what_clients_did_is_what_the_metrics_say(watched: tuple[RunningBroker, Ask]) -> None:
    broker, ask = watched
    produce(broker, "orders", 30)
    commit(broker, "readers", orders=12)
    status, text = ask("/metrics")
    found = numbers(text)

    assert status == 200
    assert found['stratalog_topic_produced_messages_total{topic="orders"}'] == 30
    assert found["stratalog_produced_messages_total"] == 30
    assert found['stratalog_log_end_offset{partition="0",topic="orders"}'] == 30
    assert found['stratalog_log_end_offset{partition="1",topic="orders"}'] == 0
    assert found['stratalog_group_lag{group="readers",partition="0",topic="orders"}'] == 18
    assert found['stratalog_requests_total{api="produce"}'] >= 1
    assert found['stratalog_requests_total{api="offset_commit"}'] == 1
    assert found["stratalog_connections_opened_total"] >= 2


def test_an_append_that_is_refused_is_counted_as_a_failure(
    watched: tuple[RunningBroker, Ask],
) -> None:
    broker, ask = watched
    produce(broker, "orders", 1)
    directory = broker.broker.services.logs.directories[0]
    broker.call(directory.check_space, 1 << 62)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_server, "retries": 0, "message.timeout.ms": 60_000}
    )
    failures: list[KafkaException] = []
    producer.produce(
        "orders", b"v", partition=0, on_delivery=lambda error, _: failures.append(error)
    )
    producer.flush(60)
    found = numbers(ask("/metrics")[1])

    assert failures[0] is not None
    assert found['stratalog_topic_produce_failures_total{topic="orders"}'] >= 1
    assert found["stratalog_produced_messages_total"] == 1
    assert json.loads(ask("/health")[1])["status"] == "degraded"


def test_the_broker_stops_when_its_owner_asks(watched: tuple[RunningBroker, Ask]) -> None:
    broker, ask = watched
    assert not broker.broker.stop_asked.is_set()
    status, _ = ask("/v1/shutdown", "POST")
    assert status == 202
    assert broker.broker.stop_asked.is_set()
