"""Who coordinates a group, and its members: joining, syncing, heartbeats, leaving.

The coordinator speaks in values of its own; here they become messages of the version asked in.
Message modules are imported when their API is first called: together they would take a good part
of the time in which a broker starts.
"""

import uuid
from functools import partial
from typing import TYPE_CHECKING, Final

from stratalog.broker.automatic_topics import automatic_topic
from stratalog.broker.error_mapping import code_of
from stratalog.broker.event_log import log_event
from stratalog.broker.handlers.group_admin import GroupAdminHandlers
from stratalog.broker.handlers.group_offsets import GroupOffsetHandlers
from stratalog.broker.handlers.producer_ids import NO_TRANSACTIONS, refuse_transaction
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.coordinator.coordinator import GroupCoordinator
from stratalog.coordinator.loading import read_batches
from stratalog.coordinator.member import JoinResult, SyncResult, distinct_protocols
from stratalog.coordinator.membership import JoinRequest, LeavingMember, SyncRequest
from stratalog.errors import StratalogError
from stratalog.metadata.image import MetadataChange
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records import AppendOrigin
from stratalog.replication.partition import ACKS_ALL
from stratalog.replication.parts import AppendResult
from stratalog.storage.layout import TopicPartition
from stratalog.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stratalog.protocol.messages.find_coordinator import (
        Coordinator,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )
    from stratalog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
    from stratalog.protocol.messages.join_group import JoinGroupRequest
    from stratalog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from stratalog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# Versions in which something begins.
_BATCHED_FIND: Final = 4
_REBALANCE_TIMEOUT: Final = 1
_MEMBER_ID_REQUIRED: Final = 4
_NULLABLE_PROTOCOL_NAME: Final = 7
_SKIP_ASSIGNMENT: Final = 9
_PROTOCOL_IN_SYNC: Final = 5
_BATCHED_LEAVE: Final = 3

_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY = _KEY_TYPES = (0, 1, 2)
_NO_NODE: Final = -1
# However much may be read at a time, the loop has other things to do.
_LOAD_BYTES_MAX: Final = 512 * 1024


class GroupHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._offsets = GroupOffsetHandlers(services)
        self._admin = GroupAdminHandlers(services)

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.FIND_COORDINATOR: self.find_coordinator,
            ApiKey.JOIN_GROUP: self.join_group,
            ApiKey.SYNC_GROUP: self.sync_group,
            ApiKey.HEARTBEAT: self.heartbeat,
            ApiKey.LEAVE_GROUP: self.leave_group,
            **self._offsets.table(),
            **self._admin.table(),
        }

    # --- FindCoordinator ----------------------------------------------------------------------

    def find_coordinator(self, request: Request) -> "FindCoordinatorResponse":
        from stratalog.protocol.messages.find_coordinator import FindCoordinatorResponse

        body: FindCoordinatorRequest = request.body
        if request.api_version >= _BATCHED_FIND:
            return FindCoordinatorResponse(
                coordinators=[
                    self._coordinator(request, body.key_type, key) for key in body.coordinator_keys
                ]
            )
        found = self._coordinator(request, body.key_type, body.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message or ErrorCode(found.error_code).name,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )

    def _coordinator(self, request: Request, key_type: int, key: str) -> "Coordinator":
        from stratalog.protocol.messages.find_coordinator import Coordinator

        if key_type == _TRANSACTION_KEY:
            code = refuse_transaction(self._services, request, key)
            return Coordinator(key, _NO_NODE, "", _NO_NODE, code, NO_TRANSACTIONS)
        code = self._coordinator_error(key_type, key)
        if code is not ErrorCode.NONE:
            is_known = key_type in _KEY_TYPES
            message = "" if is_known else f"There is no coordinator of type {key_type}."
            return Coordinator(key, _NO_NODE, "", _NO_NODE, code, message)
        endpoint = self._services.endpoint
        return Coordinator(
            key=key, node_id=self._services.node_id, host=endpoint.host, port=endpoint.port
        )

    def _coordinator_error(self, key_type: int, key: str) -> ErrorCode:
        if key_type != _GROUP_KEY:
            return ErrorCode.INVALID_REQUEST
        services = self._services
        topic = services.store.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            services.groups.create_offsets_topic()
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = services.groups.partition_for(key)
        is_here = topic.partition(partition).leader == services.node_id
        if not is_here or services.replicas.find(TopicPartition(OFFSETS_TOPIC, partition)) is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    # --- JoinGroup ----------------------------------------------------------------------------

    def join_group(self, request: Request) -> None:
        body: JoinGroupRequest = request.body
        version = request.api_version
        has_timeout = version >= _REBALANCE_TIMEOUT
        join = JoinRequest(
            group_id=body.group_id,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            client_id=request.client_id or "",
            client_host=request.client_host,
            session_timeout_ms=body.session_timeout_ms,
            rebalance_timeout_ms=(
                body.rebalance_timeout_ms if has_timeout else body.session_timeout_ms
            ),
            protocol_type=body.protocol_type,
            protocols=distinct_protocols(body.protocols),
            reason=body.reason,
            must_know_member_id=version >= _MEMBER_ID_REQUIRED,
            can_skip_assignment=version >= _SKIP_ASSIGNMENT,
        )
        self._services.groups.join(join, partial(_respond_join, request))

    # --- SyncGroup ----------------------------------------------------------------------------

    def sync_group(self, request: Request) -> "SyncGroupResponse | None":
        body: SyncGroupRequest = request.body
        is_unnamed = body.protocol_type is None or body.protocol_name is None
        if request.api_version >= _PROTOCOL_IN_SYNC and is_unnamed:
            from stratalog.protocol.messages.sync_group import SyncGroupResponse

            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        sync = SyncRequest(
            group_id=body.group_id,
            generation_id=body.generation_id,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            protocol_type=body.protocol_type,
            protocol_name=body.protocol_name,
            assignments={each.member_id: each.assignment for each in body.assignments},
        )
        self._services.groups.sync(sync, partial(_respond_sync, request))
        return None

    # --- Heartbeat, LeaveGroup ----------------------------------------------------------------

    def heartbeat(self, request: Request) -> "HeartbeatResponse":
        from stratalog.protocol.messages.heartbeat import HeartbeatResponse

        body: HeartbeatRequest = request.body
        return HeartbeatResponse(
            error_code=self._services.groups.heartbeat(
                body.group_id, body.generation_id, body.member_id, body.group_instance_id
            )
        )

    def leave_group(self, request: Request) -> "LeaveGroupResponse":
        from stratalog.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse

        body: LeaveGroupRequest = request.body
        is_batched = request.api_version >= _BATCHED_LEAVE
        leaving = [LeavingMember(body.member_id)]
        if is_batched:
            leaving = [
                LeavingMember(each.member_id, each.group_instance_id) for each in body.members
            ]
        codes = self._services.groups.leave(body.group_id, leaving)
        if isinstance(codes, ErrorCode):
            return LeaveGroupResponse(error_code=codes)
        if not is_batched:
            return LeaveGroupResponse(error_code=codes[0])
        return LeaveGroupResponse(
            members=[
                MemberResponse(member.member_id, member.group_instance_id, code)
                for member, code in zip(leaving, codes, strict=True)
            ]
        )


def _respond_join(request: Request, result: JoinResult) -> None:
    from stratalog.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

    is_nullable = request.api_version >= _NULLABLE_PROTOCOL_NAME
    request.respond(
        JoinGroupResponse(
            error_code=result.error_code,
            generation_id=result.generation_id,
            protocol_type=result.protocol_type,
            protocol_name=(result.protocol_name or None)
            if is_nullable
            else (result.protocol_name or ""),
            leader=result.leader_id,
            skip_assignment=result.skip_assignment,
            member_id=result.member_id,
            members=[JoinGroupResponseMember(*member) for member in result.members],
        )
    )


def _respond_sync(request: Request, result: SyncResult) -> None:
    from stratalog.protocol.messages.sync_group import SyncGroupResponse

    request.respond(
        SyncGroupResponse(
            error_code=result.error_code,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol_name,
            assignment=result.assignment,
        )
    )


# --- the coordinator among the other parts --------------------------------------------------------


def make_coordinator(services: Services, wake: "Callable[[int], None]") -> GroupCoordinator:
    """The coordinator of this broker, which hears of the partitions that it leads."""
    config = services.config
    is_creating = False

    def append(partition: int, batch: bytes, done: "Callable[[int], None]") -> None:
        key = TopicPartition(OFFSETS_TOPIC, partition)

        def appended(results: dict[TopicPartition, AppendResult]) -> None:
            error = results[key].error
            done(ErrorCode.NONE if error is None else code_of(error))

        services.replicas.append_records(
            {key: batch},
            appended,
            required_acks=ACKS_ALL,
            timeout_ms=services.config.offsets_commit_timeout_ms,
            origin=AppendOrigin.COORDINATOR,
            allow_internal_topics=True,
        )

    def read(partition: int) -> "Iterator[bytes]":
        log = services.replicas.get(TopicPartition(OFFSETS_TOPIC, partition)).log
        return read_batches(log, min(config.offsets_load_buffer_size, _LOAD_BYTES_MAX))

    def partition_count() -> int:
        topic = services.store.image.topics.get(OFFSETS_TOPIC)
        return config.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    async def create() -> None:
        nonlocal is_creating
        wanted = automatic_topic(
            OFFSETS_TOPIC, services.config, node_count=len(services.store.image.nodes)
        )
        try:
            for result in await services.topics.create([wanted]):
                if isinstance(result, StratalogError):
                    log_event("offsets_topic_not_created", reason=str(result))
        finally:
            is_creating = False

    def create_offsets_topic() -> None:
        nonlocal is_creating
        if not is_creating:
            is_creating = True
            task = services.loop.create_task(create())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    tasks: set[object] = set()
    coordinator = GroupCoordinator(
        config,
        services.clock,
        append=append,
        read=read,
        steady_clock=services.steady_clock,
        create_offsets_topic=create_offsets_topic,
        wake=wake,
        partition_count=partition_count,
        may_expire=partial(_may_expire, services),
    )
    _listen(services, coordinator)
    return coordinator


def _may_expire(services: Services) -> bool:
    """Of a directory that was adopted nobody may have said how long its broker kept offsets."""
    topic = services.store.image.topics.get(OFFSETS_TOPIC)
    return topic is None or not topic.is_held


def _listen(services: Services, coordinator: GroupCoordinator) -> None:
    def leading(key: TopicPartition, leader_epoch: int) -> None:
        if key.topic == OFFSETS_TOPIC:
            coordinator.on_leading(key.partition, leader_epoch)

    def dropped(key: TopicPartition, _leader_epoch: int) -> None:
        if key.topic == OFFSETS_TOPIC:
            coordinator.on_dropped(key.partition)

    def changed(change: MetadataChange) -> None:
        # In the thread that has changed the store.
        gone = deleted_topics(change)
        if gone:
            services.loop.call_soon_threadsafe(coordinator.topics_deleted, gone)

    services.topics.on_leading.append(leading)
    services.topics.on_dropped.append(dropped)
    services.store.subscribe(changed)


def deleted_topics(change: MetadataChange) -> dict[str, bytes]:
    """Names and ids of topics that were there before a change and are not after it."""
    before: dict[uuid.UUID, str] = {
        topic.topic_id: topic.name for topic in change.before.topics.values()
    }
    return {
        name: topic_id.bytes
        for topic_id, name in before.items()
        if topic_id not in change.after.topics_by_id
    }
