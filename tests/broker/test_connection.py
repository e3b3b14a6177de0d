"""A connection takes frames however they arrive, answers in their order, and keeps nothing that
nobody needs any more."""

import random
import socket
import struct

import pytest
from hostile_connections import (
    MAX_OTHER_BYTES,
    MIB,
    End,
    Handler,
    World,
    framed,
    other,
    produce,
    with_connections,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from stratalog.broker.connection import SCRATCH_BYTES, Connection

FRAMES = [other(b"a"), produce(b"bb"), other(bytes(300)), produce(bytes(range(256)) * 40), other()]


def test_frames_are_the_same_whole_byte_by_byte_and_all_at_once() -> None:
    async def scenario(world: World) -> None:
        stream = b"".join(framed(frame) for frame in FRAMES[:3])
        whole, bytewise, together = world.connect(), world.connect(), world.connect()
        for frame in FRAMES[:3]:
            await whole.send(framed(frame))
            assert await whole.read_frame() == frame
        for position in range(len(stream)):
            await bytewise.send(stream[position : position + 1])
        await together.send(stream)
        for end in (bytewise, together):
            assert [await end.read_frame() for _ in FRAMES[:3]] == FRAMES[:3]

    with_connections(scenario)


@settings(max_examples=15)
@given(
    st.lists(
        st.builds(lambda make, size: make(bytes(size)), st.sampled_from([produce, other]),
                  st.sampled_from([0, 1, 5, 100, 5_000, 70_000, 131_060, 131_072, 200_000])),
        min_size=1, max_size=8,
    ),
    st.lists(st.integers(1, 150_000), min_size=1, max_size=30),
)  # fmt: skip
def test_any_cuts_of_a_stream_give_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        stream = b"".join(framed(frame) for frame in frames)
        position = turn = 0
        while position < len(stream):
            size = cuts[turn % len(cuts)]
            turn += 1
            position += end.send_some(stream[position : position + size])
            end.read_some()
            await world.turn()
        answer = await end.read(len(stream))
        assert answer == stream
        assert world.handler.frames == frames

    with_connections(scenario)


def test_answers_to_one_read_go_out_in_one_piece_with_the_last_and_before_it_is_done_with() -> None:
    class Looking(Handler):
        """Looks what the client could read by the time its request has been answered."""

        def handle(self, connection: Connection, frame: memoryview) -> None:
            super().handle(connection, frame)
            try:
                seen.append(theirs.recv(1_000))
            except BlockingIOError:
                seen.append(b"")

    seen: list[bytes] = []
    # Of this kind of socket each piece that is sent is received by itself.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    async def scenario(world: World) -> None:
        world.shared.handler = world.handler = Looking()
        for sock in (ours, theirs):
            sock.setblocking(False)
        world.ends.append(End(world, Connection(world.shared, ours, 0), theirs))
        stream = b"".join(map(framed, FRAMES[:3]))
        theirs.send(stream)
        await world.until(lambda: len(seen) == 3)
        assert seen == [b"", b"", stream]
        # What is only there in part is not waited for.
        theirs.send(stream[:-1])
        await world.until(lambda: len(seen) == 5)
        assert seen[3:] == [b"", b""]
        await world.settled()
        assert theirs.recv(1_000) == b"".join(map(framed, FRAMES[:2]))

    with_connections(scenario)


def test_an_answer_that_comes_later_waits_for_no_other_request() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        first, second = produce(b"1"), produce(b"2")
        await end.send(framed(first) + framed(second)[:-1])
        await world.until(lambda: world.handler.tickets)
        (ticket,) = world.handler.tickets
        end.connection.answer(ticket, [framed(first)])
        assert await end.read_frame() == first

    with_connections(scenario, is_echoing=False)


def test_answers_go_out_in_the_order_of_requests_whatever_order_they_are_ready_in() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        requests = [produce(b"%02d" % number) for number in range(10)]
        await end.send(b"".join(map(framed, requests)))
        await world.until(lambda: len(world.handler.tickets) == 10)
        tickets = world.handler.tickets[:]
        random.Random(7).shuffle(tickets)
        for ticket in tickets:
            end.connection.answer(ticket, [framed(ticket.frame)])
        assert [await end.read_frame() for _ in requests] == requests

    with_connections(scenario, is_echoing=False)


def test_while_a_request_waits_nothing_behind_it_is_taken() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(other(b"1")) + framed(other(b"2")))
        await world.settled()
        assert world.handler.frames == [other(b"1")]
        end.connection.answer(world.handler.tickets[0], [])
        await world.until(lambda: len(world.handler.tickets) == 2)

    with_connections(scenario, is_echoing=False)


def test_at_most_sixteen_produce_requests_wait_at_once() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(produce()) * 40)
        await world.settled()
        assert len(world.handler.tickets) == 16
        end.connection.answer(world.handler.tickets[0], [])
        await world.settled()
        assert len(world.handler.tickets) == 17

    with_connections(scenario, is_echoing=False)


@pytest.mark.parametrize("behind", [other(bytes(1000)), other(bytes(1 << 17))])
def test_requests_behind_a_produce_that_waits_stay_with_the_kernel(behind: bytes) -> None:
    """They fill one buffer, which does not grow and is not taken for the end of the stream."""

    async def scenario(world: World) -> None:
        end = world.connect()
        stream = framed(produce()) + framed(behind) * (4 * MIB // len(behind))
        sent = 0
        for _ in range(200):
            sent += end.send_some(stream[sent : sent + 65_536])
            await world.turn()
        assert not end.connection.is_closed
        assert len(world.handler.tickets) == 1
        assert 0 < world.memory.used_bytes <= 2 * SCRATCH_BYTES
        world.handler.is_echoing = True
        end.connection.answer(world.handler.tickets[0], [framed(b"done")])
        assert await end.read_frame() == b"done"
        while sent < len(stream) or len(world.handler.tickets) * len(behind) < 4 * MIB - MIB // 8:
            sent += end.send_some(stream[sent : sent + 65_536])
            end.read_some()
            await world.turn()
        assert set(world.handler.frames[1:]) == {behind}

    with_connections(scenario, is_echoing=False)


def test_many_small_requests_in_one_read_let_other_connections_in_between() -> None:
    async def scenario(world: World) -> None:
        greedy, modest = world.connect(), world.connect()
        count = 5_000
        greedy.send_some(framed(other(b"g")) * count)
        modest.send_some(framed(other(b"m")))
        taken = world.handler.frames
        while other(b"m") not in taken:
            greedy.read_some()
            await world.turn()
            taken = world.handler.frames
        assert taken.index(other(b"m")) < 200
        await greedy.read(7 * count)

    with_connections(scenario)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 0])
def test_a_size_that_cannot_be_closes_the_connection(size: int) -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(struct.pack(">i", size))
        await world.until(lambda: end.connection.is_closed)
        assert len(world.handler.errors) == 1

    with_connections(scenario)


def test_a_request_that_is_too_large_for_its_api_is_refused_before_it_arrives() -> None:
    async def scenario(world: World) -> None:
        for size, api_key, is_refused in [
            (MAX_OTHER_BYTES + 1, 1, True),
            (MAX_OTHER_BYTES + 1, 0, False),
            (MAX_OTHER_BYTES, 1, False),
        ]:
            end = world.connect()
            await end.send(struct.pack(">i", size))
            await world.settled()
            assert not end.connection.is_closed
            await end.send(struct.pack(">h", api_key))
            await world.settled()
            assert end.connection.is_closed == is_refused

    with_connections(scenario)


def test_what_was_answered_before_a_bad_frame_is_still_sent() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(other(b"good")) + framed(b""))
        assert await end.read_frame() == other(b"good")
        assert end.connection.is_closed

    with_connections(scenario)


def test_a_frame_in_the_middle_of_which_the_client_goes_leaves_nothing() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(produce(bytes(MIB)))[: MIB // 2])
        await world.settled()
        assert world.memory.used_bytes > 0
        end.socket.close()
        await world.until(lambda: end.connection.is_closed)
        assert world.memory.used_bytes == 0
        assert world.handler.closed_connections == [end.connection]

    with_connections(scenario)


def test_requests_that_wait_are_told_that_their_client_has_gone() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(other()))
        await world.until(lambda: world.handler.tickets)
        end.socket.close()
        await world.settled()
        assert not end.connection.is_closed, "an answer may be on its way"
        assert end.connection.has_gone()
        end.connection.close()
        assert world.handler.tickets[0].is_abandoned
        end.connection.answer(world.handler.tickets[0], [b"nobody"])

    with_connections(scenario, is_echoing=False)


@pytest.mark.parametrize("asked", [[produce()], [other()], [produce(b"1"), other(b"2")]])
def test_who_has_said_all_is_still_answered_before_the_connection_ends(asked: list[bytes]) -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(b"".join(map(framed, asked)))
        end.socket.shutdown(socket.SHUT_WR)
        for number, frame in enumerate(asked):
            await world.until(lambda number=number: len(world.handler.tickets) > number)
            await world.settled()
            assert not end.connection.is_closed
            end.connection.answer(world.handler.tickets[number], [framed(frame)])
        assert [await end.read_frame() for _ in asked] == asked
        await world.until(lambda: end.connection.is_closed)
        assert world.memory.used_bytes == 0

    with_connections(scenario, is_echoing=False)


def test_a_muted_connection_reads_nothing_until_its_time_is_over() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        end.connection.mute(30)
        end.connection.mute(1)
        await end.send(framed(other(b"1")) + framed(other(b"2")))
        await world.settled()
        assert world.handler.frames == []
        await world.until(lambda: len(world.handler.frames) == 2)

    with_connections(scenario)


def test_what_is_muted_in_the_middle_of_a_read_goes_on_afterwards() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(other(b"1")) + framed(other(b"2")))
        await world.until(lambda: world.handler.tickets)
        end.connection.mute(10)
        end.connection.answer(world.handler.tickets[0], [])
        await world.settled()
        assert len(world.handler.tickets) == 1
        await world.until(lambda: len(world.handler.tickets) == 2)

    with_connections(scenario, is_echoing=False)


def test_closing_twice_and_in_the_middle_of_handling_is_the_same_as_once() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        plain = world.handler.handle

        def handle(connection, frame):  # type: ignore[no-untyped-def]
            plain(connection, frame)
            connection.close()
            connection.close()

        world.handler.handle = handle  # type: ignore[method-assign]
        await end.send(framed(other(bytes(200_000))) + framed(other()))
        await world.until(lambda: end.connection.is_closed)
        await world.settled()
        assert len(world.handler.tickets) == 1
        assert len(world.handler.closed_connections) == 1

    with_connections(scenario)
