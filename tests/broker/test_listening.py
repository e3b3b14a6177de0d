"""How many connections there may be, and which of them are let go of."""

import errno
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import (
    OUTAGE_SECONDS,
    SERVED_WITHIN_SECONDS,
    Client,
    Healthy,
    answers_api_versions,
    encoded,
    served_broker,
)

from broker_fixture import RunningBroker, running_broker
from stratalog.broker.burden import WINDOW_MS
from stratalog.broker.connection import Shared
from stratalog.broker.dispatcher import Dispatcher
from stratalog.broker.listening import Acceptor, bind, listen
from stratalog.broker.memory import RequestMemory
from stratalog.broker.metrics import Metrics
from stratalog.config import BrokerConfig
from stratalog.config.listeners import Listener
from stratalog.errors import ConfigError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.messages.api_versions import ApiVersionsRequest
from stratalog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

LONG_MS = 2**31 - 1


def address(broker: RunningBroker) -> tuple[str, int]:
    host, _, port = broker.bootstrap_server.rpartition(":")
    return host, int(port)


def is_answered(client: Client) -> bool:
    try:
        return client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0).error_code == 0
    except (ConnectionError, OSError):
        return False


def connected_from(host: str, broker: RunningBroker) -> socket.socket:
    return socket.create_connection(address(broker), timeout=60, source_address=(host, 0))


def congestion_control(sock: socket.socket) -> str:
    name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


def sweep(broker: RunningBroker, after_ms: int) -> None:
    inner = broker.broker
    now_ms = inner._acceptor._now_ms()
    broker.call(inner._acceptor.sweep, now_ms + after_ms)


@pytest.mark.parametrize("setting", ["max_connections", "max_connections_per_ip"])
def test_no_more_connections_than_allowed_and_again_when_some_have_gone(
    tmp_path: Path, setting: str
) -> None:
    with running_broker(tmp_path, **{setting: "3"}) as broker:
        clients = [Client(address(broker)) for _ in range(3)]
        assert all(is_answered(client) for client in clients)
        with Client(address(broker)) as refused:
            assert not is_answered(refused)
        metrics = broker.broker.services.metrics
        assert broker.call(lambda: metrics.connections_refused) == 1
        clients.pop().close()
        while broker.call(lambda: metrics.connections) == 3:
            pass
        with Client(address(broker)) as late:
            assert is_answered(late)
        for client in clients:
            client.close()


def test_who_is_idle_for_too_long_is_let_go_and_who_is_not_stays(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, connections_max_idle_ms="600000") as broker,
        Client(address(broker)) as idle,
        Client(address(broker)) as busy,
    ):
        assert is_answered(idle)
        assert is_answered(busy)
        sweep(broker, 0)  # by which they are seen to have done something
        sweep(broker, 599_000)
        assert is_answered(busy)
        sweep(broker, 601_000)
        assert idle.is_closed_by_broker()
        assert is_answered(busy)
        assert broker.broker.services.metrics.connections == 1


def test_who_waits_for_an_answer_is_not_idle_and_who_has_gone_is_not_waited_for(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        client = Client(address(broker))
        request = CreateTopicsRequest(topics=[CreatableTopic("orders", 1, 1)])
        topic_id = client.ask(ApiKey.CREATE_TOPICS, request).topics[0].topic_id
        wanted = [FetchTopic("orders", topic_id, [FetchPartition(0)])]
        fetch = FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, session_epoch=-1, topics=wanted)
        client.send(encoded(ApiKey.FETCH, fetch))
        purgatory = broker.broker.services.replicas.fetch_purgatory
        while not broker.call(lambda: len(purgatory)):
            pass
        sweep(broker, 3_600_000)
        assert broker.broker.services.metrics.connections == 1
        client.close()
        while broker.broker.services.metrics.connections:
            sweep(broker, 0)
        assert broker.call(lambda: len(purgatory)) == 0


def test_only_where_memory_is_short_a_slow_sender_is_let_go(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        memory = broker.broker.services.memory
        slow = Client(address(broker))
        assert is_answered(slow)
        slow.send(struct.pack(">ih", 1 << 20, 0))
        while not broker.call(lambda: memory.used_bytes):
            pass
        for after_ms in (0, WINDOW_MS, 2 * WINDOW_MS):
            sweep(broker, after_ms)
        assert broker.broker.services.metrics.connections == 1
        broker.call(memory.hold, memory.limit_bytes)
        for after_ms in (0, WINDOW_MS):
            sweep(broker, after_ms)
        assert slow.is_closed_by_broker()
        slow.close()
        broker.call(memory.release, memory.limit_bytes)
        assert broker.call(lambda: memory.used_bytes) == 0
        assert answers_api_versions(address(broker))


def test_no_more_are_let_go_than_memory_needs_and_the_largest_first(tmp_path: Path) -> None:
    with running_broker(tmp_path, queued_max_request_bytes=str(8 << 20)) as broker:
        memory = broker.broker.services.memory
        small, large = Client(address(broker)), Client(address(broker))
        small.send(struct.pack(">ih", 1_000, 0))
        large.send(struct.pack(">ih", 50 << 20, 0) + bytes(3 << 20))
        while not broker.call(lambda: memory.is_short):
            pass
        for after_ms in (0, WINDOW_MS):
            sweep(broker, after_ms)
        assert large.is_closed_by_broker()
        assert not broker.call(lambda: memory.is_short)
        assert broker.broker.services.metrics.connections == 1
        for client in (small, large):
            client.close()


@pytest.mark.parametrize("client_host", ["127.0.0.1", "127.0.0.2"])
def test_only_what_stays_between_two_ends_of_one_address_is_sent_unpaced(
    tmp_path: Path, client_host: str
) -> None:
    with socket.socket() as untouched:
        default = congestion_control(untouched)
    with running_broker(tmp_path) as broker, connected_from(client_host, broker) as client:
        client.sendall(encoded(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0))
        assert client.recv(1)
        connections = broker.broker._acceptor._dispatcher.connections
        (accepted,) = connections
        expected = "reno" if client_host == address(broker)[0] else default
        assert congestion_control(accepted._socket) == expected


def test_an_address_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        host, port = address(broker)
        with pytest.raises(ConfigError, match="cannot be listened on"):
            bind(Listener("PLAINTEXT", host, port))


def test_whoever_connects_before_the_broker_serves_is_refused_at_once() -> None:
    listener = Listener("PLAINTEXT", "127.0.0.1", 0)
    with bind(listener) as bound:
        with socket.socket() as client, pytest.raises(ConnectionRefusedError):
            client.connect(bound.getsockname())
        listen(bound, listener, 5)
        socket.create_connection(bound.getsockname()).close()


def test_of_two_that_start_for_one_port_the_later_is_told_in_a_sentence() -> None:
    with bind(Listener("PLAINTEXT", "127.0.0.1", 0)) as first:
        listener = Listener("PLAINTEXT", *first.getsockname())
        listen(first, listener, 5)
        with pytest.raises(ConfigError, match="cannot be listened on"):
            bind(listener)


def test_connections_leave_descriptors_for_logs(tmp_path: Path) -> None:
    with served_broker(tmp_path / "broker", files_max=200) as broker:
        healthy = Healthy(broker)
        idle = [broker.client() for _ in range(300)]
        assert healthy.is_served() < SERVED_WITHIN_SECONDS
        assert broker.sockets() < 110
        for client in idle[:50]:
            client.close()
        assert broker.wait_for_sockets(80, OUTAGE_SECONDS) <= 80
        late = Healthy(broker)
        assert late.is_served() < SERVED_WITHIN_SECONDS
        assert any("few_open_files allowed=200" in line for line in broker.log_lines())
        for client in (*idle, healthy, late):
            client.close()


# --- when nothing can be accepted -----------------------------------------------------------------


class Timer:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """What an acceptor wants of a loop: readers by descriptor, and timers that wait for us."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.timers: list[Timer] = []
        self.refusals = 0

    def add_reader(self, descriptor: int, action: Callable[[], None]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        self.readers[descriptor] = action

    def remove_reader(self, descriptor: int) -> None:
        self.readers.pop(descriptor, None)

    def call_later(self, _delay: float, action: Callable[[], None]) -> Timer:
        self.timers.append(Timer(action))
        return self.timers[-1]

    def pass_time(self) -> None:
        due, self.timers = self.timers, []
        for timer in due:
            if not timer.is_cancelled:
                timer.action()


class OutOfDescriptors(socket.socket):
    def accept(self) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[tuple[Loop, Acceptor]]:
    """An acceptor that has just failed to accept."""
    loop: Any = Loop()
    dispatcher = Dispatcher(
        loop, {}, Metrics(), max_frame_bytes=1, report=lambda _client, _error: None
    )
    memory = RequestMemory(1, 1)
    readers: Any = None
    shared = Shared(loop, readers, memory, memoryview(bytearray(1)), dispatcher)
    with OutOfDescriptors() as sock:
        config = BrokerConfig(log_dirs=(str(tmp_path),))
        acceptor = Acceptor(shared, dispatcher, sock, config, lambda: 0)
        loop.readers[sock.fileno()]()
        yield loop, acceptor


def test_what_could_not_be_accepted_is_accepted_a_little_later(
    failing: tuple[Loop, Acceptor],
) -> None:
    loop, _ = failing
    assert not loop.readers, "it would be tried all the time"
    loop.pass_time()
    assert loop.readers


def test_an_acceptor_that_cannot_be_watched_again_is_watched_a_little_later(
    failing: tuple[Loop, Acceptor],
) -> None:
    loop, _ = failing
    loop.refusals = 3
    for _ in range(4):
        assert not loop.readers
        loop.pass_time()
    assert loop.readers


@pytest.mark.parametrize("end", [Acceptor.retire, Acceptor.stop])
def test_who_stops_does_not_begin_to_accept_again(
    failing: tuple[Loop, Acceptor], end: Callable[[Acceptor], None]
) -> None:
    loop, acceptor = failing
    end(acceptor)
    loop.pass_time()
    assert not loop.readers
