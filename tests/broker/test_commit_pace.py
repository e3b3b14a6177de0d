"""How checks of commits leave the machine to those who produce."""

import threading

import pytest

from stratalog.broker.committing import Pace

HANG_SECONDS = 60


class Time:
    """Goes on by sleeping, and when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_check_rests_for_longer_than_it_worked_while_somebody_produces() -> None:
    time, produced = Time(), [7]
    pace = Pace(lambda: produced[0], now=lambda: time.now, sleep=time.sleep)
    pace.rest()  # what was before it began is nothing to it
    for _ in range(3):
        time.now += 0.001
        assert not pace.rest()
    assert time.slept == []  # nobody produces
    produced[0] += 1
    time.now += 0.002
    assert pace.rest()
    assert time.slept == [pytest.approx(2 * 0.002)]
    # One whose acknowledgements wait for the disk is not heard of at every look.
    time.now += 0.005
    assert pace.rest()
    assert time.slept[1:] == [pytest.approx(2 * 0.005)]
    time.now += 0.02
    assert not pace.rest()
    assert len(time.slept) == 2


def test_threads_that_check_rest_one_after_the_other() -> None:
    """So that two of them take no more of the machine than one."""
    produced, resting, most = [0], [0], [0]
    guard, both = threading.Lock(), threading.Barrier(2)

    def count() -> int:
        with guard:
            produced[0] += 1
            return produced[0]

    def sleep(_seconds: float) -> None:
        with guard:
            resting[0] += 1
            most[0] = max(most[0], resting[0])
        threading.Event().wait(0.002)
        with guard:
            resting[0] -= 1

    pace = Pace(count, sleep=sleep)

    def check() -> None:
        both.wait(HANG_SECONDS)
        for _ in range(10):
            pace.rest()

    threads = [threading.Thread(target=check) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert most == [1]
