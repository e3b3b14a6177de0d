"""Periodic tasks by a clock that is an argument."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.storage.schedule import Schedule


def test_a_task_runs_when_it_is_first_due_and_then_every_period() -> None:
    ran: list[int] = []
    schedule = Schedule()
    schedule.add("flush", ran.append, first_ms=100, period_ms=50)
    for now_ms in range(0, 260, 10):
        schedule.run_due(now_ms)
    assert ran == [100, 150, 200, 250]


def test_run_due_returns_the_names_of_what_ran_the_longest_waiting_first() -> None:
    schedule = Schedule()
    for name, first_ms in (("late", 30), ("later", 90), ("latest", 10)):
        schedule.add(name, lambda now_ms: None, first_ms=first_ms, period_ms=1000)
    assert schedule.run_due(50) == ["latest", "late"]
    assert schedule.run_due(50) == []
    assert schedule.run_due(90) == ["later"]


@given(st.integers(1, 100), st.integers(0, 10_000))
def test_after_a_long_pause_a_task_runs_once(period_ms: int, pause_ms: int) -> None:
    ran: list[int] = []
    schedule = Schedule()
    schedule.add("checkpoint", ran.append, first_ms=0, period_ms=period_ms)
    schedule.run_due(pause_ms)
    schedule.run_due(pause_ms)
    assert ran == [pause_ms]
    assert schedule.next_due_ms() == pause_ms + period_ms


def test_next_due_is_the_earliest_and_none_without_tasks() -> None:
    schedule = Schedule()
    assert schedule.next_due_ms() is None
    schedule.add("a", lambda now_ms: None, first_ms=70, period_ms=10)
    schedule.add("b", lambda now_ms: None, first_ms=40, period_ms=10)
    assert schedule.next_due_ms() == 40


def test_a_task_that_fails_is_due_again_a_period_later() -> None:
    schedule = Schedule()

    def fail(now_ms: int) -> None:
        raise OSError(now_ms)

    schedule.add("fails", fail, first_ms=10, period_ms=5)
    with pytest.raises(OSError):
        schedule.run_due(10)
    assert schedule.next_due_ms() == 15


def test_a_changed_period_counts_from_now_on() -> None:
    ran: list[int] = []
    schedule = Schedule()
    schedule.add("clean", ran.append, first_ms=0, period_ms=1000)
    schedule.run_due(0)
    schedule.change_period("clean", 50, 10)
    assert schedule.next_due_ms() == 60
    schedule.run_due(60)
    assert (ran, schedule.next_due_ms()) == ([0, 60], 110)
    schedule.change_period("clean", 5000, 70)
    assert schedule.next_due_ms() == 110
