"""The broker's loop: who is called, in which order, and when it looks again before it sleeps."""

import asyncio
import os
import selectors
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

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
    failures: list[BaseException] = []
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


def test_a_hang_up_or_an_error_is_told_where_there_is_nothing_to_read_and_no_room_to_write() -> (
    None
):
    nothing_to_read, nobody_writes = os.pipe()
    nobody_reads, no_room = os.pipe()
    os.set_blocking(no_room, False)
    called: list[str] = []
    with looking_at() as turns:
        turns.set_reader(nothing_to_read, lambda: called.append("read"))
        turns.set_writer(no_room, lambda: called.append("write"))
        with suppress(BlockingIOError):
            while True:
                os.write(no_room, bytes(1 << 16))
        turns.select(0)
        assert called == []
        os.close(nobody_writes)
        os.close(nobody_reads)
        turns.select(0)
        assert sorted(called) == ["read", "write"]
    os.close(nothing_to_read)
    os.close(no_room)


def test_who_reads_may_be_the_one_who_ends_the_writing() -> None:
    ours, theirs = socket.socketpair()
    called: list[str] = []
    with looking_at((ours, theirs)) as turns:
        turns.set_reader(ours.fileno(), lambda: turns.set_writer(ours.fileno(), None))
        turns.set_writer(ours.fileno(), lambda: called.append("write"))
        theirs.send(b"x")
        turns.select(0)
    assert called == []


def test_the_loop_serves_sockets_and_what_asyncio_itself_waits_for() -> None:
    told: list[Any] = []

    async def act() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            heard = asyncio.Event()
            loop.add_reader(ours, asyncio.Event.set, heard)
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


def test_what_asyncio_adds_by_its_own_way_and_removes_by_ours_is_removed() -> None:
    async def act() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BrokerLoop)
        watched = set(loop.turns.get_map())
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
            server.setblocking(False)
            client.setblocking(False)
            accepting = loop.create_task(loop.sock_accept(server))
            await loop.sock_connect(client, server.getsockname())
            accepted, _ = await accepting
            with accepted:
                reading = loop.create_task(loop.sock_recv(accepted, 1))
                await asyncio.sleep(0)
                await loop.sock_sendall(client, b"xy")
                assert await reading == b"x"
                # What stays is ready for ever, and the loop would never sleep.
                assert set(loop.turns.get_map()) == watched

    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        runner.run(act())


def test_who_closes_before_removing_leaves_nothing_to_who_gets_the_number_next() -> None:
    first, second = socket.socketpair(), socket.socketpair()
    called: list[str] = []
    with looking_at(first, second) as turns:
        number = first[0].fileno()
        turns.set_reader(number, lambda: called.append("removed"))
        first[0].close()
        assert turns.set_reader(number, None)

        os.dup2(second[0].fileno(), number)
        turns.set_writer(number, lambda: called.append("gone"))
        os.close(number)
        os.dup2(first[1].fileno(), number)
        with pytest.raises(FileNotFoundError):  # as asyncio's own, once
            turns.set_reader(number, lambda: called.append("refused"))
        turns.set_reader(number, lambda: called.append("last"))
        turns.select(0)
        assert called == ["last"]
        turns.set_reader(number, None)
        os.close(number)


def test_what_cannot_be_watched_is_not_called_later(tmp_path: Path) -> None:
    with looking_at() as turns, (tmp_path / "file").open("wb") as file:
        with pytest.raises(PermissionError):
            turns.set_reader(file.fileno(), file.flush)
        assert not turns.set_reader(file.fileno(), None)


def test_a_loop_that_is_closed_has_nobody_to_remove() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop = BrokerLoop()
        loop.add_reader(ours, ours.close)
        loop.add_writer(ours, ours.close)
        loop.close()
        assert not loop.remove_reader(ours)
        assert not loop.remove_writer(ours)


def test_a_callback_that_is_cancelled_does_not_stop_the_loop_and_an_exit_does() -> None:
    ours, theirs = socket.socketpair()
    failures: list[BaseException] = []
    with looking_at((ours, theirs)) as turns:
        turns.on_failure = failures.append
        theirs.send(b"x")
        for error in (asyncio.CancelledError(), SystemExit(), KeyboardInterrupt()):

            def fail(error: BaseException = error) -> None:
                raise error

            turns.set_reader(ours.fileno(), fail)
            if isinstance(error, asyncio.CancelledError):
                turns.select(0)
            else:
                with pytest.raises(type(error)):
                    turns.select(0)
    assert [type(each) for each in failures] == [asyncio.CancelledError]


def test_a_signal_is_heard_while_the_loop_sleeps_and_while_it_looks_again() -> None:
    heard: list[str] = []

    async def act() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.send(b"x")
            for moment in ("asleep", "looking again"):
                told = asyncio.Event()
                loop.add_signal_handler(signal.SIGUSR1, told.set)
                if moment == "asleep":
                    # From another thread, as this one waits.
                    pid = os.getpid()
                    await asyncio.gather(
                        told.wait(), loop.run_in_executor(None, os.kill, pid, signal.SIGUSR1)
                    )
                else:

                    def read() -> None:
                        loop.remove_reader(ours)
                        os.kill(os.getpid(), signal.SIGUSR1)

                    loop.add_reader(ours, read)
                    await told.wait()
                heard.append(moment)
            loop.remove_signal_handler(signal.SIGUSR1)

    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        runner.run(act())
    assert heard == ["asleep", "looking again"]


# --- looking again ------------------------------------------------------------------------------


class Looking(BrokerSelector):
    """Notes how it waits, and never does; by its clock a look takes 60 µs."""

    def __init__(self) -> None:
        self.looks: list[float | None] = []
        moments = count(0, 60_000)
        super().__init__(lambda: next(moments))
        self._wait: Any = self._note

    def _note(self, timeout: float | None, events_max: int) -> list[Any]:
        self.looks.append(timeout)
        return self._epoll.poll(0, events_max)


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

        # It did not pay, so that the next time is short again.
        theirs.send(b"x")
        turns.select(None)
        ours.recv(1)
        turns.looks.clear()
        turns.select(None)
        assert turns.looks == [0, None]


def test_what_is_found_by_looking_again_is_not_looked_for_once_more() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.register(ours, selectors.EVENT_READ)
        theirs.send(b"x")
        turns.select(None)
        turns.looks.clear()
        turns.select(None)

        assert turns.looks == [0]


def test_who_has_something_to_do_at_once_only_looks_once() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.register(ours, selectors.EVENT_READ)
        theirs.send(b"x")
        turns.select(None)
        ours.recv(1)
        turns.looks.clear()
        turns.select(0)

        assert turns.looks == [0]


def test_after_somebody_was_called_to_read_the_loop_looks_again_but_not_after_writing() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.set_reader(ours.fileno(), lambda: ours.recv(1))
        theirs.send(b"x")
        turns.select(None)
        turns.select(None)
        assert turns.looks == [None, 0, None]

        turns.looks.clear()
        turns.set_reader(ours.fileno(), None)
        turns.set_writer(ours.fileno(), lambda: None)
        turns.select(None)
        turns.select(None)
        assert turns.looks == [None, None]


def test_who_was_called_to_read_counts_though_asyncio_itself_only_writes() -> None:
    ours, theirs = socket.socketpair()
    with closing(Looking()) as turns, ours, theirs:
        turns.set_reader(ours.fileno(), lambda: ours.recv(1))
        theirs.send(b"x")
        turns.register(theirs, selectors.EVENT_WRITE)  # which is seen after the other
        turns.select(None)
        turns.looks.clear()
        turns.select(None)

        assert turns.looks == [0]


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
