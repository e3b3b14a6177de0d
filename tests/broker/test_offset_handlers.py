"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords, in every version."""

from pathlib import Path

import pytest
from asking_later import Asking, with_data
from broker_parts import append, create_topic

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from stratalog.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from stratalog.storage.layout import TopicPartition
from stratalog.storage.lookup import SpecialTimestamp

ORDERS = TopicPartition("orders", 0)
WRITTEN_MS = 1_700_000_000_000


def versions(key: ApiKey) -> range:
    return range(SUPPORTED[key].lowest, SUPPORTED[key].highest + 1)


# --- ListOffsets ------------------------------------------------------------------------------


async def listed(
    asking: Asking,
    *timestamps: int,
    version: int = 7,
    topic: str = "orders",
    replica_id: int = -1,
    current_leader_epoch: int = -1,
    index: int = 0,
) -> list[ListOffsetsPartitionResponse]:
    wanted = [ListOffsetsPartition(index, current_leader_epoch, each) for each in timestamps]
    body = ListOffsetsRequest(replica_id, 0, [ListOffsetsTopic(topic, wanted)])
    answer = await asking.ask(ApiKey.LIST_OFFSETS, body, version)
    (found,) = answer.topics
    return list(found.partitions)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_OFFSETS))
def test_the_ends_of_a_log_are_listed_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        append(asking.services, "orders", count=5)

        async def offset(timestamp: int) -> int:
            (found,) = await listed(asking, timestamp, version=version)
            assert found.error_code == 0
            return found.offset

        assert await offset(SpecialTimestamp.EARLIEST) == 0
        assert await offset(SpecialTimestamp.LATEST) == 5
        assert await offset(WRITTEN_MS) == 0
        assert await offset(WRITTEN_MS + 1) == -1

    with_data(tmp_path, scenario)


@pytest.mark.parametrize(
    ("timestamp", "first"),
    [
        (SpecialTimestamp.MAX_TIMESTAMP, 7),
        (SpecialTimestamp.EARLIEST_LOCAL, 8),
        (SpecialTimestamp.LATEST_TIERED, 9),
        (SpecialTimestamp.EARLIEST_PENDING_UPLOAD, 11),
        (-99, 1 << 15),
    ],
)
def test_what_a_version_does_not_know_it_cannot_ask_for(
    tmp_path: Path, timestamp: int, first: int
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        for version in versions(ApiKey.LIST_OFFSETS):
            (found,) = await listed(asking, timestamp, version=version)
            expected = ErrorCode.NONE if version >= first else ErrorCode.UNSUPPORTED_VERSION
            assert found.error_code == expected

    with_data(tmp_path, scenario)


def test_who_asks_for_offsets_in_vain_is_told_why(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        latest = SpecialTimestamp.LATEST
        for answer, code in (
            (await listed(asking, latest, topic="no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (await listed(asking, latest, index=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (
                await listed(asking, latest, current_leader_epoch=9),
                ErrorCode.UNKNOWN_LEADER_EPOCH,
            ),
            (await listed(asking, latest, latest), ErrorCode.INVALID_REQUEST),
        ):
            assert [each.error_code for each in answer] == [code]

    with_data(tmp_path, scenario)


def test_a_new_leader_says_that_it_does_not_know_yet_as_each_version_can_be_told(
    tmp_path: Path,
) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        node_id = asking.services.node_id
        nodes = (node_id, 99)
        asking.services.replicas.lead(ORDERS, leader_epoch=1, replicas=nodes, isr=nodes)
        append(asking.services, "orders")
        asking.services.replicas.lead(ORDERS, leader_epoch=2, replicas=nodes, isr=nodes)

        for version, code in (
            (4, ErrorCode.LEADER_NOT_AVAILABLE),
            (5, ErrorCode.OFFSET_NOT_AVAILABLE),
        ):
            (found,) = await listed(asking, SpecialTimestamp.LATEST, version=version)
            assert found.error_code == code
        for replica_id in (99, -2):  # followers, and who debugs
            (found,) = await listed(asking, SpecialTimestamp.LATEST, replica_id=replica_id)
            assert (found.error_code, found.offset) == (0, 1)

    with_data(tmp_path, scenario)


# --- OffsetForLeaderEpoch ---------------------------------------------------------------------


async def epoch_end(
    asking: Asking, epoch: int, current: int = -1, *, version: int = 4, topic: str = "orders"
) -> EpochEndOffset:
    wanted = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0, current, epoch)])
    body = OffsetForLeaderEpochRequest(-1, [wanted])
    answer = await asking.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, body, version)
    found: EpochEndOffset = answer.topics[0].partitions[0]
    return found


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FOR_LEADER_EPOCH))
def test_where_epochs_ended_is_told_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        node_id = asking.services.node_id
        for epoch, count in ((3, 2), (5, 4)):
            asking.services.replicas.lead(
                ORDERS, leader_epoch=epoch, replicas=(node_id,), isr=(node_id,)
            )
            append(asking.services, "orders", count=count)

        async def end(epoch: int) -> tuple[int, int]:
            found = await epoch_end(asking, epoch, version=version)
            return found.leader_epoch, found.end_offset

        assert await end(3) == (3, 2)
        assert await end(4) == (3, 2)
        assert await end(5) == (5, 6)
        assert await end(6) == (-1, -1)

    with_data(tmp_path, scenario)


def test_who_asks_for_an_epoch_in_vain_is_told_why(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        unknown = await epoch_end(asking, 0, topic="no")
        future = await epoch_end(asking, 0, 7)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert future.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    with_data(tmp_path, scenario)


# --- DeleteRecords ----------------------------------------------------------------------------


def deletion(*offsets: int, topic: str = "orders") -> DeleteRecordsRequest:
    wanted = [DeleteRecordsPartition(0, each) for each in offsets]
    return DeleteRecordsRequest([DeleteRecordsTopic(topic, wanted)], 1_000)


async def deleted(
    asking: Asking, body: DeleteRecordsRequest, version: int = 2
) -> DeleteRecordsPartitionResult:
    answer = await asking.ask(ApiKey.DELETE_RECORDS, body, version)
    (found,) = answer.topics[0].partitions
    result: DeleteRecordsPartitionResult = found
    return result


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_RECORDS))
def test_records_are_deleted_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        append(asking.services, "orders", count=5)

        for offset, low in ((2, 2), (1, 2), (-1, 5)):
            found = await deleted(asking, deletion(offset), version)
            assert (found.error_code, found.low_watermark) == (0, low)

    with_data(tmp_path, scenario)


def test_what_cannot_be_deleted_is_refused(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        await create_topic(asking.services, "kept", cleanup_policy="compact")
        for body, code in (
            (deletion(1), ErrorCode.OFFSET_OUT_OF_RANGE),
            (deletion(-2), ErrorCode.OFFSET_OUT_OF_RANGE),
            (deletion(0, topic="no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (deletion(0, topic="kept"), ErrorCode.POLICY_VIOLATION),
        ):
            found = await deleted(asking, body)
            assert (found.error_code, found.low_watermark) == (code, -1)

    with_data(tmp_path, scenario)


def test_a_deletion_waits_for_followers_or_for_its_time(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        await create_topic(asking.services, "orders")
        append(asking.services, "orders", count=5)
        nodes = (asking.services.node_id, 99)
        asking.services.replicas.lead(ORDERS, leader_epoch=1, replicas=nodes, isr=nodes)

        client = await asking.begin(ApiKey.DELETE_RECORDS, deletion(2))
        assert client.answers == []
        asking.pass_time(1_000)

        (found,) = client.answers[0].topics[0].partitions
        assert found.error_code == ErrorCode.REQUEST_TIMED_OUT

    with_data(tmp_path, scenario)
