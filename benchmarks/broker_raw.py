"""A client that costs next to nothing, so that the broker is what is measured.

It sends the same bytes to every broker: a batch is built once and its request encoded once, and
both are sent again and again. Of an answer it reads the error code; fetched records it lets the
kernel drop unread (MSG_TRUNC). A blocking socket a connection, no thread: connections take turns.

    produce   version 10, as librdkafka sends it; acks=all; up to ``in_flight`` requests each
    fetch     version 11, one partition a request, one request at a time, its size at most 1 MiB
"""

import random
import socket
import struct
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import decode_response, encode_request
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from stratalog.protocol.messages.metadata import MetadataRequest
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import Record, build_batch

PRODUCE_VERSION, FETCH_VERSION = 10, 11
FETCH_BYTES_MAX = 1 << 20
CLIENT_ID = "bench"
READY_SECONDS = 120.0
PATIENCE_SECONDS = 60
_OFFSET_MARK = 0x0123456789ABCDEF
_COUNT = struct.Struct(">i")
_TIMEOUT = struct.pack("ll", PATIENCE_SECONDS, 0)


class BrokerFailedError(Exception):
    """A broker did not do what it was asked for; the message says what."""


class Connection:
    """One connection to a broker on this machine."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Patience is the kernel's: with a timeout of Python's own every call is a poll and a call.
        self.socket.settimeout(None)
        for which in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.socket.setsockopt(socket.SOL_SOCKET, which, _TIMEOUT)
        self._answers = self.socket.makefile("rb", 1 << 16)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._answers.close()
        self.socket.close()

    def send(self, buffers: Sequence[Any]) -> None:
        total = sum(map(len, buffers))
        sent = self.socket.sendmsg(buffers)
        if sent == total:
            return
        for buffer in buffers:  # the rest of them: a blocking socket takes it in its own time
            if sent < len(buffer):
                self.socket.sendall(memoryview(buffer)[sent:])
            sent = max(sent - len(buffer), 0)

    def receive(self) -> bytes:
        """The next answer that is small enough to keep."""
        (size,) = _COUNT.unpack(self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        read: bytes | None = self._answers.read(size)
        if read is None or len(read) < size:
            raise EOFError("the broker closed the connection, or was silent for a minute")
        return read

    def ask(self, api_key: ApiKey, version: int, request: Any) -> Any:
        self.send(encode_request(api_key, version, 1, CLIENT_ID, request))
        return decode_response(api_key, version, self.receive())[1]

    def broker_count(self) -> int:
        answer = self.ask(ApiKey.METADATA, 4, MetadataRequest(topics=()))
        return len(answer.brokers)

    def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create it, and wait until all of its partitions are led."""
        self.create_topics([name], partitions=partitions, configs=configs)
        self.wait_until_led(name, partitions)

    def create_topics(
        self, names: Sequence[str], *, partitions: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create them with one request, and wait for nothing else."""
        pairs = [CreatableTopicConfig(*pair) for pair in (configs or {}).items()]
        wanted = [CreatableTopic(name, partitions, 1, (), pairs) for name in names]
        for made in self.ask(ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(wanted)).topics:
            if made.error_code:
                raise BrokerFailedError(f"create topic {made.name}: error {made.error_code}")

    def wait_until_led(self, name: str, partitions: int) -> None:
        # Asked of the leaders themselves: metadata names them before they know.
        asked = [ListOffsetsPartition(number, timestamp=-1) for number in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name, asked)])
        until = time.monotonic() + READY_SECONDS
        pause_s = 0.001
        while time.monotonic() < until:
            (answer,) = self.ask(ApiKey.LIST_OFFSETS, 2, request).topics
            if not any(each.error_code for each in answer.partitions):
                return
            # Of many partitions the answer itself is work, which keeps the broker from its own.
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.2)
        raise BrokerFailedError(f"topic {name} is not led")

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)
        (gone,) = self.ask(ApiKey.DELETE_TOPICS, 3, request).responses
        if gone.error_code:
            raise BrokerFailedError(f"delete topic {name}: error {gone.error_code}")


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one size, sealed together once and sent as often as it takes."""

    data: bytes
    records: int


def make_batch(
    value_bytes: int, batch_bytes: int, *, keys: Sequence[bytes | None] = (None,), seed: int = 1
) -> Batch:
    """As many incompressible records as fit, written now."""
    dice, now_ms = random.Random(seed), time.time_ns() // 1_000_000
    overhead_bytes = 12 if keys == (None,) else 12 + len(keys[0] or b"")
    count = max((batch_bytes - 61) // (value_bytes + overhead_bytes), 1)
    rows = (
        Record(dice.choice(keys), dice.randbytes(value_bytes), (), now_ms) for _ in range(count)
    )
    return Batch(build_batch(rows), count)


class Load(NamedTuple):
    """What one measurement moved, and how long that took."""

    size_bytes: int
    seconds: float


# --- producing ---------------------------------------------------------------------------------


class Producer:
    """Sends one batch to one partition over a connection that others may use in turn."""

    def __init__(
        self, connection: Connection, topic: str, partition: int, batch: Batch, acks: int = -1
    ) -> None:
        request = ProduceRequest(
            acks=acks,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(partition, batch.data)]
                )
            ],
        )
        self.connection = connection
        self.size_bytes = len(batch.data)
        self._frame = encode_request(ApiKey.PRODUCE, PRODUCE_VERSION, 1, CLIENT_ID, request)
        # correlation id, tags, topics, length of the name, the name, partitions, partition
        self._error_at = 4 + 1 + 1 + 1 + len(topic.encode()) + 1 + 4

    def send(self) -> None:
        self.connection.send(self._frame)

    def receive(self) -> None:
        answer = self.connection.receive()
        code = answer[self._error_at : self._error_at + 2]
        if code != b"\0\0":
            raise BrokerFailedError(f"produce: error {int.from_bytes(code, 'big', signed=True)}")

    def produce(self) -> None:
        """One request and its answer."""
        self.send()
        self.receive()

    def fill(self, latencies_ns: "array[int]") -> None:
        """As many requests as there is room for, one after the other, after one that is not told.

        A request is a send and a receive: it is encoded before, its answer, which is as long each
        time, goes to one place, and only its figure is made anew.
        """
        self.send()
        size_bytes = 4 + len(self.connection.receive())
        send, receive_into = self.connection.socket.sendall, self.connection.socket.recv_into
        frame, answer = b"".join(map(bytes, self._frame)), bytearray(size_bytes)  # type: ignore[arg-type]
        error = memoryview(answer)[4 + self._error_at : 4 + self._error_at + 2]
        clock = time.perf_counter_ns
        for number in range(len(latencies_ns)):
            started = clock()
            send(frame)
            received = receive_into(answer)
            ended = clock()
            latencies_ns[number] = ended - started
            if received != size_bytes or any(error):
                raise BrokerFailedError(f"produce: answered {bytes(answer[:received])!r}")


def produce(
    producers: Sequence[Producer], size_bytes: int, seconds: float, *, in_flight: int = 5
) -> Load:
    """All of them in turn, until that much is acknowledged or time is up."""
    started = time.perf_counter()
    until, sent, waiting = started + seconds, 0, 0
    pass_bytes = sum(producer.size_bytes for producer in producers)
    while waiting or not sent:
        is_more = sent < size_bytes and time.perf_counter() < until
        if is_more and waiting < in_flight:
            for producer in producers:
                producer.send()
            waiting, sent = waiting + 1, sent + pass_bytes
            continue
        for producer in producers:
            producer.receive()
            if is_more:
                producer.send()
        if is_more:
            sent += pass_bytes
        else:
            waiting -= 1
    return Load(sent, time.perf_counter() - started)


@contextmanager
def connections(port: int, count: int) -> Iterator[list[Connection]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Connection(port)) for _ in range(count)]


# --- fetching ----------------------------------------------------------------------------------


class Fetcher:
    """Reads one partition that holds equal batches, from its start to its end and again."""

    _scratch = bytearray(FETCH_BYTES_MAX * 2)

    def __init__(
        self,
        connection: Connection,
        topic: str,
        partition: int,
        batch: Batch,
        *,
        bytes_max: int = FETCH_BYTES_MAX,
    ) -> None:
        asked = FetchPartition(
            partition,
            fetch_offset=_OFFSET_MARK,
            partition_max_bytes=min(bytes_max, FETCH_BYTES_MAX),
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        frame = encode_request(ApiKey.FETCH, FETCH_VERSION, 1, CLIENT_ID, request)
        self._socket = connection.socket
        self._frame = bytearray(b"".join(map(bytes, frame)))  # type: ignore[arg-type]
        self._offset_at = self._frame.index(_OFFSET_MARK.to_bytes(8, "big"))
        # size, correlation id, throttle, error, session, topics | name | partitions, partition,
        # error, high watermark, last stable, log start, aborted, preferred replica, records
        self._head = struct.Struct(f">iiihii h{len(topic.encode())}s iihqqqiii")
        self._batch = batch
        self._offset = 0

    def fetch(self) -> int:
        """One request and its answer: how many bytes of whole batches came, 0 at the end."""
        struct.pack_into(">q", self._frame, self._offset_at, self._offset)
        self._socket.sendall(self._frame)
        head = self._socket.recv(self._head.size, socket.MSG_WAITALL)
        if len(head) < self._head.size:
            raise EOFError("the broker closed the connection")
        size, _, _, error, *_ = fields = self._head.unpack(head)
        partition_error, high_watermark = fields[10], fields[11]
        records_bytes: int = fields[16]
        if error or partition_error:
            raise BrokerFailedError(f"fetch: error {error or partition_error}")
        self._drop(size + 4 - self._head.size)
        whole = max(records_bytes, 0) // len(self._batch.data)
        self._offset += whole * self._batch.records
        if self._offset >= high_watermark:
            self._offset = 0
        return whole * len(self._batch.data)

    def _drop(self, size_bytes: int) -> None:
        while size_bytes:
            size_bytes -= self._socket.recv_into(
                self._scratch, min(size_bytes, len(self._scratch)), socket.MSG_TRUNC
            )


def fetch(fetchers: Sequence[Fetcher], size_bytes: int, seconds: float) -> Load:
    """All of them in turn, until that much came or time is up."""
    started = time.perf_counter()
    until, fetched = started + seconds, 0
    while fetched < size_bytes and time.perf_counter() < until:
        for fetcher in fetchers:
            fetched += fetcher.fetch()
    return Load(fetched, time.perf_counter() - started)


def free_ports(count: int) -> list[int]:
    # All are held at once so that the kernel cannot give the same one twice.
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
