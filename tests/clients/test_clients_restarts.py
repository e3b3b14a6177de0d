"""Clients that stay connected while their broker goes away and comes back."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from brokers import BrokerPlace, StartBroker
from client_api import Record, RefusedError, TopicPartition
from group_members import Group
from reading import read_all, wait_until

from free_ports import free_port

PARTITIONS = 2

# aiokafka leaves the sockets of refused connections to the garbage collector, which must not find
# them in a test that has nothing to do with it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collect_garbage"),
]


class RestartableBroker:
    """A broker that keeps its directory and its port from one life to the next."""

    def __init__(self, start_broker: StartBroker, data_dir: Path) -> None:
        self._port = free_port()
        self._start_broker = start_broker
        self._data_dir = data_dir
        self._life = ExitStack()

    def start(self) -> BrokerPlace:
        return self._life.enter_context(self._start_broker(self._data_dir, port=self._port))

    def stop(self) -> None:
        self._life.close()

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture(scope="module")
def restartable(
    start_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestartableBroker]:
    restartable = RestartableBroker(start_broker, tmp_path_factory.mktemp("restarts"))
    yield restartable
    restartable.stop()


@pytest.fixture(scope="module")
def broker(restartable: RestartableBroker) -> BrokerPlace:
    return restartable.start()


def numbered(start: int, stop: int) -> list[Record]:
    return [Record(b"%04d" % n, partition=n % PARTITIONS) for n in range(start, stop)]


def values(records: list[Record]) -> list[bytes]:
    return [record.value or b"" for record in records]


def test_producers_and_groups_go_on_when_the_broker_comes_back(
    client: Any,
    restartable: RestartableBroker,
    make_topic: Callable[..., str],
    fresh_name: Callable[[], str],
) -> None:
    topic = make_topic(PARTITIONS)
    producer = client.producer(is_idempotent=True)
    first, second = numbered(0, 50), numbered(50, 100)
    with Group(client, fresh_name(), topic) as group:
        members = [group.join() for _ in range(2)]
        group.wait_shared(members, PARTITIONS)
        producer.send(topic, first)
        group.wait_received(values(first))

        restartable.restart()
        producer.send(topic, second)
        group.wait_received(values(second))

    assert sorted(set(group.received())) == values(first + second)
    received = read_all(client, topic, PARTITIONS, 100)
    for index in range(PARTITIONS):
        own = [each.value for each in received if each.partition == index]
        assert own == values(first + second)[index::PARTITIONS]


def test_committed_offsets_and_configs_survive_a_restart(
    client: Any,
    restartable: RestartableBroker,
    make_topic: Callable[..., str],
    fresh_name: Callable[[], str],
) -> None:
    topic, group = make_topic(PARTITIONS, retention_ms="123456789"), fresh_name()
    offsets = {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 5}
    client.producer().send(topic, numbered(0, 20))
    consumer = client.consumer(group)
    consumer.assign(dict.fromkeys(offsets, "beginning"))
    consumer.commit(offsets)

    restartable.restart()

    # While a coordinator loads its groups, some libraries raise, others say that there is nothing;
    # and librdkafka's admin crashes, which is why a consumer asks first.
    consumer = client.consumer(group)

    def committed() -> object:
        try:
            return consumer.committed(list(offsets))
        except RefusedError as error:
            return error

    wait_until(committed, lambda told: told == offsets)
    later = client.admin()
    assert later.group_offsets(group) == offsets
    assert later.describe_configs("topic", topic)["retention.ms"].value == "123456789"
