"""Fixtures of the client scenarios: a broker, each client library in turn, and names nobody has.

The scenarios run against stratalog, and marked ``interop`` against Apache Kafka: they say what
Kafka does. ``STRATALOG_TEST_BOOTSTRAP=host:port`` points them at a broker that runs already.
"""

import gc
import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka_client import AiokafkaClient, stop_loop
from brokers import BrokerPlace, StartBroker, run_apache_kafka, run_stratalog
from client_api import Client, Feature, TopicPartition, TopicSpec
from confluent_client import ConfluentClient
from kafka_python_client import KafkaPythonClient
from reading import wait_for_topic

pytest.register_assert_rewrite("churning", "group_members")

CLIENTS = (ConfluentClient, KafkaPythonClient, AiokafkaClient)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(feature): only for clients that can do this")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``client`` runs with every library that can do what it needs."""
    if "client_class" not in metafunc.fixturenames:
        return
    needed = {mark.args[0] for mark in metafunc.definition.iter_markers("needs")}
    assert needed <= set(Feature)
    able = [each for each in CLIENTS if needed <= each.offers]
    if "assignor" in metafunc.fixturenames:
        pairs = [(each, assignor) for each in able for assignor in each.assignors]
        ids = [f"{each.name}-{assignor}" for each, assignor in pairs]
        metafunc.parametrize(("client_class", "assignor"), pairs, ids=ids)
    else:
        metafunc.parametrize("client_class", able, ids=[each.name for each in able])


@pytest.fixture(
    scope="session",
    params=["stratalog", pytest.param("apache-kafka", marks=pytest.mark.interop)],
)
def start_broker(request: pytest.FixtureRequest) -> Iterator[StartBroker]:
    """Runs a broker over a directory, with settings of its own."""
    yield run_stratalog if request.param == "stratalog" else run_apache_kafka
    stop_loop()


@pytest.fixture(scope="session")
def broker(
    start_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerPlace]:
    """The broker that most scenarios share."""
    elsewhere = os.environ.get("STRATALOG_TEST_BOOTSTRAP")
    if elsewhere:
        yield BrokerPlace(elsewhere)
    else:
        with start_broker(tmp_path_factory.mktemp("broker")) as place:
            yield place


class ClosingClient:
    """A client whose producers, consumers and admins are closed when the test is over."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._opened: list[Any] = []
        self.name = client.name
        self.offers = client.offers
        self.assignors = client.assignors

    def producer(self, **options: Any) -> Any:
        return self._keep(self._client.producer(**options))

    def consumer(self, *args: Any, **options: Any) -> Any:
        return self._keep(self._client.consumer(*args, **options))

    def admin(self) -> Any:
        return self._keep(self._client.admin())

    def unkept_consumer(self, *args: Any, **options: Any) -> Any:
        """A consumer that is the caller's to close."""
        return self._client.consumer(*args, **options)

    def close(self) -> None:
        for each in reversed(self._opened):
            each.close()

    def _keep(self, opened: Any) -> Any:
        self._opened.append(opened)
        return opened


@pytest.fixture
def client(client_class: Callable[[str], Client], broker: BrokerPlace) -> Iterator[ClosingClient]:
    closing = ClosingClient(client_class(broker.bootstrap_server))
    yield closing
    closing.close()


def collect_what_clients_left() -> None:
    """The libraries leave sockets of connections that failed to the garbage collector, which warns
    of each: not in the middle of somebody else's test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def collect_garbage() -> Iterator[None]:
    yield
    collect_what_clients_left()


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    """Set up before all else of a module, and so at its end when all of it is closed."""
    yield
    collect_what_clients_left()


@pytest.fixture
def admin(client: ClosingClient) -> Any:
    return client.admin()


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names of topics and groups that nothing else uses, on a broker that others use too."""
    return lambda: f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def make_topic(admin: Any, fresh_name: Callable[[], str]) -> Callable[..., str]:
    def make(partitions: int = 1, **configs: str) -> str:
        name = fresh_name()
        named = {key.replace("_", "."): value for key, value in configs.items()}
        assert admin.create_topics({name: TopicSpec(partitions, configs=named)}) == {name: 0}
        wait_for_topic(admin, name, partitions)
        return name

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()


@pytest.fixture
def partition(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)
