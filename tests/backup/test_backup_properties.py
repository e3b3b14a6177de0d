"""Any log, any chain of backups, any moment: what is restored is a beginning of what was."""

from hypothesis import given
from hypothesis import strategies as st
from simulated_worlds import ORDERS, START_MS, World, batches_of, open_manager, records_of, staged

from stratalog.records import read_headers
from stratalog.storage.backup.checking import check_store
from stratalog.testing import SimulatedFileSystem

Times = st.lists(
    st.lists(st.integers(min_value=0, max_value=50), min_size=1, max_size=3),
    min_size=1,
    max_size=9,
)


@given(times=Times, segment_batches=st.integers(1, 4), until=st.integers(-1, 51))
def test_a_moment_restores_what_precedes_the_first_batch_that_is_later(
    times: list[list[int]], segment_batches: int, until: int
) -> None:
    world = World()
    world.append(batches_of(times), segment_batches)
    world.back_up()

    copy = world.restore(until_ms=START_MS + 1000 * until)

    later = (number for number, batch in enumerate(times) if max(batch) > until)
    kept = next(later, len(times))
    batches, start_offset, end_offset = world.opened(copy)
    expected = sum(len(batch) for batch in times[:kept])
    assert (len(batches), start_offset, end_offset) == (kept, 0, expected)
    assert world.log().startswith(b"".join(batches))
    assert sum(read_headers(each)[0].record_count for each in batches) == expected


@given(runs=st.lists(Times, min_size=1, max_size=4))
def test_each_backup_of_a_chain_restores_the_log_as_it_was_then(
    runs: list[list[list[int]]],
) -> None:
    world = World()
    then = []
    for number, times in enumerate(runs):
        world.append(batches_of(times, 100 * number))
        then.append((world.back_up().manifest.backup_id, world.log()))

    for backup_id, expected in then:
        copy = world.restore(at=backup_id)
        assert world.log(copy) == expected
        assert b"".join(world.opened(copy)[0]) == expected
    assert check_store(world.store).findings == []


@given(times=Times)
def test_restoring_twice_gives_the_same_files(times: list[list[int]]) -> None:
    world = World()
    world.append(batches_of(times))
    world.back_up()

    first, second = world.restore(), world.restore()

    assert first.tree("/data") == second.tree("/data")


@given(times=Times, segment_batches=st.integers(1, 4), until=st.integers(0, 51))
def test_a_commit_restores_what_a_restored_directory_holds(
    times: list[list[int]], segment_batches: int, until: int
) -> None:
    world = World()
    world.append(batches_of(times), segment_batches)
    world.back_up()
    until_ms = START_MS + 1000 * until
    expected = world.opened(world.restore(until_ms=until_ms))
    disk = SimulatedFileSystem(now_ms=world.clock.now_ms)
    manager = open_manager(disk, world.clock)
    manager.create(ORDERS)
    manifest = staged(world, disk, until_ms=until_ms)

    if manifest.partitions:
        manager.commits.run(manifest)

    for again in (manager, None):
        opened = again or open_manager(disk, world.clock)
        log = opened.get(ORDERS)
        assert (records_of(log), log.log_start_offset, log.log_end_offset) == expected
        opened.shutdown()
