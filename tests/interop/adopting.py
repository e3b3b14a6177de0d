"""A cluster of Apache Kafka with a history worth adopting, what it says of itself, and our view.

``golden/metadata.tar.xz`` keeps one such directory (no records, only what metadata is made of) and
Kafka's own answers. ``python tests/interop/adopting.py`` writes it anew.
"""

import base64
import json
import struct
import sys
import tarfile
import tempfile
import uuid
from pathlib import Path
from typing import Any

from apache_kafka import KafkaBroker, KafkaDistribution
from batches import Record, make_batch
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from golden import _anonymous
from wire import METADATA, KafkaConnection, WireError, _array, _string

from stratalog.broker.finding import survey_directory
from stratalog.directories import controller_log
from stratalog.metadata.adoption import FoundDirectory
from stratalog.metadata.cluster_log import ClusterMetadata
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA

ARCHIVE = Path(__file__).resolve().parent / "golden" / "metadata.tar.xz"
ANSWERS = "answers.json"
DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 20, 44
TOPIC, BROKER = 2, 4
# Where a config may come from to be an override: the topic; one broker, or all of them.
DYNAMIC_SOURCES = {ResourceType.TOPIC: (1,), ResourceType.BROKER: (2, 3)}
METADATA_LOG = "__cluster_metadata-0"
BROKER_CONFIGS = {
    # Small enough that this history leaves snapshots behind.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
TOPICS = {
    "compacted": {"cleanup.policy": "compact", "min.compaction.lag.ms": "60000"},
    "forever": {"retention.ms": "-1"},
    "plain": {},
    "reborn": {"retention.ms": "1000"},
    "doomed": {"retention.ms": "1"},
}
LEFT = ("compacted", "forever", "plain", "reborn")


def live_through(broker: KafkaBroker) -> dict[str, Any]:
    """Create, alter, delete, restart; leave the broker stopped, and say what it said at the end."""
    with broker, broker.connect() as connection:
        for topic, configs in TOPICS.items():
            connection.create_topic(topic, configs, 3)
        delete_topics(connection, "doomed", "reborn")
        connection.create_topic("reborn", {"segment.bytes": "2097152"})
        alter(connection, TOPIC, "compacted", "retention.ms", "77")
        alter(connection, TOPIC, "compacted", "min.compaction.lag.ms", None)
        alter(connection, BROKER, "", "log.retention.ms", "123456789")
        alter(connection, BROKER, "1", "log.cleaner.io.buffer.size", "600000")
        producer = connection.init_producer_id()
        batch = make_batch([Record(b"k", b"v", 0)], producer=producer, base_sequence=0)
        connection.produce("plain", batch)
    with broker, broker.connect() as connection:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_server, "log_level": 0})
        return {
            "producer_id": connection.init_producer_id()[0],
            "leader_epochs": leader_epochs(connection),
            "topic_ids": _topic_ids(admin),
            "configs": {topic: overrides(admin, ResourceType.TOPIC, topic) for topic in LEFT},
            "broker": overrides(admin, ResourceType.BROKER, "1"),
            "changeable": _changeable(admin),
        }


def delete_topics(connection: KafkaConnection, *topics: str) -> None:
    """Raises what the first that is refused was refused for."""
    body = _array([_string(topic) for topic in topics]) + struct.pack(">i", 30_000)
    answer = connection._ask(DELETE_TOPICS, 3, body)
    answer.take("i")
    for _ in range(answer.take("i")):
        topic = answer.string()
        if code := answer.take("h"):
            raise WireError(f"delete topic {topic}", code)


def alter(
    connection: KafkaConnection, kind: int, resource: str, name: str, value: str | None
) -> None:
    """Set one config, or take it back to its default."""
    operation = struct.pack(">b", 1 if value is None else 0)
    config = _string(name) + operation + _string(value)
    body = struct.pack(">b", kind) + _string(resource) + _array([config])
    answer = connection._ask(INCREMENTAL_ALTER_CONFIGS, 0, _array([body]) + b"\0")
    answer.take("i")
    for _ in range(answer.take("i")):
        code, message = answer.take("h"), answer.string()
        answer.take("b"), answer.string()
        if code:
            raise WireError(f"alter {name} of {resource!r}", code, message)


def overrides(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    """What is configured beside the defaults."""
    resource = ConfigResource(kind, name)
    entries = admin.describe_configs([resource])[resource].result(30).values()
    sources = DYNAMIC_SOURCES[kind]
    return {entry.name: entry.value for entry in entries if entry.source in sources}


def _changeable(admin: AdminClient) -> list[str]:
    """The broker configs that Kafka lets be changed while it runs."""
    resource = ConfigResource(ResourceType.BROKER, "1")
    entries = admin.describe_configs([resource])[resource].result(30).values()
    return sorted(entry.name for entry in entries if not entry.is_read_only)


def _topic_ids(admin: AdminClient) -> dict[str, str]:
    found = admin.describe_topics(TopicCollection(list(LEFT)))
    return {topic: str(future.result(30).topic_id) for topic, future in found.items()}


def leader_epochs(connection: KafkaConnection) -> dict[str, list[int]]:
    """Metadata of version 7: the first with leader epochs."""
    answer = connection._ask(METADATA, 7, struct.pack(">ib", -1, 0))
    answer.take("i")
    for _ in range(answer.take("i")):
        answer.take("i"), answer.string(), answer.take("i"), answer.string()
    answer.string(), answer.take("i")
    epochs: dict[str, list[int]] = {}
    for _ in range(answer.take("i")):
        _, topic, _ = answer.take("h"), answer.string(), answer.take("b")
        by_partition = {}
        for _ in range(answer.take("i")):
            answer.take("h")
            partition, _ = answer.take("i"), answer.take("i")
            by_partition[partition] = answer.take("i")
            for _ in range(3):
                for _ in range(answer.take("i")):
                    answer.take("i")
        epochs[topic or ""] = [by_partition[number] for number in sorted(by_partition)]
    return epochs


# --- our view of such a directory -------------------------------------------------------------


def find_directory(log_dir: Path) -> FoundDirectory:
    """The facts about a log directory that adoption asks for."""
    return survey_directory(LogDirectory(OsFileSystem(), str(log_dir)), [])


def read_controller(log_dir: Path) -> ClusterMetadata | None:
    return controller_log.read_controller([LogDirectory(OsFileSystem(), str(log_dir))])


def id_of(text: str) -> uuid.UUID:
    """librdkafka spells ids in plain base64."""
    return uuid.UUID(bytes=base64.b64decode(text + "=="))


# --- kept ---------------------------------------------------------------------------------------


def make(distribution: KafkaDistribution, work_dir: Path) -> None:
    broker = KafkaBroker(distribution, work_dir, BROKER_CONFIGS)
    answers = live_through(broker)
    (broker.log_dir / ANSWERS).write_text(json.dumps(answers, indent=1, sort_keys=True))
    wanted = ("meta.properties", ANSWERS, f"{METADATA_LOG}/*.log", f"{METADATA_LOG}/*.checkpoint")
    partition = (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT, "*.log", "*.snapshot")
    files = {file for pattern in wanted for file in broker.log_dir.glob(pattern)}
    for topic in LEFT:
        files |= {
            file for kind in partition for file in broker.log_dir.glob(f"{topic}-[0-9]/{kind}")
        }
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for file in sorted(files):
            archive.add(file, file.relative_to(broker.log_dir), filter=_anonymous)


def unpack_golden(target: Path) -> dict[str, Any]:
    """Kafka's directory, at ``target``, and its answers."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target, filter="data")
    answers: dict[str, Any] = json.loads((target / ANSWERS).read_text())
    return answers


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        make(KafkaDistribution.resolve(), Path(directory))
    sys.stdout.write(f"{ARCHIVE}: {ARCHIVE.stat().st_size} bytes\n")
