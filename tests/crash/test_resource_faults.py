"""Descriptors, memory and maps run out at every call of a scenario that takes one, and come back.

What needed them is refused, and nothing else: the directory stays online, nothing is lost, and the
same step goes well as soon as there is enough again, without a restart.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pytest
from crash_scenario import CONFIG, START_MS, check_clean, readable_batches
from fault_scenario import BROKER, ELSEWHERE, KEY, Work

from stratalog.errors import LogDirectoryError, OutOfResourcesError
from stratalog.records import Record, build_batch
from stratalog.records.columns import decode_records
from stratalog.storage.check import check
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.lookup import offset_for_timestamp
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import Isolation
from stratalog.testing import CrashMode, ManualClock, Operation, SimulatedFileSystem

MADE = TopicPartition("made", 0)
COMPACTED = TopicPartition("compacted", 0)
ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
TAKING = ("open", "create", "map", "list", "open_directory", "read")
CLEANED = replace(CONFIG, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01)
RETRIES_MAX = 12


@dataclass
class World:
    """One owner of two directories, whose handle cache keeps next to nothing open."""

    files: SimulatedFileSystem
    clock: ManualClock
    manager: LogManager
    work: Work

    @classmethod
    def on(cls, files: SimulatedFileSystem) -> "World":
        clock = ManualClock(START_MS)
        manager = LogManager(
            replace(BROKER, log_cleaner_dedupe_buffer_size=4 << 20),
            files=files,
            clock=clock,
            topic_config=lambda topic: CLEANED if topic == COMPACTED.topic else CONFIG,
            is_threaded=False,
        )
        manager._handles.capacity = 1
        manager.start()
        return cls(files, clock, manager, Work(manager))

    @classmethod
    def new(cls) -> "World":
        world = cls.on(SimulatedFileSystem(count_reads=True, count_resources=True))
        world.manager.create(KEY, directory="/data")
        world.manager.create(ELSEWHERE, directory="/other")
        world.manager.create(COMPACTED, directory="/data")
        return world

    @property
    def compacted(self) -> Log:
        return self.manager.get(COMPACTED)

    def steps(self) -> list[Callable[[], object]]:
        """Every step can be done again when it was refused."""
        manager, work = self.manager, self.work
        used = [[step, self.fetch, self.append_elsewhere] for step in work.steps()]
        return [
            *chain.from_iterable(used),
            lambda: manager.get(KEY).roll(),
            *[partial(append_key, self.compacted, number) for number in range(14)],
            self.clean,
            lambda: manager.get(KEY).delete_records(9),
            lambda: manager.delete_old_segments(START_MS),
            manager.checkpoint_log_start_offsets,
            manager.checkpoint_high_watermarks,
            lambda: MADE in manager or manager.create(MADE, directory="/data"),
            lambda: append_key(manager.get(MADE), 0),
            lambda: MADE not in manager or manager.delete(MADE),
            self.pass_time,
        ]

    def append_elsewhere(self) -> None:
        append_key(self.manager.get(ELSEWHERE), 0)

    def fetch(self) -> None:
        self.work.flush()
        log = self.work.log
        log.update_high_watermark(log.log_end_offset)
        assert readable_batches(log) == self.work.batches
        found = offset_for_timestamp(log, START_MS + 6, isolation=Isolation.HIGH_WATERMARK)
        assert (found.offset > 0) is (len(self.work.batches) > 8)

    def clean(self) -> None:
        log = self.compacted
        log.roll()
        self.manager.flush_appended()
        log.update_high_watermark(log.log_end_offset)
        self.pass_time()

    def pass_time(self) -> None:
        self.clock.advance(3_600_000)
        self.manager.run_due()

    def run(self) -> int:
        """Every step, again where it is refused; how many were."""
        refused = 0
        for step in self.steps():
            for _ in range(RETRIES_MAX):
                try:
                    step()
                except (OutOfResourcesError, LogDirectoryError):
                    refused += 1
                else:
                    break
            else:
                raise AssertionError("a step is refused for ever")
        return refused

    def check(self) -> None:
        """All is as if nothing had ever failed, and goes on."""
        self.files.heal()
        for _ in range(2):
            self.pass_time()
        assert [each.state.reason for each in self.manager.directories] == ["", ""]
        self.clean()
        assert self.manager.cleaner is not None
        assert self.manager.cleaner.status().uncleanable == {}
        assert self.manager.retention_failures == {}
        names = [name for name in self.files.tree("/data") if name.startswith(MADE.topic)]
        assert names == [], "a deleted topic leaves nothing"
        self.manager.create(MADE, directory="/data")
        for log in self.manager:
            append_key(log, 99)
        self.manager.flush_appended()
        for log in self.manager:
            check_clean(check(log))
        assert latest_values(self.compacted)[b"k1"] == b"13"


def append_key(log: Log, number: int) -> None:
    record = Record(b"k%d" % (number % 3), b"%d" % number, (), START_MS)
    log.append_as_leader(build_batch([record]), leader_epoch=0)


def latest_values(log: Log) -> dict[bytes | None, bytes | None]:
    records = [each for batch in readable_batches(log) for each in decode_records(batch)]
    return {record.key: record.value for record in records}


def is_taking(operation: Operation) -> bool:
    return operation.kind in TAKING


def taking_operations() -> list[int]:
    world = World.new()
    before = world.files.operations
    assert world.run() == 0
    return [each.number for each in world.files.trace[before:] if is_taking(each)]


@pytest.mark.parametrize("times", [1, 5], ids=["once", "for a while"])
@pytest.mark.parametrize("part", range(8))
def test_what_runs_out_and_comes_back_leaves_no_trace(part: int, times: int) -> None:
    numbers = taking_operations()
    assert len(numbers) > 150
    for number in numbers[part::8]:
        world = World.new()
        error = ERRORS[number % len(ERRORS)]
        world.files.fail(
            lambda o, number=number: o.number >= number and is_taking(o), error, times=times
        )
        world.run()
        world.check()


def test_a_batch_that_was_refused_is_not_in_the_log() -> None:
    """Refused and done again: there once."""
    for number in taking_operations()[::7]:
        world = World.new()
        world.files.fail(number, errno.EMFILE)
        world.run()
        batches = world.work.batches
        assert len(batches) == 16
        world.files.heal()
        again = World.on(world.files.after_crash(CrashMode.KEEP_ALL))
        found = readable_batches(again.work.log)
        assert batches[-len(found) :] == found, number


@pytest.mark.parametrize("error", ERRORS)
def test_a_log_that_finds_no_descriptor_when_it_is_opened_is_opened_again(error: int) -> None:
    world = World.new()
    world.work.append(0)
    world.manager.shutdown()
    files = world.files
    fault = files.fail(lambda o: o.kind == "open" and o.path.startswith("/data/t-0/"), error)
    again = World.on(files)
    assert fault.times == 0
    assert readable_batches(again.work.log) == world.work.batches
    assert all(each.is_online and not each.offline_logs for each in again.manager.directories)


def test_a_log_that_cannot_be_opened_for_want_of_descriptors_takes_no_other_with_it() -> None:
    world = World.new()
    world.manager.shutdown()
    files = world.files
    files.fail(lambda o: o.kind == "open" and "/t-0/" in o.path, errno.EMFILE, times=99)
    again = World.on(files).manager
    assert "t-0" in str(again.directories[0].offline_logs)
    append_key(again.get(COMPACTED), 0)
