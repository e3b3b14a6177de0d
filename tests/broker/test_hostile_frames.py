"""Frames that no client would send, to a broker that serves another client meanwhile: it neither
falls, nor leaks, nor keeps the other waiting, nor fills its log."""

import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from hostile import (
    OUTAGE_SECONDS,
    SERVED_WITHIN_SECONDS,
    Client,
    Healthy,
    ServedBroker,
    answers_api_versions,
    served_broker,
)
from mutating import EVERY_REQUEST, Generator

from broker_fixture import running_broker
from stratalog.errors import ProtocolError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import decode_request, decode_request_header
from stratalog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

BATCH = 100
RSS_BYTES_MAX = 256 << 20
GONE_WITHIN_SECONDS = 60
LOG_LINES_MAX = 500


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    """One for all: what one test leaves behind may well hurt the next."""
    with served_broker(tmp_path_factory.mktemp("hostile") / "broker") as found:
        yield found


def test_every_request_that_is_mutated_was_a_good_one_before() -> None:
    generator = Generator(1)
    for api_key, version in EVERY_REQUEST:
        frame = generator.frame(api_key, version)[4:]
        header, position = decode_request_header(frame)
        assert (header.api_key, header.api_version) == (api_key, version)
        decode_request(api_key, version, frame, position)


def test_mutated_frames_of_every_api_do_no_harm(broker: ServedBroker) -> None:
    attack(broker, seed=1, frames=2 * len(EVERY_REQUEST))


@pytest.mark.deep
def test_mutated_frames_of_every_api_for_five_minutes_do_no_harm(broker: ServedBroker) -> None:
    seed = int(os.environ.get("STRATALOG_SEED", random.randrange(1 << 32)))
    print(f"STRATALOG_SEED={seed}")
    attack(broker, seed=seed, seconds=300)


def attack(
    broker: ServedBroker, *, seed: int, frames: int = 1 << 62, seconds: float = 1 << 30
) -> None:
    healthy = Healthy(broker)
    sockets = broker.sockets()
    generator = Generator(seed)
    make_targets(broker, generator)
    stream = islice(generator.stream(), frames)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (batch := list(islice(stream, BATCH))):
        while batch:
            count = generator.random.choice((1, 1, 2, 5))
            misbehave(broker.address, b"".join(batch[:count]), generator.random)
            del batch[:count]
        assert broker.is_running, f"seed {seed}: {broker.log_lines()[-20:]}"
        assert healthy.is_served() < SERVED_WITHIN_SECONDS, f"seed {seed}"
        assert broker.rss_bytes() < RSS_BYTES_MAX, f"seed {seed}"
    assert broker.wait_for_sockets(sockets, GONE_WITHIN_SECONDS) <= sockets
    assert len(broker.log_lines()) < LOG_LINES_MAX + seconds / 10 % 1_000
    for line in broker.log_lines():
        assert "Traceback" not in line, line
        assert "handler_failed" not in line, line
        assert "task_failed" not in line, line
    healthy.close()


def make_targets(broker: ServedBroker, generator: Generator) -> None:
    """Topics that mutated frames can find."""
    with broker.client() as client:
        wanted = [CreatableTopic(name, 3, 1) for name in ("orders", "payments")]
        created = client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=wanted))
        generator.topic_ids += [topic.topic_id for topic in created.topics if topic.topic_id]


def misbehave(address: tuple[str, int], data: bytes, chance: random.Random) -> None:
    """Send, perhaps look at an answer, perhaps go in the rudest way."""
    sock = socket.create_connection(address, timeout=OUTAGE_SECONDS)
    with sock, suppress(OSError):
        sock.sendall(data)
        if chance.random() < 0.5:
            sock.settimeout(0.01)
            sock.recv(1 << 16)
        if chance.random() < 0.3:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_hundred_megabytes_that_are_only_claimed_cost_nothing(broker: ServedBroker) -> None:
    healthy = Healthy(broker)
    before = broker.rss_bytes()
    claims = [broker.client() for _ in range(300)]
    for client in claims:
        client.send(struct.pack(">ihhih", 100 << 20, 0, 9, 1, -1))
    assert healthy.is_served() < SERVED_WITHIN_SECONDS
    assert broker.rss_bytes() < before + (64 << 20)
    for client in claims:
        client.close()
    healthy.close()


def test_half_requests_keep_nobody_from_being_served(broker: ServedBroker) -> None:
    generator = Generator(3)
    healthy = Healthy(broker)
    sockets = broker.sockets()
    clients = []
    for api_key, version in generator.random.sample(EVERY_REQUEST, 100):
        frame = generator.frame(api_key, version)
        client = broker.client()
        client.send(frame[: generator.random.randrange(1, len(frame))])
        clients.append(client)
    assert healthy.is_served() < SERVED_WITHIN_SECONDS
    assert broker.sockets() > sockets + 50
    for client in clients:
        client.close()
    assert broker.wait_for_sockets(sockets, GONE_WITHIN_SECONDS) <= sockets
    healthy.close()


def test_a_request_sent_byte_by_byte_is_answered(broker: ServedBroker) -> None:
    with broker.client() as client:
        for byte in struct.pack(">ihhih", 10, 18, 0, 5, -1):
            client.send(bytes((byte,)))
        assert client.answer(ApiKey.API_VERSIONS, 0).error_code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(506),
        struct.pack(">i", 0),
        struct.pack(">i", -1) + bytes(100),
        struct.pack(">ihhih", 10, 71, 0, 1, -1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
    ],
    ids=["http", "tls", "nothing", "negative", "api that is not served", "version"],
)
def test_what_is_no_request_closes_its_connection(broker: ServedBroker, data: bytes) -> None:
    with broker.client() as client:
        client.send(data)
        assert client.is_closed_by_broker()
    assert answers_api_versions(broker.address)


def connect_and_drop(broker: ServedBroker, count: int) -> None:
    healthy = Healthy(broker)
    sockets, before = broker.sockets(), broker.rss_bytes()
    chance = random.Random(5)
    for number in range(count):
        sock = socket.create_connection(broker.address, timeout=OUTAGE_SECONDS)
        if chance.random() < 0.5:
            sock.sendall(struct.pack(">ihhih", 10, 18, 0, 5, -1)[: chance.randrange(1, 15)])
        if chance.random() < 0.5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        if number % 500 == 0:
            assert healthy.is_served() < SERVED_WITHIN_SECONDS
    assert broker.wait_for_sockets(sockets, GONE_WITHIN_SECONDS) <= sockets
    assert broker.rss_bytes() < before + (32 << 20)
    assert len(broker.log_lines()) < LOG_LINES_MAX
    healthy.close()


def test_a_thousand_connects_and_drops_leave_nothing(broker: ServedBroker) -> None:
    connect_and_drop(broker, 1_000)


@pytest.mark.deep
def test_ten_thousand_connects_and_drops_leave_nothing(broker: ServedBroker) -> None:
    connect_and_drop(broker, 10_000)


def test_clients_of_another_kind_are_reported_sparingly(broker: ServedBroker) -> None:
    for _ in range(300):
        with Client(broker.address) as client:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            assert client.is_closed_by_broker()
    assert len(broker.log_lines()) < LOG_LINES_MAX


def test_nothing_that_a_client_sends_raises_what_nobody_thought_of(tmp_path: Path) -> None:
    """Whatever closes a connection is a sentence about the request, not a handler's mishap."""
    frames = 3 * len(EVERY_REQUEST)
    with running_broker(tmp_path, auto_create_topics_enable="false") as broker:
        trouble: list[object] = []
        dispatcher = broker.broker._dispatcher
        dispatcher._report = lambda _client, error: (
            None if isinstance(error, ProtocolError) else trouble.append(error)
        )
        loop = broker.broker.services.loop
        loop.set_exception_handler(lambda _loop, context: trouble.append(context))
        host, _, port = broker.bootstrap_server.rpartition(":")
        generator = Generator(2)
        for frame in islice(generator.stream(), frames):
            misbehave((host, int(port)), frame, generator.random)
        for api_key, version in EVERY_REQUEST:
            misbehave((host, int(port)), generator.frame(api_key, version), generator.random)
        assert trouble == []
        metrics, memory = broker.broker.services.metrics, broker.broker.services.memory
        while broker.call(lambda: metrics.connections):
            broker.call(broker.broker._acceptor.sweep, broker.broker._acceptor._now_ms())
        assert broker.call(lambda: memory.used_bytes) == 0
