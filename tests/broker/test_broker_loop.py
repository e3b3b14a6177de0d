"""The broker's loop: who is called, in which order, and when it looks again before it sleeps."""

import asyncio
import selectors
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from typing import Any

from stratalog.broker.broker_loop import BrokerLoop, BrokerSelector


@contextmanager
def looking_at(*pairs: tuple[socket.socket, socket.socket]) -> Iterator[BrokerSelector]:
    """A selector, and in the end everything closed."""
    with closing(BrokerSelector()) as turns:
        yield turns
    for pair in pairs:
        for each in pair:
            each.close()


# --- who is called ------------------------------------------------------------------------------


def test_who_reads_is_called_by_the_look_itself_and_not_told_to_asyncio() -> None:
    ours, theirs = socket.socketpair()
    got: list[bytes] = []
    with looking_at((ours, theirs)) as turns:
        turns.set_reader(ours.fileno(), lambda: got.append(ours.recv(10)))
        theirs.send(b"one")
        assert turns.select(0) == []
        assert got == [b"one"]
        assert turns.set_reader(ours.fileno(), None)
        theirs.send(b"two")
        assert turns.select(0) == []
        assert got == [b"one"]
        assert not turns.set_reader(ours.fileno(), None)


def test_one_socket_is_read_and_written_and_each_ends_by_itself() -> None:
    ours, theirs = socket.socketpair()
    called: list[str] = []
    with looking_at((ours, theirs)) as turns:
        turns.set_reader(ours.fileno(), lambda: called.append("read"))
        turns.set_writer(ours.fileno(), lambda: called.append("write"))
        turns.select(0)
        assert called == ["write"]
        theirs.send(b"x")
        turns.select(0)
        assert called == ["write", "read", "write"]
        turns.set_writer(ours.fileno(), None)
        turns.select(0)
        assert called[3:] == ["read"]


def test_who_was_removed_by_an_earlier_one_of_the_same_look_is_not_called() -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    called: list[int] = []
    with looking_at(*pairs) as turns:
        for each, _ in pairs:

            def read(descriptor: int = each.fileno()) -> None:
                called.append(descriptor)
                for other, _ in pairs:
                    turns.set_reader(other.fileno(), None)

            turns.set_reader(each.fileno(), read)
        for _, theirs in pairs:
            theirs.send(b"x")
        turns.select(0)
        assert len(called) == 1


def test_what_one_raises_is_told_and_the_others_are_called() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    failures: list[Exception] = []
    called = count()

    def fail() -> None:
        next(called)
        raise ValueError("a fault of ours")

    with looking_at(*pairs) as turns:
        turns.on_failure = failures.append
        for ours, theirs in pairs:
            turns.set_reader(ours.fileno(), fail)
            theirs.send(b"x")
        turns.select(0)
    assert next(called) == 3
    assert [str(each) for each in failures] == ["a fault of ours"] * 3


def test_a_client_that_hangs_up_is_told_to_who_reads_and_to_who_writes() -> None:
    ours, theirs = socket.socketpair()
    called: list[str] = []
    with looking_at((ours, theirs)) as turns:
        turns.set_reader(ours.fileno(), lambda: called.append("read"))
        turns.set_writer(ours.fileno(), lambda: called.append("write"))
        theirs.close()
        turns.select(0)
    assert called == ["read", "write"]


def test_the_loop_serves_sockets_and_what_asyncio_itself_waits_for() -> None:
    told: list[Any] = []

    async def act() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            heard = asyncio.Event()
            loop.add_reader(ours, heard.set)
            # From another thread, by way of the loop's own pipe.
            await loop.run_in_executor(None, theirs.send, b"x")
            await heard.wait()
            assert loop.remove_reader(ours)

            def fail(reason: str) -> None:
                loop.remove_writer(ours)
                done.set()
                raise ValueError(reason)

            done = asyncio.Event()
            loop.add_writer(ours.fileno(), fail, "told")
            await done.wait()

    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        runner.run(act())
    assert [str(each) for each in told] == ["told"]


# --- looking again ------------------------------------------------------------------------------


class Looking(BrokerSelector):
    """Notes how it waits, and never does; by its clock a look takes 60 µs."""

    def __init__(self) -> None:
        self.looks: list[float | None] = []
        moments = count(0, 60_000)
        super().__init__(lambda: next(moments))

    def _wait(self, timeout: float | None) -> list[Any]:
        self.looks.append(timeout)
        return super()._wait(0)


def test_after_some_work_the_loop_looks_again_before_it_sleeps_and_only_then() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.register(ours, selectors.EVENT_READ)
        turns.select(None)  # nothing has been done yet
        theirs.send(b"x")
        turns.select(None)
        ours.recv(1)
        turns.select(None)
        turns.select(None)

        assert turns.looks == [None, None, 0, None, None]


def test_it_does_not_look_again_where_somebody_was_sent_much() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.register(ours, selectors.EVENT_READ)
        theirs.send(b"x")
        turns.select(None)
        ours.recv(1)
        turns.rest()
        turns.looks.clear()
        turns.select(None)

        assert turns.looks == [None]


def test_it_looks_for_longer_where_that_paid_the_last_time() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.register(ours, selectors.EVENT_READ)
        theirs.send(b"x")
        turns.select(None)
        turns.select(None)  # it is still there: found by looking again
        ours.recv(1)
        turns.looks.clear()
        turns.select(None)

        assert turns.looks == [0, 0, 0, None]


def test_who_only_waits_for_room_in_a_socket_is_not_looked_for() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.register(ours, selectors.EVENT_WRITE)
        turns.select(None)
        turns.select(None)

        assert turns.looks == [None, None]


def test_who_is_called_may_ask_for_rest() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:

        def send_much() -> None:
            ours.recv(1)
            turns.rest()

        turns.set_reader(ours.fileno(), send_much)
        theirs.send(b"x")
        turns.select(None)
        turns.select(None)

        assert turns.looks == [None, None]
