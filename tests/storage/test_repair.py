"""Repair gives up what a person named, keeps a copy of it, and leaves a log that opens clean."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import batch, disk_of, new_log, produced

from stratalog.config import TopicConfig
from stratalog.errors import LogDirectoryError, OffsetOutOfRangeError
from stratalog.records import read_headers
from stratalog.storage.check import check
from stratalog.storage.checkpoint import read_offsets, write_offsets
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
)
from stratalog.storage.log import Log
from stratalog.storage.repair import CutBytes, Reindex, RemoveHint, RepairRequest, SetAsideSegment
from stratalog.storage.repairing import Repair
from stratalog.testing import CrashMode, ManualClock, PowerLoss, SimulatedFileSystem

DIRECTORY = "/logs/t-0"
BATCHES = 14
CONFIG = TopicConfig(index_interval_bytes=80, segment_index_bytes=1200)


def damaged_disk(*damaged: int, clean: bool = True) -> SimulatedFileSystem:
    """A log of 14 batches of two records, five a segment; some of them have a wrong bit."""
    log = new_log(internal_segment_bytes=480, index_interval_bytes=80)
    for number in range(BATCHES):
        log.append_as_leader(produced(1, 2 * number, 2), leader_epoch=number // 5)
    log.flush()
    if clean:
        log.close()
    files = disk_of(log)
    for number in damaged:
        flip(files, number)
    return files


def log_files(files: SimulatedFileSystem) -> list[str]:
    return sorted(name for name in files.tree(DIRECTORY) if name.endswith(".log"))


def places(files: SimulatedFileSystem) -> list[tuple[str, int, int, bytes]]:
    """(file, position, base offset, bytes) of every batch of the log, as it was written."""
    found = []
    for name in log_files(files):
        data = files.contents(f"{DIRECTORY}/{name}")
        for header in read_headers(data, check_crc=False):
            end = header.position + header.size_bytes
            found.append((name, header.position, header.base_offset, data[header.position : end]))
    return found


def flip(files: SimulatedFileSystem, number: int) -> None:
    name, position, _, data = places(files)[number]
    file = files.open(f"{DIRECTORY}/{name}")
    file.write_at(position + 70, [bytes([data[70] ^ 1])])
    file.sync()
    file.close()


def repair(files: Any, **decision: Any) -> Repair:
    repairing = Repair(files, DIRECTORY, clock=ManualClock(1), config=CONFIG)
    repairing.run(repairing.plan(RepairRequest(**decision)))
    return repairing


def offsets(files: SimulatedFileSystem) -> list[int]:
    return [base_offset for _, _, base_offset, _ in places(files)]


def asides(files: SimulatedFileSystem) -> dict[str, bytes]:
    if not files.exists(f"{DIRECTORY}/.stratalog/cut"):
        return {}
    return files.tree(f"{DIRECTORY}/.stratalog/cut")


# --- plans -------------------------------------------------------------------------------------


def test_a_sound_log_needs_nothing() -> None:
    files = damaged_disk()

    plan = Repair(files, DIRECTORY).plan(RepairRequest())

    assert plan.actions == []
    assert plan.decisions == []


def test_damage_between_valid_batches_is_for_a_person_to_decide() -> None:
    plan = Repair(damaged_disk(3), DIRECTORY).plan(RepairRequest())

    (decision,) = plan.decisions
    assert "--drop-batch 6 gives up offsets [6, 8)" in decision
    assert "--truncate-at 6 gives up all 22 offsets" in decision
    assert not any(isinstance(action, CutBytes) for action in plan.actions)


def test_what_was_flushed_is_never_cut_without_a_decision() -> None:
    files = damaged_disk(BATCHES - 1)
    path = f"/logs/{RECOVERY_POINT_CHECKPOINT}"

    write_offsets(files, path, {TopicPartition("t", 0): 2 * BATCHES})
    assert len(Repair(files, DIRECTORY).plan(RepairRequest()).decisions) == 1

    write_offsets(files, path, {TopicPartition("t", 0): 2 * BATCHES - 2})
    plan = Repair(files, DIRECTORY).plan(RepairRequest())
    assert plan.decisions == []
    assert any(isinstance(action, CutBytes) and action.is_tail for action in plan.actions)


def test_truncation_sets_later_segments_aside_from_the_last_to_the_first() -> None:
    plan = Repair(damaged_disk(), DIRECTORY).plan(RepairRequest(truncate_at=3))

    aside = [a.base_offset for a in plan.actions if isinstance(a, SetAsideSegment)]
    cuts = [action for action in plan.actions if isinstance(action, CutBytes)]
    assert aside == sorted(aside, reverse=True)
    assert len(aside) == 2
    assert [(cut.base_offset, cut.start) for cut in cuts] == [(0, 83)] or len(cuts) == 1


def test_snapshots_of_what_changes_go() -> None:
    files = damaged_disk()
    repairing = Repair(files, DIRECTORY)

    plan = repairing.plan(RepairRequest(truncate_at=12))

    gone = {action.path for action in plan.actions if isinstance(action, RemoveHint)}
    last = repairing.replica.snapshots[-1]
    assert f"{DIRECTORY}/{last:020d}.snapshot" in gone
    assert f"{DIRECTORY}/{repairing.replica.snapshots[0]:020d}.snapshot" not in gone


def test_two_cuts_of_one_file_leave_what_lies_between() -> None:
    files = damaged_disk(BATCHES - 3)
    name = log_files(files)[-1]
    path = f"{DIRECTORY}/{name}"
    whole = places(files)
    file = files.open(path)
    file.write_at(file.size_bytes(), [b"torn" * 10])
    file.close()

    repair(files, drop_batch=2 * (BATCHES - 3))

    assert [place[3] for place in places(files)] == [
        place[3] for number, place in enumerate(whole) if number != BATCHES - 3
    ]
    assert sorted(asides(files).values()) == sorted([b"torn" * 10, whole[BATCHES - 3][3]])
    assert check(DIRECTORY, files) == []


def test_a_plan_says_why_with_numbers() -> None:
    plan = Repair(damaged_disk(3), DIRECTORY).plan(RepairRequest(drop_batch=6))

    cut = next(action for action in plan.actions if isinstance(action, CutBytes))
    assert "offsets [6, 8) were given up" in str(cut)
    assert f"bytes [{cut.start}, {cut.end})" in str(cut)


@pytest.mark.parametrize("decision", [{"truncate_at": 28}, {"drop_batch": 28}, {"drop_batch": 99}])
def test_an_offset_outside_the_log_is_refused(decision: dict[str, int]) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        Repair(damaged_disk(), DIRECTORY).plan(RepairRequest(**decision))


# --- repairs -----------------------------------------------------------------------------------


@given(st.sets(st.integers(0, BATCHES - 1), min_size=1, max_size=3), st.booleans())
def test_dropping_what_is_damaged_leaves_everything_else(damaged: set[int], clean: bool) -> None:
    files = damaged_disk(*damaged, clean=clean)
    original = damaged_disk(clean=clean)
    whole = {base: data for _, _, base, data in places(files) if base // 2 in damaged}

    for _ in damaged:
        if not Repair(files, DIRECTORY).plan(RepairRequest()).decisions:
            break
        first = min(f.offset for f in check(DIRECTORY, files) if f.kind in ("batch", "tail"))
        repair(files, drop_batch=first)
    repair(files)

    kept = [place[3] for place in places(original) if place[2] // 2 not in damaged]
    assert check(DIRECTORY, files) == []
    assert [place[3] for place in places(files)] == kept
    saved = b"".join(asides(files).values())
    assert all(data in saved for data in whole.values())


@given(st.integers(0, 2 * BATCHES - 1), st.sets(st.integers(0, BATCHES - 1), max_size=2))
def test_truncating_leaves_what_lies_before(offset: int, damaged: set[int]) -> None:
    files = damaged_disk(*damaged)
    before = places(files)
    if offset == 2 * BATCHES - 1 and BATCHES - 1 in damaged:
        offset -= 1  # nothing tells that the damaged bytes at the end held two records
    damaged_before = {number for number in damaged if 2 * number < offset - offset % 2}

    repair(files, truncate_at=offset)

    assert [place[3] for place in places(files)] == [
        place[3] for place in before if place[2] + 1 < offset
    ]
    found = [finding for finding in check(DIRECTORY, files) if finding.kind == "batch"]
    if not damaged_before:
        assert check(DIRECTORY, files) == []
    assert len(found) <= len(damaged_before)
    saved = b"".join(asides(files).values())
    assert all(place[3] in saved for place in before if place[2] + 1 >= offset)


def test_a_valid_batch_can_be_dropped_too() -> None:
    files = damaged_disk()

    repair(files, drop_batch=7)

    assert 6 not in offsets(files)
    assert len(offsets(files)) == BATCHES - 1
    assert check(DIRECTORY, files) == []


def test_a_repaired_log_opens_clean_and_takes_appends() -> None:
    files = damaged_disk(6)

    repair(files, drop_batch=12)

    log = reopen(files)
    assert not log.is_damaged
    assert log.log_end_offset == 2 * BATCHES
    log.append_as_leader(batch(), leader_epoch=9)
    assert check(log) == []


def reopen(files: SimulatedFileSystem) -> Log:
    from log_harness import new_context

    from stratalog.storage.recovery import open_log

    return open_log(DIRECTORY, CONFIG, new_context(files), clean=False, recovery_point=0)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_wrong_hints_are_built_again(suffix: str) -> None:
    files = damaged_disk()
    for name in files.tree(DIRECTORY):
        if name.endswith(suffix):
            file = files.open(f"{DIRECTORY}/{name}")
            file.write_at(0, [b"\x07garbage"])
            file.close()
    assert check(DIRECTORY, files) != []
    data = places(files)

    repair(files)

    assert check(DIRECTORY, files) == []
    assert places(files) == data
    assert asides(files) == {}


def test_reindexing_builds_what_appending_built() -> None:
    files = damaged_disk()
    before = {n: d for n, d in files.tree(DIRECTORY).items() if n.endswith("index")}

    repairing = Repair(files, DIRECTORY, config=CONFIG)
    plan = repairing.plan(RepairRequest(reindex=True))
    assert [type(action) for action in plan.actions] == [Reindex] * 3
    repairing.run(plan)

    after = {n: d for n, d in files.tree(DIRECTORY).items() if n.endswith("index")}
    assert after == before


def test_epochs_that_lie_are_built_again() -> None:
    files = damaged_disk()
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    good = files.contents(path)
    file = files.open(path)
    file.truncate(0)
    file.write_at(0, [b"0\n1\n0 0\n"])
    file.close()
    repairing = Repair(files, DIRECTORY, config=CONFIG)
    plan = repairing.plan(RepairRequest(reindex=True))
    assert RemoveHint in [type(action) for action in plan.actions]

    repairing.run(plan)

    assert files.contents(path) == good


def test_promises_of_offsets_that_are_gone_are_taken_back_first() -> None:
    files = damaged_disk()
    names = (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT)
    other = TopicPartition("other", 1)
    for name in names:
        write_offsets(files, f"/logs/{name}", {TopicPartition("t", 0): 28, other: 5})

    repair(files, truncate_at=11)

    for name in names:
        offsets_now = read_offsets(files, f"/logs/{name}")
        assert offsets_now == {TopicPartition("t", 0): 10, other: 5}
    assert check("/logs", files) == []


def test_a_log_start_beyond_the_end_is_never_changed() -> None:
    files = damaged_disk()
    write_offsets(files, f"/logs/{LOG_START_CHECKPOINT}", {TopicPartition("t", 0): 99})

    plan = Repair(files, DIRECTORY).plan(RepairRequest())

    assert plan.actions == []
    assert "99" in plan.decisions[0]


# --- crashes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "damaged"),
    [
        ({"drop_batch": 6}, [3]),
        ({"drop_batch": 26}, [BATCHES - 1]),
        ({"truncate_at": 6}, [3]),
        ({"truncate_at": 13}, [7, 8]),
        ({"reindex": True}, []),
    ],
)
@pytest.mark.parametrize("mode", [CrashMode.LOSE_UNSYNCED, CrashMode.KEEP_ALL, CrashMode.MIXED])
def test_a_crash_anywhere_loses_nothing(
    decision: dict[str, Any], damaged: list[int], mode: CrashMode
) -> None:
    files = damaged_disk(*damaged)
    files.sync_directory(DIRECTORY)
    original = places(files)
    probe = files.clone()
    start = len(probe.trace)
    repair(probe, **decision)
    total = len(probe.trace) - start

    for at in range(1, total + 1):
        crashing = files.clone()
        crashing.crash_at(len(crashing.trace) + at)
        with pytest.raises(PowerLoss):
            repair(crashing, **decision)
        found = crashing.after_crash(mode, at)
        everywhere = b"".join(
            found.contents(f"{DIRECTORY}/{name}") for name in log_files(found)
        ) + b"".join(asides(found).values())
        assert all(data in everywhere for _, _, _, data in original), f"operation {at}"
        settle(found, decision)
        assert check(DIRECTORY, found) == [], f"operation {at}"


def settle(files: SimulatedFileSystem, decision: dict[str, Any]) -> None:
    """A person tries again what the crash has interrupted."""
    left = Repair(files, DIRECTORY, config=CONFIG)
    if left.plan(RepairRequest()).decisions:
        repair(files, **decision)
    else:
        repair(files)


# --- ownership ---------------------------------------------------------------------------------


def test_a_directory_that_somebody_owns_is_refused(tmp_path: Any) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    files = OsFileSystem()
    lock = files.lock(str(tmp_path / ".lock"))
    try:
        with pytest.raises(LogDirectoryError), Repair(files, str(directory)).owned():
            pass
    finally:
        lock.release()
    with Repair(files, str(directory)).owned():
        pass
