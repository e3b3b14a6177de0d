"""Directories of Apache Kafka's that are not as they should be: adopted without a guess, or refused
with nothing changed; and adopted topics whose configs are given later."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from startup_worlds import (
    DyingFiles,
    Killed,
    append,
    create,
    data_of,
    opened,
    tree_of,
    unpack_kafka,
)

from stratalog.errors import (
    AdoptionError,
    CorruptFileError,
    InvalidRequestError,
    LogDirectoryError,
)
from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation
from stratalog.metadata.sqlite_store import METADATA_FILE
from stratalog.storage.layout import CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT, TopicPartition

ORDERS = TopicPartition("orders", 0)


def kafkas(directory: Path, topic: str = "orders", meta: str | None = None) -> Path:
    """A directory with one log, as another broker leaves it."""
    broker = opened(directory)
    create(broker, topic)
    append(broker, TopicPartition(topic, 0), "first")
    broker.close()
    (directory / METADATA_FILE).unlink()
    if meta is not None:
        (directory / "meta.properties").write_text(meta)
    return directory


# --- whose it is --------------------------------------------------------------------------------


@pytest.mark.parametrize("meta", ["version=0\nbroker.id=3\n", "version=1\nnode.id=3\n"])
def test_a_directory_that_names_no_cluster_is_adopted_and_opened_again(
    tmp_path: Path, meta: str
) -> None:
    kafkas(tmp_path, meta=meta)
    before = data_of(tmp_path)
    broker = opened(tmp_path)
    cluster_id = broker.store.image.cluster_id
    assert cluster_id
    broker.close()

    again = opened(tmp_path)
    assert (again.store.image.cluster_id, again.store.image.node_id) == (cluster_id, 3)
    assert ORDERS in again.logs
    again.close()
    assert (tmp_path / "meta.properties").read_text() == meta
    assert data_of(tmp_path) == before


def test_of_several_directories_one_may_leave_the_cluster_to_the_other(tmp_path: Path) -> None:
    named = kafkas(tmp_path / "named", meta="version=0\nbroker.id=3\ncluster.id=abc\n")
    silent = kafkas(tmp_path / "silent", "payments", "version=0\nbroker.id=3\n")
    for _ in range(2):
        broker = opened(named, silent)
        assert broker.store.image.cluster_id == "abc"
        assert set(broker.store.image.topics) == {"orders", "payments"}
        broker.close()


def test_a_directory_that_names_no_cluster_and_was_not_adopted_is_not_touched(
    tmp_path: Path,
) -> None:
    ours = tmp_path / "ours"
    opened(ours, node_id=3).close()
    foreign = kafkas(tmp_path / "foreign", meta="version=0\nbroker.id=3\n")
    before = tree_of(foreign)
    with pytest.raises(LogDirectoryError, match="belongs to node 3 of cluster ''"):
        opened(ours, foreign)
    after = {name: data for name, data in tree_of(foreign).items() if "-owner" not in name}
    assert after == before


def test_a_start_killed_anywhere_knows_the_directories_that_it_has_adopted(tmp_path: Path) -> None:
    meta = "version=0\nbroker.id=3\n"
    origin = tmp_path / "origin"
    origin.mkdir()
    kafkas(origin / "a", meta=meta)
    kafkas(origin / "b", "payments", meta)
    files = DyingFiles()
    whole = tmp_path / "whole"
    shutil.copytree(origin, whole)
    broker = opened(whole / "a", whole / "b", files=files)
    operations = files.operations
    broker.close()

    for operation in range(1, operations + 1):
        place = tmp_path / "killed"
        shutil.copytree(origin, place)
        with pytest.raises(Killed):
            opened(place / "a", place / "b", files=DyingFiles(operation))
        broker = opened(place / "a", place / "b")
        assert set(broker.store.image.topics) == {"orders", "payments"}
        broker.close()
        shutil.rmtree(place)


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ("version=2\nnode.id=3\ncluster.id=abc\n", "version 2"),
        ("version=1\nnode.id=-1\ncluster.id=abc\n", "node -1"),
        ("version=0\nbroker.id=2147483648\ncluster.id=abc\n", "node 2147483648"),
    ],
)
def test_an_identity_that_cannot_be_is_not_believed(tmp_path: Path, meta: str, why: str) -> None:
    kafkas(tmp_path, meta=meta)
    before = data_of(tmp_path)
    with pytest.raises(CorruptFileError, match=why):
        opened(tmp_path)
    assert data_of(tmp_path) == before


def test_a_log_that_was_moved_and_linked_is_the_one_of_its_link(tmp_path: Path) -> None:
    kafkas(tmp_path / "logs")
    (tmp_path / "logs" / "orders-0").rename(tmp_path / "elsewhere")
    (tmp_path / "logs" / "orders-0").symlink_to(tmp_path / "elsewhere")
    for _ in range(2):
        broker = opened(tmp_path / "logs")
        assert broker.logs.get(ORDERS).log_end_offset == 1
        broker.close()


# --- epochs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("latest", [1, 9])
def test_an_epoch_that_only_batches_know_goes_on(tmp_path: Path, latest: int) -> None:
    """Kafka writes the file of epochs a moment later than the batches: a kill may come between."""
    broker = opened(tmp_path)
    create(broker, "orders")
    append(broker, ORDERS, "first")
    log = broker.logs.get(ORDERS)
    log.epochs.assign(latest, log.log_end_offset)
    append(broker, ORDERS, "second")
    broker.close()
    for name in (METADATA_FILE, CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT):
        (tmp_path / name).unlink()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")

    broker = opened(tmp_path)
    log = broker.logs.get(ORDERS)
    epoch = broker.store.image.topic("orders").partitions[0].leader_epoch
    assert epoch == log.epochs.latest_epoch == latest
    assert [entry.epoch for entry in log.epochs.entries] == [0, latest]
    broker.close()


# --- configs ------------------------------------------------------------------------------------


# The size of a batch is not under its CRC: with one that is too large the rest looks like a write
# that was interrupted.
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeros at the end": lambda data: data + bytes(64),
    "a flipped bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "a size that is too large": lambda data: data[:9] + b"\x7f" + data[10:],
}


@pytest.mark.parametrize("damaged", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_controllers_log_that_cannot_be_read_is_not_believed_in_part(
    tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    unpack_kafka(tmp_path)
    controllers = tmp_path / "__cluster_metadata-0"
    log = controllers / "00000000000000000000.log"
    log.write_bytes(damaged(log.read_bytes()))
    for snapshot in controllers.glob("*.checkpoint"):
        snapshot.unlink()
    before = data_of(tmp_path)
    with pytest.raises(AdoptionError, match=r"__cluster_metadata-0 cannot be read .* moved away"):
        opened(tmp_path)
    assert data_of(tmp_path) == before

    controllers.rename(tmp_path.parent / f"{tmp_path.name}-controller")
    broker = opened(tmp_path)
    assert set(broker.held) == {"compacted", "forever", "plain", "reborn"}
    broker.close()


def test_a_write_of_the_controller_that_was_interrupted_is_passed_over(tmp_path: Path) -> None:
    answers = unpack_kafka(tmp_path)
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:50])
    broker = opened(tmp_path)
    topics = broker.store.image.topics
    assert {name: dict(topic.configs) for name, topic in topics.items()} == answers["configs"]
    broker.close()


def test_what_the_controller_said_of_a_held_topic_stays_when_the_rest_is_given(
    tmp_path: Path,
) -> None:
    """Otherwise a compacted topic would be deleted by who says how long its tombstones stay."""
    unpack_kafka(tmp_path)
    broker = opened(tmp_path, is_config_known=False)
    recorded = dict(broker.store.image.topic("compacted").configs)
    assert recorded["cleanup.policy"].startswith("compact")
    assert "compacted" in broker.held

    given = {"min.compaction.lag.ms": "0"}
    assert broker.store.set_known("compacted", given).configs == {**recorded, **given}
    broker.close()


def test_what_is_known_of_a_held_topic_counts_for_its_logs(tmp_path: Path) -> None:
    unpack_kafka(tmp_path)
    broker = opened(tmp_path, is_config_known=False)
    compacted = TopicPartition("compacted", 0)
    assert broker.logs.get(compacted).config.compact
    change = ConfigChange("max.message.bytes", ConfigOperation.SET, "5000000")
    broker.store.alter_topic_configs("plain", [change])
    topic = broker.store.create_partitions("plain", 4)
    broker.logs.create(TopicPartition("plain", 3), topic_id=topic.topic_id)
    assert broker.logs.get(TopicPartition("plain", 3)).config.max_message_bytes == 5_000_000
    broker.close()

    broker = opened(tmp_path)
    assert broker.logs.get(compacted).config.compact
    assert broker.logs.get(TopicPartition("plain", 0)).config.max_message_bytes == 5_000_000
    assert all(log.is_held for log in broker.logs)
    broker.close()


def test_a_topic_whose_configs_are_known_is_not_adopted_again(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    create(broker, "orders", retention_ms="-1")
    with pytest.raises(InvalidRequestError, match="'orders' is not held"):
        broker.store.set_known("orders", {})
    assert broker.store.image.topic("orders").configs == {"retention.ms": "-1"}
    broker.close()
