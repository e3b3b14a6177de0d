"""Produce: batches from the receive buffer to their logs, without a Python object for a record."""

from functools import partial
from struct import Struct
from typing import NamedTuple

from stratalog.broker.checking import Checked, CheckedAhead, Refused, is_plain
from stratalog.broker.error_mapping import code_of, message_of
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.broker.topic_names import TopicNames
from stratalog.errors import (
    CorruptBatchError,
    InvalidRecordError,
    NotLeaderError,
    ProducerError,
    StratalogError,
    UnknownTopicError,
    UnknownTopicIdError,
    UnsupportedCompressionError,
)
from stratalog.protocol.api import ApiKey
from stratalog.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from stratalog.replication.replica_manager import AppendResponse, AppendResult
from stratalog.storage.appending import LogAppendInfo, ValidatedRecords
from stratalog.storage.layout import TopicPartition

_FIRST_WITH_TOPIC_IDS = 13
_FIRST_WITH_ZSTD = 7
_ZSTD = 4
# Of a batch, or of the messages that came before batches.
_unpack_length = Struct(">8xi").unpack_from
_LENGTH_END = 12
_SMALLEST_LENGTH = 14
_MAGIC_POSITION = 16
_ATTRIBUTES_POSITION = 22  # of two bytes the one with the codec

# What a log refuses for its own rules is answered with where that log starts.
_REFUSED_BY_THE_LOG = (InvalidRecordError, ProducerError)

Results = dict[TopicPartition, AppendResult]


class Asked(NamedTuple):
    """A topic of a request: the name and id that the client used, and its partitions."""

    name: str
    topic_id: bytes
    # A partition that is named twice is answered once.
    partitions: dict[TopicPartition, None]


class ProduceHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._replicas = services.replicas
        self._metrics = services.metrics
        self._names = TopicNames(services.store)
        self._ahead = CheckedAhead(services)

    def table(self) -> dict[ApiKey, Handler]:
        return {ApiKey.PRODUCE: self.produce}

    def produce(self, request: Request) -> None:
        body: ProduceRequest = request.body
        has_ids = request.api_version >= _FIRST_WITH_TOPIC_IDS
        find = self._replicas.find_at
        entries: dict[TopicPartition, memoryview] = {}
        refused: Results = {}
        asked: list[Asked] = []
        are_plain = True
        for topic_name, topic_id, partition_data in body.topic_data:
            name = self._names.by_id(topic_id) if has_ids else topic_name
            keys: dict[TopicPartition, None] = {}
            for index, records in partition_data:
                partition = find(name, index)
                if partition is None:
                    key = TopicPartition(name, index)
                    refused[key] = AppendResult(error=_unknown(key, topic_id, has_ids=has_ids))
                else:
                    log = partition.log
                    key = log.topic_partition
                    try:
                        entries[key] = batch = checked(records, request.api_version)
                        are_plain = are_plain and is_plain(batch, log.produce_rules)
                    except StratalogError as error:
                        refused[key] = AppendResult(error=error.with_traceback(None))
                keys[key] = None
            if keys:
                asked.append(Asked(topic_name, topic_id, keys))

        # From here on nobody needs the records but who appends them: the answer may have to wait.
        acks, timeout_ms = body.acks, body.timeout_ms
        request.body = None
        respond = partial(self._respond, request, acks, asked, refused)
        if are_plain:
            self._append(request, acks, timeout_ms, respond, entries)
        else:
            append = partial(self._append, request, acks, timeout_ms, respond)
            self._ahead.check(request, entries, append)

    def _append(
        self,
        request: Request,
        acks: int,
        timeout_ms: int,
        respond: AppendResponse,
        entries: Checked,
        refused_ahead: Refused | None = None,
    ) -> None:
        """What could be checked has been."""
        if refused_ahead:
            respond_all = respond

            def respond(results: Results) -> None:
                respond_all({**results, **refused_ahead})

        self._replicas.append_records(
            entries,
            respond,
            required_acks=acks,
            timeout_ms=timeout_ms,
            keep=partial(self._keep, request),
        )

    def _keep(
        self, request: Request, checked: Checked, respond: AppendResponse
    ) -> tuple[Checked, AppendResponse]:
        """A commit has a log stand still: the records wait outside the receive buffer, which is
        used again, and its connection takes no other request, so that their order stays."""
        request.is_pipelined = False
        kept = {
            key: bytes(each.records if isinstance(each, ValidatedRecords) else each)
            for key, each in checked.items()
        }
        size_bytes = sum(map(len, kept.values()))
        self._services.memory.hold(size_bytes)

        def respond_and_release(results: Results) -> None:
            self._services.memory.release(size_bytes)
            respond(results)

        return kept, respond_and_release

    def _respond(
        self,
        request: Request,
        acks: int,
        asked: list[Asked],
        refused: Results,
        results: Results,
    ) -> None:
        failure: StratalogError | None = None
        responses = []
        for name, topic_id, keys in asked:
            answers = []
            for key in keys:
                info, error = results[key] if key in results else refused[key]
                if error is not None:
                    failure = error
                    answer = self._refusal(key, error, info, is_from_log=key in results)
                else:
                    assert info is not None, "what was not refused was appended"
                    answer = PartitionProduceResponse(
                        *(key.partition, 0, info.first_offset),
                        *(info.log_append_time_ms, info.log_start_offset),
                    )
                answers.append(answer)
            responses.append(TopicProduceResponse(name, topic_id, answers))
        if acks != 0:
            is_elsewhere = isinstance(failure, NotLeaderError)
            endpoints = self._endpoints() if is_elsewhere else ()
            request.respond(ProduceResponse(responses, 0, endpoints))
        elif failure is None:
            request.respond_nothing()
        else:
            # There is no answer to say it in; a client that has to connect again looks around.
            request.close(f"a produce request with acks=0 failed: {failure}")
        self._count(asked, refused, results)

    def _count(self, asked: list[Asked], refused: Results, results: Results) -> None:
        """When the answer is on its way: nobody waits for this."""
        metrics = self._metrics
        for _, _, keys in asked:
            for key in keys:
                info, error = results[key] if key in results else refused[key]
                if error is not None:
                    metrics.produce_failed(key.topic)
                    continue
                assert info is not None, "what was not refused was appended"
                if info.is_duplicate:
                    metrics.produced(key.topic, 0, 0)  # it was counted when it was appended
                else:
                    count = info.last_offset - info.first_offset + 1
                    metrics.produced(key.topic, info.size_bytes, count)

    def _refusal(
        self,
        key: TopicPartition,
        error: StratalogError,
        info: LogAppendInfo | None,
        *,
        is_from_log: bool,
    ) -> PartitionProduceResponse:
        if info is not None:
            # It was appended, and then not replicated in time: where it is, is told all the same.
            return PartitionProduceResponse(
                key.partition,
                code_of(error),
                info.first_offset,
                info.log_append_time_ms,
                info.log_start_offset,
                error_message=message_of(error),
            )
        record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
        if isinstance(error, InvalidRecordError):
            record_errors = tuple(
                BatchIndexAndErrorMessage(rejected.index, rejected.reason)
                for rejected in error.rejected
            )
        leader = LeaderIdAndEpoch()
        log_start_offset = -1
        partition = self._replicas.find(key)
        if partition is not None:
            if isinstance(error, NotLeaderError):
                leader = LeaderIdAndEpoch(partition.leader_id, partition.leader_epoch)
            elif is_from_log and isinstance(error, _REFUSED_BY_THE_LOG):
                log_start_offset = partition.log.log_start_offset
        return PartitionProduceResponse(
            key.partition,
            code_of(error),
            -1,
            log_start_offset=log_start_offset,
            record_errors=record_errors,
            error_message=message_of(error),
            current_leader=leader,
        )

    def _endpoints(self) -> tuple[NodeEndpoint, ...]:
        endpoint = self._services.endpoint
        return (NodeEndpoint(self._services.node_id, endpoint.host, endpoint.port),)


def _unknown(key: TopicPartition, topic_id: bytes, *, has_ids: bool) -> StratalogError:
    if has_ids and not key.topic:
        return UnknownTopicIdError(topic_id.hex())
    return UnknownTopicError(key.topic, key.partition)


def checked(records: memoryview | None, version: int) -> memoryview:
    """What every produce request must look like, before its topic's rules are asked: exactly one
    batch of magic 2, and perhaps bytes behind it that are too few for another."""
    size_bytes = 0 if records is None else _batch_bytes(records, 0)
    if (
        records is None
        or not size_bytes
        or (size_bytes < len(records) and _batch_bytes(records, size_bytes))
    ):
        raise InvalidRecordError("a produce request holds exactly one batch for each partition")
    magic = records[_MAGIC_POSITION]
    if magic != 2:
        raise InvalidRecordError(f"a produce request holds batches of magic 2, not of {magic}")
    if (
        size_bytes > _ATTRIBUTES_POSITION
        and records[_ATTRIBUTES_POSITION] & 7 == _ZSTD
        and version < _FIRST_WITH_ZSTD
    ):
        raise UnsupportedCompressionError(
            _ZSTD, f"zstd needs Produce requests of version {_FIRST_WITH_ZSTD} or later"
        )
    return records if size_bytes == len(records) else records[:size_bytes]


def _batch_bytes(records: memoryview, position: int) -> int:
    """How long the batch is that starts there; 0 if none does, or not the whole of one."""
    left = len(records) - position
    if left < _LENGTH_END:
        return 0
    (length,) = _unpack_length(records, position)
    if length < _SMALLEST_LENGTH:
        raise CorruptBatchError(f"a batch of length {length} is less than the smallest message")
    if left <= _MAGIC_POSITION:
        return 0
    magic = records[position + _MAGIC_POSITION]
    if magic > 2:
        raise CorruptBatchError(f"magic {magic} is no format of batches")
    return length + _LENGTH_END if left >= length + _LENGTH_END else 0
