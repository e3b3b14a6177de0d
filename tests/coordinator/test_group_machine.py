"""Several members, dynamic and static, and a coordinator that may be started anew at any moment.

The model knows what each client has asked and was told, and what is in the log. A client sends one
request after the other; it may also be silent for as long as it likes.
"""

from dataclasses import dataclass, field

from group_world import GROUP, REBALANCE_MS, SESSION_MS, World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stratalog.coordinator.committing import NewOffset
from stratalog.coordinator.group import Group
from stratalog.coordinator.member import JoinResult, Protocol, SyncResult
from stratalog.coordinator.membership import LeavingMember
from stratalog.coordinator.states import GroupState
from stratalog.protocol.error_codes import ErrorCode

NONE = ErrorCode.NONE
# What a member may be told when it asks to join; each of them is something it can act on.
JOIN_CODES = {
    NONE,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.NOT_COORDINATOR,
}
SYNC_CODES = {
    NONE,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.NOT_COORDINATOR,
}


@dataclass
class Client:
    name: str
    instance_id: str | None
    member_id: str = ""
    joined: JoinResult | None = None
    synced: SyncResult | None = None
    joining: list[JoinResult] | None = None
    syncing: list[SyncResult] | None = None

    @property
    def waits(self) -> bool:
        return self.joining is not None or self.syncing is not None

    def forget(self) -> None:
        self.member_id = ""
        self.joined = self.synced = None


@dataclass
class Generation:
    """What is known of one, by the first member that was told of it."""

    leader_id: str
    protocol_name: str | None
    assignments: dict[str, bytes] = field(default_factory=dict)


class GroupMachine(RuleBasedStateMachine):
    clients_given = st.integers(0, 4)

    @initialize(
        delay_ms=st.sampled_from([0, 3_000]), max_size=st.sampled_from([2**31 - 1, 2**31 - 1, 3])
    )
    def start(self, delay_ms: int, max_size: int) -> None:
        self.world = World(group_initial_rebalance_delay_ms=delay_ms, group_max_size=max_size)
        self.clients = [
            *(Client(f"dynamic {number}", None) for number in range(3)),
            *(Client(f"static {number}", f"i{number}") for number in range(2)),
        ]
        self.generations: dict[int, Generation] = {}
        self.in_log: dict[tuple[str, int], int] = {}
        self.commits: list[list[object]] = []
        self.told: list[list[object]] = []

    # --- clients ------------------------------------------------------------------------------

    @rule(number=clients_given, metadata=st.sampled_from([b"1", b"1", b"1", b"2"]))
    def join(self, number: int, metadata: bytes) -> None:
        client = self.clients[number]
        if client.waits:
            return
        client.joining = self.world.join(
            client.member_id,
            client_id=client.name,
            group_instance_id=client.instance_id,
            protocols=(Protocol("range", metadata),),
        )
        self.told.append(client.joining)  # type: ignore[arg-type]
        self._listen()

    @rule(number=clients_given)
    def sync(self, number: int) -> None:
        client = self.clients[number]
        if client.waits or client.joined is None:
            return
        joined = client.joined
        assignments = {each.member_id: each.member_id.encode() for each in joined.members}
        generation = self.generations[joined.generation_id]
        if joined.members and not joined.skip_assignment and not generation.assignments:
            generation.assignments = assignments
        client.syncing = self.world.sync(
            client.member_id,
            joined.generation_id,
            assignments,
            group_instance_id=client.instance_id,
        )
        self.told.append(client.syncing)  # type: ignore[arg-type]
        self._listen()

    @rule(number=clients_given)
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        if client.waits or client.joined is None:
            return
        code = self.world.heartbeat(
            client.member_id, client.joined.generation_id, group_instance_id=client.instance_id
        )
        assert code in {*SYNC_CODES} - {ErrorCode.NOT_COORDINATOR}
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()

    @rule(number=clients_given)
    def behave(self, number: int) -> None:
        """Do what a consumer does next."""
        client = self.clients[number]
        if client.waits:
            return
        if client.joined is None:
            self.join(number, b"1")
        elif client.synced is None:
            self.sync(number)
        else:
            self.heartbeat(number)
            if client.synced is not None and self._is_rebalancing():
                self.join(number, b"1")

    @rule()
    def everybody_behaves(self) -> None:
        for number in range(len(self.clients)):
            self.behave(number)

    @rule(turns=st.integers(2, 6))
    def everybody_behaves_for_a_while(self, turns: int) -> None:
        for _ in range(turns):
            self.everybody_behaves()
            self.advance(3_000)

    def _is_rebalancing(self) -> bool:
        group = self.world.coordinator.find(GROUP)
        return isinstance(group, Group) and group.state is GroupState.PREPARING_REBALANCE

    @rule(number=clients_given)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if client.waits or not client.member_id:
            return
        self.world.coordinator.leave(GROUP, [LeavingMember(client.member_id, client.instance_id)])
        client.forget()
        self.world.settle()
        self._listen()

    @rule(number=st.integers(3, 4))
    def put_out(self, number: int) -> None:
        """As an administrator does, whatever the member waits for."""
        client = self.clients[number]
        self.world.coordinator.leave(GROUP, [LeavingMember("", client.instance_id)])
        self.world.settle()
        self._listen()

    @rule(number=clients_given)
    def come_back(self, number: int) -> None:
        """The client has died and is started anew: nobody reads what it was waiting for."""
        client = self.clients[number]
        client.forget()
        client.joining = client.syncing = None

    @rule(number=clients_given, partition=st.integers(0, 2), offset=st.integers(0, 99))
    def commit(self, number: int, partition: int, offset: int) -> None:
        client = self.clients[number]
        if client.waits or client.synced is None or client.joined is None:
            return
        batches = sum(map(len, self.world.log.partitions.values()))
        answers = self.world.commit(
            NewOffset("t", partition, offset),
            generation_id=client.joined.generation_id,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
        )
        self.commits.append(answers)  # type: ignore[arg-type]
        self.told.append(answers)  # type: ignore[arg-type]
        if sum(map(len, self.world.log.partitions.values())) > batches:
            self.in_log["t", partition] = offset
        self._listen()

    # --- the world ----------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 2_999, SESSION_MS - 1, SESSION_MS, REBALANCE_MS]))
    def advance(self, ms: int) -> None:
        self.world.advance(ms)
        self._listen()

    @rule()
    def hold(self) -> None:
        self.world.log.hold = True

    @rule()
    def release(self) -> None:
        self.world.log.hold = False
        self.world.log.release()
        self.world.settle()
        self._listen()

    @rule()
    def refuse(self) -> None:
        self.world.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR

    @precondition(lambda self: self.world.log.refuse is not None)
    @rule()
    def accept(self) -> None:
        self.world.log.refuse = None

    @rule()
    def restart(self) -> None:
        """Whatever was not in the log is forgotten, and whoever waited will never hear of it."""
        self.world.log.hold = False
        self.world.start()
        for client in self.clients:
            client.joining = client.syncing = None
        self.told.clear()
        group = self.world.coordinator.find(GROUP)
        kept = group.generation_id if isinstance(group, Group) else -1
        self.generations = {
            number: each for number, each in self.generations.items() if number <= kept
        }
        for client in self.clients:
            if client.joined is not None and client.joined.generation_id > kept:
                client.joined = client.synced = None

    # --- what clients are told ----------------------------------------------------------------

    def _listen(self) -> None:
        for client in self.clients:
            if client.joining:
                self._joined(client, client.joining[0])
                client.joining = None
            if client.syncing:
                self._synced(client, client.syncing[0])
                client.syncing = None

    def _joined(self, client: Client, answer: JoinResult) -> None:
        assert answer.error_code in JOIN_CODES
        client.joined = client.synced = None
        if answer.error_code in (NONE, ErrorCode.MEMBER_ID_REQUIRED):
            assert client.member_id in ("", answer.member_id)
            client.member_id = answer.member_id
        else:
            client.forget()
        if answer.error_code is not NONE:
            return
        client.joined = answer
        is_leader = answer.leader_id == answer.member_id
        assert bool(answer.members) == is_leader
        known = self.generations.setdefault(
            answer.generation_id, Generation(answer.leader_id, answer.protocol_name)
        )
        assert answer.protocol_name == known.protocol_name
        # A static leader may come back under another id, which begins as the old one did.
        assert answer.leader_id.rpartition("-")[0] == known.leader_id.rpartition("-")[0]

    def _synced(self, client: Client, answer: SyncResult) -> None:
        assert answer.error_code in SYNC_CODES
        if answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        if answer.error_code is not NONE:
            client.joined = client.synced = None
            return
        assert client.joined is not None
        client.synced = answer
        given = self.generations[client.joined.generation_id].assignments
        if client.instance_id is None:
            assert answer.assignment == given.get(client.member_id, b"")
        else:
            # What it has got, it has got under one of its ids.
            prefix = f"{client.instance_id}-".encode()
            assert answer.assignment == b"" or answer.assignment.startswith(prefix)

    # --- invariants ---------------------------------------------------------------------------

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        assert all(len(answers) <= 1 for answers in getattr(self, "told", ()))

    @invariant()
    def nothing_that_is_due_is_left(self) -> None:
        if not hasattr(self, "world"):
            return
        due_ms = self.world.coordinator.next_deadline_ms()
        assert due_ms is None or due_ms > self.world.clock.now_ms()
        assert due_ms is None or min(self.world.wakes) <= due_ms

    @invariant()
    def the_group_is_consistent(self) -> None:
        if not hasattr(self, "world"):
            return
        group = self.world.coordinator.find(GROUP)
        if isinstance(group, Group):
            check_group(group)

    @invariant()
    def offsets_are_those_in_the_log(self) -> None:
        if hasattr(self, "world") and not self.world.log.held:
            assert self.world.offsets() == self.in_log

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.log.hold = False
        self.world.log.refuse = None
        self.world.log.release()
        # Five minutes is what a new member may have to wait; then everybody has been told.
        self.world.advance(5 * 60_000 + 2 * REBALANCE_MS + SESSION_MS)
        assert all(len(answers) == 1 for answers in self.told)
        group = self.world.coordinator.find(GROUP)
        if isinstance(group, Group):
            assert group.state is GroupState.EMPTY
            check_group(group)


def check_group(group: Group) -> None:
    members = group.members
    assert group.awaiting_join_count == sum(each.is_awaiting_join for each in members.values())
    assert group.static_members == {
        each.group_instance_id: each.member_id
        for each in members.values()
        if each.group_instance_id is not None
    }
    assert group.leader_id in members if members else group.leader_id is None
    assert group.pending_sync <= set(members)
    assert not group.pending_join & set(members)
    assert not (members and group.state is GroupState.EMPTY)
    assert members or group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
    if group.state is not GroupState.COMPLETING_REBALANCE:
        assert not any(each.is_awaiting_sync for each in members.values())
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        assert group.protocol_name == "range"


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(stateful_step_count=60)
