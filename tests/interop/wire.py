"""The few Kafka requests the interop tests send by hand, over a plain blocking socket.

Hand-made so that the bytes of a produced batch reach the broker exactly as a test wrote them: every
client library builds its own. All versions used here are the last before the compact encodings, so
one reader and one writer of fixed-width fields are enough.

    frame    i32 size | request
    request  i16 api key | i16 version | i32 correlation id | string client id | body
    response i32 correlation id | body
"""

import itertools
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

PRODUCE, METADATA, FIND_COORDINATOR, CREATE_TOPICS, DELETE_RECORDS = 0, 3, 10, 19, 21
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 22, 24, 26

TRANSACTION_COORDINATOR = 1
# Answers that mean "ask again": coordinator loading or unknown, leader unknown, transaction busy.
RETRIABLE = {5, 6, 3, 14, 15, 16, 51}
TRIES = 600

T = TypeVar("T")


class WireError(Exception):
    """The broker answered with an error code, or not at all."""

    def __init__(self, what: str, code: int, message: str | None = None) -> None:
        super().__init__(what, code, message)
        self.what = what
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Produced:
    """One batch as it was sent, and what the broker said it did with it."""

    batch: bytes
    base_offset: int
    log_append_time_ms: int


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(f">{layout}", self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def string(self) -> str | None:
        size = self.take("h")
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at].decode()


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _array(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


class KafkaConnection:
    """One connection, one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=120)
        self._correlation_ids = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def broker_ids(self) -> list[int]:
        """The brokers that the cluster's metadata names."""
        answer = self._ask(METADATA, 1, _array([]))
        ids = []
        for _ in range(answer.take("i")):
            ids.append(answer.take("i"))
            answer.string()
            answer.take("i")
            answer.string()
        return ids

    def create_topic(self, topic: str, configs: Mapping[str, str], partitions: int = 1) -> None:
        """Create a topic of one replica."""
        pairs = [_string(name) + _string(value) for name, value in configs.items()]
        body = _string(topic) + struct.pack(">ihi", partitions, 1, 0) + _array(pairs)
        answer = self._ask(CREATE_TOPICS, 4, _array([body]) + struct.pack(">ib", 30_000, 0))
        answer.take("i")
        for _ in range(answer.take("i")):
            answer.string()
            code, message = answer.take("h"), answer.string()
            if code:
                raise WireError(f"create topic {topic}", code, message)

    def produce(
        self, topic: str, batch: bytes, *, partition: int = 0, transactional_id: str | None = None
    ) -> Produced:
        """Send one batch, byte for byte, and wait until it is in the log (``acks=all``)."""
        records = struct.pack(">ii", partition, len(batch)) + batch
        body = _string(transactional_id) + struct.pack(">hi", -1, 30_000)
        body += _array([_string(topic) + _array([records])])
        return _retry(lambda: self._produce_once(topic, body, batch))

    def _produce_once(self, topic: str, body: bytes, batch: bytes) -> Produced:
        answer = self._ask(PRODUCE, 8, body)
        assert answer.take("i") == 1
        answer.string()
        assert answer.take("i") == 1
        answer.take("i")
        code, base_offset, log_append_time_ms = answer.take("h"), answer.take("q"), answer.take("q")
        if code:
            answer.take("q")
            problems = [(answer.take("i"), answer.string()) for _ in range(answer.take("i"))]
            raise WireError(f"produce to {topic}", code, f"{problems} {answer.string()}")
        return Produced(batch, base_offset, log_append_time_ms)

    def init_producer_id(self, transactional_id: str | None = None) -> tuple[int, int]:
        """A producer id and its epoch, for idempotent or transactional batches."""
        if transactional_id is not None:
            _retry(lambda: self._find_transaction_coordinator(transactional_id))
        return _retry(lambda: self._init_producer_id_once(transactional_id))

    def _find_transaction_coordinator(self, transactional_id: str) -> None:
        body = _string(transactional_id) + struct.pack(">b", TRANSACTION_COORDINATOR)
        answer = self._ask(FIND_COORDINATOR, 2, body)
        answer.take("i")
        code, message = answer.take("h"), answer.string()
        if code:
            raise WireError("find coordinator", code, message)

    def _init_producer_id_once(self, transactional_id: str | None) -> tuple[int, int]:
        answer = self._ask(
            INIT_PRODUCER_ID, 1, _string(transactional_id) + struct.pack(">i", 900_000)
        )
        answer.take("i")
        code, producer_id, epoch = answer.take("h"), answer.take("q"), answer.take("h")
        if code:
            raise WireError("init producer id", code)
        return producer_id, epoch

    def add_partition_to_txn(
        self, transactional_id: str, producer: tuple[int, int], topic: str, partition: int = 0
    ) -> None:
        """Tell the coordinator that the transaction will write to this partition."""
        body = _string(transactional_id) + struct.pack(">qh", *producer)
        body += _array([_string(topic) + _array([struct.pack(">i", partition)])])

        def once() -> None:
            answer = self._ask(ADD_PARTITIONS_TO_TXN, 2, body)
            answer.take("i")
            for _ in range(answer.take("i")):
                answer.string()
                for _ in range(answer.take("i")):
                    answer.take("i")
                    if code := answer.take("h"):
                        raise WireError("add partition to transaction", code)

        _retry(once)

    def end_txn(self, transactional_id: str, producer: tuple[int, int], *, commit: bool) -> None:
        """Commit or abort; the markers are written soon after the answer."""
        body = _string(transactional_id) + struct.pack(">qhb", *producer, commit)

        def once() -> None:
            answer = self._ask(END_TXN, 2, body)
            answer.take("i")
            if code := answer.take("h"):
                raise WireError("end transaction", code)

        _retry(once)

    def delete_records(self, topic: str, before_offset: int, partition: int = 0) -> None:
        """Raise the log start offset of a partition."""
        body = _array(
            [_string(topic) + _array([struct.pack(">iq", partition, before_offset)])]
        ) + struct.pack(">i", 30_000)
        answer = self._ask(DELETE_RECORDS, 1, body)
        answer.take("i")
        assert answer.take("i") == 1
        answer.string()
        assert answer.take("i") == 1
        answer.take("i")
        answer.take("q")
        if code := answer.take("h"):
            raise WireError(f"delete records of {topic}", code)

    def _ask(self, api_key: int, version: int, body: bytes) -> _Reader:
        correlation_id = next(self._correlation_ids)
        request = struct.pack(">hhi", api_key, version, correlation_id) + _string("interop") + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._receive(4))
        answer = _Reader(self._receive(size))
        if answer.take("i") != correlation_id:
            raise WireError("an answer to another request", -1)
        return answer

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise WireError("the broker closed the connection", -1)
            data += piece
        return bytes(data)


def _retry(step: Callable[[], T]) -> T:
    """Repeat a request while the broker says that it is not ready for it, within bounds."""
    tick = threading.Event()
    for _ in range(TRIES):
        try:
            return step()
        except WireError as error:
            if error.code not in RETRIABLE:
                raise
            last = error
        tick.wait(0.1)
    raise last
