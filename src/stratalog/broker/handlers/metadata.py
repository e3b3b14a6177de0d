"""Metadata and DescribeTopicPartitions: which topics there are, and who leads their partitions.

Answers are made of the store's image and of what this node can serve of it: a partition whose disk
is offline has no leader. What was told of a topic is kept and told again until either changes.
"""

from collections.abc import Iterable, Sequence

from stratalog.broker.automatic_topics import AutomaticTopics
from stratalog.broker.requests import Encoded, Handler, Request
from stratalog.broker.services import Services
from stratalog.broker.topic_names import TopicNames
from stratalog.errors import InvalidTopicError
from stratalog.metadata.image import NO_LEADER, PartitionMetadata, TopicMetadata
from stratalog.metadata.names import is_internal, validate_topic_name
from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import encode_response_body
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from stratalog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from stratalog.storage.layout import TopicPartition

NO_ID = bytes(16)
# Nobody is kept from anything here: every operation that a resource knows, as Kafka's bit field.
TOPIC_OPERATIONS = 0b1101_1111_1000
CLUSTER_OPERATIONS = 0b1_1111_1010_0000
_PARTITIONS_IN_A_DESCRIPTION_MAX = 2_000
_FIRST_VERSION_WITH_IDS = 12
_CLUSTER_OPERATIONS_IN = range(8, 11)
_ANSWERS_KEPT = 64
_ANSWERS_KEPT_BYTES = 4 << 20
_TOPICS_ASKED_MAX = 100


class MetadataHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._names = TopicNames(services.store)
        self._topics = KnownTopics(services)
        self._answers = Answers(services)
        self._automatic = AutomaticTopics(services)

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.METADATA: self.metadata,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: self.describe_topic_partitions,
        }

    # --- Metadata -----------------------------------------------------------------------------

    def metadata(self, request: Request) -> MetadataResponse | Encoded:
        version, body = request.api_version, request.body
        encoded = self._answers.get(version, body)
        if encoded is not None:
            return encoded
        response, is_complete = self._answer(body, version, request.client_host)
        if is_complete:
            return self._answers.keep(version, body, response)
        return response

    def _answer(
        self, body: MetadataRequest, version: int, client: str
    ) -> tuple[MetadataResponse, bool]:
        """What there is to say, and whether it stays so until the metadata change."""
        asked, is_complete = body.topics, True
        topics: Sequence[MetadataResponseTopic]
        if asked is None or (version == 0 and not asked):
            topics = self._topics.all(version)
        elif version < _FIRST_VERSION_WITH_IDS and not _is_by_name(body):
            return _refusal(body, ErrorCode.INVALID_REQUEST), False
        elif any(topic.topic_id != NO_ID for topic in asked):
            topics = self._by_id(dict.fromkeys(topic.topic_id for topic in asked), version)
        elif not _is_by_name(body):
            return _refusal(body, ErrorCode.UNKNOWN_SERVER_ERROR), False
        else:
            names = dict.fromkeys(topic.name or "" for topic in asked)
            topics, missing = self._by_name(names, version)
            if missing and body.allow_auto_topic_creation:
                self._maybe_create(client, missing)
            is_complete = not any(topic.error_code for topic in topics)
        if body.include_topic_authorized_operations:
            topics = [
                topic._replace(topic_authorized_operations=TOPIC_OPERATIONS) for topic in topics
            ]
        return self._response(topics, body, version), is_complete

    def _response(
        self, topics: Sequence[MetadataResponseTopic], body: MetadataRequest, version: int
    ) -> MetadataResponse:
        endpoint, image = self._services.endpoint, self._services.store.image
        response = MetadataResponse(
            brokers=(MetadataResponseBroker(image.node_id, endpoint.host, endpoint.port),),
            cluster_id=image.cluster_id,
            controller_id=image.node_id,
            topics=topics,
        )
        if body.include_cluster_authorized_operations and version in _CLUSTER_OPERATIONS_IN:
            response = response._replace(cluster_authorized_operations=CLUSTER_OPERATIONS)
        return response

    def _by_id(self, topic_ids: Iterable[bytes], version: int) -> list[MetadataResponseTopic]:
        found, unknown = [], []
        for topic_id in topic_ids:
            name = self._names.by_id(topic_id)
            topic = self._topics.get(name, version) if name else None
            if topic is not None:
                found.append(topic)
            elif topic_id != NO_ID:
                unknown.append(
                    MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id=topic_id)
                )
        return unknown + found

    def _by_name(
        self, names: Iterable[str], version: int
    ) -> tuple[list[MetadataResponseTopic], list[str]]:
        """Each topic, and the names of which there could be one and is none."""
        found, missing = [], []
        for name in names:
            topic = self._topics.get(name, version)
            if topic is not None:
                found.append(topic)
            else:
                error = _why_missing(name)
                found.append(MetadataResponseTopic(error, name, is_internal=is_internal(name)))
                if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    missing.append(name)
        return found, missing

    def _maybe_create(self, client: str, names: Sequence[str]) -> None:
        """Begin to make topics. Who asked is told that they are unknown, as by Kafka, asks again
        after a while, and finds them."""
        if self._services.config.auto_create_topics_enable:
            self._automatic.ask(client, names)

    # --- DescribeTopicPartitions --------------------------------------------------------------

    def describe_topic_partitions(self, request: Request) -> DescribeTopicPartitionsResponse:
        body: DescribeTopicPartitionsRequest = request.body
        cursor = body.cursor
        from_name = "" if cursor is None else cursor.topic_name
        asked = [topic.name for topic in body.topics]
        names = {name for name in asked or self._services.store.image.topics if name >= from_name}
        if cursor is not None and (
            cursor.partition_index < 0 or (asked and cursor.topic_name not in names)
        ):
            refused = tuple(
                DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, name)
                for name in asked
            )
            return DescribeTopicPartitionsResponse(topics=refused)
        limit = max(1, min(body.response_partition_limit, _PARTITIONS_IN_A_DESCRIPTION_MAX))
        return self._describe(sorted(names), cursor, limit, is_complete=not asked)

    def _describe(
        self, names: Sequence[str], cursor: Cursor | None, limit: int, *, is_complete: bool
    ) -> DescribeTopicPartitionsResponse:
        described, left, next_cursor = [], limit, None
        for name in names:
            if left == 0:
                next_cursor = Cursor(name, 0)
                break
            topic = self._topics.get(name, _FIRST_VERSION_WITH_IDS)
            if topic is None:
                # Of all topics, one that has gone since is none of them.
                if not is_complete:
                    described.append(_description(name, _why_missing(name)))
                continue
            first = cursor.partition_index if cursor and cursor.topic_name == name else 0
            shown = topic.partitions[first : first + left]
            described.append(_description(name, ErrorCode.NONE, topic.topic_id, shown))
            if first + len(shown) < len(topic.partitions):
                next_cursor = Cursor(name, first + len(shown))
                break
            left -= len(shown)
        return DescribeTopicPartitionsResponse(topics=described, next_cursor=next_cursor)


class Answers:
    """Encoded answers of Metadata, for as long as they are true: the same is asked by many."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._state: object = None
        self._kept: dict[tuple[int, MetadataRequest], Encoded] = {}
        self._size_bytes = 0

    def get(self, version: int, body: MetadataRequest) -> Encoded | None:
        state = (self._services.store.image.epoch, _availability(self._services))
        if state != self._state:
            self._state = state
            self._clear()
        return self._kept.get((version, body))

    def keep(self, version: int, body: MetadataRequest, response: MetadataResponse) -> Encoded:
        encoded = Encoded(encode_response_body(ApiKey.METADATA, version, response))
        # The question is kept too, and it is a client's to make as long as it likes.
        if len(body.topics or ()) > _TOPICS_ASKED_MAX:
            return encoded
        self._size_bytes += len(encoded.body)
        if self._size_bytes > _ANSWERS_KEPT_BYTES or len(self._kept) == _ANSWERS_KEPT:
            self._clear()
        self._kept[version, body] = encoded
        return encoded

    def _clear(self) -> None:
        self._kept.clear()
        self._size_bytes = 0


def _availability(services: Services) -> tuple[int, ...]:
    """Changes with what this node can serve."""
    online = (directory.is_online for directory in services.logs.directories)
    return (services.topics.generation, *online)


class KnownTopics:
    """Topics as Metadata tells of them, made once for each state of a topic.

    Of a topic that is being made nothing is told until its partitions are led, and of one that
    gets more, only those that it had: no client of Kafka sees a new partition without a leader.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._state: tuple[int, ...] = ()
        self._told: dict[str, tuple[TopicMetadata, MetadataResponseTopic]] = {}
        self._told_to_old: dict[str, tuple[TopicMetadata, MetadataResponseTopic]] = {}

    def all(self, version: int) -> list[MetadataResponseTopic]:
        self._forget_old()
        topics = self._services.store.image.topics.values()
        known = (self._known(topic, version) for topic in topics)
        return [topic for topic in known if topic is not None]

    def get(self, name: str, version: int) -> MetadataResponseTopic | None:
        """The topic of that name, if there is one. The first version of Metadata leaves out
        replicas on nodes that are not there, and says that they are missing."""
        self._forget_old()
        topic = self._services.store.image.topics.get(name)
        return None if topic is None else self._known(topic, version)

    def _forget_old(self) -> None:
        state = _availability(self._services)
        if state != self._state:
            self._state = state
            self._told.clear()
            self._told_to_old.clear()

    def _known(self, topic: TopicMetadata, version: int) -> MetadataResponseTopic | None:
        count = self._services.topics.coming.get(topic.name)
        if count == 0:
            return None
        told = self._told if version else self._told_to_old
        known = told.get(topic.name)
        if known is None or known[0] is not topic:
            known = (topic, self._tell(topic, count, is_old=version == 0))
            told[topic.name] = known
        return known[1]

    def _tell(
        self, topic: TopicMetadata, count: int | None, *, is_old: bool
    ) -> MetadataResponseTopic:
        """``count``: of so many partitions, if not of all."""
        nodes = self._services.store.image.nodes
        partitions = []
        for each in topic.partitions[:count]:
            partition = self._tell_partition(topic.name, each)
            if is_old:
                partition = _without_absent(partition, nodes)
            partitions.append(partition)
        return MetadataResponseTopic(
            ErrorCode.NONE, topic.name, topic.topic_id.bytes, topic.is_internal, partitions
        )

    def _tell_partition(self, name: str, each: PartitionMetadata) -> MetadataResponsePartition:
        image = self._services.store.image
        leader = each.leader
        offline = [node for node in each.replicas if node not in image.nodes]
        if image.node_id in each.replicas and not self._is_served(name, each.partition):
            offline.append(image.node_id)
        if leader in offline or leader not in image.nodes:
            leader = NO_LEADER
        return MetadataResponsePartition(
            ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE,
            each.partition,
            leader,
            each.leader_epoch,
            each.replicas,
            each.isr,
            offline,
        )

    def _is_served(self, name: str, number: int) -> bool:
        key = TopicPartition(name, number)
        return any(
            key in directory.logs
            for directory in self._services.logs.directories
            if directory.is_online
        )


def _is_by_name(body: MetadataRequest) -> bool:
    return all(topic.name is not None and topic.topic_id == NO_ID for topic in body.topics or ())


def _why_missing(name: str) -> ErrorCode:
    try:
        validate_topic_name(name)
    except InvalidTopicError:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _refusal(body: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    topics = tuple(
        MetadataResponseTopic(error, topic.name or "", topic.topic_id)
        for topic in body.topics or ()
    )
    return MetadataResponse(topics=topics, error_code=error)


def _without_absent(
    partition: MetadataResponsePartition, nodes: Sequence[int]
) -> MetadataResponsePartition:
    replicas = [node for node in partition.replica_nodes if node in nodes]
    isr = [node for node in partition.isr_nodes if node in nodes]
    error = partition.error_code
    if not error and (
        len(replicas) < len(partition.replica_nodes) or len(isr) < len(partition.isr_nodes)
    ):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return partition._replace(error_code=error, replica_nodes=replicas, isr_nodes=isr)


def _description(
    name: str,
    error: ErrorCode,
    topic_id: bytes = NO_ID,
    partitions: Sequence[MetadataResponsePartition] = (),
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error,
        name,
        topic_id,
        is_internal(name),
        [
            DescribeTopicPartitionsResponsePartition(
                partition_index=each.partition_index,
                leader_id=each.leader_id,
                leader_epoch=each.leader_epoch,
                replica_nodes=each.replica_nodes,
                isr_nodes=each.isr_nodes,
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=each.offline_replicas,
            )
            for each in partitions
        ],
        TOPIC_OPERATIONS,
    )
