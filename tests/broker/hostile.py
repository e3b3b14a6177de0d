"""A broker in a process of its own, clients that misbehave, and one that does not and is to be
served all the while."""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import decode_response, encode_request
from stratalog.protocol.messages.api_versions import ApiVersionsRequest
from stratalog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import Record, build_batch

START_SECONDS = 120
HEALTHY = "healthy"
# What the broker may do, in seconds of a processor, before an ordinary client has had its turn: far
# above what it takes. How long that lasts is for the machine to say, which others keep busy too.
SERVED_WITHIN_SECONDS = 5.0
# And if it does nothing at all, this is an outage on any machine.
OUTAGE_SECONDS = 60.0

SETTINGS = {
    "log.initial.task.delay.ms": "3600000",  # records of 1970 are not to be deleted meanwhile
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "admin.listener": "",
    "log.dir.reserve.bytes": "0",
    "log.flush.on.ack": "false",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "socket.listen.backlog.size": "2000",
}


class Client:
    """Speaks the protocol as it is; waits for each answer."""

    def __init__(self, address: tuple[str, int], timeout: float = 120) -> None:
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, key: ApiKey, body: Any, version: int | None = None) -> Any:
        version = SUPPORTED[key].highest if version is None else version
        self.send(encoded(key, body, version))
        return self.answer(key, version)

    def answer(self, key: ApiKey, version: int) -> Any:
        (size,) = struct.unpack(">i", self._read(4))
        return decode_response(key, version, self._read(size))[1]

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _read(self, size_bytes: int) -> bytes:
        data = b""
        while len(data) < size_bytes:
            part = self.socket.recv(size_bytes - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data

    def is_closed_by_broker(self, timeout: float = 60) -> bool:
        self.socket.settimeout(timeout)
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encoded(key: ApiKey, body: Any, version: int | None = None) -> bytes:
    version = SUPPORTED[key].highest if version is None else version
    return b"".join(encode_request(key, version, 7, "me", body))  # type: ignore[arg-type]


class Healthy:
    """An ordinary client with one long-lived connection: produces, fetches, asks for metadata."""

    def __init__(self, broker: "ServedBroker") -> None:
        self._broker = broker
        self._client = Client(broker.address, OUTAGE_SECONDS)
        topic = f"{HEALTHY}-{time.monotonic_ns()}"
        created = self._client.ask(
            ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[CreatableTopic(topic, 1, 1)])
        )
        assert created.topics[0].error_code == 0
        self._topic = topic
        self._topic_id = created.topics[0].topic_id
        self._offset = 0
        self.slowest_seconds = 0.0

    def is_served(self) -> float:
        """What the broker did during a round, in seconds; raises if any of it failed."""
        began = self._broker.cpu_seconds()
        batch = build_batch([Record(b"k", b"%d" % self._offset, timestamp_ms=0)])
        data = [PartitionProduceData(0, batch)]
        produced = self._client.ask(
            ApiKey.PRODUCE,
            ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[TopicProduceData(self._topic, self._topic_id, data)],
            ),
        )
        partition = produced.responses[0].partition_responses[0]
        assert (partition.error_code, partition.base_offset) == (0, self._offset), partition
        fetched = self._client.ask(
            ApiKey.FETCH,
            FetchRequest(
                max_wait_ms=10_000,
                min_bytes=1,
                session_epoch=-1,
                topics=[
                    FetchTopic(
                        self._topic, self._topic_id, [FetchPartition(0, fetch_offset=self._offset)]
                    )
                ],
            ),
        )
        (found,) = fetched.responses[0].partitions
        assert b"%d" % self._offset in bytes(found.records), found
        self._offset += 1
        metadata = self._client.ask(
            ApiKey.METADATA, MetadataRequest([MetadataRequestTopic(name=self._topic)])
        )
        assert metadata.topics[0].error_code == 0, metadata
        took = self._broker.cpu_seconds() - began
        self.slowest_seconds = max(self.slowest_seconds, took)
        return took

    def close(self) -> None:
        self._client.close()


class ServedBroker:
    """``stratalog serve`` in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]", address: tuple[str, int], log: Path):
        self.process = process
        self.address = address
        self.log = log

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def cpu_seconds(self) -> float:
        """Of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        return self._status("VmRSS")

    def peak_rss_bytes(self) -> int:
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) << 10
        raise AssertionError(f"{name} is not told")

    def sockets(self) -> int:
        """How many of its descriptors are sockets."""
        count = 0
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                count += str(link.readlink()).startswith("socket:")
        return count

    def wait_for_sockets(self, count: int, seconds: float) -> int:
        """Until no more than ``count`` are open; who has gone while waiting is swept out."""
        deadline = time.monotonic() + seconds
        while (found := self.sockets()) > count and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def log_lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def client(self) -> Client:
        return Client(self.address)


@contextmanager
def served_broker(
    directory: Path, *, files_max: int | None = None, **settings: str
) -> Iterator[ServedBroker]:
    """``files_max`` is how many files the process may open."""
    named = {**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}
    arguments = [f"--set={name}={value}" for name, value in named.items()]
    log = directory / "stderr"
    directory.mkdir(exist_ok=True)
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*_limited(files_max), sys.executable, "-m", "stratalog", "serve",
             f"--log-dir={directory / 'logs'}", *arguments],
            stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line, f"the broker did not start: {log.read_text()}"
        host, _, port = line.split()[-1].rpartition(":")
        broker = ServedBroker(process, (host, int(port)), log)
        yield broker
        assert broker.is_running, f"the broker is gone: {log.read_text()[-2000:]}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_SECONDS) == 0, log.read_text()[-2000:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def _limited(files_max: int | None) -> list[str]:
    if files_max is None:
        return []
    return ["sh", "-c", f'ulimit -n {files_max}; exec "$0" "$@"']


def answers_api_versions(address: tuple[str, int]) -> bool:
    with Client(address) as client:
        return client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0).error_code == 0
