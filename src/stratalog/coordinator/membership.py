"""What members ask for: to join, to be told their share, to stay, to leave.

Each request is answered exactly once, perhaps much later. What is refused changes nothing, but
for one thing that Kafka does too: who asks to join a group that does not exist has created it.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import group_key, group_value
from stratalog.coordinator.member import (
    UNKNOWN_MEMBER_ID,
    JoinResult,
    Member,
    Protocol,
    RespondJoin,
    RespondSync,
    SyncResult,
)
from stratalog.coordinator.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalances
from stratalog.coordinator.shard import Shard
from stratalog.coordinator.states import GroupState
from stratalog.protocol.error_codes import ErrorCode

# A member id is a string of the protocol, 32 KiB at most, and begins with the client's own words.
_MEMBER_ID_PREFIX_MAX = 8_000


class JoinRequest(NamedTuple):
    """``must_know_member_id``: who has no id is given one and has to come back with it.
    ``can_skip_assignment``: a leader may be told to leave everything as it is."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = None
    must_know_member_id: bool = True
    can_skip_assignment: bool = True


class SyncRequest(NamedTuple):
    """``assignments`` by member id; of the leader alone."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = {}


class LeavingMember(NamedTuple):
    """By member id, or if that is empty by instance id."""

    member_id: str
    group_instance_id: str | None = None


class Membership:
    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        rebalances: Rebalances,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._config = config
        self._clock = clock
        self._rebalances = rebalances
        self._new_id = new_id

    # --- joining ------------------------------------------------------------------------------

    def join(self, shard: Shard, request: JoinRequest, respond: RespondJoin) -> None:
        group = shard.groups.get(request.group_id)
        if group is not None:
            self._join(shard, group, request, respond)
        elif request.member_id != UNKNOWN_MEMBER_ID:
            respond(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            group = Group(request.group_id, now_ms=self._clock.now_ms())
            # As it is now; the members that join it are kept with their first generation. What
            # cannot be written is refused here, before the group is there for anybody.
            record = (group_key(group.group_id), group_value(group.stored({})))
            shard.groups[request.group_id] = group
            self._join(shard, group, request, respond)
            self._store_new(shard, group, record)

    def _store_new(self, shard: Shard, group: Group, record: tuple[bytes, bytes]) -> None:
        def done(error: ErrorCode) -> None:
            if error is ErrorCode.NONE or group.state is GroupState.DEAD or group.generation_id:
                return
            if shard.groups.get(group.group_id) is group and not group.offsets:
                del shard.groups[group.group_id]
                self._rebalances.close(group, error)

        shard.write([record], self._clock.now_ms(), done)

    def _join(self, shard: Shard, group: Group, request: JoinRequest, respond: RespondJoin) -> None:
        if not self._has_room(group, request.member_id):
            member = group.members.get(request.member_id)
            if member is not None:
                self._rebalances.forget_member(group, member)
            else:
                self._rebalances.forget_pending(group, request.member_id)
            respond(JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED))
            self._rebalances.maybe_complete_join(shard, group)
        elif not group.supports(request.protocol_type, request.protocols):
            respond(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif request.member_id != UNKNOWN_MEMBER_ID:
            self._join_again(shard, group, request, respond)
        elif request.group_instance_id is not None:
            self._join_static(shard, group, request, respond)
        else:
            self._join_new(shard, group, request, respond)

    def _has_room(self, group: Group, member_id: str) -> bool:
        most = self._config.group_max_size
        member = group.members.get(member_id)
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            # Those who have joined are counted, so that the last to come are put out if there
            # are more members than may be.
            is_waiting = member is not None and member.is_awaiting_join
            return is_waiting or group.awaiting_join_count < most
        return member is not None or len(group.members) < most

    def _make_member_id(self, prefix: str) -> str:
        return f"{prefix[:_MEMBER_ID_PREFIX_MAX]}-{self._new_id()}"

    def _join_new(
        self, shard: Shard, group: Group, request: JoinRequest, respond: RespondJoin
    ) -> None:
        member_id = self._make_member_id(request.client_id)
        if not request.must_know_member_id:
            self._add(shard, group, request, member_id, respond)
            return
        group.pending_join.add(member_id)
        self._rebalances.expect_heartbeat_of(shard, group, member_id, request.session_timeout_ms)
        respond(JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _add(
        self,
        shard: Shard,
        group: Group,
        request: JoinRequest,
        member_id: str,
        respond: RespondJoin,
    ) -> None:
        member = Member(
            member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
        )
        member.is_new = True
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is GroupState.EMPTY
        ):
            group.is_member_added = True
        group.add(member, respond)
        self._rebalances.expect_heartbeat(shard, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalances.rebalance_or_complete(
            shard, group, _because(f"{member_id} is new", request)
        )

    def _join_again(
        self, shard: Shard, group: Group, request: JoinRequest, respond: RespondJoin
    ) -> None:
        member_id = request.member_id
        if member_id in group.pending_join and request.group_instance_id is None:
            self._add(shard, group, request, member_id, respond)
            return
        refusal = group.refusal(member_id, request.group_instance_id)
        if refusal is not ErrorCode.NONE:
            respond(JoinResult(refusal, member_id))
            return
        member = group.members[member_id]
        if self._is_known_already(group, member, request):
            # It may not have got the answer; nothing has changed since.
            respond(group.joined(member))
        else:
            self._update(group, member, request, respond)
            self._rebalances.rebalance_or_complete(
                shard, group, _because(f"{member_id} has joined again", request)
            )

    def _is_known_already(self, group: Group, member: Member, request: JoinRequest) -> bool:
        if group.state is GroupState.PREPARING_REBALANCE or member.protocols != request.protocols:
            return False
        # A leader of a stable group joins again because something has changed that only it sees.
        is_leader = group.leader_id == member.member_id
        return group.state is GroupState.COMPLETING_REBALANCE or not is_leader

    def _update(
        self, group: Group, member: Member, request: JoinRequest, respond: RespondJoin | None
    ) -> None:
        group.update(
            member,
            protocols=request.protocols,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            respond=respond,
        )

    # --- static members -----------------------------------------------------------------------

    def _join_static(
        self, shard: Shard, group: Group, request: JoinRequest, respond: RespondJoin
    ) -> None:
        instance_id = request.group_instance_id
        assert instance_id is not None
        member_id = self._make_member_id(instance_id)
        if instance_id not in group.static_members:
            self._add(shard, group, request, member_id, respond)
            return
        old_leader_id = group.leader_id
        old = group.members[group.static_members[instance_id]]
        member = group.replace_static(instance_id, member_id)
        self._rebalances.expect_heartbeat(shard, group, member)
        self._update(group, member, request, respond)
        reason = _because(f"{instance_id} has come back as {member_id}", request)
        if group.state is not GroupState.STABLE:
            self._rebalances.rebalance_or_complete(shard, group, reason)
        elif group.select_protocol() != group.protocol_name:
            self._rebalances.prepare(shard, group, reason)
        else:
            self._store_replaced(shard, group, request, old, old_leader_id or "")

    def _store_replaced(
        self, shard: Shard, group: Group, request: JoinRequest, old: Member, old_leader_id: str
    ) -> None:
        """Nothing changes for the others: the new id is kept, and goes on with what the old had."""
        instance_id = request.group_instance_id
        assert instance_id is not None
        member = group.members[group.static_members[instance_id]]

        def done(error: ErrorCode) -> None:
            is_here = group.members.get(member.member_id) is member
            if not is_here or group.state is not GroupState.STABLE or not member.is_awaiting_join:
                return  # it is out, or in a rebalance with all the others
            if error is not ErrorCode.NONE:
                self._undo_replacement(shard, group, member, old, error)
            elif request.can_skip_assignment:
                is_leader = group.leader_id == member.member_id
                group.answer_join(member, group.joined(member, skip_assignment=is_leader))
            else:
                # An old client would take being the leader for an order to share out anew.
                answer = group.joined(member)
                group.answer_join(member, answer._replace(leader_id=old_leader_id, members=()))

        assignments = {each.member_id: each.assignment for each in group.members.values()}
        record = (group_key(group.group_id), group_value(group.stored(assignments)))
        shard.write([record], self._clock.now_ms(), done)

    def _undo_replacement(
        self, shard: Shard, group: Group, member: Member, old: Member, error: ErrorCode
    ) -> None:
        group.answer_join(
            member,
            group.joined(member)._replace(
                error_code=error, member_id=UNKNOWN_MEMBER_ID, members=()
            ),
        )
        assert member.group_instance_id is not None
        group.update(
            member,
            protocols=old.protocols,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            respond=None,
        )
        restored = group.replace_static(member.group_instance_id, old.member_id)
        self._rebalances.expect_heartbeat(shard, group, restored)

    # --- the others ---------------------------------------------------------------------------

    def sync(self, shard: Shard, request: SyncRequest, respond: RespondSync) -> None:
        group = shard.groups.get(request.group_id)
        if group is None or group.state is GroupState.EMPTY:
            respond(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
            return
        refusal = self._sync_refusal(group, request)
        if refusal is not ErrorCode.NONE:
            respond(SyncResult(refusal))
            return
        member = group.members[request.member_id]
        self._rebalances.synced(group, member.member_id)
        if group.state is GroupState.STABLE:
            respond(group.synced(member))
            return
        group.answer_sync(member, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        member.respond_sync = respond
        if group.leader_id == member.member_id:
            self._store_assignments(shard, group, request)

    def _sync_refusal(self, group: Group, request: SyncRequest) -> ErrorCode:
        refusal = group.refusal(request.member_id, request.group_instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        said = (request.protocol_type, request.protocol_name)
        for theirs, ours in zip(said, (group.protocol_type, group.protocol_name), strict=True):
            if theirs is not None and ours is not None and theirs != ours:
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _store_assignments(self, shard: Shard, group: Group, request: SyncRequest) -> None:
        assignments = request.assignments
        generation_id = group.generation_id

        def done(error: ErrorCode) -> None:
            is_same = group.generation_id == generation_id
            if group.state is not GroupState.COMPLETING_REBALANCE or not is_same:
                return  # somebody has joined meanwhile, and who waited has been told
            if error is ErrorCode.NONE:
                self._rebalances.propagate(shard, group, assignments)
            else:
                self._rebalances.reset_assignments(shard, group, error)
                self._rebalances.prepare(shard, group, "its assignment could not be stored")

        record = (group_key(group.group_id), group_value(group.stored(assignments)))
        shard.write([record], self._clock.now_ms(), done)

    def heartbeat(
        self,
        shard: Shard,
        group_id: str,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None,
    ) -> ErrorCode:
        group = shard.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        refusal = group.refusal(member_id, group_instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalances.expect_heartbeat(shard, group, group.members[member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, shard: Shard, group_id: str, leaving: Sequence[LeavingMember]
    ) -> list[ErrorCode]:
        """What became of each of them."""
        group = shard.groups.get(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
        results = [self._leave_one(group, member) for member in leaving]
        if ErrorCode.NONE in results and group.state is not GroupState.EMPTY:
            self._rebalances.rebalance_or_complete(shard, group, "members have left")
        return results

    def _leave_one(self, group: Group, leaving: LeavingMember) -> ErrorCode:
        member_id, instance_id = leaving
        if member_id == UNKNOWN_MEMBER_ID:
            # An administrator puts out a static member, whatever its id is at the moment.
            known = None if instance_id is None else group.static_members.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known
        elif member_id in group.pending_join:
            self._rebalances.forget_pending(group, member_id)
            return ErrorCode.NONE
        else:
            refusal = group.refusal(member_id, instance_id)
            if refusal is not ErrorCode.NONE:
                return refusal
        self._rebalances.forget_member(group, group.members[member_id])
        return ErrorCode.NONE


def _because(what: str, request: JoinRequest) -> str:
    return f"{what}; it says: {request.reason}" if request.reason else what
