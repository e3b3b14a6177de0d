"""DescribeCluster and DescribeLogDirs, in all their versions."""

import os
from pathlib import Path

import pytest
from asking import Asking, versions, with_broker
from broker_parts import append, create_topic

from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.describe_cluster import DescribeClusterRequest
from stratalog.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from stratalog.storage.layout import TopicPartition

CLUSTER, LOG_DIRS = ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_LOG_DIRS


@pytest.mark.parametrize("version", versions(CLUSTER))
def test_every_version_tells_of_the_cluster_and_its_nodes(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        image = client.services.store.image
        answer = await client.ask(CLUSTER, DescribeClusterRequest(), version)
        assert (answer.error_code, answer.error_message) == (0, None)
        assert answer.cluster_id == image.cluster_id
        assert answer.controller_id == image.node_id
        (broker,) = answer.brokers
        assert (broker.broker_id, broker.host, broker.port) == (image.node_id, "127.0.0.1", 9092)
        assert (broker.rack, broker.is_fenced) == (None, False)
        assert answer.cluster_authorized_operations == -(2**31)
        asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = await client.ask(CLUSTER, asked, version)
        assert answer.cluster_authorized_operations == 8096

    with_broker(tmp_path, scenario)


def test_only_brokers_can_be_asked_for(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        for kind, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, 115)):
            answer = await client.ask(CLUSTER, DescribeClusterRequest(endpoint_type=kind))
            assert answer.error_code == code
            assert answer.error_message
            assert not answer.brokers

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(LOG_DIRS))
def test_every_version_tells_the_size_of_each_log(tmp_path: Path, version: int) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 2)
        await create_topic(client.services, "empty")
        append(client.services, "orders", 1, count=5)
        log = client.services.replicas.get(TopicPartition("orders", 1)).log
        answer = await client.ask(LOG_DIRS, DescribeLogDirsRequest(None), version)
        (result,) = answer.results
        assert (result.error_code, result.log_dir) == (0, str(tmp_path))
        told = {
            (topic.name, each.partition_index): (each.partition_size, each.offset_lag)
            for topic in result.topics
            for each in topic.partitions
        }
        assert log.size_bytes > 0
        assert told == {
            ("orders", 0): (0, 0),
            ("orders", 1): (log.size_bytes, 0),
            ("empty", 0): (0, 0),
        }
        if version >= 4:
            space = os.statvfs(tmp_path)
            assert result.total_bytes == space.f_blocks * space.f_frsize
            assert 0 < result.usable_bytes < result.total_bytes

    with_broker(tmp_path, scenario)


def test_only_the_logs_asked_for_are_told(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders", 3)
        asked = (DescribableLogDirTopic("orders", (1, 7)), DescribableLogDirTopic("unknown", (0,)))
        (result,) = (await client.ask(LOG_DIRS, DescribeLogDirsRequest(asked))).results
        told = [(t.name, [each.partition_index for each in t.partitions]) for t in result.topics]
        assert told == [("orders", [1])]
        (result,) = (await client.ask(LOG_DIRS, DescribeLogDirsRequest(()))).results
        assert not result.topics

    with_broker(tmp_path, scenario)


def test_a_directory_that_is_offline_is_told_as_such(tmp_path: Path) -> None:
    async def scenario(client: Asking) -> None:
        await create_topic(client.services, "orders")
        client.services.logs.directories[0].fail("it is broken")
        (result,) = (await client.ask(LOG_DIRS, DescribeLogDirsRequest(None))).results
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not result.topics

    with_broker(tmp_path, scenario)
