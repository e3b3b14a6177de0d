"""One flush after the other, each for all that was appended meanwhile: on a worker whose work the
test does when it likes."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stratalog.broker.flusher import Flusher
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import DiskError
from stratalog.records import Record, build_batch
from stratalog.storage.files import OsFileSystem
from stratalog.storage.flushing import (
    SYNC_FILE_SYSTEM_FROM,
    SYNC_QUIET_FILE_SYSTEM_FROM,
    FlushTask,
)
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.log_starts import LogStartTask
from stratalog.storage.manager import LogManager
from stratalog.storage.page_cache import MEMINFO
from stratalog.storage.segment import INDEX_LAG_BYTES
from stratalog.testing import ManualClock, SimulatedFileSystem

START_MS = 1_700_000_000_000
LARGE = bytes(INDEX_LAG_BYTES // 2)


class WorkLater:
    """Does what it is given when ``work`` is called, on the caller's thread."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((job, done))

    async def work(self) -> None:
        job, done = self.jobs.pop(0)
        done(job())
        await turn()


async def turn() -> None:
    """What the loop has to do now, it has done."""
    for _ in range(5):
        await asyncio.sleep(0)


class World:
    def __init__(self) -> None:
        self.files = SimulatedFileSystem(count_resources=True)
        self.logs = LogManager(
            BrokerConfig(
                log_dirs=("/data",), num_recovery_threads_per_data_dir=1, log_dir_reserve_bytes=0
            ),
            files=self.files,
            clock=ManualClock(START_MS),
            topic_config=lambda _topic: TopicConfig(segment_index_bytes=1200),
            is_threaded=False,
        )
        self.logs.start()
        self.directory = self.logs.directories[0]
        self.worker = WorkLater()
        self.flushed: list[list[TopicPartition]] = []
        self.failed: list[list[TopicPartition]] = []
        self.flusher = Flusher(
            asyncio.get_running_loop(),
            self.worker,
            self.files,
            self.directory,
            flushed=lambda keys: self.flushed.append(list(keys)),
            failed=lambda keys: self.failed.append(list(keys)),
        )

    def log(self, number: int = 0) -> Log:
        key = TopicPartition("orders", number)
        return self.logs.get(key) if key in self.logs else self.logs.create(key)

    def append(self, number: int = 0, value: bytes = b"v") -> Log:
        log = self.log(number)
        log.append_as_leader(build_batch([Record(b"k", value, (), START_MS)]))
        self.flusher.ask(log)
        return log

    def delete_from(self, number: int) -> Log:
        """Its one record is flushed, and deleted."""
        log = self.log(number)
        log.append_as_leader(build_batch([Record(b"k", b"v", (), START_MS)]))
        log.flush()
        log.raise_high_watermark(1)
        log.delete_records(1)
        self.flusher.ask_for_start(log)
        return log

    async def flush(self) -> list[str]:
        """What kinds of files one round syncs."""
        before = len(self.files.trace)
        await turn()
        await self.worker.work()
        synced = [each.path for each in self.files.trace[before:] if each.kind == "sync"]
        return [path.rpartition(".")[2] for path in synced]

    def syncs(self) -> list[str]:
        return [each.kind for each in self.files.trace if each.kind.startswith("sync")]


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def begin() -> None:
        await scenario(World())

    asyncio.run(begin())


def keys(*numbers: int) -> list[TopicPartition]:
    return [TopicPartition("orders", number) for number in numbers]


def test_what_is_appended_in_one_turn_of_the_loop_is_flushed_together() -> None:
    async def scenario(world: World) -> None:
        for number in (0, 1, 0):
            world.append(number)
        await turn()
        assert len(world.worker.jobs) == 1
        assert world.flushed == []

        await world.worker.work()

        assert world.flushed == [keys(0, 1)]
        assert [world.log(number).recovery_point for number in (0, 1)] == [2, 1]
        assert world.flusher.is_idle

    run(scenario)


def test_what_is_appended_during_a_flush_waits_for_the_next() -> None:
    async def scenario(world: World) -> None:
        log = world.append()
        await turn()
        world.append()
        world.append(1)
        await turn()
        assert len(world.worker.jobs) == 1, "one at a time"

        await world.worker.work()
        assert log.recovery_point == 1
        assert world.flushed == [keys(0)]
        await world.worker.work()

        assert log.recovery_point == 2
        assert world.flushed == [keys(0), keys(0, 1)]
        assert world.flusher.is_idle

    run(scenario)


def test_what_a_roll_has_flushed_meanwhile_is_told_without_another_flush() -> None:
    async def scenario(world: World) -> None:
        log = world.append()
        log.flush()
        await turn()

        assert world.worker.jobs == []
        assert world.flushed == [keys(0)]

    run(scenario)


def test_few_logs_are_synced_one_by_one_and_many_all_at_once() -> None:
    async def scenario(world: World) -> None:
        for number in range(SYNC_FILE_SYSTEM_FROM):
            world.log(number)
        for count in (SYNC_FILE_SYSTEM_FROM - 1, SYNC_FILE_SYSTEM_FROM):
            for number in range(count):
                world.append(number)
            before = len(world.syncs())
            await turn()
            await world.worker.work()
            kinds = world.syncs()[before:]
            assert ("sync_file_system" in kinds) is (count == SYNC_FILE_SYSTEM_FROM)
            assert ("sync" in kinds) is (count < SYNC_FILE_SYSTEM_FROM)
            assert all(world.log(number).unflushed_messages == 0 for number in range(count))

    run(scenario)


@pytest.mark.parametrize(("dirty_kb", "is_at_once"), [(16_000, True), (17_000, False)])
def test_several_logs_are_synced_at_once_where_little_else_is_unwritten(
    dirty_kb: int, is_at_once: bool
) -> None:
    async def scenario(world: World) -> None:
        logs = [world.append(number) for number in range(SYNC_QUIET_FILE_SYSTEM_FROM)]
        world.files.make_directory("/proc")
        said = b"MemFree: 9 kB\nDirty: %d kB\nWriteback: 0 kB\nWritebackTmp: 9 kB\n" % dirty_kb
        world.files.open(MEMINFO, create=True).write_at(0, [said])
        before = len(world.syncs())
        await turn()

        await world.worker.work()

        assert ("sync_file_system" in world.syncs()[before:]) is is_at_once
        assert all(log.unflushed_messages == 0 for log in logs)

    run(scenario)


def test_a_flush_syncs_the_log_alone_until_enough_was_appended_for_its_indexes() -> None:
    async def scenario(world: World) -> None:
        world.append()
        assert await world.flush() == ["log"]
        world.append(0, LARGE)
        assert await world.flush() == ["log"]
        world.append(0, LARGE)
        assert await world.flush() == ["log", "index", "timeindex"]
        world.append(0, LARGE)
        assert await world.flush() == ["log"]

    run(scenario)


@pytest.mark.parametrize("count", [3, SYNC_FILE_SYSTEM_FROM])
def test_a_flush_that_fails_takes_the_directory_offline_and_fails_all_waiters(count: int) -> None:
    async def scenario(world: World) -> None:
        for number in range(count):
            world.append(number)
        await turn()
        world.append(1)
        world.files.fail(lambda operation: operation.kind in ("sync", "sync_file_system"))

        await world.worker.work()

        assert not world.directory.is_online
        assert world.flushed == []
        assert world.failed == [keys(*range(count)), keys(1)], "those that waited for the next too"
        assert world.log(0).failure is not None
        assert world.log(0).recovery_point == 0
        assert world.flusher.is_idle

    run(scenario)


def test_a_directory_that_is_offline_already_is_not_flushed() -> None:
    async def scenario(world: World) -> None:
        world.append()
        world.directory.fail("the disk is gone")
        await turn()

        assert world.worker.jobs == []
        assert world.failed == [keys(0)]
        assert world.flusher.is_idle

    run(scenario)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_flush_that_finds_no_descriptor_is_tried_again_and_nobody_fails(error: int) -> None:
    async def scenario(world: World) -> None:
        log = world.append()
        await turn()
        world.files.fail(lambda o: o.kind == "open_directory" and o.path == log.directory, error)
        await world.worker.work()
        assert (log.recovery_point, log.failure, world.failed) == (0, None, [])
        assert world.directory.is_online

        world.flusher.ask(log)  # as it does itself a moment later
        await turn()
        await world.worker.work()

        assert log.recovery_point == 1
        assert world.flushed[-1] == keys(0)

    run(scenario)


def test_a_log_that_is_deleted_during_its_flush_fails_nobody() -> None:
    async def scenario(world: World) -> None:
        world.append(0)
        world.append(1)
        await turn()
        world.logs.delete(TopicPartition("orders", 0))

        await world.worker.work()

        assert world.directory.is_online
        assert world.flushed == [keys(0, 1)]
        assert world.log(1).recovery_point == 1

    run(scenario)


def test_a_log_that_is_deleted_before_its_flush_is_not_flushed() -> None:
    async def scenario(world: World) -> None:
        world.append(0)
        world.logs.delete(TopicPartition("orders", 0))
        await turn()

        assert world.worker.jobs == []
        assert world.directory.is_online
        assert world.flusher.is_idle

    run(scenario)


def test_a_log_that_is_cut_during_its_flush_is_not_taken_for_flushed() -> None:
    async def scenario(world: World) -> None:
        log = world.append()
        world.append()
        await turn()
        log.truncate_to(1)
        log.append_as_leader(build_batch([Record(b"k", b"other", (), START_MS)]))

        await world.worker.work()

        assert log.recovery_point == 0

    run(scenario)


def test_log_starts_that_are_raised_during_a_round_become_durable_with_one_write() -> None:
    async def scenario(world: World) -> None:
        world.delete_from(0)
        await turn()
        for number in (1, 2):
            world.delete_from(number)
        before = len(world.syncs())

        await world.worker.work()
        assert world.flushed[-1] == keys(0)
        assert [world.log(number).durable_start_offset for number in (0, 1, 2)] == [1, 0, 0]
        await world.worker.work()

        assert sorted(world.flushed[-1]) == keys(1, 2)
        assert [world.log(number).durable_start_offset for number in (0, 1, 2)] == [1, 1, 1]
        assert world.syncs()[before:] == ["sync", "sync_directory"] * 2
        assert world.flusher.is_idle

    run(scenario)


def test_a_log_start_waits_for_room_on_a_full_disk() -> None:
    async def scenario(world: World) -> None:
        world.files.fail(lambda each: "log-start" in each.path, errno.ENOSPC)
        log = world.delete_from(0)
        await turn()
        await world.worker.work()
        assert (log.durable_start_offset, world.directory.is_online) == (0, True)

        loop = asyncio.get_running_loop()
        now = loop.time()
        loop.time = lambda: now + 1  # type: ignore[method-assign]
        await turn()
        await world.worker.work()

        assert log.durable_start_offset == 1

    run(scenario)


def test_a_log_start_that_cannot_be_written_takes_the_directory_offline() -> None:
    async def scenario(world: World) -> None:
        world.files.fail(lambda each: "log-start" in each.path, errno.EIO)
        world.delete_from(0)
        await turn()

        await world.worker.work()

        assert not world.directory.is_online
        assert world.failed == [keys(0)]

    run(scenario)


def test_a_log_start_is_not_durable_if_the_log_was_cut_meanwhile() -> None:
    async def scenario(world: World) -> None:
        log = world.delete_from(0)
        await turn()
        log.truncate_to(0)
        log.append_as_leader(build_batch([Record(b"k", b"other", (), START_MS)]))

        await world.worker.work()

        assert (log.log_start_offset, log.durable_start_offset) == (0, 0)

    run(scenario)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_flush_that_cannot_even_be_planned_does_not_end_all_flushing(error: int) -> None:
    async def scenario(world: World) -> None:
        for number in (0, 0, 1, 1):
            world.append(number, LARGE)
        world.files.fail(lambda each: each.kind == "write" and each.path.endswith("index"), error)
        await turn()
        while world.worker.jobs:
            await world.worker.work()

        assert world.flusher.is_idle
        if error == errno.ENOSPC:  # indexes are only hints
            assert world.flushed == [keys(0, 1)]
        else:
            assert not world.directory.is_online
            assert world.failed == [keys(0, 1)]

    run(scenario)


def test_what_a_flush_could_not_write_is_not_taken_for_flushed_by_a_roll_meanwhile() -> None:
    """The system says so once for each open file, and both sync by the same."""

    async def scenario(world: World) -> None:
        log = world.append()
        await turn()
        world.files.fail(lambda each: each.kind == "sync" and each.path.endswith(".log"))
        job, done = world.worker.jobs.pop()
        result = job()

        with pytest.raises(DiskError):
            log.roll()
        done(result)

        assert (log.recovery_point, world.flushed, world.failed) == (0, [], [keys(0)])

    run(scenario)


def test_what_a_roll_could_not_write_is_not_taken_for_flushed_by_the_flush_under_way() -> None:
    async def scenario(world: World) -> None:
        log = world.append()
        await turn()
        world.files.fail(lambda each: each.kind == "sync" and each.path.endswith(".log"))
        with pytest.raises(DiskError):
            log.roll()

        await world.worker.work()

        assert (log.recovery_point, world.flushed, world.failed) == (0, [], [keys(0)])

    run(scenario)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO])
def test_a_log_start_that_cannot_be_planned_does_not_end_all_flushing(error: int) -> None:
    async def scenario(world: World) -> None:
        log = world.log(1)
        world.directory.checkpoint_log_start_offsets()
        world.directory.offline_logs[TopicPartition("orders", 9)] = "it could not be opened"
        world.files.fail(lambda each: "log-start" in each.path, error)
        world.delete_from(0)
        world.append(1)
        await turn()
        while world.worker.jobs:
            await world.worker.work()

        assert world.directory.is_online is (error == errno.EMFILE)
        assert world.flusher.is_idle
        assert log.recovery_point == (1 if error == errno.EMFILE else 0)

    run(scenario)


def test_who_cannot_be_told_keeps_nobody_waiting_who_appended_meanwhile() -> None:
    async def scenario(world: World) -> None:
        world.append(0)
        await turn()
        world.append(1)

        def tell(_keys: object) -> None:
            raise OSError("the connection is gone")

        world.flusher._flushed = tell
        for _ in range(2):
            with pytest.raises(OSError, match="connection"):
                await world.worker.work()

        assert world.log(1).recovery_point == 1

    run(scenario)


@pytest.mark.parametrize("step", [(Log, "plan_flush"), (FlushTask, "run"), (LogStartTask, "plan")])
def test_a_flush_without_memory_is_tried_again_and_nobody_fails(
    step: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        log = world.append()
        if step[0] is LogStartTask:
            log.flush()
            world.flusher.ask_for_start(log)
        with monkeypatch.context() as patched:
            patched.setattr(*step, _no_memory)
            await turn()
            if step[0] is FlushTask:
                await world.worker.work()
        assert world.flusher.is_idle
        assert world.directory.is_online
        assert (log.failure, world.failed) == (None, [])

        world.flusher.ask(log)  # as it does itself a moment later
        await turn()
        await world.worker.work()
        assert log.recovery_point == log.log_end_offset

    run(scenario)


def test_a_sync_that_fails_with_no_memory_to_say_so_is_a_failure_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFileSystem().open(str(tmp_path / "file"), create=True)
    monkeypatch.setattr(os, "fdatasync", _no_memory)
    with pytest.raises(DiskError) as caught:
        file.sync()
    assert not caught.value.is_passing


def _no_memory(*_: Any, **_named: Any) -> Any:
    raise MemoryError
