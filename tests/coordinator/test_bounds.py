"""What clients can make a coordinator keep is bounded."""

import pytest
from group_world import World

from stratalog.coordinator.committing import NewOffset
from stratalog.coordinator.coordinator import abs_java_hash
from stratalog.coordinator.member import Protocol
from stratalog.errors import RecordTooLargeError
from stratalog.protocol.error_codes import ErrorCode

MIB = 1 << 20


def large(size_bytes: int) -> tuple[Protocol, ...]:
    return (Protocol("range", bytes(size_bytes)),)


def test_members_that_say_too_much_of_themselves_are_refused_until_others_have_left() -> None:
    world = World()
    held = [
        world.join(must_know_member_id=False, protocols=large(16 * MIB), group_id=f"g{number}")
        for number in range(4)
    ]
    assert [answer.error_code for (answer,) in held] == [ErrorCode.NONE] * 4

    (refused,) = world.join(must_know_member_id=False, protocols=large(MIB), group_id="more")
    (small,) = world.join(must_know_member_id=False, group_id="small")
    world.advance(3_600_000)  # their sessions end
    (later,) = world.join(must_know_member_id=False, protocols=large(MIB), group_id="more")

    assert refused.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.error_code is ErrorCode.NONE
    assert later.error_code is ErrorCode.NONE


TOO_LONG = "x" * 32_768


def test_a_group_that_cannot_be_written_is_not_there_for_anybody() -> None:
    world = World()

    with pytest.raises(RecordTooLargeError):
        world.join(group_id=TOO_LONG)
    with pytest.raises(RecordTooLargeError):
        world.commit(NewOffset("t", 0, 5), group_id=TOO_LONG)
    with pytest.raises(RecordTooLargeError):
        world.commit(NewOffset("t", 0, 5), NewOffset(TOO_LONG, 0, 5), group_id="g")

    assert list(world.coordinator.all()) == []
    assert world.log.records() == []


def test_a_timer_that_fails_does_not_keep_groups_from_being_loaded() -> None:
    world = World()
    world.commit(NewOffset("t", 0, 5), group_id="kept")
    world.start(is_loaded=False)

    def fail() -> None:
        raise ValueError("no")

    now_ms = world.steady_clock.now_ms()
    world.coordinator._timers.schedule("fails", now_ms, fail)
    with pytest.raises(ValueError, match="no"):
        world.coordinator.run_due(now_ms)

    assert not world.coordinator.is_loading
    assert [group.group_id for group in world.coordinator.all()] == ["kept"]


def test_the_hash_of_a_long_name_is_javas_too() -> None:
    name = "x" * 300

    value = 0
    for character in name:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value

    assert abs_java_hash(name) == abs(signed)
