"""The small requests of administrators, beside what is compared with Apache Kafka's answers."""

from pathlib import Path

import pytest
from asking import Asking, versions, with_broker
from broker_parts import append, create_topic

from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from stratalog.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from stratalog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from stratalog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from stratalog.protocol.messages.list_config_resources import ListConfigResourcesRequest
from stratalog.storage.layout import TopicPartition

TOPIC, BROKER, LOGGER = 2, 4, 8


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_QUORUM))
def test_the_quorum_is_this_node_and_its_log_is_the_changes_of_metadata(
    tmp_path: Path, version: int
) -> None:
    async def scenario(client: Asking) -> None:
        asked = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]
        ends = []
        for _ in range(2):
            answer = await client.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(asked), version)
            quorum = answer.topics[0].partitions[0]
            (voter,) = quorum.current_voters
            assert quorum.leader_id == voter.replica_id == client.services.node_id
            assert quorum.high_watermark == voter.log_end_offset
            assert len(answer.nodes) == (version >= 2)
            ends.append(quorum.high_watermark)
            await create_topic(client.services, f"orders-{len(ends)}")
        assert ends[0] < ends[1]

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_nobody_can_be_elected_for_a_partition_that_cannot_be_served(
    tmp_path: Path, kind: int, code: ErrorCode
) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        client.services.replicas.drop(TopicPartition("orders", 0))
        wanted = ElectLeadersRequest(kind, [TopicPartitions("orders", [0])])
        answer = await client.ask(ApiKey.ELECT_LEADERS, wanted)
        assert answer.replica_election_results[0].partition_result[0].error_code == code
        every = await client.ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(kind, None))
        assert not every.replica_election_results

    with_broker(tmp_path, scenario)


def test_a_log_stays_in_the_directory_that_it_is_in(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        logs = client.services.logs
        (directory,) = logs.directories
        topics = [AlterReplicaLogDirTopic("orders", [0])]
        request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(directory.path, topics)])

        async def moved() -> int:
            answer = await client.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, request)
            return int(answer.results[0].partitions[0].error_code)

        assert await moved() == ErrorCode.NONE
        logs.detach(TopicPartition("orders", 0))
        assert await moved() == ErrorCode.INVALID_REQUEST
        directory.fail("it is broken")
        assert await moved() == ErrorCode.KAFKA_STORAGE_ERROR

    with_broker(tmp_path, scenario)


def test_a_partition_that_is_not_served_has_no_producers_to_describe(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        append(client.services, "orders")
        request = DescribeProducersRequest([TopicRequest("orders", [0])])
        served = await client.ask(ApiKey.DESCRIBE_PRODUCERS, request)
        client.services.replicas.drop(TopicPartition("orders", 0))
        dropped = await client.ask(ApiKey.DESCRIBE_PRODUCERS, request)
        codes = [each.topics[0].partitions[0].error_code for each in (served, dropped)]
        assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]

    with_broker(tmp_path, scenario)


def test_all_that_has_configs_is_listed_by_its_type(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        answer = await client.ask(ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest())
        node = str(client.services.node_id)
        assert [(each.resource_type, each.resource_name) for each in answer.config_resources] == [
            (TOPIC, "orders"),
            (BROKER, node),
            (LOGGER, node),
        ]

    with_broker(tmp_path, scenario)
