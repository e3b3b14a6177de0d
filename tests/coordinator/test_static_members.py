"""Members with an instance id of their own: they come back, and nobody notices."""

from typing import Any

from group_world import GROUP, RANGE, SESSION_MS, World

from stratalog.coordinator.member import Protocol
from stratalog.coordinator.membership import LeavingMember
from stratalog.coordinator.states import GroupState
from stratalog.protocol.error_codes import ErrorCode


def static_world(**changes: Any) -> tuple[World, str, str]:
    """A stable group of the static members a, who leads, and b."""
    world = World()
    a = world.join(group_instance_id="a", **changes)
    b = world.join(group_instance_id="b", **changes)
    a = world.join(a[0].member_id, group_instance_id="a", **changes)
    first, second = a[0].member_id, b[0].member_id
    assert a[0].leader_id == first
    world.sync(second, 2)
    world.sync(first, 2, {first: b"for a", second: b"for b"})
    assert world.group().state is GroupState.STABLE
    return world, first, second


def test_a_static_member_is_admitted_at_once_and_named_after_its_instance() -> None:
    (answer,) = World().join(group_instance_id="a")

    assert answer.error_code is ErrorCode.NONE
    assert answer.member_id == "a-0001"
    assert answer.members[0].group_instance_id == "a"


def test_who_comes_back_goes_on_with_what_it_had_and_nobody_else_notices() -> None:
    world, a, b = static_world()

    (answer,) = world.join(group_instance_id="b")

    assert answer.error_code is ErrorCode.NONE
    assert answer.member_id not in (a, b)
    assert answer.generation_id == 2
    assert (answer.leader_id, answer.skip_assignment, answer.members) == (a, False, ())
    assert world.group().state is GroupState.STABLE
    (synced,) = world.sync(answer.member_id, 2, group_instance_id="b")
    assert synced.assignment == b"for b"


def test_who_is_replaced_is_fenced_whatever_it_asks() -> None:
    world, _, b = static_world()
    world.join(group_instance_id="b")

    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(b, 2, group_instance_id="b") is fenced
    assert world.join(b, group_instance_id="b")[0].error_code is fenced
    assert world.sync(b, 2, group_instance_id="b")[0].error_code is fenced
    assert world.coordinator.leave(GROUP, [LeavingMember(b, "b")]) == [fenced]
    assert world.heartbeat(b, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_replaced_while_it_waits_is_told_so() -> None:
    world, _, b = static_world()
    waiting = world.join(b, group_instance_id="b", protocols=(Protocol("range", b"new"),))
    assert waiting == []

    world.join(group_instance_id="b")

    assert waiting[0].error_code is ErrorCode.FENCED_INSTANCE_ID


def test_a_leader_that_comes_back_is_told_to_leave_everything_as_it_is() -> None:
    world, _, b = static_world()

    (answer,) = world.join(group_instance_id="a")

    assert answer.leader_id == answer.member_id
    assert answer.skip_assignment
    assert {member.member_id for member in answer.members} == {answer.member_id, b}


def test_a_leader_that_does_not_know_how_to_skip_is_told_that_the_old_one_leads() -> None:
    world, a, _ = static_world()

    (answer,) = world.join(group_instance_id="a", can_skip_assignment=False)

    assert answer.leader_id == a
    assert not answer.skip_assignment
    assert answer.members == ()
    assert world.group().leader_id == answer.member_id


def test_the_new_id_is_answered_when_it_is_in_the_log_and_survives_a_restart() -> None:
    world, _, _ = static_world()
    world.log.hold = True
    answers = world.join(group_instance_id="b")
    assert answers == []

    world.log.release()
    world.start()

    member_id = answers[0].member_id
    assert world.group().static_members["b"] == member_id
    assert world.group().members[member_id].assignment == b"for b"


def test_if_the_new_id_cannot_be_stored_the_old_one_counts_again() -> None:
    world, _, b = static_world()
    world.log.refuse = ErrorCode.NOT_LEADER_OR_FOLLOWER

    (answer,) = world.join(group_instance_id="b")

    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert answer.member_id == ""
    assert world.group().static_members["b"] == b
    assert world.heartbeat(b, 2, group_instance_id="b") is ErrorCode.NONE


def test_coming_back_with_another_protocol_is_a_rebalance() -> None:
    both = (*RANGE, Protocol("sticky", b"s"))
    world, _, _ = static_world(protocols=both)

    answers = world.join(group_instance_id="b", protocols=(Protocol("sticky", b"s"),))

    assert answers == []
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_coming_back_before_the_leader_has_spoken_is_a_rebalance() -> None:
    world, a, _ = static_world()
    joining = world.join(a, group_instance_id="a")
    world.advance(1)
    world.join(world.group().static_members["b"], group_instance_id="b")
    assert joining[0].generation_id == 3

    answers = world.join(group_instance_id="b")

    assert answers == []
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_static_member_is_out_only_when_its_session_expires() -> None:
    world, a, b = static_world()
    joining = world.join(a, group_instance_id="a")  # a rebalance that b misses
    world.advance(SESSION_MS - 1)
    assert joining == []
    assert b in world.group().members

    world.advance(1)

    assert b not in world.group().members
    assert joining[0].generation_id == 3


def test_an_administrator_puts_a_static_member_out_by_its_instance() -> None:
    world, _, b = static_world()

    codes = world.coordinator.leave(GROUP, [LeavingMember("", "b"), LeavingMember("", "nobody")])

    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert b not in world.group().members
    assert "b" not in world.group().static_members


def test_a_static_member_that_misses_a_rebalance_is_in_the_next_generation_all_the_same() -> None:
    world, a, b = static_world(session_timeout_ms=120_000)
    joining = world.join(a, group_instance_id="a", session_timeout_ms=120_000)

    world.advance(60_000)

    assert {member.member_id for member in joining[0].members} == {a, b}
    assert world.heartbeat(b, 3, group_instance_id="b") is ErrorCode.NONE


def test_who_comes_back_before_it_has_synced_is_not_put_out_for_that() -> None:
    world, a, b = static_world(session_timeout_ms=120_000)
    joining = world.join(a, group_instance_id="a", session_timeout_ms=120_000)
    world.join(b, group_instance_id="b", session_timeout_ms=120_000)
    assert joining[0].generation_id == 3
    world.sync(a, 3, {a: b"1", b: b"2"})  # b has its share, and does not ask for it

    (back,) = world.join(group_instance_id="b", session_timeout_ms=120_000)
    world.advance(60_000)

    assert back.error_code is ErrorCode.NONE
    assert back.member_id in world.group().members
    assert world.group().state is GroupState.STABLE


def test_a_leader_that_misses_a_rebalance_is_followed_by_who_has_joined() -> None:
    world, a, b = static_world(session_timeout_ms=120_000)
    new = (Protocol("range", b"new"),)
    joining = world.join(b, group_instance_id="b", session_timeout_ms=120_000, protocols=new)

    world.advance(60_000)

    assert joining[0].leader_id == b
    assert {member.member_id for member in joining[0].members} == {a, b}


def test_a_rebalance_that_nobody_joins_goes_on_until_sessions_end() -> None:
    world, _, b = static_world(session_timeout_ms=150_000)
    world.coordinator.leave(GROUP, [LeavingMember(b, "b")])

    world.advance(120_000)
    assert world.group().state is GroupState.PREPARING_REBALANCE
    world.advance(30_000)

    assert world.group().state is GroupState.EMPTY


def test_who_comes_back_while_others_join_takes_part_in_the_rebalance() -> None:
    both = (Protocol("sticky", b"s"), *RANGE)
    world, a, _ = static_world(protocols=(*RANGE, Protocol("sticky", b"s")))
    world.log.hold = True
    back = world.join(group_instance_id="b", protocols=both)
    sticky = {"must_know_member_id": False, "protocols": (Protocol("sticky", b"s"),)}
    other = world.join(**sticky)

    world.log.release(ErrorCode.KAFKA_STORAGE_ERROR)
    assert back == other == []
    world.join(a, group_instance_id="a", protocols=both)

    assert back[0].generation_id == other[0].generation_id == 3
    assert back[0].protocol_name == "sticky"
