"""Power is cut, or the disk fails, at every operation of a commit that replaces segments: after the
next start the log is the old one or the new one, whole."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from cleaning_reading import stored_batches
from crash_rounds import PARTITION, prepared
from outside_rounds import (
    KEY,
    Side,
    by_ranges,
    hold_staging,
    manifest_of,
    open_side,
    plan_outside,
)

from stratalog.errors import DiskError, StratalogError
from stratalog.storage.check import check
from stratalog.storage.cleaning.outside import LeftOut
from stratalog.storage.commits.committing import Commit
from stratalog.storage.commits.errors import CommitError
from stratalog.storage.commits.manifest import Manifest
from stratalog.storage.findings import Severity
from stratalog.testing import CrashMode, SimulatedFileSystem

Batches = list[tuple[int, bytes]]
CRASHES = (CrashMode.LOSE_UNSYNCED, CrashMode.KEEP_ALL, CrashMode.MIXED)


@dataclass(frozen=True)
class Moment:
    name: str
    files: SimulatedFileSystem
    is_committed: bool


@dataclass(frozen=True)
class Observed:
    manifest: Manifest
    old: Batches
    new: Batches
    now_ms: int
    moments: list[Moment]


def batches(side: Side) -> Batches:
    return list(stored_batches(side.manager.get(KEY)))


def staged() -> tuple[Side, Manifest]:
    """A log with several groups to be replaced, and all that is to replace them."""
    assert KEY == PARTITION
    world = prepared()
    side = open_side(world.files, world.config, world.clock.now_ms())
    round_ = plan_outside(side, world.first_dirty_offset)
    assert not isinstance(round_, LeftOut)
    hold_staging(side)
    parts = by_ranges(round_)
    assert sum(len(part.files) for part in parts) > 2, "several groups"
    return side, manifest_of(round_, parts)


@cache
def observed() -> Observed:
    side, manifest = staged()
    old = batches(side)
    found = Observed(manifest, old, [], side.manager.clock.now_ms(), [])
    commits = side.manager.commits
    commit = commits.plan(manifest)
    assert isinstance(commit, Commit)

    def keep(name: str) -> None:
        found.moments.append(Moment(name, side.files.clone(), commit.is_decided))

    side.files.observer = lambda operation: keep(f"{operation.kind} {operation.path}")
    for step in (commit.check, commit.stop, commit.settle, commit.apply, commit.complete):
        step()
    commit.finish()
    side.manager.get(KEY).run_deletes(2**62)
    keep("the end")
    side.files.observer = None
    found.new.extend(batches(side))
    assert found.new != old
    return found


def start(found: Observed, files: SimulatedFileSystem) -> Side:
    return open_side(files, prepared().config, found.now_ms)


def check_started(found: Observed, files: SimulatedFileSystem, *, is_committed: bool) -> None:
    side = start(found, files)
    present = batches(side)
    assert present in (found.old, found.new), "a mixture"
    assert present == found.new or not is_committed, "what was committed is gone"
    try:
        result = side.manager.commits.run(found.manifest)
    except CommitError:
        assert present == found.old, "what is committed can be asked for again"
    else:
        assert result.status == ("committed" if present == found.old else "already committed")
        assert batches(side) == found.new
    errors = [each for each in check(side.manager.get(KEY)) if each.severity is Severity.ERROR]
    assert not errors, [str(each) for each in errors]
    names = {name.rpartition(".")[2] for name in files.tree("/data/t-0")}
    assert not names & {"swap", "cleaned"}


def crashes(found: Observed) -> Iterator[tuple[Moment, CrashMode]]:
    for moment in found.moments:
        for mode in CRASHES:
            yield moment, mode


def test_a_crash_at_any_operation_leaves_all_of_the_log_old_or_all_of_it_new() -> None:
    found = observed()
    count = 0
    for moment, mode in crashes(found):
        try:
            files = moment.files.after_crash(mode, count)
            check_started(found, files, is_committed=moment.is_committed)
        except Exception as error:
            error.add_note(f"before {moment.name}, {mode}")
            raise
        count += 1
    assert count > 200


def test_a_second_crash_while_it_is_rolled_forward_changes_nothing() -> None:
    found = observed()
    pending = [each for each in found.moments if each.is_committed]
    for moment in pending[::7]:
        files = moment.files.after_crash(CrashMode.KEEP_ALL, 0)
        inner: list[SimulatedFileSystem] = []
        files.observer = lambda _operation: inner.append(files.clone())  # noqa: B023
        start(found, files)
        files.observer = None
        for number, left in enumerate(inner[::8]):
            for mode in (CrashMode.KEEP_ALL, CrashMode.LOSE_UNSYNCED):
                try:
                    check_started(found, left.after_crash(mode, number), is_committed=True)
                except Exception as error:
                    error.add_note(f"after {moment.name}; then operation {8 * number}, {mode}")
                    raise


def test_what_an_interrupted_cleaning_left_does_not_undo_a_commit() -> None:
    found = observed()
    for moment in (each for each in found.moments if each.is_committed):
        files = moment.files.after_crash(CrashMode.KEEP_ALL, 0)
        files.put("/data/t-0/00000000000000000000.log.cleaned", b"half of a segm")
        check_started(found, files, is_committed=True)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_an_operation_that_fails_leaves_the_log_old_or_the_next_start_makes_it_new(
    code: int,
) -> None:
    found = observed()
    for number in range(0, len(found.moments) - 1, 2):
        side, manifest = staged()
        side.files.fail(side.files.operations + number, code)
        is_committed = False
        try:
            side.manager.commits.run(manifest)
            is_committed = True
        except (DiskError, CommitError, StratalogError):
            log = side.manager.get(KEY)
            assert log.failure is not None or batches(side) == found.old
        side.files.heal()
        try:
            check_started(
                Observed(manifest, found.old, found.new, found.now_ms, []),
                side.files.after_crash(CrashMode.KEEP_ALL, 0),
                is_committed=is_committed,
            )
        except Exception as error:
            error.add_note(f"operation {number} fails")
            raise
