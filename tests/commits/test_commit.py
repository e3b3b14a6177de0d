"""Commits of staged files into logs: what they make of them, and what they refuse."""

import pickle
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from commit_harness import LOG_DIR, START_MS, Values, batch, new_disk, new_manager, stage
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import DiskFullError, LogDirectoryError, StorageError
from stratalog.records import read_headers
from stratalog.records.columns import decode_records
from stratalog.storage.checkpoint import format_id
from stratalog.storage.commits.committing import Commit, CommitResult
from stratalog.storage.commits.errors import (
    AppendsPausedError,
    CommitBusyError,
    CommitRefusedError,
    StagedFileError,
)
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.context import DiskState
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, Operation, SimulatedFileSystem

ORDERS = TopicPartition("orders", 0)
OTHERS = TopicPartition("others", 0)
CONFIG = TopicConfig(
    internal_segment_bytes=2000, index_interval_bytes=150, segment_index_bytes=1200
)
SMALL: Values = [[[b"a", b"b"], [b"c"]], [[b"d"]]]
LARGE: Values = [[[b"x" * 300]] * 5, [[b"y" * 300]] * 4]


class Owner:
    """A manager with logs, and what is staged for it."""

    def __init__(self, files: FileSystem | None = None, log_dir: str = LOG_DIR) -> None:
        self.clock = ManualClock(START_MS)
        self.files = files or new_disk(self.clock)
        self.log_dir = log_dir
        self.start()

    def start(self, config: TopicConfig = CONFIG) -> None:
        self.manager = new_manager(self.files, self.clock, config, log_dirs=(self.log_dir,))
        self.manager.start()

    def log(self, key: TopicPartition = ORDERS) -> Log:
        return self.manager.get(key)

    def create(self, *keys: TopicPartition) -> None:
        for key in keys:
            self.manager.create(key, topic_id=uuid.uuid5(uuid.NAMESPACE_URL, str(key)))

    def stage(
        self,
        values: Values,
        name: str = "load",
        *,
        key: TopicPartition = ORDERS,
        app: AppVersion | None = None,
        topic_id: str = "",
    ) -> Manifest:
        return stage(
            self.files,
            self.clock,
            {key: values},
            manifest_id=name,
            app=app,
            topic_ids={key: topic_id},
            log_dir=self.log_dir,
        )

    def run(self, manifest: Manifest) -> CommitResult:
        return self.manager.commits.run(manifest)

    def plan(self, manifest: Manifest) -> Commit:
        planned = self.manager.commits.plan(manifest)
        assert isinstance(planned, Commit)
        return planned

    def append(self, value: bytes, key: TopicPartition = ORDERS) -> int:
        return self.log(key).append_as_leader(batch([value])).first_offset

    def values(self, key: TopicPartition = ORDERS) -> list[bytes]:
        log = self.log(key)
        found: list[bytes] = []
        for segment in log.segments:
            for header in segment.headers():
                stored = segment.read_batch(header)
                read_headers(stored)
                assert header.base_offset == len(found)
                found += [bytes(row.value or b"") for row in decode_records(stored)]
        assert len(found) == log.log_end_offset
        return found


@pytest.fixture
def owner() -> Owner:
    made = Owner()
    made.create(ORDERS, OTHERS)
    return made


def flat(values: Values) -> list[bytes]:
    return [value for file in values for each in file for value in each]


# --- what becomes of the files ----------------------------------------------------------------


def test_little_is_appended_to_the_active_segment(owner: Owner) -> None:
    owner.append(b"before")
    result = owner.run(owner.stage(SMALL))
    assert result.status == "committed"
    assert result.partitions == {ORDERS: (1, 5)}
    assert owner.values() == [b"before", *flat(SMALL)]
    log = owner.log()
    assert log.segments.base_offsets == [0]
    assert log.high_watermark == log.recovery_point == 5
    assert owner.append(b"after") == 5


def test_a_thousand_small_commits_leave_no_more_segments_than_as_many_appends(owner: Owner) -> None:
    for number in range(100):
        value = b"%4d" % number
        owner.run(owner.stage([[[value]]], f"query:{number}"))
        owner.append(value, OTHERS)
    assert owner.values() == owner.values(OTHERS)
    assert owner.log().segments.base_offsets == owner.log(OTHERS).segments.base_offsets
    for suffix in (".log", ".index", ".timeindex"):
        for base_offset in owner.log().segments.base_offsets[:-1]:
            name = f"{base_offset:020d}{suffix}"
            assert isinstance(owner.files, SimulatedFileSystem)
            here = owner.files.contents(f"{LOG_DIR}/orders-0/{name}")
            assert here == owner.files.contents(f"{LOG_DIR}/others-0/{name}"), name


def test_much_becomes_segments_of_its_own(owner: Owner) -> None:
    owner.append(b"before")
    result = owner.run(owner.stage(LARGE))
    assert result.partitions == {ORDERS: (1, 10)}
    assert owner.values() == [b"before", *flat(LARGE)]
    log = owner.log()
    assert log.segments.base_offsets == [0, 1, 6, 10]
    assert log.high_watermark == log.recovery_point == 10
    assert log.snapshots.offsets == [1, 10]
    assert owner.append(b"after") == 10


def test_the_first_segment_of_an_empty_log_takes_the_place_of_its_empty_one(owner: Owner) -> None:
    owner.run(owner.stage(LARGE))
    assert owner.log().segments.base_offsets == [0, 5, 9]
    assert owner.values() == flat(LARGE)
    owner.run(owner.stage(LARGE, "again"))
    assert owner.log().segments.base_offsets == [0, 5, 9, 14, 18]


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_committed_batches_have_the_leaders_epoch_and_the_log_knows_it(
    owner: Owner, values: Values
) -> None:
    owner.append(b"before")
    owner.manager.commits.leader_epoch = lambda _log: 7
    owner.run(owner.stage(values))
    owner.log().append_as_leader(batch([b"after"]), leader_epoch=7)
    entries = [(entry.epoch, entry.start_offset) for entry in owner.log().epochs.entries]
    assert entries == [(0, 0), (7, 1)]
    for segment in owner.log().segments:
        for header in segment.headers():
            assert header.partition_leader_epoch == (0 if header.base_offset == 0 else 7)
    owner.manager.shutdown()
    owner.start()
    entries = [(entry.epoch, entry.start_offset) for entry in owner.log().epochs.entries]
    assert entries == [(0, 0), (7, 1)]


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["appended", "adopted"])
def test_it_is_the_same_on_a_real_disk_and_after_a_restart(tmp_path: Path, values: Values) -> None:
    owner = Owner(OsFileSystem(), str(tmp_path))
    owner.create(ORDERS)
    owner.append(b"before")
    owner.run(owner.stage(values))
    owner.manager.shutdown()
    assert not list(tmp_path.glob("**/staging/*"))
    assert not list(tmp_path.glob(".stratalog-staging-*"))
    assert all(each.is_file() or each.name == "orders-0" for each in tmp_path.iterdir())
    owner.start()
    assert owner.log().recovery_report.scanned_bytes == 0
    assert owner.values() == [b"before", *flat(values)]
    owner.manager.shutdown()


def test_a_commit_finds_the_time_of_its_records(owner: Owner) -> None:
    owner.run(owner.stage(LARGE))
    for segment in list(owner.log().segments)[:-1]:
        assert segment.max_timestamp().timestamp_ms == START_MS
        assert segment.first_timestamp_ms() == START_MS
        assert segment.confirms_indexes()


# --- once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
def test_the_same_manifest_is_committed_once(owner: Owner, restarts: bool) -> None:
    manifest = owner.stage(SMALL)
    first = owner.run(manifest)
    if restarts:
        owner.manager.shutdown()
        owner.start()
    again = owner.run(manifest)
    assert again.status == "already committed"
    assert again.partitions == first.partitions
    assert owner.values() == flat(SMALL)
    assert owner.manager.commits.status("load") == again
    assert owner.manager.commits.status("another") is None


def test_no_version_is_taken_at_or_below_one_that_was(owner: Owner) -> None:
    for version, expected in ((3, True), (3, False), (2, False), (4, True)):
        app = AppVersion(name="query", version=version)
        manifest = owner.stage(SMALL, f"try-{uuid.uuid4().hex}", app=app)
        assert (owner.run(manifest).status == "committed") == expected
    assert owner.values() == flat(SMALL) * 2


def test_what_was_committed_says_so_even_if_its_topic_is_gone(owner: Owner) -> None:
    manifest = owner.stage(SMALL)
    owner.run(manifest)
    owner.manager.delete(ORDERS)
    assert owner.run(manifest).status == "already committed"


def test_ids_are_forgotten_in_time_and_versions_are_not(owner: Owner) -> None:
    owner.run(owner.stage(SMALL, "plain"))
    owner.run(owner.stage(SMALL, "q:1", app=AppVersion(name="q", version=1)))
    owner.clock.advance(8 * 24 * 3_600_000)
    (journal,) = owner.manager.commits._journals.values()
    journal.compact(forget_before_ms=owner.manager.commits._forget_before_ms())
    assert owner.manager.commits.status("plain") is None
    assert owner.manager.commits.status("q:1", AppVersion(name="q", version=1)) is not None


# --- refused ----------------------------------------------------------------------------------


def check_refused(owner: Owner, manifest: Manifest, match: str) -> None:
    with pytest.raises(CommitRefusedError, match=match) as refused:
        owner.run(manifest)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    assert owner.manager.commits.status(manifest.manifest_id) is None


def test_an_unknown_topic_is_refused(owner: Owner) -> None:
    manifest = owner.stage(SMALL)
    owner.manager.delete(ORDERS)
    check_refused(owner, manifest, "there is no orders-0")


def test_a_partition_that_is_not_there_is_refused(owner: Owner) -> None:
    manifest = owner.stage(SMALL)
    elsewhere = replace(manifest.partitions[0], partition=9)
    check_refused(owner, replace(manifest, partitions=(elsewhere,)), "no orders-9")


def test_a_topic_that_was_made_anew_is_refused(owner: Owner) -> None:
    found = owner.log().topic_id
    assert found is not None
    manifest = owner.stage(SMALL, topic_id=format_id(found))
    owner.manager.delete(ORDERS)
    owner.manager.create(ORDERS, topic_id=uuid.uuid4())
    check_refused(owner, manifest, "made anew")


def test_an_internal_topic_is_refused(owner: Owner) -> None:
    key = TopicPartition("__consumer_offsets", 0)
    owner.create(key)
    check_refused(owner, owner.stage(SMALL, key=key), "internal")


def _hold(owner: Owner) -> None:
    owner.log().is_held = True


def _damage(owner: Owner) -> None:
    owner.log().is_damaged = True


def _take_offline(owner: Owner) -> None:
    owner.manager.directories[0].fail("it is gone")


def _fill(owner: Owner) -> None:
    state = owner.manager.directories[0].state
    state.state, state.reason = DiskState.FULL, "no room"


def _fail(owner: Owner) -> None:
    owner.log().fail(DiskFullError("write", "x", 28, "full"))


@pytest.mark.parametrize(
    ("trouble", "match"),
    [
        (_hold, "not known"),
        (_damage, "damage"),
        (_take_offline, "offline"),
        (_fill, "no room"),
        (_fail, "offline"),
    ],
)
def test_a_log_that_takes_no_records_refuses_a_commit(
    owner: Owner, trouble: Callable[[Owner], None], match: str
) -> None:
    manifest = owner.stage(SMALL)
    trouble(owner)
    check_refused(owner, manifest, match)


def test_logs_of_two_directories_are_refused() -> None:
    clock = ManualClock(START_MS)
    files = new_disk(clock)
    manager = new_manager(files, clock, CONFIG, log_dirs=("/one", "/two"))
    manager.start()
    manager.create(ORDERS, directory="/one")
    manager.create(OTHERS, directory="/two")
    manifest = stage(files, clock, {ORDERS: SMALL}, log_dir="/one")
    elsewhere = replace(manifest.partitions[0], topic="others")
    manifest = replace(manifest, partitions=(*manifest.partitions, elsewhere))
    with pytest.raises(CommitRefusedError, match="within one log directory"):
        manager.commits.run(manifest)


def test_what_may_have_been_committed_in_a_directory_that_is_offline_is_not_refused() -> None:
    """Whoever is refused takes back what was staged, and that may be all there is of it."""
    clock = ManualClock(START_MS)
    files = new_disk(clock)
    manager = new_manager(files, clock, CONFIG, log_dirs=("/one", "/two"))
    manager.start()
    manager.create(ORDERS, directory="/one")
    manifest = stage(files, clock, {ORDERS: SMALL}, log_dir="/one")
    commit = manager.commits.plan(manifest)
    assert isinstance(commit, Commit)
    for step in (commit.check, commit.stop, commit.settle):
        step()
    left = files.after_crash(CrashMode.LOSE_UNSYNCED)
    journal = left.contents("/one/.stratalog-commits")
    left.put("/one/.stratalog-commits", b"not readable today")
    again = new_manager(left, clock, CONFIG, log_dirs=("/one", "/two"))
    again.start()
    with pytest.raises(CommitBusyError, match="/one, which is offline"):
        again.commits.run(manifest)
    again.shutdown()
    left.put("/one/.stratalog-commits", journal)
    again = new_manager(left, clock, CONFIG, log_dirs=("/one", "/two"))
    again.start()
    assert again.commits.run(manifest).status == "already committed"
    assert again.get(ORDERS).log_end_offset == 4


def test_a_directory_with_another_id_is_refused(owner: Owner) -> None:
    manifest = replace(owner.stage(SMALL), directory_id="somewhere else")
    check_refused(owner, manifest, "somewhere else")


def test_more_than_there_is_room_for_is_refused_before_anything_is_decided(owner: Owner) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    manifest = owner.stage([[[b"one file"]]])
    owner.files.capacity_bytes -= owner.files.free_bytes(LOG_DIR) - 50
    check_refused(owner, manifest, "bytes are free|are to be appended")
    assert owner.values() == []


def test_what_stays_free_for_the_broker_is_no_room_for_a_commit(owner: Owner) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    manifest = owner.stage([[[b"one file"]]])
    free_bytes = owner.files.free_bytes(LOG_DIR)
    owner.manager.config = replace(owner.manager.config, log_dir_reserve_bytes=free_bytes)
    check_refused(owner, manifest, f"log.dir.reserve.bytes={free_bytes} stay free")
    owner.manager.config = replace(owner.manager.config, log_dir_reserve_bytes=0)
    assert owner.manager.commits.run(manifest).status == "committed"


def test_a_file_that_is_not_there_is_refused_and_appends_go_on(owner: Owner) -> None:
    manifest = owner.stage(SMALL)
    name = manifest.partitions[0].files[0].name
    owner.files.unlink(f"{LOG_DIR}/orders-0/.stratalog/staging/{manifest.staging_id}/{name}")
    with pytest.raises(StagedFileError):
        owner.run(manifest)
    assert owner.append(b"on") == 0


def test_a_journal_that_cannot_be_read_keeps_the_directory_from_opening(owner: Owner) -> None:
    assert isinstance(owner.files, SimulatedFileSystem)
    owner.run(owner.stage(SMALL))
    owner.manager.shutdown()
    owner.files.flip(f"{LOG_DIR}/.stratalog-commits", 80, 1)
    with pytest.raises(LogDirectoryError, match="which commits were made"):
        owner.start()


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


def test_a_manager_that_never_saw_a_commit_leaves_nothing_of_ours_behind() -> None:
    clock = ManualClock(START_MS)
    files = new_disk(clock)
    manager: LogManager = new_manager(files, clock, CONFIG)
    manager.start()
    manager.shutdown()
    assert not [path for path in files.tree(LOG_DIR) if "stratalog" in path]
