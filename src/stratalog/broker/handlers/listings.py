"""Small requests that list or describe: what one node knows, and what it has none of.

    DescribeProducers               from the state of each partition's log
    DescribeQuorum                  this node is the whole quorum; changes of metadata are its log
    ListConfigResources             topics, this node, and groups with configs of their own
    ListTransactions                none: nobody can begin one
    DescribeClientQuotas            none are kept
    DescribeUserScramCredentials    none are kept

Message modules are imported when their API is first called.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING

from stratalog.broker.error_mapping import short_message
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.metadata.config_resources import ResourceType
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stratalog.protocol.messages.describe_client_quotas import (
        ComponentData,
        DescribeClientQuotasResponse,
    )
    from stratalog.protocol.messages.describe_producers import (
        DescribeProducersResponse,
        PartitionResponse,
    )
    from stratalog.protocol.messages.describe_quorum import (
        DescribeQuorumResponse,
        ResponsePartitionData,
    )
    from stratalog.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsResponse,
    )
    from stratalog.protocol.messages.list_config_resources import ListConfigResourcesResponse
    from stratalog.protocol.messages.list_transactions import ListTransactionsResponse

METADATA_TOPIC = "__cluster_metadata"
_QUORUM_EPOCH = 1
_TRANSACTION_STATES = frozenset(
    (
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "PrepareEpochFence",
    )
)
_EXACT, _DEFAULT, _ANY = range(3)
_QUOTA_ENTITIES = frozenset(("user", "client-id", "ip"))


class ListingHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_PRODUCERS: self.describe_producers,
            ApiKey.DESCRIBE_QUORUM: self.describe_quorum,
            ApiKey.LIST_CONFIG_RESOURCES: self.list_config_resources,
            ApiKey.LIST_TRANSACTIONS: self.list_transactions,
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self.describe_client_quotas,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self.describe_user_scram_credentials,
        }

    # --- producers and transactions -----------------------------------------------------------

    def describe_producers(self, request: Request) -> "DescribeProducersResponse":
        from stratalog.protocol.messages import describe_producers as messages

        body: messages.DescribeProducersRequest = request.body
        topics = [
            messages.TopicResponse(
                topic.name,
                [
                    self._producers_of(TopicPartition(topic.name, number))
                    for number in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
        return messages.DescribeProducersResponse(topics=topics)

    def _producers_of(self, key: TopicPartition) -> "PartitionResponse":
        from stratalog.protocol.messages.describe_producers import PartitionResponse, ProducerState

        found = self._services.replicas.find(key)
        if found is None:
            topic = self._services.store.image.topics.get(key.topic)
            if topic is not None and 0 <= key.partition < len(topic.partitions):
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                return PartitionResponse(key.partition, code, f"{key} cannot be served now")
            reason = short_message(f"there is no partition {key}")
            return PartitionResponse(key.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
        states = [
            ProducerState(
                producer_id=each.producer_id,
                producer_epoch=each.epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp_ms,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=-1
                if each.transaction_first_offset is None
                else each.transaction_first_offset,
            )
            for each in found.log.producers
        ]
        return PartitionResponse(key.partition, active_producers=states)

    def list_transactions(self, request: Request) -> "ListTransactionsResponse":
        from stratalog.protocol.messages import list_transactions as messages

        body: messages.ListTransactionsRequest = request.body
        if body.transactional_id_pattern:
            try:
                re.compile(body.transactional_id_pattern)
            except re.error:
                code = ErrorCode.INVALID_REGULAR_EXPRESSION
                return messages.ListTransactionsResponse(error_code=code)
        unknown = [each for each in body.state_filters if each not in _TRANSACTION_STATES]
        return messages.ListTransactionsResponse(unknown_state_filters=unknown)

    # --- the quorum ---------------------------------------------------------------------------

    def describe_quorum(self, request: Request) -> "DescribeQuorumResponse":
        from stratalog.protocol.messages import describe_quorum as messages

        body: messages.DescribeQuorumRequest = request.body
        topics = [
            messages.ResponseTopicData(
                topic.topic_name,
                [self._quorum(topic.topic_name, each.partition_index) for each in topic.partitions],
            )
            for topic in body.topics
        ]
        is_there = any(not each.error_code for topic in topics for each in topic.partitions)
        nodes = [messages.Node(self._services.node_id)] if is_there else []
        return messages.DescribeQuorumResponse(topics=topics, nodes=nodes)

    def _quorum(self, topic: str, partition: int) -> "ResponsePartitionData":
        from stratalog.protocol.messages.describe_quorum import ReplicaState, ResponsePartitionData

        if (topic, partition) != (METADATA_TOPIC, 0):
            return ResponsePartitionData(
                partition,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the only quorum is that of {METADATA_TOPIC}-0",
            )
        image, now_ms = self._services.store.image, self._services.clock.now_ms()
        voter = ReplicaState(
            replica_id=image.node_id,
            log_end_offset=image.epoch,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        return ResponsePartitionData(
            partition_index=partition,
            leader_id=image.node_id,
            leader_epoch=_QUORUM_EPOCH,
            high_watermark=image.epoch,
            current_voters=[voter],
        )

    # --- configs, quotas and credentials --------------------------------------------------------

    def list_config_resources(self, request: Request) -> "ListConfigResourcesResponse":
        from stratalog.protocol.messages import list_config_resources as messages

        body: messages.ListConfigResourcesRequest = request.body
        wanted = {*body.resource_types}
        if request.api_version == 0:
            wanted = {ResourceType.CLIENT_METRICS}
        elif not wanted:
            wanted = {each.value for each in ResourceType} - {ResourceType.UNKNOWN}
        if not wanted <= {each.value for each in ResourceType} - {ResourceType.UNKNOWN}:
            return messages.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        resources = [
            messages.ConfigResource(name, kind)
            for kind in sorted(wanted)
            for name in self._resources_of(kind)
        ]
        return messages.ListConfigResourcesResponse(config_resources=resources)

    def _resources_of(self, kind: int) -> "Iterator[str]":
        image = self._services.store.image
        if kind == ResourceType.TOPIC:
            yield from image.topics
        elif kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
            yield str(image.node_id)

    def describe_client_quotas(self, request: Request) -> "DescribeClientQuotasResponse":
        from stratalog.protocol.messages import describe_client_quotas as messages

        body: messages.DescribeClientQuotasRequest = request.body
        code, reason = _wrong_filter(body.components)
        if code:
            return messages.DescribeClientQuotasResponse(
                error_code=code, error_message=short_message(reason), entries=None
            )
        return messages.DescribeClientQuotasResponse()

    def describe_user_scram_credentials(
        self, request: Request
    ) -> "DescribeUserScramCredentialsResponse":
        from stratalog.protocol.messages import describe_user_scram_credentials as messages

        body: messages.DescribeUserScramCredentialsRequest = request.body
        counts = Counter(user.name for user in body.users or ())
        results = [
            messages.DescribeUserScramCredentialsResult(
                name,
                ErrorCode.RESOURCE_NOT_FOUND if count == 1 else ErrorCode.DUPLICATE_RESOURCE,
                "no credentials are kept here" if count == 1 else "the user is named twice",
            )
            for name, count in counts.items()
        ]
        return messages.DescribeUserScramCredentialsResponse(results=results)


def _wrong_filter(components: "Sequence[ComponentData]") -> tuple[ErrorCode, str]:
    """Why Kafka refuses to look for quotas of such entities."""
    seen: set[str] = set()
    for each in components:
        kind = each.entity_type
        if not kind:
            return ErrorCode.INVALID_REQUEST, "an entity has a type"
        if each.match_type not in (_EXACT, _DEFAULT, _ANY):
            return ErrorCode.INVALID_REQUEST, f"there is no type of match {each.match_type}"
        if (each.match is None) == (each.match_type == _EXACT):
            return ErrorCode.INVALID_REQUEST, f"{kind}: an exact match has a name, others have none"
        if kind in seen:
            return ErrorCode.INVALID_REQUEST, f"{kind} is there more than once"
        if kind not in _QUOTA_ENTITIES:
            return ErrorCode.UNSUPPORTED_VERSION, f"{kind!r} is nothing that has quotas"
        seen.add(kind)
    if "ip" in seen and len(seen) > 1:
        return ErrorCode.INVALID_REQUEST, "ip cannot be combined with other entities"
    return ErrorCode.NONE, ""
