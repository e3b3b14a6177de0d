"""Memory for requests: what is counted comes back, and whoever waits for it is let in, in turn."""

from hypothesis import given
from hypothesis import strategies as st

from stratalog.broker.memory import RequestMemory

KIB = 1 << 10
MIB = 1 << 20


@given(st.lists(st.integers(1, 5 * MIB), max_size=20))
def test_whatever_is_taken_and_given_back_leaves_nothing_counted(sizes: list[int]) -> None:
    memory = RequestMemory(64 * MIB)
    taken = [memory.take(size) for size in sizes]
    assert all(len(buffer) >= size for buffer, size in zip(taken, sizes, strict=True))
    assert memory.used_bytes == sum(map(len, taken))
    for buffer in taken:
        memory.give_back(buffer)
    assert memory.used_bytes == 0


@given(st.integers(1, 200 * MIB))
def test_a_buffer_is_at_most_a_megabyte_or_its_own_size_too_large(size: int) -> None:
    memory = RequestMemory(1 << 40)
    capacity = len(memory.take(size))
    assert size <= capacity <= max(16 * KIB, 2 * size, size + MIB)


def test_small_buffers_are_used_again_and_large_ones_are_not_kept() -> None:
    memory = RequestMemory(64 * MIB)
    small, large = memory.take(20 * KIB), memory.take(3 * MIB)
    memory.give_back(small)
    memory.give_back(large)
    assert memory.take(30 * KIB) is small
    assert memory.take(3 * MIB) is not large


def test_what_is_kept_for_later_is_bounded() -> None:
    memory = RequestMemory(1 << 40)
    buffers = [memory.take(2 * MIB) for _ in range(20)]
    for buffer in buffers:
        memory.give_back(buffer)
    again = [memory.take(2 * MIB) for _ in range(20)]
    assert sum(any(each is buffer for buffer in buffers) for each in again) == 8


class Holders:
    """Names that wait; ``woken`` in the order in which they were let in."""

    def __init__(self, memory: RequestMemory) -> None:
        self.memory = memory
        self.woken: list[str] = []

    def wait(self, name: str, *, is_holding: bool) -> None:
        self.memory.wait(name, lambda: self.woken.append(name), is_holding=is_holding)


def test_those_that_hold_something_are_let_in_before_those_that_hold_nothing() -> None:
    memory = RequestMemory(MIB)
    holders = Holders(memory)
    memory.hold(MIB)
    assert memory.may_take("favoured")
    assert not memory.may_take("late")
    holders.wait("nothing", is_holding=False)
    holders.wait("half a request", is_holding=True)
    memory.release(MIB)
    assert holders.woken == ["half a request", "nothing"]


def test_one_at_a_time_goes_over_the_limit_in_the_order_of_waiting() -> None:
    memory = RequestMemory(MIB)
    holders = Holders(memory)
    memory.hold(2 * MIB)
    assert memory.may_take("first")
    assert memory.may_take("first")
    for name in ("second", "third"):
        assert not memory.may_take(name)
        holders.wait(name, is_holding=True)
    memory.settle("first")
    assert holders.woken == ["second"]
    assert memory.may_take("second")
    assert not memory.may_take("third")
    memory.settle("second")
    assert holders.woken == ["second", "third"]


def test_who_has_gone_is_not_favoured_and_keeps_nobody_waiting() -> None:
    memory = RequestMemory(MIB)
    holders = Holders(memory)
    memory.hold(2 * MIB)
    assert memory.may_take("first")
    holders.wait("second", is_holding=True)
    holders.wait("third", is_holding=False)
    memory.settle("second")
    memory.settle("first")
    assert holders.woken == ["third"]
    memory.settle("third")
    assert memory.may_take("fourth")


def test_giving_back_lets_in_only_while_there_is_room() -> None:
    memory = RequestMemory(MIB)
    holders = Holders(memory)
    buffer = memory.take(64 * KIB)
    memory.hold(2 * MIB)
    assert memory.may_take("favoured")
    holders.wait("waits", is_holding=True)
    memory.give_back(buffer)
    assert holders.woken == []
    memory.release(2 * MIB)
    assert holders.woken == ["waits"]
