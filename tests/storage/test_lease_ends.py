"""How long a lease lasts: renewals and releases, the next owner, and what ends it too early."""

import pytest
from cleaners import COMPACT, cleaner_of, written
from managers import ORDERS, PAYMENTS, LeaseWorld, fill, leave, started
from small_logs import START_MS

from stratalog.errors import LeaseError
from stratalog.storage.context import DiskState
from stratalog.storage.layout import lease_file
from stratalog.storage.lease_book import LeaseEnd
from stratalog.storage.leases import (
    LEASES_MAX,
    new_lease_id,
    renew_lease_file,
    write_lease,
)
from stratalog.storage.log_leases import LOOK_MS
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

# --- how long ---------------------------------------------------------------------------------


def test_a_lease_lasts_no_longer_than_the_longest_that_is_given() -> None:
    world = LeaseWorld(log_lease_max_ms=5_000)
    lease_id = world.lease(ms=1 << 50)
    assert world.book.leases[lease_id].until_ms == START_MS + 5_000
    world.clock.advance(1_000)
    assert world.book.renew(lease_id, 1 << 50).until_ms == START_MS + 6_000


def test_a_renewal_never_makes_a_lease_shorter_and_never_revives_one() -> None:
    world = LeaseWorld()
    lease_id = world.lease(ms=30_000)
    assert world.book.renew(lease_id, 1).until_ms == START_MS + 30_000
    world.clock.advance(30_000)
    assert world.book.renew(lease_id, 30_000) is None
    world.later()
    assert world.book.renew(lease_id, 30_000) is None


def test_a_lease_that_ended_does_not_come_back_with_its_file() -> None:
    world = LeaseWorld()
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
    world = LeaseWorld()
    leave(world)
    look, again = (world.book.plan_look("/data") for _ in range(2))
    world.logs.leases.take_found(look())
    found = again()
    assert len(world.book.leases) == 1
    world.book.release(next(iter(world.book.leases)))
    world.logs.leases.take_found(found)
    assert world.book.leases == {}


def test_renewals_and_releases_of_files_count_when_the_owner_next_looks() -> None:
    world = LeaseWorld()
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
    world = LeaseWorld()
    lease, writes = world.logs.leases.grant("a reader", 60_000, {ORDERS: (0, 5)})
    world.logs.leases.look_now()
    assert lease.lease_id in world.book.leases
    for _, write in writes:
        write()
    world.logs.leases.note_written(lease, ["/data"])
    world.logs.leases.look_now()
    assert lease.lease_id in world.book.leases


def test_there_is_an_end_to_how_many_leases_are_given() -> None:
    world = LeaseWorld()
    for _ in range(LEASES_MAX):
        world.logs.leases.grant("a reader", 60_000, {ORDERS: (0, 5)})
    with pytest.raises(LeaseError, match="1000 leases already"):
        world.logs.leases.grant("a reader", 60_000, {ORDERS: (0, 5)})


# --- the next owner ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_next_owner_keeps_what_is_leased_and_removes_the_rest(is_killed: bool) -> None:
    world = LeaseWorld()
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
    world = LeaseWorld()
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
    world = LeaseWorld(log_lease_max_ms=5_000)
    lease_id = leave(world, until_ms=1 << 45)
    world.restart()
    assert world.book.leases[lease_id].until_ms == START_MS + 5_000


def test_leases_that_were_over_before_the_start_are_removed() -> None:
    world = LeaseWorld()
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
    world = LeaseWorld()
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
    world = LeaseWorld()
    old, young = (f"{lease_file('/data', new_lease_id())}.tmp" for _ in range(2))
    for path, age_ms in ((old, 3_600_001), (young, 0)):
        world.files.put(path, b"{")
        world.files.set_modified(path, START_MS - age_ms)
    world.restart()
    assert not world.files.exists(old)
    assert world.files.exists(young)


def test_a_swap_that_a_crash_interrupted_is_finished_without_losing_what_is_leased() -> None:
    world = LeaseWorld(COMPACT, log_cleaner_dedupe_buffer_size=5 << 20)
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
    world = LeaseWorld()
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
    world = LeaseWorld()
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
    world = LeaseWorld()
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
    world = LeaseWorld(batches=60)
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
    world = LeaseWorld(batches=200)
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
    world = LeaseWorld(batches=60)
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
    world = LeaseWorld()
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
