"""Opening a broker's directories: found, adopted, reconciled, and never guessed at."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from startup_worlds import (
    DAY_MS,
    START_MS,
    BrokenDisk,
    DyingFiles,
    Killed,
    append,
    create,
    data_of,
    opened,
    tree_of,
    unpack_kafka,
)

from stratalog.broker.opening_progress import EVENT_MS, OpeningProgress
from stratalog.errors import ConfigError, LogDirectoryError
from stratalog.metadata import NewTopic, TopicState
from stratalog.metadata.producer_ids import PRODUCER_ID_MIN
from stratalog.metadata.sqlite_store import METADATA_FILE, METADATA_POINTER, SqliteMetadataStore
from stratalog.storage.layout import TopicPartition
from stratalog.storage.loading import LoadProgress
from stratalog.testing import ManualClock

ORDERS = TopicPartition("orders", 0)
ANOTHER_ID = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAABAg"


# --- a new directory ----------------------------------------------------------------------------


def test_a_new_directory_gets_an_identity_and_keeps_it(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    broker = opened(directory)
    cluster_id = broker.store.image.cluster_id
    broker.close()

    said = (directory / "meta.properties").read_text()
    assert f"cluster.id={cluster_id}\n" in said
    assert "node.id=1\n" in said
    again = opened(directory)
    assert (again.store.image.cluster_id, again.store.image.node_id) == (cluster_id, 1)
    assert (directory / "meta.properties").read_text() == said
    again.close()


def test_a_node_id_that_is_stated_counts_and_cannot_change(tmp_path: Path) -> None:
    broker = opened(tmp_path, node_id=7)
    assert broker.store.image.node_id == 7
    broker.close()
    opened(tmp_path).close()

    with pytest.raises(ConfigError, match="is not that of these directories, 7"):
        opened(tmp_path, broker_id=8)
    opened(tmp_path, broker_id=7).close()


def test_every_directory_of_several_gets_the_same_identity(tmp_path: Path) -> None:
    opened(tmp_path / "a", tmp_path / "b").close()
    said = [(tmp_path / name / "meta.properties").read_text() for name in "ab"]
    assert [line for line in said[0].splitlines() if "directory.id" not in line] == [
        line for line in said[1].splitlines() if "directory.id" not in line
    ]
    assert said[0] != said[1]


# --- one owner ----------------------------------------------------------------------------------


def test_a_second_owner_is_refused_with_the_pid_of_the_first_and_changes_nothing(
    tmp_path: Path,
) -> None:
    free, taken = tmp_path / "free", tmp_path / "taken"
    broker = opened(taken)
    create(broker, "orders")
    before = tree_of(taken)
    code = f"""
        from stratalog.broker.startup import open_broker
        from stratalog.config import BrokerConfig
        from stratalog.errors import LogDirectoryError
        try:
            open_broker(BrokerConfig(log_dirs=({str(free)!r}, {str(taken)!r})))
        except LogDirectoryError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert f"is locked by process {os.getpid()}" in done.stdout
    assert tree_of(taken) == before
    assert tree_of(free) == {}
    broker.close()


def test_a_start_that_fails_lets_go_of_the_locks(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / METADATA_FILE).write_bytes(b"no database at all" * 100)
    for _ in range(2):
        with pytest.raises(Exception, match="not a database"):
            opened(tmp_path)


# --- which store counts -------------------------------------------------------------------------


def test_the_store_is_found_wherever_it_is(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    broker = opened(b)
    create(broker, "orders")
    broker.close()

    broker = opened(a, b)
    assert "orders" in broker.store.image.topics
    broker.close()
    assert not (a / METADATA_FILE).exists()


def test_directories_are_not_adopted_while_their_metadata_is_elsewhere(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    broker = opened(a, b)
    create(broker, "orders", 2)
    broker.close()
    before = tree_of(b)

    with pytest.raises(LogDirectoryError, match=f"the metadata of {b} is in {a}"):
        opened(b)
    assert tree_of(b) == before
    assert (b / METADATA_POINTER).read_text() == f"{a}\n"
    broker = opened(b, a)
    assert len(list(broker.logs)) == 2
    broker.close()


def test_two_stores_are_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    opened(a).close()
    opened(b).close()
    with pytest.raises(LogDirectoryError, match="only one can count"):
        opened(a, b)


@pytest.mark.parametrize("has_identity", [True, False])
def test_a_directory_of_somebody_else_is_refused_and_nothing_in_it_is_renamed(
    tmp_path: Path, *, has_identity: bool
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    opened(ours).close()
    broker = opened(theirs)
    create(broker, "orders")
    broker.close()
    (theirs / METADATA_FILE).unlink()
    if not has_identity:
        (theirs / "meta.properties").unlink()
    before = tree_of(theirs)

    sentence = "belongs to node 1 of cluster" if has_identity else "is not a directory of this"
    with pytest.raises(LogDirectoryError, match=sentence):
        opened(ours, theirs)
    assert tree_of(theirs) == before


def test_without_a_directory_that_may_hold_the_metadata_nothing_starts(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("a file")
    (tmp_path / "sound").mkdir()
    with pytest.raises(LogDirectoryError, match="is not a directory"):
        opened(tmp_path / "sound", broken)
    assert not (tmp_path / "sound" / METADATA_FILE).exists()


# --- adoption -----------------------------------------------------------------------------------


def test_kafkas_directory_is_adopted_with_its_topics_ids_configs_and_epochs(tmp_path: Path) -> None:
    answers = unpack_kafka(tmp_path)
    identity = (tmp_path / "meta.properties").read_bytes()
    broker = opened(tmp_path)
    image = broker.store.image

    assert {name: dict(topic.configs) for name, topic in image.topics.items()} == answers["configs"]
    for name, topic in image.topics.items():
        for each in topic.partitions:
            assert each.leader_epoch == answers["leader_epochs"][name][each.partition] + 1
            log = broker.logs.get(TopicPartition(name, each.partition))
            assert log.topic_id == topic.topic_id
            assert log.epochs.latest_epoch == each.leader_epoch
            assert not log.is_held
    assert broker.store.broker.log_retention_ms == 123456789
    assert broker.logs.config.log_retention_ms == 123456789
    assert broker.held == {}
    broker.close()
    assert (tmp_path / "meta.properties").read_bytes() == identity


def test_without_its_brokers_settings_what_they_decide_is_held(tmp_path: Path) -> None:
    unpack_kafka(tmp_path)
    broker = opened(tmp_path, is_config_known=False)
    assert "leaves cleanup.policy" in broker.held["plain"]
    assert broker.logs.get(TopicPartition("plain", 0)).is_held
    broker.close()


def test_a_directory_without_its_controllers_log_is_served_and_held(tmp_path: Path) -> None:
    unpack_kafka(tmp_path)
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    broker = opened(tmp_path)
    topics = set(broker.store.image.topics)
    assert topics == {"compacted", "forever", "plain", "reborn"}
    assert set(broker.held) == topics
    assert all(log.is_held for log in broker.logs)
    broker.close()

    again = opened(tmp_path)
    assert set(again.held) == topics
    assert all(log.is_held for log in again.logs)
    again.store.set_known("plain", {"retention.ms": "5"})
    again.close()

    known = opened(tmp_path)
    assert set(known.held) == topics - {"plain"}
    assert known.logs.get(TopicPartition("plain", 0)).config.retention_ms == 5
    known.close()


@pytest.mark.parametrize("has_controller", [True, False])
def test_nothing_adopted_is_removed_in_ten_days(tmp_path: Path, *, has_controller: bool) -> None:
    """But for what Kafka's own configs remove: ``reborn`` has retention.ms no more, ``compacted``
    deletes after 77 ms only what is not active; the records of ``plain`` are from 1970."""
    unpack_kafka(tmp_path)
    if not has_controller:
        shutil.rmtree(tmp_path / "__cluster_metadata-0")
    before = data_of(tmp_path)
    clock = ManualClock(START_MS)
    broker = opened(tmp_path, files=DyingFiles(), clock=clock, is_config_known=False)
    for _ in range(10 * 24):
        clock.advance(3_600_000)
        broker.logs.run_due()
    assert broker.logs.retention_failures == {}
    broker.close()
    assert data_of(tmp_path) == before


@pytest.mark.parametrize("is_known", [True, False])
def test_old_records_go_by_the_topics_own_configs_and_by_nobody_elses(
    tmp_path: Path, *, is_known: bool
) -> None:
    topics = {
        "week": {"retention_ms": str(7 * DAY_MS), "retention_bytes": "-1"},
        "forever": {"retention_ms": "-1", "retention_bytes": "-1"},
        "latest": {
            "cleanup_policy": "compact",
            "min_cleanable_dirty_ratio": "0.01",
            "min_compaction_lag_ms": "0",
            "delete_retention_ms": "0",
        },
    }
    broker = opened(tmp_path, files=DyingFiles())
    for name, configs in topics.items():
        create(broker, name, internal_segment_bytes="200", **configs)
        for number in range(8):
            append(broker, TopicPartition(name, 0), f"number {number}" * 10)
    for log in broker.logs:
        log.update_high_watermark(log.log_end_offset)
    broker.close()
    if not is_known:
        (tmp_path / METADATA_FILE).unlink()
    before = data_of(tmp_path)

    clock = ManualClock(START_MS)
    broker = opened(tmp_path, files=DyingFiles(), clock=clock)
    for _ in range(10 * 24):
        clock.advance(3_600_000)
        broker.logs.run_due()
    broker.close()
    after = data_of(tmp_path)
    changed = {name.partition("-")[0] for name in before if after.get(name) != before[name]}
    assert changed == ({"week", "latest"} if is_known else set())


def test_a_topic_that_kafka_deleted_becomes_a_stray_with_all_its_bytes(tmp_path: Path) -> None:
    unpack_kafka(tmp_path)
    source = tmp_path / "plain-0"
    stale = tmp_path / "reborn-1"
    shutil.copytree(source, stale)
    # The same name, another id: of the topic before this one.
    (stale / "partition.metadata").write_text(ANOTHER_ID)
    bytes_before = (stale / "00000000000000000000.log").read_bytes()
    broker = opened(tmp_path)
    assert any("reborn-1 is of no topic" in note for note in broker.notes)
    broker.close()
    (stray,) = tmp_path.glob("reborn-1.*-stray")
    assert (stray / "00000000000000000000.log").read_bytes() == bytes_before


# --- reconciliation -----------------------------------------------------------------------------


def test_an_unknown_directory_becomes_a_stray_and_never_a_topic(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    create(broker, "orders")
    append(broker, ORDERS, "first")
    broker.close()
    shutil.copytree(tmp_path / "orders-0", tmp_path / "dropped-0")

    broker = opened(tmp_path)
    assert set(broker.store.image.topics) == {"orders"}
    assert [log.topic_partition for log in broker.logs] == [ORDERS]
    broker.close()
    (stray,) = tmp_path.glob("dropped-0.*-stray")
    assert data_of(tmp_path)[f"{stray.name}/00000000000000000000.log"]


def test_what_was_being_deleted_is_deleted(tmp_path: Path) -> None:
    clock = ManualClock(START_MS)
    broker = opened(tmp_path)
    create(broker, "orders", 2)
    broker.store.begin_delete(broker.store.image.topic("orders").topic_id)
    broker.close()

    broker = opened(tmp_path, clock=clock)
    assert not broker.store.image.topics
    assert not broker.store.image.deleting
    assert list(broker.logs) == []
    assert len(list(tmp_path.glob("orders-*-delete"))) == 2
    clock.advance(DAY_MS)
    broker.logs.run_due()
    broker.close()
    assert list(tmp_path.glob("orders-*")) == []


def test_what_was_being_created_is_created(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    (topic,) = broker.store.create_topics([NewTopic(name="orders", partition_count=3)])
    broker.logs.create(TopicPartition("orders", 1), topic_id=topic.topic_id)  # type: ignore[union-attr]
    broker.close()

    broker = opened(tmp_path)
    found = broker.store.image.topic("orders")
    assert found.state is TopicState.LIVE
    assert sorted(log.topic_partition.partition for log in broker.logs) == [0, 1, 2]
    assert {log.topic_id for log in broker.logs} == {found.topic_id}
    broker.close()


def test_a_directory_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    create(broker, "orders", 2)
    broker.close()
    shutil.rmtree(tmp_path / "orders-1")

    broker = opened(tmp_path)
    assert any("orders-1 is gone" in note for note in broker.notes)
    assert TopicPartition("orders", 1) not in broker.logs
    assert not (tmp_path / "orders-1").exists()
    broker.close()


# --- a disk that is gone ------------------------------------------------------------------------


def test_what_may_be_on_a_disk_that_is_gone_is_neither_made_anew_nor_forgotten(
    tmp_path: Path,
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    broker = opened(a, b)
    for name in ("orders", "old"):
        create(broker, name, 4)
    broker.store.begin_delete(broker.store.image.topic("old").topic_id)
    broker.store.create_topic(NewTopic(name="new", partition_count=2))
    broker.close()

    broker = opened(a, b, files=BrokenDisk(b))
    image = broker.store.image
    assert len(image.deleting) == 1, "some of it is still there"
    assert image.topic("new").state is TopicState.CREATING
    assert {log.topic_partition.topic for log in broker.logs} == {"orders"}
    assert len(list(broker.logs)) == 2
    assert len([note for note in broker.notes if note.startswith("the directory of orders-")]) == 2
    broker.close()

    broker = opened(a, b)
    image = broker.store.image
    assert not image.deleting
    assert image.topic("new").state is TopicState.LIVE
    found = sorted(str(log.topic_partition) for log in broker.logs)
    assert found == ["new-0", "new-1", "orders-0", "orders-1", "orders-2", "orders-3"]
    broker.close()


@pytest.mark.parametrize("has_store", [True, False])
def test_nothing_is_adopted_in_part(tmp_path: Path, *, has_store: bool) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    unpack_kafka(b)
    if has_store:  # as a start leaves it that was killed very early
        SqliteMetadataStore.open(str(a / METADATA_FILE)).close()
    with pytest.raises(LogDirectoryError, match=f"{b} cannot be used"):
        opened(a, b, files=BrokenDisk(b))
    broker = opened(a, b)
    assert set(broker.store.image.topics) == {"compacted", "forever", "plain", "reborn"}
    broker.close()


# --- killed anywhere ----------------------------------------------------------------------------


def _after(directory: Path) -> tuple[object, ...]:
    broker = opened(directory, files=DyingFiles())
    image = broker.store.image
    state = (
        {
            name: (topic.topic_id, topic.state, topic.is_held)
            for name, topic in image.topics.items()
        },
        {log.topic_partition: (log.topic_id, log.log_end_offset) for log in broker.logs},
        f"cluster.id={image.cluster_id}\n" in (directory / "meta.properties").read_text(),
        len(image.deleting),
        image.next_producer_id >= PRODUCER_ID_MIN,
    )
    broker.close()
    strays = sorted(each.name.partition(".")[0] for each in directory.glob("*-stray"))
    return (*state, strays)


def _prepare(kind: str, directory: Path) -> None:
    if kind == "nobody's":
        unpack_kafka(directory)
        (directory / "meta.properties").unlink()
        shutil.rmtree(directory / "__cluster_metadata-0")
        return
    if kind == "adopted":
        unpack_kafka(directory)
        shutil.copytree(directory / "plain-0", directory / "reborn-1")
        (directory / "reborn-1" / "partition.metadata").write_text(ANOTHER_ID)
        return
    broker = opened(directory)
    create(broker, "orders", 2)
    append(broker, ORDERS, "first")
    create(broker, "old", 2)
    broker.store.begin_delete(broker.store.image.topic("old").topic_id)
    broker.store.create_topic(NewTopic(name="new", partition_count=2))
    broker.close()
    shutil.copytree(directory / "orders-0", directory / "dropped-0")


@pytest.mark.parametrize("points", [8, pytest.param(1_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", ["adopted", "nobody's", "reconciled"])
def test_a_start_killed_anywhere_is_settled_by_the_next(
    tmp_path: Path, kind: str, points: int
) -> None:
    origin = tmp_path / "origin"
    _prepare(kind, origin)
    whole = tmp_path / "whole"
    shutil.copytree(origin, whole)
    files = DyingFiles()
    broker = opened(whole, files=files)
    operations = files.operations
    broker.close()
    expected = _after(whole)
    ids = [topic[0] for topic in expected[0].values()]  # type: ignore[attr-defined]
    assert len(set(ids)) == len(ids)

    for operation in range(1, operations + 1, max(1, operations // points)):
        directory = tmp_path / "killed"
        shutil.copytree(origin, directory)
        with pytest.raises(Killed):
            opened(directory, files=DyingFiles(operation))
        assert _after(directory) == expected, f"killed before operation {operation}"
        shutil.rmtree(directory)


# --- while it opens -------------------------------------------------------------------------------


def test_a_start_that_takes_long_says_how_far_it_has_come(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(START_MS)
    tell = OpeningProgress(clock.now_ms)
    progress = LoadProgress(tell, logs_total=3)
    with caplog.at_level("INFO", "stratalog"):
        progress.opened()
        clock.advance(EVENT_MS)
        progress.scanned(700)
        progress.opened()
    (told,) = caplog.records
    assert told.message == "opening_logs"
    assert told.fields == {"opened": 1, "logs": 3, "read_again_bytes": 700}  # type: ignore[attr-defined]
