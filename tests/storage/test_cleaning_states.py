"""Which partitions may be cleaned now, and which went wrong: every order of events."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stratalog.storage.cleaning.states import (
    RETRY_MS_MAX,
    CleaningState,
    CleaningStates,
    Phase,
    Uncleanable,
    UncleanablePartitions,
)
from stratalog.storage.layout import TopicPartition

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


class StatesMachine(RuleBasedStateMachine):
    """Against three plain facts: a worker is busy, it was told to stop, so many want a pause."""

    def __init__(self) -> None:
        super().__init__()
        self.states = CleaningStates()
        self.is_busy = self.is_told_to_stop = False
        self.pauses = 0

    @precondition(lambda self: not self.is_busy and not self.pauses)
    @rule()
    def begin(self) -> None:
        self.states.begin(ORDERS)
        self.is_busy, self.is_told_to_stop = True, False

    @rule()
    def pause(self) -> None:
        self.states.abort_and_pause(ORDERS)
        self.pauses += 1
        self.is_told_to_stop = self.is_busy

    @precondition(lambda self: self.pauses)
    @rule()
    def resume(self) -> None:
        self.states.resume(ORDERS)
        self.pauses -= 1

    @precondition(lambda self: self.is_busy)
    @rule()
    def done(self) -> None:
        assert self.states.done(ORDERS) == (not self.is_told_to_stop)
        self.is_busy = self.is_told_to_stop = False

    @precondition(lambda self: self.is_busy or self.pauses)
    @rule()
    def refuse_to_begin(self) -> None:
        with pytest.raises(AssertionError):
            self.states.begin(ORDERS)

    @precondition(lambda self: not self.pauses)
    @rule()
    def refuse_to_resume(self) -> None:
        with pytest.raises(AssertionError):
            self.states.resume(ORDERS)

    @precondition(lambda self: not self.is_busy)
    @rule()
    def refuse_to_be_done(self) -> None:
        with pytest.raises(AssertionError):
            self.states.done(ORDERS)

    @invariant()
    def agrees(self) -> None:
        assert self.states.is_free(ORDERS) == (not self.is_busy and not self.pauses)
        assert self.states.is_aborted(ORDERS) == (self.is_busy and self.is_told_to_stop)
        assert self.states.state(ORDERS).pauses == self.pauses
        assert self.states.is_free(OTHER)
        assert set(self.states.all()) == (set() if self.states.is_free(ORDERS) else {ORDERS})


TestStates = StatesMachine.TestCase
TestStates.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


def test_a_round_that_nobody_stopped_may_be_checkpointed() -> None:
    states = CleaningStates()
    states.begin(ORDERS)
    assert str(states.state(ORDERS)) == "in progress"
    assert states.done(ORDERS)
    assert states.is_free(ORDERS)


def test_every_pause_made_while_a_round_is_aborted_counts() -> None:
    states = CleaningStates()
    states.begin(ORDERS)
    for _ in range(3):
        states.abort_and_pause(ORDERS)
    assert states.is_aborted(ORDERS)
    assert not states.done(ORDERS)
    assert states.state(ORDERS) == CleaningState(Phase.PAUSED, 3)
    assert str(states.state(ORDERS)) == "paused (3)"


def test_an_aborted_round_stays_aborted_when_its_pauses_end_before_its_worker_notices() -> None:
    states = CleaningStates()
    states.begin(ORDERS)
    states.abort_and_pause(ORDERS)
    states.resume(ORDERS)
    assert states.is_aborted(ORDERS)
    assert not states.is_free(ORDERS)
    assert not states.done(ORDERS)
    assert states.is_free(ORDERS)


def test_pauses_from_many_threads_are_all_counted() -> None:
    states = CleaningStates()
    threads = [
        threading.Thread(target=lambda: [states.abort_and_pause(ORDERS) for _ in range(200)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states.state(ORDERS) == CleaningState(Phase.PAUSED, 800)


# --- what went wrong ------------------------------------------------------------------------------


@given(st.integers(0, 7_200_000), st.integers(1, 80))
def test_the_wait_doubles_with_each_failure_up_to_an_hour(backoff_ms: int, failures: int) -> None:
    marked = UncleanablePartitions(backoff_ms)
    now_ms = 0
    for failure in range(failures):
        found = marked.mark(ORDERS, f"reason {failure}", now_ms)
        assert found.retry_at_ms - now_ms == min(max(backoff_ms, 1) * 2**failure, RETRY_MS_MAX)
        now_ms = found.retry_at_ms
    assert found == Uncleanable(f"reason {failures - 1}", 0, failures, now_ms)


def test_a_partition_is_due_again_when_its_wait_is_over_and_not_before() -> None:
    marked = UncleanablePartitions(100)
    assert marked.due(ORDERS, 0)
    marked.mark(ORDERS, "corrupt batch", 1000)
    assert not marked.due(ORDERS, 1099)
    assert marked.due(ORDERS, 1100)
    assert marked.due(OTHER, 1000)


def test_a_change_lets_a_partition_be_tried_at_once_and_keeps_its_mark() -> None:
    marked = UncleanablePartitions(100)
    marked.mark(ORDERS, "corrupt batch", 1000)
    marked.hasten(ORDERS, 1010)
    marked.hasten(OTHER, 1010)
    assert marked.due(ORDERS, 1010)
    assert marked.all() == {ORDERS: Uncleanable("corrupt batch", 1000, 1, 1010)}
    assert marked.mark(ORDERS, "corrupt batch", 1020).retry_at_ms == 1220


def test_a_success_clears_the_mark_and_the_count_begins_anew() -> None:
    marked = UncleanablePartitions(100)
    marked.mark(ORDERS, "corrupt batch", 1000)
    cleared = marked.clear(ORDERS)
    assert cleared is not None
    assert cleared.reason == "corrupt batch"
    assert marked.clear(ORDERS) is None
    assert marked.mark(ORDERS, "again", 5000) == Uncleanable("again", 5000, 1, 5100)


def test_marks_of_partitions_that_are_gone_are_forgotten() -> None:
    marked = UncleanablePartitions(100)
    marked.mark(ORDERS, "corrupt batch", 1000)
    marked.mark(OTHER, "corrupt batch", 1000)
    marked.forget({OTHER})
    assert marked.get(ORDERS) is None
    assert list(marked.all()) == [OTHER]
