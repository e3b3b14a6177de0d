"""What is known of a log directory, by whichever witness is the best that there is."""

import uuid
from pathlib import Path

import pytest

from broker_fixture import running_broker
from left_directories import copy_of, leave, make_kafkas, make_topic, opened
from metadata_records import config, log_of, partition, topic
from stratalog.config import BrokerConfig
from stratalog.directories.known_directory import KnownDirectory, learn_directory
from stratalog.errors import CorruptFileError
from stratalog.metadata import ConfigChange, ConfigOperation
from stratalog.metadata.sqlite_store import METADATA_FILE
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import META_PROPERTIES

FOREVER = {"retention.ms": "-1"}
TOPIC_ID = uuid.UUID(int=7 << 100)
LIMITS = (("cleanup.policy", "delete"), ("retention.ms", "5"), ("retention.bytes", "-1"))


def learn(path: Path) -> KnownDirectory:
    return learn_directory(OsFileSystem(), str(path))


def retention_ms(path: Path, name: str = "orders") -> int | None:
    """What is known of it; None if it is not."""
    found = learn(path).topic_configs().of(name)
    return found.config.retention_ms if found.is_known else None


def recorded(*configs: tuple[str, str], dynamic: tuple[tuple[str, str], ...] = ()) -> bytes:
    """The log of a controller that has one topic."""
    return log_of(
        [
            topic("orders", TOPIC_ID),
            partition(TOPIC_ID, 0),
            *(config("orders", name, value) for name, value in configs),
            *(config("", name, value, resource_type=4) for name, value in dynamic),
        ]
    )


def test_a_broker_that_has_stopped_leaves_ids_configs_and_its_own_settings(tmp_path: Path) -> None:
    broker = opened(tmp_path, {"log.retention.ms": "77", "num.io.threads": "3"})
    topic_id = make_topic(broker, "orders", {"cleanup.policy": "compact"})
    dynamic = ConfigChange("log.cleaner.delete.retention.ms", ConfigOperation.SET, "88")
    broker.store.alter_broker_configs(None, [dynamic])
    broker.close()

    known = learn(tmp_path)
    found = known.topic_configs().of("orders")

    assert found.is_known
    assert found.config.cleanup_policy == ("compact",)
    assert (found.config.retention_ms, found.config.delete_retention_ms) == (77, 88)
    assert known.topics["orders"].topic_id == topic_id
    assert known.server_configs == {"log.retention.ms": "77"}


def test_a_running_broker_is_asked(tmp_path: Path) -> None:
    leave(tmp_path, {"orders": FOREVER})
    with running_broker(tmp_path, log_retention_bytes="99"):
        known = learn(tmp_path)

    assert known.how == "its broker was asked"
    found = known.topic_configs().of("orders").config
    assert (found.retention_ms, found.retention_bytes) == (-1, 99)


def test_a_killed_broker_leaves_the_same(tmp_path: Path) -> None:
    broker = opened(tmp_path / "logs")
    make_topic(broker, "orders", FOREVER)
    killed = copy_of(tmp_path / "logs", tmp_path / "killed")
    broker.close()

    assert retention_ms(killed) == -1


def test_the_directories_beside_the_one_with_the_store_are_known_too(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    broker = opened(first, {"log.dirs": f"{first},{second}"})
    for name in ("orders", "clicks"):
        make_topic(broker, name, FOREVER)
    broker.close()

    assert retention_ms(second, "orders") == retention_ms(second, "clicks") == -1


@pytest.mark.parametrize(
    ("configs", "dynamic", "is_known"),
    [
        (
            (("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")),
            (),
            True,
        ),
        ((("cleanup.policy", "delete"), ("retention.ms", "-1")), (), False),
        (
            (("cleanup.policy", "delete"), ("retention.ms", "-1")),
            (("log.retention.bytes", "-1"),),
            True,
        ),
        ((("shelf.life", "1"),), (), False),
    ],
)
def test_of_kafkas_directory_the_controllers_log_is_read(
    tmp_path: Path,
    configs: tuple[tuple[str, str], ...],
    dynamic: tuple[tuple[str, str], ...],
    *,
    is_known: bool,
) -> None:
    make_kafkas(leave(tmp_path, {"orders": {}}), recorded(*configs, dynamic=dynamic))

    known = learn(tmp_path)

    assert known.how == "the controller's log was read"
    assert known.topic_configs().of("orders").is_known == is_known
    assert known.topic_configs(BrokerConfig()).of("orders").is_known == (
        configs[0][0] != "shelf.life"
    )
    assert known.topics["orders"].configs == dict(configs)


def adopted(path: Path) -> Path:
    """Apache Kafka's directory with ``orders`` kept for a while, which a broker of ours has had."""
    leave(path, {"orders": {}})
    (path / "orders-0" / "partition.metadata").unlink()
    make_kafkas(path, recorded(*LIMITS))
    return leave(path, {}, server={"log.retention.ms": "3"})


def write_more(path: Path, *values: bytes) -> None:
    """What Kafka's controller appends when it has the directory again."""
    (written,) = (path / "__cluster_metadata-0").glob("*.log")
    count = 2 + len(LIMITS)
    written.write_bytes(written.read_bytes() + log_of(values, base_offset=count))


def test_what_kafka_has_changed_since_our_broker_had_it_counts(tmp_path: Path) -> None:
    adopted(tmp_path)
    assert retention_ms(tmp_path) == 5
    broker = opened(tmp_path)
    change = ConfigChange("retention.bytes", ConfigOperation.SET, "66")
    broker.store.alter_topic_configs("orders", [change])
    broker.close()
    assert learn(tmp_path).server_configs is not None
    write_more(tmp_path, config("orders", "retention.ms", "-1"))

    known = learn(tmp_path)

    found = known.topic_configs().of("orders")
    assert found.is_known
    assert (found.config.retention_ms, found.config.retention_bytes) == (-1, 66)
    assert known.server_configs is None, "Kafka's own are not known"
    leave(tmp_path, {})
    assert retention_ms(tmp_path) == -1, "a start takes it over"


def test_metadata_that_cannot_be_read_is_no_reason_to_believe_an_older_witness(
    tmp_path: Path,
) -> None:
    adopted(tmp_path)
    (tmp_path / METADATA_FILE).write_bytes(b"no database" * 1000)

    known = learn(tmp_path)

    assert not known.topic_configs().of("orders").is_known
    assert "cannot be read" in known.how
    assert isinstance(known.failure, CorruptFileError)


def test_a_store_of_a_release_that_did_not_note_them_leaves_the_brokers_settings_unknown(
    tmp_path: Path,
) -> None:
    import sqlite3

    leave(tmp_path, {"orders": FOREVER, "all": {**FOREVER, "cleanup.policy": "compact"}})
    with sqlite3.connect(tmp_path / METADATA_FILE) as connection:
        connection.execute("DROP TABLE server_configs")
    connection.close()

    found = learn(tmp_path).topic_configs().of("orders")

    assert found.unknown == ["cleanup.policy", "retention.bytes"]
    leave(tmp_path, {})
    assert retention_ms(tmp_path) == -1, "a start of a broker notes them"


def test_whoever_owns_a_directory_for_a_moment_does_not_pass_for_its_broker(tmp_path: Path) -> None:
    from stratalog.handover.owning import owned, owner_config

    leave(tmp_path, {"orders": {}}, server={"log.retention.ms": "-1"})
    with owned(owner_config(str(tmp_path), {})) as moment:
        assert moment.store.broker.log_retention_ms == -1

    assert retention_ms(tmp_path) == -1


def test_of_a_directory_without_any_of_these_nothing_is_known(tmp_path: Path) -> None:
    leave(tmp_path, {"orders": FOREVER})
    for each in tmp_path.glob(".stratalog*"):
        each.unlink()

    assert (tmp_path / META_PROPERTIES).exists()
    assert learn(tmp_path).topics == {}
    assert retention_ms(tmp_path) is None
