"""ListGroups, DescribeGroups and DeleteGroups, as administrators ask for them."""

from typing import TYPE_CHECKING, Final

from stratalog.broker.error_mapping import short_message
from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.coordinator.committing import RespondDeleteGroups
from stratalog.coordinator.group import Group
from stratalog.coordinator.states import GroupState
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stratalog.protocol.messages.delete_groups import DeleteGroupsRequest
    from stratalog.protocol.messages.describe_groups import (
        DescribedGroup,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
    )
    from stratalog.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

_GROUP_NOT_FOUND: Final = 6
_AUTHORIZED_OPERATIONS: Final = 3
_CLASSIC: Final = "classic"
# Read, delete, describe, describe configs, alter configs: all that there is for a group, since
# nobody is refused anything.
_ALL_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


class GroupAdminHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.LIST_GROUPS: self.list_groups,
            ApiKey.DESCRIBE_GROUPS: self.describe_groups,
            ApiKey.DELETE_GROUPS: self.delete_groups,
        }

    def list_groups(self, request: Request) -> "ListGroupsResponse":
        from stratalog.protocol.messages.list_groups import ListedGroup, ListGroupsResponse

        body: ListGroupsRequest = request.body
        groups = self._services.groups
        if groups.is_loading:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        states = {state.lower().strip() for state in body.states_filter}
        types = {kind.lower() for kind in body.types_filter}
        if types and _CLASSIC not in types:
            return ListGroupsResponse()
        return ListGroupsResponse(
            groups=[
                ListedGroup(group.group_id, group.protocol_type or "", group.state.value, _CLASSIC)
                for group in groups.all()
                if not states or group.state.value.lower() in states
            ]
        )

    def describe_groups(self, request: Request) -> "DescribeGroupsResponse":
        from stratalog.protocol.messages.describe_groups import DescribeGroupsResponse

        body: DescribeGroupsRequest = request.body
        wants_operations = body.include_authorized_operations
        answer = []
        for group_id in body.groups:
            described = self._describe(group_id, request.api_version)
            if (
                wants_operations
                and request.api_version >= _AUTHORIZED_OPERATIONS
                and described.error_code == ErrorCode.NONE
            ):
                described = described._replace(authorized_operations=_ALL_OPERATIONS)
            answer.append(described)
        return DescribeGroupsResponse(groups=answer)

    def _describe(self, group_id: str, version: int) -> "DescribedGroup":
        from stratalog.protocol.messages.describe_groups import DescribedGroup

        group = self._services.groups.find(group_id)
        if isinstance(group, Group):
            return _described(group)
        dead = GroupState.DEAD.value
        if isinstance(group, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=group)
        if version < _GROUP_NOT_FOUND:
            return DescribedGroup(group_id=group_id, group_state=dead)
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=short_message(f"Group {group_id} not found."),
            group_id=group_id,
            group_state=dead,
        )

    def delete_groups(self, request: Request) -> None:
        body: DeleteGroupsRequest = request.body
        self._services.groups.delete_groups(body.groups_names, _responder(request))


def _described(group: Group) -> "DescribedGroup":
    from stratalog.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _responder(request: Request) -> RespondDeleteGroups:
    def respond(codes: "Mapping[str, ErrorCode]") -> None:
        from stratalog.protocol.messages.delete_groups import (
            DeletableGroupResult,
            DeleteGroupsResponse,
        )

        results = [DeletableGroupResult(group_id, code) for group_id, code in codes.items()]
        request.respond(DeleteGroupsResponse(results=results))

    return respond
