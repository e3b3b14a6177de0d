"""Two steps that an interrupt does not come between, and calls in which one may get lost."""

import signal
import threading
from contextlib import suppress

import pytest

from hearing import interrupts_heard
from stratalog.cli.interrupts import interrupts_stay, interrupts_wait


@pytest.fixture(autouse=True)
def interrupts_as_python_has_them():
    with interrupts_heard():
        yield


def test_an_interrupt_comes_when_both_steps_are_done():
    done = []

    def steps():
        with interrupts_wait():
            done.append("printed")
            signal.raise_signal(signal.SIGINT)
            done.append("stored")

    with pytest.raises(KeyboardInterrupt):
        steps()
    assert done == ["printed", "stored"]


def test_a_second_interrupt_does_not_wait():
    done = []

    def steps():
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("hanging")
            signal.raise_signal(signal.SIGINT)
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        steps()
    assert done == ["hanging"]


def test_without_an_interrupt_nothing_is_raised_and_the_next_one_comes_at_once():
    with interrupts_wait():
        pass

    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_somebody_elses_handler_stays():
    heard = []
    signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))

    with interrupts_wait():
        signal.raise_signal(signal.SIGINT)

    assert heard == [signal.SIGINT]


def test_it_does_nothing_in_another_thread():
    done = []

    def steps():
        with interrupts_wait():
            done.append("steps")

    thread = threading.Thread(target=steps)
    thread.start()
    thread.join()

    assert done == ["steps"]


def lose_an_interrupt():
    """As compiled code may that calls back."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_error_in_the_place_of_an_interrupt_is_one():
    def steps():
        with interrupts_stay():
            lose_an_interrupt()
            raise TypeError("expected header key to be text")

    with pytest.raises(KeyboardInterrupt):
        steps()


def test_a_lost_interrupt_is_found_by_who_goes_on():
    done = []

    def steps():
        with interrupts_stay() as look_up:
            look_up()
            lose_an_interrupt()
            done.append("one")
            look_up()
            done.append("another")

    with pytest.raises(KeyboardInterrupt):
        steps()
    assert done == ["one"]


def test_an_error_without_an_interrupt_is_what_it_is():
    with pytest.raises(TypeError), interrupts_stay():
        raise TypeError


def test_what_was_heard_and_seen_to_within_is_over():
    def steps():
        with interrupts_stay():
            with suppress(KeyboardInterrupt), interrupts_stay():
                signal.raise_signal(signal.SIGINT)
            raise TypeError

    with pytest.raises(TypeError):
        steps()


def test_two_steps_are_done_together_also_within():
    done = []

    def steps():
        with interrupts_stay():
            with suppress(KeyboardInterrupt), interrupts_wait():
                signal.raise_signal(signal.SIGINT)
                done.append("both")
            lose_an_interrupt()
            raise TypeError

    with pytest.raises(KeyboardInterrupt):
        steps()
    assert done == ["both"]
