"""Above the recovery point a log is cut at the first bytes that are no batch, whatever follows: it
goes on there, and what was cut lies aside."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import (
    CONFIG,
    DIRECTORY,
    START_MS,
    log_file,
    opened,
    produced,
    readable,
    report,
    stored,
    written,
)

from stratalog.storage.check import check
from stratalog.storage.check_replica import ReplicaCheck
from stratalog.storage.files import remove_tree
from stratalog.storage.janitor import Janitor
from stratalog.storage.kept_cuts import KEPT_BYTES_MAX, KEPT_MS, KeptCut, KeptCuts
from stratalog.storage.log import Log
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.testing import CrashMode, SimulatedFileSystem

BATCH_BYTES = 99
CUT = f"{DIRECTORY}/.stratalog/cut"


def broken(batch: int) -> SimulatedFileSystem:
    """A log with one changed byte in its ``batch``-th batch."""
    files = written()
    files.flip(log_file(batch // 4 * 8), batch % 4 * BATCH_BYTES + 70, 0x10)
    return files


def kept(files: SimulatedFileSystem) -> bytes:
    """All that lies aside, in the order in which it was in the log."""
    names = [name for cut in KeptCuts(files, DIRECTORY).read() for name in cut.names]
    return b"".join(files.contents(f"{CUT}/{name}") for name in names)


def log_bytes(files: SimulatedFileSystem) -> bytes:
    tree = files.tree(DIRECTORY)
    return b"".join(tree[name] for name in sorted(tree) if name.endswith(".log"))


def goes_on(log: Log) -> None:
    end = log.log_end_offset
    assert log.append_as_leader(produced("more"), leader_epoch=9).first_offset == end
    log.flush()
    assert [each for each in check(log) if each.severity == "error"] == []


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_log_is_cut_at_the_first_damage_that_was_not_flushed_and_goes_on(
    flushed: int, behind: int
) -> None:
    damaged = min(flushed + behind, 9)
    files = broken(damaged)
    whole = log_bytes(files)
    log = opened(files, recovery_point=2 * flushed)
    assert (log.log_end_offset, log.is_damaged) == (2 * damaged, False)
    assert readable(log) == stored(written())[:damaged]
    if damaged < 9:  # nothing valid follows the last
        assert log_bytes(files) + kept(files) == whole
    goes_on(log)


def test_what_belongs_to_the_batches_that_are_left_is_what_they_say() -> None:
    files = broken(5)
    log = opened(files, recovery_point=4)
    (producer,) = log.producers
    assert (producer.last_sequence, producer.last_data_offset) == (9, 9)
    assert [(each.epoch, each.start_offset) for each in log.epochs.entries] == [(0, 0), (1, 6)]
    assert log.segments.base_offsets == [0, 8]
    assert [name for name in files.tree(DIRECTORY) if name.startswith("0" * 18 + "16")] == []


def test_a_cut_is_told_with_its_offset_its_reason_and_its_files() -> None:
    files = broken(5)
    log = opened(files, recovery_point=4)
    (cut,) = log.recovery_cuts
    assert report(log).cut is not None
    assert (cut.start_offset, cut.base_offset, cut.position) == (10, 8, BATCH_BYTES)
    assert cut.size_bytes == 5 * BATCH_BYTES
    assert "crc" in cut.reason.lower()
    assert [name.partition(".log")[0] for name in cut.names] == ["0" * 19 + "8", "0" * 18 + "16"]
    again = opened(files, recovery_point=10)
    assert report(again).cut is None
    assert again.recovery_cuts == (cut,), "as long as it is kept"


def test_a_cut_is_told_at_once_where_nothing_of_our_own_lay_beside_the_log() -> None:
    files = broken(5)
    remove_tree(files, f"{DIRECTORY}/.stratalog")
    assert len(opened(files, recovery_point=4).recovery_cuts) == 1


def test_a_check_finds_nothing_wrong_with_a_log_that_was_cut_and_reports_the_cut() -> None:
    files = broken(5)
    log = opened(files, recovery_point=4)
    assert check(log) == []
    replica = ReplicaCheck(ReadOnlyFileSystem(files), DIRECTORY)
    replica.start()
    assert replica.finish().recovery_cuts == log.recovery_cuts


@pytest.mark.parametrize("batch", [4, 5, 6])
def test_a_batch_that_claims_another_offset_is_cut_with_all_behind_it(batch: int) -> None:
    files = written()
    position = batch % 4 * BATCH_BYTES
    files.flip(log_file(batch // 4 * 8), position + 4, 0x01)  # 16 777 216 further on
    log = opened(files, recovery_point=2 * batch - 2)
    assert (log.log_end_offset, log.is_damaged) == (2 * batch, False)
    assert log.segments.active.max_timestamp().timestamp_ms < START_MS + 10 * batch
    goes_on(log)


def test_a_flushed_batch_that_claims_a_later_offset_takes_no_flushed_one_with_it() -> None:
    """What it claims lies above the recovery point, and the bytes behind it do not."""
    files = written()
    files.flip(log_file(8), 4, 0x01)
    files.flip(log_file(8), BATCH_BYTES + 70, 0x01)
    files.unlink(log_file(8, ".index"))
    before = log_bytes(files)
    log = opened(files, recovery_point=14)
    assert log.is_damaged
    assert log_bytes(files) == before


def test_a_log_that_is_damaged_below_the_recovery_point_is_not_cut_above_it() -> None:
    files = broken(4)
    files.flip(log_file(16), 70, 1)
    files.unlink(log_file(8, ".index"))
    before = log_bytes(files)
    log = opened(files, recovery_point=12)
    assert log.is_damaged
    assert log_bytes(files) == before


def test_nothing_is_cut_below_the_logs_start_which_was_flushed_before_it_was_raised() -> None:
    files = broken(5)
    log = opened(files, recovery_point=4, log_start_offset=11)
    assert log.is_damaged
    assert (log.log_start_offset, log.log_end_offset) == (11, 20)


def test_a_log_with_a_known_damage_is_cut_by_no_later_start() -> None:
    files = broken(5)
    assert opened(files).is_damaged  # nobody knew a recovery point
    before = log_bytes(files)
    assert opened(files, recovery_point=4).is_damaged
    assert log_bytes(files) == before


def test_without_room_to_keep_it_nothing_is_cut_until_there_is_some() -> None:
    files = broken(5)
    before = log_bytes(files)
    files.fail(lambda o: o.kind == "write" and CUT in o.path, 28)
    log = opened(files, recovery_point=4)
    assert log.is_damaged
    assert log.log_end_offset == 20
    assert log_bytes(files) == before
    assert kept(files) == b""


# --- interrupted ---------------------------------------------------------------------------------


def interrupted() -> Iterator[SimulatedFileSystem]:
    """What is left of a recovery that cuts, by every crash at every one of its operations."""
    files = broken(5)
    moments: list[SimulatedFileSystem] = []
    files.observer = lambda _operation: moments.append(files.clone())
    opened(files, recovery_point=4)
    assert len(moments) > 20
    for number, moment in enumerate([*moments, files.clone()]):
        for mode in CrashMode:
            yield moment.after_crash(mode, number)


def test_a_cut_that_is_interrupted_anywhere_ends_the_same_and_loses_no_byte() -> None:
    whole = log_bytes(broken(5))
    for files in interrupted():
        log = opened(files, recovery_point=4)
        assert (log.log_end_offset, log.is_damaged) == (10, False)
        assert readable(log) == stored(written())[:5]
        assert log_bytes(files) + kept(files) == whole
        assert [cut.is_made for cut in log.recovery_cuts] == [True]
        goes_on(log)


# --- how long ------------------------------------------------------------------------------------


def noted(at_ms: int, size_bytes: int, *, base_offset: int) -> KeptCut:
    return KeptCut(at_ms, base_offset, base_offset, 0, size_bytes, "for a test", ())


def test_what_was_kept_for_a_week_goes() -> None:
    files = broken(5)
    opened(files, recovery_point=4)
    log = opened(files, recovery_point=4)
    janitor = Janitor(files, is_threaded=False)
    log.remove_due(janitor, START_MS + KEPT_MS - 1)
    assert len(KeptCuts(files, DIRECTORY).read()) == len(log.recovery_cuts) == 1
    log.remove_due(janitor, START_MS + KEPT_MS)
    assert KeptCuts(files, DIRECTORY).read() == log.recovery_cuts == ()
    assert list(files.tree(CUT)) == []


def test_older_cuts_make_way_for_newer_ones() -> None:
    files = written()
    cuts = KeptCuts(files, DIRECTORY)
    with_bases = []
    for number in range(3):
        cut = cuts.begin(noted(START_MS + number, KEPT_BYTES_MAX // 2, base_offset=number), [])
        files.put(f"{CUT}/{cut.names[0]}", b"kept")
        cuts.finish(cut)
        with_bases.append(cut.base_offset)
    assert [each.base_offset for each in cuts.read()] == with_bases[1:]
    assert len(files.tree(CUT)) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'[{"at_ms": 1}]', b"\xff"])
def test_a_garbled_note_keeps_no_log_from_opening(content: bytes) -> None:
    files = broken(5)
    opened(files, recovery_point=4)
    files.put(f"{DIRECTORY}/.stratalog/cuts", content)
    log = opened(files, config=CONFIG, recovery_point=10)
    assert log.recovery_cuts == ()
    goes_on(log)
