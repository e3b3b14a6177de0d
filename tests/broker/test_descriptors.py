"""Connections take the last descriptors of a broker while it is asked for everything that needs
some. When they go, all works again, without a restart, and nothing acknowledged is lost."""

import http.client
import resource
import socket
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hostile import OUTAGE_SECONDS, ServedBroker, encoded, served_broker

from command_line import run_stratalog
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import Record, build_batch
from stratalog.records.columns import decode_records
from stratalog.storage.owner_file import read_owner

TOPIC = "orders"
PARTITIONS = 12
ROOM = 40  # descriptors that connections take before each round
BOUND_SECONDS = 15.0
SMALL_SEGMENTS = [CreatableTopicConfig("internal.segment.bytes", "1000")]
KINDS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
)


class Crowd:
    """A client for each kind of request, and connections that only take descriptors."""

    def __init__(self, broker: ServedBroker, log_dir: Path) -> None:
        self.broker = broker
        self.clients = {kind: broker.client() for kind in KINDS}
        topic = CreatableTopic(TOPIC, PARTITIONS, 1, configs=SMALL_SEGMENTS)
        created = self.clients[ApiKey.CREATE_TOPICS].ask(
            ApiKey.CREATE_TOPICS, CreateTopicsRequest([topic])
        )
        self.topic_id = created.topics[0].topic_id
        host, _, port = read_owner(str(log_dir)).admin.rpartition(":")
        self.admin = host.removeprefix("http://"), int(port)
        self.hoard: list[socket.socket] = []
        self.number = 0
        self.acknowledged: dict[int, dict[int, bytes]] = defaultdict(dict)

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.broker.process.pid}/fd").iterdir()))

    def limit(self) -> int:
        """From now on the broker may open this many files. Before that, logs have as many open as
        they ever will: what they are allowed goes by the limit that the broker was started with."""
        before = -1
        while before != self.descriptors:
            before = self.descriptors
            for _ in range(4):
                self.answers(self.send_all(0))
        allowed = self.descriptors + ROOM
        pid = self.broker.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (allowed, hard))
        return allowed

    def take(self, allowed: int, left: int) -> None:
        """Take all descriptors but so many."""
        deadline = time.monotonic() + BOUND_SECONDS
        while (missing := allowed - left - self.descriptors) > 0 and time.monotonic() < deadline:
            self.hoard += [socket.create_connection(self.broker.address) for _ in range(missing)]
            time.sleep(0.02)
        assert self.hoard

    def let_go(self) -> None:
        for each in self.hoard:
            each.close()
        self.hoard.clear()

    def bodies(self) -> dict[ApiKey, Any]:
        """One request of each kind."""
        self.number += 1
        batch = build_batch([Record(b"k", b"%d" % self.number * 100, timestamp_ms=0)])
        data = [PartitionProduceData(each, batch) for each in range(PARTITIONS)]
        read = [FetchPartition(each, fetch_offset=0) for each in range(1, PARTITIONS)]
        cut = [DeleteRecordsPartition(0, -1)]
        before = DeleteTopicState(f"made-{self.number - 1}")
        return {
            ApiKey.PRODUCE: ProduceRequest(
                acks=-1,
                timeout_ms=60_000,
                topic_data=[TopicProduceData(TOPIC, self.topic_id, data)],
            ),
            ApiKey.FETCH: FetchRequest(
                max_wait_ms=0, session_epoch=-1, topics=[FetchTopic(TOPIC, self.topic_id, read)]
            ),
            ApiKey.CREATE_TOPICS: CreateTopicsRequest(
                [CreatableTopic(f"made-{self.number}", 3, 1)]
            ),
            ApiKey.DELETE_TOPICS: DeleteTopicsRequest(topics=[before], timeout_ms=30_000),
            ApiKey.DELETE_RECORDS: DeleteRecordsRequest([DeleteRecordsTopic(TOPIC, cut)], 60_000),
        }

    def send_all(self, pause_seconds: float = 0.2) -> http.client.HTTPConnection:
        for kind, body in self.bodies().items():
            self.clients[kind].send(encoded(kind, body))
        admin = http.client.HTTPConnection(*self.admin, timeout=OUTAGE_SECONDS)
        admin.request("GET", "/health")
        time.sleep(pause_seconds)  # so that all of it meets a broker without descriptors
        return admin

    def answers(self, admin: http.client.HTTPConnection) -> dict[ApiKey, list[int]]:
        """The error codes of each kind; [-1] if the broker has closed the connection."""
        assert admin.getresponse().status in (200, 503), "who waited for the admin port is answered"
        admin.close()
        return {kind: self.answer(kind) for kind in KINDS}

    def answer(self, kind: ApiKey) -> list[int]:
        try:
            found = self.clients[kind].answer(kind, SUPPORTED[kind].highest)
        except ConnectionError:
            self.clients[kind] = self.broker.client()
            return [-1]
        if kind is ApiKey.PRODUCE:
            partitions = found.responses[0].partition_responses
            for each in partitions:
                if each.error_code == 0:
                    value = b"%d" % self.number * 100
                    self.acknowledged[each.index][each.base_offset] = value
            return [each.error_code for each in partitions]
        if kind is ApiKey.FETCH:
            return [found.error_code, *(each.error_code for each in found.responses[0].partitions)]
        if kind is ApiKey.DELETE_RECORDS:
            return [each.error_code for each in found.topics[0].partitions]
        results = found.topics if kind is ApiKey.CREATE_TOPICS else found.responses
        return [each.error_code for each in results]

    def wait_until_all_works(self) -> None:
        """Two rounds in which nothing is refused: what one makes the next deletes."""
        deadline = time.monotonic() + BOUND_SECONDS
        good = 0
        while good < 2:
            refused = {
                kind: codes for kind, codes in self.answers(self.send_all()).items() if any(codes)
            }
            good = 0 if refused else good + 1
            assert time.monotonic() < deadline, refused

    def stored(self) -> dict[int, dict[int, bytes | None]]:
        """By partition and offset, of all but the first partition, whose records are deleted."""
        return {partition: self.read(partition) for partition in range(1, PARTITIONS)}

    def read(self, partition: int) -> dict[int, bytes | None]:
        found: dict[int, bytes | None] = {}
        client = self.clients[ApiKey.FETCH]
        while True:
            wanted = [FetchPartition(partition, fetch_offset=max(found, default=-1) + 1)]
            topics = [FetchTopic(TOPIC, self.topic_id, wanted)]
            answer = client.ask(ApiKey.FETCH, FetchRequest(session_epoch=-1, topics=topics))
            (part,) = answer.responses[0].partitions
            records = decode_records(bytes(part.records or b""))
            if not records:
                return found
            found |= {record.offset: record.value for record in records}


@pytest.mark.parametrize("rounds", [(0,), pytest.param((0, 1, 3, 6), marks=pytest.mark.deep)])
def test_a_broker_that_connections_have_left_few_descriptors_works_again_when_they_go(
    rounds: tuple[int, ...], tmp_path: Path
) -> None:
    """In each of ``rounds`` so many descriptors are left."""
    log_dir = tmp_path / "broker" / "logs"
    with served_broker(
        tmp_path / "broker",
        files_max=200,
        admin_listener="127.0.0.1:0",
        log_flush_on_ack="true",
        log_segment_delete_delay_ms="100",
    ) as broker:
        crowd = Crowd(broker, log_dir)
        crowd.wait_until_all_works()
        allowed = crowd.limit()
        for left in rounds:
            crowd.take(allowed, left)
            admin = crowd.send_all()
            crowd.let_go()
            crowd.answers(admin)
            crowd.wait_until_all_works()
        assert any("Too many open files" in line for line in broker.log_lines())
        found = crowd.stored()
        for partition, records in crowd.acknowledged.items():
            assert partition == 0 or records.items() <= found[partition].items()
        assert not [line for line in broker.log_lines() if "offline" in line]
        for client in crowd.clients.values():
            client.close()
    verified = run_stratalog("log", "verify", str(log_dir))
    assert verified.exit_code == 0, verified.text + verified.stderr
