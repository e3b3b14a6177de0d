"""What an owner keeps for those who hold a lease, for how long, and what ends it too early."""

import errno
from dataclasses import replace
from typing import Any

import pytest
from cleaners import COMPACT, cleaner_of, written
from managers import ORDERS, PAYMENTS, TOPIC, fill, started
from small_logs import START_MS

from stratalog.config import TopicConfig
from stratalog.errors import LeaseError
from stratalog.storage.check import check
from stratalog.storage.context import DiskState
from stratalog.storage.layout import TopicPartition, lease_file
from stratalog.storage.lease_book import LeaseEnd
from stratalog.storage.leases import (
    LEASES_MAX,
    Lease,
    new_lease_id,
    renew_lease_file,
    write_lease,
)
from stratalog.storage.log_leases import LOOK_MS
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

DELAY_MS = 10_000
SLOW = TopicConfig(
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    retention_ms=-1,
    file_delete_delay_ms=DELAY_MS,
)


class World:
    """A manager with one log of several segments, on a disk and with a clock of its own."""

    def __init__(self, topic: TopicConfig = TOPIC, batches: int = 20, **settings: Any) -> None:
        self.clock = ManualClock(START_MS)
        self.files = SimulatedFileSystem(now_ms=self.clock.now_ms)
        self.topic = topic
        self.settings = settings
        self.logs = self.start()
        fill(self.logs.create(ORDERS), batches)

    def start(self, **changes: Any) -> LogManager:
        self.settings |= changes
        return started(
            self.files,
            clock=self.clock,
            topic=self.topic,
            log_initial_task_delay_ms=0,
            **self.settings,
        )

    def restart(self, **changes: Any) -> None:
        self.logs.shutdown()
        self.logs = self.start(**changes)
        for log in self.logs:
            log.update_high_watermark(log.log_end_offset)

    def restart_short_of(self, bytes_: int) -> None:
        self.restart()
        reserve_bytes = self.files.free_bytes("/data") + bytes_
        self.logs.config = replace(self.logs.config, log_dir_reserve_bytes=reserve_bytes)

    def lease(self, *ranges: tuple[TopicPartition, int, int], ms: int = 60_000) -> str:
        held = {key: (start, end) for key, start, end in ranges or ((ORDERS, 0, 1 << 40),)}
        lease, writes = self.logs.leases.grant("a reader", ms, held)
        for _, write in writes:
            write()
        self.logs.leases.note_written(lease, [log_dir for log_dir, _ in writes])
        return lease.lease_id

    def delete_all(self, key: TopicPartition = ORDERS) -> None:
        log = self.logs.get(key)
        log.roll()
        log.delete_records(-1)
        self.logs.check_retention(log, self.clock.now_ms())

    def later(self, milliseconds: int = 1_000) -> None:
        self.clock.advance(milliseconds)
        self.logs.run_due()

    def segments(self, key: TopicPartition = ORDERS) -> dict[str, bytes]:
        return {
            path: data
            for path, data in self.files.tree(f"/data/{key}").items()
            if path.endswith(".log") and "/" not in path
        }

    def kept(self) -> list[bytes]:
        return [
            data
            for path, data in sorted(self.files.tree("/data").items())
            if ".stratalog/leased/" in path and path.endswith(".log")
        ]

    @property
    def book(self):  # type: ignore[no-untyped-def]
        return self.logs.leases.book

    def lease_files(self) -> list[str]:
        return [path for path in self.files.tree("/data") if path.startswith(".stratalog-lease-")]

    def ends(self) -> list[LeaseEnd]:
        return [each.end for each in self.book.news]


# --- what is kept -----------------------------------------------------------------------------


def test_what_retention_takes_out_is_kept_until_the_lease_is_over() -> None:
    world = World()
    before = world.segments()
    world.lease(ms=30_000)
    world.delete_all()
    assert len(before) > 3
    assert world.kept() == list(before.values())
    world.later(29_999)
    assert world.kept() == list(before.values())
    world.later(1_000)
    assert world.kept() == []
    assert world.lease_files() == []
    assert world.ends() == [LeaseEnd.EXPIRED]


def test_without_a_lease_nothing_is_kept() -> None:
    world = World()
    world.delete_all()
    assert world.kept() == []
    assert world.book.held_bytes() == 0


def test_only_segments_with_leased_offsets_are_kept() -> None:
    world = World()
    bases = world.logs.get(ORDERS).segments.base_offsets
    before = world.segments()
    world.lease((ORDERS, bases[1], bases[2]))
    world.delete_all()
    assert world.kept() == [before[f"{bases[1]:020d}.log"]]


def test_one_offset_is_enough_at_either_end_of_a_segment() -> None:
    world = World()
    bases = world.logs.get(ORDERS).segments.base_offsets
    before = world.segments()
    world.lease((ORDERS, bases[1] - 1, bases[1] + 1))
    world.delete_all()
    assert world.kept() == [before[f"{base:020d}.log"] for base in bases[:2]]


def test_a_lease_on_another_partition_keeps_nothing() -> None:
    world = World()
    world.logs.create(PAYMENTS)
    world.lease((PAYMENTS, 0, 100))
    world.delete_all()
    assert world.kept() == []


def test_indexes_are_kept_beside_their_log() -> None:
    world = World()
    world.lease()
    world.delete_all()
    names = [path for path in world.files.tree("/data") if ".stratalog/leased/" in path]
    stems = {name.rpartition("/")[2].partition(".")[0] for name in names}
    kinds = {name.rpartition(".")[2] for name in names}
    assert kinds == {"log", "index", "timeindex"}
    assert len(names) == 3 * len(stems)


def test_what_compaction_replaces_is_kept_generation_by_generation() -> None:
    world = World(COMPACT, log_cleaner_dedupe_buffer_size=5 << 20)
    log = written(world.logs, PAYMENTS)
    generations = []
    for _ in range(2):
        log.roll()
        generations += world.segments(PAYMENTS).values()
        world.lease((PAYMENTS, 0, 1 << 40))
        cleaner_of(world.logs).run(world.clock.now_ms())
        log.append_as_leader(fresh(log.log_end_offset))
        log.update_high_watermark(log.log_end_offset)
    there = [*world.kept(), *world.segments(PAYMENTS).values()]
    assert len(world.kept()) > 3
    assert all(any(now.startswith(then) for now in there) for then in generations)


def fresh(offset: int) -> bytes:
    from stratalog.records import Record, build_batch

    return build_batch([Record(b"key-0", b"value of %d" % offset, (), START_MS)])


def test_what_truncation_drops_or_empties_is_kept() -> None:
    world = World()
    log = world.logs.get(ORDERS)
    before = world.segments()
    bases = log.segments.base_offsets
    world.lease()
    world.logs.truncate_to(ORDERS, bases[1])
    kept = world.kept()
    assert kept == [before[f"{base:020d}.log"] for base in bases[1:]]


def test_a_segment_that_is_cut_is_left_to_its_readers_and_the_log_goes_on_with_a_copy() -> None:
    world = World()
    log = world.logs.get(ORDERS)
    before = list(world.segments().values())[-1]
    world.lease()
    kept = world.files._file(f"{log.directory}/{log.segments.active.base_offset:020d}.log")
    world.logs.truncate_to(ORDERS, log.log_end_offset - 1)
    fill(log, 2)
    assert world.kept() == [before]
    name = f"{log.segments.active.base_offset:020d}.log"
    assert world.files._file(f"{log.directory}/{name}") is not kept
    assert [str(each) for each in check(log)] == []


def test_a_segment_that_cannot_be_copied_is_cut_all_the_same() -> None:
    world = World()
    world.lease()
    world.files.fail(lambda operation: operation.path.endswith(".cleaned"), errno.ENOSPC, times=99)
    log = world.logs.get(ORDERS)
    end_offset = log.log_end_offset
    world.logs.truncate_to(ORDERS, end_offset - 1)
    assert log.log_end_offset < end_offset
    assert log.failure is None
    assert not [path for path in world.files.tree("/data") if path.endswith(".cleaned")]


def test_a_cut_that_a_crash_interrupted_loses_neither_the_log_nor_what_is_leased() -> None:
    world = World()
    log = world.logs.get(ORDERS)
    log.flush()
    before = world.segments()
    world.lease()
    moments: list[SimulatedFileSystem] = []
    world.files.observer = lambda _operation: moments.append(world.files.clone())
    world.logs.truncate_to(ORDERS, log.log_end_offset - 3)
    kept_to = log.log_end_offset
    assert len(moments) > 8
    for files in moments:
        world.files = files
        world.logs = world.start()
        assert world.logs.get(ORDERS).log_end_offset >= kept_to
        there = [*world.kept(), *world.segments().values()]
        assert all(any(now.startswith(then) for now in there) for then in before.values())


def test_a_deleted_topic_stays_in_its_directory_until_the_lease_is_over() -> None:
    world = World(TopicConfig(file_delete_delay_ms=DELAY_MS))
    before = world.segments()
    world.lease(ms=30_000)
    world.logs.delete(ORDERS)
    world.later(DELAY_MS + 1_000)
    there = [data for path, data in world.files.tree("/data").items() if "-delete/" in path]
    assert all(data in there for data in before.values())
    assert world.book.held_bytes() >= sum(len(data) for data in before.values())
    world.later(30_000)
    assert not [path for path in world.files.tree("/data") if "-delete/" in path]
    assert world.book.held_bytes() == 0


def test_a_lease_on_a_new_topic_does_not_keep_a_deleted_one_of_its_name() -> None:
    world = World(TopicConfig(file_delete_delay_ms=DELAY_MS))
    world.logs.delete(ORDERS)
    world.logs.create(ORDERS)
    world.clock.advance(DELAY_MS + 1)
    world.lease()
    world.later()
    assert not [path for path in world.files.tree("/data") if "-delete/" in path]


def test_what_was_kept_of_a_topic_goes_with_it_when_it_is_deleted() -> None:
    world = World(SLOW)
    world.lease(ms=30_000)
    world.delete_all()
    before = world.kept()
    assert before
    world.logs.delete(ORDERS)
    world.later(DELAY_MS + 1_000)
    assert world.kept() == before, "it can still be read, in the directory that waits"
    there = world.files.tree("/data")
    sizes = [len(data) for path, data in there.items() if "-delete/" in path]
    assert world.book.held_bytes() <= sum(sizes), "it is not counted twice"
    world.later(30_000)
    assert not [path for path in world.files.tree("/data") if path.startswith("orders-0")]


def test_a_topic_with_the_longest_of_names_is_kept_too() -> None:
    long = TopicPartition("t" * 249, 0)
    world = World(TopicConfig(file_delete_delay_ms=DELAY_MS))
    fill(world.logs.create(long))
    world.lease((long, 0, 100), ms=120_000)
    world.logs.delete(long)
    world.restart(log_segment_delete_delay_ms=DELAY_MS)
    world.later(DELAY_MS + 1_000)
    world.later(DELAY_MS)
    assert [path for path in world.files.tree("/data") if "-delete/" in path]
    world.later(120_000)
    assert not [path for path in world.files.tree("/data") if "-delete/" in path]


def test_a_new_lease_rescues_what_waits_to_be_unlinked() -> None:
    world = World(SLOW)
    before = world.segments()
    bases = world.logs.get(ORDERS).segments.base_offsets
    world.delete_all()
    world.later(DELAY_MS - 1)
    world.lease((ORDERS, bases[1], 1 << 40))
    world.later(DELAY_MS)
    assert world.kept() == [before[f"{base:020d}.log"] for base in bases[1:]]
    assert not [path for path in world.files.tree("/data") if path.endswith(".deleted")]


def test_a_lease_left_as_a_file_rescues_too() -> None:
    world = World(SLOW)
    before = world.segments()
    world.later(LOOK_MS - 1_000)
    world.delete_all()
    leave(world)
    world.later(1_000)
    world.later(1_000)
    world.later(DELAY_MS)
    assert world.kept() == list(before.values())


def test_two_leases_on_one_segment_keep_it_until_both_are_over() -> None:
    world = World()
    first, second = world.lease(), world.lease()
    world.delete_all()
    world.book.release(first)
    world.later()
    assert world.kept()
    world.book.release(second)
    world.later()
    assert world.kept() == []


def test_a_log_goes_on_where_nothing_can_be_kept() -> None:
    world = World()
    world.lease()
    world.files.fail(lambda operation: operation.kind == "mkdir", errno.ENOSPC, times=99)
    world.delete_all()
    assert world.kept() == []
    log = world.logs.get(ORDERS)
    assert log.failure is None
    assert log.log_start_offset == log.log_end_offset


# --- how long ---------------------------------------------------------------------------------


def test_a_lease_lasts_no_longer_than_the_longest_that_is_given() -> None:
    world = World(log_lease_max_ms=5_000)
    lease_id = world.lease(ms=1 << 50)
    assert world.book.leases[lease_id].until_ms == START_MS + 5_000
    world.clock.advance(1_000)
    assert world.book.renew(lease_id, 1 << 50).until_ms == START_MS + 6_000


def test_a_renewal_never_makes_a_lease_shorter_and_never_revives_one() -> None:
    world = World()
    lease_id = world.lease(ms=30_000)
    assert world.book.renew(lease_id, 1).until_ms == START_MS + 30_000
    world.clock.advance(30_000)
    assert world.book.renew(lease_id, 30_000) is None
    world.later()
    assert world.book.renew(lease_id, 30_000) is None


def test_a_lease_that_ended_does_not_come_back_with_its_file() -> None:
    world = World()
    lease_id = world.lease()
    held = world.book.leases[lease_id]
    world.book.release(lease_id)
    world.later()
    write_lease(world.files, "/data", held)
    world.later(LOOK_MS)
    world.later()
    assert world.book.leases == {}
    assert world.lease_files() == []


def test_an_older_look_does_not_bring_back_what_was_released_since() -> None:
    world = World()
    leave(world)
    look, again = (world.book.plan_look("/data") for _ in range(2))
    world.logs.leases.take_found(look())
    found = again()
    assert len(world.book.leases) == 1
    world.book.release(next(iter(world.book.leases)))
    world.logs.leases.take_found(found)
    assert world.book.leases == {}


def test_renewals_and_releases_of_files_count_when_the_owner_next_looks() -> None:
    world = World()
    lease_id = world.lease(ms=60_000)
    renew_lease_file(world.files, "/data", lease_id, START_MS + 90_000)
    world.later(LOOK_MS)
    world.later(1_000)
    assert world.book.leases[lease_id].until_ms == START_MS + 90_000
    world.files.unlink(lease_file("/data", lease_id))
    world.later(LOOK_MS)
    world.later(1_000)
    assert world.ends() == [LeaseEnd.RELEASED]


def test_a_lease_whose_file_is_not_written_yet_is_not_taken_for_a_released_one() -> None:
    world = World()
    lease, writes = world.logs.leases.grant("a reader", 60_000, {ORDERS: (0, 5)})
    world.logs.leases.look_now()
    assert lease.lease_id in world.book.leases
    for _, write in writes:
        write()
    world.logs.leases.note_written(lease, ["/data"])
    world.logs.leases.look_now()
    assert lease.lease_id in world.book.leases


def test_there_is_an_end_to_how_many_leases_are_given() -> None:
    world = World()
    for _ in range(LEASES_MAX):
        world.logs.leases.grant("a reader", 60_000, {ORDERS: (0, 5)})
    with pytest.raises(LeaseError, match="1000 leases already"):
        world.logs.leases.grant("a reader", 60_000, {ORDERS: (0, 5)})


# --- the next owner ---------------------------------------------------------------------------


def leave(world: World, *, until_ms: int = START_MS + 60_000, end: int = 1 << 40) -> str:
    """As a reader does where nobody owns the directory."""
    lease = Lease(
        lease_id=new_lease_id(),
        holder="a reader",
        created_ms=START_MS,
        until_ms=until_ms,
        ranges={ORDERS: (0, end)},
    )
    write_lease(world.files, "/data", lease)
    return lease.lease_id


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_next_owner_keeps_what_is_leased_and_removes_the_rest(is_killed: bool) -> None:
    world = World()
    bases = world.logs.get(ORDERS).segments.base_offsets
    before = world.segments()
    released = world.lease((ORDERS, 0, bases[1]))
    world.lease((ORDERS, bases[1], 1 << 40), ms=30_000)
    world.delete_all()
    world.book.release(released)
    if is_killed:
        world.files = world.files.after_crash(CrashMode.KEEP_ALL)
    else:
        world.logs.shutdown()
    world.files.unlink(lease_file("/data", released))
    world.logs = world.start()
    world.later(10_000)
    world.later(1_000)
    assert world.kept() == [before[f"{base:020d}.log"] for base in bases[1:]]
    world.later(30_000)
    assert world.kept() == []


def test_a_lease_left_while_nobody_owned_the_directory_holds_for_the_next_owner() -> None:
    world = World()
    before = world.segments()
    world.logs.shutdown()
    lease_id = leave(world)
    world.logs = world.start()
    log = world.logs.get(ORDERS)
    log.update_high_watermark(log.log_end_offset)
    world.delete_all()
    assert world.kept() == list(before.values())
    assert world.book.leases[lease_id].until_ms == START_MS + 60_000


def test_a_file_that_claims_a_thousand_years_gets_no_more_than_others() -> None:
    world = World(log_lease_max_ms=5_000)
    lease_id = leave(world, until_ms=1 << 45)
    world.restart()
    assert world.book.leases[lease_id].until_ms == START_MS + 5_000


def test_leases_that_were_over_before_the_start_are_removed() -> None:
    world = World()
    leave(world, until_ms=START_MS)
    world.restart()
    world.later()
    assert world.book.leases == {}
    assert world.lease_files() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        b"[]",
        b'{"holder": "x", "created_ms": 1}',
        b'{"holder": "x", "created_ms": 1, "ranges": {"a/b": {"0": [0, 1]}}}',
        b'{"holder": "x", "created_ms": 1, "ranges": {"a": {"-1": [0, 1]}}}',
        b'{"holder": "x", "created_ms": 1, "ranges": {"a": {"0": [5, 1]}}}',
        b'{"holder": "x", "created_ms": 1, "ranges": {"a": {"0": [0.5, 1]}}}',
        b'{"holder": "x", "created_ms": 1e400, "ranges": {"a": {"0": [0, 1]}}}',
        b'{"holder": 1, "created_ms": 1, "ranges": {"a": {"0": [0, 1]}}}',
    ],
)
def test_a_garbled_lease_holds_nothing_and_goes_when_its_time_is_over(content: bytes) -> None:
    world = World()
    path = lease_file("/data", new_lease_id())
    world.files.put(path, content)
    world.files.set_modified(path, START_MS + 20_000)
    world.restart()
    assert world.book.leases == {}
    assert world.files.exists(path)
    world.later(LOOK_MS)
    world.later(1_000)
    assert world.lease_files() == []


def test_what_was_never_finished_is_removed_but_not_while_it_may_be_written() -> None:
    world = World()
    old, young = (f"{lease_file('/data', new_lease_id())}.tmp" for _ in range(2))
    for path, age_ms in ((old, 3_600_001), (young, 0)):
        world.files.put(path, b"{")
        world.files.set_modified(path, START_MS - age_ms)
    world.restart()
    assert not world.files.exists(old)
    assert world.files.exists(young)


def test_a_swap_that_a_crash_interrupted_is_finished_without_losing_what_is_leased() -> None:
    world = World(COMPACT, log_cleaner_dedupe_buffer_size=5 << 20)
    log = written(world.logs, PAYMENTS)
    log.roll()
    before = world.segments(PAYMENTS)
    world.lease((PAYMENTS, 0, 1 << 40))
    moments: list[SimulatedFileSystem] = []
    world.files.observer = lambda _operation: moments.append(world.files.clone())
    cleaner_of(world.logs).run(world.clock.now_ms())
    assert len(moments) > 20
    for files in moments:
        world.files = files
        world.logs = world.start()
        there = [*world.kept(), *world.segments(PAYMENTS).values()]
        assert all(any(now.startswith(then) for now in there) for then in before.values())


# --- what ends a lease before its time --------------------------------------------------------


def test_above_the_limit_the_oldest_lease_that_keeps_anything_ends() -> None:
    world = World()
    idle = world.lease((PAYMENTS, 0, 100))
    world.clock.advance(1)
    oldest = world.lease()
    world.clock.advance(1)
    newest = world.lease((ORDERS, 0, 1))
    world.restart(log_lease_max_bytes=1_000)
    world.delete_all()
    world.later()
    assert set(world.book.leases) == {idle, newest}
    assert 0 < world.book.held_bytes() <= 1_000
    (ended,) = world.book.news
    assert (ended.lease.lease_id, ended.end) == (oldest, LeaseEnd.BYTES)
    assert ended.held_bytes > 1_000


def test_what_two_leases_hold_is_free_when_both_have_ended() -> None:
    world = World()
    leases = []
    for _ in range(2):
        leases.append(world.lease())
        world.clock.advance(1)
    world.restart(log_lease_max_bytes=1_000)
    world.delete_all()
    world.later()
    assert [each.lease.lease_id for each in world.book.news] == leases
    assert world.book.held_bytes() == 0


def test_up_to_the_limit_nothing_ends() -> None:
    world = World()
    lease_id = world.lease()
    world.delete_all()
    held_bytes = world.book.held_bytes()
    kept = world.kept()
    world.restart(log_lease_max_bytes=held_bytes)
    world.later()
    assert lease_id in world.book.leases
    assert world.kept() == kept
    world.restart(log_lease_max_bytes=held_bytes - 1)
    world.later()
    assert world.kept() == []


def test_where_space_is_short_leases_end_before_appends_are_refused() -> None:
    world = World(batches=60)
    lease_id = world.lease()
    world.delete_all()
    world.later()
    world.restart_short_of(4096)
    world.logs.check_space()
    (directory,) = world.logs.directories
    assert directory.state.state is DiskState.ONLINE
    assert world.kept() == []
    assert [(each.lease.lease_id, each.end) for each in world.book.news] == [
        (lease_id, LeaseEnd.SPACE)
    ]


def test_what_is_about_to_be_unlinked_counts_as_free_once() -> None:
    world = World(batches=200)
    world.lease()
    world.delete_all()
    world.later()
    world.restart_short_of(8192)
    world.logs._janitor.unlink = lambda _paths, _failed: None  # type: ignore[method-assign]
    (directory,) = world.logs.directories
    world.logs.check_space()
    assert directory.state.state is DiskState.ONLINE
    world.logs.check_space()
    assert directory.state.state is DiskState.FULL


def test_no_more_leases_end_for_space_than_have_to() -> None:
    world = World(batches=60)
    fill(world.logs.create(PAYMENTS), 60)
    world.lease((ORDERS, 0, 1 << 40))
    world.clock.advance(1)
    kept = world.lease((PAYMENTS, 0, 1 << 40))
    world.delete_all()
    world.delete_all(PAYMENTS)
    world.later()
    world.restart_short_of(1)
    world.logs.check_space()
    assert list(world.book.leases) == [kept]


def test_with_nothing_left_to_give_appends_are_refused() -> None:
    world = World()
    world.lease()
    world.restart(log_dir_reserve_bytes=1 << 60)
    world.delete_all()
    world.logs.check_space()
    (directory,) = world.logs.directories
    assert directory.state.state is DiskState.FULL
    assert world.kept() == []


def test_leases_are_found_in_each_of_several_directories() -> None:
    clock = ManualClock(START_MS)
    files = SimulatedFileSystem(now_ms=clock.now_ms)
    logs = started(files, "/a", "/b", clock=clock)
    logs.create(ORDERS, directory="/a")
    logs.create(PAYMENTS, directory="/b")
    _, writes = logs.leases.grant("a", 60_000, {ORDERS: (0, 1)})
    assert [log_dir for log_dir, _ in writes] == ["/a"]
    both, writes = logs.leases.grant("b", 60_000, {ORDERS: (0, 1), PAYMENTS: (0, 1)})
    assert [log_dir for log_dir, _ in writes] == ["/a", "/b"]
    for _, write in writes:
        write()
    logs.leases.note_written(both, ["/a", "/b"])
    logs.shutdown()
    logs = started(files, "/a", "/b", clock=clock)
    assert list(logs.leases.book.leases) == [both.lease_id]
    files.unlink(lease_file("/a", both.lease_id))
    logs.leases.look_now()
    assert list(logs.leases.book.leases) == [both.lease_id], "it has a file in the other"
    files.unlink(lease_file("/b", both.lease_id))
    logs.leases.look_now()
    assert list(logs.leases.book.leases) == []
