"""Small requests that ask for much: to be decompressed, listed, remembered or waited for. What they
may cost is bounded, and others are served meanwhile."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hostile import (
    SERVED_WITHIN_SECONDS,
    Client,
    Healthy,
    ServedBroker,
    answers_api_versions,
    encoded,
    served_broker,
)
from hostile_batches import bomb

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import ELEMENTS_MAX
from stratalog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from stratalog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records import Codec, Record, build_batch

MIB = 1 << 20
RSS_BYTES_MAX = 256 * MIB
PEAK_BYTES_MAX = 900 * MIB
LONG_MS = 2**31 - 1
BOMBS = {
    Codec.GZIP: 300 * MIB,
    Codec.SNAPPY: 20 * MIB + 1,
    Codec.LZ4: 240 * MIB,
    Codec.ZSTD: 1024 * MIB,
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served_broker(tmp_path_factory.mktemp("bombs") / "broker") as found:
        yield found


@pytest.fixture(scope="module")
def topic_id(broker: ServedBroker) -> bytes:
    with broker.client() as client:
        request = CreateTopicsRequest(topics=[CreatableTopic("orders", 3, 1)])
        found: bytes = client.ask(ApiKey.CREATE_TOPICS, request).topics[0].topic_id
        return found


@contextmanager
def others_served(
    broker: ServedBroker, within_seconds: float = SERVED_WITHIN_SECONDS
) -> Iterator[None]:
    """Another client goes on all the while, and never waits for long."""
    healthy = Healthy(broker)
    is_over = threading.Event()
    failures: list[BaseException] = []

    def go_on() -> None:
        try:
            while not is_over.is_set():
                healthy.is_served()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        healthy.close()
    assert failures == []
    assert healthy.slowest_seconds < within_seconds


def produced(client: Client, topic_id: bytes, *batches: bytes) -> list[int]:
    data = [PartitionProduceData(index, batch) for index, batch in enumerate(batches)]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData("orders", topic_id, data)]
    )
    (topic,) = client.ask(ApiKey.PRODUCE, request).responses
    return [partition.error_code for partition in topic.partition_responses]


@pytest.mark.parametrize("codec", BOMBS, ids=lambda codec: codec.name)
def test_a_batch_that_holds_more_than_it_may_is_refused(
    broker: ServedBroker, topic_id: bytes, codec: Codec
) -> None:
    data = bomb(codec, BOMBS[codec])
    assert len(data) < MIB, "else it is its own size that is refused"
    with others_served(broker), broker.client() as client:
        assert 0 not in produced(client, topic_id, data)
    assert broker.rss_bytes() < RSS_BYTES_MAX
    assert broker.peak_rss_bytes() < PEAK_BYTES_MAX


def test_many_bombs_one_after_another_leave_nothing(broker: ServedBroker, topic_id: bytes) -> None:
    data = bomb(Codec.ZSTD, 300 * MIB)
    with others_served(broker), broker.client() as client:
        for _ in range(3):
            assert 0 not in produced(client, topic_id, data, data, data)
    assert broker.rss_bytes() < RSS_BYTES_MAX
    assert broker.peak_rss_bytes() < PEAK_BYTES_MAX


def names(count: int) -> list[str]:
    return [f"n{number:05d}" for number in range(count)]


def bodies(count: int) -> dict[ApiKey, object]:
    topics = [MetadataRequestTopic(name=each) for each in names(count)]
    return {
        ApiKey.METADATA: MetadataRequest(topics),
        ApiKey.CREATE_TOPICS: CreateTopicsRequest(
            [CreatableTopic(each, 1, 1) for each in names(count)], validate_only=True
        ),
        ApiKey.DESCRIBE_GROUPS: DescribeGroupsRequest(names(count)),
        ApiKey.FETCH: FetchRequest(
            session_epoch=-1,
            topics=[FetchTopic("", bytes(16), [FetchPartition(index) for index in range(count)])],
        ),
        ApiKey.JOIN_GROUP: JoinGroupRequest(
            "g", 10_000, 10_000, "", None, "consumer",
            [JoinGroupRequestProtocol(each, b"") for each in names(count)],
        ),
    }  # fmt: skip


@pytest.mark.parametrize("key", bodies(0), ids=lambda key: key.name)
def test_a_request_that_names_very_many_things_is_not_taken(
    broker: ServedBroker, key: ApiKey
) -> None:
    with others_served(broker), broker.client() as client:
        client.send(encoded(key, bodies(ELEMENTS_MAX + 1)[key]))
        assert client.is_closed_by_broker()


@pytest.mark.parametrize("key", bodies(0), ids=lambda key: key.name)
def test_a_request_that_names_many_things_is_answered_while_others_are(
    broker: ServedBroker, key: ApiKey
) -> None:
    with others_served(broker), broker.client() as client:
        client.send(encoded(key, bodies(20_000)[key]))
        client.answer(key, SUPPORTED[key].highest)
    assert broker.rss_bytes() < RSS_BYTES_MAX


def test_metadata_of_an_offset_is_bounded(broker: ServedBroker) -> None:
    with broker.client() as client:
        partitions = [OffsetCommitRequestPartition(0, 5, -1, "x" * 30_000)]
        request = OffsetCommitRequest(
            "g", topics=[OffsetCommitRequestTopic("orders", partitions=partitions)]
        )
        answer = client.ask(ApiKey.OFFSET_COMMIT, request, 9)
        assert answer.topics[0].partitions[0].error_code != 0


def test_who_waits_for_ever_and_goes_is_forgotten(broker: ServedBroker, topic_id: bytes) -> None:
    sockets = broker.sockets()
    request = FetchRequest(
        max_wait_ms=LONG_MS,
        min_bytes=MIB,
        session_epoch=-1,
        topics=[FetchTopic("orders", topic_id, [FetchPartition(0)])],
    )
    for _ in range(100):
        with broker.client() as client:
            client.send(encoded(ApiKey.FETCH, request))
    assert broker.wait_for_sockets(sockets, 60) <= sockets


def test_answers_that_nobody_reads_are_bounded(broker: ServedBroker) -> None:
    """Each is of megabytes, many times over. Who waits meanwhile waits for one of each client."""
    request = encoded(ApiKey.METADATA, bodies(20_000)[ApiKey.METADATA])
    began = broker.cpu_seconds()
    with broker.client() as client:
        client.send(request)
        client.answer(ApiKey.METADATA, SUPPORTED[ApiKey.METADATA].highest)
    one_of_each = 20 * (broker.cpu_seconds() - began)
    with ExitStack() as open_until_the_end, others_served(broker, 4 * one_of_each):
        for _ in range(20):
            client = open_until_the_end.enter_context(broker.client())
            client.socket.setblocking(False)
            for _ in range(20):
                try:
                    client.socket.send(request)
                except BlockingIOError:
                    break
        assert broker.rss_bytes() < RSS_BYTES_MAX


def test_answers_that_nobody_reads_leave_files_to_be_opened_by_others(tmp_path: Path) -> None:
    """Each would keep one open for every partition, and there are more of those than may be."""
    files_max = 256
    with served_broker(tmp_path / "broker", files_max=files_max) as broker:
        now_ms = time.time_ns() // 1_000_000
        batches = [build_batch([Record(b"k", bytes(20_000), timestamp_ms=now_ms)])] * (files_max)
        with broker.client() as client, ExitStack() as open_until_the_end:
            wanted = CreateTopicsRequest([CreatableTopic("orders", files_max, 1)], 60_000)
            topic_id = client.ask(ApiKey.CREATE_TOPICS, wanted).topics[0].topic_id
            assert set(produced(client, topic_id, *batches)) == {0}
            partitions = [
                FetchPartition(index, fetch_offset=0, partition_max_bytes=MIB)
                for index in range(files_max)
            ]
            request = FetchRequest(min_bytes=1, topics=[FetchTopic("", topic_id, partitions)])
            for _ in range(5):
                reader = open_until_the_end.enter_context(broker.client())
                reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.send(encoded(ApiKey.FETCH, request))
                reader.socket.recv(1, socket.MSG_PEEK)  # the answer has been begun
            assert set(produced(client, topic_id, *batches)) == {0}
            assert answers_api_versions(broker.address)
