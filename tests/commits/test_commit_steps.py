"""Commits step by step: what may happen beside each step, and what becomes of what was staged."""

import errno
import operator
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from commit_harness import (
    CONFIG,
    LARGE,
    LOG_DIR,
    ORDERS,
    OTHERS,
    SMALL,
    START_MS,
    Owner,
    Values,
    batch,
    flat,
    new_disk,
    new_manager,
    new_owner,
    stage,
)
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import DiskError, LogClosedError, StorageError
from stratalog.storage.commits.errors import (
    AppendsPausedError,
    CommitBusyError,
    CommitRefusedError,
    StagedFileError,
)
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.files import OsFileSystem
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM
from stratalog.storage.layout import TopicPartition, staging_directory
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, Operation, SimulatedFileSystem


@pytest.fixture
def owner() -> Owner:
    return new_owner()


# --- at the same time -------------------------------------------------------------------------


def test_appends_wait_from_stop_to_apply_and_no_longer(owner: Owner) -> None:
    commit = owner.plan(owner.stage(SMALL))
    commit.check()
    owner.append(b"while it is checked")
    commit.stop()
    assert owner.log().is_paused
    for change in (
        lambda: owner.append(b"x"),
        lambda: owner.log().append_as_follower(batch([b"x"])),
        lambda: owner.log().roll(),
        lambda: owner.log().truncate_to(0),
        lambda: owner.log().truncate_fully_and_start_at(5),
        lambda: owner.log().delete_segments(list(owner.log().segments)),
    ):
        with pytest.raises(AppendsPausedError):
            change()
    assert owner.manager.check_retention(owner.log(), START_MS) is None
    assert not owner.manager.retention_failures
    owner.append(b"elsewhere", OTHERS)
    commit.settle()
    with pytest.raises(AppendsPausedError):
        owner.append(b"x")
    commit.apply()
    assert not owner.log().is_paused
    owner.append(b"behind it")
    with pytest.raises(AppendsPausedError):
        owner.manager.truncate_to(ORDERS, 0)
    commit.complete()
    commit.finish()
    assert owner.values() == [b"while it is checked", *flat(SMALL), b"behind it"]
    assert owner.manager.truncate_to(ORDERS, 1)


def test_appends_wait_no_longer_for_more_batches() -> None:
    """Offsets are given while files are checked, in the hope that nobody appends meanwhile."""
    waits, value = [], b"x" * 300
    for batches in ([[value] * 4], [[value]] * 4):
        disk = new_disk(ManualClock(START_MS))
        owner = Owner(disk)
        owner.create(ORDERS)
        commit = owner.plan(owner.stage([batches]))
        commit.check()
        before = disk.operations
        for step in (commit.stop, commit.settle, commit.apply):
            step()
        waits.append(disk.operations - before)
        commit.complete()
        commit.finish()
        assert owner.values() == [value] * 4
    assert waits[0] == waits[1]


class EndedCheck:
    """A check of two files, which ends, in one way or the other, when it may rest for the
    ``rest``-th time. What is staged is as it was ``before``, ``then`` and ``afterwards``."""

    def __init__(self, rest: int, *, is_let_go_of: bool) -> None:
        owner = self._owner = new_owner()
        manifest = owner.stage(LARGE)
        self._commit = owner.plan(manifest)
        self._staging = staging_directory(owner.log().directory, manifest.staging_id)
        self._names = [each.name for each in manifest.partitions[0].files]
        self._is_let_go_of = is_let_go_of
        self._rests_left = rest
        self.then: list[bytes] | None = None
        self.before = self._staged()
        owner.manager.commits.pause = self._pause
        with suppress(CommitRefusedError):
            self._commit.check()
        self.afterwards = self._staged()

    def _staged(self) -> list[bytes]:
        return [self._owner.files.contents(f"{self._staging}/{name}") for name in self._names]

    def _pause(self) -> bool:
        self._rests_left -= 1
        if self._rests_left == 0:
            if self._is_let_go_of:
                self._owner.manager.commits.gate.close()
            else:
                self._commit.abandon()
            self.then = self._staged()
        return False


@pytest.mark.parametrize("is_let_go_of", [True, False])
def test_nothing_staged_changes_once_a_commit_is_given_up_or_its_directory_let_go_of(
    is_let_go_of: bool,
) -> None:
    """By a thread that still checks: whoever comes next may have made segments of these files."""
    counts = []
    for rest in count(1):
        check = EndedCheck(rest, is_let_go_of=is_let_go_of)
        counts.append(sum(map(operator.ne, check.before, check.afterwards)))
        if check.then is None:
            break
        assert check.afterwards == check.then
    assert sorted({*counts}) == [0, 1, 2]


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
@pytest.mark.parametrize("steps", range(3))
def test_a_commit_that_is_given_up_before_it_is_made_leaves_everything_as_it_was(
    owner: Owner, values: Values, steps: int
) -> None:
    owner.append(b"before")
    manifest = owner.stage(values)
    commit = owner.plan(manifest)
    for step in (commit.check, commit.stop)[:steps]:
        step()
    commit.abandon()
    assert not owner.log().is_paused
    assert owner.append(b"in between") == 1
    assert owner.run(manifest).status == "committed"
    assert owner.values() == [b"before", b"in between", *flat(values)]


def test_two_commits_of_one_log_or_one_staging_are_not_made_at_the_same_time(owner: Owner) -> None:
    first, second = owner.stage(SMALL, "one"), owner.stage(SMALL, "two")
    commit = owner.plan(first)
    for manifest in (first, second):
        with pytest.raises(CommitBusyError, match="try again"):
            owner.manager.commits.plan(manifest)
    elsewhere = owner.stage(SMALL, "three", key=OTHERS)
    assert owner.run(elsewhere).status == "committed"
    for step in (commit.check, commit.stop, commit.settle, commit.apply, commit.complete):
        step()
    commit.finish()
    assert owner.run(second).status == "committed"
    assert owner.values() == flat(SMALL) * 2


def test_two_versions_of_an_application_are_not_committed_at_the_same_time(owner: Owner) -> None:
    """The higher one could be first, and the lower one would count as committed."""
    low = owner.stage(SMALL, "q:1", app=AppVersion(name="q", version=1))
    high = owner.stage(SMALL, "q:2", key=OTHERS, app=AppVersion(name="q", version=2))
    commit = owner.plan(low)
    with pytest.raises(CommitBusyError, match="version 1 of q"):
        owner.manager.commits.plan(high)
    commit.abandon()
    assert owner.run(low).status == owner.run(high).status == "committed"


def test_who_lets_go_of_the_directories_waits_for_what_is_being_written(owner: Owner) -> None:
    gate = owner.manager.commits.gate
    order: list[str] = []
    with gate.passed():
        closing = threading.Thread(target=lambda: (gate.close(), order.append("closed")))
        closing.start()
        while not gate.is_closed:
            pass
        order.append("written")
    closing.join()
    assert order == ["written", "closed"]
    with pytest.raises(CommitRefusedError), gate.passed():
        pass


def test_settings_that_change_while_files_are_checked_are_a_reason_to_try_again(
    owner: Owner,
) -> None:
    manifest = owner.stage(SMALL)
    commit = owner.plan(manifest)
    commit.check()
    owner.manager.configure("orders", TopicConfig(internal_segment_bytes=3000))
    with pytest.raises(CommitBusyError):
        commit.stop()
    commit.abandon()
    assert owner.run(manifest).status == "committed"


def test_who_is_interrupted_while_the_record_is_written_does_not_take_the_commit_back(
    owner: Owner,
) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    manifest = owner.stage(SMALL)
    commit = owner.plan(manifest)
    commit.check()
    commit.stop()

    def interrupt(operation: Operation) -> None:
        if operation.kind == "sync" and operation.path.endswith(".stratalog-commits"):
            raise KeyboardInterrupt

    owner.files.observer = interrupt
    with pytest.raises(KeyboardInterrupt):
        commit.settle()
    owner.files.observer = lambda _operation: None
    commit.abandon()
    assert commit.is_decided
    assert owner.log().failure is not None, "nobody appends before it is known what was made"


def test_a_topic_that_is_made_anew_while_files_are_checked_takes_none_of_them(
    owner: Owner,
) -> None:
    manifest = owner.stage(SMALL)
    commit = owner.plan(manifest)
    commit.check()
    owner.manager.delete(ORDERS)
    owner.create(ORDERS)
    with pytest.raises(CommitRefusedError, match="was deleted while its files were checked"):
        commit.stop()
    commit.abandon()
    assert owner.log().log_end_offset == 0
    assert not owner.log().is_paused


@pytest.mark.parametrize("at", ["check", "stop", "settle", "apply"])
@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_a_topic_that_is_deleted_meanwhile_ends_the_commit_one_way_or_the_other(
    owner: Owner, at: str, values: Values
) -> None:
    manifest = stage(owner.files, owner.clock, {ORDERS: values, OTHERS: SMALL})
    commit = owner.plan(manifest)
    try:
        for step in (commit.check, commit.stop, commit.settle, commit.apply, commit.complete):
            step()
            if step.__name__ == at:
                owner.manager.delete(ORDERS)
        commit.finish()
    except StorageError:
        assert not commit.is_decided
        commit.abandon()
        assert owner.values(OTHERS) == []
    else:
        assert owner.values(OTHERS) == flat(SMALL)
    owner.append(b"on", OTHERS)
    owner.manager.shutdown()
    owner.start()
    assert ORDERS not in owner.manager
    assert owner.values(OTHERS)[-1] == b"on"


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
@pytest.mark.parametrize("steps", range(1, 6))
def test_a_directory_that_is_closed_meanwhile_is_rolled_forward_if_it_was_committed(
    owner: Owner, values: Values, steps: int
) -> None:
    owner.append(b"before")
    manifest = owner.stage(values)
    commit = owner.plan(manifest)
    taken = (commit.check, commit.stop, commit.settle, commit.apply, commit.complete)
    for step in taken[:steps]:
        step()
    owner.manager.shutdown()
    if steps < 5:
        with pytest.raises(CommitRefusedError, match="closed"):
            commit.check() if steps < 1 else commit.complete()
    owner.start()
    is_made = steps >= 3
    assert owner.values() == [b"before", *(flat(values) if is_made else ())]
    again = owner.run(manifest)
    assert (again.status == "already committed") == is_made
    assert owner.values() == [b"before", *flat(values)]


def test_a_check_is_given_up_when_the_owner_wants_to_stop(owner: Owner) -> None:
    commit = owner.plan(owner.stage(SMALL))
    owner.manager.commits.stop_checks()
    with pytest.raises(CommitRefusedError, match="closed"):
        commit.check()
    commit.abandon()
    assert owner.append(b"on") == 0


def test_many_partitions_are_checked_at_the_same_time_and_one_that_fails_fails_all(
    tmp_path: Path,
) -> None:
    files, clock = OsFileSystem(), ManualClock(START_MS)
    keys = [TopicPartition("orders", number) for number in range(12)]
    broker = BrokerConfig(log_dirs=(str(tmp_path),), log_dir_reserve_bytes=0)
    manager = LogManager(broker, files=files, clock=clock, topic_config=lambda _topic: CONFIG)
    manager.start()
    for key in keys:
        manager.create(key)
    staged = {key: [[[b"%d" % key.partition]]] for key in keys}
    manifest = stage(files, clock, staged, log_dir=str(tmp_path))
    assert manager.commits.run(manifest).partitions == dict.fromkeys(keys, (0, 1))
    manifest = stage(files, clock, staged, log_dir=str(tmp_path), manifest_id="broken")
    broken = manifest.partitions[7]
    path = tmp_path / "orders-7/.stratalog/staging" / manifest.staging_id / broken.files[0].name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StagedFileError, match="orders-7"):
        manager.commits.run(manifest)
    assert all(manager.get(key).log_end_offset == 1 for key in keys)
    manager.shutdown()


# --- staging ----------------------------------------------------------------------------------


def test_staging_is_swept_when_its_lease_is_over_but_not_what_is_being_committed(
    owner: Owner,
) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    manifest, other = owner.stage(SMALL), owner.stage(SMALL, "other", key=OTHERS)
    commit = owner.plan(manifest)
    owner.clock.advance(1_000_000)
    owner.manager.run_due()
    left = [path for path in owner.files.tree(LOG_DIR) if "/staging/" in path]
    assert left
    assert all(manifest.staging_id in path for path in left)
    with pytest.raises(StagedFileError):
        owner.run(other)
    for step in (commit.check, commit.stop, commit.settle, commit.apply, commit.complete):
        step()
    commit.finish()
    assert not [path for path in owner.files.tree(LOG_DIR) if "staging" in path]


def test_what_was_staged_again_for_a_commit_that_is_made_goes_but_not_what_that_one_needs(
    owner: Owner,
) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    app = AppVersion(name="q", version=1)
    first, second = owner.stage(SMALL, "one", app=app), owner.stage(SMALL, "two", app=app)
    commit = owner.plan(first)
    commit.check()
    commit.stop()
    commit.settle()
    for manifest in (first, second):
        assert owner.run(manifest).status == "already committed"
    left = [path for path in owner.files.tree(LOG_DIR) if "staging" in path]
    assert left
    assert all(first.staging_id in path for path in left)
    commit.apply()
    commit.complete()
    commit.finish()
    assert owner.values() == flat(SMALL)
    assert not [path for path in owner.files.tree(LOG_DIR) if "staging" in path]


def test_a_commit_whose_end_could_not_be_noted_is_noted_later(owner: Owner) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    commit = owner.plan(owner.stage(SMALL))
    for step in (commit.check, commit.stop, commit.settle, commit.apply):
        step()
    fault = owner.files.fail(lambda each: each.path.endswith("commits"), 28)
    commit.complete()
    assert fault.times == 0
    assert commit.finish().status == "committed"
    (journal,) = owner.manager.commits._journals.values()
    assert journal.pending
    assert owner.manager.commits.is_under_way(ORDERS)
    owner.clock.advance(31_000)
    owner.manager.run_due()
    assert not journal.pending
    assert not owner.manager.commits.is_under_way(ORDERS)
    assert owner.run(owner.stage(SMALL, "next")).status == "committed"


@pytest.mark.parametrize("kind", ["write", "sync"])
@pytest.mark.parametrize("is_rolled_forward", [False, True])
def test_a_disk_that_fails_where_the_end_is_noted_later_is_not_believed(
    owner: Owner, kind: str, is_rolled_forward: bool
) -> None:
    def fails(kind: str, error: int) -> None:
        assert isinstance(owner.files, SimulatedFileSystem)
        owner.files.fail(lambda each: each.kind == kind and each.path.endswith("commits"), error)

    commit = owner.plan(owner.stage(SMALL))
    for step in (commit.check, commit.stop, commit.settle, commit.apply):
        step()
    if is_rolled_forward:
        owner.files = owner.files.after_crash(CrashMode.KEEP_ALL)
        fails("write", errno.ENOSPC)
        owner.start()
    else:
        fails("write", errno.ENOSPC)
        commit.complete()
        commit.finish()
    fails(kind, errno.EIO)
    owner.clock.advance(31_000)
    owner.manager.run_due()

    assert not owner.manager.directories[0].is_online
    with pytest.raises(LogClosedError, match="Input/output error"):
        owner.append(b"on")
    with pytest.raises(CommitRefusedError, match="Input/output error"):
        owner.run(owner.stage(SMALL, "next", key=OTHERS))

    owner.files = owner.files.after_crash(CrashMode.LOSE_UNSYNCED)
    owner.start()
    assert owner.values() == flat(SMALL)
    assert owner.run(owner.stage(SMALL, "next")).status == "committed"


def test_a_manager_that_never_saw_a_commit_leaves_nothing_of_ours_behind() -> None:
    clock = ManualClock(START_MS)
    files = new_disk(clock)
    manager: LogManager = new_manager(files, clock, CONFIG)
    manager.start()
    manager.shutdown()
    assert not [path for path in files.tree(LOG_DIR) if "stratalog" in path]


# --- disks that fail --------------------------------------------------------------------------


def check_failed(owner: Owner, manifest: Manifest, keys: Sequence[TopicPartition]) -> None:
    """It was not made, and nobody believes the disk again before the next start."""
    with pytest.raises(DiskError, match="Input/output error"):
        owner.run(manifest)
    assert owner.manager.commits.status(manifest.manifest_id) is None
    assert all(owner.log(key).failure is not None for key in keys)
    assert not owner.manager.directories[0].is_online
    with pytest.raises(CommitRefusedError, match="offline"):
        owner.run(manifest)


@pytest.mark.parametrize("kind", ["sync", "sync_directory"])
@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_a_sync_that_fails_before_the_commit_is_made_fails_its_logs(
    owner: Owner, values: Values, kind: str
) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    manifest = stage(owner.files, owner.clock, {ORDERS: values, OTHERS: values})
    staged = f"/.stratalog/staging/{manifest.staging_id}"
    fault = owner.files.fail(lambda each: each.kind == kind and staged in each.path, errno.EIO)
    check_failed(owner, manifest, (ORDERS, OTHERS))
    assert fault.times == 0


def test_a_sync_of_the_file_system_that_fails_before_the_commit_is_made_fails_its_logs() -> None:
    owner = Owner()
    assert isinstance(owner.files, SimulatedFileSystem)
    keys = [TopicPartition("orders", number) for number in range(SYNC_FILE_SYSTEM_FROM)]
    owner.create(*keys)
    manifest = stage(owner.files, owner.clock, dict.fromkeys(keys, SMALL))
    fault = owner.files.fail(lambda each: each.kind == "sync_file_system", errno.EIO)
    check_failed(owner, manifest, keys)
    assert fault.times == 0
