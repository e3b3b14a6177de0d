"""All logs of a broker: found, made, deleted, and there again after a restart."""

import uuid

import pytest
from managers import ORDERS, PAYMENTS, fill, manager, started, steps
from small_logs import START_MS, readable, report

from stratalog.config import BrokerConfig
from stratalog.errors import (
    LogDirectoryError,
    LogExistsError,
    TopicNameError,
    UnknownLogError,
)
from stratalog.storage.check import check
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.directory import Identity
from stratalog.storage.layout import TopicPartition
from stratalog.storage.lookup import list_offset
from stratalog.storage.manager import LogManager
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

MARKER = "/data/.kafka_cleanshutdown"
TOPIC_ID = uuid.UUID(bytes=bytes(range(16)))

# --- making and finding ---------------------------------------------------------------------------


def test_a_manager_of_an_empty_place_makes_the_directory_and_holds_no_log() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    assert list(logs) == []
    assert ORDERS not in logs
    assert files.stat("/data") is not None


def test_a_new_log_is_found_by_its_name_and_listed() -> None:
    logs = started(SimulatedFileSystem())
    log = logs.create(ORDERS)
    assert logs.get(ORDERS) is log
    assert ORDERS in logs
    assert list(logs) == [log]
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)


def test_a_new_replica_has_an_epoch_file_a_segment_and_its_topic_id_in_this_order() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    start = len(files.trace)
    logs.create(ORDERS, topic_id=TOPIC_ID)
    made = [path for _, path in steps(files, start, "mkdir", "create")]
    assert [path.removeprefix("/data/orders-0") for path in made if "index" not in path] == [
        "",
        "/leader-epoch-checkpoint",
        "/00000000000000000000.log",
        "/partition.metadata.tmp",
    ]
    content = files.contents("/data/orders-0/partition.metadata")
    assert content == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


def test_a_new_log_is_there_after_a_crash_at_once() -> None:
    files = SimulatedFileSystem()
    started(files).create(ORDERS, topic_id=TOPIC_ID)
    again = started(files.after_crash(CrashMode.LOSE_UNSYNCED))
    assert again.get(ORDERS).topic_id == TOPIC_ID


def test_a_log_is_made_once() -> None:
    logs = started(SimulatedFileSystem())
    logs.create(ORDERS)
    with pytest.raises(LogExistsError, match="orders-0"):
        logs.create(ORDERS)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "t" * 250, "é"])
def test_a_log_of_an_illegal_name_is_not_made(topic: str) -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    before = files.operations
    with pytest.raises(TopicNameError):
        logs.create(TopicPartition(topic, 0))
    with pytest.raises(TopicNameError):
        logs.create(TopicPartition("orders", -1))
    assert files.operations == before


def test_a_log_that_is_not_here_is_unknown_and_the_places_looked_at_are_named() -> None:
    logs = started(SimulatedFileSystem(), "/a", "/b")
    with pytest.raises(UnknownLogError, match=r"orders-0 in /a, /b"):
        logs.get(ORDERS)


# --- which directory ------------------------------------------------------------------------------


def test_a_new_log_goes_where_the_fewest_logs_are() -> None:
    logs = started(SimulatedFileSystem(), "/a", "/b", "/c")
    for partition in range(7):
        logs.create(TopicPartition("t", partition))
    assert [len(directory.logs) for directory in logs.directories] == [3, 2, 2]


def test_the_number_of_logs_decides_and_not_their_bytes() -> None:
    logs = started(SimulatedFileSystem(), "/a", "/b")
    fill(logs.create(TopicPartition("t", 0), directory="/a"), 50)
    logs.create(TopicPartition("t", 1), directory="/b")
    logs.create(TopicPartition("t", 2), directory="/b")
    assert logs.create(ORDERS).directory == "/a/orders-0"


def test_a_preferred_directory_wins_and_must_be_one_of_ours() -> None:
    logs = started(SimulatedFileSystem(), "/a", "/b")
    logs.create(TopicPartition("t", 0), directory="/b")
    assert logs.create(ORDERS, directory="/b").directory == "/b/orders-0"
    with pytest.raises(LogDirectoryError, match="/elsewhere"):
        logs.create(PAYMENTS, directory="/elsewhere")


# --- restarts -------------------------------------------------------------------------------------


def test_after_a_clean_stop_everything_is_as_it_was_and_nothing_is_scanned() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS, topic_id=TOPIC_ID))
    fill(logs.create(PAYMENTS), 2).update_high_watermark(3)
    logs.shutdown()
    again = started(files)
    log = again.get(ORDERS)
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (10, 10, 10)
    assert log.topic_id == TOPIC_ID
    assert again.get(PAYMENTS).high_watermark == 3
    assert [report(each).scanned_segments for each in again] == [0, 0]
    assert [check(each) for each in again] == [[], []]


def test_a_start_takes_the_clean_marker_away_and_a_clean_stop_brings_it_back() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    assert not files.exists(MARKER)
    logs.shutdown()
    assert files.exists(MARKER)
    started(files)
    assert not files.exists(MARKER)


def test_without_the_marker_logs_are_recovered_from_their_recovery_points() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    log = fill(logs.create(ORDERS), 9)
    log.flush()
    logs.checkpoint_recovery_points()
    fill(log, 2)
    again = started(files.after_crash(CrashMode.KEEP_ALL))
    assert again.get(ORDERS).log_end_offset == 22
    assert check(again.get(ORDERS)) == []
    assert again.get(ORDERS).recovery_point == 18
    assert report(again.get(ORDERS)).scanned_segments == 1


def test_each_directory_has_a_marker_of_its_own() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    fill(logs.create(ORDERS, directory="/a"))
    fill(logs.create(PAYMENTS, directory="/b"))
    logs.shutdown()
    files.unlink("/a/.kafka_cleanshutdown")
    again = started(files, "/a", "/b")
    assert report(again.get(ORDERS)).scanned_segments > 0
    assert report(again.get(PAYMENTS)).scanned_segments == 0


def test_without_a_recovery_checkpoint_everything_is_read_again() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS), 9)
    logs.shutdown()
    for name in (MARKER, "/data/recovery-point-offset-checkpoint"):
        files.unlink(name)
    log = started(files).get(ORDERS)
    assert (log.log_end_offset, log.recovery_point) == (18, 0)
    assert report(log).scanned_segments == len(log.segments)


def test_a_log_start_inside_a_segment_comes_back_by_its_checkpoint() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS)).raise_log_start_offset(5)
    logs.shutdown()
    assert started(files).get(ORDERS).log_start_offset == 5


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"0\n1\norders 0\n"])
def test_records_that_were_deleted_stay_so_when_the_checkpoint_is_lost(
    content: bytes | None,
) -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS)).raise_log_start_offset(5)
    logs.shutdown()
    if content is None:
        files.unlink("/data/log-start-offset-checkpoint")
    else:
        files.put("/data/log-start-offset-checkpoint", content)
    assert started(files).get(ORDERS).log_start_offset == 5


@pytest.mark.parametrize("offset", [0, 2])
def test_a_log_that_was_cut_below_its_old_start_starts_there_after_a_restart(offset: int) -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    log = fill(logs.create(ORDERS))
    log.raise_log_start_offset(5)
    logs.checkpoint_log_start_offsets()
    log.truncate_fully_and_start_at(offset)
    fill(log, 3)
    logs.shutdown()
    log = started(files).get(ORDERS)
    assert (log.log_start_offset, log.log_end_offset) == (offset, offset + 6)


def test_progress_counts_the_logs_and_the_bytes_that_are_read_again() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    size_bytes = fill(logs.create(ORDERS)).size_bytes + fill(logs.create(PAYMENTS)).size_bytes
    again = started(files.after_crash(CrashMode.KEEP_ALL))
    assert (again.progress.logs_total, again.progress.logs_done) == (2, 2)
    assert again.progress.bytes_scanned == size_bytes


# --- stopping -------------------------------------------------------------------------------------


def test_a_clean_stop_flushes_snapshots_checkpoints_and_marks_in_this_order() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS), 2)
    start = len(files.trace)
    logs.shutdown()
    done = steps(files, start, "sync", "rename")
    order = [
        ("rename", "/data/replication-offset-checkpoint.tmp"),
        ("sync", "/data/orders-0/00000000000000000000.log"),
        ("sync", "/data/orders-0/00000000000000000004.snapshot"),
        ("rename", "/data/recovery-point-offset-checkpoint.tmp"),
        ("rename", "/data/log-start-offset-checkpoint.tmp"),
        ("sync", MARKER),
    ]
    assert [step for step in done if step in order] == order


def test_a_clean_stop_leaves_the_recovery_point_at_the_log_end() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    logs.shutdown()
    assert read_offsets(files, "/data/recovery-point-offset-checkpoint") == {ORDERS: 10}


def test_a_clean_stop_survives_any_crash_behind_it() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    logs.shutdown()
    for mode in CrashMode:
        log = started(files.after_crash(mode)).get(ORDERS)
        assert report(log).scanned_segments == 0
        assert (len(readable(log)), log.log_end_offset, log.high_watermark) == (5, 10, 10)
        assert list_offset(log, START_MS + 1).offset == 1


def test_a_stopped_manager_lets_go_of_its_directories() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    with pytest.raises(LogDirectoryError, match="locked"):
        started(files, "/b")
    logs.shutdown()
    started(files, "/b").shutdown()


# --- what else may lie there ----------------------------------------------------------------------


def test_stray_and_future_replicas_are_left_alone() -> None:
    files = SimulatedFileSystem()
    for path in ("/data", "/data/orders-0.0123-stray", "/data/payments-3.0123-future"):
        files.make_directory(path)
    logs = started(files)
    assert list(logs) == []
    logs.shutdown()
    names = {entry.name for entry in files.list("/data") if entry.is_directory}
    assert names == {"orders-0.0123-stray", "payments-3.0123-future"}


def test_one_partition_in_two_directories_is_refused_with_both_places() -> None:
    files = SimulatedFileSystem()
    for path in ("/a", "/a/orders-0", "/b", "/b/orders-0"):
        files.make_directory(path)
    with pytest.raises(LogDirectoryError, match=r"/a/orders-0 and /b/orders-0"):
        started(files, "/a", "/b")
    files.remove_directory("/b/orders-0")
    started(files, "/a", "/b")


def test_a_foreign_directory_is_named_and_nothing_in_it_is_touched() -> None:
    files = SimulatedFileSystem()
    for path in ("/data", "/data/photos"):
        files.make_directory(path)
    files.put("/data/photos/00000000000000000000.log.deleted", b"mine")
    with pytest.raises(LogDirectoryError, match="photos"):
        started(files)
    assert files.contents("/data/photos/00000000000000000000.log.deleted") == b"mine"


def test_a_log_that_cannot_be_opened_is_set_aside_with_the_reason_and_the_others_serve() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    fill(logs.create(PAYMENTS))
    logs.shutdown()
    files.put("/data/log-start-offset-checkpoint", b"0\n1\norders 0 11\n")
    again = started(files)
    with pytest.raises(UnknownLogError, match="starts at 11"):
        again.get(ORDERS)
    assert ORDERS in again
    assert again.get(PAYMENTS).log_end_offset == 10
    with pytest.raises(LogExistsError):
        again.create(ORDERS)


def test_a_directory_with_a_log_set_aside_is_not_marked_clean_and_keeps_its_checkpoint() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    logs.shutdown()
    files.put("/data/log-start-offset-checkpoint", b"0\n1\norders 0 11\n")
    started(files).shutdown()
    assert not files.exists(MARKER)
    assert read_offsets(files, "/data/log-start-offset-checkpoint") == {ORDERS: 11}
    assert read_offsets(files, "/data/recovery-point-offset-checkpoint") == {ORDERS: 10}


# --- identity and settings ------------------------------------------------------------------------


def test_directories_nobody_has_named_yet_get_the_identity_and_an_id_each() -> None:
    files = SimulatedFileSystem()
    wanted = Identity("cluster", 3, uuid.UUID(int=0))
    logs = started(files, "/a", "/b", identity=wanted)
    found = [directory.identity() for directory in logs.directories]
    assert {(each.cluster_id, each.node_id) for each in found if each} == {("cluster", 3)}
    assert len({each.directory_id for each in found if each}) == 2
    logs.shutdown()
    again = started(files, "/a", "/b", identity=wanted)
    assert [directory.identity() for directory in again.directories] == found


@pytest.mark.parametrize("other", [("cluster", 4), ("other", 3)])
def test_a_directory_of_another_node_or_cluster_is_refused(other: tuple[str, int]) -> None:
    files = SimulatedFileSystem()
    started(files, identity=Identity("cluster", 3, uuid.UUID(int=0))).shutdown()
    before = files.tree()
    with pytest.raises(LogDirectoryError, match="node 3 of cluster 'cluster'"):
        started(files, identity=Identity(*other, uuid.UUID(int=0)))
    assert files.tree() == before


def test_without_an_identity_meta_properties_is_neither_read_nor_written() -> None:
    files = SimulatedFileSystem()
    started(files).shutdown()
    assert not files.exists("/data/meta.properties")
    files.put("/data/meta.properties", b"garbage")
    started(files)


def test_a_topic_without_settings_of_its_own_has_the_brokers_under_their_other_names() -> None:
    config = BrokerConfig.from_properties(
        {
            "log.dirs": "/data",
            "log.segment.bytes": "2097152",
            "log.retention.minutes": "7",
            "log.roll.hours": "2",
            "log.cleanup.policy": "compact",
            "log.index.interval.bytes": "77",
        }
    )
    logs = LogManager(config, files=SimulatedFileSystem(), clock=ManualClock(START_MS))
    logs.start()
    topic = logs.create(ORDERS).config
    assert (topic.segment_bytes, topic.retention_ms, topic.segment_ms) == (
        2097152,
        7 * 60_000,
        2 * 3_600_000,
    )
    assert topic.compact
    assert topic.index_interval_bytes == 77


def test_log_dir_is_used_only_where_log_dirs_is_not_set() -> None:
    made = [
        BrokerConfig.from_properties(each).log_directories
        for each in ({"log.dir": "/a"}, {"log.dir": "/a", "log.dirs": "/b,/c"})
    ]
    assert made == [("/a",), ("/b", "/c")]


# --- a start that is refused ----------------------------------------------------------------------


def test_a_refused_start_lets_go_of_every_lock() -> None:
    files = SimulatedFileSystem()
    owner = started(files, "/b")
    with pytest.raises(LogDirectoryError):
        started(files, "/a", "/b")
    started(files, "/a").shutdown()
    owner.shutdown()


def test_a_refused_start_leaves_every_directory_as_it_was() -> None:
    files = SimulatedFileSystem()
    logs = started(files, "/a", "/b")
    fill(logs.create(ORDERS, directory="/a"))
    logs.shutdown()
    owner = manager(files, "/b")
    owner.start()
    before = files.tree("/a")
    with pytest.raises(LogDirectoryError):
        started(files, "/a", "/b")
    assert files.tree("/a") == before


def test_topics_that_differ_only_in_dots_and_underscores_cannot_both_be() -> None:
    logs = started(SimulatedFileSystem())
    logs.create(TopicPartition("a.b", 0))
    logs.create(TopicPartition("a.b", 1))
    with pytest.raises(TopicNameError, match="collides"):
        logs.create(TopicPartition("a_b", 0))
    logs.shutdown()


def test_a_directory_that_is_no_log_directory_is_refused_and_left_as_it_was() -> None:
    files = SimulatedFileSystem()
    files.make_directory("/data")
    files.make_directory("/data/photographs")
    with pytest.raises(LogDirectoryError, match="photographs"):
        manager(files).start()
    assert [entry.name for entry in files.list("/data")] == ["photographs"]


def test_a_log_made_anew_has_lost_nothing_that_its_namesake_had() -> None:
    files = SimulatedFileSystem()
    logs = started(files)
    fill(logs.create(ORDERS))
    logs.shutdown()
    files.rename("/data/orders-0", "/data/orders-0.0123456789abcdef0123456789abcdef-delete")
    again = started(files)
    again.create(ORDERS)
    crashed = started(files.after_crash(CrashMode.KEEP_ALL, 0))
    assert not crashed.get(ORDERS).is_damaged
    assert crashed.get(ORDERS).log_end_offset == 0
