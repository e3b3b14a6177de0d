"""An alarm rings no earlier than it is asked to, and always rings again."""

from collections.abc import Callable
from typing import Any

from stratalog.broker.alarm import Alarm
from stratalog.testing import ManualClock


class Timer:
    def __init__(self, delay_ms: float, action: Callable[[], None]) -> None:
        self.delay_ms = delay_ms
        self.action = action
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """The one call of a loop that an alarm makes; timers run when the test lets them."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, delay: float, action: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay * 1000, action))
        return self.timers[-1]

    @property
    def pending(self) -> list[Timer]:
        return [each for each in self.timers if not each.is_cancelled]


class World:
    def __init__(self) -> None:
        self.loop: Any = Loop()
        self.clock = ManualClock()
        self.start_ms = self.clock.now_ms()
        self.rung: list[int] = []
        self.next_ms: int | None = None
        self.failures: list[Exception] = []
        self.error: Exception | None = None
        self.alarm = Alarm(self.loop, self.clock, self._ring, self.failures.append)

    def _ring(self, now_ms: int) -> int | None:
        self.rung.append(now_ms - self.start_ms)
        if self.error is not None:
            raise self.error
        return self.next_ms

    def at(self, ms: int) -> None:
        self.alarm.at(self.start_ms + ms)

    def sleep(self) -> None:
        """Until the one timer there is."""
        (timer,) = self.loop.pending
        self.loop.timers.clear()
        self.clock.advance(round(timer.delay_ms))
        timer.action()


def test_an_alarm_rings_when_it_was_asked_to() -> None:
    world = World()
    world.at(300)

    world.sleep()

    assert world.rung == [300]
    assert world.loop.pending == [], "nothing else is due"


def test_the_earliest_of_several_times_counts() -> None:
    world = World()
    for ms in (300, 500, 100, 200):
        world.at(ms)

    assert [each.delay_ms for each in world.loop.pending] == [100]


def test_what_is_due_already_is_rung_for_at_once() -> None:
    world = World()
    world.at(-50)

    assert [each.delay_ms for each in world.loop.pending] == [0]


def test_a_ring_says_when_it_is_next_needed() -> None:
    world = World()
    world.next_ms = world.start_ms + 700
    world.at(300)

    world.sleep()
    world.sleep()

    assert world.rung == [300, 700]


def test_a_ring_that_fails_is_told_and_rung_again_soon() -> None:
    world = World()
    world.error = ValueError("no")
    world.at(0)

    world.sleep()
    assert world.failures == [world.error]
    world.sleep()

    assert world.rung == [0, 1_000]


def test_nobody_sleeps_for_long_since_a_clock_may_be_set() -> None:
    world = World()
    world.at(3_600_000)

    assert [each.delay_ms for each in world.loop.pending] == [1_000]


def test_an_earlier_time_is_heard_while_a_later_one_is_slept_for() -> None:
    world = World()
    world.at(3_600_000)
    world.at(10)

    assert [each.delay_ms for each in world.loop.pending] == [10]


def test_a_time_that_is_asked_for_while_it_rings_is_not_lost() -> None:
    world = World()
    world.next_ms = world.start_ms + 900
    world.at(0)
    rung = world.alarm._ring

    def ring(now_ms: int) -> int | None:
        world.at(400)
        return rung(now_ms)

    world.alarm._ring = ring  # type: ignore[method-assign]
    world.sleep()

    assert [each.delay_ms for each in world.loop.pending] == [400]


def test_a_stopped_alarm_is_silent() -> None:
    world = World()
    world.at(100)
    world.alarm.stop()
    world.at(50)

    assert world.loop.pending == []
