"""Produced batches that are large or compressed: checked beside the loop, appended in order."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_fixture import RunningBroker, running_broker
from stratalog.metadata.topics import NewTopic
from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import decode_response, encode_request
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import Codec, Record, build_batch
from stratalog.storage.appending import DECOMPRESSED_MAX_BYTES

TOPIC = "orders"
LARGE = 300_000
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


class Producer:
    """Sends requests without waiting, and reads their answers."""

    def __init__(self, broker: RunningBroker) -> None:
        host, port = broker.bootstrap_server.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=120)

    def send(self, *batches: bytes) -> None:
        """One request with a batch for each of the first partitions."""
        parts = tuple(PartitionProduceData(index, each) for index, each in enumerate(batches))
        topics = (TopicProduceData(name=TOPIC, partition_data=parts),)
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
        frame = encode_request(ApiKey.PRODUCE, 9, 1, "me", request)
        self._socket.sendall(b"".join(frame))  # type: ignore[arg-type]

    def answer(self) -> Any:
        """What is said of each partition."""
        size = int.from_bytes(self._read(4), "big")
        return decode_response(ApiKey.PRODUCE, 9, self._read(size))[1].responses[0][2]

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            assert piece, "the broker has closed the connection"
            found += piece
        return found

    def close(self) -> None:
        self._socket.close()


@contextmanager
def producer_of(path: Path, **settings: str) -> Iterator[tuple[RunningBroker, Producer]]:
    with running_broker(path, **settings) as broker:
        topics = broker.broker.services.topics
        broker.call(topics.create, [NewTopic(name=TOPIC, partition_count=2)])
        producer = Producer(broker)
        try:
            yield broker, producer
        finally:
            producer.close()


def batch(size_bytes: int, codec: Codec = Codec.NONE, *, value: bytes | None = None) -> bytes:
    return build_batch([Record(b"k", value or os.urandom(size_bytes), (), 1)], codec=codec)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_batches_of_a_connection_keep_their_order_whatever_their_checking_takes(
    tmp_path: Path, codec: Codec
) -> None:
    with producer_of(tmp_path) as (_, producer):
        sizes = [100, LARGE, 100, LARGE, LARGE, 100]
        for each in sizes:
            producer.send(batch(each, codec if each == LARGE else Codec.NONE))

        answers = [producer.answer()[0] for _ in sizes]

    assert [each.error_code for each in answers] == [0] * len(sizes)
    assert [each.base_offset for each in answers] == list(range(len(sizes)))


def test_what_comes_beside_a_large_batch_in_a_request_is_stored_unharmed(tmp_path: Path) -> None:
    with producer_of(tmp_path) as (broker, producer):
        small = batch(100)
        # The second request goes where the first one was received.
        producer.send(small, batch(LARGE, Codec.LZ4))
        producer.send(batch(100), batch(100))

        codes = [each.error_code for _ in range(2) for each in producer.answer()]

        log = next(iter(broker.broker.services.logs))
        stored = broker.call(log.segments.active.slice(0, len(small)).read)
    assert codes == [0, 0, 0, 0]
    assert stored[17:] == small[17:]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_small_batch_that_is_large_inside_is_stored(tmp_path: Path, codec: Codec) -> None:
    with producer_of(tmp_path) as (_, producer):
        producer.send(batch(0, codec, value=bytes(2_000_000)))
        (stored,) = producer.answer()

    assert (stored.error_code, stored.base_offset) == (0, 0)


def test_a_batch_that_is_larger_inside_than_could_be_cleaned_is_refused(tmp_path: Path) -> None:
    with producer_of(tmp_path) as (_, producer):
        producer.send(batch(0, Codec.ZSTD, value=bytes(DECOMPRESSED_MAX_BYTES)))
        (refused,) = producer.answer()

    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_large_batch_that_is_refused_says_why_and_changes_nothing(tmp_path: Path) -> None:
    with producer_of(tmp_path) as (_, producer):
        broken = bytearray(batch(LARGE, Codec.ZSTD))
        broken[-1] ^= 1
        producer.send(bytes(broken), batch(LARGE, Codec.ZSTD))
        refused, stored = producer.answer()
        producer.send(batch(LARGE, Codec.ZSTD))
        (after,) = producer.answer()

    assert refused.error_code == ErrorCode.CORRUPT_MESSAGE
    assert (stored.error_code, stored.base_offset) == (0, 0)
    assert (after.error_code, after.base_offset) == (0, 0)
