"""A thread for jobs of the loop: one after the other there, and told in order here."""

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable

from stratalog.broker.broker_loop import BrokerLoop
from stratalog.broker.flush_thread import FlushThread


def run(scenario: Callable[[FlushThread], Awaitable[None]]) -> None:
    async def begin() -> None:
        thread = FlushThread(asyncio.get_running_loop(), "flush")
        try:
            await scenario(thread)
        finally:
            thread.stop()

    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        runner.run(begin())


def test_jobs_are_done_elsewhere_and_told_here_in_their_order() -> None:
    async def scenario(thread: FlushThread) -> None:
        here, told, all_told = threading.get_ident(), [], asyncio.Event()

        def tell(result: tuple[int, int]) -> None:
            told.append((*result, threading.get_ident()))
            if len(told) == 100:
                all_told.set()

        for number in range(100):
            thread.submit(lambda number=number: (number, threading.get_ident()), tell)  # type: ignore[misc]
        await all_told.wait()

        assert [number for number, _, _ in told] == list(range(100))
        assert {there for _, there, _ in told}.isdisjoint({here})
        assert {each for _, _, each in told} == {here}

    run(scenario)


def test_the_loop_turns_while_a_job_is_done() -> None:
    async def scenario(thread: FlushThread) -> None:
        may_end, told = threading.Event(), asyncio.Event()
        thread.submit(may_end.wait, lambda _result: told.set())

        await asyncio.sleep(0)
        assert not told.is_set()
        may_end.set()

        await told.wait()

    run(scenario)


def test_a_job_that_is_done_keeps_nothing_open() -> None:
    class Kept:
        def job(self) -> None:
            """What holds a file does its work here."""

    async def scenario(thread: FlushThread) -> None:
        kept, told = Kept(), asyncio.Event()
        is_there = weakref.ref(kept)
        thread.submit(kept.job, lambda _result: told.set())
        await told.wait()
        del kept

        assert is_there() is None

    run(scenario)


def test_what_was_submitted_before_a_stop_is_done_and_nobody_is_told() -> None:
    done: list[int] = []

    async def scenario(thread: FlushThread) -> None:
        for number in range(3):
            thread.submit(
                lambda number=number: done.append(number), lambda _result: done.append(-1)
            )  # type: ignore[misc]

    run(scenario)
    assert done == [0, 1, 2]


def test_one_that_cannot_be_told_keeps_no_other_from_it() -> None:
    async def scenario(thread: FlushThread) -> None:
        loop, may_begin, told = asyncio.get_running_loop(), threading.Event(), asyncio.Event()
        loop.set_exception_handler(lambda _loop, _context: None)

        def fail(_result: object) -> None:
            raise MemoryError

        done = threading.Event()
        thread.submit(may_begin.wait, fail)
        thread.submit(lambda: None, lambda _result: told.set())
        thread.submit(done.set, lambda _result: None)
        may_begin.set()
        assert done.wait(60)  # so that all are told in one turn
        await asyncio.wait_for(told.wait(), 60)

    run(scenario)
