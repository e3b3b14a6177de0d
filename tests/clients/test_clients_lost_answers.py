"""Answers that get lost: the clients ask again, and nothing happens twice that must happen once."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import churning
import pytest
from brokers import BrokerPlace, StartBroker
from client_api import Record, TopicPartition
from group_members import Group
from reading import read_all

from free_ports import free_port
from lossy_proxy import (
    FETCH,
    HEARTBEAT,
    OF_RECORDS_AND_GROUPS,
    OFFSET_COMMIT,
    PRODUCE,
    LossyProxy,
)

PARTITIONS = 2

# aiokafka leaves the sockets of failed connections to the garbage collector, which must not find
# them in a test that has nothing to do with it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collect_garbage"),
]


@pytest.fixture(scope="module")
def proxy() -> Iterator[LossyProxy]:
    with LossyProxy() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def broker(
    start_broker: StartBroker, proxy: LossyProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerPlace]:
    """A broker that tells its clients to come through the proxy."""
    port, address = free_port(), f"127.0.0.1:{proxy.port}"
    settings = {"advertised_listeners": f"PLAINTEXT://{address}"}
    proxy.target = f"127.0.0.1:{port}"
    with start_broker(tmp_path_factory.mktemp("lossy"), port, **settings):
        yield BrokerPlace(address)


@pytest.fixture(autouse=True)
def _end_losses(proxy: LossyProxy) -> Iterator[None]:
    yield
    proxy.lose_nothing()


def test_an_idempotent_producer_that_sends_again_writes_each_record_once(
    client: Any, proxy: LossyProxy, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(PARTITIONS)
    producer = client.producer(is_idempotent=True)
    values = [b"%04d" % number for number in range(80)]
    producer.send(topic, [Record(b"before", partition=index) for index in range(PARTITIONS)])

    proxy.lose_every(3, PRODUCE)
    for start in range(0, len(values), 10):
        producer.send(
            topic,
            [
                Record(value, partition=number % PARTITIONS)
                for number, value in enumerate(values[start : start + 10])
            ],
        )

    assert proxy.lost > 0
    received = read_all(client, topic, PARTITIONS, len(values) + PARTITIONS)
    for index in range(PARTITIONS):
        own = [each.value for each in received if each.partition == index]
        assert own == [b"before", *values[index::PARTITIONS]]


def test_a_producer_without_idempotence_loses_nothing(
    client: Any, proxy: LossyProxy, topic: str
) -> None:
    producer = client.producer()
    values = [b"%04d" % number for number in range(20)]

    proxy.lose_every(3, PRODUCE)
    for value in values:
        producer.send(topic, [Record(value, partition=0)])

    assert proxy.lost > 0
    count = client.consumer().bounds(TopicPartition(topic, 0))[1]
    received = read_all(client, topic, 1, count)
    assert sorted({each.value or b"" for each in received}) == values


def test_a_group_reads_on_through_lost_answers(
    client: Any, proxy: LossyProxy, make_topic: Callable[..., str], fresh_name: Callable[[], str]
) -> None:
    topic = make_topic(3)
    producer = client.producer()
    values = [b"%04d" % number for number in range(40)]
    with Group(client, fresh_name(), topic) as group:
        members = [group.join() for _ in range(3)]
        group.wait_shared(members, 3)

        proxy.lose_every(4, FETCH, OFFSET_COMMIT, HEARTBEAT)
        for start in range(0, len(values), 10):
            batch = values[start : start + 10]
            producer.send(topic, [Record(value, partition=n % 3) for n, value in enumerate(batch)])
            group.wait_received(batch)
        proxy.lose_nothing()

        assert proxy.lost > 0
        assert sorted(set(group.received())) == values


@pytest.mark.deep
@pytest.mark.parametrize("start_broker", ["stratalog"], indirect=True, scope="session")
def test_nothing_is_lost_while_members_come_and_go_and_answers_get_lost(
    client: Any,
    admin: Any,
    proxy: LossyProxy,
    make_topic: Callable[..., str],
    fresh_name: Callable[[], str],
    assignor: str,
) -> None:
    topic = make_topic(churning.PARTITIONS)
    load = churning.Load(client.producer(is_idempotent=True), topic)
    # Who never hears that it was let in is waited for until its session is over.
    options = {"assignor": assignor, "session_timeout_ms": 2_000}
    with Group(client, fresh_name(), topic, **options) as group:
        proxy.lose_every(7, *OF_RECORDS_AND_GROUPS)
        with load.running():
            churning.churn(group, random.Random(0), churning.CHURN_SECONDS)
        proxy.lose_nothing()
        group.wait_received(load.values)

    churning.check_nothing_lost(group, load.values, admin.group_offsets(group.group_id))
    stored = [
        client.consumer().bounds(TopicPartition(topic, index))[1]
        for index in range(churning.PARTITIONS)
    ]
    assert sum(stored) == len(load.values)
