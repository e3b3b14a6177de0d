"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: where logs begin, end and change hands."""

from collections import Counter
from collections.abc import Sequence

from stratalog.broker.error_mapping import code_of
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.errors import StratalogError, UnknownTopicError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from stratalog.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from stratalog.replication.partition import Partition
from stratalog.storage.layout import TopicPartition
from stratalog.storage.lookup import SpecialTimestamp
from stratalog.storage.reading import Isolation

_CONSUMER = -1
_READ_COMMITTED = 1
_FIRST_WITH_OFFSET_NOT_AVAILABLE = 5
# Which special timestamps a client of an older version cannot mean.
_FIRST_VERSION = {
    SpecialTimestamp.LATEST: 0,
    SpecialTimestamp.EARLIEST: 0,
    SpecialTimestamp.MAX_TIMESTAMP: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
    SpecialTimestamp.EARLIEST_PENDING_UPLOAD: 11,
}


class OffsetHandlers:
    def __init__(self, services: Services) -> None:
        self._replicas = services.replicas

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.LIST_OFFSETS: self.list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self.offset_for_leader_epoch,
            ApiKey.DELETE_RECORDS: self.delete_records,
        }

    def _partition(self, topic: str, index: int) -> Partition:
        partition = self._replicas.find(TopicPartition(topic, index))
        if partition is None:
            raise UnknownTopicError(topic, index)
        return partition

    # --- ListOffsets --------------------------------------------------------------------------

    def list_offsets(self, request: Request) -> ListOffsetsResponse:
        body: ListOffsetsRequest = request.body
        isolation = Isolation.HIGH_WATERMARK
        if body.replica_id != _CONSUMER:
            isolation = Isolation.LOG_END
        elif body.isolation_level == _READ_COMMITTED:
            isolation = Isolation.TXN_COMMITTED
        topics = []
        for topic in body.topics:
            repeated = _repeated(topic.partitions)
            answers = [
                self._list_offset(topic.name, asked, isolation, request.api_version)
                for asked in topic.partitions
                if asked.partition_index not in repeated
            ]
            answers.extend(
                ListOffsetsPartitionResponse(index, ErrorCode.INVALID_REQUEST)
                for index in sorted(repeated)
            )
            topics.append(ListOffsetsTopicResponse(topic.name, answers))
        return ListOffsetsResponse(topics=topics)

    def _list_offset(
        self, topic: str, asked: ListOffsetsPartition, isolation: Isolation, version: int
    ) -> ListOffsetsPartitionResponse:
        index = asked.partition_index
        if asked.timestamp < 0 and version < _first_version(asked.timestamp):
            return ListOffsetsPartitionResponse(index, ErrorCode.UNSUPPORTED_VERSION)
        try:
            found = self._partition(topic, index).list_offset(
                asked.timestamp,
                isolation=isolation,
                current_leader_epoch=asked.current_leader_epoch,
            )
        except StratalogError as error:
            code = code_of(error)
            if (
                code is ErrorCode.OFFSET_NOT_AVAILABLE
                and version < _FIRST_WITH_OFFSET_NOT_AVAILABLE
            ):
                code = ErrorCode.LEADER_NOT_AVAILABLE
            return ListOffsetsPartitionResponse(index, code)
        return ListOffsetsPartitionResponse(
            index, 0, found.timestamp_ms, found.offset, found.leader_epoch
        )

    # --- OffsetForLeaderEpoch -----------------------------------------------------------------

    def offset_for_leader_epoch(self, request: Request) -> OffsetForLeaderEpochResponse:
        body: OffsetForLeaderEpochRequest = request.body
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic.topic,
                    [self._end_of_epoch(topic.topic, each) for each in topic.partitions],
                )
                for topic in body.topics
            ]
        )

    def _end_of_epoch(self, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            end = self._partition(topic, asked.partition).end_of_epoch(
                asked.leader_epoch, asked.current_leader_epoch
            )
        except StratalogError as error:
            return EpochEndOffset(code_of(error), asked.partition)
        return EpochEndOffset(0, asked.partition, end.epoch, end.end_offset)

    # --- DeleteRecords ------------------------------------------------------------------------

    def delete_records(self, request: Request) -> None:
        body: DeleteRecordsRequest = request.body
        wanted: dict[TopicPartition, int] = {}
        for topic in body.topics:
            for each in topic.partitions:
                wanted[TopicPartition(topic.name, each.partition_index)] = each.offset

        def respond(results: dict[TopicPartition, int | StratalogError]) -> None:
            topics = [
                DeleteRecordsTopicResult(
                    topic.name,
                    [
                        _deleted(index, results[TopicPartition(topic.name, index)])
                        for index in dict.fromkeys(
                            each.partition_index for each in topic.partitions
                        )
                    ],
                )
                for topic in body.topics
            ]
            request.respond(DeleteRecordsResponse(topics=topics))

        self._replicas.delete_records(wanted, respond, timeout_ms=body.timeout_ms)


def _first_version(timestamp: int) -> int:
    """From which version on a special timestamp means something; beyond all for the others."""
    return _FIRST_VERSION.get(timestamp, 1 << 15)  # type: ignore[call-overload, no-any-return]


def _repeated(partitions: Sequence[ListOffsetsPartition]) -> frozenset[int]:
    counts = Counter(each.partition_index for each in partitions)
    return frozenset(index for index, count in counts.items() if count > 1)


def _deleted(index: int, result: int | StratalogError) -> DeleteRecordsPartitionResult:
    if isinstance(result, StratalogError):
        return DeleteRecordsPartitionResult(index, -1, code_of(result))
    return DeleteRecordsPartitionResult(index, result, 0)
