"""What clients make a broker hold is bounded and shared: claims cost nothing, nobody waits for
ever, and those who hold on to memory and do not move give way to those who do."""

import os
import struct
from pathlib import Path

import pytest
from hostile_connections import MIB, End, World, framed, other, produce, with_connections

from stratalog.broker.burden import WINDOW_MS
from stratalog.broker.connection import SCRATCH_BYTES
from stratalog.storage.batch_file import FileSlice
from stratalog.storage.files import OsFileSystem

CLAIM = struct.pack(">ih", 100 * MIB, 0)


async def shovel(world: World, ends: list[End], stream: bytes) -> None:
    """Every end sends the same at the same time, each as fast as it is let."""
    sent = dict.fromkeys(ends, 0)
    while any(count < len(stream) for count in sent.values()):
        for end in ends:
            sent[end] += end.send_some(stream[sent[end] : sent[end] + 256 * 1024])
            end.read_some()
        await world.turn()


def test_sizes_that_are_only_claimed_leave_room_for_others() -> None:
    async def scenario(world: World) -> None:
        for _ in range(300):
            world.connect().send_some(CLAIM)
        await world.settled()
        assert not world.memory.is_exhausted
        honest = world.connect()
        await honest.send(framed(produce(bytes(MIB))))
        assert len(await honest.read_frame()) == MIB + 2

    with_connections(scenario, limit_bytes=64 * MIB)


def test_a_claim_grows_only_with_what_arrives() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(CLAIM)
        await world.settled()
        assert world.memory.used_bytes <= 2 * MIB
        for arrived in range(1, 8):
            await end.send(bytes(MIB))
            await world.settled()
            assert world.memory.used_bytes <= 2 * (arrived + 1) * MIB

    with_connections(scenario, limit_bytes=256 * MIB)


def test_many_large_requests_at_once_are_all_finished_with_little_memory() -> None:
    """Together they want many times what there is: one after another gets it."""

    async def scenario(world: World) -> None:
        world.handler.answer_bytes_max = 10
        ends = [world.connect() for _ in range(16)]
        worst = 0
        plain = world.memory.take

        def take(size_bytes: int) -> bytearray:
            nonlocal worst
            buffer = plain(size_bytes)
            worst = max(worst, world.memory.used_bytes)
            return buffer

        world.memory.take = take  # type: ignore[method-assign]
        await shovel(world, ends, framed(produce(bytes(3 * MIB))) * 2)
        await world.until(lambda: len(world.handler.tickets) == 32)
        assert not any(end.connection.is_closed for end in ends)
        assert worst <= 24 * MIB, "the limit, the last that fitted, and one that grows over it"

    with_connections(scenario, limit_bytes=8 * MIB)


def test_a_request_that_fills_its_buffer_to_the_last_byte_goes_on_while_memory_is_short() -> None:
    """Only what has arrived is believed then, and nothing can be received into a full buffer."""

    async def scenario(world: World) -> None:
        world.memory.hold(60 * MIB)
        world.shared.scratch = memoryview(bytearray(16 << 10))
        end = world.connect()
        frame = produce(bytes(300_000))
        await end.send(framed(frame))
        assert await end.read_frame() == frame
        world.memory.release(60 * MIB)
        assert world.memory.used_bytes == 0

    with_connections(scenario, limit_bytes=100 * MIB)


def test_a_request_larger_than_all_memory_is_taken() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await shovel(world, [end], framed(produce(bytes(3 * MIB))))
        await world.until(lambda: world.handler.tickets)

    with_connections(scenario, limit_bytes=1)


def test_requests_that_arrive_whole_are_taken_with_no_memory_at_all() -> None:
    async def scenario(world: World) -> None:
        world.memory.hold(MIB)
        slow = world.connect()
        await slow.send(CLAIM)
        await world.settled()
        for number in range(5):
            end = world.connect()
            await end.send(framed(other(b"%d" % number)) * 40)
            for _ in range(40):
                assert await end.read_frame() == other(b"%d" % number)
        world.memory.release(MIB)

    with_connections(scenario, limit_bytes=MIB)


def test_half_a_request_waits_with_the_kernel_until_there_is_memory() -> None:
    async def scenario(world: World) -> None:
        world.memory.hold(MIB)
        favoured, waits = world.connect(), world.connect()
        await favoured.send(CLAIM)
        await world.settled()
        used_bytes = world.memory.used_bytes
        await waits.send(framed(other(b"1")) + framed(other(bytes(5_000)))[:-1])
        assert await waits.read_frame() == other(b"1")
        await waits.send(b"\0")
        await world.settled()
        assert world.memory.used_bytes == used_bytes
        assert waits.connection.is_waiting
        world.memory.release(MIB)
        assert len(await waits.read_frame()) == 5_002
        assert not waits.connection.is_waiting

    with_connections(scenario, limit_bytes=MIB)


def test_who_goes_over_the_limit_gives_way_when_its_request_is_there() -> None:
    """Also if that request waits for ever, and another has begun behind it."""

    async def scenario(world: World) -> None:
        world.memory.hold(MIB)
        first, second = world.connect(), world.connect()
        request = framed(other(bytes(50_000)))
        for end in (first, second):
            await end.send(request[:20_000])
            await world.settled()
        await first.send(request[20_000:] + request[:1_000])
        await second.send(request[20_000:])
        await world.until(lambda: len(world.handler.tickets) == 2)
        world.memory.release(MIB)

    with_connections(scenario, is_echoing=False, limit_bytes=MIB)


def test_who_was_let_over_the_limit_and_did_not_need_it_gives_way() -> None:
    async def scenario(world: World) -> None:
        world.memory.hold(MIB)
        end = world.connect()
        request = framed(other(b"soon there"))
        end.send_some(request[:8])
        await world.until(lambda: world.memory.is_favoured(end.connection))
        end.send_some(request[8:])
        await world.until(lambda: world.handler.tickets)
        assert not world.memory.is_favoured(end.connection)
        world.memory.release(MIB)

    with_connections(scenario, limit_bytes=MIB)


def test_whoever_waits_for_memory_and_goes_is_noticed_and_passed_over() -> None:
    async def scenario(world: World) -> None:
        world.memory.hold(MIB)
        first, gone, last = (world.connect() for _ in range(3))
        for end in (first, gone, last):
            await end.send(framed(produce(bytes(MIB)))[: 10 + 50_000])
            await world.settled()
        gone.socket.close()
        await world.settled()
        assert gone.connection.has_gone()
        gone.connection.close()
        await first.send(bytes(MIB - 50_000 - 4))
        await first.read(MIB + 6)
        await last.send(bytes(MIB - 50_000 - 4))
        await last.read(MIB + 6)
        world.memory.release(MIB)

    with_connections(scenario, limit_bytes=MIB)


def test_a_sender_that_drips_is_stalled_and_one_that_is_only_slow_is_not() -> None:
    async def scenario(world: World) -> None:
        dripping, slow = world.connect(), world.connect()
        for end in (dripping, slow):
            await end.send(CLAIM)
        await world.settled()
        found = []
        for second in range(12):
            now_ms = second * 1_000
            found.append([end.connection.is_stalled(now_ms) for end in (dripping, slow)])
            await dripping.send(b"x")
            await slow.send(bytes(20_000))
            await world.settled()
        assert found.count([True, False]) == 1
        assert found.count([False, False]) == 11

    with_connections(scenario)


def test_who_waits_for_memory_is_not_blamed_for_it() -> None:
    async def scenario(world: World) -> None:
        world.memory.hold(MIB)
        favoured, waits = world.connect(), world.connect()
        for end in (favoured, waits):
            await end.send(framed(produce(bytes(MIB)))[:100_000])
            await world.settled()
        for now_ms in range(0, 5 * WINDOW_MS, 1_000):
            assert not waits.connection.is_stalled(now_ms)
        world.memory.release(MIB)

    with_connections(scenario, limit_bytes=MIB)


def test_answers_that_are_not_read_are_counted_and_stop_the_reading() -> None:
    async def scenario(world: World) -> None:
        end = world.connect(receive_bytes=16_384, send_bytes=16_384)
        await end.send(framed(other(b"1")) + framed(other(b"2")))
        await world.until(lambda: world.handler.tickets)
        end.connection.answer(world.handler.tickets[0], [bytes(3 * MIB), bytes(3 * MIB)])
        await world.settled()
        assert 5 * MIB < world.memory.used_bytes <= 6 * MIB + SCRATCH_BYTES
        assert len(world.handler.tickets) == 1
        assert not end.connection.is_stalled(0)
        assert end.connection.is_stalled(WINDOW_MS)
        await end.read(6 * MIB)
        assert world.memory.used_bytes <= SCRATCH_BYTES
        await world.until(lambda: len(world.handler.tickets) == 2)

    with_connections(scenario, is_echoing=False)


def test_a_large_request_that_waits_is_counted_until_it_is_answered() -> None:
    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(other(bytes(MIB))))
        await world.until(lambda: world.handler.tickets)
        assert world.memory.used_bytes >= 10 * MIB
        assert not end.connection.is_stalled(0)
        assert end.connection.is_stalled(WINDOW_MS)
        end.connection.answer(world.handler.tickets[0], [b"answer"])
        await world.settled()
        assert world.memory.used_bytes == 0

    with_connections(scenario, is_echoing=False)


def test_slices_of_files_arrive_whole_at_a_slow_reader_and_cost_no_memory(tmp_path: Path) -> None:
    content = bytes(range(256)) * 12_000
    path = tmp_path / "00.log"
    path.write_bytes(content)

    async def scenario(world: World) -> None:
        file = OsFileSystem().open(str(path))
        end = world.connect(receive_bytes=16_384, send_bytes=16_384)
        await end.send(framed(other()))
        await world.until(lambda: world.handler.tickets)
        parts = [
            b"head",
            FileSlice(file, 100, 2_000_000),
            b"middle",
            FileSlice(file, 0, 5),
            b"tail",
        ]
        end.connection.answer(world.handler.tickets[0], parts)
        expected = b"head" + content[100:2_000_100] + b"middle" + content[:5] + b"tail"
        received = b""
        while len(received) < len(expected):
            received += await end.read(min(50_000, len(expected) - len(received)))
            assert world.memory.used_bytes < 1_000
        assert received == expected

    with_connections(scenario, is_echoing=False)


def test_files_of_an_answer_that_is_not_read_are_counted_until_it_is(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        slow, gone = (world.connect(receive_bytes=4096, send_bytes=4096) for _ in range(2))
        path = tmp_path / "log"
        path.write_bytes(bytes(MIB))
        file = OsFileSystem().open(str(path))
        for number, end in enumerate((slow, gone)):
            await end.send(framed(other()))
            await world.until(lambda number=number: len(world.handler.tickets) > number)
            slices = [FileSlice(file, 0, MIB) for _ in range(3)]
            end.connection.answer(world.handler.tickets[number], slices)
        assert world.memory.held_files == 6
        assert not world.memory.is_short
        world.memory.files_max = 5
        assert world.memory.is_short

        for end in (slow, gone):
            assert end.connection.kept_bytes == 0
            assert not end.connection.is_stalled(0)
            assert end.connection.is_stalled(WINDOW_MS)

        gone.connection.close()
        assert world.memory.held_files == 3
        await slow.read(3 * MIB)
        await world.until(lambda: world.memory.held_files == 0)

    with_connections(scenario, is_echoing=False)


def test_files_of_an_answer_that_waits_for_the_disk_are_counted_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(MIB))

    async def scenario(world: World) -> None:
        end = world.connect()
        await end.send(framed(other()))
        await world.until(lambda: world.handler.tickets)
        file = OsFileSystem().open(str(path))
        file.sync()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        slices = [FileSlice(file, 0, MIB) for _ in range(3)]
        end.connection.answer(world.handler.tickets[0], slices)
        if not end.connection.is_waiting:
            pytest.skip("this file system keeps everything in memory")
        assert world.memory.held_files == 3
        await end.read(3 * MIB)
        await world.until(lambda: world.memory.held_files == 0)

    with_connections(scenario, is_echoing=False)


def test_a_file_that_is_shorter_than_its_slice_closes_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "00.log"
    path.write_bytes(bytes(1_000))

    async def scenario(world: World) -> None:
        file = OsFileSystem().open(str(path))
        end = world.connect()
        await end.send(framed(other()))
        await world.until(lambda: world.handler.tickets)
        end.connection.answer(world.handler.tickets[0], [FileSlice(file, 0, 2_000)])
        await world.until(lambda: end.connection.is_closed)

    with_connections(scenario, is_echoing=False)
