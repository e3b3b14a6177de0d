"""Every operation of a commit fails once: what the owner says then, and what is there afterwards.

* If the commit was not made, everything is as it was: appends go on, and it can be made again.
* If it was made, or may have been, and could not be put in place, the directory goes offline before
  anything can be appended in its place, and the next start brings it about.
* What was answered is there; what was refused is not.
"""

import errno

import pytest
from commit_scenario import EMPTY, ORDERS, PAYMENTS, Owner, check_logs, started, state_of

from commit_harness import LOG_DIR, batch
from stratalog.errors import StorageError
from stratalog.storage.commits.journal import CommitJournal
from stratalog.storage.commits.manifest import Manifest
from stratalog.storage.files import File
from stratalog.testing import CrashMode, ManualClock
from stratalog.testing.faults import Operation

LARGE = 300


def ready() -> tuple[Owner, Manifest]:
    owner = Owner()
    owner.create(ORDERS, PAYMENTS, EMPTY)
    owner.produce(ORDERS)
    owner.produce(PAYMENTS)
    shape = {ORDERS: [[1] * 5], PAYMENTS: [[1], [1]], EMPTY: [[1] * 3, [1] * 2]}
    manifest = owner.stage(shape, manifest_id="load", size_bytes=LARGE)
    owner.after = {key: (*held, *owner.coming[key]) for key, held in owner.state.items()}
    return owner, manifest


def operations_of_a_commit() -> int:
    owner, manifest = ready()
    before = owner.files.operations
    owner.manager.commits.run(manifest)
    return owner.files.operations - before


def commit_with_fault(
    number: int, error: int, **fault: int | bool
) -> tuple[Owner, Manifest, StorageError | None]:
    owner, manifest = ready()
    owner.files.fail(owner.files.operations + number, error, **fault)  # type: ignore[arg-type]
    try:
        owner.commit(manifest)
    except StorageError as failure:
        owner.files.heal()
        return owner, manifest, failure
    owner.files.heal()
    return owner, manifest, None


def check_failed(owner: Owner, manifest: Manifest) -> None:
    """The commit was not answered: whoever asked for it may ask again."""
    (directory,) = owner.manager.directories
    if not directory.is_online:
        for log in owner.manager:
            with pytest.raises(StorageError):
                log.append_as_leader(batch([b"in its place"]))
        return
    assert state_of(owner.manager) == owner.state, "everything is as it was"
    owner.produce(ORDERS)
    owner.after = {key: (*held, *owner.coming[key]) for key, held in owner.state.items()}
    assert owner.manager.commits.run(manifest).status == "committed"
    assert state_of(owner.manager) == owner.after
    owner.state = owner.after


def check_restarted(owner: Owner, seed: int, *, is_answered: bool) -> None:
    allowed = [owner.state] if is_answered else [owner.state, owner.after]
    for mode in (CrashMode.KEEP_ALL, CrashMode.LOSE_UNSYNCED, CrashMode.MIXED):
        files = owner.files.after_crash(mode, seed)
        manager = started(files, ManualClock(owner.clock.now_ms()))
        assert state_of(manager) in allowed
        check_logs(manager, files)
        manager.shutdown()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=("EIO", "ENOSPC"))
def test_a_commit_in_which_anything_fails_is_made_or_is_not(error: int) -> None:
    outcomes = set()
    for number in range(1, operations_of_a_commit() + 1):
        try:
            owner, manifest, failure = commit_with_fault(number, error)
            (directory,) = owner.manager.directories
            outcomes.add((failure is not None, directory.is_online))
            if failure is not None:
                check_failed(owner, manifest)
            else:
                assert state_of(owner.manager) == owner.state
            check_restarted(owner, number, is_answered=directory.is_online or failure is None)
        except Exception as problem:
            problem.add_note(f"operation {number} failed")
            raise
    assert {(False, True), (True, True), (True, False)} <= outcomes


@pytest.mark.parametrize("is_cut_back", [True, False])
def test_a_record_that_was_written_in_part_does_not_count_later(is_cut_back: bool) -> None:
    """Whatever of it reached the file: what is appended in its place stays there."""
    for written_bytes in (0, 1, 40, 1 << 20):
        owner, manifest = ready()
        owner.files.fail(_is_record, errno.EIO, written_bytes=written_bytes, cut_back=is_cut_back)
        with pytest.raises(StorageError):
            owner.commit(manifest)
        owner.files.heal()
        check_failed(owner, manifest)
        assert owner.manager.directories[0].is_online
        check_restarted(owner, written_bytes, is_answered=True)


def test_a_record_that_may_be_there_takes_the_directory_offline() -> None:
    for written_bytes in (0, 40, 1 << 20):
        owner, manifest = ready()
        owner.files.fail(_is_record, errno.EIO, written_bytes=written_bytes, cut_back=False)
        owner.files.fail(lambda each: each.kind == "truncate" and _is_journal(each), errno.EIO)
        with pytest.raises(StorageError):
            owner.commit(manifest)
        owner.files.heal()
        assert not owner.manager.directories[0].is_online
        check_failed(owner, manifest)
        check_restarted(owner, written_bytes, is_answered=False)


@pytest.mark.parametrize("is_synced", [False, True])
def test_who_is_interrupted_in_the_record_appends_nothing_in_its_place(
    is_synced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, which may come between any two steps of whoever commits on the main thread."""
    owner, manifest = ready()
    write = CommitJournal._write

    def interrupted(journal: CommitJournal, file: File, line: bytes) -> None:
        if is_synced:
            write(journal, file, line)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(CommitJournal, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            owner.commit(manifest)
    assert not owner.manager.directories[0].is_online
    check_failed(owner, manifest)
    check_restarted(owner, 1, is_answered=False)


def _is_journal(operation: Operation) -> bool:
    return operation.path == f"{LOG_DIR}/.stratalog-commits"


def _is_record(operation: Operation) -> bool:
    return operation.kind == "write" and _is_journal(operation)
