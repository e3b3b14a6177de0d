"""Fetch: slices of files for the socket, at once or when there is enough to read."""

from collections.abc import Sequence

from stratalog.broker.error_mapping import code_of
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.broker.sessions import FetchContext, FetchSessions, Key
from stratalog.broker.topic_names import TopicNames
from stratalog.errors import StratalogError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from stratalog.replication.parts import FetchPartition, FetchResult
from stratalog.replication.parts import FetchRequest as ReplicaFetch
from stratalog.storage.layout import TopicPartition
from stratalog.storage.reading import Isolation

_FIRST_WITH_SESSIONS = 7
_FIRST_WITH_TOPIC_IDS = 13
_FIRST_WITH_REPLICA_STATE = 15
_READ_COMMITTED = 1
_UNKNOWN = -1

Answers = list[tuple[Key, PartitionData]]


class FetchHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._replicas = services.replicas
        self._metrics = services.metrics
        self._names = TopicNames(services.store)
        self.sessions = FetchSessions(services.config.max_incremental_fetch_session_cache_slots)

    def table(self) -> dict[ApiKey, Handler]:
        return {ApiKey.FETCH: self.fetch}

    def fetch(self, request: Request) -> FetchResponse | None:
        body: FetchRequest = request.body
        uses_ids = request.api_version >= _FIRST_WITH_TOPIC_IDS
        if request.api_version < _FIRST_WITH_SESSIONS:
            context = FetchContext(request=body)
        else:
            now_ms = self._services.steady_clock.now_ms()
            context = self.sessions.begin(body, uses_topic_ids=uses_ids, now_ms=now_ms)
        if context.error:
            return FetchResponse(error_code=context.error)
        wanted: dict[TopicPartition, FetchPartition] = {}
        places: dict[Key, TopicPartition | None] = {}
        unknown: set[TopicPartition] = set()
        find = self._replicas.find_at
        for key, asked in context.partitions():
            name = self._names.by_id(key[1]) if uses_ids else key[0]
            partition = find(name, key[2])
            place: TopicPartition | None = None
            if partition is not None:
                place = partition.log.topic_partition
            elif name or not uses_ids:
                place = TopicPartition(name, key[2])
                unknown.add(place)
            places[key] = place
            if place is not None:
                wanted[place] = FetchPartition(
                    asked.fetch_offset,
                    asked.partition_max_bytes,
                    asked.current_leader_epoch,
                    asked.last_fetched_epoch,
                    asked.log_start_offset,
                )

        replica_id = _replica_id(request)

        def respond(results: dict[TopicPartition, FetchResult]) -> None:
            answers = [
                (key, self._answer(key, place, results, unknown)) for key, place in places.items()
            ]
            self._respond(request, context, answers, is_consumer=replica_id < 0)
            self._count(results)

        max_bytes = min(body.max_bytes, self._services.config.fetch_max_bytes)
        is_settled = len(wanted) < len(places)  # an unknown topic is told at once
        operation = self._replicas.fetch(
            ReplicaFetch(
                wanted,
                0 if is_settled else body.max_wait_ms,
                min(body.min_bytes, max_bytes),
                max_bytes,
                Isolation.TXN_COMMITTED
                if body.isolation_level == _READ_COMMITTED
                else Isolation.HIGH_WATERMARK,
                replica_id,
                self._services.memory.files_left,
            ),
            respond,
        )
        if operation is not None:
            waiting = operation
            request.on_abandoned = lambda: self._replicas.fetch_purgatory.cancel(waiting)
        return None

    def _answer(
        self,
        key: Key,
        place: TopicPartition | None,
        results: dict[TopicPartition, FetchResult],
        unknown: set[TopicPartition],
    ) -> PartitionData:
        if place is None:
            return _refusal(key[2], ErrorCode.UNKNOWN_TOPIC_ID)
        read, error = results[place]
        if read is None:
            assert error is not None, "what was not read was refused"
            return self._refused(place, error, is_unknown=place in unknown)
        data, high_watermark, last_stable_offset, log_start_offset, diverging = read
        answer = PartitionData(
            *(key[2], 0, high_watermark, last_stable_offset, log_start_offset),
            aborted_transactions=None,
            records=data.records or b"",
        )
        if diverging is not None:
            end = EpochEndOffset(diverging.epoch, diverging.end_offset)
            return answer._replace(diverging_epoch=end)
        if data.aborted is not None:
            aborted = [
                AbortedTransaction(each.producer_id, each.first_offset) for each in data.aborted
            ]
            return answer._replace(aborted_transactions=aborted)
        return answer

    def _count(self, results: dict[TopicPartition, FetchResult]) -> None:
        """When the answer is on its way: nobody waits for this."""
        metrics = self._metrics
        for place, (read, _) in results.items():
            if read is None:
                metrics.fetch_failed(place.topic)
            else:
                metrics.fetched(place.topic, read.data.size_bytes)

    def _refused(
        self, place: TopicPartition, error: StratalogError, *, is_unknown: bool
    ) -> PartitionData:
        leader = LeaderIdAndEpoch()
        code = code_of(error)
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            partition = self._replicas.find(place)
            if partition is not None:
                leader = LeaderIdAndEpoch(partition.leader_id, partition.leader_epoch)
        # Nothing is said of transactions where a log was asked in vain; where there never was one,
        # that is said with an empty list.
        return _refusal(place.partition, code, leader, () if is_unknown else None)

    def _respond(
        self, request: Request, context: FetchContext, answers: Answers, *, is_consumer: bool
    ) -> None:
        told = context.news(answers)
        endpoints: tuple[NodeEndpoint, ...] = ()
        for _, data in told:
            if data.error_code and is_consumer and data.current_leader.leader_id >= 0:
                endpoint = self._services.endpoint
                endpoints = (NodeEndpoint(self._services.node_id, endpoint.host, endpoint.port),)
                break
        request.respond(FetchResponse(0, 0, context.session_id, _by_topic(told), endpoints))


def _replica_id(request: Request) -> int:
    body: FetchRequest = request.body
    if request.api_version >= _FIRST_WITH_REPLICA_STATE:
        return body.replica_state.replica_id
    return body.replica_id


def _refusal(
    partition: int,
    code: ErrorCode,
    leader: LeaderIdAndEpoch | None = None,
    aborted: tuple[AbortedTransaction, ...] | None = (),
) -> PartitionData:
    return PartitionData(
        partition,
        code,
        _UNKNOWN,
        current_leader=leader or LeaderIdAndEpoch(),
        aborted_transactions=aborted,
        records=b"",
    )


def _by_topic(answers: Sequence[tuple[Key, PartitionData]]) -> list[FetchableTopicResponse]:
    if len(answers) == 1:
        ((name, topic_id, _), data) = answers[0]
        return [FetchableTopicResponse(name, topic_id, [data])]
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    for (name, topic_id, _), data in answers:
        topics.setdefault((name, topic_id), []).append(data)
    return [
        FetchableTopicResponse(name, topic_id, partitions)
        for (name, topic_id), partitions in topics.items()
    ]
