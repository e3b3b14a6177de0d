"""One log directory: its lock, identity, marker and checkpoints."""

import errno
import uuid

import pytest
from small_logs import CONFIG, START_MS, produced

from stratalog.errors import CorruptFileError, DiskError, DiskFullError, LogDirectoryError
from stratalog.storage.checkpoint import format_id, read_offsets
from stratalog.storage.context import DiskState, LogContext
from stratalog.storage.directory import Identity, LogDirectory
from stratalog.storage.handles import HandleCache
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.testing import CrashMode, ManualClock, PowerLoss, SimulatedFileSystem

PATH = "/data"
MARKER = "/data/.kafka_cleanshutdown"
ORDERS = TopicPartition("orders", 0)
DIRECTORY_ID = uuid.UUID(bytes=bytes(range(16)))


def disk() -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    files.make_directory(PATH)
    files.sync_directory("/")
    return files


def with_log(directory: LogDirectory, key: TopicPartition = ORDERS, *, batches: int = 3) -> Log:
    path = f"{PATH}/{key}"
    directory.files.make_directory(path)
    context = LogContext(
        directory.files, ManualClock(START_MS), HandleCache(), directory.state, flush_on_ack=False
    )
    log = open_log(path, CONFIG, context, clean=True)
    for _ in range(batches):
        log.append_as_leader(produced("x"))
    log.update_high_watermark(log.log_end_offset)
    directory.logs[key] = log
    return log


# --- ownership ------------------------------------------------------------------------------------


def test_a_missing_directory_is_made_and_its_name_is_durable() -> None:
    files = SimulatedFileSystem()
    LogDirectory(files, PATH).acquire()
    assert [(each.kind, each.path) for each in files.trace[:2]] == [
        ("mkdir", PATH),
        ("sync_directory", "/"),
    ]
    assert files.after_crash(CrashMode.LOSE_UNSYNCED).exists(PATH)


def test_something_that_is_no_directory_cannot_be_a_log_directory() -> None:
    files = SimulatedFileSystem()
    files.put(PATH, b"")
    with pytest.raises(LogDirectoryError, match="not a directory"):
        LogDirectory(files, PATH).acquire()


def test_a_directory_has_one_owner_at_a_time() -> None:
    files = disk()
    first = LogDirectory(files, PATH)
    first.acquire()
    assert files.contents("/data/.lock") == b""
    with pytest.raises(LogDirectoryError, match="locked"):
        LogDirectory(files, PATH).acquire()
    first.release()
    first.release()
    LogDirectory(files, PATH).acquire()


# --- identity -------------------------------------------------------------------------------------


def test_an_identity_is_read_back_as_it_was_assigned_and_durable() -> None:
    files = disk()
    directory = LogDirectory(files, PATH)
    assert directory.identity() is None
    identity = Identity("MkU3OEVBNTcwNTJENDM2Qg", 3, DIRECTORY_ID)
    directory.assign_identity(identity)
    assert directory.identity() == identity
    assert files.is_synced("/data/meta.properties")


def test_meta_properties_has_version_1_cluster_node_and_directory_id() -> None:
    files = disk()
    LogDirectory(files, PATH).assign_identity(Identity("abc", 3, DIRECTORY_ID))
    lines = files.contents("/data/meta.properties").decode().splitlines()
    assert sorted(line for line in lines if not line.startswith("#")) == [
        "cluster.id=abc",
        f"directory.id={format_id(DIRECTORY_ID)}",
        "node.id=3",
        "version=1",
    ]


def test_meta_properties_as_apache_kafka_writes_it_is_read() -> None:
    files = disk()
    files.put(
        "/data/meta.properties",
        b"#\n#Sun Nov 15 21:00:00 UTC 2026\nnode.id=1\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n"
        b"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n",
    )
    assert LogDirectory(files, PATH).identity() == Identity(
        "MkU3OEVBNTcwNTJENDM2Qg", 1, DIRECTORY_ID
    )


def test_version_0_has_a_broker_id_and_no_directory_id() -> None:
    files = disk()
    files.put("/data/meta.properties", b"version=0\nbroker.id=7\ncluster.id=c\n")
    assert LogDirectory(files, PATH).identity() == Identity("c", 7, uuid.UUID(int=0))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version=1\ncluster.id=c\n",
        b"version=one\nnode.id=1\n",
        b"version=1\nnode.id=x\n",
        b"version=1\nnode.id=1\ndirectory.id=short\n",
        b"version=0\nnode.id=1\n",
        b"\xff\xfe\x00",
        b"version=1\nnode.id=1\ncluster.id=\\u12\n",
    ],
)
def test_meta_properties_without_what_it_must_say_is_corrupt(content: bytes) -> None:
    files = disk()
    files.put("/data/meta.properties", content)
    with pytest.raises(CorruptFileError, match=r"meta\.properties"):
        LogDirectory(files, PATH).identity()


# --- what is inside -------------------------------------------------------------------------------


def test_replicas_are_the_directories_called_topic_dash_partition() -> None:
    files = disk()
    for name in ("orders-0", "a-b-7", "orders-1.0123-delete", "x-2.ab-stray", "y-0.ab-future"):
        files.make_directory(f"{PATH}/{name}")
    found = LogDirectory(files, PATH).replicas()
    assert [(path, str(name.topic_partition), name.state) for path, name in found] == [
        ("/data/a-b-7", "a-b-7", ""),
        ("/data/orders-0", "orders-0", ""),
        ("/data/orders-1.0123-delete", "orders-1", "-delete"),
        ("/data/x-2.ab-stray", "x-2", "-stray"),
        ("/data/y-0.ab-future", "y-0", "-future"),
    ]


def test_files_the_remote_index_cache_and_the_cluster_metadata_are_passed_over() -> None:
    files = disk()
    files.put("/data/README", b"")
    files.put("/data/.stratalog-owner", b"")
    files.make_directory("/data/remote-log-index-cache")
    files.make_directory("/data/__cluster_metadata-0")
    assert LogDirectory(files, PATH).replicas() == []


def test_any_other_directory_is_refused_by_name() -> None:
    files = disk()
    files.make_directory("/data/lost+found")
    with pytest.raises(Exception, match=r"lost\+found"):
        LogDirectory(files, PATH).replicas()


# --- the clean-shutdown marker --------------------------------------------------------------------


def test_the_marker_is_json_with_version_and_broker_epoch_and_durable() -> None:
    files = disk()
    LogDirectory(files, PATH).write_clean_marker()
    assert files.contents(MARKER) == b'{"version":0,"brokerEpoch":-1}'
    assert files.is_synced(MARKER)
    LogDirectory(files, PATH).write_clean_marker(113)
    assert files.contents(MARKER) == b'{"version":0,"brokerEpoch":113}'
    LogDirectory(files, PATH).write_clean_marker()
    assert files.contents(MARKER) == b'{"version":0,"brokerEpoch":-1}'


@pytest.mark.parametrize("content", [b"", b'{"version":0,"brokerEpoch":5,"more":1}', b"\xff"])
def test_only_the_markers_existence_counts(content: bytes) -> None:
    files = disk()
    files.put(MARKER, content)
    directory = LogDirectory(files, PATH)
    assert directory.take_clean_marker()
    assert not directory.take_clean_marker()


def test_a_marker_is_gone_for_good_before_a_start_goes_on() -> None:
    files = disk()
    files.put(MARKER, b"{}")
    LogDirectory(files, PATH).take_clean_marker()
    for mode in CrashMode:
        assert not files.after_crash(mode).exists(MARKER)


def test_a_crash_while_the_marker_is_written_leaves_the_logs_as_they_are() -> None:
    files = disk()
    start = files.operations
    LogDirectory(files, PATH).write_clean_marker()
    for number in range(1, files.operations - start + 1):
        again = disk()
        again.crash_at(again.operations + number, inside=True)
        with pytest.raises(PowerLoss):
            LogDirectory(again, PATH).write_clean_marker()
        LogDirectory(again.after_crash(CrashMode.MIXED, number), PATH).take_clean_marker()


# --- checkpoints ----------------------------------------------------------------------------------


def test_each_checkpoint_holds_its_own_offset_of_every_log() -> None:
    directory = LogDirectory(disk(), PATH)
    log = with_log(directory)
    other = with_log(directory, TopicPartition("a-b", 7), batches=1)
    log.flush()
    log.update_high_watermark(4)
    directory.checkpoint_recovery_points()
    directory.checkpoint_high_watermarks()
    assert directory.recovery_points() == {ORDERS: 6, other.topic_partition: 0}
    assert directory.high_watermarks() == {ORDERS: 4, other.topic_partition: 2}
    names = {"recovery-point-offset-checkpoint", "replication-offset-checkpoint"}
    assert names <= set(directory.files.tree(PATH))  # type: ignore[attr-defined]


def test_a_log_start_is_checkpointed_only_where_it_is_inside_the_first_segment() -> None:
    directory = LogDirectory(disk(), PATH)
    log = with_log(directory)
    with_log(directory, TopicPartition("whole", 0))
    directory.checkpoint_log_start_offsets()
    assert directory.log_start_offsets() == {}
    log.raise_log_start_offset(3)
    directory.checkpoint_log_start_offsets()
    assert directory.log_start_offsets() == {ORDERS: 3}


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff", b"0\n9\n", b"7\n0\n"])
def test_a_checkpoint_that_cannot_be_read_counts_as_empty(name: str, content: bytes) -> None:
    files = disk()
    files.put(f"/data/{name}", content)
    directory = LogDirectory(files, PATH)
    for read in (directory.log_start_offsets, directory.high_watermarks):
        assert read() == {}
    assert directory.recovery_points() is None, "nobody knows what is flushed"


def test_the_entries_of_logs_that_could_not_be_opened_are_kept() -> None:
    files = disk()
    path = "/data/recovery-point-offset-checkpoint"
    files.put(path, b"0\n3\norders 0 1\nbroken 0 17\ngone 0 5\n")
    directory = LogDirectory(files, PATH)
    with_log(directory).flush()
    directory.offline_logs[TopicPartition("broken", 0)] = "why"
    directory.checkpoint_recovery_points()
    assert read_offsets(files, path) == {ORDERS: 6, TopicPartition("broken", 0): 17}


def test_a_checkpoint_that_says_what_its_file_says_is_not_written_again() -> None:
    directory = LogDirectory(disk(), PATH)
    log = with_log(directory)
    directory.checkpoint_high_watermarks()
    before = directory.files.operations  # type: ignore[attr-defined]
    directory.checkpoint_high_watermarks()
    assert directory.files.operations == before  # type: ignore[attr-defined]
    log.append_as_leader(produced("more"))
    log.update_high_watermark(log.log_end_offset)
    directory.checkpoint_high_watermarks()
    assert directory.high_watermarks() == {ORDERS: log.log_end_offset}


def test_a_checkpoint_whose_file_was_taken_away_is_written_again() -> None:
    files = disk()
    directory = LogDirectory(files, PATH)
    log = with_log(directory)
    directory.checkpoint_high_watermarks()
    files.unlink(f"{PATH}/replication-offset-checkpoint")
    directory.checkpoint_high_watermarks()
    assert directory.high_watermarks() == {ORDERS: log.log_end_offset}


def test_after_a_write_that_failed_nobody_takes_the_file_to_say_what_it_said_before() -> None:
    files = disk()
    directory = LogDirectory(files, PATH)
    log = with_log(directory)
    directory.checkpoint_recovery_points()
    log.flush()
    files.fail(lambda each: each.kind == "sync_directory", errno.ENOSPC)  # the name is there
    with pytest.raises(DiskFullError):
        directory.checkpoint_recovery_points()
    log.recovery_point = 0
    directory.checkpoint_recovery_points()
    assert directory.recovery_points() == {ORDERS: 0}


def test_only_logs_with_files_to_remove_are_asked_until_the_last_of_them_is_gone() -> None:
    directory = LogDirectory(disk(), PATH)
    log = with_log(directory)
    janitor = Janitor(directory.files, is_threaded=False)
    waste = directory.state.with_waste
    assert waste == set()
    log.pending_deletes.add([f"{PATH}/a"], 5)
    log.pending_deletes.add([f"{PATH}/b"], 9)
    directory.remove_due(janitor, 5, is_last=False)
    assert (waste, len(log.pending_deletes)) == ({ORDERS}, 1)
    directory.remove_due(janitor, 9, is_last=False)
    assert (waste, len(log.pending_deletes)) == (set(), 0)


def test_a_checkpoint_that_the_disk_refuses_takes_the_directory_offline_and_says_why() -> None:
    files = disk()
    directory = LogDirectory(files, PATH)
    with_log(directory)
    files.fail(lambda each: each.kind == "sync" and "checkpoint" in each.path, errno.EIO)
    with pytest.raises(DiskError):
        directory.checkpoint_recovery_points()
    assert not directory.is_online
    assert "recovery-point" in directory.state.reason


def test_a_checkpoint_for_which_there_is_no_room_leaves_the_old_one_and_the_directory_online() -> (
    None
):
    files = disk()
    directory = LogDirectory(files, PATH)
    log = with_log(directory)
    directory.checkpoint_recovery_points()
    log.flush()
    files.fail(lambda each: each.kind == "write" and "checkpoint" in each.path, errno.ENOSPC)
    with pytest.raises(DiskFullError):
        directory.checkpoint_recovery_points()
    assert directory.is_online
    assert directory.recovery_points() == {ORDERS: 0}
    directory.checkpoint_recovery_points()
    assert directory.recovery_points() == {ORDERS: 6}


def test_a_failed_directory_says_so() -> None:
    directory = LogDirectory(disk(), PATH)
    assert directory.is_online
    directory.fail("the disk is gone")
    assert (directory.state.state, directory.state.reason) == (
        DiskState.OFFLINE,
        "the disk is gone",
    )
    assert "offline" in repr(directory)
