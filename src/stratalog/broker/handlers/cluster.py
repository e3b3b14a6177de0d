"""DescribeCluster and DescribeLogDirs: which nodes there are, and what lies in the directories."""

import shutil
from collections.abc import Container
from pathlib import Path

from stratalog.broker.handlers.metadata import CLUSTER_OPERATIONS
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from stratalog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from stratalog.storage.directory import LogDirectory
from stratalog.storage.layout import TopicPartition

_BROKERS, _CONTROLLERS = 1, 2


class ClusterHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_CLUSTER: self.describe_cluster,
            ApiKey.DESCRIBE_LOG_DIRS: self.describe_log_dirs,
        }

    def describe_cluster(self, request: Request) -> DescribeClusterResponse:
        body: DescribeClusterRequest = request.body
        if body.endpoint_type == _CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="this is an endpoint of brokers, and one of controllers was asked",
            )
        if body.endpoint_type != _BROKERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"there is no type of endpoint {body.endpoint_type}",
            )
        image, endpoint = self._services.store.image, self._services.endpoint
        response = DescribeClusterResponse(
            cluster_id=image.cluster_id,
            controller_id=image.node_id,
            brokers=(DescribeClusterBroker(image.node_id, endpoint.host, endpoint.port),),
        )
        if body.include_cluster_authorized_operations:
            response = response._replace(cluster_authorized_operations=CLUSTER_OPERATIONS)
        return response

    def describe_log_dirs(self, request: Request) -> DescribeLogDirsResponse:
        body: DescribeLogDirsRequest = request.body
        wanted: Container[TopicPartition] | None = None
        if body.topics is not None:
            wanted = {
                TopicPartition(topic, number)
                for topic, partitions in body.topics
                for number in partitions
            }
        return DescribeLogDirsResponse(
            results=[_describe(each, wanted) for each in self._services.logs.directories]
        )


def _describe(
    directory: LogDirectory, wanted: Container[TopicPartition] | None
) -> DescribeLogDirsResult:
    path = str(Path(directory.path).absolute())
    if not directory.is_online:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for key, log in directory.logs.items():
        if wanted is None or key in wanted:
            held = DescribeLogDirsPartition(key.partition, log.size_bytes)
            topics.setdefault(key.topic, []).append(held)
    return DescribeLogDirsResult(
        ErrorCode.NONE,
        path,
        [DescribeLogDirsTopic(name, partitions) for name, partitions in topics.items()],
        usage.total,
        usage.free,
    )
