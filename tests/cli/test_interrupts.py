"""Two steps that an interrupt does not come between."""

import signal
import threading

import pytest

from stratalog.cli.interrupts import interrupts_wait


@pytest.fixture(autouse=True)
def interrupts_as_python_has_them():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
