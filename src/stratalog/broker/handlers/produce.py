"""Produce: batches from the receive buffer to their logs, without a Python object for a record."""

from collections.abc import Iterable
from functools import partial

from stratalog.broker.checking import CheckedAhead, is_plain, keep_records
from stratalog.broker.error_mapping import code_of, message_of
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.broker.topic_names import TopicNames
from stratalog.errors import (
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
from stratalog.records import Codec, lone_batch
from stratalog.replication.parts import Done, PartitionAppend
from stratalog.storage.layout import TopicPartition

_FIRST_WITH_TOPIC_IDS = 13
_FIRST_WITH_ZSTD = 7

# What a log refuses for its own rules is answered with where that log starts.
_REFUSED_BY_THE_LOG = (InvalidRecordError, ProducerError)

# Of a topic in a request: the name and id that the client used; and of each partition, whether it
# was refused before its log was asked.
Asked = list[tuple[PartitionAppend, bool]]
AskedTopic = tuple[str, bytes, Asked]


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
        topics: list[AskedTopic] = []
        appends: list[PartitionAppend] = []
        are_plain = True
        for topic_name, topic_id, partition_data in body.topic_data:
            name = self._names.by_id(topic_id) if has_ids else topic_name
            asked: Asked = []
            for index, records in partition_data:
                partition = find(name, index)
                if partition is None:
                    each = PartitionAppend(TopicPartition(name, index), None)
                    each.error = _unknown(each.key, topic_id, has_ids=has_ids)
                    asked.append((each, True))
                    continue
                log = partition.log
                each = PartitionAppend(log.topic_partition, records)
                try:
                    size_bytes, codec = lone_batch(records)
                    if codec:
                        _check_codec(codec, request.api_version)
                except StratalogError as error:
                    each.records, each.error = None, error.with_traceback(None)
                    asked.append((each, True))
                    continue
                assert records is not None, "none is no batch"
                if size_bytes < len(records):
                    each.records = records[:size_bytes]
                are_plain = are_plain and is_plain(codec, log.produce_rules)
                asked.append((each, False))
                appends.append(each)
            if asked:
                topics.append((topic_name, topic_id, asked))
        if len(topics) > 1 or len(topics[0][2] if topics else ()) > 1:
            appends = _without_doubles(topics, appends)

        # From here on nobody needs the records but who appends them: the answer may have to wait.
        acks, timeout_ms = body.acks, body.timeout_ms
        request.body = None
        done = partial(self._respond, request, acks, topics)
        keep = partial(self._keep, request, appends)
        append = self._replicas.append
        if are_plain:
            append(appends, done, required_acks=acks, timeout_ms=timeout_ms, keep=keep)
        else:
            later = partial(append, done=done, required_acks=acks, timeout_ms=timeout_ms, keep=keep)
            self._ahead.check(request, appends, later)

    def _keep(self, request: Request, appends: Iterable[PartitionAppend], done: Done) -> Done:
        """A commit has a log stand still: the records wait outside the receive buffer, which is
        used again, and its connection takes no other request, so that their order stays."""
        request.is_pipelined = False
        size_bytes = keep_records(appends)
        memory = self._services.memory
        memory.hold(size_bytes)

        def release_and_respond() -> None:
            memory.release(size_bytes)
            done()

        return release_and_respond

    def _respond(self, request: Request, acks: int, topics: list[AskedTopic]) -> None:
        failure: StratalogError | None = None
        responses = []
        for name, topic_id, asked in topics:
            answers = []
            for each, is_outright in asked:
                info = each.info
                if each.error is not None:
                    failure = each.error
                    answer = self._refusal(each, failure, is_from_log=not is_outright)
                else:
                    assert info is not None, "what was not refused was appended"
                    answer = PartitionProduceResponse(
                        each.key.partition,
                        0,
                        info.first_offset,
                        info.log_append_time_ms,
                        info.log_start_offset,
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
        # The answer is on its way: nobody waits for this.
        for _, _, asked in topics:
            for each, _ in asked:
                self._count(each)

    def _count(self, each: PartitionAppend) -> None:
        info, topic = each.info, each.key.topic
        if info is None or each.error is not None:
            self._metrics.produce_failed(topic)
        elif info.is_duplicate:
            self._metrics.produced(topic, 0, 0)  # it was counted when it was appended
        else:
            count = info.last_offset - info.first_offset + 1
            self._metrics.produced(topic, info.size_bytes, count)

    def _refusal(
        self, each: PartitionAppend, error: StratalogError, *, is_from_log: bool
    ) -> PartitionProduceResponse:
        key, info = each.key, each.info
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


def _check_codec(codec: int, version: int) -> None:
    if codec == Codec.ZSTD and version < _FIRST_WITH_ZSTD:
        rule = f"zstd needs Produce requests of version {_FIRST_WITH_ZSTD} or later"
        raise UnsupportedCompressionError(codec, rule)


def _without_doubles(
    topics: list[AskedTopic], appends: list[PartitionAppend]
) -> list[PartitionAppend]:
    """A partition that is named twice is answered once for each topic that names it: for what was
    named last of all that its log may be asked about, if there is any."""
    named = [each for _, _, asked in topics for each in asked]
    last = {each.key: (each, is_outright) for each, is_outright in named}
    if len(last) == len(named):
        return appends
    last |= {each.key: (each, False) for each in appends}
    for number, (name, topic_id, asked) in enumerate(topics):
        keys = dict.fromkeys(each.key for each, _ in asked)
        topics[number] = (name, topic_id, [last[key] for key in keys])
    return list({each.key: each for each in appends}.values())
