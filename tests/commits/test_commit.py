"""Commits of staged files into logs: what they make of them, and what they refuse."""

import pickle
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from stratalog.errors import DiskFullError, LogDirectoryError
from stratalog.records import Codec
from stratalog.scans.snapshot import read_directory_id
from stratalog.storage.checkpoint import format_id
from stratalog.storage.commits.committing import Commit
from stratalog.storage.commits.errors import (
    CommitBusyError,
    CommitRefusedError,
    StagedFileError,
)
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.commits.staging import staging_directory
from stratalog.storage.context import DiskState
from stratalog.storage.directory import Identity
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem


@pytest.fixture
def owner() -> Owner:
    return new_owner()


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


def with_settings(**settings: Any) -> Owner:
    made = Owner()
    made.manager.shutdown()
    made.start(replace(CONFIG, **settings))
    made.create(ORDERS, OTHERS)
    return made


@pytest.mark.parametrize("append_max_bytes", [0, 1_000_000])
def test_what_is_not_compressed_any_more_becomes_segments_of_the_topics_size(
    append_max_bytes: int,
) -> None:
    owner = with_settings(compression_type="uncompressed")
    owner.manager.config = replace(
        owner.manager.config, log_commit_append_max_bytes=append_max_bytes
    )
    owner.append(b"before")
    values = [[[b"%02d" % number + bytes(500)] for number in range(13)]]

    owner.run(owner.stage(values, codec=Codec.ZSTD))

    assert owner.values() == [b"before", *flat(values)]
    log = owner.log()
    assert log.segments.base_offsets == [0, 1, 4, 7, 10, 13, 14]
    assert all(each.size_bytes <= CONFIG.segment_size_bytes for each in log.segments)
    assert owner.append(b"after") == 14


def test_commits_that_compress_well_leave_no_more_segments_than_little_does() -> None:
    owner = with_settings(compression_type="zstd")
    values = [[[b"%d" % number + bytes(400)] for number in range(4)]] * 2

    owner.run(owner.stage(values))

    assert owner.values() == flat(values)
    assert owner.log().segments.base_offsets == [0]


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
    journal._kept_ids = 0
    journal.compact(forget_before_ms=owner.manager.commits._forget_before_ms())
    assert owner.manager.commits.status("plain") is None
    assert owner.manager.commits.status("q:1", AppVersion(name="q", version=1)) is not None


@pytest.mark.parametrize(
    ("then_ms", "now_ms"),
    [(START_MS, START_MS + 400 * 24 * 3_600_000), (1_000, START_MS)],
    ids=["it jumps ahead", "it was wrong at boot"],
)
def test_a_clock_that_was_wrong_lets_nothing_be_committed_twice(
    owner: Owner, then_ms: int, now_ms: int
) -> None:
    owner.manager.shutdown()
    owner.clock.set(then_ms)
    owner.start(replace(CONFIG, message_timestamp_after_max_ms=2**62))
    (journal,) = owner.manager.commits._journals.values()
    journal._rewrite_bytes = 0
    assert owner.run(owner.stage(SMALL)).status == "committed"
    owner.clock.set(now_ms)
    for number in range(4):
        owner.run(owner.stage(SMALL, f"other-{number}", key=OTHERS))
    assert owner.run(owner.stage(SMALL)).status == "already committed"
    assert owner.values() == flat(SMALL)


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
    directory = owner.manager.directories[0]
    directory.assign_identity(Identity("cluster", 1, uuid.UUID(int=7)))
    told = read_directory_id(owner.files, LOG_DIR)
    assert owner.run(replace(manifest, directory_id=told)).status == "committed"


def test_an_application_writes_one_version_to_each_directory() -> None:
    clock = ManualClock(START_MS)
    files, app = new_disk(clock), AppVersion(name="again", version=7)
    manager = new_manager(files, clock, CONFIG, log_dirs=("/one", "/two"))
    manager.start()
    homes = {key: str(Path(manager.create(key).directory).parent) for key in (ORDERS, OTHERS)}
    assert len({*homes.values()}) == 2
    for tries in ("committed", "already committed"):
        for key, home in homes.items():
            name = f"{tries} {key}"
            manifest = stage(files, clock, {key: SMALL}, manifest_id=name, app=app, log_dir=home)
            assert manager.commits.run(manifest).status == tries
            assert manager.get(key).log_end_offset == len(flat(SMALL))
            known = manager.commits.status("?", app, log_dir=f"{home}/../{home}/")
            assert known is not None
            assert [*known.partitions] == [key]
    assert manager.commits.status("?", app, log_dir="/mounted/elsewhere") is not None


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


# --- room for what a check copies -------------------------------------------------------------

# Files that become one, of which each is a small part of a segment.
MANY: Values = [[[b"%04d" % number * 50]] for number in range(300)]


def disk_of(owner: Owner) -> SimulatedFileSystem:
    assert isinstance(owner.files, SimulatedFileSystem)
    return owner.files


def keep_free(owner: Owner, bytes_beside: int) -> list[int]:
    """Have all but ``bytes_beside`` of what is free stay free; returns what is free after each
    operation from now on."""
    files = disk_of(owner)
    reserve_bytes = files.free_bytes(LOG_DIR) - bytes_beside
    owner.manager.config = replace(owner.manager.config, log_dir_reserve_bytes=reserve_bytes)
    free: list[int] = []
    files.observer = lambda _operation: free.append(files.free_bytes(LOG_DIR))
    return free


def copies(owner: Owner, manifest: Manifest) -> list[str]:
    directory = staging_directory(f"{LOG_DIR}/orders-0", manifest.staging_id)
    return [each.name for each in owner.files.list(directory) if each.name.startswith("merged")]


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"internal_segment_bytes": 1 << 20}, MANY),
        ({"message_timestamp_type": "LogAppendTime"}, [[[b"x" * 1_500]] * 50]),
    ],
    ids=["files that become one", "a time that changes"],
)
def test_what_there_is_no_room_to_copy_is_refused_before_any_is_copied(
    settings: dict[str, Any], values: Values
) -> None:
    owner = with_settings(**settings)
    disk_of(owner).capacity_bytes = 16 << 20
    manifest = owner.stage(values)
    free = keep_free(owner, 60_000)

    check_refused(owner, manifest, r"are to be copied in .* log\.dir\.reserve\.bytes=\d+ stay free")

    assert free == []
    assert owner.append(b"a producer's") == 0
    keep_free(owner, 2_000_000)
    assert owner.run(manifest).partitions == {ORDERS: (1, 1 + len(flat(values)))}


def test_copies_that_grow_take_nothing_of_what_stays_free() -> None:
    """By how much is known only once they are made."""
    owner = with_settings(internal_segment_bytes=1 << 20, compression_type="uncompressed")
    disk_of(owner).capacity_bytes = 64 << 20
    manifest = owner.stage([[[bytes(900_000)]] * 30], codec=Codec.ZSTD)
    free = keep_free(owner, 10 << 20)

    check_refused(owner, manifest, "more bytes are to be copied")

    disk_of(owner).observer = None
    assert min(free) >= owner.manager.config.log_dir_reserve_bytes
    assert copies(owner, manifest) == []
    assert owner.append(b"a producer's") == 0


def test_copies_of_what_is_refused_afterwards_are_removed() -> None:
    owner = with_settings(message_timestamp_type="LogAppendTime")
    disk_of(owner).capacity_bytes = 16 << 20
    manifest = owner.stage([[[b"a"], [b"b"]]])
    staged = disk_of(owner).tree(LOG_DIR)
    keep_free(owner, 1_000)

    check_refused(owner, manifest, "are to be appended")

    assert disk_of(owner).tree(LOG_DIR) == staged


@pytest.mark.parametrize("is_checked", [False, True], ids=["by its check", "by its last look"])
def test_copies_are_removed_where_another_partition_is_refused(is_checked: bool) -> None:
    owner = new_owner()
    manifest = stage(owner.files, owner.clock, {ORDERS: MANY, OTHERS: [[[b"other"]]]})
    commit = owner.plan(manifest)
    directory = staging_directory(f"{LOG_DIR}/others-0", manifest.staging_id)
    if is_checked:
        commit.check()
        assert copies(owner, manifest)
        commit.stop()
    owner.files.unlink(f"{directory}/00000-0-00000.log")

    with pytest.raises(StagedFileError):
        (commit.settle if is_checked else commit.check)()
    commit.abandon()

    assert copies(owner, manifest) == []
    assert owner.append(b"goes on") == 0
    again = stage(owner.files, owner.clock, {ORDERS: MANY, OTHERS: [[[b"other"]]]})
    assert owner.run(again).partitions == {ORDERS: (1, 301), OTHERS: (0, 1)}
