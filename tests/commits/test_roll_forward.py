"""Rolling forward where a log is not what it was when the journal's record was written."""

import errno
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from commit_harness import LOG_DIR, START_MS, Values, batch, new_disk, new_manager, stage
from stratalog.config import TopicConfig
from stratalog.errors import LogDirectoryError
from stratalog.records import Record, build_batch
from stratalog.storage.commits.adopted import AdoptedFiles, place_segment
from stratalog.storage.commits.appended import AppendedBatches
from stratalog.storage.commits.committing import Commit
from stratalog.storage.commits.errors import AppendsPausedError, CommitBusyError
from stratalog.storage.commits.journal import CommitJournal, PendingCommit
from stratalog.storage.layout import INDEX_SUFFIXES, TopicPartition, segment_file
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, PowerLoss, SimulatedFileSystem

ORDERS = TopicPartition("orders", 0)
DIRECTORY = f"{LOG_DIR}/orders-0"
CONFIG = TopicConfig(internal_segment_bytes=2000, index_interval_bytes=150)
SMALL: Values = [[[b"a", b"b"], [b"c"]]]
LARGE: Values = [[[b"x" * 300]] * 5]


def manager_on(
    files: SimulatedFileSystem,
    config: TopicConfig = CONFIG,
    log_dirs: tuple[str, ...] = (LOG_DIR,),
) -> LogManager:
    manager = new_manager(files, ManualClock(START_MS), config, log_dirs=log_dirs)
    manager.start()
    return manager


def decided(
    values: Values,
    config: TopicConfig = CONFIG,
    mode: CrashMode = CrashMode.KEEP_ALL,
    before: Sequence[bytes] = (b"one", b"two"),
) -> SimulatedFileSystem:
    """What a crash leaves of a log of two records, of which a commit was made and not done."""
    clock = ManualClock(START_MS)
    files = new_disk(clock)
    manager = new_manager(files, clock, config)
    manager.start()
    log = manager.create(ORDERS, topic_id=uuid.UUID(int=7))
    for value in before:
        log.append_as_leader(batch([value]))
    commit = manager.commits.plan(stage(files, clock, {ORDERS: values}))
    assert isinstance(commit, Commit)
    for step in (commit.check, commit.stop, commit.settle, commit.apply):
        step()
    return files.after_crash(mode)


def journal_of(files: SimulatedFileSystem) -> CommitJournal:
    journal = CommitJournal(files, LOG_DIR)
    journal.load()
    return journal


def start_and_stop(files: SimulatedFileSystem) -> LogManager:
    manager = manager_on(files)
    assert not journal_of(files).pending, "it is done"
    assert not [path for path in files.tree(LOG_DIR) if "staging" in path]
    return manager


def started_on_a_full_disk(files: SimulatedFileSystem, config: TopicConfig = CONFIG) -> LogManager:
    """Which has no room for a line of the journal, and some again as soon as that was tried."""
    fault = files.fail(
        lambda each: each.kind == "write" and each.path.endswith("commits"), errno.ENOSPC
    )
    manager = manager_on(files, config)
    assert fault.times == 0
    assert journal_of(files).pending
    return manager


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_what_is_in_its_place_already_stays_as_it_is(values: Values) -> None:
    files = decided(values)
    before = {path: data for path, data in files.tree(DIRECTORY).items() if path.endswith(".log")}
    before = {path: data for path, data in before.items() if "/" not in path}
    manager = start_and_stop(files)
    count = sum(len(each) for file in values for each in file)
    assert manager.get(ORDERS).log_end_offset == 2 + count
    for path, data in before.items():
        assert files.contents(f"{DIRECTORY}/{path}") == data


@pytest.mark.parametrize("mode", list(CrashMode))
@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_segments_that_were_preallocated_stand_in_nobodys_way(
    values: Values, mode: CrashMode
) -> None:
    config = replace(CONFIG, preallocate=True)
    manager = manager_on(decided(values, config, mode), config)
    count = sum(len(each) for file in values for each in file)
    log = manager.get(ORDERS)
    assert not log.is_damaged
    assert log.log_end_offset == 2 + count
    assert log.append_as_leader(batch([b"on"])).first_offset == 2 + count


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_a_log_that_was_deleted_is_not_made_again(values: Values) -> None:
    files = decided(values)
    files.rename(DIRECTORY, f"{DIRECTORY}.{'ab' * 16}-delete")
    assert ORDERS not in manager_on(files)


TWO_DIRECTORIES = [(LOG_DIR, "/other"), ("/other", LOG_DIR)]


def with_another_directory(files: SimulatedFileSystem) -> str:
    """Of the same broker; where the partition would be there."""
    files.make_directory("/other")
    files.sync_directory("/")
    return f"/other/{ORDERS}"


@pytest.mark.parametrize("log_dirs", TWO_DIRECTORIES, ids=["first", "second"])
@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_a_log_that_was_moved_to_another_directory_is_not_taken_for_deleted(
    values: Values, log_dirs: tuple[str, ...]
) -> None:
    files = decided_only(values)
    moved = with_another_directory(files)
    files.rename(DIRECTORY, moved)
    before = files.tree(moved)
    for _ in range(2):
        with pytest.raises(LogDirectoryError, match="load-1") as refused:
            manager_on(files, log_dirs=log_dirs)
        for told in (moved, DIRECTORY, "back"):
            assert told in str(refused.value), "where it is, where it belongs, and what to do"
        assert files.tree(moved) == before
        assert journal_of(files).pending

    files.rename(moved, DIRECTORY)
    manager = manager_on(files, log_dirs=log_dirs)
    end_offset = 1 + sum(len(each) for file in values for each in file)
    assert manager.get(ORDERS).log_end_offset == end_offset
    manager.shutdown()
    files.rename(DIRECTORY, moved)
    assert manager_on(files, log_dirs=log_dirs).get(ORDERS).log_end_offset == end_offset


@pytest.mark.parametrize("log_dirs", TWO_DIRECTORIES, ids=["first", "second"])
@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_log_that_was_deleted_is_so_whatever_is_in_other_directories(
    is_made_anew: bool, log_dirs: tuple[str, ...]
) -> None:
    files = decided_only(SMALL)
    made = with_another_directory(files)
    files.rename(DIRECTORY, f"{DIRECTORY}.{'ab' * 16}-delete")
    if is_made_anew:
        other = new_manager(files, ManualClock(START_MS), CONFIG, log_dirs=("/other",))
        other.start()
        other.create(ORDERS, topic_id=uuid.UUID(int=8))
        other.shutdown()

    manager = manager_on(files, log_dirs=log_dirs)

    assert not journal_of(files).pending
    assert (ORDERS in manager) == is_made_anew
    assert files.exists(made) == is_made_anew
    if is_made_anew:
        assert manager.get(ORDERS).log_end_offset == 0


def _with_topic_id(files: SimulatedFileSystem) -> None:
    content = files.contents(f"{DIRECTORY}/partition.metadata")
    other = content.replace(b"AAAAAAAAAAAAAAAAAAAABw", b"AAAAAAAAAAAAAAAAAAAACA")
    assert other != content
    files.put(f"{DIRECTORY}/partition.metadata", other)


def _with_another_batch_before(files: SimulatedFileSystem) -> None:
    path = segment_file(DIRECTORY, 0, ".log")
    files.put(path, batch([b"cleaned: only one is left"]))


def _without_the_segment(files: SimulatedFileSystem) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        files.unlink(segment_file(DIRECTORY, 0, suffix))


@pytest.mark.parametrize(
    "change", [_with_topic_id, _with_another_batch_before, _without_the_segment]
)
def test_nothing_is_put_into_a_segment_that_is_not_what_it_was(
    change: Callable[[SimulatedFileSystem], None],
) -> None:
    """Cleaned or deleted since, which only closed segments are."""
    files = decided(SMALL)
    files.put(segment_file(DIRECTORY, 5, ".log"), b"")
    change(files)
    path = segment_file(DIRECTORY, 0, ".log")
    before = files.contents(path) if files.exists(path) else None
    start_and_stop(files)
    assert (files.contents(path) if files.exists(path) else None) == before


@pytest.mark.parametrize("before", [(), (b"one",)], ids=["first", "behind others"])
@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_committed_records_that_were_deleted_since_stay_away(
    values: Values, before: Sequence[bytes]
) -> None:
    files = decided(values, before=before)
    manager = started_on_a_full_disk(files)
    log = manager.get(ORDERS)
    end_offset = log.log_end_offset
    log.append_as_leader(batch([b"on"]))
    log.roll()
    log.append_as_leader(batch([b"and on"]))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    log.raise_log_start_offset(end_offset + 1)
    manager.check_retention(log, START_MS)
    held = log.segments.base_offsets
    assert held == [end_offset + 1]

    again = start_and_stop(files.after_crash(CrashMode.KEEP_ALL)).get(ORDERS)
    assert again.segments.base_offsets == held
    assert again.log_start_offset == end_offset + 1


@pytest.mark.parametrize("change", [_with_another_batch_before, _without_the_segment])
def test_a_log_that_has_lost_what_lay_before_a_commit_does_not_go_on_without_it(
    change: Callable[[SimulatedFileSystem], None],
) -> None:
    files = decided(SMALL)
    change(files)
    with pytest.raises(LogDirectoryError, match="has lost the batch behind which"):
        manager_on(files)
    assert journal_of(files).pending


def test_what_a_commit_has_appended_is_not_cleaned_before_it_is_done() -> None:
    """The next start would write it again, over what a cleaning has left in its place."""
    config = replace(CONFIG, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    clock = ManualClock(START_MS)
    files = new_disk(clock)
    manager = new_manager(files, clock, config)
    manager.start()
    log = manager.create(ORDERS, topic_id=uuid.UUID(int=7))
    log.append_as_leader(keyed(b"before"))
    commit = manager.commits.plan(stage(files, clock, {ORDERS: [[[b"old"]]]}))
    assert isinstance(commit, Commit)
    for step in (commit.check, commit.stop, commit.settle, commit.apply):
        step()
    for key in (b"k", b"other"):
        log.append_as_leader(keyed(key))
    log.roll()
    log.append_as_leader(keyed(b"active"))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    assert manager.cleaner is not None

    clock.advance(60_000)
    manager.cleaner.run(clock.now_ms())
    again = manager_on(files.after_crash(CrashMode.KEEP_ALL), config).get(ORDERS)

    assert not again.is_damaged
    assert offsets_of(again) == [0, 1, 2, 3, 4]
    commit.complete()
    commit.finish()
    manager.cleaner.run(clock.now_ms())
    assert offsets_of(log) == [0, 2, 3, 4], "the commit is done: now it is"


def sweep(manager: LogManager) -> None:
    manager.commits.sweep(manager.clock.now_ms())


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_a_commit_is_under_way_until_the_journal_was_told_that_it_was_rolled_forward(
    values: Values,
) -> None:
    files = decided(values)
    manager = started_on_a_full_disk(files)
    clock = ManualClock(START_MS)
    (left,) = journal_of(files).pending.values()
    other = stage(files, clock, {ORDERS: SMALL}, manifest_id="load-2")
    again = stage(files, clock, {ORDERS: values}, staging_id=left.staging_id)

    with pytest.raises(CommitBusyError, match="load-1"):
        manager.commits.run(other)
    with pytest.raises(AppendsPausedError):
        manager.truncate_to(ORDERS, 2)
    assert manager.commits.run(again).status == "already committed"
    assert any(left.staging_id in path for path in files.tree(LOG_DIR)), "its own staging stays"

    sweep(manager)
    assert not journal_of(files).pending
    assert not any(left.staging_id in path for path in files.tree(LOG_DIR))
    assert manager.commits.run(other).status == "committed"
    assert manager.truncate_to(ORDERS, 2)


def test_what_was_rolled_forward_is_not_cleaned_before_the_journal_was_told() -> None:
    config = replace(CONFIG, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    manager = started_on_a_full_disk(decided([[[b"old"]]], config), config)
    log = manager.get(ORDERS)
    log.append_as_leader(keyed(b"k"))
    log.roll()
    log.append_as_leader(keyed(b"active"))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    assert manager.cleaner is not None

    manager.cleaner.run(START_MS + 60_000)
    assert isinstance(manager.files, SimulatedFileSystem)
    again = manager_on(manager.files.after_crash(CrashMode.KEEP_ALL), config).get(ORDERS)
    assert not again.is_damaged
    assert offsets_of(again) == offsets_of(log) == [0, 1, 2, 3, 4]

    sweep(manager)
    manager.cleaner.run(START_MS + 120_000)
    left = manager.files.after_crash(CrashMode.KEEP_ALL)
    assert offsets_of(manager_on(left, config).get(ORDERS)) == offsets_of(log) == [3, 4]


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_staged_files_that_were_cut_since_are_not_passed_over(
    values: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their records were committed: the log must not go on as if they had never been."""
    for way in (AdoptedFiles, AppendedBatches):
        monkeypatch.setattr(way, "place", lambda _way: None)
        monkeypatch.setattr(way, "apply", lambda _way: None)
    files = decided(values)
    for path in [each for each in files.tree(LOG_DIR) if "staging/" in each and ".log" in each]:
        files.put(f"{LOG_DIR}/{path}", files.contents(f"{LOG_DIR}/{path}")[:-1])
    with pytest.raises(LogDirectoryError, match="is not what was committed"):
        manager_on(files)
    assert journal_of(files).pending


def keyed(key: bytes) -> bytes:
    return build_batch([Record(key, b"value", (), START_MS)])


def offsets_of(log: Log) -> list[int]:
    return [header.base_offset for segment in log.segments for header in segment.headers(0)]


@pytest.mark.parametrize("placed", [(".txnindex",), (".log",), (".index", ".log"), ()])
def test_a_segment_of_which_a_crash_left_some_files_in_staging_gets_all_of_them(
    placed: tuple[str, ...],
) -> None:
    files = new_disk(ManualClock(START_MS))
    staging = f"{DIRECTORY}/staging"
    for path in (LOG_DIR, DIRECTORY, staging):
        files.make_directory(path)
    suffixes = (".index", ".timeindex", ".txnindex", ".log")
    for suffix in suffixes:
        path = segment_file(DIRECTORY, 7, suffix)
        files.put(path if suffix in placed else f"{staging}/a{suffix}", suffix.encode())

    place_segment(
        files,
        DIRECTORY,
        f"{staging}/a.log",
        7,
        indexes=INDEX_SUFFIXES,
        is_placed=".log" in placed,
    )

    found = {suffix: files.contents(segment_file(DIRECTORY, 7, suffix)) for suffix in suffixes}
    assert found == {suffix: suffix.encode() for suffix in suffixes}


def test_a_segment_that_was_adopted_and_cleaned_since_keeps_its_offsets() -> None:
    files = decided(LARGE)
    path = segment_file(DIRECTORY, 2, ".log")
    whole = files.contents(path)
    size_bytes = len(whole) // 5
    cleaned = whole[size_bytes:]
    files.put(path, cleaned)
    manager_on(files)
    assert files.contents(path) == cleaned


def test_half_of_what_was_appended_is_made_whole() -> None:
    files = decided(SMALL)
    path = segment_file(DIRECTORY, 0, ".log")
    whole = files.contents(path)
    (pending,) = journal_of(files).pending.values()
    start = pending.work[0]["position"]
    for end in range(start, len(whole)):
        found = files.clone()
        found.put(path, whole[:end] + bytes(len(whole) - end) + b"\xff" * 30)
        manager = start_and_stop(found)
        assert manager.get(ORDERS).log_end_offset == 5
        assert found.contents(path) == whole


@pytest.mark.parametrize(
    "work",
    [
        {"mode": "of a later version"},
        {"mode": "adopt"},
        {"mode": "append"},
    ],
)
def test_a_record_that_nobody_understands_keeps_the_directory_from_opening(
    work: dict[str, object],
) -> None:
    files = decided(SMALL)
    journal = journal_of(files)
    journal.commit(
        PendingCommit(
            manifest_id="strange",
            kind="append",
            staging_id="ab" * 16,
            app=None,
            at_ms=0,
            work=({"topic": "orders", "partition": 0, **work},),
        )
    )
    with pytest.raises(LogDirectoryError, match="strange"):
        manager_on(files)


@pytest.mark.parametrize("values", [SMALL, LARGE])
def test_a_staged_file_that_is_gone_before_it_was_placed_is_not_passed_over(values: Values) -> None:
    files = decided_only(values)
    for path in files.tree(LOG_DIR):
        if "/staging/" in path and path.endswith(".log"):
            files.unlink(f"{LOG_DIR}/{path}")

    with pytest.raises(LogDirectoryError, match="was committed and is gone"):
        manager_on(files)


def decided_only(values: Values) -> SimulatedFileSystem:
    """As ``decided``, of a commit whose record was the last that was written: the power is cut one
    operation later each time, until the record is there."""
    for number in range(1, 100):
        clock = ManualClock(START_MS)
        files = new_disk(clock)
        manager = new_manager(files, clock, CONFIG)
        manager.start()
        log = manager.create(ORDERS, topic_id=uuid.UUID(int=7))
        log.append_as_leader(batch([b"one"]))
        commit = manager.commits.plan(stage(files, clock, {ORDERS: values}))
        assert isinstance(commit, Commit)
        commit.check()
        commit.stop()
        files.crash_at(files.operations + number)
        with suppress(PowerLoss):
            commit.settle()
        left = files.after_crash(CrashMode.KEEP_ALL)
        if journal_of(left).pending:
            return left
    raise AssertionError("no record was ever written")
