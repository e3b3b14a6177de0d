"""A start after Apache Kafka's turn: what its controller wrote counts, and strays come back."""

import uuid
from pathlib import Path

import pytest
from startup_worlds import append, create, opened, unpack_kafka

from metadata_records import config, log_of, partition, record, topic
from stratalog.directories.controller_log import read_controller
from stratalog.directories.known_directory import learn_directory
from stratalog.errors import AdoptionError
from stratalog.metadata import ConfigChange, ConfigOperation
from stratalog.metadata.cluster_log import ClusterMetadata
from stratalog.metadata.image import configs_by_broker
from stratalog.storage.checkpoint import format_id
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import CLEAN_SHUTDOWN_FILE, TopicPartition

PLAIN = TopicPartition("plain", 0)
NEW_ID = uuid.UUID(int=7 << 100)


def controller(log_dir: Path) -> ClusterMetadata:
    found = read_controller([LogDirectory(OsFileSystem(), str(log_dir))])
    assert found is not None
    return found


def id_of(log_dir: Path, name: str) -> uuid.UUID:
    return next(each.topic_id for each in controller(log_dir).topics.values() if each.name == name)


def kafkas_turn(log_dir: Path, *records: bytes) -> None:
    """What Kafka's controller adds to its log."""
    end = controller(log_dir).end_offset
    (file,) = (log_dir / "__cluster_metadata-0").glob("*.log")
    with file.open("ab") as log:
        log.write(log_of(records, base_offset=end))


def made_by_kafka(log_dir: Path, name: str, topic_id: uuid.UUID, number: int = 0) -> None:
    directory = log_dir / f"{name}-{number}"
    directory.mkdir()
    (directory / f"{0:020}.log").touch()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {format_id(topic_id)}")


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A directory of Kafka's that was served here and left."""
    unpack_kafka(tmp_path)
    opened(tmp_path).close()
    return tmp_path


def test_what_kafka_made_altered_and_deleted_is_followed_by_the_next_start(served: Path) -> None:
    compacted, reborn = id_of(served, "compacted"), id_of(served, "reborn")
    kafkas_turn(
        served,
        config("plain", "retention.ms", "42"),
        record("REMOVE_TOPIC", topicId=reborn),
        topic("new", NEW_ID),
        partition(NEW_ID, 0),
        partition(compacted, 3),
    )
    made_by_kafka(served, "new", NEW_ID)
    made_by_kafka(served, "compacted", compacted, 3)

    broker = opened(served)
    image = broker.store.image
    assert set(image.topics) == {"compacted", "forever", "new", "plain"}
    assert image.topic("plain").configs == {"retention.ms": "42"}
    assert len(image.topic("compacted").partitions) == 4
    logs = {str(log.topic_partition) for log in broker.logs}
    assert {"new-0", "compacted-3"} <= logs
    assert not {each for each in logs if each.startswith("reborn")}
    assert not list(served.glob("*-stray"))
    broker.close()


def test_a_start_looks_once_at_what_the_controller_wrote(served: Path) -> None:
    kafkas_turn(served, config("plain", "retention.ms", "42"))
    broker = opened(served)
    assert "topic plain has the configs that Apache Kafka has set" in broker.notes
    epoch = broker.store.image.epoch
    broker.close()
    broker = opened(served)
    assert (broker.store.image.epoch, broker.notes) == (epoch, ())
    broker.close()


def test_epochs_of_the_controller_go_on_and_a_loss_raises_them_by_one_at_most(
    served: Path,
) -> None:
    plain = id_of(served, "plain")
    kafkas_turn(
        served,
        *(record("PARTITION_CHANGE", partitionId=0, topicId=plain, leader=1) for _ in range(5)),
    )
    epoch = controller(served).topics[plain].partitions[0].leader_epoch
    epochs = []
    for _ in range(3):
        broker = opened(served, log_flush_on_ack=False)
        epochs.append(broker.store.image.topic("plain").partition(0).leader_epoch)
        assert broker.logs.get(PLAIN).epochs.latest_epoch == epochs[-1]
        append(broker, PLAIN, "more")
        broker.close()
        (served / CLEAN_SHUTDOWN_FILE).unlink()
    assert epochs == [epoch, epoch + 1, epoch + 1]


def test_a_topic_that_kafka_set_aside_is_taken_back_with_its_records(served: Path) -> None:
    broker = opened(served)
    create(broker, "ours", 2)
    append(broker, TopicPartition("ours", 0), "kept")
    broker.close()
    for number in (0, 1):
        name = f"ours-{number}.{uuid.uuid4().hex}-stray"
        (served / f"ours-{number}").rename(served / name)
    kafkas_turn(served, config("plain", "retention.ms", "42"))

    broker = opened(served)
    assert broker.logs.get(TopicPartition("ours", 0)).log_end_offset == 1
    assert not list(served.glob("*-stray"))
    assert len([note for note in broker.notes if note.endswith("ours-0 again")]) == 1
    broker.close()


def test_a_stray_beside_the_partitions_own_directory_stays_aside(served: Path) -> None:
    broker = opened(served)
    create(broker, "ours")
    topic_id = broker.store.image.topic("ours").topic_id
    broker.close()
    made_by_kafka(served, "stray", topic_id)
    stray = served / f"ours-0.{uuid.uuid4().hex}-stray"
    (served / "stray-0").rename(stray)

    opened(served).close()
    assert stray.is_dir()


def test_a_controllers_log_that_cannot_be_read_refuses_the_start_and_changes_nothing(
    served: Path,
) -> None:
    kafkas_turn(served, config("plain", "retention.ms", "42"))
    (file,) = (served / "__cluster_metadata-0").glob("*.log")
    whole = file.read_bytes()
    file.write_bytes(whole[:-30] + bytes(30) + whole[-200:])
    with pytest.raises(AdoptionError, match="cannot be read"):
        opened(served)
    file.write_bytes(whole)
    broker = opened(served)
    assert broker.store.image.topic("plain").configs == {"retention.ms": "42"}
    broker.close()


def test_tools_know_of_kafkas_turn_what_the_next_start_will(served: Path) -> None:
    broker = opened(served)
    change = ConfigChange("segment.bytes", ConfigOperation.SET, "2000000")
    broker.store.alter_topic_configs("plain", [change])
    broker.close()
    kafkas_turn(
        served,
        config("plain", "retention.ms", "42"),
        record("REMOVE_TOPIC", topicId=id_of(served, "reborn")),
        config("", "log.retention.ms", "43", resource_type=4),
    )

    known = learn_directory(OsFileSystem(), str(served))
    broker = opened(served)
    image = broker.store.image
    broker.close()
    assert {name: each.configs for name, each in known.topics.items()} == {
        name: each.configs for name, each in image.topics.items()
    }
    assert known.topics["plain"].configs == {"retention.ms": "42", "segment.bytes": "2000000"}
    assert known.broker_configs == configs_by_broker(image.broker_configs)
