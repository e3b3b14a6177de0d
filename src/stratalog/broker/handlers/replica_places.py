"""Requests about where replicas are and which of them lead: with one node there is one answer.

    ElectLeaders                  no election is needed: whoever can lead does
    AlterPartitionReassignments   to where the replicas are: done; elsewhere: refused
    ListPartitionReassignments    none
    AlterReplicaLogDirs           to where the replica is: done; elsewhere: refused

Message modules are imported when their API is first called.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stratalog.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsResponse,
    )
    from stratalog.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsResponse
    from stratalog.protocol.messages.elect_leaders import ElectLeadersResponse
    from stratalog.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsResponse,
    )

_PREFERRED, _UNCLEAN = 0, 1
_NO_LEADER = {
    _PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    _UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}

Verdict = tuple[ErrorCode, str | None]


class ReplicaPlaceHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.ELECT_LEADERS: self.elect_leaders,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self.alter_partition_reassignments,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self.list_partition_reassignments,
            ApiKey.ALTER_REPLICA_LOG_DIRS: self.alter_replica_log_dirs,
        }

    def _is_known(self, topic: str, partition: int) -> bool:
        found = self._services.store.image.topics.get(topic)
        return found is not None and 0 <= partition < len(found.partitions)

    # --- leaders ------------------------------------------------------------------------------

    def elect_leaders(self, request: Request) -> "ElectLeadersResponse":
        from stratalog.protocol.messages import elect_leaders as messages

        body: messages.ElectLeadersRequest = request.body
        kind = body.election_type
        results = [
            messages.ReplicaElectionResult(
                topic.topic,
                [
                    messages.PartitionResult(number, *self._elected(kind, topic.topic, number))
                    for number in topic.partitions
                ],
            )
            # Of all partitions, those are told that have a new leader: there are none.
            for topic in body.topic_partitions or ()
        ]
        code = ErrorCode.NONE if kind in _NO_LEADER else ErrorCode.INVALID_REQUEST
        return messages.ElectLeadersResponse(error_code=code, replica_election_results=results)

    def _elected(self, kind: int, topic: str, partition: int) -> Verdict:
        if kind not in _NO_LEADER:
            return ErrorCode.INVALID_REQUEST, f"there is no type of election {kind}"
        if not self._is_known(topic, partition):
            return _unknown(topic, partition)
        if self._services.replicas.find(TopicPartition(topic, partition)) is None:
            return _NO_LEADER[kind], "its only replica cannot be served now"
        return ErrorCode.ELECTION_NOT_NEEDED, "its only replica leads"

    # --- nodes --------------------------------------------------------------------------------

    def alter_partition_reassignments(
        self, request: Request
    ) -> "AlterPartitionReassignmentsResponse":
        from stratalog.protocol.messages import alter_partition_reassignments as messages

        body: messages.AlterPartitionReassignmentsRequest = request.body
        responses = [
            messages.ReassignableTopicResponse(
                topic.name,
                [
                    messages.ReassignablePartitionResponse(
                        each.partition_index,
                        *self._reassigned(topic.name, each.partition_index, each.replicas),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
        return messages.AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=body.allow_replication_factor_change,
            error_message=None if responses else "",
            responses=responses,
        )

    def _reassigned(self, topic: str, partition: int, replicas: "Sequence[int] | None") -> Verdict:
        if not self._is_known(topic, partition):
            return _unknown(topic, partition)
        if replicas is None:
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "nothing is being reassigned"
        node_id = self._services.node_id
        if [*replicas] != [node_id]:
            rule = f"node {node_id} is the only one there is, and has one replica of each partition"
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, rule
        return ErrorCode.NONE, None

    def list_partition_reassignments(
        self, request: Request
    ) -> "ListPartitionReassignmentsResponse":
        from stratalog.protocol.messages.list_partition_reassignments import (
            ListPartitionReassignmentsResponse,
        )

        return ListPartitionReassignmentsResponse(error_message=None)

    # --- directories --------------------------------------------------------------------------

    def alter_replica_log_dirs(self, request: Request) -> "AlterReplicaLogDirsResponse":
        from stratalog.protocol.messages import alter_replica_log_dirs as messages

        body: messages.AlterReplicaLogDirsRequest = request.body
        results = [
            messages.AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    messages.AlterReplicaLogDirPartitionResult(
                        number, self._moved(wanted.path, TopicPartition(topic.name, number))
                    )
                    for number in topic.partitions
                ],
            )
            for wanted in body.dirs
            for topic in wanted.topics
        ]
        return messages.AlterReplicaLogDirsResponse(results=results)

    def _moved(self, path: str, key: TopicPartition) -> ErrorCode:
        directories = {
            str(Path(each.path).absolute()): each for each in self._services.logs.directories
        }
        directory = directories.get(path)
        if directory is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not directory.is_online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not self._is_known(key.topic, key.partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # Logs are not moved between directories. The answer has no room for a sentence.
        return ErrorCode.NONE if key in directory.logs else ErrorCode.INVALID_REQUEST


def _unknown(topic: str, partition: int) -> Verdict:
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"
