"""A purgatory against a plain model: who waits, for what, until when."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stratalog.replication.purgatory import DelayedOperation, Purgatory

KEYS = ("a", "b", "c")


class Waiting(DelayedOperation):
    """Ready when each of its keys has been set."""

    def __init__(self, number: int, deadline_ms: int, needs: set[str], state: set[str]) -> None:
        super().__init__(deadline_ms)
        self.number = number
        self.needs = needs
        self.state = state
        self.completions: list[bool] = []

    def is_ready(self) -> bool:
        return self.needs <= self.state

    def complete(self, *, is_expired: bool) -> None:
        self.completions.append(is_expired)


class PurgatoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.woken: list[int] = []
        self.purgatory = Purgatory(self.woken.append)
        self.state: set[str] = set()
        self.now_ms = 0
        self.operations: list[Waiting] = []
        self.waiting: list[Waiting] = []

    @rule(needs=st.sets(st.sampled_from(KEYS), min_size=1), wait_ms=st.integers(0, 20))
    def watch(self, needs: set[str], wait_ms: int) -> None:
        operation = Waiting(len(self.operations), self.now_ms + wait_ms, needs, self.state)
        self.operations.append(operation)
        is_ready = needs <= self.state
        woken = len(self.woken)

        assert self.purgatory.complete_or_watch(operation, needs) is is_ready

        if is_ready:
            assert operation.completions == [False]
            assert len(self.woken) == woken
        else:
            self.waiting.append(operation)
            assert self.woken[woken:] == [operation.deadline_ms]

    @rule(key=st.sampled_from(KEYS), is_set=st.booleans())
    def change(self, key: str, is_set: bool) -> None:
        (self.state.add if is_set else self.state.discard)(key)
        ready = [each for each in self.waiting if key in each.needs and each.needs <= self.state]

        assert self.purgatory.check(key) == len(ready)

        assert all(each.completions == [False] for each in ready)
        self.waiting = [each for each in self.waiting if each not in ready]

    @rule(ms=st.integers(0, 15))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        expired = [each for each in self.waiting if each.deadline_ms <= self.now_ms]

        assert self.purgatory.expire(self.now_ms) == len(expired)

        assert all(each.completions == [True] for each in expired)
        self.waiting = [each for each in self.waiting if each not in expired]

    @precondition(lambda self: self.operations)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(self.operations))
        before = list(operation.completions)

        self.purgatory.cancel(operation)

        assert operation.completions == before, "who has gone is not answered"
        self.waiting = [each for each in self.waiting if each is not operation]

    @invariant()
    def nobody_is_lost_and_nothing_leaks(self) -> None:
        assert len(self.purgatory) == len(self.waiting)
        assert set(self.purgatory.keys()) == {key for each in self.waiting for key in each.needs}
        assert not any(each.completions for each in self.waiting)
        assert all(len(each.completions) <= 1 for each in self.operations)

    @invariant()
    def the_next_deadline_is_the_earliest(self) -> None:
        deadlines = [each.deadline_ms for each in self.waiting]
        assert self.purgatory.next_deadline_ms() == min(deadlines, default=None)


TestPurgatory = PurgatoryMachine.TestCase


class Ordered(Waiting):
    """Notes its turn in a list that all of them share."""

    order: list[int]

    def complete(self, *, is_expired: bool) -> None:
        super().complete(is_expired=is_expired)
        self.order.append(self.number)


def ordered(deadlines: list[int], state: set[str]) -> tuple[Purgatory, list[int]]:
    purgatory, order = Purgatory(), list[int]()
    for number, deadline_ms in enumerate(deadlines):
        operation = Ordered(number, deadline_ms, {"a"}, state)
        operation.order = order
        purgatory.complete_or_watch(operation, ["a"])
    return purgatory, order


def test_operations_expire_in_the_order_of_their_deadlines_and_then_of_their_arrival() -> None:
    purgatory, order = ordered([30, 10, 20, 10], set())

    purgatory.expire(30)

    assert order == [1, 3, 2, 0]


def test_who_waits_longest_is_completed_first() -> None:
    state = set[str]()
    purgatory, order = ordered([30, 10, 20], state)
    state.add("a")

    purgatory.check("a")

    assert order == [0, 1, 2]


def test_completed_operations_do_not_stay_until_their_deadlines() -> None:
    state = {"b"}
    purgatory = Purgatory()
    for number in range(5_000):
        state.discard("a")
        purgatory.complete_or_watch(Waiting(number, 10**9, {"a"}, state), ["a"])
        state.add("a")
        purgatory.check("a")

    assert len(purgatory) == 0
    assert len(purgatory._deadlines) <= 1_001


class Chained(Waiting):
    """Its completion changes what another waits for, as a produce does for a fetch."""

    purgatory: Purgatory

    def complete(self, *, is_expired: bool) -> None:
        super().complete(is_expired=is_expired)
        self.purgatory.check("a")
        self.purgatory.expire(10**9)


def test_a_completion_that_completes_others_completes_each_once() -> None:
    state = set[str]()
    purgatory = Purgatory()
    operations = [Chained(number, 100 + number, {"a"}, state) for number in range(5)]
    for each in operations:
        each.purgatory = purgatory
        purgatory.complete_or_watch(each, ["a"])
    state.add("a")

    purgatory.check("a")

    assert [len(each.completions) for each in operations] == [1] * 5
    assert len(purgatory) == 0


class Failing(Waiting):
    """Its client cannot be answered."""

    def complete(self, *, is_expired: bool) -> None:
        super().complete(is_expired=is_expired)
        raise ValueError(self.number)


def waiting_for_a(state: set[str]) -> tuple[Purgatory, list[Waiting]]:
    purgatory, operations = Purgatory(), []
    for number, kind in enumerate((Waiting, Failing, Waiting, Failing, Waiting)):
        operations.append(kind(number, 100 + number, {"a"}, state))
        purgatory.complete_or_watch(operations[-1], ["a"])
    return purgatory, operations


def test_who_cannot_be_answered_keeps_nobody_else_from_an_answer() -> None:
    state = set[str]()
    purgatory, operations = waiting_for_a(state)
    state.add("a")

    with pytest.raises(ValueError, match="1"):
        purgatory.check("a")

    assert [each.completions for each in operations] == [[False]] * 5
    assert (len(purgatory), purgatory.check("a")) == (0, 0)


def test_who_cannot_be_answered_lets_the_time_of_others_run_out_too() -> None:
    purgatory, operations = waiting_for_a(set())

    with pytest.raises(ValueError, match="1"):
        purgatory.expire(103)

    assert [each.completions for each in operations] == [[True]] * 4 + [[]]
    assert purgatory.next_deadline_ms() == 104
