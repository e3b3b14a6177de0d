"""Requests put to a broker one after the other, and its answers in a form that can be compared.

A *scenario* is a function that talks to a broker through a ``Talk``. What it asks with ``ask`` is
recorded under ``api version step``; what it asks with ``have`` only prepares the ground. The same
scenarios are put to Apache Kafka, whose answers are kept in ``golden/answers.json``, and to us.

An answer is recorded as the values of its fields, those at their defaults left out. Whatever a
broker chooses freely (ids, ports, times, its sentences) is replaced by a placeholder, counted by
first appearance within the scenario, so that it still has to be the same wherever it returns.
"""

import itertools
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from recorded_requests_plain import CLOSED, NO_ANSWER, Placeholders, Plain, plain

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import decode_response, encode_request
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.find_coordinator import FindCoordinatorRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.index import CODECS
from stratalog.protocol.messages.join_group import JoinGroupResponse
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

CLIENT_ID = "recorder"
ANSWER_SECONDS = 120
IN_VAIN_SECONDS = 3
NOT_COORDINATING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
TRIES = 2400
TRY_SECONDS = 0.025

# Set at both brokers: what makes their answers comparable, quick and the same every time.
BROKER_CONFIGS = {
    "node.id": "1",
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "log.retention.ms": "-1",
    "log.message.timestamp.before.max.ms": "9223372036854775807",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
}

_API_KEYS = {codecs.module: ApiKey(key) for key, codecs in CODECS.items()}


class ClosedError(Exception):
    """The broker closed the connection instead of answering."""


def api_of(request: Any) -> ApiKey:
    """The API that a request is of: its module is named after it."""
    return _API_KEYS[type(request).__module__.rpartition(".")[2]]


def every(api_key: ApiKey, since: int = 0) -> list[int]:
    """All its versions, from ``since`` on."""
    return list(range(max(since, SUPPORTED[api_key].lowest), SUPPORTED[api_key].highest + 1))


def ends(api_key: ApiKey, since: int = 0) -> list[int]:
    """Its lowest version that is not below ``since``, and its highest."""
    versions = every(api_key, since)
    return sorted({versions[0], versions[-1]})


class Connection:
    """One connection of one client; answers come in the order of the requests."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count(1)

    @property
    def local_port(self) -> int:
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        self._socket.close()

    def send(self, version: int, request: Any, client_id: str | None = CLIENT_ID) -> "Pending":
        """Send a request and come back; the answer is read later."""
        api_key, correlation_id = api_of(request), next(self._correlation_ids)
        frame = encode_request(api_key, version, correlation_id, client_id, request)
        pending = Pending(self, api_key, version, correlation_id)
        try:
            self._socket.sendall(b"".join(bytes(memoryview(part)) for part in frame))
        except ConnectionError:
            pending.is_refused = True
        return pending

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are; a broker that has gone away meanwhile is seen when reading."""
        with suppress(ConnectionError):
            self._socket.sendall(data)

    def finish_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def be_patient(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing arrives, and nothing closes, for that long."""
        return not select.select([self._socket], [], [], seconds)[0]

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._socket.recv(min(size - len(data), 1 << 20))
            except ConnectionError:
                piece = b""
            if not piece:
                raise ClosedError
            data += piece
        return bytes(data)


@dataclass
class Pending:
    """A request that has been sent."""

    connection: Connection
    api_key: ApiKey
    version: int
    correlation_id: int
    is_refused: bool = False

    def receive(self) -> Any:
        """Wait for the answer."""
        if self.is_refused:
            raise ClosedError
        frame = self.connection.receive_frame()
        correlation_id, response = decode_response(self.api_key, self.version, frame)
        assert correlation_id == self.correlation_id, "answers come in the order of requests"
        return response


class Talk:
    """One scenario's conversation with one broker, and what was recorded of it."""

    def __init__(self, scenario: str, host: str, port: int) -> None:
        self.scenario = scenario
        self.answers: dict[str, Plain] = {}
        self._host = host
        self._port = port
        self._connections: list[Connection] = []
        self._main = self.connect()
        self._metadata = self.have(MetadataRequest(topics=[]))
        self.node_id = int(self._metadata.brokers[0].node_id)
        self.count_anew()

    def connect(self) -> Connection:
        """Another client."""
        connection = Connection(self._host, self._port)
        self._connections.append(connection)
        return connection

    def count_anew(self) -> None:
        """Number placeholders from one again, so that what is repeated is recorded alike."""
        self._places = Placeholders(
            host=self._host,
            port=self._port,
            node_id=self.node_id,
            cluster_id=self._metadata.cluster_id,
        )

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    # --- asking ------------------------------------------------------------------------------

    def ask(self, step: str, version: int, request: Any, on: Connection | None = None) -> Any:
        """Ask, record the answer, and give it; None if the broker closed the connection."""
        return self.answer(step, (on or self._main).send(version, request))

    def ask_in_vain(self, step: str, versions: Sequence[int], request: Any) -> None:
        """Ask what may never be answered: a little patience is enough."""
        for version in versions:
            connection = self.connect()
            connection.be_patient(IN_VAIN_SECONDS)
            self.answer(step, connection.send(version, request))

    def ask_ends(self, step: str, request: Any, since: int = 0) -> Any:
        """Ask in the lowest version and in the highest; give the answer of the latter."""
        return self.ask_versions(step, ends(api_of(request), since), request)

    def ask_every(self, step: str, request: Any, since: int = 0) -> Any:
        """Ask in every version; give the answer of the highest."""
        return self.ask_versions(step, every(api_of(request), since), request)

    def ask_versions(self, step: str, versions: Sequence[int], request: Any) -> Any:
        answer = None
        for version in versions:
            answer = self.ask(step, version, request)
        return answer

    def ask_about_all(self, step: str, versions: Sequence[int], request: Any) -> None:
        """Ask about all there is; record of it what the scenario has made, by its names."""
        for version in versions:
            answer = plain(self.have(request, version), self._places, self.scenario)
            self.record(step, api_of(request), version, answer)

    def ask_until(
        self, step: str, version: int, request: Any, is_done: Callable[[Any], bool]
    ) -> Any:
        """Ask again and again until an answer is as wanted; record that one, or the last."""
        answer = self.have_until(request, is_done, version=version)
        self.record(step, api_of(request), version, self._plain(answer))
        return answer

    def answer(self, step: str, pending: Pending) -> Any:
        """Wait for the answer to what was sent before, and record it."""
        try:
            answer = pending.receive()
        except ClosedError:
            self.record(step, pending.api_key, pending.version, CLOSED)
            self._replace(pending.connection)
            return None
        except TimeoutError:
            self.record(step, pending.api_key, pending.version, NO_ANSWER)
            self._replace(pending.connection)
            return None
        self.record(step, pending.api_key, pending.version, self._plain(answer))
        return answer

    def ask_raw(self, step: str, data: bytes, api_key: ApiKey | None = None, version: int = -1):
        """Send bytes on a connection of their own, and nothing more; record what comes back."""
        connection = self.connect()
        connection.send_raw(data)
        connection.finish_sending()
        recorded: Plain
        try:
            frame = connection.receive_frame()
            if api_key is None:
                recorded = frame.hex()
            else:
                recorded = self._plain(decode_response(api_key, version, frame)[1])
        except ClosedError:
            recorded = CLOSED
        except TimeoutError:
            recorded = NO_ANSWER
        self.record(step, api_key, version, recorded)

    def ask_without_answer(self, step: str, version: int, request: Any) -> None:
        """Ask what has no answer unless it fails: the next request on the connection tells."""
        connection = self.connect()
        pending = connection.send(version, request)
        following = connection.send(0, MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
        try:
            following.receive()
            recorded = "no answer, and the connection goes on"
        except ClosedError:
            recorded = CLOSED
        self.record(step, pending.api_key, version, recorded)

    def record(self, step: str, api_key: ApiKey | None, version: int, answer: Plain) -> None:
        name = step if api_key is None else f"{CODECS[api_key].module} v{version} {step}"
        assert name not in self.answers, f"two steps are called {name!r}"
        self.answers[name] = answer

    def _plain(self, answer: Any) -> Plain:
        return plain(answer, self._places)

    def _replace(self, connection: Connection) -> None:
        if connection is self._main:
            self._main = self.connect()

    def order_of(self, member_id: str) -> tuple[int, str]:
        """Sorts ids of members by their first appearance."""
        return self._places.place_of(member_id)

    # --- preparing ---------------------------------------------------------------------------

    def have(self, request: Any, version: int | None = None, on: Connection | None = None) -> Any:
        """Ask without recording."""
        if version is None:
            version = SUPPORTED[api_of(request)].highest
        answer = (on or self._main).send(version, request).receive()
        if isinstance(answer, JoinGroupResponse):
            plain(answer, self._places)  # so that members are counted in the order of joining
        return answer

    def have_until(
        self, request: Any, is_done: Callable[[Any], bool], version: int | None = None
    ) -> Any:
        """Ask without recording until the answer is as wanted, or for too long."""
        tick = threading.Event()  # never set: a bounded wait between questions
        answer = None
        for _ in range(TRIES):
            answer = self.have(request, version)
            if is_done(answer):
                break
            tick.wait(TRY_SECONDS)
        return answer

    def have_topic(self, topic: str, partitions: int = 1, **configs: str) -> bytes:
        """Make a topic, wait until it is led, and give its id."""
        settings = [
            CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()
        ]
        new = CreatableTopic(topic, partitions, 1, configs=settings)
        created = self.have(CreateTopicsRequest([new])).topics[0]
        assert created.error_code == 0, created
        self.have_led(topic, partitions)
        return bytes(created.topic_id)

    def have_led(self, topic: str, partitions: int) -> None:
        """Wait until a topic's partitions have leaders."""
        question = MetadataRequest([MetadataRequestTopic(name=topic)], False)

        def is_led(answer: Any) -> bool:
            led = [p for p in answer.topics[0].partitions if not p.error_code and p.leader_id >= 0]
            return len(led) == partitions

        self.have_until(question, is_led)
        # The news of a leader comes before it leads: ask it for something that only it knows.
        latest = [ListOffsetsPartition(index, -1, -1) for index in range(partitions)]
        asked = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, latest)], 10_000)
        self.have_until(
            asked, lambda answer: not any(p.error_code for p in answer.topics[0].partitions)
        )

    def have_no_topic(self, topic: str) -> None:
        """Wait until a topic is gone."""
        question = MetadataRequest([MetadataRequestTopic(name=topic)], False)
        self.have_until(question, lambda answer: answer.topics[0].error_code != 0)

    def have_records(self, topic: str, *batches: bytes, partition: int = 0) -> None:
        """Append batches, one by one."""
        for batch in batches:
            data = TopicProduceData(topic, partition_data=[PartitionProduceData(partition, batch)])
            answer = self.have_until(
                ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]),
                lambda answer: answer.responses[0].partition_responses[0].error_code == 0,
                version=12,
            )
            assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def have_coordinator(self, group: str) -> None:
        """Wait until groups can be coordinated: the topic of offsets is made on first use."""
        question = FindCoordinatorRequest(coordinator_keys=[group])
        self.have_until(question, lambda answer: answer.coordinators[0].error_code == 0)
        asked = HeartbeatRequest(group, 0, "nobody")
        self.have_until(asked, lambda answer: answer.error_code not in NOT_COORDINATING)


Scenario = Callable[[Talk], None]


@contextmanager
def talking(scenario: str, host: str, port: int) -> Iterator[Talk]:
    talk = Talk(scenario, host, port)
    try:
        yield talk
    finally:
        talk.close()


def replay(scenarios: dict[str, Scenario], host: str, port: int) -> dict[str, dict[str, Plain]]:
    """Put all scenarios to one broker: its answers, by scenario and step."""
    answers = {}
    for name, scenario in scenarios.items():
        with talking(name, host, port) as talk:
            scenario(talk)
            answers[name] = talk.answers
    return answers
