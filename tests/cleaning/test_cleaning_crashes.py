"""Power is cut, or the disk fails, at every file operation of a cleaning: after the next start the
log is the old one or the new one, whole, and it can be cleaned as if nothing had been."""

import errno
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from cleaning_model import Round
from cleaning_reading import read_batches, stored_batches
from cleaning_steps import Clean
from cleaning_world import World
from crash_rounds import (
    PARTITION,
    Moment,
    Observed,
    check_after,
    crashes,
    observe,
    prepared,
    run_round,
)

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import DiskError, DiskFullError
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.layout import CLEANER_CHECKPOINT
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem


@cache
def observed_round() -> Observed:
    return observe()


def check_all(
    observed: Observed, points: Iterator[tuple[Moment, CrashMode, int]], *, cleans_every: int
) -> int:
    count = 0
    for moment, mode, seed in points:
        try:
            world = check_after(observed, moment.files.after_crash(mode, seed), moment.swapped)
            if count % cleans_every == 0:
                world.run([Clean(), Clean(after_ms=2**40)])
        except Exception as error:
            index = observed.moments.index(moment)
            error.add_note(f"at moment {index} ({moment.name}), {mode}, seed {seed}")
            raise
        count += 1
    return count


def test_a_crash_at_any_operation_of_a_round_leaves_each_group_old_or_new(
    capsys: pytest.CaptureFixture[str],
) -> None:
    observed = observed_round()
    count = check_all(observed, crashes(observed.moments, seeds=1), cleans_every=7)
    with capsys.disabled():
        print(f" {count} crash points", end="")
    assert count > 500


def test_a_second_crash_inside_recovery_changes_nothing() -> None:
    observed = observed_round()
    points = list(crashes(observed.moments, seeds=1))[:: len(observed.moments)]
    for moment, mode, seed in points:
        files = moment.files.after_crash(mode, seed)
        for inner in openings(observed, files):
            for second in (CrashMode.KEEP_ALL, CrashMode.MIXED):
                left = inner.after_crash(second, seed)
                try:
                    check_after(observed, left, moment.swapped, is_rebuilt=True)
                except Exception as error:
                    error.add_note(f"after {moment.name}, {mode}; then {second}")
                    raise


def openings(observed: Observed, files: SimulatedFileSystem) -> list[SimulatedFileSystem]:
    """The disk before each operation of a start."""
    kept: list[SimulatedFileSystem] = []
    files.observer = lambda _operation: kept.append(files.clone())
    recovery_point = observed.before.log.recovery_point
    observed.before.open(files, is_clean=False, recovery_point=recovery_point).abandon()
    return kept


@pytest.mark.deep
def test_the_whole_grid_of_crashes(capsys: pytest.CaptureFixture[str]) -> None:
    observed = observed_round()
    count = check_all(observed, crashes(observed.moments, seeds=30), cleans_every=1)
    with capsys.disabled():
        print(f" {count} crash points", end="")


# --- by a log manager ----------------------------------------------------------------------------


def managed(files: SimulatedFileSystem, clock: ManualClock, config: TopicConfig) -> LogManager:
    manager = LogManager(
        BrokerConfig(
            log_dirs=("/data",),
            log_dir_reserve_bytes=0,
            num_recovery_threads_per_data_dir=1,
            log_cleaner_dedupe_buffer_size=2 << 20,
            log_flush_on_ack=False,
        ),
        files=files,
        clock=clock,
        topic_config=lambda _topic: config,
        is_threaded=False,
    )
    manager.start()
    return manager


def observed_manager() -> tuple[Observed, list[LogManager]]:
    managers: list[LogManager] = []

    def take_over(world: World) -> None:
        world.log.abandon()
        config = replace(world.config, min_cleanable_dirty_ratio=0.0)
        managers.append(managed(world.files, world.clock, config))
        world.log = managers[0].get(PARTITION)

    def run(world: World, plan: Round) -> None:
        cleaner = managers[0].cleaner
        assert cleaner is not None
        cleaner.run(plan.now_ms)
        managers[0].delete_due(plan.now_ms + 1)
        assert not cleaner.status().uncleanable

    return observe(run, take_over), managers


def test_the_cleaner_of_a_manager_survives_a_crash_at_any_operation() -> None:
    """Its checkpoint included: it never says more than the log holds."""
    observed, _ = observed_manager()
    for moment in observed.moments:
        for mode in (CrashMode.LOSE_UNSYNCED, CrashMode.KEEP_ALL, CrashMode.MIXED):
            try:
                check_after(observed, moment.files.after_crash(mode, 1), moment.swapped)
            except Exception as error:
                error.add_note(f"{moment.name}, {mode}")
                raise
    path = f"/data/{CLEANER_CHECKPOINT}"
    assert read_offsets(observed.moments[-1].files, path) == {PARTITION: observed.end_offset}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_the_cleaner_of_a_manager_loses_nothing_when_an_operation_fails(error: int) -> None:
    observed, _ = observed_manager()
    for number in range(1, len(observed.moments)):
        world = prepared()
        world.log.abandon()
        config = replace(world.config, min_cleanable_dirty_ratio=0.0)
        manager = managed(world.files, world.clock, config)
        assert manager.cleaner is not None
        world.files.fail(world.files.operations + number, error)
        manager.cleaner.run(observed.plan.now_ms)
        manager.delete_due(observed.plan.now_ms + 1)
        world.files.heal()
        log = manager.get(PARTITION)
        if log.failure is None:
            names = world.files.tree(log.directory)
            assert not [name for name in names if name.endswith((".cleaned", ".swap"))], number
        check_after(observed, world.files.after_crash(CrashMode.KEEP_ALL), 0, is_rebuilt=True)


# --- a disk that fails ---------------------------------------------------------------------------


def failing_round(number: int, error: int) -> World:
    """A round whose operation ``number`` fails; the world as it is then, still the old one."""
    world = prepared()
    plan = world.plan()
    assert plan is not None
    world.files.fail(world.files.operations + number, error)
    with suppress(DiskError):
        run_round(world, plan)
    world.files.heal()
    return world


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_at_any_operation_loses_nothing(error: int) -> None:
    observed = observed_round()
    for number in range(1, len(observed.moments)):
        world = failing_round(number, error)
        names = world.files.tree(world.log.directory)
        is_swapping = any(name.endswith(".swap") for name in names)
        if world.log.failure is None:
            assert not is_swapping
            assert not [name for name in names if name.endswith(".cleaned")], number
            check_readable(world)
        world.log.abandon()
        again = check_after(observed, world.files.after_crash(CrashMode.KEEP_ALL), 0)
        if number % 10 == 0:
            again.run([Clean()])


def check_readable(world: World) -> None:
    """Every batch can be read that the files hold, from the first to the last."""
    log = world.log
    stored = [content for _, content in stored_batches(log)]
    pieces = [content for content, _ in read_batches(log, log.log_start_offset)]
    assert b"".join(pieces) == b"".join(stored)
    assert stored


def test_after_a_failure_that_swapped_nothing_the_same_process_cleans_again() -> None:
    observed = observed_round()
    first_swap = next(n for n, m in enumerate(observed.moments) if m.name.startswith("rename"))
    for number in range(1, first_swap + 1):
        world = failing_round(number, errno.ENOSPC)
        assert world.log.failure is None
        world.clean()


def test_a_disk_with_no_room_for_the_copy_is_told_apart_and_left_alone() -> None:
    world = prepared()
    before = world.files.tree(world.log.directory)
    world.files.capacity_bytes = 0
    plan = world.plan()
    assert plan is not None
    with pytest.raises(DiskFullError):
        run_round(world, plan)
    assert world.files.tree(world.log.directory) == before
    assert world.log.failure is None
