"""The throttle on a clock that only its waits move."""

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.storage.cleaning.throttle import WINDOW_S, Throttle


class Hands:
    """A clock, and a wait that moves it; ``meanwhile`` is what happens during the first wait."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waits: list[float] = []
        self.meanwhile: Callable[[], None] | None = None

    def monotonic(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        else:
            self.now_s += seconds

    def throttle(self, rate: float) -> Throttle:
        return Throttle(rate, monotonic=self.monotonic, wait=self.wait)


@given(
    st.floats(1.0, 1e9),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.floats(0.0, 1.0)), min_size=1, max_size=30),
)
def test_bytes_never_come_faster_than_the_rate_but_for_one_window(
    rate: float, work: list[tuple[int, float]]
) -> None:
    hands = Hands()
    throttle = hands.throttle(rate)
    began = window_began = hands.now_s
    spent = in_window = 0
    for size_bytes, took_s in work:
        hands.now_s += took_s
        spent, in_window = spent + size_bytes, in_window + size_bytes
        if hands.now_s - window_began > WINDOW_S and in_window > 0:
            throttle.spend(size_bytes)
            assert hands.now_s - window_began >= in_window / rate - 0.001
            window_began, in_window = hands.now_s, 0
        else:
            throttle.spend(size_bytes)
    assert hands.now_s - began >= (spent - in_window) / rate - 0.001 * len(work)


def test_nobody_waits_before_the_window_is_over() -> None:
    hands = Hands()
    throttle = hands.throttle(10)
    hands.now_s += WINDOW_S - 0.001
    throttle.spend(1_000_000)
    assert hands.waits == []


def test_a_wait_is_what_the_bytes_should_have_taken_less_what_they_took() -> None:
    hands = Hands()
    throttle = hands.throttle(1000)
    hands.now_s += 0.5
    throttle.spend(2000)
    assert hands.waits == [pytest.approx(1.5)]


def test_bytes_that_came_slower_than_the_rate_do_not_wait_and_save_nothing_up() -> None:
    hands = Hands()
    throttle = hands.throttle(1000)
    hands.now_s += 60
    throttle.spend(100)
    assert hands.waits == []
    hands.now_s += 0.5
    throttle.spend(1000)
    assert hands.waits == [pytest.approx(0.5)]


def test_there_is_no_limit_by_default() -> None:
    hands = Hands()
    throttle = Throttle(monotonic=hands.monotonic, wait=hands.wait)
    hands.now_s += 1
    throttle.spend(1 << 60)
    assert hands.waits == []


def test_a_new_rate_counts_for_a_wait_that_has_begun() -> None:
    hands = Hands()
    throttle = hands.throttle(1)

    def speed_up() -> None:
        hands.now_s += 2
        throttle.bytes_per_second = 1000

    hands.meanwhile = speed_up
    hands.now_s += 1
    throttle.spend(4000)
    assert hands.waits == [pytest.approx(3600), pytest.approx(1)]


def test_a_wait_that_is_given_up_leaves_its_debt() -> None:
    hands = Hands()
    throttle = hands.throttle(1000)
    hands.now_s += 0.5
    throttle.spend(2000, give_up=lambda: True)
    assert hands.waits == []
    throttle.spend(1000)
    assert hands.waits == [pytest.approx(2.5)]


def test_a_rate_of_zero_waits_for_another_rate() -> None:
    hands = Hands()
    throttle = hands.throttle(0)

    def set_free() -> None:
        throttle.bytes_per_second = 1e9

    hands.meanwhile = set_free
    hands.now_s += 1
    throttle.spend(10)
    assert hands.waits == [3600]


def test_a_negative_rate_is_no_limit() -> None:
    hands = Hands()
    throttle = hands.throttle(-1)
    hands.now_s += 1
    throttle.spend(1000)
    assert hands.waits == []


class Waiter:
    """A thread that waits in a throttle whose clock stands still: only an event can end it."""

    def __init__(self, rate: float = 1.0) -> None:
        self.now_s = 0.0
        self.reached = threading.Event()
        self.is_over = False
        self.throttle = Throttle(rate, monotonic=self._monotonic)
        self.now_s = 1.0
        self.threads = [threading.Thread(target=self._spend, daemon=True) for _ in range(2)]

    def _monotonic(self) -> float:
        return self.now_s

    def _spend(self) -> None:
        self.throttle.spend(1 << 30, give_up=self._give_up)

    def _give_up(self) -> bool:
        self.reached.set()
        return self.is_over

    def start(self) -> None:
        for thread in self.threads:
            thread.start()
        assert self.reached.wait(60)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


def test_a_thread_that_waits_is_woken_by_a_new_rate() -> None:
    waiter = Waiter()
    waiter.start()
    waiter.throttle.bytes_per_second = 1e12
    waiter.join()


def test_threads_that_wait_can_be_told_to_give_up() -> None:
    waiter = Waiter()
    waiter.start()
    waiter.is_over = True
    waiter.throttle.wake()
    waiter.join()
