"""Power is cut before every operation of a commit: all of it is there afterwards, or nothing.

Then the same manifest is committed again: there is exactly one copy of it.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from commit_scenario import (
    EMPTY,
    ORDERS,
    PAYMENTS,
    Moment,
    Owner,
    check_started,
    crash_everywhere,
    is_pending,
    moments_of_start,
)

from commit_harness import batch
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.layout import TopicPartition
from stratalog.testing import CrashMode

LARGE = 300  # bytes a value, so that a few batches are more than is appended


def appended() -> Owner:
    owner = Owner()
    owner.create(ORDERS)
    owner.produce(ORDERS)
    owner.observe()
    owner.commit(owner.stage({ORDERS: [[2, 1], [1]]}, manifest_id="load"))
    owner.produce(ORDERS)
    return owner


def appended_behind_a_roll() -> Owner:
    """What is appended does not fit the active segment any more."""
    owner = Owner()
    owner.create(ORDERS)
    for _ in range(18):
        owner.produce(ORDERS)
    owner.observe()
    owner.commit(owner.stage({ORDERS: [[4, 4]]}, manifest_id="load", size_bytes=40))
    owner.produce(ORDERS)
    return owner


def adopted_by_an_empty_log() -> Owner:
    owner = Owner()
    owner.create(EMPTY)
    owner.observe()
    owner.commit(owner.stage({EMPTY: [[1] * 5]}, manifest_id="load", size_bytes=LARGE))
    owner.produce(EMPTY)
    return owner


def adopted_behind_data() -> Owner:
    owner = Owner()
    owner.create(ORDERS)
    owner.produce(ORDERS)
    owner.produce(ORDERS)
    owner.observe()
    owner.commit(owner.stage({ORDERS: [[1] * 5, [1] * 4]}, manifest_id="load", size_bytes=LARGE))
    owner.produce(ORDERS)
    return owner


def merged() -> Owner:
    """Small files become one segment."""
    owner = Owner()
    owner.create(ORDERS)
    owner.produce(ORDERS)
    owner.observe()
    owner.commit(owner.stage({ORDERS: [[1]] * 5}, manifest_id="load", size_bytes=LARGE))
    return owner


def several_partitions() -> Owner:
    owner = Owner()
    owner.create(ORDERS, PAYMENTS, EMPTY)
    owner.produce(ORDERS)
    owner.produce(PAYMENTS)
    owner.manager.checkpoint_recovery_points()
    owner.observe()
    shape = {ORDERS: [[1] * 5], PAYMENTS: [[1], [1]], EMPTY: [[1] * 6]}
    owner.commit(owner.stage(shape, manifest_id="load", size_bytes=LARGE))
    owner.produce(PAYMENTS)
    return owner


def commits_in_a_row() -> Owner:
    """Versions of an application, with a stop and a start in between."""
    owner = Owner()
    owner.create(ORDERS, PAYMENTS)
    owner.observe()
    for version in range(2):
        app = AppVersion(name="query", version=version)
        shape = {ORDERS: [[1, 1]], PAYMENTS: [[1]]}
        owner.commit(owner.stage(shape, manifest_id=f"query:{version}", app=app))
    owner.stop()
    owner.start()
    shape = {ORDERS: [[1] * 4]}
    owner.commit(owner.stage(shape, manifest_id="load", size_bytes=LARGE))
    owner.stop()
    return owner


def gone_on_before_it_is_done() -> Owner:
    """Between ``apply`` and ``complete`` the logs go on: appends are acknowledged, checkpoints are
    written, all of it on top of what only the journal stands for."""
    owner = Owner()
    owner.create(ORDERS, PAYMENTS)
    owner.produce(ORDERS)
    manifest = owner.stage(
        {ORDERS: [[1] * 5], PAYMENTS: [[1]]}, manifest_id="load", size_bytes=LARGE
    )
    owner.leave_unsynced(manifest)
    owner.observe()
    commit = owner.begin(manifest)
    commit.check()
    commit.stop()
    commit.settle()
    commit.apply()
    owner.state = owner.after
    owner.returned.add("load")
    for key in (ORDERS, PAYMENTS):
        owner.produce(key)
    owner.manager.checkpoint_recovery_points()
    owner.manager.checkpoint_high_watermarks()
    owner.step = "commit"
    commit.complete()
    commit.finish()
    return owner


def many_partitions() -> Owner:
    """So many that the file system is synced instead of each file."""
    keys = [TopicPartition("many", number) for number in range(33)]
    owner = Owner()
    owner.create(*keys)
    for key in keys:
        owner.manager.get(key).append_as_leader(batch([b"not flushed yet"]))
        owner.state = owner.after = {**owner.state, key: (b"not flushed yet",)}
    shape: dict[TopicPartition, list[list[int]]] = {key: [[1]] for key in keys}
    shape[keys[5]] = [[1] * 4]
    manifest = owner.stage(shape, manifest_id="load", size_bytes=LARGE)
    owner.leave_unsynced(manifest)
    commit = owner.begin(manifest)
    commit.check()
    commit.stop()
    owner.observe()
    commit.settle()
    commit.apply()
    owner.state = owner.after
    owner.returned.add("load")
    commit.complete()
    commit.finish()
    return owner


SCENARIOS = (
    gone_on_before_it_is_done,
    appended,
    appended_behind_a_roll,
    adopted_by_an_empty_log,
    adopted_behind_data,
    merged,
    several_partitions,
    commits_in_a_row,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_commit_is_all_or_nothing_and_once_after_a_crash_at_any_operation(
    scenario: Callable[[], Owner],
) -> None:
    owner = scenario()
    owner.keep("the end")
    assert crash_everywhere(owner.moments, all_modes=False) > 100


def test_so_it_is_with_very_many_logs() -> None:
    owner = many_partitions()
    # Until the record is there nothing is promised, and what was not flushed may be gone.
    moments = [each for each in owner.moments if is_pending(each.files)]
    assert len(moments) > 50
    for index, moment in enumerate(moments[::6]):
        files = moment.files.after_crash(CrashMode.LOSE_UNSYNCED)
        if is_pending(files):
            check_started(replace(moment, before=moment.after, returned=frozenset(["load"])), files)
        else:
            assert index == 0


@pytest.mark.deep
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_so_it_is_in_every_way_in_which_a_disk_forgets(scenario: Callable[[], Owner]) -> None:
    owner = scenario()
    owner.keep("the end")
    assert crash_everywhere(owner.moments, all_modes=True) > 200


@pytest.mark.parametrize("scenario", [appended, several_partitions], ids=lambda each: each.__name__)
def test_a_crash_while_a_commit_is_rolled_forward_changes_nothing(
    scenario: Callable[[], Owner],
) -> None:
    count = 0
    for moment in pending_moments(scenario())[:: 1 if scenario is appended else 12]:
        for second in moments_of_start(moment, moment.files.clone()):
            count += 1
            files = second.files.after_crash(CrashMode.MIXED, count)
            check_started(second, files, is_started_again=False)
    assert count > 50


@pytest.mark.deep
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_nor_does_a_crash_in_the_start_after_that(scenario: Callable[[], Owner]) -> None:
    count = 0
    for moment in pending_moments(scenario())[::3]:
        for second in moments_of_start(moment, moment.files.clone())[::2]:
            files = second.files.after_crash(CrashMode.MIXED, count)
            for third in moments_of_start(second, files):
                count += 1
                for mode in (CrashMode.LOSE_UNSYNCED, CrashMode.MIXED):
                    check_started(third, third.files.after_crash(mode, count))
    assert count > 50


def pending_moments(owner: Owner) -> list[Moment]:
    """What a crash leaves while a commit is decided and not done."""
    found = []
    for index, moment in enumerate(owner.moments):
        files = moment.files.after_crash(CrashMode.MIXED, index)
        if is_pending(files):
            # It was decided: from here on it is as if it had been answered.
            decided = moment.returned | {moment.manifests[-1].manifest_id}
            before = moment.after if moment.name.startswith("commit") else moment.before
            found.append(replace(moment, files=files, before=before, returned=decided))
    return found
