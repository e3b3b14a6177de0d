"""Power is cut before every operation of a backup and of a restore."""

import contextlib
from collections.abc import Callable

import pytest
from simulated_worlds import LOG_DIR, ORDERS, World, batches_of, open_manager, records_of, staged

from commit_harness import LARGE, OTHERS, Owner, flat, stage
from stratalog.errors import DiskFullError, LogDirectoryError, StratalogError
from stratalog.handover.backing_up import BackupOptions, back_up
from stratalog.storage.backup.checking import check_store
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.store import LocalBackupStore
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.one_commit import Commit
from stratalog.storage.commits.restoring import RestoreWork
from stratalog.storage.commits.work import topic_id_of
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import read_file
from stratalog.storage.layout import (
    COMMIT_JOURNAL,
    LOG_SUFFIX,
    RESTORING_DIRECTORY,
    segment_file,
    staging_directory,
)
from stratalog.testing import CrashMode, SimulatedFileSystem

MODES = list(CrashMode)


def moments(disk: SimulatedFileSystem) -> list[SimulatedFileSystem]:
    """From now on, what the disk is before each operation."""
    kept: list[SimulatedFileSystem] = []
    disk.observer = lambda _operation: kept.append(disk.clone())
    return kept


def backed_up_twice() -> tuple[World, list[SimulatedFileSystem], dict[str, bytes]]:
    """The second backup's crash points; what each backup is to restore, by its id."""
    world = World()
    world.append(batches_of([[1, 2], [3], [4, 5], [6]]))
    expected = {world.back_up().manifest.backup_id: world.log()}
    world.append(batches_of([[7], [8], [9], [10, 11]], 100))
    kept = moments(world.disk)
    expected[world.back_up().manifest.backup_id] = world.log()
    world.disk.observer = lambda _operation: None
    kept.append(world.disk)
    return world, kept, expected


@pytest.mark.parametrize("mode", MODES)
def test_a_crash_of_a_backup_leaves_the_earlier_ones_whole(mode: CrashMode) -> None:
    world, kept, expected = backed_up_twice()
    seen = set()
    for number, moment in enumerate(kept):
        world.store = LocalBackupStore(moment.after_crash(mode, seed=number), "/backups")
        ids = world.store.backup_ids()
        seen.add(len(ids))

        for backup_id in ids:
            assert world.log(world.restore(at=backup_id)) == expected[backup_id]
        assert check_store(world.store).findings == []
        again = world.back_up().manifest.backup_id
        assert world.log(world.restore(at=again)) == world.log()
    assert seen == {1, 2}


@pytest.mark.parametrize("mode", MODES)
def test_a_crash_of_a_restore_never_leaves_what_a_broker_would_open(mode: CrashMode) -> None:
    world = World()
    world.append(batches_of([[1, 2], [3], [4, 5], [6]]))
    world.back_up()
    whole = world.opened(world.restore())
    disk = SimulatedFileSystem(now_ms=world.clock.now_ms)
    kept = moments(disk)
    world.restoring(disk).run()
    for number, moment in enumerate(kept):
        left = moment.after_crash(mode, seed=number)
        names = {each.name for each in left.list(LOG_DIR)} if left.exists(LOG_DIR) else set()
        if RESTORING_DIRECTORY in names:
            with pytest.raises(StratalogError, match="run 'stratalog log restore' again"):
                LogDirectory(left, LOG_DIR).replicas()
        elif names - {".lock"}:
            assert world.opened(left) == whole
            continue

        world.restoring(left).run()

        assert world.opened(left) == whole


@pytest.mark.parametrize("mode", MODES)
def test_a_crash_of_a_restoring_commit_leaves_all_of_it_or_nothing(mode: CrashMode) -> None:
    world = World()
    world.append(batches_of([[1, 2], [3], [4, 5], [6]]))
    world.back_up()
    expected = world.opened(world.restore())
    disk = SimulatedFileSystem(now_ms=world.clock.now_ms)
    manager = open_manager(disk, world.clock)
    manager.create(ORDERS)
    disk.sync_file_system("/")
    kept = moments(disk)
    manager.commits.run(staged(world, disk))
    disk.observer = lambda _operation: None
    kept.append(disk.clone())
    seen = set()
    for number, moment in enumerate(kept):
        left = moment.after_crash(mode, seed=number)
        again = open_manager(left, world.clock)
        log = again.get(ORDERS)
        found = records_of(log), log.log_start_offset, log.log_end_offset
        seen.add(bool(found[0]))
        assert found == ((expected) if found[0] else ([], 0, 0))
        assert len(list(log.producers)) == 0
        assert (again.commits.status("restore-1") is not None) == bool(found[0])
        if not found[0]:
            again.commits.run(staged(world, left))
        assert records_of(again.get(ORDERS)) == expected[0]
        again.shutdown()
    assert seen == {False, True}


def test_a_backup_has_all_of_a_commit_or_nothing_whenever_its_owner_was_killed() -> None:
    owner = Owner()
    owner.create(ORDERS, OTHERS)
    ids = {key: topic_id_of(owner.log(key)) for key in (ORDERS, OTHERS)}
    manifest = stage(owner.files, owner.clock, {ORDERS: LARGE, OTHERS: LARGE}, topic_ids=ids)
    kept = moments(owner.files)
    owner.run(manifest)
    kept.append(owner.files.clone())

    told, refusals = [], []
    for disk in kept:
        store = LocalBackupStore(SimulatedFileSystem(now_ms=owner.clock.now_ms), "/backups")
        try:
            made = back_up(LOG_DIR, store, files=disk, clock=owner.clock).manifest
        except LogDirectoryError as error:
            refusals.append(str(error))
            back_up(LOG_DIR, store, BackupOptions(topics=("elsewhere",)), files=with_other(disk))
            Owner(disk).manager.shutdown()
            made = back_up(LOG_DIR, store, files=disk, clock=owner.clock).manifest
        counts = {sum(each.record_count for each in found.segments) for _, found in made.partitions}
        assert counts in ({0}, {len(flat(LARGE))})
        told += counts
    assert told[0] == 0
    assert told[-1] == len(flat(LARGE))
    assert "into orders-0, others-0, which was interrupted" in refusals[0]
    assert "let the owner open the directory once" in refusals[0]


def with_other(disk: SimulatedFileSystem) -> SimulatedFileSystem:
    """With a topic that has no part in the commit."""
    other = disk.clone()
    other.make_directory(f"{LOG_DIR}/elsewhere-0")
    other.open(f"{LOG_DIR}/elsewhere-0/{0:020d}.log", create=True).close()
    return other


def test_a_journal_of_commits_with_a_torn_end_is_read_and_left_as_it_is() -> None:
    owner = Owner()
    owner.create(ORDERS)
    owner.run(owner.stage(LARGE))
    owner.manager.shutdown()
    path = f"{LOG_DIR}/{COMMIT_JOURNAL}"
    file = owner.files.open(path)
    file.write_at(file.size_bytes(), [b"torn"])
    file.close()
    before = read_file(owner.files, path)
    store = LocalBackupStore(SimulatedFileSystem(now_ms=owner.clock.now_ms), "/backups")

    back_up(LOG_DIR, store, files=owner.files, clock=owner.clock)

    assert read_file(owner.files, path) == before


def test_every_failed_operation_of_a_backup_is_one_clear_error_and_costs_no_other() -> None:
    world = World()
    world.append(batches_of([[1, 2], [3], [4, 5], [6]]))
    first = world.back_up().manifest.backup_id
    world.append(batches_of([[7], [8]], 100))
    for number in range(1, 1000):
        disk = world.disk.clone()
        fault = disk.fail(disk.operations + number)
        world.store = LocalBackupStore(disk, "/backups")
        try:
            world.back_up()
        except StratalogError:
            assert world.store.backup_ids()[0] == first
            assert check_store(world.store).findings == []
            continue
        if fault.times:
            break
    assert number > 10


def test_a_disk_that_fills_up_ends_a_restore_and_leaves_nothing() -> None:
    world = World()
    world.append(batches_of([[1, 2], [3], [4, 5], [6]]))
    world.back_up()
    disk = SimulatedFileSystem(now_ms=world.clock.now_ms)
    restore = world.restoring(disk)
    restore.check()
    disk.capacity_bytes = 6_000

    with pytest.raises(DiskFullError):
        restore.run()

    assert not disk.exists(LOG_DIR)
    disk.capacity_bytes = 100
    with pytest.raises(BackupError, match="do not fit"):
        world.restoring(disk).run()


def test_two_backups_to_one_store_are_not_made_at_a_time() -> None:
    world = World()
    world.append(batches_of([[1]]))
    run = world.store.begin()

    with pytest.raises(BackupError, match="another backup is being written"):
        world.back_up()

    run.close()
    world.back_up()


def test_every_failed_operation_of_a_restoring_commit_is_made_good_by_the_next_start() -> None:
    world = World()
    world.append(batches_of([[1, 2], [3], [4, 5], [6]]))
    world.back_up()
    expected = world.opened(world.restore())
    blank = SimulatedFileSystem(now_ms=world.clock.now_ms)
    first = open_manager(blank, world.clock)
    first.create(ORDERS)
    first.shutdown()
    for number in range(1, 1000):
        disk = blank.clone()
        manager = open_manager(disk, world.clock)
        manifest = staged(world, disk)
        fault = disk.fail(disk.operations + number)
        with contextlib.suppress(StratalogError):
            manager.commits.run(manifest)
        if fault.times:
            break
        left = disk.after_crash(CrashMode.KEEP_ALL)
        again = open_manager(left, world.clock)
        if again.commits.status(manifest.manifest_id) is None:
            assert again.get(ORDERS).log_end_offset == 0
            again.commits.run(staged(world, left))
        log = again.get(ORDERS)
        assert (records_of(log), log.log_start_offset, log.log_end_offset) == expected
        again.shutdown()
    assert number > 20


def lose(disk: SimulatedFileSystem, path: str) -> None:
    disk.unlink(path)


def cut(disk: SimulatedFileSystem, path: str) -> None:
    file = disk.open(path)
    file.truncate(file.size_bytes() - 1)
    file.close()


def restoring(
    *,
    until: Callable[[Commit], object],
    harm: Callable[[SimulatedFileSystem, str], None] = lose,
    number: int = 1,
) -> tuple[World, SimulatedFileSystem, Commit]:
    """A commit that restores, up to a step, and harm done to one of its staged files."""
    world = World()
    world.append(batches_of([[number, number + 1] for number in range(9)]))
    world.back_up()
    disk = SimulatedFileSystem(now_ms=world.clock.now_ms)
    manager = open_manager(disk, world.clock)
    manager.create(ORDERS)
    manifest = staged(world, disk)
    commit = manager.commits.plan(manifest)
    assert isinstance(commit, Commit)
    commit.check()
    commit.stop()
    until(commit)
    staging = staging_directory(f"{LOG_DIR}/orders-0", manifest.staging_id)
    harm(disk, f"{staging}/{manifest.partitions[0].files[number].name}")
    return world, disk, commit


def test_a_file_that_is_gone_behind_its_check_is_not_taken_for_restored() -> None:
    _, disk, commit = restoring(until=lambda _commit: None)
    with pytest.raises(StagedFileError, match="gone since it was checked"):
        commit.settle()
    commit.abandon()
    assert records_of(commit.logs[0]) == []
    assert not [path for path in disk.tree(LOG_DIR) if path.endswith("6.log")]


@pytest.mark.parametrize("number", [0, 1])  # the first has the name of the empty log's segment
@pytest.mark.parametrize(
    ("harm", "reason"), [(lose, "was committed and is gone"), (cut, "it has another size")]
)
def test_a_file_that_is_gone_or_cut_before_it_was_placed_is_not_taken_for_restored(
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    harm: Callable[[SimulatedFileSystem, str], None],
    reason: str,
) -> None:
    monkeypatch.setattr(RestoreWork, "place", lambda _work: None)
    world, disk, _ = restoring(until=Commit.settle, harm=harm, number=number)
    for _ in range(2):
        with pytest.raises(LogDirectoryError, match=reason):
            open_manager(disk.after_crash(CrashMode.KEEP_ALL), world.clock)


@pytest.mark.parametrize("number", [0, 2])
def test_a_file_that_is_lost_after_it_was_placed_is_missed_unless_the_log_has_gone_on(
    number: int,
) -> None:
    world, disk, commit = restoring(until=Commit.settle, harm=lambda *_: None)
    base_offset = commit.manifest.partitions[0].files[number].base_offset
    placed = segment_file(f"{LOG_DIR}/orders-0", base_offset, LOG_SUFFIX)
    left = disk.after_crash(CrashMode.KEEP_ALL)
    left.unlink(placed)
    with pytest.raises(LogDirectoryError, match="was committed and is gone"):
        open_manager(left, world.clock)

    commit.apply()
    gone_on = disk.after_crash(CrashMode.KEEP_ALL)
    gone_on.unlink(placed)
    assert open_manager(gone_on, world.clock).get(ORDERS).log_end_offset == 18


def test_a_record_that_does_not_say_how_long_its_files_are_is_brought_about_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle = RestoreWork.settle

    def settle_as_before(work: RestoreWork) -> dict[str, object]:
        record = settle(work)
        record["files"] = [{"base_offset": each["base_offset"]} for each in record["files"]]
        return record

    monkeypatch.setattr(RestoreWork, "settle", settle_as_before)
    monkeypatch.setattr(RestoreWork, "place", lambda _work: None)
    world, disk, _ = restoring(until=Commit.settle, harm=lambda *_: None)
    left = disk.after_crash(CrashMode.KEEP_ALL)
    assert len(records_of(open_manager(left, world.clock).get(ORDERS))) == 9

    world, disk, _ = restoring(until=Commit.settle, number=0)
    with pytest.raises(LogDirectoryError, match="was committed and is gone"):
        open_manager(disk.after_crash(CrashMode.KEEP_ALL), world.clock)
