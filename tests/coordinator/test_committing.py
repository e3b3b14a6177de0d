"""Offsets: who may commit them, when they count, who deletes them and when they are forgotten."""

from typing import Any

import pytest
from group_world import GROUP, SESSION_MS, World

from stratalog.coordinator.committing import NewOffset
from stratalog.coordinator.log_records import (
    CommittedOffset,
    read_offset_key,
    read_offset_value,
)
from stratalog.coordinator.member import Protocol
from stratalog.coordinator.membership import LeavingMember
from stratalog.coordinator.offsets import GroupOffsets
from stratalog.coordinator.states import GroupState
from stratalog.protocol.error_codes import ErrorCode

NONE = ErrorCode.NONE
DAY_MS = 24 * 60 * 60 * 1000
SUBSCRIBED_TO_T = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\x00\x00\x00\x00"
TOPIC_ID = bytes(range(16))


def at(partition: int, offset: int, topic: str = "t", **changes: object) -> NewOffset:
    return NewOffset(topic, partition, offset, **changes)  # type: ignore[arg-type]


# --- committing ---------------------------------------------------------------------------------


def test_a_consumer_that_is_in_no_group_may_commit_and_has_made_one() -> None:
    world = World()

    assert world.commit(at(0, 5), at(1, 6)) == [[NONE, NONE]]

    assert world.offsets() == {("t", 0): 5, ("t", 1): 6}
    assert world.group().state is GroupState.EMPTY
    assert world.group().protocol_type is None


def test_everything_about_an_offset_is_kept() -> None:
    world = World()
    world.commit(at(3, 5, leader_epoch=7, metadata="mine", topic_id=TOPIC_ID))
    now_ms = world.clock.now_ms()

    (record,) = world.log.records()

    assert read_offset_key(record.key or b"") == (GROUP, "t", 3)
    kept = read_offset_value(record.value or b"")
    assert kept == CommittedOffset(5, 7, "mine", now_ms, topic_id=TOPIC_ID)
    assert record.timestamp_ms == now_ms
    world.start()
    assert world.group().offsets.get("t", 3) == kept


def test_members_commit_with_their_generation_alone() -> None:
    world = World()
    (member_id,) = world.stable(1)

    def codes(**changes: Any) -> ErrorCode:
        (answer,) = world.commit(at(0, 1), **changes)
        return answer[0]

    assert codes(generation_id=1, member_id=member_id) is NONE
    assert codes(generation_id=2, member_id=member_id) is ErrorCode.ILLEGAL_GENERATION
    assert codes(generation_id=1, member_id="stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert codes() is ErrorCode.UNKNOWN_MEMBER_ID
    assert codes(group_instance_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert codes(member_id=member_id) is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("knows", "code"),
    [(True, ErrorCode.GROUP_ID_NOT_FOUND), (False, ErrorCode.ILLEGAL_GENERATION)],
)
def test_a_member_of_a_group_that_is_not_there_is_told_so_in_words_it_knows(
    knows: bool, code: ErrorCode
) -> None:
    world = World()

    answers = world.commit(at(0, 1), generation_id=1, member_id="m", knows_group_not_found=knows)

    assert answers == [[code]]
    assert world.coordinator.find(GROUP) is None


def test_nobody_commits_between_joining_and_the_leaders_word() -> None:
    world = World()
    (answer,) = world.join_new()

    answers = world.commit(at(0, 1), generation_id=1, member_id=answer.member_id)

    assert answers == [[ErrorCode.REBALANCE_IN_PROGRESS]]


def test_members_commit_while_a_rebalance_begins_and_stay_in_by_it() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    for _ in range(3):
        world.advance(SESSION_MS - 1)
        answers = world.commit(at(0, 1), generation_id=2, member_id=follower)
        assert answers == [[NONE]]


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    world = World(offset_metadata_max_bytes=3)

    answers = world.commit(at(0, 1, metadata="four"), at(1, 2, metadata="3çh"), at(2, 3))

    assert answers == [[ErrorCode.OFFSET_METADATA_TOO_LARGE, NONE, NONE]]
    assert world.offsets() == {("t", 1): 2, ("t", 2): 3}


def test_metadata_is_measured_as_java_measures_strings() -> None:
    world = World(offset_metadata_max_bytes=3)

    answers = world.commit(at(0, 1, metadata="\N{SNAKE}\N{SNAKE}"), at(1, 1, metadata=None))

    assert answers == [[ErrorCode.OFFSET_METADATA_TOO_LARGE, NONE]]


def test_a_commit_that_holds_nothing_acceptable_leaves_no_group_behind() -> None:
    world = World(offset_metadata_max_bytes=3)

    world.commit(at(0, 1, metadata="four"))

    assert world.coordinator.find(GROUP) is None
    assert world.log.records() == []


def test_a_commit_counts_when_it_is_in_the_log_and_is_answered_then() -> None:
    world = World()
    world.commit(at(0, 1))
    world.log.hold = True

    answers = world.commit(at(0, 2), at(1, 7))

    assert answers == []
    assert world.offsets() == {("t", 0): 1}
    world.log.release()
    assert answers == [[NONE, NONE]]
    assert world.offsets() == {("t", 0): 2, ("t", 1): 7}


def test_a_commit_that_fails_has_never_been() -> None:
    world = World()
    world.commit(at(0, 1))
    world.log.hold = True
    answers = world.commit(at(0, 2))
    first = world.commit(at(0, 9), group_id="other")

    world.log.release(ErrorCode.REQUEST_TIMED_OUT)

    assert answers == first == [[ErrorCode.COORDINATOR_NOT_AVAILABLE]]
    assert world.offsets() == {("t", 0): 1}
    assert world.coordinator.find("other") is None


def test_of_two_commits_on_their_way_the_later_counts_however_they_are_answered() -> None:
    world = World()
    world.log.hold = True
    world.commit(at(0, 1))
    world.commit(at(0, 2))

    for done in reversed(world.log.held):
        done(NONE)

    assert world.offsets() == {("t", 0): 2}
    world.start()
    assert world.offsets() == {("t", 0): 2}


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.INVALID_REQUIRED_ACKS),
    ],
)
def test_what_goes_wrong_in_the_log_is_told_in_words_that_clients_of_groups_know(
    failure: ErrorCode, code: ErrorCode
) -> None:
    world = World()
    world.log.refuse = failure

    assert world.commit(at(0, 1)) == [[code]]


# --- fetching -----------------------------------------------------------------------------------


def test_a_group_that_is_not_there_has_no_offsets() -> None:
    assert World().offsets("nobody") == {}


def test_stable_offsets_wait_for_those_on_their_way() -> None:
    world = World()
    world.log.hold = True
    world.commit(at(0, 1))
    world.commit(at(0, 2))

    waiting = world.fetch(require_stable=True)
    assert waiting == []
    assert world.offsets() == {}
    world.log.held.pop(0)(NONE)
    assert waiting == []
    world.log.release()

    assert isinstance(waiting[0], GroupOffsets)
    assert waiting[0].get("t", 0) is not None
    assert len(waiting) == 1


# --- deleting -----------------------------------------------------------------------------------


def delete(world: World, *wanted: tuple[str, int]) -> list[object]:
    answers: list[object] = []
    world.coordinator.delete_offsets(GROUP, wanted, answers.append)
    return answers


def test_offsets_are_deleted_with_tombstones() -> None:
    world = World()
    world.commit(at(0, 1), at(1, 2))

    assert delete(world, ("t", 0), ("t", 9)) == [{("t", 0): NONE, ("t", 9): NONE}]

    assert world.offsets() == {("t", 1): 2}
    assert world.log.types() == [1, 1, -1]
    world.start()
    assert world.offsets() == {("t", 1): 2}


def test_offsets_of_topics_that_members_read_are_not_deleted() -> None:
    world = World()
    protocols = (Protocol("range", SUBSCRIBED_TO_T),)
    (member_id,) = world.stable(1, protocols=protocols)
    world.commit(at(0, 1), at(0, 2, topic="u"), generation_id=1, member_id=member_id)

    (answer,) = delete(world, ("t", 0), ("u", 0))

    assert answer == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): NONE}
    assert world.offsets() == {("t", 0): 1}


def test_if_it_cannot_be_told_what_members_read_nothing_is_deleted() -> None:
    world = World()
    world.stable(1)  # its metadata is no subscription

    assert delete(world, ("t", 0)) == [{("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}]


def test_offsets_of_members_that_are_no_consumers_are_not_deleted() -> None:
    world = World()
    (answer,) = world.join_new(protocol_type="connect")
    world.sync(answer.member_id, 1, {}, protocol_type="connect")

    assert delete(world, ("t", 0)) == [ErrorCode.NON_EMPTY_GROUP]


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    assert delete(World(), ("t", 0)) == [ErrorCode.GROUP_ID_NOT_FOUND]


def delete_groups(world: World, *group_ids: str) -> list[dict[str, ErrorCode]]:
    answers: list[dict[str, ErrorCode]] = []
    world.coordinator.delete_groups(group_ids, answers.append)  # type: ignore[arg-type]
    return answers


def test_groups_are_deleted_with_all_their_offsets_unless_somebody_is_in_them() -> None:
    world = World(partitions=5)
    world.stable(1)
    world.commit(at(0, 1), at(1, 1), group_id="a")
    world.commit(at(0, 1), group_id="b")

    (answer,) = delete_groups(world, GROUP, "a", "b", "none", "a")

    assert answer == {
        GROUP: ErrorCode.NON_EMPTY_GROUP,
        "a": NONE,
        "b": NONE,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert [group.group_id for group in world.coordinator.all()] == [GROUP]
    world.start()
    assert [group.group_id for group in world.coordinator.all()] == [GROUP]


def test_a_group_that_could_not_be_deleted_is_still_there() -> None:
    world = World()
    world.commit(at(0, 1))
    world.log.hold = True
    answers = delete_groups(world, GROUP)
    assert answers == []

    world.log.release(ErrorCode.KAFKA_STORAGE_ERROR)

    assert answers == [{GROUP: ErrorCode.NOT_COORDINATOR}]
    assert world.offsets() == {("t", 0): 1}


def test_a_group_that_could_not_be_deleted_waits_for_nobody_it_has_forgotten() -> None:
    world = World()
    (asked,) = world.join()
    world.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
    delete_groups(world, GROUP)
    world.log.refuse = None

    assert world.join(asked.member_id)[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    leader, follower = world.stable(2)
    world.join(leader)
    assert world.join(follower)[0].error_code is NONE


def test_who_commits_while_a_group_is_being_deleted_has_made_a_new_one() -> None:
    world = World()
    world.commit(at(0, 1), at(1, 1))
    world.log.hold = True
    delete_groups(world, GROUP)
    world.commit(at(0, 5))

    world.log.release()

    assert world.offsets() == {("t", 0): 5}
    world.start()
    assert world.offsets() == {("t", 0): 5}


def test_an_offset_on_its_way_is_deleted_with_its_group() -> None:
    world = World()
    world.log.hold = True
    world.commit(at(0, 1))

    delete_groups(world, GROUP)
    world.log.release()

    world.start()
    assert world.coordinator.find(GROUP) is None


def test_so_many_offsets_that_they_do_not_fit_a_batch_are_deleted_in_several() -> None:
    world = World()
    long_name = "t" * 249
    for start in range(0, 2_000, 500):
        world.commit(*[at(number, 1, topic=long_name) for number in range(start, start + 500)])
    before = len(world.log.partitions[0])

    (answer,) = delete_groups(world, GROUP)

    assert answer == {GROUP: NONE}
    assert len(world.log.partitions[0]) - before > 1
    assert max(map(len, world.log.partitions[0])) < 1 << 20
    world.start()
    assert world.coordinator.find(GROUP) is None


def test_offsets_of_a_deleted_topic_are_forgotten() -> None:
    world = World(partitions=3)
    for group_id in "abc":
        world.commit(at(0, 1, topic_id=TOPIC_ID), at(0, 2, topic="u"), at(1, 3), group_id=group_id)

    world.coordinator.topics_deleted({"t": TOPIC_ID})

    for group_id in "abc":
        assert world.offsets(group_id) == {("u", 0): 2}
    world.start()
    assert world.offsets("a") == {("u", 0): 2}


def test_offsets_of_a_new_topic_of_the_same_name_are_not() -> None:
    world = World()
    world.commit(at(0, 1, topic_id=TOPIC_ID))

    world.coordinator.topics_deleted({"t": bytes(range(1, 17))})

    assert world.offsets() == {("t", 0): 1}


# --- retention ----------------------------------------------------------------------------------


def test_offsets_of_a_simple_group_expire_a_week_after_their_commit() -> None:
    world = World()
    world.commit(at(0, 1))
    world.advance(5 * DAY_MS)
    world.commit(at(1, 1))

    world.advance(2 * DAY_MS)

    assert world.offsets() == {("t", 1): 1}
    world.advance(5 * DAY_MS)
    assert world.coordinator.find(GROUP) is None
    assert world.log.types() == [1, 1, -1, -1, -2]


def test_offsets_of_members_expire_a_week_after_the_last_has_left() -> None:
    world = World()
    protocols = (Protocol("range", SUBSCRIBED_TO_T),)
    (member_id,) = world.stable(1, protocols=protocols, session_timeout_ms=1_800_000)
    world.commit(at(0, 1), generation_id=1, member_id=member_id)
    for _ in range(20 * 48):  # twenty days in half hours
        world.advance(DAY_MS // 48 - 1)
        assert world.heartbeat(member_id, 1) is NONE
    assert world.offsets() == {("t", 0): 1}
    world.coordinator.leave(GROUP, [LeavingMember(member_id)])

    world.advance(7 * DAY_MS - 1)
    assert world.offsets() == {("t", 0): 1}
    world.advance(600_000)

    assert world.coordinator.find(GROUP) is None


def test_what_is_committed_after_a_long_sleep_of_the_machine_is_as_young_after_a_restart() -> None:
    world = World()
    world.sleep(30 * DAY_MS)
    (member_id,) = world.stable(1)
    world.commit(at(0, 1), generation_id=1, member_id=member_id)
    world.coordinator.leave(GROUP, [LeavingMember(member_id)])
    world.commit(at(0, 2), group_id="simple")

    world.start()
    world.advance(6 * DAY_MS)

    assert world.offsets() == {("t", 0): 1}
    assert world.offsets("simple") == {("t", 0): 2}
    world.advance(DAY_MS + 600_000)
    assert world.coordinator.find(GROUP) is None
    assert world.coordinator.find("simple") is None


def test_nobody_is_out_because_the_machine_has_slept() -> None:
    world = World()
    (member_id,) = world.stable(1, session_timeout_ms=10_000)
    world.sleep(DAY_MS)
    world.advance(9_999)
    assert world.heartbeat(member_id, 1) is NONE


def test_offsets_of_topics_that_members_no_longer_read_expire_as_well() -> None:
    world = World(offsets_retention_minutes=1)
    protocols = (Protocol("range", SUBSCRIBED_TO_T),)
    (member_id,) = world.stable(1, protocols=protocols, session_timeout_ms=1_800_000)
    world.commit(at(0, 1), at(0, 2, topic="u"), generation_id=1, member_id=member_id)

    world.advance(600_000)

    assert world.offsets() == {("t", 0): 1}


def test_a_retention_that_the_client_has_asked_for_counts() -> None:
    world = World()
    world.commit(at(0, 1), retention_ms=30 * DAY_MS)
    world.commit(at(1, 1), retention_ms=1)

    world.advance(10 * DAY_MS)

    assert world.offsets() == {("t", 0): 1}


def test_a_retention_of_longer_than_time_can_be_told_is_for_ever() -> None:
    world = World()
    (codes,) = world.commit(at(0, 1), retention_ms=2**63 - 1)
    assert codes == [NONE]

    world.advance(1_000 * DAY_MS)
    assert world.offsets() == {("t", 0): 1}
    world.start()
    assert world.offsets() == {("t", 0): 1}


def test_nothing_expires_while_nobody_knows_how_long_offsets_are_kept() -> None:
    world = World()
    world.may_expire = False
    world.commit(at(0, 1))
    world.advance(30 * DAY_MS)
    assert world.offsets() == {("t", 0): 1}

    world.may_expire = True
    world.advance(600_000)
    assert world.coordinator.find(GROUP) is None


def test_an_offset_that_is_on_its_way_does_not_expire() -> None:
    world = World(offsets_retention_minutes=1)
    world.commit(at(0, 1))
    world.log.hold = True
    world.advance(599_000)
    world.commit(at(0, 2))

    world.advance(600_000)
    assert world.log.types() == [1, 1]


def test_a_group_that_somebody_is_about_to_join_is_not_forgotten() -> None:
    world = World()
    world.advance(600_000 - 1)
    (answer,) = world.join()

    world.advance(1)

    assert world.join(answer.member_id)[0].error_code is NONE


def test_a_group_that_never_had_anything_is_forgotten() -> None:
    world = World()
    world.join()

    world.advance(600_000 + SESSION_MS)
    world.advance(600_000)

    assert world.coordinator.find(GROUP) is None
    assert world.log.types() == [2, -2]
