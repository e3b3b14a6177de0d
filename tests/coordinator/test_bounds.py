"""What clients can make a coordinator keep is bounded."""

from group_world import World

from stratalog.coordinator.coordinator import abs_java_hash
from stratalog.coordinator.member import Protocol
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


def test_the_hash_of_a_long_name_is_javas_too() -> None:
    name = "x" * 300

    value = 0
    for character in name:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value

    assert abs_java_hash(name) == abs(signed)
