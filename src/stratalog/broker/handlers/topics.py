"""CreateTopics, DeleteTopics and CreatePartitions: each topic of a request by itself, with its own
error."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

from stratalog.broker.config_entries import ConfigEntries
from stratalog.broker.error_mapping import code_of, message_of, short_message
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.errors import InvalidReplicaAssignmentError, InvalidRequestError, StratalogError
from stratalog.metadata.image import TopicMetadata
from stratalog.metadata.topics import NewTopic
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from stratalog.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_NO_ID = bytes(16)
_FIRST_VERSION_WITH_DELETION_DISABLED = 3


class TopicHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.CREATE_TOPICS: self.create_topics,
            ApiKey.DELETE_TOPICS: self.delete_topics,
            ApiKey.CREATE_PARTITIONS: self.create_partitions,
        }

    # --- CreateTopics -------------------------------------------------------------------------

    async def create_topics(self, request: Request) -> CreateTopicsResponse:
        body: CreateTopicsRequest = request.body
        counts = Counter(topic.name for topic in body.topics)
        wanted: list[NewTopic] = []
        refused: list[CreatableTopicResult] = []
        for topic in body.topics:
            if counts[topic.name] > 1:
                continue
            try:
                wanted.append(_new_topic(topic))
            except StratalogError as error:
                refused.append(_not_created(topic.name, error))
        twice = InvalidRequestError("a topic is named more than once in one request")
        refused.extend(_not_created(name, twice) for name, count in counts.items() if count > 1)
        created = await self._services.topics.create(wanted, validate_only=body.validate_only)
        entries = ConfigEntries(self._services.store)
        results = [
            _not_created(new.name, result)
            if isinstance(result, StratalogError)
            else _created(result, entries)
            for new, result in zip(wanted, created, strict=True)
        ]
        return CreateTopicsResponse(topics=results + refused)

    # --- DeleteTopics -------------------------------------------------------------------------

    async def delete_topics(self, request: Request) -> DeleteTopicsResponse:
        body: DeleteTopicsRequest = request.body
        if not self._services.config.delete_topic_enable:
            return _deletion_disabled(body, request.api_version)
        deletion = _Deletion(self._services.store.image.topics_by_id, self._names(), body)
        errors = await self._services.topics.delete([*deletion.found])
        for topic_id, error in zip([*deletion.found], errors, strict=True):
            deletion.answer(deletion.found[topic_id], topic_id.bytes, error)
        return DeleteTopicsResponse(responses=deletion.results)

    def _names(self) -> Mapping[str, TopicMetadata]:
        return self._services.store.image.topics

    # --- CreatePartitions ---------------------------------------------------------------------

    async def create_partitions(self, request: Request) -> CreatePartitionsResponse:
        body: CreatePartitionsRequest = request.body
        counts = Counter(topic.name for topic in body.topics)
        results = [
            CreatePartitionsTopicResult(
                name,
                ErrorCode.INVALID_REQUEST,
                "the topic is named more than once in one request",
            )
            for name, count in counts.items()
            if count > 1
        ]
        for topic in body.topics:
            if counts[topic.name] == 1:
                results.append(await self._add_partitions(topic, body.validate_only))
        return CreatePartitionsResponse(results=results)

    async def _add_partitions(
        self, topic: CreatePartitionsTopic, validate_only: bool
    ) -> CreatePartitionsTopicResult:
        assigned = topic.assignments
        try:
            await self._services.topics.create_partitions(
                topic.name,
                topic.count,
                assignments=None if assigned is None else [each.broker_ids for each in assigned],
                validate_only=validate_only,
            )
        except StratalogError as error:
            return CreatePartitionsTopicResult(topic.name, code_of(error), message_of(error))
        return CreatePartitionsTopicResult(topic.name)


class _Deletion:
    """One request: the topics to delete, and answers for what names none of them."""

    def __init__(
        self,
        topics_by_id: Mapping[uuid.UUID, TopicMetadata],
        topics: Mapping[str, TopicMetadata],
        body: DeleteTopicsRequest,
    ) -> None:
        self.found: dict[uuid.UUID, str] = {}
        self.results: list[DeletableTopicResult] = []
        names, topic_ids = Counter(body.topic_names), Counter[bytes]()
        for name, topic_id in body.topics:
            if name is not None and topic_id != _NO_ID:
                self._refuse(name, topic_id, "a topic is given by its name or its id, not by both")
            elif name is not None:
                names[name] += 1
            elif topic_id != _NO_ID:
                topic_ids[topic_id] += 1
            else:
                self._refuse(None, _NO_ID, "neither a name nor an id is given")
        for raw_id, count in topic_ids.items():
            topic = topics_by_id.get(uuid.UUID(bytes=raw_id))
            if count > 1:
                self._refuse(None, raw_id, "a topic's id is given more than once")
            elif topic is None:
                self._add(None, raw_id, ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
            else:
                self.found[topic.topic_id] = topic.name
        for name, count in names.items():
            self._find(name, count, topics.get(name), topic_ids)

    def _find(
        self, name: str, count: int, topic: TopicMetadata | None, topic_ids: Mapping[bytes, int]
    ) -> None:
        if count > 1:
            self._refuse(name, _NO_ID, "a topic's name is given more than once")
        elif topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._add(name, _NO_ID, code, short_message(f"there is no topic {name!r}"))
        elif topic.topic_id.bytes in topic_ids:
            self.found.pop(topic.topic_id, None)
            self._refuse(name, topic.topic_id.bytes, "a topic's name and its id are both given")
        else:
            self.found[topic.topic_id] = name

    def answer(self, name: str, topic_id: bytes, error: StratalogError | None) -> None:
        if error is None:
            self._add(name, topic_id, ErrorCode.NONE, None)
        else:
            self._add(name, topic_id, code_of(error), message_of(error))

    def _refuse(self, name: str | None, topic_id: bytes, reason: str) -> None:
        self._add(name, topic_id, ErrorCode.INVALID_REQUEST, reason)

    def _add(self, name: str | None, topic_id: bytes, code: ErrorCode, message: str | None) -> None:
        self.results.append(DeletableTopicResult(name, topic_id, code, message))


def _deletion_disabled(body: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
    code = ErrorCode.TOPIC_DELETION_DISABLED
    if version < _FIRST_VERSION_WITH_DELETION_DISABLED:
        code = ErrorCode.INVALID_REQUEST
    named = [*(DeleteTopicState(name) for name in body.topic_names), *body.topics]
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(name, topic_id, code) for name, topic_id in named]
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    assignments: dict[int, Sequence[int]] = {}
    for number, replicas in topic.assignments:
        if number in assignments:
            raise InvalidReplicaAssignmentError(f"partition {number} is assigned more than once")
        assignments[number] = replicas
    return NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs=dict(topic.configs),
    )


def _not_created(name: str, error: StratalogError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=code_of(error), error_message=message_of(error)
    )


def _created(topic: TopicMetadata, entries: ConfigEntries) -> CreatableTopicResult:
    configs = sorted(entries.of_new_topic(topic.configs), key=lambda entry: entry.name)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id.bytes,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=[
            CreatableTopicConfigs(entry.name, entry.value, False, entry.source) for entry in configs
        ],
    )
