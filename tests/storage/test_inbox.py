"""What workers hand to the owner: everything is run once, on the owner's thread, and every wait
ends."""

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from cleaners import TIMEOUT_S
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CleaningAbortedError
from stratalog.storage.cleaning.inbox import OwnerInbox


class Caller(threading.Thread):
    """A worker with one call, and what came of it."""

    def __init__(self, inbox: OwnerInbox, action: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.result: Any = None
        self.error: BaseException | None = None
        self._inbox, self._action = inbox, action
        self.start()

    def run(self) -> None:
        try:
            self.result = self._inbox.call(self._action)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def ended(self) -> "Caller":
        self.join(TIMEOUT_S)
        assert not self.is_alive(), "the worker waits for ever"
        return self


def fail(error: BaseException) -> Any:
    raise error


def test_a_call_is_run_by_the_owner_and_its_result_is_the_callers() -> None:
    inbox = OwnerInbox()
    caller = Caller(inbox, threading.get_ident)
    assert inbox.wait(TIMEOUT_S) == 1
    assert caller.ended().result == threading.get_ident()


def test_what_a_call_raises_is_the_callers() -> None:
    inbox = OwnerInbox()
    caller = Caller(inbox, lambda: fail(ValueError("no")))
    assert inbox.wait(TIMEOUT_S) == 1
    assert isinstance(caller.ended().error, ValueError)


def test_what_a_post_raises_is_the_owners_to_see() -> None:
    inbox = OwnerInbox()
    ran: list[int] = []
    inbox.post(lambda: ran.append(1))
    inbox.post(lambda: fail(ValueError("no")))
    inbox.post(lambda: ran.append(2))
    with pytest.raises(ValueError, match="no"):
        inbox.run_all()
    assert inbox.run_all() == 1
    assert ran == [1, 2]


def test_an_owner_that_is_interrupted_leaves_no_worker_waiting() -> None:
    inbox = OwnerInbox()
    caller = Caller(inbox, lambda: fail(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        inbox.wait(TIMEOUT_S)
    assert isinstance(caller.ended().error, CleaningAbortedError)


def test_a_closed_inbox_tells_those_who_wait_and_those_who_come_later() -> None:
    told = threading.Event()
    inbox = OwnerInbox(told.set)
    ran: list[int] = []
    caller = Caller(inbox, lambda: ran.append(1))
    assert told.wait(TIMEOUT_S)
    inbox.post(lambda: ran.append(2))
    inbox.close()
    assert isinstance(caller.ended().error, CleaningAbortedError)
    assert isinstance(Caller(inbox, int).ended().error, CleaningAbortedError)
    with pytest.raises(CleaningAbortedError):
        inbox.post(int)
    assert inbox.run_all() == 0
    assert ran == []
    inbox.close()


def test_an_owner_that_cannot_be_told_comes_by_all_the_same() -> None:
    tried = threading.Event()

    def notify() -> None:
        tried.set()
        raise RuntimeError("the loop is closed")

    inbox = OwnerInbox(notify)
    caller = Caller(inbox, lambda: 7)
    assert tried.wait(TIMEOUT_S)
    assert inbox.wait(TIMEOUT_S) == 1
    assert caller.ended().result == 7


def test_a_wait_for_nothing_ends() -> None:
    assert OwnerInbox().wait(0) == 0


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=6))
def test_each_workers_actions_are_run_once_and_in_its_order(workers: list[list[bool]]) -> None:
    inbox = OwnerInbox()
    ran: list[tuple[int, int]] = []

    def work(worker: int, kinds: list[bool]) -> None:
        for number, is_call in enumerate(kinds):
            (inbox.call if is_call else inbox.post)(lambda n=number: ran.append((worker, n)))  # type: ignore[misc]

    threads = [
        threading.Thread(target=work, args=(worker, kinds), daemon=True)
        for worker, kinds in enumerate(workers)
    ]
    for thread in threads:
        thread.start()
    while len(ran) < sum(map(len, workers)):
        assert inbox.wait(TIMEOUT_S), "something was lost"
    for thread in threads:
        thread.join(TIMEOUT_S)
    for worker, kinds in enumerate(workers):
        assert [n for w, n in ran if w == worker] == list(range(len(kinds)))


@pytest.mark.parametrize("is_raised", [True, False])
def test_nothing_an_action_was_about_is_held_once_its_caller_has_let_go(is_raised: bool) -> None:
    class Map:
        """Stands for what takes the memory of a round."""

    inbox = OwnerInbox()
    held = Map()
    gone = weakref.ref(held)

    def act(kept: Map) -> None:
        if is_raised:
            raise ValueError(kept)

    def work(kept: Map) -> None:
        with suppress(ValueError):
            inbox.call(lambda: act(kept))

    worker = threading.Thread(target=work, args=(held,), daemon=True)
    gc.disable()
    try:
        worker.start()
        inbox.wait(TIMEOUT_S)
        worker.join(TIMEOUT_S)
        del held
        assert gone() is None
    finally:
        gc.enable()
