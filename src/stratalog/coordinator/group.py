"""One group: its members, its generation, its state; and nothing about time or logs.

Whoever changes a group answers, at once or later, what its members wait for: a member has at most
one answer to JoinGroup and one to SyncGroup outstanding, and each is given exactly once.
"""

from collections.abc import Mapping
from typing import Final

from stratalog.coordinator.log_records import NO_TIMESTAMP, StoredGroup
from stratalog.coordinator.member import (
    JoinedMember,
    JoinResult,
    Member,
    Protocol,
    RespondJoin,
    SyncResult,
    read_subscription,
)
from stratalog.coordinator.offsets import GroupOffsets
from stratalog.coordinator.states import PREVIOUS_STATES, GroupState
from stratalog.protocol.error_codes import ErrorCode

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class Group:
    """``subscribed_topics`` is None if it is not known: the members do not speak of topics, or not
    so that it could be read."""

    __slots__ = (
        "_protocol_counts",
        "awaiting_join_count",
        "generation_id",
        "group_id",
        "is_member_added",
        "leader_id",
        "members",
        "offsets",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_bytes",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(self, group_id: str, *, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_join: set[str] = set()  # have been given an id, and are to join with it
        self.pending_sync: set[str] = set()  # have joined, and are to sync
        self.subscribed_topics: frozenset[str] | None = None
        self.is_member_added = False  # since the first rebalance was last put off
        self.protocol_bytes = 0  # what its members have said of themselves
        self.offsets = GroupOffsets()
        # Counted along, since a group of thousands would be gone through at each join.
        self.awaiting_join_count = 0
        self._protocol_counts: dict[str, int] = {}

    def __repr__(self) -> str:
        return (
            f"Group({self.group_id!r}, {self.state.value}, generation {self.generation_id}, "
            f"{len(self.members)} members)"
        )

    # --- what it is ---------------------------------------------------------------------------

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        return self.state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def has_all_joined(self) -> bool:
        return not self.pending_join and self.awaiting_join_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """If it cannot be told, consumers are taken to be."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a member with these protocols and the members that are there can agree."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        count, everybody = self._protocol_counts, len(self.members)
        return any(count.get(protocol.name, 0) == everybody for protocol in protocols)

    def refusal(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Why this is not a member of the group; NONE if it is one."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    # --- states -------------------------------------------------------------------------------

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        assert self.state in PREVIOUS_STATES[state], f"{self} cannot become {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        """All who are coming have joined: they agree on a protocol, or nobody is there."""
        self.generation_id += 1
        self.pending_sync.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self._read_subscriptions()
        self.transition_to(
            GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms
        )

    # --- members ------------------------------------------------------------------------------

    def add(self, member: Member, respond: RespondJoin | None = None) -> None:
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self._await_join(member, respond)
        self.pending_join.discard(member.member_id)

    def update(
        self,
        member: Member,
        *,
        protocols: tuple[Protocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        respond: RespondJoin | None,
    ) -> None:
        """It has joined again. An answer that it still waited for has lost its reader: one client
        sends one request after the other."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.answer_join(member, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        self._await_join(member, respond)

    def remove(self, member_id: str) -> None:
        """Whoever calls has answered what the member waits for."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert not member.is_awaiting_join
            assert not member.is_awaiting_sync
            self._count_protocols(member, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def replace_static(self, group_instance_id: str, new_member_id: str) -> Member:
        """The same member under a new id; who has the old id is told that it is fenced."""
        old_member_id = self.static_members[group_instance_id]
        old = self.members.pop(old_member_id)
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.answer_join(old, JoinResult(fenced, old_member_id))
        self.answer_sync(old, SyncResult(fenced))
        new = Member(
            new_member_id,
            group_instance_id=group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_member_id] = new
        self.static_members[group_instance_id] = new_member_id
        self.pending_sync.discard(old_member_id)
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        return new

    def elect_joined_leader(self) -> bool:
        """Somebody who has joined leads; False if nobody has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].is_awaiting_join:
            return True
        for member in self.members.values():
            if member.is_awaiting_join:
                self.leader_id = member.member_id
                return True
        return False

    def select_protocol(self) -> str:
        """What all know and most like best; of equals, what was voted for first."""
        candidates = self._candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def _candidates(self) -> set[str]:
        everybody = len(self.members)
        return {name for name, count in self._protocol_counts.items() if count == everybody}

    def _count_protocols(self, member: Member, change: int) -> None:
        counts = self._protocol_counts
        for protocol in member.protocols:
            self.protocol_bytes += change * len(protocol.metadata)
            count = counts.get(protocol.name, 0) + change
            if count:
                counts[protocol.name] = count
            else:
                del counts[protocol.name]

    # --- answers ------------------------------------------------------------------------------

    def joined(self, member: Member, *, skip_assignment: bool = False) -> JoinResult:
        """The current generation, as this member is told of it."""
        is_leader = self.leader_id == member.member_id
        return JoinResult(
            ErrorCode.NONE,
            member.member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader_id or "",
            skip_assignment,
            self.joined_members() if is_leader else (),
        )

    def synced(self, member: Member) -> SyncResult:
        """What this member has got."""
        return SyncResult(ErrorCode.NONE, self.protocol_type, self.protocol_name, member.assignment)

    def joined_members(self) -> list[JoinedMember]:
        return [
            JoinedMember(each.member_id, each.group_instance_id, each.metadata(self.protocol_name))
            for each in self.members.values()
        ]

    def _await_join(self, member: Member, respond: RespondJoin | None) -> None:
        member.respond_join = respond
        self.awaiting_join_count += respond is not None

    def answer_join(self, member: Member, result: JoinResult) -> bool:
        respond, member.respond_join = member.respond_join, None
        if respond is None:
            return False
        self.awaiting_join_count -= 1
        respond(result)
        return True

    def answer_sync(self, member: Member, result: SyncResult) -> bool:
        respond, member.respond_sync = member.respond_sync, None
        if respond is None:
            return False
        respond(result)
        return True

    def answer_all(self, error: ErrorCode) -> None:
        """What anybody waits for is not going to happen here."""
        for member in list(self.members.values()):
            self.answer_join(member, JoinResult(error, member.member_id))
            self.answer_sync(member, SyncResult(error))

    # --- what is kept -------------------------------------------------------------------------

    def stored(self, assignments: Mapping[str, bytes]) -> StoredGroup:
        return StoredGroup(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.leader_id,
            self.state_timestamp_ms,
            [
                member.stored(self.protocol_name, assignments.get(member.member_id, b""))
                for member in self.members.values()
            ],
        )

    def restore(self, stored: StoredGroup) -> None:
        """Become what was kept; the offsets stay as they are."""
        self.generation_id = stored.generation_id
        self.protocol_type = stored.protocol_type or None
        self.protocol_name = stored.protocol_name
        self.leader_id = stored.leader_id
        self.state_timestamp_ms = stored.state_timestamp_ms
        for each in stored.members:
            if each.member_id in self.members or each.group_instance_id in self.static_members:
                continue  # nobody writes that; the first of them counts
            member = Member(
                each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                rebalance_timeout_ms=each.rebalance_timeout_ms,
                session_timeout_ms=each.session_timeout_ms,
                protocol_type=stored.protocol_type,
                protocols=(Protocol(stored.protocol_name or "", each.subscription),),
                assignment=each.assignment,
            )
            self.add(member)
        if self.members:
            self.protocol_name = stored.protocol_name or ""
            if self.leader_id not in self.members:
                self.leader_id = next(iter(self.members))
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY
        self.subscribed_topics = self._read_subscriptions()

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """From when on the retention of an offset counts; None while it does not."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is GroupState.EMPTY:
            has_timestamp = self.state_timestamp_ms != NO_TIMESTAMP
            return self.state_timestamp_ms if has_timestamp else commit_timestamp_ms
        if (
            self.uses_consumer_protocol
            and self.subscribed_topics is not None
            and self.state is GroupState.STABLE
        ):
            return commit_timestamp_ms
        return None

    def _read_subscriptions(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            named = read_subscription(member.metadata(self.protocol_name))
            if named is None:
                return None
            topics.update(named)
        return frozenset(topics)
