"""Deadlines by name, against the simplest thing like them."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.coordinator.timers import Timers

KEYS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("schedule"), KEYS, st.integers(0, 20)),
    st.tuples(st.just("cancel"), KEYS),
    st.tuples(st.just("pass"), st.integers(0, 15)),
)


@given(st.lists(STEPS, max_size=60))
def test_each_timer_runs_once_when_it_is_due_and_not_if_it_was_called_off(
    steps: list[tuple[str, ...]],
) -> None:
    wakes: list[int] = []
    timers = Timers(wakes.append)
    expected: dict[str, int] = {}
    ran: list[str] = []
    now_ms = 0
    for name, *arguments in steps:
        if name == "schedule":
            key, delay_ms = arguments
            expected[key] = now_ms + int(delay_ms)
            timers.schedule(key, expected[key], partial(ran.append, key))
        elif name == "cancel":
            timers.cancel(arguments[0])
            expected.pop(arguments[0], None)
        else:
            now_ms += int(arguments[0])
            ran.clear()
            timers.run_due(now_ms)
            due = {key for key, deadline_ms in expected.items() if deadline_ms <= now_ms}
            assert sorted(ran) == sorted(due)
            assert [expected[key] for key in ran] == sorted(expected[key] for key in ran)
            expected = {key: value for key, value in expected.items() if key not in due}
        deadline_ms = timers.next_deadline_ms()
        assert len(timers) == len(expected)
        if expected:
            # It may be early, never late; and somebody was asked to come by then.
            assert deadline_ms is not None
            assert deadline_ms <= min(expected.values())
            assert min(wakes) <= deadline_ms
        else:
            assert deadline_ms is None


def test_what_is_scheduled_for_now_while_timers_run_has_its_turn_next_time() -> None:
    timers = Timers(lambda _deadline_ms: None)
    ran = []

    def again() -> None:
        ran.append("again")
        timers.schedule("again", 5, again)

    timers.schedule("again", 5, again)
    timers.run_due(5)

    assert ran == ["again"]
    assert timers.next_deadline_ms() == 5


def test_a_timer_that_fails_keeps_no_other_from_its_turn_and_is_told_of_afterwards() -> None:
    timers = Timers(lambda _deadline_ms: None)
    ran: list[int] = []

    def fail(number: int) -> None:
        ran.append(number)
        raise ValueError(number)

    for number in range(6):
        timers.schedule(number, number, partial(fail if number in (1, 3) else ran.append, number))

    with pytest.raises(ValueError, match="1"):
        timers.run_due(4)
    assert ran == [0, 1, 2, 3, 4]
    assert timers.next_deadline_ms() == 5

    timers.run_due(5)
    assert ran == [0, 1, 2, 3, 4, 5], "what has failed is not done again"


def test_putting_a_deadline_off_all_the_time_takes_no_room() -> None:
    timers = Timers(lambda _deadline_ms: None)
    for deadline_ms in range(10_000):
        timers.schedule("member", deadline_ms, lambda: None)
        timers.schedule(f"gone {deadline_ms}", deadline_ms, lambda: None)
        timers.cancel(f"gone {deadline_ms}")

    assert len(timers._queue) < 100
