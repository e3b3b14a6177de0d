"""Much that is committed is worked at by several threads; nothing else about it is different."""

import ctypes
import errno
import threading
from pathlib import Path

import pytest

from commit_harness import START_MS, batch, new_manager, stage
from stratalog.config import TopicConfig
from stratalog.errors import DiskError
from stratalog.storage import files as os_files
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.manifest import Manifest
from stratalog.storage.commits.one_commit import MUCH_BYTES, Commit
from stratalog.storage.files import OsFileSystem, begin_sync
from stratalog.storage.layout import TopicPartition, staging_directory
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

ORDERS, OTHERS = TopicPartition("orders", 0), TopicPartition("others", 0)
BATCH_BYTES = 500_000
HANG_SECONDS = 60


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    clock = ManualClock(START_MS)
    made = new_manager(OsFileSystem(), clock, TopicConfig(), log_dirs=(str(tmp_path),))
    made.start()
    for key in (ORDERS, OTHERS):
        made.create(key)
    made.commits.work_threads = 2
    return made


def staged(manager: LogManager, size_bytes: int) -> Manifest:
    """So much in all, half of it for each log."""
    values = [[b"v" * BATCH_BYTES]] * (size_bytes // BATCH_BYTES // 2 + 1)
    log_dir = manager.directories[0].path
    parts = {ORDERS: [values], OTHERS: [values]}
    return stage(manager.files, manager.clock, parts, log_dir=log_dir)


def test_much_is_checked_by_several_threads_at_a_time(manager: LogManager) -> None:
    met = threading.Barrier(2)
    seen: set[int] = set()

    def pause() -> bool:
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            met.wait(HANG_SECONDS)  # for the other one: alone, this fails
        return False

    manager.commits.pause = pause
    result = manager.commits.run(staged(manager, MUCH_BYTES))
    assert result.status == "committed"
    assert len(seen) == 2
    ends = {key: (0, manager.get(key).log_end_offset) for key in (ORDERS, OTHERS)}
    assert result.partitions == ends
    assert ends[ORDERS] == ends[OTHERS] == (0, MUCH_BYTES // BATCH_BYTES // 2 + 1)


def test_little_is_checked_by_whoever_commits_it(manager: LogManager) -> None:
    seen: set[int] = set()
    manager.commits.pause = lambda: seen.add(threading.get_ident()) is not None
    manager.commits.run(staged(manager, 2 * BATCH_BYTES))
    assert seen == {threading.get_ident()}


def test_what_is_wrong_with_one_log_leaves_all_as_they_were(manager: LogManager) -> None:
    manifest = staged(manager, MUCH_BYTES)
    directory = staging_directory(manager.get(OTHERS).directory, manifest.staging_id)
    path = Path(directory) / manifest.partitions[1].files[0].name
    broken = bytearray(path.read_bytes())
    broken[-1] ^= 1
    path.write_bytes(broken)
    with pytest.raises(StagedFileError) as told:
        manager.commits.run(manifest)
    assert str(path) in str(told.value)
    assert manager.get(ORDERS).log_end_offset == manager.get(OTHERS).log_end_offset == 0
    broken[-1] ^= 1
    path.write_bytes(broken)
    assert manager.commits.run(manifest).status == "committed"


def test_to_begin_with_a_sync_is_a_hint_and_no_operation(tmp_path: Path) -> None:
    simulated = SimulatedFileSystem(now_ms=lambda: START_MS)
    simulated.make_directory("/data")
    for files, path in ((OsFileSystem(), f"{tmp_path}/a"), (simulated, "/data/a")):
        file = files.open(path, create=True)
        file.write_at(0, [b"content"])
        before = simulated.operations
        begin_sync(file, 0, 7)
        begin_sync(file, 0, 7, is_waited_for=True)
        assert simulated.operations == before
        assert file.read_at(0, 10) == b"content"
        file.close()
        begin_sync(file, 0, 7)  # not even an error


class Disk:
    """In the place of the C library: it says that what was written could not be kept."""

    def __init__(self, number: int) -> None:
        self._number = number

    def sync_file_range(self, *_where: object) -> int:
        ctypes.set_errno(self._number)
        return -1


def begin(path: Path, *, is_waited_for: bool) -> None:
    file = OsFileSystem().open(str(path), create=True)
    try:
        begin_sync(file, 0, 7, is_waited_for=is_waited_for)
    finally:
        file.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_who_waits_for_the_disk_hears_that_it_failed_since_the_sync_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os_files, "_libc", Disk(number))
    with pytest.raises(DiskError) as told:
        begin(tmp_path / "a", is_waited_for=True)
    assert (told.value.operation, told.value.errno) == ("fsync", number)
    begin(tmp_path / "a", is_waited_for=False)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EINVAL])
def test_a_hint_that_cannot_be_given_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os_files, "_libc", Disk(number))
    begin(tmp_path / "a", is_waited_for=True)


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_check_may_rest_behind_every_quarter_of_a_megabyte_where_the_machine_is_shared(
    manager: LogManager, is_shared: bool
) -> None:
    """Whoever waits for its core waits no longer than one of these takes."""
    rests = [0]

    def pause() -> bool:
        rests[0] += 1
        return is_shared

    manager.commits.pause = pause
    values = [[b"v" * 1000] * 60] * 100
    parts = {ORDERS: [values]}
    manifest = stage(manager.files, manager.clock, parts, log_dir=manager.directories[0].path)
    (part,) = manifest.partitions
    manager.commits.run(manifest)
    assert (rests[0] > part.size_bytes / (256 << 10)) == is_shared


class Rests:
    """So often did a commit ask whether it should, and each time it should."""

    def __init__(self, manager: LogManager) -> None:
        self.count = 0
        manager.commits.pause = self._pause

    def _pause(self) -> bool:
        self.count += 1
        return True


def a_commit_of_much(directory: Path) -> tuple[LogManager, Commit, int]:
    """And how many pieces its only file is given to the disk in."""
    directory.mkdir()
    config, clock = TopicConfig(), ManualClock(START_MS)
    manager = new_manager(OsFileSystem(), clock, config, log_dirs=(str(directory),))
    manager.start()
    manager.create(ORDERS)
    values = [[b"v" * BATCH_BYTES]] * 80
    manifest = stage(manager.files, clock, {ORDERS: [values]}, log_dir=str(directory))
    commit = manager.commits.plan(manifest)
    assert isinstance(commit, Commit)
    return manager, commit, -(-manifest.partitions[0].size_bytes // (4 << 20))


def append(manager: LogManager) -> None:
    manager.get(ORDERS).append_as_leader(batch([b"in between"]), leader_epoch=0)


def test_offsets_that_are_given_ahead_go_to_the_disk_little_by_little(tmp_path: Path) -> None:
    """Those whose acknowledgements wait for the disk come first. Behind the check nothing is left
    to be done, unless the log has moved meanwhile: then none were given."""
    checks = []
    for has_moved in (False, True):
        manager, commit, pieces = a_commit_of_much(tmp_path / f"{has_moved}")
        if has_moved:
            append(manager)
        rests = Rests(manager)
        commit.check()
        checks.append(rests.count)
        commit.stop()
        commit.settle()
        commit.apply()
        rests.count = 0
        commit.complete()
        assert commit.finish().status == "committed"
        assert rests.count == (pieces if has_moved else 0)
    assert checks[0] - checks[1] == 1 + pieces  # one more for each file


def test_offsets_that_were_given_in_vain_are_given_again_also_while_the_owner_stops(
    tmp_path: Path,
) -> None:
    """And it is brought to its end."""
    manager, commit, pieces = a_commit_of_much(tmp_path / "data")
    commit.check()
    append(manager)
    commit.stop()
    commit.settle()
    commit.apply()
    rests = Rests(manager)
    manager.commits.stop_checks()
    commit.complete()
    assert commit.finish().partitions == {ORDERS: (1, 81)}
    assert rests.count == pieces
    first = next(each for each in manager.get(ORDERS).segments if each.base_offset == 1)
    assert [each.base_offset for each in first.headers()] == list(range(1, 81))


def test_much_is_checked_by_whoever_commits_it_where_no_threads_are_left(
    manager: LogManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    manifest = staged(manager, MUCH_BYTES)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert manager.commits.run(manifest).status == "committed"
    assert manager.get(ORDERS).log_end_offset == manager.get(OTHERS).log_end_offset > 0
