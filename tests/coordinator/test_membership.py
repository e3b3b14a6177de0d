"""Joining, syncing, staying and leaving: what each member is told, and when."""

import pytest
from group_world import GROUP, RANGE, REBALANCE_MS, SESSION_MS, World

from stratalog.coordinator.member import Protocol
from stratalog.coordinator.membership import LeavingMember
from stratalog.coordinator.states import GroupState
from stratalog.protocol.error_codes import ErrorCode

ROUND_ROBIN = Protocol("roundrobin", b"rr")


# --- joining ------------------------------------------------------------------------------------


def test_who_has_no_id_is_given_one_and_has_to_come_back_with_it() -> None:
    world = World()

    (answer,) = world.join()

    assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "client-0001"
    assert world.group().state is GroupState.EMPTY
    (joined,) = world.join(answer.member_id)
    assert joined.error_code is ErrorCode.NONE
    assert joined.leader_id == joined.member_id == answer.member_id
    assert [member.metadata for member in joined.members] == [b"r"]


def test_old_clients_are_admitted_at_once() -> None:
    (answer,) = World().join(must_know_member_id=False)

    assert answer.error_code is ErrorCode.NONE
    assert answer.generation_id == 1


def test_an_id_that_is_not_used_within_the_session_timeout_is_forgotten() -> None:
    world = World()
    (answer,) = world.join()

    world.advance(SESSION_MS)

    assert not world.group().pending_join
    (late,) = world.join(answer.member_id)
    assert late.error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_members_that_were_given_an_id_until_that_expires() -> None:
    world = World()
    (leader,) = world.stable(1)
    world.join()  # given an id, and not heard of again
    rejoin = world.join(leader)

    assert rejoin == []
    world.advance(SESSION_MS)
    assert rejoin[0].error_code is ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001, -1])
def test_session_timeouts_are_bounded(timeout_ms: int) -> None:
    (answer,) = World().join("some", session_timeout_ms=timeout_ms)

    assert answer.error_code is ErrorCode.INVALID_SESSION_TIMEOUT
    assert answer.member_id == "some"


def test_a_group_without_a_name_is_refused() -> None:
    world = World()

    assert world.join(group_id="")[0].error_code is ErrorCode.INVALID_GROUP_ID
    assert world.sync("m", 1, group_id="")[0].error_code is ErrorCode.INVALID_GROUP_ID
    assert world.coordinator.heartbeat("", 1, "m") is ErrorCode.INVALID_GROUP_ID
    assert world.coordinator.leave("", []) is ErrorCode.INVALID_GROUP_ID


def test_an_unknown_id_is_refused_whether_or_not_there_is_a_group() -> None:
    world = World()
    assert world.join("stranger")[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.coordinator.find(GROUP) is None

    world.stable(1)

    assert world.join("stranger")[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("", RANGE), ("consumer", ()), ("connect", RANGE), ("consumer", (ROUND_ROBIN,))],
)
def test_who_cannot_agree_with_the_others_is_refused(
    protocol_type: str, protocols: tuple[Protocol, ...]
) -> None:
    world = World()
    world.stable(1)

    (answer,) = world.join(protocol_type=protocol_type, protocols=protocols)

    assert answer.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.group().state is GroupState.STABLE


def test_the_protocol_that_all_know_and_most_like_best_is_chosen() -> None:
    world = World()
    likes_range = (Protocol("range", b"1"), ROUND_ROBIN)
    likes_rest = (ROUND_ROBIN, Protocol("range", b"2"), Protocol("sticky", b""))
    joins = [
        world.join(must_know_member_id=False, protocols=protocols)
        for protocols in (likes_rest, likes_range, likes_rest)
    ]
    first = world.group().leader_id
    assert first is not None
    joins[0] = world.join(first, protocols=likes_rest)

    assert {answers[0].protocol_name for answers in joins} == {"roundrobin"}
    assert [member.metadata for member in joins[0][0].members] == [b"rr"] * 3
    assert joins[1][0].members == ()


def test_a_group_that_is_full_takes_nobody_else() -> None:
    world = World(group_max_size=2)
    world.stable(2)

    (answer,) = world.join()

    assert answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answer.member_id == ""


def test_a_member_that_joins_again_with_nothing_new_is_told_what_it_was_told() -> None:
    world = World()
    leader, follower = world.stable(2)
    generation_id = world.group().generation_id

    (answer,) = world.join(follower)

    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, generation_id)
    assert answer.leader_id == leader
    assert answer.members == ()
    assert world.group().state is GroupState.STABLE


def test_a_leader_that_joins_again_wants_a_rebalance() -> None:
    world = World()
    leader, follower = world.stable(2)

    answers = world.join(leader)

    assert world.group().state is GroupState.PREPARING_REBALANCE
    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join(follower)
    assert answers[0].generation_id == 3


def test_new_metadata_is_a_rebalance() -> None:
    world = World()
    _, follower = world.stable(2)

    answers = world.join(follower, protocols=(Protocol("range", b"new"),))

    assert answers == []
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_new_group_that_cannot_be_stored_is_not_there_and_who_waits_is_told() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    world.log.hold = True
    waiting = world.join(must_know_member_id=False)
    assert waiting == []

    world.log.release(ErrorCode.NOT_ENOUGH_REPLICAS)

    assert waiting[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.find(GROUP) is None
    world.advance(SESSION_MS)
    assert len(waiting) == 1


def test_a_new_group_that_is_stored_late_stays_as_it_has_become() -> None:
    world = World()
    world.log.hold = True
    (joined,) = world.join(must_know_member_id=False)

    world.log.release(ErrorCode.NOT_ENOUGH_REPLICAS)

    assert world.heartbeat(joined.member_id, 1) is ErrorCode.NONE


def test_who_asks_twice_is_answered_twice() -> None:
    world = World()
    leader, follower = world.stable(2)
    first = world.join(leader)
    second = world.join(leader)
    assert first[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert second == []

    world.join(follower)

    assert second[0].error_code is ErrorCode.NONE
    early = world.sync(follower, 3)
    again = world.sync(follower, 3)
    assert early[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(leader, 3, {follower: b"b"})
    assert again[0].assignment == b"b"
    assert len(early) == 1


# --- waiting for the others ---------------------------------------------------------------------


def test_the_first_rebalance_waits_for_more_as_long_as_members_come() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    first = world.join_new()
    world.advance(2_999)
    assert first == []
    second = world.join_new()

    world.advance(1)
    assert first == []  # somebody came, so it waits once more

    world.advance(2_999)
    assert first == []
    world.advance(1)
    assert first[0].generation_id == second[0].generation_id == 1


def test_the_first_rebalance_never_waits_longer_than_the_rebalance_timeout() -> None:
    world = World(group_initial_rebalance_delay_ms=3_000)
    first = world.join_new(rebalance_timeout_ms=8_000)
    for _ in range(4):
        world.advance(2_000)
        world.join_new(rebalance_timeout_ms=8_000)

    assert len(first) == 1


def test_who_does_not_join_again_in_time_is_out_of_the_next_generation() -> None:
    world = World()
    leader, follower = world.stable(2)
    answers = world.join(leader)
    for _ in range(REBALANCE_MS // 5_000 - 1):
        world.advance(5_000)
        assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
        assert answers == []

    world.advance(5_000)

    assert [member.member_id for member in answers[0].members] == [leader]
    assert world.heartbeat(follower, 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_if_the_leader_is_late_somebody_else_leads() -> None:
    world = World()
    leader, follower = world.stable(2)
    answers = world.join(follower, protocols=(Protocol("range", b"new"),))

    world.advance(SESSION_MS)

    assert answers[0].leader_id == follower
    assert leader not in world.group().members


def test_a_new_member_whose_join_is_never_answered_is_given_up_after_five_minutes() -> None:
    world = World()
    (leader,) = world.stable(1, rebalance_timeout_ms=600_000)
    waiting = world.join_new(rebalance_timeout_ms=600_000)

    for _ in range(60):
        world.heartbeat(leader, 1)
        assert waiting == []
        world.advance(5_000)

    assert waiting[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID


# --- syncing ------------------------------------------------------------------------------------


def test_each_member_gets_what_the_leader_has_given_it_and_not_before() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)

    early = world.sync(follower, 3)
    assert early == []
    (own,) = world.sync(leader, 3, {leader: b"a", follower: b"b"})

    assert (own.assignment, early[0].assignment) == (b"a", b"b")
    assert (own.protocol_type, own.protocol_name) == ("consumer", "range")
    assert world.sync(follower, 3)[0].assignment == b"b"


def test_a_member_that_the_leader_has_forgotten_gets_nothing_but_is_in() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    early = world.sync(follower, 3)

    world.sync(leader, 3, {leader: b"a", "stranger": b"x"})

    assert early[0].error_code is ErrorCode.NONE
    assert early[0].assignment == b""


def test_assignments_are_given_out_when_they_are_in_the_log() -> None:
    world = World()
    (answer,) = world.join_new()
    world.log.hold = True

    answers = world.sync(answer.member_id, 1, {answer.member_id: b"a"})

    assert answers == []
    world.log.release()
    assert answers[0].assignment == b"a"
    assert world.group().state is GroupState.STABLE


def test_a_member_whose_session_would_have_ended_while_it_waited_has_it_whole_again() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    waiting = world.sync(follower, 3)
    for _ in range(3):  # its own session passes, while the leader makes up its mind
        world.advance(SESSION_MS - 1)
        world.heartbeat(leader, 3)
    world.sync(leader, 3, {})
    assert waiting[0].error_code is ErrorCode.NONE

    world.advance(SESSION_MS - 1)
    world.heartbeat(leader, 3)
    assert follower in world.group().members
    world.advance(1)

    assert follower not in world.group().members


def test_assignments_that_cannot_be_stored_are_not_given_out() -> None:
    world = World()
    (answer,) = world.join_new()
    world.log.refuse = ErrorCode.REQUEST_TIMED_OUT

    (synced,) = world.sync(answer.member_id, 1, {answer.member_id: b"a"})

    assert synced.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group().state is GroupState.PREPARING_REBALANCE
    world.log.refuse = None
    (again,) = world.join(answer.member_id)
    assert again.generation_id == 2


def test_an_assignment_that_comes_into_the_log_too_late_does_not_count() -> None:
    world = World()
    (answer,) = world.join_new()
    world.log.hold = True
    answers = world.sync(answer.member_id, 1, {answer.member_id: b"a"})

    world.join_new()
    assert answers[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    world.log.release()

    assert world.group().state is GroupState.PREPARING_REBALANCE
    assert len(answers) == 1


def test_an_assignment_of_the_generation_before_is_not_taken_for_one_of_this() -> None:
    world = World()
    (answer,) = world.join_new()
    member_id = answer.member_id
    world.log.hold = True
    world.sync(member_id, 1, {member_id: b"old"})
    world.join(member_id, protocols=(Protocol("range", b"new"),))
    assert world.group().generation_id == 2
    assert world.group().state is GroupState.COMPLETING_REBALANCE

    world.log.release()

    assert world.group().state is GroupState.COMPLETING_REBALANCE
    answers = world.sync(member_id, 2, {member_id: b"new"})
    world.log.release()
    assert answers[0].assignment == b"new"


def test_members_that_do_not_sync_in_time_are_out() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    waiting = world.sync(follower, 3)
    for _ in range(REBALANCE_MS // 5_000):
        world.heartbeat(leader, 3)
        assert waiting == []
        world.advance(5_000)

    assert waiting[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(world.group().members) == [follower]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"generation_id": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": None, "protocol_name": None}, ErrorCode.NONE),
    ],
)
def test_a_sync_has_to_name_the_generation_as_it_is(
    changes: dict[str, object], code: ErrorCode
) -> None:
    world = World()
    (member_id,) = world.stable(1)

    assert world.sync(member_id, 1, **changes)[0].error_code is code


def test_a_sync_during_a_rebalance_sends_the_member_to_join() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)

    assert world.sync(follower, 2)[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS


# --- staying ------------------------------------------------------------------------------------


def test_heartbeats_keep_a_member_in_and_silence_puts_it_out() -> None:
    world = World()
    (member_id,) = world.stable(1)
    for _ in range(5):
        world.advance(SESSION_MS - 1)
        assert world.heartbeat(member_id, 1) is ErrorCode.NONE

    world.advance(SESSION_MS)

    assert world.heartbeat(member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2


def test_a_member_that_expires_is_a_rebalance_for_the_others() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.advance(SESSION_MS // 2)
    world.heartbeat(leader, 2)

    world.advance(SESSION_MS // 2)

    assert world.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    (answer,) = world.join(leader)
    assert [member.member_id for member in answer.members] == [leader]
    assert world.heartbeat(follower, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_us_does_not_expire() -> None:
    world = World()
    leader, follower = world.stable(2)
    waiting = world.join(follower, protocols=(Protocol("range", b"new"),))
    for _ in range(4):
        world.advance(SESSION_MS - 1)
        world.heartbeat(leader, 2)

    assert waiting == []
    assert follower in world.group().members


@pytest.mark.parametrize(
    ("generation_id", "member_id", "code"),
    [
        (1, "stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        (0, None, ErrorCode.ILLEGAL_GENERATION),
        (1, None, ErrorCode.NONE),
    ],
)
def test_a_heartbeat_has_to_name_member_and_generation(
    generation_id: int, member_id: str | None, code: ErrorCode
) -> None:
    world = World()
    (member,) = world.stable(1)

    assert world.heartbeat(member_id or member, generation_id) is code


# --- leaving ------------------------------------------------------------------------------------


def test_who_leaves_is_out_at_once() -> None:
    world = World()
    leader, follower = world.stable(2)

    assert world.coordinator.leave(GROUP, [LeavingMember(leader)]) == [ErrorCode.NONE]

    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    (answer,) = world.join(follower)
    assert answer.leader_id == follower


def test_members_leave_together_each_with_its_own_answer() -> None:
    world = World()
    leader, follower = world.stable(2)

    codes = world.coordinator.leave(
        GROUP,
        [LeavingMember(leader), LeavingMember("stranger"), LeavingMember(follower, "not static")],
    )

    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert codes == [ErrorCode.NONE, unknown, unknown]


def test_when_the_last_one_leaves_the_group_is_empty_and_that_is_kept() -> None:
    world = World()
    (member_id,) = world.stable(1)

    world.coordinator.leave(GROUP, [LeavingMember(member_id)])

    assert world.group().state is GroupState.EMPTY
    world.start()
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2


def test_who_was_given_an_id_may_leave_before_it_joins() -> None:
    world = World()
    (asked,) = world.join()

    assert world.coordinator.leave(GROUP, [LeavingMember(asked.member_id)]) == [ErrorCode.NONE]

    assert world.join(asked.member_id)[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.coordinator.heartbeat("none", 1, "m") is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_the_last_one_leaves_nobody_waits_for_who_was_given_an_id() -> None:
    world = World()
    (member_id,) = world.stable(1)
    (asked,) = world.join()

    world.coordinator.leave(GROUP, [LeavingMember(member_id)])

    assert world.group().state is GroupState.EMPTY
    (joined,) = world.join(asked.member_id)
    assert joined.error_code is ErrorCode.NONE


def test_who_leaves_while_its_answer_is_outstanding_is_told_that_it_is_out() -> None:
    world = World()
    leader, follower = world.stable(2)
    joining = world.join(follower, protocols=(Protocol("range", b"new"),))

    world.coordinator.leave(GROUP, [LeavingMember(follower)])

    assert joining[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert leader in world.group().members


def test_who_leaves_while_it_waits_for_its_share_is_told_that_it_is_out() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    syncing = world.sync(follower, 3)

    world.coordinator.leave(GROUP, [LeavingMember(follower)])

    assert syncing[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_a_group_that_is_not_there_is_an_answer_for_each_member() -> None:
    codes = World().coordinator.leave("none", [LeavingMember("a"), LeavingMember("b")])

    assert codes == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
