"""Topics made when first asked for: bounded, in turns, and behind those that are ordered."""

import asyncio
from pathlib import Path

from broker_parts import broker_parts, create_topic
from hypothesis import given
from hypothesis import strategies as st

from stratalog.broker.automatic_topics import (
    NAMES_MAX,
    NAMES_OF_A_CLIENT_MAX,
    AutomaticTopics,
    NameQueue,
)

OFFERS = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 30).map(str), max_size=12)),
    max_size=8,
)


@given(OFFERS, st.integers(1, 20), st.integers(1, 8), st.integers(1, 5))
def test_every_name_is_taken_once_or_was_left_out_for_want_of_room(
    offers: list[tuple[str, list[str]]], names_max: int, of_a_client: int, at_once: int
) -> None:
    queue = NameQueue(names_max=names_max, names_of_a_client_max=of_a_client)
    wanted = {name for _, names in offers for name in names}
    left_out = sum(queue.offer(client, names) for client, names in offers)
    assert len(queue) <= min(names_max, 3 * of_a_client)

    taken: list[str] = []
    while batch := queue.take(at_once):
        assert len(batch) <= at_once
        taken += batch
        queue.done(batch)
    assert len(taken) == len(set(taken))
    assert set(taken) == wanted or (left_out and set(taken) < wanted)
    assert len(queue) == 0


def test_a_client_with_many_names_does_not_keep_one_with_few_waiting() -> None:
    queue = NameQueue(names_max=100, names_of_a_client_max=50)
    queue.offer("greedy", map(str, range(50)))
    queue.offer("modest", ["mine", "too"])

    assert queue.take(4) == ["0", "mine", "1", "too"]


def test_a_name_that_is_being_made_does_not_wait_again() -> None:
    queue = NameQueue(names_max=10, names_of_a_client_max=10)
    queue.offer("a", ["x"])
    queue.take(1)

    assert queue.offer("b", ["x"]) == 0
    assert queue.take(1) == []
    queue.done(["x"])
    queue.offer("b", ["x"])
    assert queue.take(1) == ["x"]


def test_a_topic_that_is_ordered_is_made_before_most_that_are_automatic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with broker_parts(tmp_path) as services:
            automatic = AutomaticTopics(services)
            automatic.ask("greedy", (f"t{number}" for number in range(1_000)))
            await asyncio.sleep(0)
            await create_topic(services, "mine")
            assert len(services.store.image.topics) <= 65
            await services.topics.stop()

    asyncio.run(scenario())


def test_what_waits_is_bounded_for_each_client_and_in_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with broker_parts(tmp_path) as services:
            automatic = AutomaticTopics(services)
            for client in range(20):
                automatic.ask(str(client), (f"{client}-{number}" for number in range(20_000)))
                assert len(automatic._queue) == min((client + 1) * NAMES_OF_A_CLIENT_MAX, NAMES_MAX)
            await services.topics.stop()

    asyncio.run(scenario())


def test_a_broker_that_stops_makes_none_of_those_that_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with broker_parts(tmp_path) as services:
            automatic = AutomaticTopics(services)
            automatic.ask("greedy", (f"t{number}" for number in range(1_000)))
            await asyncio.sleep(0)
            await services.topics.stop()
            assert len(services.store.image.topics) <= 64
            await asyncio.sleep(0)
            assert automatic._task is not None
            assert automatic._task.cancelled()

    asyncio.run(scenario())
