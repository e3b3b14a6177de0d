"""What is lost while a commit is made: staged files behind their check, and bytes of which the
system has told somebody else that it could not write them."""

import errno
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commit_harness import (
    LARGE,
    LOG_DIR,
    ORDERS,
    OTHERS,
    SMALL,
    Owner,
    Values,
    flat,
    new_disk,
    new_owner,
    stage,
)
from stratalog.errors import DiskError
from stratalog.storage.commits import one_commit
from stratalog.storage.commits.committing import Commit
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.manifest import Manifest
from stratalog.storage.files import File, FileSystem, OsFileSystem
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM, sync_all
from stratalog.storage.layout import TopicPartition, staging_directory
from stratalog.storage.sync_failures import SyncFailures
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

if TYPE_CHECKING:
    from stratalog.storage.commits.work import PartitionWork

MODES = pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])


# --- staged files -----------------------------------------------------------------------------


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def put_anew(path: Path) -> None:
    """With the offsets that it was staged with."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(bytes(8) + content[8:])


@pytest.mark.parametrize("has_grown", [False, True])
@pytest.mark.parametrize("change", [remove, cut, put_anew])
@MODES
def test_what_is_no_more_what_was_checked_is_refused_and_the_log_goes_on(
    tmp_path: Path, values: Values, change: Callable[[Path], None], has_grown: bool
) -> None:
    owner = Owner(OsFileSystem(), str(tmp_path))
    owner.create(ORDERS)
    manifest = owner.stage(values)
    commit = owner.plan(manifest)
    commit.check()
    kept = [owner.append(b"meanwhile") for _ in range(has_grown)]
    commit.stop()
    # What is appended is one file by then, which was made of all that were staged.
    staging = Path(staging_directory(owner.log().directory, manifest.staging_id))
    change(max(staging.glob("*.log")))
    with pytest.raises(StagedFileError, match="it was checked"):
        commit.settle()
    commit.abandon()
    assert owner.values() == [b"meanwhile"] * len(kept)
    assert owner.append(b"on") == len(kept)
    assert owner.manager.commits.status(manifest.manifest_id) is None


class Meanwhile(OsFileSystem):
    """Something happens once, when a file of that name is opened."""

    def __init__(self) -> None:
        self.name = ""
        self.happens: Callable[[], object] = lambda: None

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if self.name and path.endswith(self.name):
            self.name = ""
            self.happens()
        return super().open(path, create=create, writable=writable)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("has_grown", [False, True])
@pytest.mark.parametrize("change", [remove, cut, put_anew, flip])
def test_a_file_that_is_changed_while_the_next_is_checked_is_refused(
    tmp_path: Path, change: Callable[[Path], None], has_grown: bool
) -> None:
    files = Meanwhile()
    owner = Owner(files, str(tmp_path))
    owner.create(ORDERS)
    manifest = owner.stage(LARGE)
    commit = owner.plan(manifest)
    kept = [owner.append(b"before") for _ in range(has_grown)]
    first, second = (each.name for each in manifest.partitions[0].files[:2])
    staging = Path(staging_directory(owner.log().directory, manifest.staging_id))
    files.name, files.happens = f"{manifest.staging_id}/{second}", lambda: change(staging / first)
    with pytest.raises(StagedFileError, match="it was checked"):
        commit.run()
    assert owner.values() == [b"before"] * len(kept)
    assert owner.append(b"on") == len(kept)


def test_what_lies_beside_a_staged_file_is_none_of_a_load(tmp_path: Path) -> None:
    owner = Owner(OsFileSystem(), str(tmp_path))
    owner.create(ORDERS)
    manifest = owner.stage(LARGE)
    staging = Path(staging_directory(owner.log().directory, manifest.staging_id))
    for path in list(staging.glob("*.log")):
        path.with_suffix(".txnindex").write_bytes(b"who knows what")
    owner.run(manifest)
    assert owner.values() == flat(LARGE)
    assert not list(Path(owner.log().directory).glob("*.txnindex"))


class Unanswering(OsFileSystem):
    """Says for once that it does not know whether ``path`` is there."""

    path = ""

    def exists(self, path: str) -> bool:
        if path == self.path:
            self.path = ""
            raise DiskError("stat", path, errno.EIO, "Input/output error")
        return super().exists(path)


def test_a_staged_file_that_the_disk_does_not_answer_for_is_not_taken_for_placed(
    tmp_path: Path,
) -> None:
    files = Unanswering()
    owner = Owner(files, str(tmp_path))
    owner.create(ORDERS)
    manifest = owner.stage(LARGE)
    commit = owner.plan(manifest)
    commit.check()
    commit.stop()
    staging = staging_directory(owner.log().directory, manifest.staging_id)
    files.path = f"{staging}/{manifest.partitions[0].files[0].name}".replace(".log", ".index")
    with pytest.raises(DiskError):
        commit.settle()
    commit.abandon()
    assert not owner.manager.directories[0].is_online
    owner.manager.shutdown()
    owner.start()
    assert owner.values() == flat(LARGE)


def test_a_disk_that_does_not_answer_is_not_one_without_the_file(tmp_path: Path) -> None:
    files, loop = OsFileSystem(), tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "file").touch()
    with pytest.raises(DiskError):
        files.exists(str(loop))
    for path in ("nothing", "nothing/below", "file/below", "a\0b"):
        assert not files.exists(f"{tmp_path}/{path}")
    assert files.exists(f"{tmp_path}/file")


# --- syncs of others --------------------------------------------------------------------------


def other_sync(owner: Owner, act: Callable[[], None], kind: str) -> None:
    """A sync of somebody else's fails, who is told so, and the disk is well again."""
    assert isinstance(owner.files, SimulatedFileSystem)
    owner.files.fail(lambda each: each.kind == kind and "staging" not in each.path, errno.EIO)
    with pytest.raises(DiskError):
        act()
    owner.files.heal()


def after_power_loss(owner: Owner) -> Owner:
    assert isinstance(owner.files, SimulatedFileSystem)
    return Owner(owner.files.after_crash(CrashMode.LOSE_UNSYNCED))


@MODES
def test_a_commit_is_not_made_behind_records_that_another_sync_has_lost(values: Values) -> None:
    owner = new_owner()
    owner.append(b"first")
    owner.log().flush()
    commit = owner.plan(owner.stage(values))
    commit.check()
    owner.append(b"second")
    flush = owner.log().plan_flush()
    assert flush is not None
    commit.stop()
    other_sync(owner, flush.run, "sync")
    with pytest.raises(DiskError):
        commit.settle()
    commit.abandon()
    assert not owner.manager.directories[0].is_online
    again = after_power_loss(owner)
    assert again.values() == [b"first"]
    assert again.manager.commits.status("load") is None


def test_what_another_sync_has_lost_of_a_commit_is_put_there_again() -> None:
    owner = new_owner()
    owner.append(b"first")
    owner.log().flush()
    commit = owner.plan(owner.stage(SMALL))
    for step in (commit.check, commit.stop, commit.settle, commit.apply):
        step()
    flush = owner.log().plan_flush()
    assert flush is not None
    other_sync(owner, flush.run, "sync")
    with pytest.raises(DiskError):
        commit.complete()
    commit.abandon()
    again = after_power_loss(owner)
    assert again.values() == [b"first", *flat(SMALL)]


def test_what_another_sync_of_all_files_has_lost_of_a_commit_is_put_there_again() -> None:
    owner = Owner()
    keys = [TopicPartition("many", number) for number in range(SYNC_FILE_SYSTEM_FROM)]
    owner.create(*keys)
    commit = owner.plan(stage(owner.files, owner.clock, dict.fromkeys(keys, LARGE)))
    commit.check()
    for key in keys:
        owner.append(b"meanwhile", key)  # offsets are given behind the record
    for step in (commit.stop, commit.settle, commit.apply):
        step()
    syncs = owner.manager.directories[0].state.syncs
    other_sync(owner, lambda: sync_all(owner.files, LOG_DIR, syncs), "sync_file_system")
    with pytest.raises(DiskError):
        commit.complete()
    commit.abandon()
    again = after_power_loss(owner)
    for key in keys:
        assert again.values(key) == [b"meanwhile", *flat(LARGE)]


def test_who_asks_for_failed_syncs_waits_for_those_that_have_begun_and_no_others() -> None:
    syncs = SyncFailures()
    begun, told, asked = threading.Event(), threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        assert told.wait(60)
        raise DiskError("fsync", "a", errno.EIO, "lost")

    def sync() -> None:
        with pytest.raises(DiskError), syncs.noted():
            fail()

    other = threading.Thread(target=sync)
    other.start()
    assert begun.wait(60)

    def ask() -> None:
        with pytest.raises(DiskError, match="lost"):
            syncs.refuse_any()
        asked.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert not asked.is_set()
    told.set()
    asking.join(60)
    other.join(60)
    assert asked.is_set()


@pytest.mark.parametrize(
    ("operation", "number", "is_failed"),
    [
        ("fsync", errno.EIO, True),
        ("syncfs", errno.ENOSPC, True),
        ("fsync", errno.ENOENT, False),  # deleted
        ("fsync", errno.EBADF, False),  # closed
        ("open", errno.EIO, False),
    ],
)
def test_only_a_sync_that_may_have_dropped_bytes_counts(
    operation: str, number: int, is_failed: bool
) -> None:
    syncs = SyncFailures()
    with pytest.raises(DiskError), syncs.noted():
        raise DiskError(operation, "a", number, "no")
    if is_failed:
        with pytest.raises(DiskError):
            syncs.refuse_any()
    else:
        syncs.refuse_any()


# --- several threads --------------------------------------------------------------------------


def wrong(manifest: Manifest, key: TopicPartition) -> Manifest:
    """One whose files of ``key`` are not what it says."""
    parts = [
        part
        if part.topic_partition != key
        else replace(part, files=(replace(part.files[0], digest="00000000"), *part.files[1:]))
        for part in manifest.partitions
    ]
    return replace(manifest, partitions=tuple(parts))


def test_a_sync_that_fails_in_one_thread_counts_also_where_another_was_refused_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(one_commit, "MUCH_BYTES", 0)
    clock = ManualClock(1_700_000_000_000)
    disk: FileSystem = new_disk(clock)
    owner = Owner(disk)
    owner.create(ORDERS, OTHERS)
    owner.manager.commits.work_threads = 2
    begun, refused = threading.Barrier(2, timeout=60), threading.Event()
    commit = owner.plan(wrong(stage(disk, clock, {ORDERS: LARGE, OTHERS: LARGE}), ORDERS))
    assert isinstance(commit, Commit)
    assert isinstance(disk, SimulatedFileSystem)
    disk.fail(lambda each: each.kind == "sync" and "others-0" in each.path, errno.EIO)
    check_one = commit._check_one

    def in_order(work: "PartitionWork") -> None:
        begun.wait()
        try:
            if work.key == OTHERS:
                assert refused.wait(60)
            check_one(work)
        finally:
            refused.set()

    monkeypatch.setattr(commit, "_check_one", in_order)
    with pytest.raises(DiskError):
        commit.check()
    commit.abandon()
    assert not owner.manager.directories[0].is_online
